#!/usr/bin/env python3
"""berth-sim verify: the engine repeats all decisions of berthd from its log, across kills, restarts and changed
policies. A store that is in use or missing is refused."""
import json
import signal
import subprocess
import unittest

from berth_api import job_pb2, make_job
from berth_harness import BIN, Cluster, wait_until, write_yaml

EQUAL, BROKEN = 0, 2
NODES = [{"name": "n[01-16]", "cpu": 8, "memory": "8Gi", "runTime": "200ms", "runTimeJitter": "2s",
          "failureRate": 0.05, "refusalRate": 0.02}]


class Verify(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster({"log": {"level": "warn"}}).belongs_to(self)
        self.server = self.cluster.server.start()
        self.cluster.add_simulation(NODES)
        self.cluster.wait_nodes(16)
        self.cluster.create_queue("a", weight=1)
        self.cluster.create_queue("b", weight=3)
        self.submitted = 0

    def verify(self, *options):
        return subprocess.run([str(BIN / "berth-sim"), "verify", str(self.server.data), *options],
                              capture_output=True, text=True, timeout=300)

    def submit(self, count):
        jobs = []
        for i in range(self.submitted, self.submitted + count):
            jobs.append(make_job(f"j{i}", "ab"[i % 2], ["run"], replicas=1 + i % 5, cpu_millis=500 * (1 + i % 11),
                                 priority=i % 3, preemptible=i % 2 == 0, max_retries=1))
        self.submitted += count
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=f"r{self.submitted}", jobs=jobs), timeout=30)

    def ended(self):
        counts = self.cluster.api.all_jobs(states=[job_pb2.JOB_SUCCEEDED, job_pb2.JOB_FAILED])
        return len(counts)

    def test_across_kills_restarts_and_changed_policies(self):
        in_use = self.verify()
        self.assertEqual(in_use.returncode, BROKEN, in_use.stdout)
        self.assertIn("in use", in_use.stderr)

        self.submit(150)
        wait_until(lambda: self.ended() > 20, 60, "some jobs end")
        self.server.kill()
        self.server.start()
        self.submit(100)
        write_yaml(self.server.config, {"log": {"level": "warn"},
                                        "scheduling": {"scores": ["best_fit"], "backfill": {"mode": "CONSERVATIVE"}}})
        self.server.signal(signal.SIGHUP)
        wait_until(lambda: self.ended() > 60, 60, "more jobs end")
        self.assertEqual(self.cluster.run_berth("node", "drain", "n03").returncode, 0)
        self.assertEqual(self.cluster.run_berth("submit", "--dry-run", "--name", "asked", "--queue", "a", "--cpu", "8",
                                                "--", "run").returncode, 0)
        self.submit(50)
        wait_until(lambda: self.ended() > 120, 60, "most jobs end")
        self.server.stop()

        verified = self.verify()
        self.assertEqual(verified.returncode, EQUAL, verified.stdout + verified.stderr)
        self.assertIn("decisions: equal", verified.stdout)
        print(verified.stdout.strip())
        result = json.loads(self.verify("-o", "json").stdout)
        self.assertGreater(int(result["decisions"]), 300)
        self.assertEqual(result["firstTurn"], 1)
        self.assertNotIn("difference", result)

    def test_a_missing_store(self):
        self.server.data = self.cluster.home / "nowhere"
        result = self.verify()
        self.assertEqual(result.returncode, BROKEN)
        self.assertIn(f"{self.server.data}: no store there", result.stderr)
        self.assertFalse(self.server.data.exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
