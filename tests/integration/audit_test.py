#!/usr/bin/env python3
"""The audit: who changed what, over restarts and crashes; changed entries are named."""
import json
import shutil
import subprocess
import unittest

from berth_harness import BIN, Cluster

JOB = """apiVersion: berth/v1
kind: Job
name: {name}
queue: q
groups:
- name: w
  resources: {{cpu: 1}}
  command: [sleep, "1000"]
  env: {{TOKEN: hunter2-secret}}
"""


class Audit(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster({"access": {"withoutTls": {"user": "ada"}}}).belongs_to(self)
        self.cluster.server.start()

    def audit(self, *arguments):
        return [json.loads(line) for line in self.cluster.berth("audit", "-o", "json", *arguments).splitlines()]

    def changes(self, *arguments):
        return [(entry["actor"].get("name", ""), change["object"], change["action"], change["names"])
                for entry in self.audit(*arguments) for change in entry.get("changes", [])]

    def submit(self, name):
        self.cluster.berth("submit", self.cluster.manifest(JOB.format(name=name), f"{name}.yaml"))

    def restart(self, kill):
        self.cluster.server.kill() if kill else self.cluster.server.stop()
        self.cluster.server.start()

    def chain(self, name):
        return self.cluster.server.data / "audit" / name / ("0" * 19 + "1.chain")

    def test_commands_are_listed_over_restarts_and_crashes(self):
        self.cluster.berth("queue", "create", "q")
        self.submit("a")
        self.cluster.berth("job", "cancel", "a")
        expected = [("", "queue", "created", ["default"]), ("ada", "queue", "created", ["q"]),
                    ("ada", "job", "submitted", ["a"]), ("ada", "job", "cancelled", ["a"])]
        self.assertEqual(self.changes(), expected)
        self.assertEqual(self.audit()[0]["actor"]["kind"], "SERVER")
        actor = self.audit("--job", "a")[0]["actor"]
        self.assertEqual((actor["kind"], actor["door"]), ("USER", "WITHOUT_TLS"))
        self.assertTrue(actor["address"].startswith("127.0.0.1:"), actor)
        self.restart(kill=False)
        self.submit("b")
        self.restart(kill=True)
        for number in range(20):
            self.submit(f"c{number}")
        self.restart(kill=True)  # most likely before the last entries are synced
        expected += [("ada", "job", "submitted", [name]) for name in ["b"] + [f"c{n}" for n in range(20)]]
        self.assertEqual(self.changes(), expected)
        self.assertEqual(self.changes("--job", "b"), [("ada", "job", "submitted", ["b"])])
        self.assertEqual(self.changes("--actor", "ad"), [])
        self.assertEqual(self.changes("--since", "0s"), [])
        sequences = [entry["sequence"] for entry in self.audit()]
        self.assertEqual(sequences, list(range(1, len(sequences) + 1)))
        text = self.cluster.berth("audit", "--verify")
        self.assertIn(f"commands: entries 1 to {len(sequences)} are unchanged; hash ", text)
        self.assertIn("refused calls: no entries", text)
        self.assertIn("job b submitted", self.cluster.berth("audit"))
        self.assertNotIn(b"hunter2", self.chain("commands").read_bytes())

    def test_a_changed_entry_is_named(self):
        self.cluster.berth("queue", "create", "q")
        self.submit("a")
        self.submit("b")
        self.assertEqual(self.cluster.run_berth("audit", "--verify").returncode, 0)
        content = self.chain("commands").read_bytes()
        named = b"\x03ada"  # with its length: ids may have such letters, too
        at = content.index(named, content.index(named) + 4) + 1
        self.chain("commands").write_bytes(content[:at] + b"eve" + content[at + 3:])
        found = self.cluster.run_berth("audit", "--verify")
        self.assertEqual(found.returncode, 1)
        self.assertIn("commands: BROKEN: entry 3 was changed", found.stdout)
        self.restart(kill=False)
        self.submit("c")  # the server goes on, and the entry stays as it is
        found = self.cluster.run_berth("audit", "--verify")
        self.assertIn("commands: BROKEN: entry 3 was changed", found.stdout)
        self.cluster.server.stop()
        fsck = subprocess.run([str(BIN / "berthd"), "--fsck", str(self.cluster.server.data)], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(fsck.returncode, 1, fsck.stdout)
        self.assertIn("audit/commands: entry 3 was changed", fsck.stdout)

    def test_a_lost_audit_is_written_again_from_the_log(self):
        self.cluster.berth("queue", "create", "q")
        before = self.audit()
        self.cluster.server.stop()
        for file in (self.cluster.server.data / "audit" / "commands").iterdir():
            file.unlink()
        self.cluster.server.start()
        self.assertEqual(self.audit(), before)

    def test_a_restored_store_has_the_audit_of_its_backup(self):
        server, backups = self.cluster.server, self.cluster.home / "backups"
        server.stop()
        server.config.write_text(f"backupDirectory: {backups}\naccess: {{withoutTls: {{user: ada}}}}\n")
        server.start()
        self.cluster.berth("queue", "create", "q")
        self.submit("a")
        before = self.audit()
        self.cluster.berth("cluster", "backup", "one")
        self.submit("lost")
        server.stop()
        shutil.rmtree(server.data)
        done = subprocess.run([str(BIN / "berthd"), "--config", str(server.config), "--restore", str(backups / "one"),
                               "--data", str(server.data)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        server.start()
        self.assertEqual(self.audit()[:len(before)], before)  # after them, the backup itself
        self.submit("b")
        self.assertEqual(self.changes()[-1], ("ada", "job", "submitted", ["b"]))
        self.assertEqual(self.cluster.run_berth("audit", "--verify").returncode, 0)

    def test_many_commands_are_paged(self):
        self.cluster.berth("queue", "create", "q")
        for start in range(0, 1200, 100):
            names = [f"j{n}" for n in range(start, start + 100)]
            self.cluster.berth("submit", self.cluster.manifest(
                "---\n".join(JOB.format(name=name) for name in names), "many.yaml"))
        names = [name for change in self.changes() if change[1] == "job" for name in change[3]]
        self.assertEqual(sorted(names), sorted(f"j{n}" for n in range(1200)))


if __name__ == "__main__":
    unittest.main()
