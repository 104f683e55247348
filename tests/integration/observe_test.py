#!/usr/bin/env python3
"""Operators' tools: Prometheus scrapes berthd, promtool reports no problems, and health and reflection work."""
import json
import re
import shutil
import subprocess
import unittest
import urllib.parse
import urllib.request

import grpc

from berth_api import cluster_pb2, job_pb2, make_job
from berth_harness import Cluster, Program, free_port, wait_until

SERVICES = {"berth.v1.JobService", "berth.v1.QueueService", "berth.v1.NodeService", "berth.v1.ClusterService",
            "berth.v1.WatchService", "berth.v1.AgentService", "berth.v1.ExplainService", "berth.v1.HyperNodeService"}


class Observe(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster({"log": {"level": "debug"}})
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.cluster.server.start()
        cls.cluster.add_agent("n1")
        cls.cluster.create_queue("q")
        cls.cluster.wait_nodes(1)
        jobs = [make_job(f"j{i}", "q", ["true"]) for i in range(20)]
        cls.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id="r", jobs=jobs), timeout=10)
        for job in jobs:
            cls.cluster.wait_job(job.name, "SUCCEEDED")

    def test_promtool_reports_no_problems(self):
        if not shutil.which("promtool"):
            self.skipTest("promtool is not installed")
        status, text = self.cluster.server.get("/metrics")
        self.assertEqual(status, 200)
        result = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout + result.stderr), (0, ""))
        names = set(re.findall(r"^# TYPE (\S+)", text, re.M))
        ours = {name for name in names if name.startswith("berth_")}
        self.assertGreater(len(ours), 10)
        print(f"{len(ours)} metric families of Berth, promtool reports no problems")

    def test_prometheus_scrapes_berthd(self):
        if not shutil.which("prometheus"):
            self.skipTest("prometheus is not installed")
        home, port = self.cluster.home, free_port()
        config = home / "prometheus.yml"
        config.write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": [
            {"job_name": "berthd", "static_configs": [{"targets": [self.cluster.server.http]}]}]}))
        prometheus = Program("prometheus", ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={home}/tsdb",
                                            f"--web.listen-address=127.0.0.1:{port}"], home / "prometheus.log").start()
        try:
            up = wait_until(lambda: self.query(port, 'up{job="berthd"} == 1'), 30, "Prometheus sees berthd up")
            self.assertEqual(len(up), 1)
            nodes = wait_until(lambda: self.query(port, 'sum(berth_nodes{state="READY"})'), 10, "berth_nodes is stored")
            self.assertEqual(nodes[0]["value"][1], "1")
        finally:
            prometheus.stop()

    def query(self, port, expression):
        url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(url, timeout=5) as answer:
            return json.load(answer)["data"]["result"]

    def test_health_pages(self):
        self.assertEqual(self.cluster.server.get("/healthz")[0], 200)
        self.assertEqual(self.cluster.server.get("/readyz")[0], 200)
        self.assertEqual(self.cluster.server.get("/nothing-here")[0], 404)

    def test_grpc_health(self):
        check = self.cluster.api.channel.unary_unary("/grpc.health.v1.Health/Check")
        self.assertEqual(check(b"", timeout=5), b"\x08\x01")  # status: SERVING

    def test_grpc_reflection_lists_every_service(self):
        reflect = self.cluster.api.channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
        answer = next(reflect(iter([b"\x3a\x01*"]), timeout=5))  # list_services: "*"
        found = set(re.findall(r"[a-z][\w.]*\.[A-Z]\w+", answer.decode(errors="replace")))
        self.assertLessEqual(SERVICES | {"grpc.health.v1.Health"}, found)

    def test_unimplemented_services_are_named(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.cluster.api.channel.unary_unary("/berth.v1.ExplainService/WhatIf")(b"", timeout=5)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        self.assertRegex(caught.exception.details().lower(), "what-if")

    def test_logs_name_job_and_node(self):
        log = self.cluster.server.output()
        self.assertRegex(log, r"j7\b")
        self.assertRegex(log, r"n1\b")


if __name__ == "__main__":
    unittest.main(verbosity=2)
