#!/usr/bin/env python3
"""berth-authd for users of a login node: real accounts of a private /etc/passwd and /etc/group, looked up by the system's
own name service, a real berthd with TLS, and berth as each user. Needs root, as users of the machine change.
"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from berth_harness import BIN, Cluster, Program, wait_until, write_yaml

PASSWD = """\
root:x:0:0:root:/root:/bin/sh
daemon:x:1:1:daemon:/:/bin/sh
ada:x:5001:5001:Ada:/:/bin/sh
bob:x:5002:5002:Bob:/:/bin/sh
"""
GROUP = """\
root:x:0:
ada:x:5001:
bob:x:5002:
ml:x:5100:ada,bob
domain users:x:5101:ada
gr\xfcppe:x:5102:ada
"""


@unittest.skipUnless(os.geteuid() == 0, "not root")
class Authd(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = home = pathlib.Path(tempfile.mkdtemp(prefix="berth-authd-"))
        cls.addClassCleanup(shutil.rmtree, home)
        home.chmod(0o755)
        shutil.copy(BIN / "berth", home / "berth")
        (home / "passwd").write_text(PASSWD)
        (home / "group").write_text(GROUP, encoding="latin-1")
        for name in ("ca", "users"):
            cls.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")
        cls.openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=berthd")
        (home / "server.ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        cls.openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                    "-out", "server.pem", "-extfile", "server.ext")
        cls.cluster = Cluster({"tls": {"certificate": f"{home}/server.pem", "key": f"{home}/server.key",
                                       "ca": f"{home}/users.pem"},
                               "access": {"trustDomain": "prod"}})
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.cluster.server.start()
        cls.socket = home / "auth.sock"
        config = write_yaml(home / "authd.yaml", {"listen": str(cls.socket), "certificate": f"{home}/users.pem",
                                                  "key": f"{home}/users.key", "servers": f"{home}/ca.pem", "trustDomain": "prod"})
        private = ["unshare", "--mount", "sh", "-c",
                   'mount --bind "$1/passwd" /etc/passwd && mount --bind "$1/group" /etc/group && shift && exec "$@"', "sh", str(home)]
        cls.authd = Program("berth-authd", [*private, str(BIN / "berth-authd"), "--config", str(config)], home / "authd.log")
        cls.authd.start()
        cls.addClassCleanup(cls.authd.stop)
        wait_until(cls.socket.exists, 20, "berth-authd listens")
        result = cls.berth(5001, "queue", "create", "q")
        assert result.returncode == 0, result.stderr

    @classmethod
    def openssl(cls, *arguments):
        subprocess.run(["openssl", *arguments], cwd=cls.home, check=True, capture_output=True)

    @classmethod
    def berth(cls, uid, *arguments):
        """As this user, who has nothing but an empty home."""
        own = cls.home / f"home-{uid}"
        if not own.exists():
            own.mkdir(mode=0o700)
            os.chown(own, uid, uid)
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(own), "BERTH_AUTH_SOCKET": str(cls.socket),
                       "BERTH_SERVER": cls.cluster.server.address}
        return subprocess.run(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", str(cls.home / "berth"),
                               "--request-timeout", "5s", *arguments], env=environment, cwd="/", capture_output=True, text=True, timeout=60)

    def test_each_user_owns_their_jobs_without_a_login(self):
        for uid, name in [(5001, "ada"), (5002, "bob")]:
            result = self.berth(uid, "submit", "--name", f"of-{name}", "--queue", "q", "--", "true")
            self.assertEqual(result.returncode, 0, result.stderr)
            job = json.loads(self.berth(uid, "job", "get", f"of-{name}", "-o", "json").stdout)
            self.assertEqual(job["status"]["owner"], name)
        self.assertEqual(self.berth(5002, "job", "list", "--owner", "ada", "-o", "name").stdout.split(), ["job/of-ada"])

    def test_the_certificate_has_the_groups_of_the_name_service(self):
        self.assertEqual(self.berth(5001, "queue", "list").returncode, 0)
        kept, = (self.home / "home-5001/.cache/berth").glob("*auth.sock.pem")
        self.assertEqual(oct(kept.stat().st_mode & 0o777), oct(0o600))
        self.assertEqual(kept.stat().st_uid, 5001)
        shown = subprocess.run(["openssl", "x509", "-noout", "-text", "-in", kept], capture_output=True, text=True, check=True).stdout
        self.assertIn("URI:spiffe://prod/user/ada", shown)
        groups = subprocess.run(["openssl", "asn1parse", "-in", kept], capture_output=True, text=True, check=True).stdout
        for name in ("ada", "ml", "domain users"):
            self.assertIn(name.encode().hex().upper(), groups.replace(" ", ""))

    def test_who_gets_none_is_told_why(self):
        for uid, words in [(0, "root gets no certificate (allowRoot)"), (1, "uid 1 is a system user"),
                           (5003, "uid 5003 has no account on this machine")]:
            result = self.berth(uid, "queue", "list")
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(f"berth-authd: {words}", result.stderr)

    def test_root_of_a_user_namespace_is_who_they_are_outside(self):
        self.assertEqual(self.berth(5002, "queue", "list").returncode, 0)
        shutil.rmtree(self.home / "home-5002/.cache")
        inside = ["setpriv", "--reuid=5002", "--regid=5002", "--clear-groups", "unshare", "--user", "--map-root-user"]
        if subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
            self.skipTest("no user namespaces")
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.home / "home-5002"), "BERTH_AUTH_SOCKET": str(self.socket),
                       "BERTH_SERVER": self.cluster.server.address}
        result = subprocess.run([*inside, str(self.home / "berth"), "submit", "--name", "inside", "--queue", "q", "--", "true"],
                                env=environment, cwd="/", capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        job = json.loads(self.berth(5002, "job", "get", "inside", "-o", "json").stdout)
        self.assertEqual(job["status"]["owner"], "bob")

    def test_without_berth_authd_a_certificate_serves_until_it_ends(self):
        self.assertEqual(self.berth(5001, "queue", "list").returncode, 0)
        self.authd.stop()
        try:
            self.assertEqual(self.berth(5001, "queue", "list").returncode, 0)
            shutil.rmtree(self.home / "home-5001/.cache")
            result = self.berth(5001, "queue", "list")
            self.assertEqual(result.returncode, 5)
            self.assertIn("berth-authd at", result.stderr)
            self.assertNotIn("is berthd running", result.stderr)
        finally:
            self.authd.start()
            wait_until(self.socket.exists, 20, "berth-authd listens")


if __name__ == "__main__":
    unittest.main(verbosity=2)
