#!/usr/bin/env python3
"""deploy/monitoring: rules and dashboards agree with the documentation, each alert has a unit test and an entry in the
runbook, and a real Prometheus that scrapes running servers and an agent evaluates all of it.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import monitoring_rules as monitoring
from berth_api import job_pb2, make_job
from berth_harness import BIN, SOURCE, Cluster, Program, Server, free_port, wait_until
from ha_world import ETCD, HaWorld
from ticking_gang import CONFIG

FAKE_NVML = pathlib.Path(os.environ.get("BERTH_BUILD", SOURCE / "build" / "release")) / "tests" / "libberth_fake_nvml.so"
PROMTOOL = shutil.which("promtool")
# A task that uses a step every half second, and saves each tenth.
TRAINING = """\
import os, socket, time
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notify.connect(os.environ["NOTIFY_SOCKET"])
for step in range(1, 1000):
    notify.send(f"X_BERTH_STEP={step}".encode())
    if step % 10 == 1:
        notify.send(f"X_BERTH_CHECKPOINT={step},shared".encode())
    time.sleep(0.5)
"""


def run(*command, **more):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120, **more)


class Agreement(unittest.TestCase):
    """Runs nothing but promtool and `berth --help`."""

    def test_alerts_unit_tests_and_runbook_agree(self):
        alerts = monitoring.alerts()
        self.assertEqual(sorted(alerts), sorted(monitoring.unit_tests()))
        self.assertEqual(list(alerts), list(monitoring.runbook()), "same entries in the same order")
        for name, rule in alerts.items():
            self.assertEqual(rule["annotations"]["runbook"], f"docs/operators/runbook.md#{name.lower()}")
            self.assertIn(rule["labels"]["severity"], ("critical", "warning", "info"))

    def test_each_alert_is_seen_to_fire_and_to_be_silent(self):
        for name, counts in monitoring.unit_tests().items():
            self.assertTrue(any(counts) and not all(counts), name)

    def test_entries_say_what_to_do(self):
        for name, text in monitoring.runbook().items():
            self.assertEqual(re.findall(r"^- \*\*([^*]+):\*\*", text, re.M), ["Means", "Look at", "Do"], name)

    def test_commands_of_the_runbook_exist(self):
        commands = {re.sub(r"\s+", " ", text) for text in re.findall(r"`(berth [^`]+)`", monitoring.RUNBOOK.read_text())}
        self.assertGreater(len(commands), 15)
        everywhere = run(BIN / "berth", "--help").stdout
        for command in sorted(commands):
            words = re.match(r"berth((?: [a-z][a-z-]*)+)", command).group(1).split()
            result = run(BIN / "berth", *words, "--help")
            self.assertEqual(result.returncode, 0, command)
            self.assertIn(f"Usage: berth {' '.join(words)}", result.stdout, command)
            for option in re.findall(r"--[\w-]+", command):
                self.assertIn(option, result.stdout + everywhere, command)

    def test_metrics_and_labels_are_documented(self):
        reference, records = monitoring.documented(), monitoring.recorded()
        expressions = [rule["expr"] for rule in monitoring.rules()] + [text for _, _, text in monitoring.queries("j")]
        expressions += [f"max by ({label}) ({selector})" for selector, label in monitoring.variable_queries()]
        for expression in expressions:
            known = [monitoring.known_labels(metric, reference, records) for metric in monitoring.metrics_in(expression)]
            self.assertNotIn(None, known, expression)
            self.assertTrue(known, expression)
            self.assertLessEqual(monitoring.labels_in(expression), set().union(*known), expression)

    def test_annotations_name_labels_that_exist(self):
        reference, records = monitoring.documented(), monitoring.recorded()
        for name, rule in monitoring.alerts().items():
            known = set().union(*(monitoring.known_labels(metric, reference, records) for metric in monitoring.metrics_in(rule["expr"])))
            self.assertLessEqual(set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])), known, name)

    @unittest.skipUnless(PROMTOOL, "no promtool (deploy/install-deps --test)")
    def test_promtool_accepts_rules_and_unit_tests(self):
        commands = [("test", "rules", path) for path in monitoring.UNIT_TESTS]
        commands += [("check", "rules", *monitoring.RULES), ("check", "config", "--syntax-only", monitoring.MONITORING / "prometheus.yml")]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for result in pool.map(lambda command: run(PROMTOOL, *command), commands):
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


class Dashboards(unittest.TestCase):
    """What Grafana needs to load a dashboard: Debian has no package of Grafana that could load them here."""

    def test_they_are_current(self):
        result = run(monitoring.MONITORING / "make-dashboards", "--check")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_one_that_is_not_current_is_named(self):
        with tempfile.TemporaryDirectory(prefix="berth-dashboards-") as folder:
            copy = pathlib.Path(shutil.copytree(monitoring.MONITORING, f"{folder}/monitoring"))
            changed = copy / "grafana/dashboards/berth-cluster.json"
            changed.write_text(changed.read_text().replace("Nodes ready", "Nodes"))
            result = run(copy / "make-dashboards", "--check")
            self.assertEqual(result.returncode, 1)
            self.assertEqual(result.stderr, "make-dashboards: grafana/dashboards/berth-cluster.json is not current\n")

    def test_all_have_what_grafana_needs(self):
        dashboards = monitoring.dashboards()
        self.assertEqual(len(dashboards), 5)
        self.assertEqual(len({each["uid"] for each in dashboards.values()}), 5)
        for name, dashboard in dashboards.items():
            self.assertEqual(f"{dashboard['uid']}.json", name)
            self.assertLessEqual(len(dashboard["uid"]), 40)
            self.assertEqual(dashboard["schemaVersion"], 38)
            self.assertNotIn("id", dashboard, "Grafana gives it one")
            first = dashboard["templating"]["list"][0]
            self.assertEqual((first["name"], first["type"], first["query"]), ("datasource", "datasource", "prometheus"))
            ids = [panel["id"] for panel in dashboard["panels"]]
            self.assertEqual(len(ids), len(set(ids)), name)

    def test_panels_have_sources_queries_and_places(self):
        for name, dashboard in monitoring.dashboards().items():
            taken = set()
            for panel in dashboard["panels"]:
                place, where = panel["gridPos"], f"{name}: {panel['title']}"
                cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
                self.assertFalse(cells & taken, f"{where} overlaps another panel")
                self.assertLessEqual(place["x"] + place["w"], 24, where)
                taken |= cells
                if panel["type"] == "row":
                    continue
                self.assertIn(panel["type"], ("stat", "table", "timeseries"), where)
                self.assertEqual(panel["datasource"], {"type": "prometheus", "uid": "${datasource}"}, where)
                references = [target["refId"] for target in panel["targets"]]
                self.assertTrue(references and len(references) == len(set(references)), where)

    def test_variables_of_queries_are_defined(self):
        for name, dashboard in monitoring.dashboards().items():
            defined = {variable["name"] for variable in dashboard["templating"]["list"]} | {"__rate_interval"}
            used = set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard["panels"])))
            self.assertLessEqual(used, defined, name)


@unittest.skipUnless(shutil.which("prometheus"), "no prometheus (deploy/install-deps --test)")
class RealPrometheus(unittest.TestCase):
    """A cluster with an agent that has (fake) GPUs and trains, and two servers with etcd if that is installed."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster({**CONFIG, "fenceMargin": "1s"})
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.cluster.server.start()
        cls.agents_http = f"127.0.0.1:{free_port()}"
        cls.start_agents()
        cls.targets = [{"targets": [cls.cluster.server.http], "labels": {"cluster": "main"}}]
        if ETCD:
            world = HaWorld(servers=2, etcds=1).__enter__()
            cls.addClassCleanup(world.__exit__, None, None, None)
            cls.targets.append({"targets": [server.http for server in world.servers], "labels": {"cluster": "ha"}})
        cls.start_work()
        cls.start_prometheus()

    @classmethod
    def start_agents(cls):
        gpus = {}
        if FAKE_NVML.exists():
            state = cls.cluster.home / "driver"
            state.write_text("ecc 0 0\necc 1 0\npending 1 0\n")
            gpus = {"discovery": {"nvmlLibrary": str(FAKE_NVML)}, "health": {"interval": "1s"}}
        agent = cls.cluster.add_agent("n1", start=False, httpListen=cls.agents_http, **gpus)
        if gpus:
            agent.environment["BERTH_FAKE_NVML_STATE"] = str(state)
        agent.start()
        cls.cluster.add_agent("n2")
        cls.cluster.wait_nodes(2)

    @classmethod
    def start_work(cls):
        cls.cluster.berth("queue", "create", "q", "--limit", "gpu=8")
        train = make_job("train", "q", ["/usr/bin/python3", "-c", TRAINING])
        large = make_job("large", "q", ["true"], cpu_millis=900_000)
        if FAKE_NVML.exists():
            for job, count in ((train, 1), (large, 7)):
                job.spec.groups[0].resources.devices.add(kind="gpu", count=count)
        jobs = [train, large, *(make_job(f"j{i}", "q", ["true"]) for i in range(5))]
        cls.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id="r", jobs=jobs), timeout=10)
        cls.cluster.wait_job("train", "RUNNING")

    @classmethod
    def start_prometheus(cls):
        home, cls.port = cls.cluster.home, free_port()
        config = home / "prometheus.yml"
        config.write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(path) for path in monitoring.RULES],
            "scrape_configs": [
                {"job_name": "berthd", "static_configs": cls.targets},
                {"job_name": "berth-agent", "static_configs": [{"targets": [cls.agents_http], "labels": {"cluster": "main"}}]}]}))
        prometheus = Program("prometheus", ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={home}/tsdb",
                                            f"--web.listen-address=127.0.0.1:{cls.port}"], home / "prometheus.log").start()
        cls.addClassCleanup(prometheus.stop)
        wait_until(lambda: all(cls.query(f"count_over_time({metric}[1m]) > 5") for metric in
                               ("berth_job_step", "berth:commit_seconds:p99_5m", "berth_agent_device_healthy" if FAKE_NVML.exists() else "up")),
                   40, "Prometheus has scraped and recorded several times")

    @classmethod
    def get(cls, path, **parameters):
        url = f"http://127.0.0.1:{cls.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    @classmethod
    def query(cls, expression):
        return cls.get("query", query=expression)["result"]

    def metrics(self):
        """Names that Prometheus has series of."""
        return set(self.get("label/__name__/values"))

    def test_rules_evaluate(self):
        groups = self.get("rules")["groups"]
        loaded = [rule for group in groups for rule in group["rules"]]
        self.assertEqual(len(loaded), len(list(monitoring.rules())))
        self.assertEqual({rule["name"]: rule.get("lastError") for rule in loaded if rule["health"] != "ok"}, {})

    def test_recording_rules_have_data_where_their_metrics_have(self):
        present, records = self.metrics(), monitoring.recorded()
        missing = [name for name, expression in records.items()
                   if monitoring.base_metrics(expression, records) <= present and name not in present]
        self.assertEqual(missing, [])

    def test_queries_of_dashboards_have_data_where_their_metrics_have(self):
        present, records = self.metrics(), monitoring.recorded()
        empty, answered = [], 0
        for name, panel, expression in monitoring.queries("train"):
            data = self.query(expression)
            answered += bool(data)
            selects = re.search(r"[<>]|==|ALERTS|outcome|\blimit\b", expression)  # what may rightly be empty
            if not data and not selects and monitoring.base_metrics(expression, records) - {"up", "ALERTS"} <= present:
                empty.append(f"{name}: {panel}: {expression}")
        self.assertEqual(empty, [])
        print(f"{answered} queries of dashboards returned data")
        self.assertGreater(answered, 100 if ETCD and FAKE_NVML.exists() else 60)

    def test_metrics_that_are_used_exist(self):
        """Those that this cluster cannot have are named here; everything else that a rule or a panel needs is scraped."""
        absent = {"berth_certificate_expiry_time_seconds", "berth_hypernodes_degraded", "berth_node_conditions", "ALERTS"}
        records = monitoring.recorded()
        used = set().union(*(monitoring.base_metrics(rule["expr"], records) for rule in monitoring.rules()),
                           *(monitoring.base_metrics(text, records) for _, _, text in monitoring.queries("train")))
        missing = used - self.metrics() - absent
        if not ETCD:
            missing = {name for name in missing if not name.startswith("berth_ha_")}
        missing = {name for name in missing if not name.startswith("DCGM_")}
        self.assertEqual(missing if FAKE_NVML.exists() else missing - {"berth_agent_device_healthy"}, set())

    def test_choices_of_variables_have_values(self):
        for selector, label in monitoring.variable_queries():
            metric = re.match(r"\w+", selector).group(0)
            if metric in self.metrics():
                self.assertTrue(self.get(f"label/{label}/values", **{"match[]": metric}), (metric, label))

    def test_pages_have_no_problems(self):
        pages = [self.cluster.server.get("/metrics")[1],
                 urllib.request.urlopen(f"http://{self.agents_http}/metrics", timeout=10).read().decode()]
        result = run(PROMTOOL, "check", "metrics", input=pages[0])
        self.assertEqual((result.returncode, result.stdout + result.stderr), (0, ""))
        result = run(PROMTOOL, "check", "metrics", input="\n".join(re.findall(r"^.*berth_.*$", pages[1], re.M)) + "\n")
        self.assertEqual((result.returncode, result.stdout + result.stderr), (0, ""), "DCGM's names are not ours")

    def firing(self, name):
        return [alert for alert in self.get("alerts")["alerts"]
                if alert["labels"]["alertname"] == name and alert["state"] == "firing"]

    def test_a_node_that_dies_is_an_alert_until_it_is_back(self):
        self.assertEqual(self.firing("BerthNodeLost"), [])
        self.cluster.kill_node("n2")
        alert = wait_until(lambda: self.firing("BerthNodeLost"), 30, "the alert fires")[0]
        self.assertEqual(alert["labels"], {"alertname": "BerthNodeLost", "cluster": "main", "severity": "warning", "state": "LOST"})
        self.assertEqual(alert["annotations"]["summary"], "1 nodes are lost.")
        self.cluster.agents["n2"].start()
        wait_until(lambda: not self.firing("BerthNodeLost"), 30, "the alert ends")


class Certificates(unittest.TestCase):
    """When they expire, of a server with TLS."""

    def test_expiry(self):
        home = pathlib.Path(tempfile.mkdtemp(prefix="berth-certificates-"))
        self.addCleanup(shutil.rmtree, home)
        for name, days in (("server", 2), ("ca", 30)):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                            "-days", str(days), "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}"],
                           cwd=home, check=True, capture_output=True)
        server = Server(home, {"tls": {"certificate": f"{home}/server.pem", "key": f"{home}/server.key", "ca": f"{home}/ca.pem"}})
        self.addCleanup(server.stop)
        server.start()
        page = server.get("/metrics")[1]
        found = dict(re.findall(r'^berth_certificate_expiry_time_seconds\{file="(\w+)"\} (\S+)$', page, re.M))
        self.assertEqual(set(found), {"certificate", "ca"})
        for name, days in (("certificate", 2), ("ca", 30)):
            self.assertAlmostEqual(float(found[name]), time.time() + days * 86400, delta=600, msg=name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
