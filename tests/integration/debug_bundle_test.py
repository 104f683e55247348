#!/usr/bin/env python3
"""berth debug bundle of a real server: it has what somebody who helps needs, and nothing that users wrote into their jobs."""
import json
import os
import tarfile
import unittest

from berth_api import job_pb2, make_job
from berth_harness import Cluster

SECRET = "hunter2"


class DebugBundle(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.cluster.belongs_to(self)
        self.cluster.server.start()
        self.cluster.create_queue("q")
        self.cluster.add_agent("n1")
        job = make_job("secretive", "q", ["sh", "-c", f"echo {SECRET}"], labels={"l": SECRET}, annotations={"a": SECRET})
        job.spec.groups[0].env.add(name="KEY", value=SECRET)
        large = make_job("large", "q", ["true", SECRET])
        large.spec.groups[0].resources.cpu_millis = 64000
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(jobs=[job, large]), timeout=20)
        self.cluster.wait_job("secretive", "SUCCEEDED")

    def bundle(self, *options):
        path = self.cluster.home / f"bundle-{len(options)}.tar.gz"
        self.cluster.berth("debug", "bundle", str(path), *options)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        with tarfile.open(path) as tar:
            files = {member.name.partition("/")[2]: tar.extractfile(member).read().decode("utf-8", "replace")
                     for member in tar.getmembers() if member.isfile()}
        for name, text in files.items():
            if not name.startswith("local/journal"):  # of this machine
                self.assertNotIn(SECRET, text, name)
        return path, files

    def test_it_has_the_state_and_no_secrets(self):
        path, files = self.bundle("--no-local")
        self.assertEqual(set(files), {"README.txt", "info.json", "members.json", "queues.json", "shares.json", "nodes.json", "jobs.json",
                                      "hypernodes.json", "priority-classes.json",
                                      "explain/large.json"})
        self.assertEqual(json.loads(files["info.json"])["nodes"]["READY"], 1)
        jobs = {job["name"]: job for job in map(json.loads, files["jobs.json"].splitlines())}
        self.assertEqual(jobs["secretive"]["status"]["state"], "JOB_SUCCEEDED")
        self.assertEqual(jobs["large"]["spec"]["groups"][0]["resources"]["cpu"], 64000)
        self.assertIn("never", files["explain/large.json"])
        self.assertNotIn("missing", files["README.txt"])
        again = self.cluster.run_berth("debug", "bundle", str(path))
        self.assertEqual((again.returncode != 0, "exists" in again.stderr), (True, True), "an existing file is left alone")

    def test_it_has_what_this_machine_tells(self):
        _, files = self.bundle()
        self.assertIn("Linux", files["local/system.txt"])
        self.assertLessEqual({"local/configuration.txt", "local/journal.txt", "local/metrics.txt", "local/ready.txt"}, set(files))

    def test_without_a_server_it_says_what_is_missing(self):
        self.cluster.server.kill()
        path = self.cluster.home / "without.tar.gz"
        result = self.cluster.run_berth("debug", "bundle", str(path), "--request-timeout", "2s")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("missing: info", result.stderr)
        with tarfile.open(path) as tar:
            names = {member.name.partition("/")[2] for member in tar.getmembers()}
        self.assertIn("local/system.txt", names)


if __name__ == "__main__":
    unittest.main()
