#!/usr/bin/env python3
"""Replays the history of a cluster: `berth-sim replay` reads `berth job history` of a berthd with simulated nodes."""
import json
import subprocess
import unittest

from berth_harness import BIN, Cluster

NODE = {"name": "n", "cpu": 8, "memory": "8Gi", "runTime": "2s"}
JOB = """apiVersion: berth/v1
kind: Job
name: {name}
queue: q
user: ann
priority: 3
walltime: 60s
groups:
- name: w
  replicas: {tasks}
  resources: {{cpu: 2}}
  command: [run]
"""


class History(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster({}).belongs_to(self)
        self.cluster.server.start()
        self.cluster.add_simulation([NODE])
        self.cluster.wait_nodes(1)
        self.cluster.berth("queue", "create", "q")

    def submit(self, name, tasks):
        self.cluster.berth("submit", self.cluster.manifest(JOB.format(name=name, tasks=tasks), f"{name}.yaml"))

    def test_a_history_is_replayed(self):
        self.submit("a", 2)
        self.submit("b", 4)  # waits for a
        for name in "a", "b":
            self.cluster.wait_job(name, "SUCCEEDED")
        self.submit("c", 5)  # more than the cluster has
        self.cluster.berth("job", "cancel", "c")
        self.cluster.wait_job("c", "CANCELLED")
        self.submit("d", 5)  # has not ended
        text = self.cluster.berth("job", "history")
        lines = [json.loads(line) for line in text.splitlines()]
        self.assertEqual([line["name"] for line in lines], ["a", "b", "c"])
        history = self.cluster.manifest(text, "history.jsonl")
        cluster = self.cluster.manifest("nodes: [{name: n, cpu: 8}]\nqueues: [{name: q}]\n", "cluster.yaml")
        done = subprocess.run([str(BIN / "berth-sim"), "replay", history, "--cluster", cluster, "-o", "json"],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual((result["jobs"], result["leftOut"]), (2, {"never ran": 1}))
        policy = result["policies"][0]
        self.assertEqual(policy["finished"], 2)
        self.assertEqual(policy["users"][0]["name"], "ann")
        self.assertGreater(policy["wait"]["max"], 0.5)
        self.assertGreater(policy["makespan"], 3.9)
        self.assertLess(policy["makespan"], 30)
        none = self.cluster.berth("job", "history", "--queue", "q", "--label", "a=b")
        self.assertEqual(none, "")


if __name__ == "__main__":
    unittest.main()
