#!/usr/bin/env python3
"""Access rules between real programs: certificates of the openssl command, a real agent, open streams whose right ends, and
a berthd that is killed in between.
"""
import json
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

from berth_harness import BIN, Cluster, wait_until

OK, REFUSED, USAGE, NOT_FOUND = 0, 1, 2, 3
ENDS_WITHIN_S = 5
KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
JOB = """\
apiVersion: berth/v1
kind: Job
name: train
queue: team-a
groups:
- name: w
  replicas: 1
  resources: {cpu: 1}
  env: [{name: TOKEN, value: secret-token}, {name: HELD, fromFile: FILE}]
  command: [sh, -c, 'while true; do echo step; sleep 0.2; done']
"""


class Access(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = home = pathlib.Path(tempfile.mkdtemp(prefix="berth-access-"))
        cls.addClassCleanup(shutil.rmtree, home)
        for name in ("ca", "users"):
            cls.openssl("req", "-x509", *KEY, "-days", "2", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")
        (home / "all.pem").write_bytes((home / "ca.pem").read_bytes() + (home / "users.pem").read_bytes())
        cls.issue("server", "DNS:localhost,IP:127.0.0.1")
        cls.issue("node-n1", "URI:spiffe://berth/node/n1")
        for user in ("root", "ada", "bob", "lead"):
            cls.issue(user, f"URI:spiffe://berth/user/{user}", ca="users")
        cls.cluster = Cluster({"tls": {"certificate": f"{home}/server.pem", "key": f"{home}/server.key", "ca": f"{home}/all.pem"},
                               "access": {"userAuthorities": f"{home}/users.pem", "nodeIdentities": True}})
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.cluster.server.start()
        cls.agent = cls.cluster.add_agent("n1", tls=cls.files("node-n1"))

    @classmethod
    def openssl(cls, *arguments):
        subprocess.run(["openssl", *arguments], cwd=cls.home, check=True, capture_output=True)

    @classmethod
    def issue(cls, name, names, ca="ca"):
        (cls.home / f"{name}.ext").write_text(f"subjectAltName={names}\n")
        cls.openssl("req", "-new", *KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        cls.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key", "-CAcreateserial",
                    "-days", "2", "-out", f"{name}.pem", "-extfile", f"{name}.ext")

    @classmethod
    def files(cls, name):
        return {"certificate": f"{cls.home}/{name}.pem", "key": f"{cls.home}/{name}.key", "ca": f"{cls.home}/ca.pem"}

    def line(self, user, *arguments):
        flags = [f"--tls-{key}={path}" for key, path in self.files(user).items()]
        return [str(BIN / "berth"), "--server", self.cluster.server.address, *flags, "--request-timeout", "10s", *arguments]

    def berth(self, user, *arguments, code=OK, stdin=None):
        result = subprocess.run(self.line(user, *arguments), capture_output=True, text=True, timeout=60, input=stdin)
        self.assertEqual(result.returncode, code, f"{user}: {arguments}\n{result.stdout}{result.stderr}")
        return result.stdout + result.stderr

    def open(self, user, *arguments):
        """A command that goes on."""
        process = subprocess.Popen(self.line(user, *arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.kill)
        self.assertTrue(process.stdout.readline(), "it has begun")
        return process

    def ends(self, process, since, words):
        text, _ = process.communicate(timeout=30)
        self.assertLess(time.monotonic() - since, ENDS_WITHIN_S)
        self.assertIn(words, text)
        self.assertNotEqual(process.returncode, OK)

    def state(self, node):
        return json.loads(self.berth("root", "node", "get", node, "-o", "json"))["status"]["state"]

    def test_a_site_gets_rules_and_lives_with_them(self):
        self.before_rules()
        self.rules_are_written_and_survive()
        self.others_see_little()
        self.streams_end_with_their_right()
        self.what_happened_is_in_the_audit()
        self.a_node_is_revoked()
        self.nobody_forges_a_node()

    def before_rules(self):
        self.assertIn("NO ACCESS RULES", self.cluster.server.output())
        self.assertIn("no access rules", self.berth("bob", "cluster", "info"))
        self.assertIn("everything", self.berth("bob", "whoami"))
        for name, parent in (("team", ""), ("team-a", "team"), ("other", "")):
            self.berth("bob", "queue", "create", name, *(["--parent", parent] if parent else []))
        (self.home / "held").write_text("kept-on-the-node\n")
        self.home.chmod(0o755)
        self.berth("ada", "apply", "-f", "-", stdin=JOB.replace("FILE", f"{self.home}/held"))
        wait_until(lambda: '"JOB_RUNNING"' in self.berth("ada", "job", "get", "train", "-o", "json"), 60, "it runs")

    def rules_are_written_and_survive(self):
        dry = self.berth("root", "access", "init", "--dry-run")
        self.assertIn("would grant: role admin for the cluster, user root", dry)
        self.assertIn("everything", self.berth("bob", "whoami"))
        self.berth("root", "access", "init", "--everyone", "none")
        self.berth("root", "access", "init", code=REFUSED)
        self.berth("root", "access", "grant", "queue-admin", "--user", "lead", "--queue", "team")
        self.berth("lead", "access", "grant", "viewer", "--user", "bob", "--queue", "team-a")
        self.cluster.server.kill()
        self.cluster.server.start()
        self.assertNotIn("NO ACCESS RULES", self.cluster.server.output().rsplit("berthd starts", 1)[1])
        # READY also before it is connected again.
        wait_until(lambda: subprocess.run(self.line("ada", "exec", "train", "--", "true"), capture_output=True).returncode == OK, 60,
                   "the agent is back")
        self.assertIn("role queue-admin for queue team", self.berth("lead", "whoami"))
        self.assertIn('"JOB_RUNNING"', self.berth("ada", "job", "get", "train", "-o", "json"))
        self.assertIn("nobody could change the rules", self.berth("root", "access", "revoke", "admin", "--user", "root", code=REFUSED))

    def others_see_little(self):
        own, seen = self.berth("ada", "job", "describe", "train"), self.berth("bob", "job", "describe", "train")
        self.assertIn("TOKEN", self.berth("ada", "job", "get", "train", "-o", "yaml"))
        self.assertIn(f"{self.home}/held", self.berth("ada", "job", "get", "train", "-o", "yaml"))
        self.assertIn("kept-on-the-node", self.berth("ada", "exec", "train", "--", "sh", "-c", "tr '\\0' '\\n' < /proc/1/environ || true; echo $HELD"))
        for text in (self.berth("ada", "job", "get", "train", "-o", "json"), self.cluster.server.output(), self.agent.output()):
            self.assertNotIn("kept-on-the-node", text)
        for text in (seen, self.berth("bob", "job", "get", "train", "-o", "yaml"), self.berth("bob", "job", "list", "-o", "json")):
            self.assertIn("train", text)
            self.assertNotIn("TOKEN", text)
            self.assertNotIn("echo step", text)
        self.assertIn("echo step", own)
        words = '"bob" may not cancel job "train" (job.change): role queue-admin in queue "team-a" allows it, which user "lead" and user "root" may grant'
        self.assertIn(words, self.berth("bob", "job", "cancel", "train", code=REFUSED))
        self.assertIn("job.logs", self.berth("bob", "job", "logs", "train", code=REFUSED))
        self.assertIn("job.exec", self.berth("bob", "exec", "train", "--", "true", code=REFUSED))
        self.assertIn("job.exec", self.berth("bob", "attach", "train", code=REFUSED))
        self.assertIn("job.exec", self.berth("bob", "cp", "train:/etc/hostname", "-", code=REFUSED))
        self.assertIn("cluster.read", self.berth("bob", "node", "list", code=REFUSED))
        self.berth("ada", "job", "get", "nothing", code=NOT_FOUND)
        self.assertNotIn("train", self.berth("ada", "job", "list", "--queue", "other", code=NOT_FOUND))
        self.assertIn("yes: the owner", self.berth("ada", "access", "check", "job.exec", "--job", "train"))
        self.assertIn("no: role submitter", self.berth("bob", "access", "check", "job.submit", "--queue", "team-a", code=REFUSED))
        self.berth("ada", "submit", "--name", "x", "--queue", "team-a", "--", "true", code=REFUSED)

    def streams_end_with_their_right(self):
        logs, execs = self.open("lead", "job", "logs", "-f", "train"), self.open("lead", "exec", "train", "--", "sh", "-c", "echo in; sleep 60")
        since = time.monotonic()
        self.berth("root", "access", "revoke", "queue-admin", "--user", "lead", "--queue", "team")
        self.ends(logs, since, "there is no job")
        self.ends(execs, since, "there is no job")
        logs, execs = self.open("ada", "job", "logs", "-f", "train"), self.open("ada", "exec", "train", "--", "sh", "-c", "echo in; sleep 60")
        since = time.monotonic()
        self.berth("root", "access", "refuse", "--user", "ada")
        self.ends(logs, since, "is revoked")
        self.ends(execs, since, "is revoked")
        self.assertIn("is revoked", self.berth("ada", "job", "list", code=REFUSED))
        self.berth("root", "access", "readmit", "--user", "ada")
        self.berth("ada", "exec", "train", "--", "true")

    def what_happened_is_in_the_audit(self):
        entries = [json.loads(line) for line in self.berth("root", "audit", "-o", "json").splitlines()]
        methods = {(entry["actor"]["name"], entry["method"]) for entry in entries if "name" in entry["actor"]}
        for name, method in (("ada", "JobService.SubmitJobs"), ("root", "AccessService.ChangeAccess"), ("bob", "QueueService.CreateQueue")):
            self.assertIn((name, method), methods)
        ran = [entry for entry in entries if entry.get("method") == "JobService.Exec"]
        self.assertEqual({(entry["actor"]["name"], entry["target"]) for entry in ran}, {("ada", "job/train"), ("lead", "job/train")})
        refused = self.berth("root", "audit", "--refused", "--actor", "bob")
        for words in ("JobService.CancelJob", "JobService.Exec", "train"):
            self.assertIn(words, refused)
        self.berth("bob", "audit", code=REFUSED)
        self.berth("root", "audit", "--verify")

    def a_node_is_revoked(self):
        self.berth("root", "access", "refuse", "--node", "n1")
        wait_until(lambda: "is revoked" in self.agent.output(), ENDS_WITHIN_S, "the agent is cut off")
        self.berth("root", "access", "readmit", "--node", "n1")
        wait_until(lambda: self.state("n1") == "NODE_READY", 60, "it returns")

    def nobody_forges_a_node(self):
        """With the authority of users, as after a login node was taken over; and without an identity."""
        self.issue("forged", "URI:spiffe://berth/node/n2", ca="users")
        self.issue("bare", "DNS:agent")
        for certificate, words in (("forged", "authority with the identity of a node is none of an agent"), ("bare", "access.nodeIdentities")):
            agent = self.cluster.add_agent("n2", tls=self.files(certificate))
            wait_until(lambda: words in agent.output(), 30, "the agent is told")
            agent.stop()
        self.berth("root", "node", "get", "n2", code=NOT_FOUND)


if __name__ == "__main__":
    unittest.main(verbosity=2)
