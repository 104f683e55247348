#!/usr/bin/env python3
"""Priority classes with real programs: apply, jobs that take them, kill -9, backup and restore, fsck, and the audit."""
import json
import re
import shutil
import subprocess
import unittest

from berth_harness import BIN, Cluster

CLASSES = """
apiVersion: berth/v1
kind: PriorityClass
name: production
value: 1000
description: what customers wait for
---
apiVersion: berth/v1
kind: PriorityClass
name: polite
value: 50
preemptionPolicy: Never
---
apiVersion: berth/v1
kind: PriorityClass
name: usual
value: 10
globalDefault: true
"""
JOB = """
apiVersion: berth/v1
kind: Job
name: serve
queue: q
priorityClass: production
groups: [{name: worker, resources: {cpu: 1}, command: ["true"]}]
"""


class PriorityClasses(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.cluster.belongs_to(self)
        self.backups = self.cluster.home / "backups"
        self.cluster.server.config.write_text(f"backupDirectory: {self.backups}\n")
        self.cluster.server.start()
        self.cluster.create_queue("q")
        self.classes = self.cluster.manifest(CLASSES, "classes.yaml")
        self.assertEqual(self.cluster.berth("apply", "-f", self.classes),
                         "priority-class/production created\npriority-class/polite created\n"
                         "priority-class/usual created\n")

    def refused(self, *arguments):
        result = self.cluster.run_berth(*arguments)
        self.assertNotEqual(result.returncode, 0, result.stdout)
        return result.stderr

    def submit(self, name, *options):
        self.cluster.berth("submit", "--name", name, "--queue", "q", *options, "--", "true")

    def spec(self, job):
        return json.loads(self.cluster.berth("job", "get", job, "-o", "json"))["spec"]

    def test_apply_list_get_delete(self):
        self.assertEqual(self.cluster.berth("apply", "-f", self.classes).count("unchanged"), 3)
        listed = self.cluster.berth("priority-class", "list")
        self.assertEqual([line.split()[0] for line in listed.splitlines()], ["NAME", "production", "polite", "usual"])
        manifest = self.cluster.berth("priority-class", "get", "polite", "-o", "yaml")
        self.assertIn("preemptionPolicy: Never", manifest)
        again = self.cluster.manifest(manifest.replace("50", "60"), "polite.yaml")
        self.assertEqual(self.cluster.berth("apply", "-f", again), "priority-class/polite updated\n")
        self.assertIn("did you mean \"polite\"?", self.refused("priority-class", "get", "polit"))
        self.cluster.berth("priority-class", "delete", "polite")
        self.assertIn("there is no priority class", self.refused("priority-class", "get", "polite"))
        second = self.cluster.manifest(CLASSES.replace("usual", "other"), "second.yaml")
        self.assertIn("\"usual\" is the global default already", self.refused("apply", "-f", second))

    def test_jobs_take_their_class_and_keep_it(self):
        self.cluster.berth("submit", self.cluster.manifest(JOB, "job.yaml"))
        self.submit("nice", "--priority-class", "polite")
        self.submit("silent")
        self.submit("own", "--priority", "3")
        self.assertEqual(self.spec("serve")["priority"], 1000)
        self.assertEqual((self.spec("nice")["priority"], self.spec("nice")["preemptionPolicy"]), (50, "NEVER"))
        self.assertEqual((self.spec("silent")["priority"], self.spec("silent")["priorityClass"]), (10, "usual"))
        self.assertEqual(self.spec("own")["priority"], 3)
        self.assertNotIn("priorityClass", self.spec("own"))
        self.assertRegex(self.cluster.berth("job", "describe", "serve"), r"Priority: +1000 \(class production\)")
        self.assertRegex(self.cluster.berth("job", "list", "-o", "wide"), r"serve .* 1000 +production ")
        error = self.refused("submit", "--queue", "q", "--priority-class", "productoin", "--", "true")
        self.assertEqual(error, "berth: --priority-class: there is no priority class \"productoin\"; did you mean "
                                "\"production\"?\n")
        error = self.refused("submit", "--queue", "q", "--priority-class", "polite", "--priority", "4", "--", "true")
        self.assertIn("--priority-class: sets the priority", error)
        # Of a job that is there nothing changes, whatever happens to its class.
        changed = self.cluster.manifest(CLASSES.replace("1000", "1"), "changed.yaml")
        self.cluster.berth("apply", "-f", changed)
        self.cluster.berth("priority-class", "delete", "polite")
        self.cluster.server.kill()
        self.cluster.server.start()
        self.assertEqual(self.spec("serve")["priority"], 1000)
        self.assertEqual(self.spec("nice")["priorityClass"], "polite")
        self.submit("later", "--priority-class", "production")
        self.assertEqual(self.spec("later")["priority"], 1)
        audit = self.cluster.berth("audit")
        self.assertRegex(audit, r"PriorityClassService.CreatePriorityClass +priority class polite changed")
        self.assertRegex(audit, r"PriorityClassService.DeletePriorityClass +priority class polite deleted")

    def test_backup_restore_and_fsck(self):
        self.submit("nice", "--priority-class", "polite")
        self.cluster.berth("cluster", "backup", "nightly")
        self.cluster.berth("priority-class", "delete", "polite")
        self.cluster.server.stop()
        self.fsck()
        shutil.rmtree(self.cluster.server.data)
        subprocess.run([str(BIN / "berthd"), "--restore", str(self.backups / "nightly"), "--data",
                        str(self.cluster.server.data)], check=True, timeout=120)
        self.fsck()
        self.cluster.server.start()
        self.assertIn("polite", self.cluster.berth("priority-class", "list"))
        self.assertEqual(self.spec("nice")["priority"], 50)

    def fsck(self):
        result = subprocess.run([str(BIN / "berthd"), "--fsck", str(self.cluster.server.data)], capture_output=True,
                                text=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertTrue(re.search("the log's events give the same state", result.stdout), result.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
