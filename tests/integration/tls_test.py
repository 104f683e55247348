#!/usr/bin/env python3
"""Mutual TLS between real programs: only clients with a certificate of the authority are served, and each refusal names
what to check. The openssl command creates the certificates.
"""
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import grpc

from berth_api import Stub, agent_pb2, cluster_pb2
from berth_harness import BIN, Cluster, Server, wait_until

OK, USAGE, INVALID, UNAVAILABLE = 0, 2, 4, 5  # exit codes; berthd and berth-agent use the first two
HERE = "DNS:localhost,IP:127.0.0.1"
# The log message of berthd for a failed handshake.
HANDSHAKE_OF = re.compile(r"andshake.*peer=.*127\.0\.0\.1:\d+")


class Authority:
    """Keys and certificates in one directory, NAME.pem and NAME.key each."""

    def __init__(self, home):
        self.home = home

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.home, check=True, capture_output=True)

    def add(self, name):
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                     "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")

    def issue(self, name, ca="ca", names=HERE, days=2):
        """A certificate that expires in `days`: a negative number gives an expired one."""
        (self.home / f"{name}.ext").write_text(f"subjectAltName={names}\n")
        self.openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                     "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key", "-CAcreateserial",
                     "-out", f"{name}.pem", "-days", str(days), "-extfile", f"{name}.ext")

    def path(self, file):
        return str(self.home / file)

    def files(self, name, ca="ca", key=None):
        return {"certificate": self.path(f"{name}.pem"), "key": self.path(f"{key or name}.key"), "ca": self.path(f"{ca}.pem")}

    def read(self, file):
        return (self.home / file).read_bytes()


def flags(files):
    return [f"--tls-{key}={path}" for key, path in files.items()]


class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        home = pathlib.Path(tempfile.mkdtemp(prefix="berth-tls-"))
        cls.addClassCleanup(shutil.rmtree, home)
        cls.authority = authority = Authority(home)
        authority.add("ca")
        authority.add("other-ca")
        authority.issue("server")
        authority.issue("elsewhere", names="DNS:elsewhere.example")
        authority.issue("client", names="DNS:client")
        authority.issue("agent", names="DNS:agent")
        authority.issue("stranger", ca="other-ca", names="DNS:client")
        authority.issue("expired", days=-1)
        cls.cluster = Cluster({"tls": authority.files("server")})
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.cluster.server.start()

    def berth(self, *arguments, tls=None, server=None):
        tls = self.authority.files("client") if tls is None else tls
        return subprocess.run([str(BIN / "berth"), "--server", server or self.cluster.server.address, *flags(tls),
                               "--request-timeout", "5s", *arguments], capture_output=True, text=True, timeout=60)

    def nodes(self):
        result = self.berth("node", "list", "-o", "json")
        self.assertEqual(result.returncode, OK, result.stderr)
        return {node["name"]: node["status"]["state"] for node in json.loads(result.stdout)}

    def other_server(self, tls):
        """A second berthd besides that of the cluster, with these files."""
        home = pathlib.Path(tempfile.mkdtemp(dir=self.cluster.home))
        server = Server(home, {"tls": tls} if tls else {})
        self.addCleanup(server.stop)
        return server

    # ---- Valid clients are served

    def test_cli_agent_and_simulation_with_valid_certificates(self):
        tls = self.authority.files("agent")
        self.cluster.add_agent("n1", tls=tls)
        self.cluster.add_simulation([{"name": "s[1-3]", "cpu": 4, "memory": "8Gi"}], tls=tls)
        names = {"n1", "s1", "s2", "s3"}
        wait_until(lambda: {n for n, state in self.nodes().items() if state == "NODE_READY"} >= names, 30, "ready nodes")
        self.assertEqual(self.berth("queue", "create", "q").returncode, OK)
        for name, cpu in [("real", "6"), ("simulated", "2")]:  # 6 fit on n1 only
            result = self.berth("submit", "--name", name, "--queue", "q", "--cpu", cpu, "--wait", "--", "echo", "hello", name)
            self.assertEqual(result.returncode, OK, result.stdout + result.stderr)
        self.assertEqual(self.berth("job", "logs", "real").stdout, "hello real\n")

    # ---- Who a client is

    def owner_of(self, job, tls):
        result = self.berth("submit", "--name", job, "--queue", "owners", "--cpu", "1000", "--", "true", tls=tls)
        self.assertEqual(result.returncode, OK, result.stderr)
        return json.loads(self.berth("job", "get", job, "-o", "json").stdout)["status"].get("owner")

    def test_the_certificate_says_who_owns_a_job(self):
        authority = self.authority
        authority.issue("ada", names="URI:spiffe://berth/user/ada%40corp.example")
        authority.issue("two", names="URI:spiffe://berth/user/ada,URI:spiffe://berth/user/root")
        authority.issue("elsewhere-user", names="URI:spiffe://other/user/root")
        self.assertEqual(self.berth("queue", "create", "owners").returncode, OK)
        self.assertEqual(self.owner_of("by-name", authority.files("client")), "client")
        self.assertEqual(self.owner_of("by-identity", authority.files("ada")), "ada@corp.example")
        self.assertIsNone(self.owner_of("by-other-domain", authority.files("elsewhere-user")))
        self.assertIsNone(self.owner_of("by-two", authority.files("two")))
        listed = self.berth("job", "list", "--owner", "ada@corp.example", "-o", "name").stdout.split()
        self.assertEqual(listed, ["job/by-identity"])
        self.assertIn("ada@corp.example", self.berth("job", "describe", "by-identity").stdout)
        self.assertEqual(self.berth("job", "suspend", "by-identity", tls=authority.files("ada")).returncode, OK)
        self.assertRegex(self.cluster.server.output(), r"job suspended.*by-identity.*ada@corp\.example.* at 127\.0\.0\.1")

    def test_an_agent_speaks_for_the_node_of_its_identity(self):
        authority = self.authority
        authority.issue("node-i1", names="URI:spiffe://berth/node/i1")
        authority.issue("user-i1", names="URI:spiffe://berth/user/i1")
        own = self.cluster.add_agent("i1", tls=authority.files("node-i1"))
        wait_until(lambda: self.nodes().get("i1") == "NODE_READY", 30, "it registers")
        own.stop()
        for node, certificate, words in [("i2", "node-i1", "is that of node"), ("i3", "user-i1", "is that of user")]:
            agent = self.cluster.add_agent(node, tls=authority.files(certificate))
            wait_until(lambda: words in agent.output(), 30, "the agent is told")
            agent.stop()
            self.assertNotIn(node, self.nodes())

    # ---- Certificates and authorities change while programs run

    def replace(self, file, text):
        """As a whole, as an operator should."""
        new = self.authority.home / f"{file}.new"
        new.write_bytes(text)
        new.rename(self.authority.home / file)

    def test_certificates_and_authorities_rotate_while_programs_run(self):
        authority = self.authority
        authority.add("ca-2026")
        authority.issue("rotating-server")
        authority.issue("rotating-agent", names="DNS:agent")
        authority.issue("old-user", names="DNS:client")
        authority.issue("new-user", ca="ca-2026", names="DNS:client")
        old, new = authority.read("ca.pem"), authority.read("ca-2026.pem")
        for file in ("server-ca.pem", "agent-ca.pem"):
            self.replace(file, old)
        both = lambda name: authority.read(f"{name}.pem") + authority.read(f"{name}.key")
        for name in ("server", "agent"):
            self.replace(f"{name}-identity.pem", both(f"rotating-{name}"))
        files = lambda name: {"certificate": authority.path(f"{name}-identity.pem"),
                              "key": authority.path(f"{name}-identity.pem"), "ca": authority.path(f"{name}-ca.pem")}
        cluster = Cluster({"tls": files("server")}).belongs_to(self)
        cluster.server.start()
        cluster.add_simulation([{"name": "r1", "cpu": 4, "memory": "8Gi"}], tls=files("agent"))
        served = lambda user, ca: self.berth("node", "list", "-o", "name", tls=authority.files(user, ca=ca), server=cluster.server.address)
        wait_until(lambda: "node/r1" in served("old-user", "ca").stdout, 30, "the agent is there")
        self.assertEqual(served("new-user", "ca").returncode, UNAVAILABLE)
        # Both authorities, then new certificates, then the new authority alone.
        for file in ("server-ca.pem", "agent-ca.pem"):
            self.replace(file, old + new)
        wait_until(lambda: served("new-user", "ca").returncode == OK, 30, "the new authority counts")
        self.assertEqual(served("old-user", "ca").returncode, OK)
        authority.issue("rotating-server", ca="ca-2026")
        authority.issue("rotating-agent", ca="ca-2026", names="DNS:agent")
        for name in ("server", "agent"):
            self.replace(f"{name}-identity.pem", both(f"rotating-{name}"))
        wait_until(lambda: served("new-user", "ca-2026").returncode == OK, 30, "the server shows its new certificate")
        for file in ("server-ca.pem", "agent-ca.pem"):
            self.replace(file, new)
        wait_until(lambda: served("old-user", "ca-2026").returncode == UNAVAILABLE, 30, "the old authority is gone")
        # The agent was never restarted, and can connect again.
        cluster.server.kill()
        cluster.server.start()
        wait_until(lambda: '"NODE_READY"' in self.berth("node", "get", "r1", "-o", "json", tls=authority.files("new-user", ca="ca-2026"),
                                                        server=cluster.server.address).stdout, 60, "the agent returns")

    # ---- All other clients are refused

    def test_cli_is_refused_with_the_reason(self):
        files = self.authority.files
        for what, tls, code, words in [
                ("plain text to a TLS port", {}, UNAVAILABLE, "may require TLS"),
                ("another authority's certificate", files("stranger"), UNAVAILABLE, "may not accept"),
                ("a server of another authority", files("client", ca="other-ca"), UNAVAILABLE,
                 "is not signed by the authority in"),
                ("an expired certificate", files("expired"), INVALID, "expired.pem expired on"),
                ("another certificate's key", files("client", key="agent"), INVALID, "agent.key is not the key of"),
                ("a file that is missing", files("no-such"), INVALID, "no-such.pem: No such file"),
                ("no certificate", {"ca": self.authority.path("ca.pem")}, INVALID, "needs all of certificate, key and ca")]:
            with self.subTest(what):
                result = self.berth("cluster", "info", tls=tls)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertIn(words, result.stderr)
                self.assertEqual(result.stdout, "")
                self.assertLessEqual(len(result.stderr.splitlines()), 2, result.stderr)

    def test_other_clients_are_refused_whatever_they_present(self):
        """Berth's programs check their files first; these clients do not."""
        read = self.authority.read
        ca = read("ca.pem")
        plain, tls = None, grpc.ssl_channel_credentials
        for what, credentials in [
                ("plain text", plain), ("no certificate", tls(ca)),
                ("another authority's", tls(ca, read("stranger.key"), read("stranger.pem"))),
                ("expired", tls(ca, read("expired.key"), read("expired.pem")))]:
            with self.subTest(what):
                before = len(self.cluster.server.output())
                self.assertEqual(self.call(credentials), grpc.StatusCode.UNAVAILABLE)
                wait_until(lambda: HANDSHAKE_OF.search(self.cluster.server.output()[before:]), 10,
                           "the log names the client whose handshake failed")
        self.assertEqual(self.call(tls(ca, read("client.key"), read("client.pem"))), grpc.StatusCode.OK)

    def call(self, credentials):
        """The code with which a unary call and a Hello end; they must agree."""
        address = self.cluster.server.address
        channel = grpc.insecure_channel(address) if credentials is None else grpc.secure_channel(address, credentials)
        with channel:
            cluster, agents = Stub(channel, cluster_pb2, "ClusterService"), Stub(channel, agent_pb2, "AgentService")
            codes = set()
            hello = agent_pb2.AgentMessage(hello=agent_pb2.Hello(node="intruder"))  # refused as incomplete
            for call in [lambda: cluster.GetClusterInfo(cluster_pb2.GetClusterInfoRequest(), timeout=5, wait_for_ready=False),
                         lambda: list(agents.Connect(iter([hello]), timeout=5, wait_for_ready=False))]:
                try:
                    call()
                    codes.add(grpc.StatusCode.OK)
                except grpc.RpcError as error:
                    codes.add(error.code())
            self.assertEqual(len(codes), 1, codes)
            return codes.pop()

    def test_agents_are_refused_and_report_it(self):
        files = self.authority.files
        agents = {"plain": ({}, "may require TLS"), "stranger": ({"tls": files("stranger")}, "may not accept"),
                  "fooled": ({"tls": files("agent", ca="other-ca")}, "is not signed by the authority in")}
        for name, (config, words) in agents.items():
            with self.subTest(name):
                agent = self.cluster.add_agent(name, **config)
                wait_until(lambda: words in agent.output(), 30, f"{words!r} in the log of {name}")
                self.assertTrue(agent.running(), "it keeps trying")
                self.assertEqual(agent.stop(), 0)
        simulated = self.cluster.add_simulation([{"name": "f[1-3]", "cpu": 1}], name="forged", tls=files("stranger"))
        wait_until(lambda: "may not accept" in simulated.output(), 30, "the simulation reports why")
        late = self.cluster.add_agent("late", tls=files("expired"))
        self.assertEqual(late.process.wait(20), USAGE)
        self.assertIn("expired.pem expired on", late.output())
        self.assertFalse(set(self.nodes()) & {*agents, "late", "intruder", "f1", "f2", "f3"})

    # ---- Servers that are misconfigured

    def test_a_server_with_the_certificate_of_another_host(self):
        server = self.other_server(self.authority.files("elsewhere")).start()
        result = self.berth("cluster", "info", server=server.address)
        self.assertEqual(result.returncode, UNAVAILABLE)
        self.assertIn("certificate does not name this host", result.stderr)
        agent = self.cluster.add_agent("lost", server=server.address, tls=self.authority.files("agent"))
        wait_until(lambda: "certificate does not name this host" in agent.output(), 30, "the agent's log")
        agent.stop()

    def test_a_server_without_tls(self):
        server = self.other_server({}).start()
        result = self.berth("cluster", "info", server=server.address)
        self.assertEqual(result.returncode, UNAVAILABLE)
        self.assertIn("the server does not use TLS", result.stderr)

    def test_a_server_does_not_start_with_files_that_no_client_accepts(self):
        files = self.authority.files
        for tls, words in [(files("expired"), "expired.pem expired on"), (files("server", key="agent"), "is not the key of"),
                           (files("no-such"), "no-such.pem: No such file"),
                           ({"ca": self.authority.path("ca.pem")}, "needs all of certificate, key and ca")]:
            with self.subTest(words):
                server = self.other_server(tls).start(wait=False)
                self.assertEqual(server.process.wait(20), USAGE)
                self.assertIn(words, server.output())

    def test_beyond_loopback_tls_is_required(self):
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7070"]:
            with self.subTest(address):
                result = subprocess.run([str(BIN / "berthd"), "--listen", address, "--http", "off", "--data",
                                         str(self.cluster.home / "never")], capture_output=True, text=True, timeout=20)
                self.assertEqual(result.returncode, USAGE)
                self.assertIn("can be reached from other machines; that needs tls", result.stderr)
                self.assertFalse((self.cluster.home / "never").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
