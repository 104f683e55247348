#!/usr/bin/env python3
"""The nightly backup (deploy/systemd/berth-backup) and the way back: backups are checked and bounded, a damaged one fails
the run and deletes nothing, and after the loss of the store the newest one brings everything back, with running tasks.
"""
import os
import pathlib
import shutil
import subprocess
import time
import unittest

from berth_api import job_pb2, make_job
from berth_harness import BIN, SOURCE, Cluster

SCRIPT = SOURCE / "deploy" / "systemd" / "berth-backup"
KEEP = 3


class BackupDrill(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.cluster.belongs_to(self)
        self.backups, self.copies = self.cluster.home / "backups", self.cluster.home / "copies"
        self.copies.mkdir()
        self.cluster.server.config.write_text(f"backupDirectory: {self.backups}\n")
        self.cluster.server.start()
        self.cluster.create_queue("q")

    def nightly(self, path=None, **settings):
        environment = {**os.environ, "PATH": f"{path or BIN}:{os.environ['PATH']}", "BERTH_SERVER": self.cluster.server.address,
                       "BERTH_BACKUP_KEEP": str(KEEP), "BERTH_BACKUP_TO": str(self.copies), **settings}
        return subprocess.run([str(SCRIPT)], env=environment, capture_output=True, text=True, timeout=120)

    def submit(self, name):
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(jobs=[make_job(name, "q", ["sleep", "1000"])]), timeout=20)

    def names(self, place):
        return sorted(path.name for path in place.iterdir())

    def test_the_oldest_are_deleted_and_others_are_not(self):
        self.cluster.berth("cluster", "backup", "mine")
        for _ in range(KEEP + 2):
            result = self.nightly()
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertIn("\nclean\n", result.stdout)
            time.sleep(1.1)  # their names have seconds
        nightly = [name for name in self.names(self.backups) if name != "mine"]
        self.assertEqual(len(nightly), KEEP)
        self.assertEqual(nightly, self.names(self.copies), "copies are of the same backups")
        self.assertIn("mine", self.names(self.backups))

    def test_a_run_that_fails_deletes_nothing(self):
        for _ in range(KEEP):
            self.assertEqual(self.nightly().returncode, 0)
            time.sleep(1.1)
        before = self.names(self.backups)
        tools = self.cluster.home / "tools"  # the disk damages what is written
        tools.mkdir()
        (tools / "berthd").symlink_to(BIN / "berthd")
        (tools / "berth").write_text(f'#!/bin/sh\nset -e\nmade=$({BIN}/berth "$@")\n'
                                     'for table in "$made"/*.sst; do cp "$table" "$made/part" && mv "$made/part" "$table"; done\n'  # they are linked
                                     'for file in "$made"/*.log "$made"/*.sst; do printf damaged | dd of="$file" bs=1 seek=40 conv=notrunc 2>/dev/null; done\n'
                                     'echo "$made"\n')
        (tools / "berth").chmod(0o755)
        result = self.nightly(path=tools)
        self.assertNotEqual(result.returncode, 0, result.stdout)
        self.assertLessEqual(set(before), set(self.names(self.backups)))
        self.assertEqual(before, self.names(self.copies), "a damaged backup was copied")
        for wrong in ("0", "many", "-1"):
            self.assertEqual(self.nightly(BERTH_BACKUP_KEEP=wrong).returncode, 2, wrong)
        self.cluster.server.kill()
        self.assertNotEqual(self.nightly().returncode, 0, "without a server")
        self.assertEqual(set(before) - set(self.names(self.backups)), set())

    def test_the_way_back(self):
        self.cluster.add_agent("n1")
        for name in ("a", "b"):
            self.submit(name)
            self.cluster.wait_job(name, "RUNNING")
        self.assertEqual(self.nightly().returncode, 0)
        self.submit("after")
        self.cluster.server.kill()
        shutil.rmtree(self.cluster.server.data)
        shutil.rmtree(self.backups)  # the disk is lost; the copies are elsewhere
        newest = self.copies / self.names(self.copies)[-1]
        back = subprocess.run([BIN / "berthd", "--config", self.cluster.server.config, "--data", self.cluster.server.data, "--restore", newest],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(back.returncode, 0, back.stderr)
        self.cluster.server.start()
        names = self.cluster.berth("job", "list", "-o", "name").split()
        self.assertEqual(sorted(names), ["job/a", "job/b"], "what was submitted after the backup is not in it")
        for name in ("a", "b"):
            self.cluster.wait_job(name, "RUNNING", timeout_s=120)


if __name__ == "__main__":
    unittest.main()
