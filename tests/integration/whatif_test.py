#!/usr/bin/env python3
"""berth-sim whatif on a backup of a running server: when pending jobs will start, in the current cluster and with more
nodes, a larger queue, or another configuration."""
import json
import subprocess
import unittest

from google.protobuf.duration_pb2 import Duration

from berth_api import job_pb2, make_job
from berth_harness import BIN, Cluster, wait_until, write_yaml

BROKEN = 2
HOUR = 3600
NODES = [{"name": "n[1-2]", "cpu": 8, "memory": "8Gi", "runTime": "2h"}]


class Whatif(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster({"log": {"level": "warn"}}).belongs_to(self)
        write_yaml(self.cluster.server.config, {"log": {"level": "warn"},
                                                "backupDirectory": str(self.cluster.home / "backups")})
        self.cluster.server.start()
        self.cluster.add_simulation(NODES)
        self.cluster.wait_nodes(2)
        self.cluster.create_queue("a")

    def submit(self, request, *names):
        jobs = [make_job(name, "a", ["run"], cpu_millis=8000, walltime=Duration(seconds=HOUR)) for name in names]
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=request, jobs=jobs), timeout=30)

    def ask(self, *options, code=0):
        result = subprocess.run([str(BIN / "berth-sim"), "whatif", str(self.cluster.home / "backups/now"), *options],
                                capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout if code == 0 else result.stderr

    def starts(self, *options):
        result = json.loads(self.ask("-o", "json", *options))
        return result, {job["name"]: (job.get("startBefore"), job.get("startAfter")) for job in result["jobs"]}

    def test_a_backup_is_run_forward(self):
        self.submit("r1", "first", "second")
        wait_until(lambda: len(self.cluster.api.all_jobs(states=[job_pb2.JOB_RUNNING])) == 2, 60, "both nodes are full")
        self.submit("r2", "third", "fourth", "fifth")
        self.cluster.berth("cluster", "snapshot", "now")  # a synonym of backup

        result, starts = self.starts("--add-nodes", "n1=1")
        self.assertEqual(result["waiting"], 3)
        self.assertEqual(result["running"], 2)
        self.assertEqual(set(starts), {"third", "fourth", "fifth"})
        # The two running jobs end after an hour; one of the three pending jobs starts another hour later.
        for name, earliest in (("third", HOUR), ("fourth", HOUR), ("fifth", 2 * HOUR)):
            self.assertGreater(starts[name][0], earliest - 120, name)
            self.assertLessEqual(starts[name][0], earliest, name)
        # On a third node one starts at once, and no job starts later than before.
        self.assertEqual(starts["third"][1] or 0, 0)
        for name, (before, after) in starts.items():
            self.assertLessEqual(after or 0, before, name)
        self.assertLess(result["after"]["wait"]["mean"], result["before"]["wait"]["mean"])

        drained = self.starts("--drain", "n2")[1]
        self.assertGreater(drained["fifth"][1], drained["fifth"][0] + HOUR / 2)

        queue = write_yaml(self.cluster.home / "queues.yaml", {"queues": [{"name": "a", "limit": {"cpu": "8"}}]})
        narrow = self.starts("--queues", str(queue))[1]
        self.assertGreater(narrow["fourth"][1], narrow["fourth"][0] + HOUR / 2)
        config = write_yaml(self.cluster.home / "config.yaml", {"config": {"actions": ["expire_gangs"]}})
        self.assertEqual(self.starts("--config", str(config))[0]["after"].get("started", 0), 0)

        table = self.ask("--add-nodes", "n1=1")
        self.assertIn("changed: 1 more nodes like n1", table)
        self.assertIn("no node \"n9\"", self.ask("--add-nodes", "n9=1", code=BROKEN))
        # The server continues, and the backup can be used again.
        self.assertEqual(self.starts("--add-nodes", "n1=1")[1], starts)
        self.assertEqual(len(self.cluster.api.all_jobs(states=[job_pb2.JOB_RUNNING])), 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
