#!/usr/bin/env python3
"""Omitted fields and jobs that can never start, as the user of a new cluster sees them: the queue `default`, replicas,
requests from the queue and from the server, and the warning of `berth submit`.
"""
import unittest

from berth_harness import Cluster

BIG = """apiVersion: berth/v1
kind: Job
name: big
queue: research
groups:
- {name: w, replicas: 65, resources: {gpu: 8}, command: ["true"]}
"""
SMALL = """apiVersion: berth/v1
kind: Job
name: small
queue: research
groups:
- {name: w, command: ["true"]}
"""
NEVER = "can never start: requests gpu 520, the limit of queue research is 256"


class QueueDefaults(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster({"jobDefaults": {"walltime": "2h"}})
        self.cluster.belongs_to(self)
        self.cluster.server.start()

    def berth(self, *arguments, rc=0):
        done = self.cluster.run_berth(*arguments)
        self.assertEqual(done.returncode, rc, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def research(self):
        self.berth("queue", "create", "research", "--limit", "gpu=256", "--max-tasks", "100",
                   "--defaults", "{cpu: 500m, memory: 1Gi}")

    def test_a_new_cluster_accepts_a_job_without_a_queue(self):
        self.berth("submit", "--name", "bare", "--", "true")
        self.assertIn("queue: default", self.berth("job", "get", "bare", "-o", "yaml"))
        self.cluster.server.kill()
        self.cluster.server.start()
        self.assertIn("default", self.berth("queue", "list"))
        self.berth("job", "cancel", "bare")
        self.berth("job", "delete", "bare")
        self.berth("queue", "delete", "default")
        self.research()
        self.cluster.server.kill()
        self.cluster.server.start()
        self.assertIn('there is no queue "default"; queues that accept jobs: research',
                      self.berth("submit", "--", "true", rc=3))

    def test_requests_of_the_queue(self):
        self.research()
        self.berth("submit", str(self.cluster.manifest(SMALL)))
        job = self.berth("job", "get", "small", "-o", "yaml")
        for line in ("walltime: 2h", "replicas: 1", "cpu: 500m", "memory: 1Gi"):
            self.assertIn(line, job)
        self.assertIn("cpu 0.5, memory 1Gi", self.berth("queue", "describe", "research"))
        zero = self.cluster.manifest(SMALL.replace("name: w,", "name: w, replicas: 0,"))
        self.assertIn("groups[0].replicas: must be 1..10000, is 0", self.berth("submit", str(zero), rc=4))

    def test_a_job_beyond_the_limit_is_reported(self):
        self.research()
        output = self.berth("submit", str(self.cluster.manifest(BIG)))
        self.assertIn(f"warning: job/big {NEVER}", output)
        for verb in (["job", "list"], ["job", "describe", "big"], ["job", "explain", "big"]):
            self.assertIn(NEVER, self.berth(*verb))
        self.berth("queue", "update", "research", "--limit", "gpu=1024")
        self.assertNotIn("can never start", self.berth("job", "list"))
        self.assertIn("at most 100 tasks of jobs that have not ended (max_tasks), has 65, and this call adds 36",
                      self.berth("submit", "--queue", "research", "--replicas", "36", "--timeout", "1s", "--", "true", rc=5))


if __name__ == "__main__":
    unittest.main(verbosity=2)
