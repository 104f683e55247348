"""docs/reference/metrics.md: the metrics of berthd and of the agent, from the calls that make them.

Reads C++ as far as these calls go, and ends with an error at a form that it does not know.
"""
import dataclasses
import re

from reference import markdown

SERVER = "server/metrics/metrics.cc"
HA = "server/metrics/ha_metrics.cc"
USAGE = "server/metrics/usage_metrics.cc"
AGENT = "clients/agent/gpu_metrics.cc"
TYPES = {"Gauge": "gauge", "Counter": "counter", "AddHistogram": "histogram"}
LITERALS = re.compile(r'\s*(?:"(?:\\.|[^"\\])*"\s*)+')
STRING = re.compile(r'"(?:\\.|[^"\\])*"')
CLOSING = {"(": ")", "{": "}", "[": "]"}

INTRO = """\
`berthd` serves its metrics at `httpListen` (`GET /metrics`, by default port 7071), an agent serves those of its devices
at its own `httpListen`. [Monitoring](../operators/monitoring.md) explains which ones to watch.
"""
AGENT_INTRO = """\
Metrics of GPUs have the names, labels and units of NVIDIA's DCGM exporter. A metric that a GPU does not report is absent.
"""


@dataclasses.dataclass
class Metric:
    name: str
    type: str
    help: str
    labels: dict  # name -> its values, where all are in the source


def page(tree):
    blocks = [markdown.head(f"{SERVER}, {HA}, {USAGE} and {AGENT}"), "# Metrics", INTRO.rstrip(), "## berthd",
              table([metric for source in (SERVER, HA, USAGE) for metric in server_metrics(Source(tree, source))]),
              "## berth-agent", AGENT_INTRO.rstrip(),
              *agent_blocks(agent_metrics(Source(tree, AGENT)))]
    return markdown.join(blocks)


def agent_blocks(metrics):
    """The agent's own metrics, and those of GPUs, which have long lists of labels in common."""
    of_gpus = [each for each in metrics if each.name.startswith("DCGM_")]
    if any(each.labels != of_gpus[0].labels for each in of_gpus):
        raise SystemExit(f"deploy/docs: {AGENT}: metrics of GPUs have different labels")
    labels = labels_text(of_gpus[0].labels)
    return [table([each for each in metrics if each not in of_gpus]), f"Metrics of GPUs have the labels {labels}:",
            table([dataclasses.replace(each, labels={}) for each in of_gpus])]


def table(metrics):
    rows = [[markdown.code(each.name), each.type, labels_text(each.labels), markdown.text(each.help)] for each in metrics]
    return markdown.table(["metric", "type", "labels", "meaning"], rows)


def labels_text(labels):
    return ", ".join(markdown.code(name) + (f" ({', '.join(sorted(values))})" if all(values) else "")
                     for name, values in labels.items())


def split_arguments(text, opening):
    """What stands between commas from the bracket at `opening` to the one that closes it."""
    closers, parts, begin = [CLOSING[text[opening]]], [], opening + 1
    position = begin
    while closers:
        char = text[position]
        if char == '"':
            position = STRING.match(text, position).end()
            continue
        if char in CLOSING:
            closers.append(CLOSING[char])
        elif char == closers[-1]:
            closers.pop()
        if (char == "," and len(closers) == 1) or not closers:
            parts.append(text[begin:position].strip())
            begin = position + 1
        position += 1
    return [part for part in parts if part]


class Source:
    """A C++ file whose calls are looked at."""

    def __init__(self, tree, name):
        self.name, self.text = name, (tree / name).read_text()

    def fail(self, position, problem):
        line = self.text.count("\n", 0, position) + 1
        raise SystemExit(f"deploy/docs: {self.name}:{line}: {problem}: deploy/reference/metrics.py does not know this form")

    def calls(self, pattern):
        """The position and the arguments of each call whose head, up to its parenthesis, matches."""
        for match in re.finditer(pattern + r"\(", self.text):
            yield match, split_arguments(self.text, match.end() - 1)

    def constant(self, argument, position):
        """The text of a literal, or of the constant of this name that stands last before `position`; else None."""
        if LITERALS.fullmatch(argument):
            return "".join(re.findall(r'"((?:\\.|[^"\\])*)"', argument))
        found = [match for match in re.finditer(rf'const std::string {re.escape(argument)} =\s*((?:"[^"]*"\s*)+);', self.text)
                 if match.start() < position]
        return "".join(re.findall(r'"([^"]*)"', found[-1].group(1))) if found else None

    def function(self, position):
        """The name and the parameters' names of the function around `position`."""
        heads = [match for match in re.finditer(r"^\w[\w:<>&* ]* (\w+)\(", self.text, re.M) if match.start() < position]
        if not heads:
            self.fail(position, "a call outside of functions")
        parameters = split_arguments(self.text, heads[-1].end() - 1)
        return heads[-1].group(1), [re.findall(r"\w+", parameter)[-1] for parameter in parameters]


def server_metrics(source):
    metrics = {}
    for match, arguments in source.calls(r"\bout\.(Gauge|Counter|AddHistogram)"):
        labels = labels_of(source, arguments[3] if len(arguments) > 3 else "", match.start())
        for name, text in names_and_helps(source, match.start(), arguments[:2]):
            name = f"berth_{name}_total" if match.group(1) == "Counter" else f"berth_{name}"
            metric = metrics.setdefault(name, Metric(name, TYPES[match.group(1)], text, {}))
            if metric.help != text:
                source.fail(match.start(), f"{name} has two helps")
            for label, value in labels:
                metric.labels.setdefault(label, set()).add(value)
    return metrics.values()


def names_and_helps(source, position, arguments):
    """The pairs of name and help that a call makes: several where they are parameters of the function around it."""
    values = [source.constant(argument, position) for argument in arguments]
    if None not in values:
        return [values]
    function, parameters = source.function(position)
    if not set(arguments) <= set(parameters):
        source.fail(position, f"{' or '.join(arguments)} is not a constant")
    places = [parameters.index(argument) for argument in arguments]
    pairs = []
    for match, passed in source.calls(rf"(?<!void )\b{function}"):
        pairs.append([source.constant(passed[place], match.start()) for place in places])
        if None in pairs[-1]:
            source.fail(match.start(), "name or help is not a constant")
    return pairs


def labels_of(source, initializer, position):
    """The names, and the values or "", in {{"state", STATE}, {"kind", "active"}}."""
    if not initializer:
        return []
    labels = re.findall(r'\{"(\w+)",\s*(?:"(\w+)"\s*\})?', initializer)
    if not labels or not initializer.startswith("{{"):
        source.fail(position, f"labels {initializer}")
    return labels


def agent_metrics(source):
    metrics = []
    for match, arguments in source.calls(r"(\w+) =\s+Family"):
        name, text = (source.constant(argument, match.start()) for argument in arguments[:2])
        if name is not None and text is not None:
            labels = agent_labels(source, match.group(1), match.start())
            metrics.append(Metric(name, metric_type(source, arguments[2], match.start()), text, labels))
        elif arguments == ["field.name", "field.help", "field.counter"]:
            metrics += field_metrics(source, agent_labels(source, match.group(1), match.start()))
        else:
            source.fail(match.start(), "a family")
    return metrics


def metric_type(source, counter, position):
    if counter not in ("true", "false"):
        source.fail(position, f"{counter} is neither true nor false")
    return "counter" if counter == "true" else "gauge"


def field_metrics(source, labels):
    """One metric for each row of kFields: name, help, member, factor, counter."""
    begin = source.text.index("kFields[] = {")
    metrics = []
    for row in split_arguments(source.text, source.text.index("{", begin)):
        fields = split_arguments(row, 0)
        name, text = (source.constant(field, begin) for field in fields[:2])
        if name is None or text is None:
            source.fail(begin, f"the row {row}")
        metrics.append(Metric(name, metric_type(source, (fields[4:] or ["false"])[0], begin), text, labels))
    return metrics


def agent_labels(source, family, position):
    """The labels of the AddGauge(LABELS, VALUE, &FAMILY) behind `position`."""
    for match, arguments in source.calls(r"\bAddGauge"):
        if match.start() < position or arguments[-1] != f"&{family}":
            continue
        if arguments[0].startswith("LabelsOf("):
            begin = source.text.index("Labels LabelsOf(")
            body = source.text[begin:source.text.index("\n}", begin)]
            names = re.findall(r'\{"(\w+)",|emplace_back\("(\w+)",', body)
            return {first or second: {""} for first, second in names}
        return {label: {value} for label, value in labels_of(source, arguments[0], match.start())}
    return source.fail(position, f"no labels of {family}")
