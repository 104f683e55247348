#!/usr/bin/env python3
"""Metrics for other machines: berthd's HTTP stays on loopback, and Debian's stunnel4 in front, configured as
docs/operators/monitoring.md says, serves it to holders of a certificate of the authority and to nobody else.
"""
import pathlib
import re
import shutil
import ssl
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

from berth_harness import BIN, SOURCE, Cluster, Program, free_port, wait_until

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


@unittest.skipUnless(shutil.which("stunnel4"), "no stunnel4 (deploy/install-deps)")
class MetricsTls(unittest.TestCase):
    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="berth-metrics-"))
        self.addCleanup(shutil.rmtree, self.home)
        self.cluster = Cluster().belongs_to(self)
        self.cluster.server.start()
        self.port = free_port()
        for name in ("ca", "other-ca"):
            self.openssl("req", "-x509", *KEY, "-days", "2", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")
        self.issue("server", "ca")
        self.issue("prometheus", "ca")
        self.issue("stranger", "other-ca")
        text = (SOURCE / "docs/operators/monitoring.md").read_text()
        config = re.search(r"; /etc/stunnel/berth-metrics.conf\n(.*?)```", text, re.S).group(1)
        config = config.replace(":::17071", f"127.0.0.1:{self.port}").replace("127.0.0.1:7071", self.cluster.server.http)
        config = config.replace("/etc/berth", str(self.home))
        path = self.home / "stunnel.conf"
        path.write_text(f"foreground = yes\npid =\n{config}")
        self.proxy = Program("stunnel4", ["stunnel4", str(path)], self.home / "stunnel.log")
        self.proxy.start()
        self.addCleanup(self.proxy.stop)
        wait_until(lambda: "Configuration successful" in self.proxy.output(), 20, "stunnel4 listens")

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.home, check=True, capture_output=True)

    def issue(self, name, ca):
        (self.home / f"{name}.ext").write_text("subjectAltName=IP:127.0.0.1\n")
        self.openssl("req", "-new", *KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key", "-CAcreateserial",
                     "-days", "2", "-out", f"{name}.pem", "-extfile", f"{name}.ext")

    def get(self, certificate=None):
        context = ssl.create_default_context(cafile=self.home / "ca.pem")
        if certificate:
            context.load_cert_chain(self.home / f"{certificate}.pem", self.home / f"{certificate}.key")
        with urllib.request.urlopen(f"https://127.0.0.1:{self.port}/metrics", context=context, timeout=10) as answer:
            return answer.read().decode()

    def test_only_with_a_certificate_of_the_authority(self):
        self.assertIn("berth_accepting_work 1", self.get("prometheus"))
        for certificate in (None, "stranger"):
            with self.assertRaises((urllib.error.URLError, OSError)):
                self.get(certificate)

    def test_other_addresses_are_refused(self):
        for program, config in (("berthd", "httpListen: 0.0.0.0:7071\n"), ("berth-agent", "httpListen: '[::]:9400'\nserver: 127.0.0.1:1\n")):
            path = self.home / "refused.yaml"
            path.write_text(config)
            result = subprocess.run([BIN / program, "--config", path], capture_output=True, text=True, timeout=60)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("can be reached from other machines", result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
