"""TLS: files, a login, and why a connection is refused."""
import os
import pathlib
import subprocess
import tempfile
import unittest
from datetime import datetime, timedelta, timezone

import world

import berth
from berth import _certificates


class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(place.cleanup)
        cls.home = pathlib.Path(place.name)
        cls.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-keyout",
                    "ca.key", "-out", "ca.pem", "-subj", "/CN=ca")
        for name in ("server", "ada"):
            (cls.home / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
            cls.openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{name}.key",
                        "-out", f"{name}.csr", "-subj", f"/CN={name}")
            cls.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                        "-extfile", "names", "-out", f"{name}.pem")
        cls.cluster = world.berth_harness.Cluster({"tls": {"certificate": f"{cls.home}/server.pem", "key": f"{cls.home}/server.key",
                                                           "ca": f"{cls.home}/ca.pem"}})
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.server.start()
        cls.files = {"certificate": f"{cls.home}/ada.pem", "key": f"{cls.home}/ada.key", "ca": f"{cls.home}/ca.pem"}

    @classmethod
    def openssl(cls, *arguments):
        subprocess.run(["openssl", *arguments], cwd=cls.home, check=True, capture_output=True)

    def test_the_certificate_says_who_calls(self):
        with berth.Client(self.cluster.server.address, **self.files) as client:
            self.assertEqual(client.whoami().user, "ada")

    def test_files_of_the_environment(self):
        names = {f"BERTH_TLS_{name.upper()}": path for name, path in self.files.items()}
        os.environ.update(names)
        self.addCleanup(lambda: [os.environ.pop(name) for name in names])
        with berth.Client(self.cluster.server.address) as client:
            self.assertEqual(client.whoami().user, "ada")

    def test_connections_that_fail(self):
        with berth.Client(self.cluster.server.address, timeout=1) as client, self.assertRaises(berth.Unavailable):
            client.cluster()
        with berth.Client("127.0.0.1:1", **{**self.files, "ca": "/nowhere"}) as client:
            with self.assertRaisesRegex(berth.InvalidArgument, "/nowhere: No such file"):
                client.cluster()
        (self.home / "no.pem").write_text("nothing")
        with berth.Client("127.0.0.1:1", **{**self.files, "key": f"{self.home}/no.pem"}) as client:
            with self.assertRaisesRegex(berth.InvalidArgument, "no.pem is not a PEM file"):
                client.cluster()

    def test_a_login_is_used_until_it_ends(self):
        runtime = self.home / "runtime"
        place = runtime / "berth"
        place.mkdir(parents=True, mode=0o700)
        place.chmod(0o700)
        identity = place / "login.pem"
        identity.write_text((self.home / "ada.pem").read_text() + (self.home / "ada.key").read_text())
        (place / "login.servers.pem").write_text((self.home / "ca.pem").read_text())
        settings = {"XDG_RUNTIME_DIR": str(runtime), "BERTH_AUTH": "https://login.example:7080"}
        kept = {name: os.environ.get(name) for name in settings}
        os.environ.update(settings)
        self.addCleanup(lambda: [os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)
                                 for name, value in kept.items()])
        with berth.Client(self.cluster.server.address) as client:
            self.assertEqual(client.whoami().user, "ada")
        life = _certificates.life_of(_certificates.files_of(place, "login"))
        begin, end = datetime.now(timezone.utc), life.end
        self.assertTrue(timedelta(days=1) < end - begin < timedelta(days=2, minutes=1), life)
        self.assertTrue(timedelta(days=1) < life.renew - begin < timedelta(hours=33), life)
        place.chmod(0o755)
        with berth.Client(self.cluster.server.address) as client, self.assertRaisesRegex(berth.FailedPrecondition, "chmod 700"):
            client.cluster()
        place.chmod(0o700)
        self.openssl("x509", "-req", "-in", "ada.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "-1", "-out",
                     "old.pem")
        identity.write_text((self.home / "old.pem").read_text() + (self.home / "ada.key").read_text())
        with berth.Client(self.cluster.server.address) as client, self.assertRaisesRegex(berth.FailedPrecondition, "login again"):
            client.cluster()


if __name__ == "__main__":
    unittest.main()
