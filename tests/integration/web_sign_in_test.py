#!/usr/bin/env python3
"""berth-web with sign-in: by client certificate, by token, and at an issuer in a real browser; two users with different
rights; what other sites' pages, strangers and refused certificates get. A real berthd with TLS and access rules.
"""
import http.client
import json
import pathlib
import shutil
import ssl
import subprocess
import tempfile
import time
import unittest
import urllib.request

import web_browser
from berth_harness import BIN, SOURCE, Cluster, Program, free_port, wait_until, write_yaml

try:
    import authlib.oauth2.rfc8628  # noqa: F401
    import flask  # noqa: F401
    MISSING = "" if (BIN / "berth-web").exists() else "berth-web is not built"
except ImportError as error:
    MISSING = f"{error}; deploy/install-deps --test installs python3-authlib and python3-flask"


class Connection:
    """A browser without a page: a cookie jar for one session."""

    def __init__(self, port, tls):
        self.port, self.tls = port, tls
        self.cookies, self.csrf = {}, ""

    def ask(self, method, path, body=None, **headers):
        """(status, message or text)"""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.tls, timeout=20)
        sent = {"Host": f"127.0.0.1:{self.port}", **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.cookies:
            sent.setdefault("Cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
            sent.setdefault("Berth-Csrf", self.csrf)
        connection.request(method, path, None if body is None else json.dumps(body), sent)
        answer = connection.getresponse()
        self.headers = answer.headers
        for cookie in answer.headers.get_all("Set-Cookie") or []:
            name, value = cookie.split(";")[0].split("=", 1)
            self.cookies[name] = value
        text = answer.read().decode()
        connection.close()
        return answer.status, json.loads(text) if answer.headers["Content-Type"] == "application/json" else text

    def call(self, method, **request):
        return self.ask("POST", f"/berth.v1.{method.replace('.', '/')}", request)

    def begin(self, how, body):
        status, answer = self.ask("POST", f"/api/sign-in/{how}", body)
        if status == 200:
            self.csrf = self.ask("GET", "/api/session")[1]["csrf"]
        return status, answer


@unittest.skipIf(MISSING, MISSING)
class SignIn(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = home = pathlib.Path(tempfile.mkdtemp(prefix="berth-web-"))
        cls.addClassCleanup(shutil.rmtree, home)
        for name in ("ca", "users", "derived"):
            cls.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")
        for name in ("berthd", "issuer", "authd", "web"):
            cls.make_certificate(name, "ca", "subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        for name in ("ada", "bob"):
            cls.make_certificate(name, "users", f"subjectAltName=URI:spiffe://prod/user/{name}\nextendedKeyUsage=clientAuth\n")
        cls.make_certificate("mallory", "ca", "subjectAltName=URI:spiffe://prod/user/ada\nextendedKeyUsage=clientAuth\n")
        (home / "both.pem").write_text((home / "users.pem").read_text() + (home / "derived.pem").read_text())
        cls.cluster = Cluster({"tls": {"certificate": f"{home}/berthd.pem", "key": f"{home}/berthd.key", "ca": f"{home}/both.pem"},
                               "access": {"trustDomain": "prod", "administrators": {"users": ["ada"]}}})
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.cluster.server.start()
        cls.start_issuer()
        cls.start_authd()
        cls.start_web()
        for command in (["access", "init"], ["queue", "create", "q"],
                        ["submit", "--name", "secret", "--queue", "q", "--", "echo", "password"],
                        ["access", "revoke", "submitter", "--everyone"], ["access", "grant", "viewer", "--everyone"]):
            cls.berth(*command)

    @classmethod
    def openssl(cls, *arguments):
        subprocess.run(["openssl", *arguments], cwd=cls.home, check=True, capture_output=True)

    @classmethod
    def make_certificate(cls, name, authority, extensions):
        cls.openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (cls.home / f"{name}.ext").write_text(extensions)
        cls.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key", "-CAcreateserial",
                    "-days", "2", "-out", f"{name}.pem", "-extfile", f"{name}.ext")

    @classmethod
    def start(cls, program, ready):
        program.start()
        cls.addClassCleanup(program.stop)
        wait_until(ready, 30, f"{program.name} is ready")

    @classmethod
    def fetch(cls, url, data=None, kind="text/plain"):
        request = urllib.request.Request(url, data, {"Content-Type": kind})
        with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=cls.home / "ca.pem"), timeout=10) as answer:
            return answer.read().decode()

    @classmethod
    def start_issuer(cls):
        port = free_port()
        cls.issuer = f"https://127.0.0.1:{port}"
        cls.start(Program("issuer", ["/usr/bin/python3", str(SOURCE / "tests/integration/oidc_issuer.py"), str(port),
                                     str(cls.home / "issuer.pem"), str(cls.home / "issuer.key")], cls.home / "issuer.log"),
                  lambda: cls.fetch(f"{cls.issuer}/.well-known/openid-configuration"))

    @classmethod
    def start_authd(cls):
        home, port = cls.home, free_port()
        cls.auth = f"https://127.0.0.1:{port}"
        issuer = {"issuer": cls.issuer, "caFile": f"{home}/ca.pem"}
        config = write_yaml(home / "authd.yaml", {
            "listen": "off", "certificate": f"{home}/users.pem", "key": f"{home}/users.key", "servers": f"{home}/ca.pem",
            "trustDomain": "prod",
            "oidc": {"listen": f"127.0.0.1:{port}", "certificate": f"{home}/authd.pem", "key": f"{home}/authd.key", "issuers": [
                {**issuer, "clientId": "berth-cli", "userClaim": "preferred_username", "groupsClaim": "groups",
                 "scopes": ["openid", "profile"]},
                {**issuer, "audiences": ["berth-ci"], "requiredClaims": {"repository": "org/train"}, "user": "ci-train"}]}})
        cls.start(Program("berth-authd", [str(BIN / "berth-authd"), "--config", str(config)], home / "authd.log"),
                  lambda: cls.fetch(f"{cls.auth}/v1/login"))

    @classmethod
    def start_web(cls):
        home = cls.home
        cls.web = web_browser.Web(
            home, server=cls.cluster.server.address, certificate=f"{home}/web.pem", key=f"{home}/web.key", ca=f"{home}/ca.pem",
            authd={"url": cls.auth, "caFile": f"{home}/ca.pem"},
            certificates={"ca": f"{home}/users.pem", "authority": f"{home}/derived.pem", "authorityKey": f"{home}/derived.key",
                          "trustDomain": "prod"})
        cls.web.start()
        cls.addClassCleanup(cls.web.stop)

    @classmethod
    def berth(cls, *arguments):
        result = subprocess.run([str(BIN / "berth"), "--server", cls.cluster.server.address, "--tls-certificate", f"{cls.home}/ada.pem", "--tls-key",
                                 f"{cls.home}/ada.key", "--tls-ca", f"{cls.home}/ca.pem", *arguments], capture_output=True, text=True,
                                timeout=60, check=False)
        assert result.returncode == 0, f"berth {' '.join(arguments)}: {result.stdout}{result.stderr}"
        return result.stdout

    def connect(self, certificate=None):
        tls = ssl.create_default_context(cafile=self.home / "ca.pem")
        if certificate:
            tls.load_cert_chain(self.home / f"{certificate}.pem", self.home / f"{certificate}.key")
        return Connection(self.web.port, tls)

    def signed_in(self, name):
        connection = self.connect(name)
        self.assertEqual(connection.begin("certificate", {}), (200, {}))
        return connection

    def token_of_ci(self):
        claims = {"aud": "berth-ci", "repository": "org/train"}
        return self.fetch(f"{self.issuer}/sign", json.dumps(claims).encode(), "application/json")

    def test_a_certificate_signs_in_and_berthd_sees_the_person(self):
        ada = self.signed_in("ada")
        status, who = ada.call("AccessService.WhoAmI")
        self.assertEqual((status, who["user"], who["administrator"]), (200, "ada", True))
        own = subprocess.run(["openssl", "x509", "-noout", "-serial", "-in", f"{self.home}/ada.pem"], capture_output=True, text=True,
                             check=True).stdout.strip().split("=")[1].lower().lstrip("0")
        self.assertEqual(who["serial"], own)  # refused together
        cookie = ada.headers
        self.assertIsNone(cookie.get("Set-Cookie"))

    def test_users_see_and_change_what_berthd_lets_them(self):
        ada, bob = self.signed_in("ada"), self.signed_in("bob")
        seen = {}
        for name, person in (("ada", ada), ("bob", bob)):
            status, job = person.call("JobService.GetJob", name="secret")
            self.assertEqual(status, 200)
            seen[name] = json.dumps(job)
        self.assertIn("password", seen["ada"])
        self.assertNotIn("password", seen["bob"])
        status, answer = bob.call("JobService.CancelJob", name="secret")
        self.assertEqual((status, answer["code"]), (403, "permission_denied"))
        self.assertFalse(bob.call("AccessService.CheckAccess", verb="job.change", job="secret")[1].get("allowed", False))

    def test_a_token_signs_in(self):
        ci = self.connect()
        self.assertEqual(ci.begin("token", {"token": self.token_of_ci()})[0], 200)
        self.assertEqual(ci.call("AccessService.WhoAmI")[1]["user"], "ci-train")
        stranger = self.connect()
        status, answer = stranger.begin("token", {"token": "a.b.c"})
        self.assertEqual((status, answer["code"]), (403, "permission_denied"))

    def test_strangers_get_nothing(self):
        nobody = self.connect()
        self.assertEqual(nobody.call("JobService.ListJobs")[0], 401)
        self.assertEqual(nobody.ask("GET", "/api/watch")[0], 401)
        self.assertEqual(nobody.ask("GET", "/api/logs?job=secret")[0], 401)
        self.assertEqual(nobody.begin("certificate", {})[0], 403)
        self.assertEqual(self.connect("mallory").begin("certificate", {})[0], 403)
        guess = self.connect()
        guess.cookies["__Host-berth"] = "A" * 43
        self.assertEqual(guess.call("JobService.ListJobs")[0], 401)

    def test_pages_of_others_cannot_call(self):
        ada = self.signed_in("ada")
        path, body = "/berth.v1.JobService/CancelJob", {"name": "secret"}
        for headers in ({"Origin": "https://evil.example"}, {"Sec_Fetch_Site": "cross-site"}, {"Host": "evil.example"},
                        {"Berth_Csrf": ""}, {"Berth_Csrf": "A" * 44}):
            with self.subTest(headers=headers):
                self.assertEqual(ada.ask("POST", path, body, **headers)[0], 403)
        self.assertEqual(ada.ask("POST", path, body, Content_Type="text/plain")[0], 400)
        self.assertEqual(self.signed_in("bob").ask("POST", path, body)[0], 403)
        self.assertNotIn("CANCELLED", self.berth("job", "get", "secret", "-o", "json"))
        self.assertEqual(ada.ask("GET", "/api/watch", Sec_Fetch_Site="cross-site")[0], 403)
        status, _ = ada.ask("GET", "/api/session")
        self.assertEqual(status, 200)
        policy = ada.headers["Content-Security-Policy"]
        self.assertNotIn("unsafe", policy)
        self.assertIn("default-src 'none'", policy)
        again = self.connect("ada")
        again.ask("POST", "/api/sign-in/certificate", {})
        self.assertRegex(again.headers["Set-Cookie"], r"^__Host-berth=[\w=-]{43,44}; Path=/; HttpOnly; SameSite=Strict; Secure$")

    def test_what_is_not_passed_on_says_so_by_name(self):
        ada = self.signed_in("ada")
        for method in ("JobService.Exec", "ClusterService.Backup", "AccessService.ChangeAccess", "NodeService.CreateJoinToken"):
            status, answer = ada.call(method)
            self.assertEqual((status, answer["code"]), (501, "unimplemented"))
            self.assertIn(method, answer["message"])
        self.assertEqual(ada.call("JobService.Nothing")[0], 404)
        status, answer = ada.call("JobService.GetJob", nam="x")
        self.assertEqual((status, answer["code"]), (400, "invalid_argument"))
        try:
            self.assertEqual(ada.ask("POST", "/berth.v1.JobService/GetJob", "x" * (1 << 20))[0], 413)
        except OSError:
            pass  # closed before all was sent

    def test_a_viewer_gets_no_terminal(self):
        bob = self.signed_in("bob")
        terminal = {"open": {"job": "secret", "command": ["sh"], "terminal": {"rows": 24, "columns": 80}}}
        status, events = bob.ask("POST", "/api/terminal", terminal)
        self.assertEqual(status, 200)
        self.assertIn("event: end", events)
        self.assertIn("permission_denied", events)
        self.assertNotIn("event: output", events)
        without = self.connect()
        self.assertEqual(without.ask("POST", "/api/terminal", terminal)[0], 401)
        self.assertEqual(without.ask("POST", "/api/terminal/input", {"id": "x"})[0], 401)
        self.assertEqual(bob.ask("POST", "/api/terminal", terminal, Berth_Csrf="wrong")[0], 403)

    def test_signing_out_and_refusing_end_the_session(self):
        ada, bob = self.signed_in("ada"), self.signed_in("bob")
        self.assertEqual(ada.ask("POST", "/api/sign-out", {})[0], 200)
        self.assertEqual(ada.ask("GET", "/api/session")[1]["mode"], "SIGNED_OUT")
        serial = bob.call("AccessService.WhoAmI")[1]["serial"]
        self.berth("access", "refuse", "--serial", serial)
        try:
            status, answer = bob.call("JobService.ListJobs")
            self.assertIn(status, (401, 403), answer)
            self.assertEqual(self.signed_in("bob").call("JobService.ListJobs")[0], status)  # a new session is no way around
        finally:
            self.berth("access", "readmit", "--serial", serial)

    def test_too_many_calls_are_refused(self):
        ada = self.signed_in("ada")
        begin = time.monotonic()
        codes = [ada.call("AccessService.WhoAmI")[0] for _ in range(300)]
        rate = 300 / (time.monotonic() - begin)
        if rate > 150:  # the bucket has 200, and gets 50 a second
            self.assertIn(429, codes)
        self.assertEqual(set(codes) - {200, 429}, set())

    @unittest.skipIf(web_browser.MISSING, web_browser.MISSING)
    def test_a_person_signs_in_at_an_issuer_in_a_browser_and_may_only_read(self):
        self.fetch(f"{self.issuer}/person", b"bob")
        browser = web_browser.Browser()
        try:
            page = browser.page(f"https://127.0.0.1:{self.web.port}", ignore_https_errors=True)
            page.goto("/jobs")
            page.get_by_role("heading", name="Sign in to Berth").wait_for()
            self.assertEqual(browser.violations(page), [])
            page.get_by_role("link", name=f"Sign in at {self.issuer}").click()
            page.get_by_text("bob", exact=True).wait_for()
            page.get_by_text("Live", exact=True).wait_for()
            page.goto("/job/secret")
            page.get_by_role("heading", name="Job secret").wait_for()
            page.get_by_role("link", name="Manifest").click()
            page.locator("pre").wait_for()
            self.assertNotIn("password", page.locator("main").inner_text())
            self.assertEqual(page.get_by_role("button", name="Cancel").count(), 0)
            page.get_by_role("button", name="Sign out").click()
            page.get_by_role("heading", name="Sign in to Berth").wait_for()
            self.assertEqual(browser.problems, [])
        finally:
            browser.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
