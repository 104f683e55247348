"""What deploy/monitoring contains, for its test: alerts, recording rules, dashboards, and the metrics that they name."""
import json
import re

import yaml

from berth_harness import SOURCE

MONITORING = SOURCE / "deploy" / "monitoring"
RULES = sorted((MONITORING / "rules").glob("*.yml"))
UNIT_TESTS = sorted((MONITORING / "tests").glob("*.yml"))
DASHBOARDS = sorted((MONITORING / "grafana" / "dashboards").glob("*.json"))
RUNBOOK = SOURCE / "docs" / "operators" / "runbook.md"
REFERENCE = SOURCE / "docs" / "reference" / "metrics.md"
# What Prometheus adds by itself, or operators give to targets.
OF_PROMETHEUS = {"up": set(), "ALERTS": {"alertname", "alertstate", "severity"}}
TARGET_LABELS = {"cluster", "instance", "job"}
METRIC = re.compile(r"\b(?:berth[_:]|DCGM_)[\w:]+|\bup\b|\bALERTS\b")
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right) \(([^)]*)\)")
# Values of Grafana's variables that select everything.
VARIABLES = {"$__rate_interval": "20s", "$resource": "gpu", "$cluster": ".*", "$instance": ".*", "$queue": ".*", "$node": ".*"}


def rules():
    """All rules, as dictionaries of Prometheus."""
    for path in RULES:
        for group in yaml.safe_load(path.read_text())["groups"]:
            yield from group["rules"]


def alerts():
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def recorded():
    return {rule["record"]: rule["expr"] for rule in rules() if "record" in rule}


def unit_tests():
    """Name of an alert -> the numbers of alerts that its tests expect at each time."""
    expected = {}
    for path in UNIT_TESTS:
        for test in yaml.safe_load(path.read_text())["tests"]:
            for check in test["promql_expr_test"]:
                alert = re.search(r'alertname="(\w+)"', check["expr"]).group(1)
                assert alert == test["name"], f"{path.name}: the test {test['name']} looks at {alert}"
                expected.setdefault(alert, []).append(len(check["exp_samples"]))
    return expected


def runbook():
    """Heading -> text of each entry."""
    parts = re.split(r"^### (\w+)\n", RUNBOOK.read_text(), flags=re.M)[1:]
    return dict(zip(parts[::2], parts[1::2]))


def dashboards():
    return {path.name: json.loads(path.read_text()) for path in DASHBOARDS}


def queries(job):
    """(dashboard, panel, expression with values of variables) of each query of the dashboards."""
    for name, dashboard in dashboards().items():
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                expression = target["expr"]
                for variable, value in {**VARIABLES, "$job": job}.items():
                    expression = expression.replace(variable, value)
                yield name, panel["title"], expression


def variable_queries():
    """(metric with its selector, label) of each label_values() of the dashboards."""
    for dashboard in dashboards().values():
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                yield re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"]).groups()


def without_strings(expression):
    return re.sub(r'"(?:\\.|[^"\\])*"', '""', expression)


def metrics_in(expression):
    return set(METRIC.findall(without_strings(expression)))


def labels_in(expression):
    """Labels that selectors and groupings of an expression name."""
    plain = without_strings(expression)
    labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"\"", plain))
    for names in GROUPING.findall(plain):
        labels.update(re.findall(r"\w+", names))
    return labels


def documented():
    """Metric -> its labels, from the reference. Histograms have their three series."""
    found, text = {}, REFERENCE.read_text()
    of_gpus = set(re.findall(r"`(\w+)`", re.search(r"Metrics of GPUs have the labels (.*):", text).group(1)))
    for line in re.findall(r"^\| `(?:berth_|DCGM_).*$", text, re.M):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        name, kind = cells[0].strip("`"), cells[1]
        labels = of_gpus if name.startswith("DCGM_") else set(re.findall(r"`(\w+)`", cells[2]))
        # Prometheus renames a metric's label that a target has, too.
        labels = {f"exported_{label}" if label in TARGET_LABELS else label for label in labels}
        if kind == "histogram":
            found.update({f"{name}_{part}": labels | {"le"} for part in ("bucket", "count", "sum")})
        else:
            found[name] = labels
    return found


def known_labels(metric, reference, records):
    """Labels that the metric may have; None: there is no such metric."""
    if metric in OF_PROMETHEUS:
        return OF_PROMETHEUS[metric] | TARGET_LABELS
    if metric in records:
        parts = [known_labels(each, reference, records) for each in metrics_in(records[metric])]
        return None if None in parts else set().union(*parts)
    return reference[metric] | TARGET_LABELS if metric in reference else None


def base_metrics(expression, records):
    """The metrics of Berth that an expression needs, also by recording rules."""
    found = set()
    for metric in metrics_in(expression):
        found |= base_metrics(records[metric], records) if metric in records else {metric}
    return found
