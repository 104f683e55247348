#!/usr/bin/env python3
"""Agents that join with a token: real berthd with TLS and access rules, berth-authd and agents. Certificates of nodes live a
minute here, so that a renewal can be awaited."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

from berth_harness import BIN, Cluster, Program, free_port, wait_until, write_yaml

LIFETIME_S = 60


class Join(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = home = pathlib.Path(tempfile.mkdtemp(prefix="berth-join-"))
        cls.addClassCleanup(shutil.rmtree, home)
        for name in ("ca", "nodes"):
            cls.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")
        for name in ("berthd", "https", "admin", "authd", "nobody"):
            cls.make_certificate(name)
        (home / "all.pem").write_text((home / "ca.pem").read_text() + (home / "nodes.pem").read_text())
        cls.cluster = Cluster({"tls": {"certificate": f"{home}/berthd.pem", "key": f"{home}/berthd.key", "ca": f"{home}/all.pem"},
                               "access": {"trustDomain": "prod", "nodeIdentities": True, "nodeAuthorities": f"{home}/nodes.pem",
                                           "administrators": {"users": ["admin"]}}})
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.cluster.server.start()
        cls.must("access", "init", "--admin", "admin")
        cls.must("access", "set-role", "admitter", "node.admit")
        cls.must("access", "grant", "admitter", "--user", "authd")
        cls.must("queue", "create", "q")
        cls.start_authd()

    @classmethod
    def openssl(cls, *arguments):
        subprocess.run(["openssl", *arguments], cwd=cls.home, check=True, capture_output=True)

    @classmethod
    def make_certificate(cls, name):
        cls.openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (cls.home / f"{name}.ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        cls.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                    "-out", f"{name}.pem", "-extfile", f"{name}.ext")

    @classmethod
    def start_authd(cls):
        home, port = cls.home, free_port()
        cls.url = f"https://localhost:{port}"
        config = write_yaml(home / "authd.yaml", {
            "listen": "off", "servers": f"{home}/ca.pem", "trustDomain": "prod",
            "nodes": {"listen": f"127.0.0.1:{port}", "certificate": f"{home}/https.pem", "key": f"{home}/https.key",
                      "authority": f"{home}/nodes.pem", "authorityKey": f"{home}/nodes.key", "lifetime": f"{LIFETIME_S}s",
                      "server": cls.cluster.server.address,
                      "tls": {"certificate": f"{home}/authd.pem", "key": f"{home}/authd.key", "ca": f"{home}/ca.pem"}}})
        cls.authd = Program("berth-authd", [str(BIN / "berth-authd"), "--config", str(config)], home / "authd.log")
        cls.authd.start()
        cls.addClassCleanup(cls.authd.stop)
        wait_until(lambda: "berth-authd is ready" in cls.authd.output(), 20, "berth-authd is ready")

    @classmethod
    def berth(cls, *arguments, who="admin"):
        return subprocess.run([str(BIN / "berth"), *arguments], env=cls.environment(who), cwd="/", capture_output=True, text=True,
                              timeout=60)

    @classmethod
    def environment(cls, who):
        return {"PATH": "/usr/bin:/bin", "HOME": str(cls.home), "BERTH_SERVER": cls.cluster.server.address,
                "BERTH_TLS_CERTIFICATE": f"{cls.home}/{who}.pem", "BERTH_TLS_KEY": f"{cls.home}/{who}.key",
                "BERTH_TLS_CA": f"{cls.home}/ca.pem"}

    @classmethod
    def must(cls, *arguments):
        result = cls.berth(*arguments)
        assert result.returncode == 0, f"{arguments}: {result.stdout}{result.stderr}"
        return result.stdout

    def token(self, nodes, *arguments):
        """A file with a new token, and its id."""
        text = self.must("node", "token", "create", "--node", nodes, *arguments)
        self.assertRegex(text, r"^berth-join\.[0-9a-f]{16}\.[A-Za-z0-9_-]{43}\n$")
        file = pathlib.Path(tempfile.mkstemp(dir=self.home, prefix="token-")[1])
        file.write_text(text)
        return file, text.split(".")[1]

    def agent(self, name, token=None, start=True):
        agent = self.cluster.add_agent(name, start=False, join={"url": self.url, "ca": f"{self.home}/ca.pem"})
        if token:
            agent.arguments += ["--join", str(token)]
        self.addCleanup(self.berth, "node", "cordon", name)  # a job of another test shall not wait for it
        self.addCleanup(agent.stop)
        return agent.start() if start else agent

    def state_of(self, name):
        result = self.berth("node", "get", name, "-o", "json")
        return json.loads(result.stdout)["status"]["state"] if result.returncode == 0 else "none"

    def wait_ready(self, name, timeout_s=30):
        wait_until(lambda: self.state_of(name) == "NODE_READY", timeout_s, f"{name} is ready")

    @staticmethod
    def registrations(agent):
        return agent.output().count("info  registered  node=")

    def wait_running(self, job):
        def runs():
            status = json.loads(self.must("job", "get", job, "-o", "json"))["status"]
            if status["state"] == "JOB_RUNNING":
                return True
            raise LookupError(status)
        wait_until(runs, 30, f"{job} runs", 0.5)

    def refused(self, name, token, words):
        agent = self.agent(name, token)
        wait_until(lambda: not agent.running(), 20, f"the agent of {name} ends")
        self.assertEqual(agent.process.returncode, 2)  # systemd does not start it again
        self.assertIn(words, agent.output())
        return agent

    @staticmethod
    def identity(agent):
        return agent.state / "identity/node.pem"

    def test_a_node_joins_and_its_certificate_is_renewed_while_a_task_runs(self):
        token, token_id = self.token("gpu-*", "--uses", "2")
        agent = self.agent("gpu-1", token)
        self.wait_ready("gpu-1")
        started = time.monotonic()
        kept = self.identity(agent)
        self.assertEqual(oct(kept.stat().st_mode & 0o777), oct(0o600))
        self.assertEqual(oct(kept.parent.stat().st_mode & 0o777), oct(0o700))
        shown = subprocess.run(["openssl", "x509", "-noout", "-text", "-in", kept], capture_output=True, text=True, check=True).stdout
        self.assertIn("URI:spiffe://prod/node/gpu-1", shown)
        listed = [t for t in json.loads(self.must("node", "token", "list", "-o", "json"))["tokens"] if t["id"] == token_id]
        self.assertEqual([(t["nodes"], t["usesLeft"], t["createdBy"]) for t in listed], [("gpu-*", 1, "admin")])
        self.must("submit", "--name", "long", "--queue", "q", "--", "sleep", "600")
        running = lambda: json.loads(self.must("job", "get", "long", "-o", "json"))["status"]
        self.wait_running("long")
        first = kept.read_text()
        wait_until(lambda: kept.read_text() != first, LIFETIME_S, "the certificate is renewed")
        self.assertGreater(time.monotonic() - started, 0.5 * LIFETIME_S)
        self.assertIn("by=\"certificate ", self.authd.output())
        # The agent changes to it by itself, and nothing happens when the first one expires.
        wait_until(lambda: self.registrations(agent) == 2, 20, "the agent connects with the new certificate")
        time.sleep(max(0, started + LIFETIME_S + 6 - time.monotonic()))
        self.assertNotIn("certificate has expired", agent.output())
        self.assertEqual(self.registrations(agent), 2)
        self.cluster.server.stop()
        self.cluster.server.start()
        wait_until(lambda: self.registrations(agent) == 3, 30, "the agent is back")
        self.assertEqual((running()["state"], running()["startCount"]), ("JOB_RUNNING", 1))
        # A restart uses the certificate that is kept, and needs no token.
        agent.stop()
        agent.arguments = agent.arguments[:-2]
        agent.start()
        wait_until(lambda: self.registrations(agent) == 4, 30, "the new agent has registered")
        self.assertEqual((running()["state"], running()["startCount"]), ("JOB_RUNNING", 1))
        # A refused node renews nothing, and cannot join again.
        self.must("access", "refuse", "--node", "gpu-1")
        not_renewed = lambda: [line for line in agent.output().splitlines() if "certificate not renewed" in line]
        wait_until(lambda: "is revoked" in not_renewed()[-1], LIFETIME_S, "the renewal is refused")
        agent.stop()
        self.assertEqual(self.refused_again(agent, token), "revoked")
        self.must("access", "readmit", "--node", "gpu-1")

    def test_a_command_in_a_task_goes_on_until_the_certificate_expires(self):
        token, _ = self.token("exec-1")
        agent = self.agent("exec-1", token)
        self.wait_ready("exec-1")
        started = time.monotonic()
        self.must("submit", "--name", "entered", "--queue", "q", "--", "sleep", "600")
        self.addCleanup(self.berth, "job", "cancel", "entered")
        self.wait_running("entered")
        command = subprocess.Popen([str(BIN / "berth"), "exec", "entered", "--", "sleep", "500"], env=self.environment("admin"), cwd="/",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(command.wait)
        self.addCleanup(command.terminate)
        first = self.identity(agent).read_text()
        wait_until(lambda: self.identity(agent).read_text() != first, LIFETIME_S, "the certificate is renewed")
        time.sleep(13)  # after it the agent would connect again
        self.assertLess(time.monotonic() - started, LIFETIME_S)
        self.assertEqual(self.registrations(agent), 1)
        self.assertIsNone(command.poll())
        wait_until(lambda: self.registrations(agent) == 2, 30, "the agent connects with the new certificate")
        self.assertIn("certificate has expired", agent.output())
        wait_until(lambda: command.poll() is not None, 20, "the command ends")
        status = json.loads(self.must("job", "get", "entered", "-o", "json"))["status"]
        self.assertEqual((status["state"], status["startCount"]), ("JOB_RUNNING", 1))

    def test_a_connection_ends_with_its_certificate(self):
        token, _ = self.token("files-1", "--uses", "2")
        joined = self.agent("files-1", token)
        self.wait_ready("files-1")
        started = time.monotonic()
        joined.stop()
        pem = self.home / "files-1.pem"
        shutil.copy(self.identity(joined), pem)
        # Without `join` nobody renews it.
        agent = self.cluster.add_agent("files-1", tls={"certificate": str(pem), "key": str(pem), "ca": f"{self.home}/ca.pem"})
        wait_until(lambda: self.registrations(agent) == 2, 20, "the agent has registered")  # one log for both
        self.assertLess(time.monotonic() - started, LIFETIME_S - 10)
        wait_until(lambda: self.state_of("files-1") != "NODE_READY", LIFETIME_S + 30, "the node is lost")
        self.assertGreater(time.monotonic() - started, LIFETIME_S - 2)
        self.assertIn("certificate has expired", agent.output())
        # It comes back once there is another one in the file.
        code, answer = self.answer({"node": "files-1", "token": token.read_text().strip(), "request": self.request()}, None)
        self.assertEqual(code, 200, answer)
        (self.home / "next.pem").write_text(answer["certificate"] + (self.home / "r.key").read_text())
        os.rename(self.home / "next.pem", pem)
        self.wait_ready("files-1")

    def refused_again(self, agent, token):
        """As `agent`, without its certificate."""
        shutil.rmtree(agent.state / "identity")
        agent.arguments += ["--join", str(token)]
        agent.start()
        wait_until(lambda: not agent.running(), 20, "the agent ends")
        return "revoked" if "is revoked" in agent.output()[-600:] else agent.output()[-600:]

    def test_tokens_that_admit_nobody_say_why(self):
        token, token_id = self.token("cpu-1")
        self.refused("cpu-2", token, f"join token {token_id} is not for node")
        self.agent("cpu-1", token)
        self.wait_ready("cpu-1")
        other, _ = self.token("cpu-?", "--uses", "1")
        self.agent("cpu-3", other)
        self.wait_ready("cpu-3")
        self.refused("cpu-4", other, "is used up")
        revoked, revoked_id = self.token("cpu-5")
        self.must("node", "token", "revoke", revoked_id)
        self.refused("cpu-5", revoked, "this cluster has no such join token")
        foreign = self.home / "foreign"
        foreign.write_text(f"berth-join.{'0123456789abcdef'}.{'A' * 43}\n")
        self.refused("cpu-6", foreign, "this cluster has no such join token")
        forged = self.home / "forged"
        forged.write_text(f"berth-join.{token_id}.{'A' * 43}\n")
        self.refused("cpu-1x", forged, "this cluster has no such join token")
        (self.home / "none").write_text("hello\n")
        self.refused("cpu-7", self.home / "none", "this is not a join token")
        self.refused("cpu-8", self.home / "nowhere", "cannot read the join token")
        self.refused("cpu-9", None, "node cpu-9 needs a join token: there is no certificate yet")
        self.assertEqual(self.berth("node", "token", "create", "--node", "x", who="nobody").returncode, 1)

    def test_a_token_expires(self):
        token, _ = self.token("old-1", "--expires", "1m")
        time.sleep(61)
        self.refused("old-1", token, "has expired")

    def test_a_certificate_that_has_expired_needs_a_token_again(self):
        token, _ = self.token("late-1", "--uses", "2")
        agent = self.agent("late-1", token)
        self.wait_ready("late-1")
        agent.kill()
        time.sleep(LIFETIME_S + 1)
        agent.arguments = agent.arguments[:-2]
        agent.start()
        wait_until(lambda: not agent.running(), 20, "the agent ends")
        self.assertIn("node late-1 needs a join token: the certificate in", agent.output())
        agent.arguments += ["--join", str(token)]
        agent.start()
        self.wait_ready("late-1")

    def test_the_token_may_come_from_standard_input(self):
        token, _ = self.token("input-1")
        agent = self.agent("input-1", start=False)
        with open(token, encoding="ascii") as text, open(agent.log, "ab") as log:
            process = subprocess.Popen([*agent.arguments, "--join", "-"], stdin=text, stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        self.wait_ready("input-1")

    def test_an_agent_joins_once_berthd_is_back(self):
        token, _ = self.token("patient-1")
        self.cluster.server.kill()
        agent = self.agent("patient-1", token)
        wait_until(lambda: "not joined, trying again" in agent.output(), 30, "the agent tries again")
        self.cluster.server.start()
        self.wait_ready("patient-1", 60)
        self.refused("patient-2", token, "is not for node")

    def test_one_node_does_not_speak_for_another(self):
        token, _ = self.token("own-1")
        agent = self.agent("own-1", token)
        self.wait_ready("own-1")
        agent.stop()
        # Its certificate renews no other node's ...
        pem = self.identity(agent)
        order = {"node": "own-2", "request": self.request()}
        self.assertEqual(self.post(order, pem), (403, 'the certificate is that of node "own-1", and renews no other one'))
        self.assertEqual(self.post({**order, "node": "own-1"}, pem)[0], 200)
        # ... nor does the certificate of a user, or none.
        both = self.home / "admin-both.pem"
        both.write_text((self.home / "admin.pem").read_text() + (self.home / "admin.key").read_text())
        self.assertEqual(self.post(order, both)[0], 403)
        self.assertEqual(self.post(order, None)[1], "a node needs a join token, or its certificate to renew it")
        # It connects no other node to berthd, and calls nothing else.
        stolen = self.cluster.add_agent("own-2", tls={"certificate": str(pem), "key": str(pem), "ca": f"{self.home}/ca.pem"})
        wait_until(lambda: "and not of node" in stolen.output(), 20, "berthd refuses")
        stolen.stop()
        self.assertEqual(self.state_of("own-2"), "none")

    def test_the_authority_of_nodes_makes_no_users(self):
        self.openssl("x509", "-req", "-in", "admin.csr", "-CA", "nodes.pem", "-CAkey", "nodes.key", "-CAcreateserial", "-days", "2",
                     "-out", "forged.pem")
        shutil.copy(self.home / "admin.key", self.home / "forged.key")
        result = self.berth("node", "list", who="forged")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("a certificate of the nodes' authority without the identity of a node identifies nobody", result.stderr)

    def request(self):
        self.openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "r.key",
                     "-out", "r.csr", "-subj", "/CN=x")
        return (self.home / "r.csr").read_text()

    def post(self, order, pem):
        """(code, error)"""
        code, answer = self.answer(order, pem)
        return code, answer.get("error", "")

    def answer(self, order, pem):
        client = ["--cert", str(pem)] if pem else []
        result = subprocess.run(["curl", "-sS", "--cacert", f"{self.home}/ca.pem", *client, "-d", json.dumps(order), "-w", "\n%{http_code}",
                                 f"{self.url}/v1/node-certificate"], capture_output=True, text=True, timeout=30)
        self.assertEqual(result.returncode, 0, result.stderr)
        body, code = result.stdout.rsplit("\n", 1)
        return int(code), json.loads(body)

    def test_what_is_not_an_order(self):
        for body, code in [("{", 400), ("[]", 400), ('{"node": "Bad_Name"}', 400), ('{"node": "n", "unknown": 1}', 400)]:
            result = subprocess.run(["curl", "-sS", "--cacert", f"{self.home}/ca.pem", "-d", body, "-o", "/dev/null", "-w", "%{http_code}",
                                     f"{self.url}/v1/node-certificate"], capture_output=True, text=True, timeout=30)
            self.assertEqual(result.stdout, str(code), body)
        (self.home / "large").write_text(json.dumps({"node": "n", "token": "x" * 70000}))
        result = subprocess.run(["curl", "-sS", "--cacert", f"{self.home}/ca.pem", "-d", f"@{self.home}/large", "-o", "/dev/null",
                                 "-w", "%{http_code}", f"{self.url}/v1/node-certificate"], capture_output=True, text=True, timeout=30)
        self.assertIn(result.stdout, ("413", "000"))  # or closed while curl was still sending

    def test_berth_authd_needs_the_right(self):
        token, _ = self.token("right-1")
        self.must("access", "revoke", "admitter", "--user", "authd")
        try:
            self.refused("right-1", token, "may not admit nodes (node.admit)")
        finally:
            self.must("access", "grant", "admitter", "--user", "authd")
        self.agent("right-1", token)
        self.wait_ready("right-1")

    def tearDown(self):
        result = self._outcome.result
        if any(case is self for case, _ in [*result.failures, *result.errors]):
            self.cluster.show_logs()
            print(f"--- end of the log of berth-authd\n{self.authd.output()[-3000:]}", flush=True)

    @classmethod
    def tearDownClass(cls):
        """No secret is in a log, or on berthd's disk."""
        secrets = [file.read_text().strip().split(".")[2] for file in cls.home.glob("token-*")]
        assert secrets
        files = [cls.home / "authd.log", *cls.cluster.server.data.rglob("*"), cls.cluster.server.log, *cls.cluster.home.glob("*/agent.log")]
        files = [file for file in map(pathlib.Path, files) if file.is_file()]
        assert any("data" in str(file) for file in files)
        for file in files:
            content = file.read_bytes()
            for secret in secrets:
                assert secret.encode() not in content, f"{file} contains a secret"


if __name__ == "__main__":
    unittest.main()
