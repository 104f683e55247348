#!/usr/bin/env python3
"""berth-authd over HTTPS: people who log in with a browser, CI with a token of its own, and strangers. A real berthd with
TLS, and a real OpenID Connect issuer with the device flow (oidc_issuer.py).
"""
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

from berth_harness import BIN, SOURCE, Cluster, Program, free_port, wait_until, write_yaml

try:
    import authlib.oauth2.rfc8628  # noqa: F401
    import flask  # noqa: F401
    MISSING = ""
except ImportError as error:
    MISSING = f"{error}; deploy/install-deps --test installs python3-authlib and python3-flask"


@unittest.skipIf(MISSING, MISSING)
class Login(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = home = pathlib.Path(tempfile.mkdtemp(prefix="berth-login-"))
        cls.addClassCleanup(shutil.rmtree, home)
        for name in ("ca", "users", "others"):
            cls.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")
        for name in ("berthd", "issuer", "authd"):
            cls.make_certificate(name)
        cls.cluster = Cluster({"tls": {"certificate": f"{home}/berthd.pem", "key": f"{home}/berthd.key", "ca": f"{home}/users.pem"},
                               "access": {"trustDomain": "prod"}})
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.cluster.server.start()
        cls.tls = ssl.create_default_context(cafile=home / "ca.pem")
        cls.start_issuer()
        cls.start_authd()
        result = cls.berth("lead", "login", token=cls.token_of_ci(repository="org/lead"))
        assert result.returncode == 0, result.stderr
        result = cls.berth("lead", "queue", "create", "q")
        assert result.returncode == 0, result.stderr

    @classmethod
    def openssl(cls, *arguments):
        subprocess.run(["openssl", *arguments], cwd=cls.home, check=True, capture_output=True)

    @classmethod
    def make_certificate(cls, name):
        """Of an HTTPS server on this machine. The file appears as a whole."""
        cls.openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", "next.key", "-out", "next.csr", "-subj", f"/CN={name}")
        (cls.home / "next.ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        cls.openssl("x509", "-req", "-in", "next.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                    "-out", "next.pem", "-extfile", "next.ext")
        shutil.copy(cls.home / "next.pem", cls.home / f"{name}.pem")
        both = cls.home / f"{name}.next"
        both.write_text((cls.home / "next.pem").read_text() + (cls.home / "next.key").read_text())
        both.rename(cls.home / f"{name}.key")

    @classmethod
    def start_issuer(cls):
        port = free_port()
        cls.issuer = f"https://127.0.0.1:{port}"
        program = Program("issuer", ["/usr/bin/python3", str(SOURCE / "tests/integration/oidc_issuer.py"), str(port),
                                     str(cls.home / "issuer.pem"), str(cls.home / "issuer.key")], cls.home / "issuer.log")
        program.start()
        cls.addClassCleanup(program.stop)
        wait_until(lambda: cls.ask(f"{cls.issuer}/.well-known/openid-configuration"), 30, "the issuer answers")

    @classmethod
    def start_authd(cls):
        home, port = cls.home, free_port()
        cls.port, cls.auth = port, f"https://localhost:{port}"
        issuer = {"issuer": cls.issuer, "caFile": f"{home}/ca.pem"}
        config = write_yaml(home / "authd.yaml", {
            "listen": "off", "certificate": f"{home}/users.pem", "key": f"{home}/users.key", "servers": f"{home}/ca.pem",
            "trustDomain": "prod",
            "oidc": {"listen": f"127.0.0.1:{port}", "certificate": f"{home}/authd.key", "key": f"{home}/authd.key", "issuers": [
                {**issuer, "clientId": "berth-cli", "userClaim": "preferred_username", "groupsClaim": "groups"},
                {**issuer, "audiences": ["berth-ci"], "requiredClaims": {"repository": "org/train"}, "user": "ci-train",
                 "groups": ["ci"], "lifetime": "30m"},
                {**issuer, "audiences": ["berth-ci"], "requiredClaims": {"repository": "org/lead"}, "user": "lead"}]}})
        cls.authd = Program("berth-authd", [str(BIN / "berth-authd"), "--config", str(config)], home / "authd.log")
        cls.authd.start()
        cls.addClassCleanup(cls.authd.stop)
        wait_until(lambda: cls.ask(f"{cls.auth}/v1/login"), 20, "berth-authd listens")

    @classmethod
    def ask(cls, url, data=None, kind=None):
        headers = {"Content-Type": kind} if kind else {}
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), context=cls.tls, timeout=10) as answer:
            return answer.read().decode()

    @classmethod
    def token_of_ci(cls, **claims):
        return cls.ask(f"{cls.issuer}/sign", json.dumps({"aud": "berth-ci", **claims}).encode(), "application/json")

    @classmethod
    def environment_of(cls, who, token=None):
        own = cls.home / f"home-{who}"
        own.mkdir(mode=0o700, exist_ok=True)
        return {"PATH": "/usr/bin:/bin", "HOME": str(own), "BERTH_SERVER": cls.cluster.server.address, "BERTH_AUTH": cls.auth,
                "BERTH_AUTH_CA": f"{cls.home}/ca.pem", **({"BERTH_ID_TOKEN": token} if token else {})}

    @classmethod
    def berth(cls, who, *arguments, token=None, text=None, **more):
        return subprocess.run([str(BIN / "berth"), *arguments], env={**cls.environment_of(who, token), **more}, input=text,
                              cwd="/", capture_output=True, text=True, timeout=90)

    @contextlib.contextmanager
    def login(self, who):
        """berth login, which waits; and the code that it shows."""
        with subprocess.Popen([str(BIN / "berth"), "login"], env=self.environment_of(who), cwd="/", text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            line = process.stdout.readline()
            self.assertRegex(line, f"^Open {self.issuer}/device in a browser, and enter the code [A-Z]{{4}}-[A-Z]{{4}}$")
            yield process, line.split()[-1]

    def confirm(self, code, user, answer="allow"):
        form = urllib.parse.urlencode({"user_code": code, "user": user, "answer": answer}).encode()
        self.assertEqual(self.ask(f"{self.issuer}/device", form), "thank you")

    def owner_of_a_new_job(self, who, name):
        result = self.berth(who, "submit", "--name", name, "--queue", "q", "--", "true")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(self.berth(who, "job", "get", name, "-o", "json").stdout)["status"]["owner"]

    def test_a_person_logs_in_with_a_browser(self):
        with self.login("ada") as (process, code):
            time.sleep(1.5)  # a request that finds no confirmation
            self.confirm(code, "ada")
            out, err = process.stdout.read(), process.stderr.read()
        self.assertEqual(process.returncode, 0, err)
        self.assertIn(f"or open {self.issuer}/device?user_code={code} and check the code.\n", out)
        self.assertRegex(out, r"Logged in as ada until \d{4}-\d\d-\d\d \d\d:\d\d, in the groups ml, hpc users\n$")
        self.assertEqual(self.owner_of_a_new_job("ada", "of-ada"), "ada")
        kept = self.home / "home-ada/.cache/berth/login.pem"
        self.assertEqual(oct(kept.stat().st_mode & 0o777), oct(0o600))
        shown = subprocess.run(["openssl", "x509", "-noout", "-text", "-in", kept], capture_output=True, text=True, check=True).stdout
        self.assertIn("URI:spiffe://prod/user/ada", shown)
        self.assertRegex(self.authd.output(), rf'certificate +user=ada issuer={self.issuer} subject=subject-of-ada peer=127\.0\.0\.1:\d+ '
                                              r'groups=2 serial=[0-9a-f]+ until=')

        result = self.berth("ada", "logout")
        self.assertEqual((result.returncode, result.stdout), (0, "Logged out.\n"))
        self.assertFalse(kept.exists())
        self.assertEqual(self.berth("ada", "logout").stdout, "You were not logged in.\n")
        self.assertNotEqual(self.berth("ada", "queue", "list").returncode, 0)

    def test_a_person_refuses(self):
        with self.login("eve") as (process, code):
            self.confirm(code, "ada", "deny")
            err = process.stderr.read()
        self.assertEqual(process.returncode, 1)
        self.assertEqual(err, f"berth: the issuer {self.issuer}: the login was refused there\n")
        self.assertFalse((self.home / "home-eve/.cache/berth/login.pem").exists())

    def test_ci_has_a_token_of_its_own(self):
        token = self.token_of_ci(repository="org/train")
        file = self.home / "token"
        file.write_text(token + "\n")
        for who, result in [("file", self.berth("file", "login", "--token-file", str(file))),
                            ("input", self.berth("input", "login", "--token-file", "-", text=token)),
                            ("variable", self.berth("variable", "login", token=token))]:
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stdout, "^Logged in as ci-train until .*, in the groups ci\n$")
            self.assertEqual(self.owner_of_a_new_job(who, f"by-{who}"), "ci-train")
        for part in token.split("."):
            self.assertNotIn(part, self.authd.output())

    def test_a_token_that_gives_nothing_says_why(self):
        for claims, words in [
                ({"aud": "somebody-else"}, 'the token is for the audience "somebody-else", not for "berth-cli"'),
                ({"aud": ["berth-ci", "somebody-else"]}, 'is for the audience "somebody-else"'),
                ({"repository": "org/other"}, 'does not have the required value of the claim "repository"'),
                ({"exp": int(time.time()) - 100}, "the token expired at"),
                ({"exp": int(time.time()) + 90000, "repository": "org/train"}, "at most 1h is allowed"),
                ({"iss": "https://evil.example"}, 'the token\'s issuer "https://evil.example" is not one that berth-authd trusts'),
                ({"aud": "berth-cli", "preferred_username": "root"}, 'names the user "root"'),
                ({"aud": "berth-cli"}, 'has no claim "preferred_username" (userClaim)')]:
            result = self.berth("mallory", "login", token=self.token_of_ci(**claims))
            self.assertEqual(result.returncode, 1, claims)
            self.assertIn(f"berth: berth-authd at {self.auth}: the token", result.stderr)
            self.assertIn(words, result.stderr)
            self.assertNotIn("org/train", result.stderr)
        self.assertFalse((self.home / "home-mallory/.cache/berth/login.pem").exists())

    def test_tokens_that_are_none(self):
        for text, code, words in [("", 4, "standard input contains no token"), ("hello", 1, "this is not a signed JWT"),
                                  ("x" * 20000, 4, "which no token has")]:
            result = self.berth("mallory", "login", "--token-file", "-", text=text)
            self.assertEqual(result.returncode, code)
            self.assertIn(words, result.stderr)
        result = self.berth("mallory", "login", "--token-file", "/nowhere")
        self.assertEqual((result.returncode, result.stderr), (4, "berth: cannot read /nowhere\n"))

    def test_the_issuer_changes_its_key(self):
        old = self.token_of_ci(repository="org/train")
        self.assertEqual(self.berth("ci", "login", token=old).returncode, 0)
        self.ask(f"{self.issuer}/rotate", b"")
        # berth tries again until berth-authd asks the issuer again.
        result = self.berth("ci", "login", token=self.token_of_ci(repository="org/train"))
        self.assertEqual(result.returncode, 0, result.stderr)
        result = self.berth("ci", "--request-timeout", "1s", "login", token=old)
        self.assertEqual(result.returncode, 5)
        self.assertIn(f"the token is signed with a key that the issuer {self.issuer} did not have", result.stderr)
        self.assertNotIn("is berthd running", result.stderr)

    def test_both_doors_of_one_program(self):
        """The first one, of setUpClass, has no socket."""
        port, path = free_port(), self.home / "auth.sock"
        config = json.loads((self.home / "authd.yaml").read_text())
        config["listen"], config["oidc"]["listen"] = str(path), f"127.0.0.1:{port}"
        program = Program("berth-authd", [str(BIN / "berth-authd"), "--config", str(write_yaml(self.home / "both.yaml", config))],
                          self.home / "both.log")
        program.start()
        self.addCleanup(program.stop)
        wait_until(lambda: self.ask(f"https://localhost:{port}/v1/login"), 20, "berth-authd listens")
        self.assertTrue(path.is_socket())
        result = self.berth("both", "queue", "list", BERTH_AUTH_SOCKET=str(path))
        if os.geteuid() == 0:
            self.assertIn("berth-authd: root gets no certificate", result.stderr)
        result = self.berth("both", "login", token=self.token_of_ci(repository="org/train"), BERTH_AUTH=f"https://localhost:{port}/")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(program.stop(), 0)
        self.assertFalse(path.exists())
        broken = {**config, "oidc": {**config["oidc"], "key": f"{self.home}/users.key"}}
        result = subprocess.run([str(BIN / "berth-authd"), "--config", str(write_yaml(self.home / "broken.yaml", broken))],
                                capture_output=True, text=True, timeout=20)
        self.assertEqual(result.returncode, 2)
        self.assertIn("users.key: The certificate and the given key do not match", result.stderr)

    def test_the_server_is_verified(self):
        for more, words in [({"BERTH_AUTH_CA": f"{self.home}/others.pem"}, "certificate"), ({"BERTH_AUTH_CA": ""}, "certificate"),
                            ({"BERTH_AUTH": f"https://localhost.localdomain:{self.port}"}, "")]:
            result = self.berth("ada", "login", token="x", **more)
            self.assertEqual(result.returncode, 5, result.stderr)
            self.assertIn(words, result.stderr)
        for url in ("http://localhost:1", "localhost:1", f"https://a@localhost:{self.port}"):
            result = self.berth("ada", "login", token="x", BERTH_AUTH=url)
            self.assertEqual(result.returncode, 4)
            self.assertIn("not a URL such as https://", result.stderr)
        result = self.berth("ada", "login", BERTH_AUTH="")
        self.assertEqual(result.returncode, 4)
        self.assertIn("BERTH_AUTH", result.stderr)

    def request(self, method, path, body=None, headers=None):
        connection = http.client.HTTPSConnection("localhost", self.port, context=self.tls, timeout=15)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        with contextlib.closing(connection):
            return answer.status, answer.read().decode()

    def works(self):
        return self.request("GET", "/v1/login")[0] == 200

    def test_what_strangers_see(self):
        status, text = self.request("GET", "/v1/login")
        offered, = json.loads(text)["issuers"]
        self.assertEqual((status, offered["issuer"], offered["clientId"], offered["scopes"]),
                         (200, self.issuer, "berth-cli", ["openid", "profile"]))
        self.assertNotIn("org/train", text)
        for method, path, body, code in [("GET", "/", None, 404), ("GET", "/v1/certificate", None, 405), ("POST", "/v1/login", "x", 405),
                                         ("PUT", "/v1/certificate", "x", 405), ("POST", "/v1/certificate", "", 400),
                                         ("POST", "/v1/certificate", "{", 400), ("POST", "/v1/certificate", '{"token": 7}', 400),
                                         ("POST", "/v1/certificate", "[" * 60000, 400)]:
            status, text = self.request(method, path, body)
            self.assertEqual(status, code, (method, path, text))
        self.assertEqual(self.request("POST", "/v1/certificate", None, {"Content-Length": "65537"})[0], 413)
        token = self.token_of_ci(repository="org/train")
        status, text = self.request("POST", "/v1/certificate", json.dumps({"token": token, "request": "none"}))
        self.assertEqual(status, 400)
        self.assertNotIn(token, text)

    def test_garbage_and_slow_clients_are_bounded(self):
        for text in (b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"x" * 5000, b"\0" * 100, b""):
            with socket.create_connection(("127.0.0.1", self.port)) as stranger:
                stranger.sendall(text)
                stranger.settimeout(0.3)
                with contextlib.suppress(OSError):
                    stranger.recv(1000)
        for chunked in (b"10000\r\n" + b"x" * 65536 + b"\r\n10\r\n" + b"x" * 16 + b"\r\n0\r\n\r\n", b"zz\r\n"):
            with socket.create_connection(("localhost", self.port)) as plain, self.tls.wrap_socket(plain, server_hostname="localhost") as stranger:
                with contextlib.suppress(OSError):
                    stranger.sendall(b"POST /v1/certificate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked)
                    stranger.settimeout(15)
                    self.assertNotIn(b" 200 ", stranger.recv(1000))
        self.assertTrue(self.works())
        idle = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(100)]  # 16 of an address count
        begin = time.monotonic()
        wait_until(self.works, 30, "berth-authd answers after the slow clients' time")
        self.assertLess(time.monotonic() - begin, 20)
        for stranger in idle:
            stranger.close()
        self.assertTrue(self.works())
        threads = len(os.listdir(f"/proc/{self.authd.process.pid}/task"))
        self.assertLess(threads, 30)

    def test_a_renewed_certificate_of_https_counts_without_a_restart(self):
        def serial():
            with socket.create_connection(("localhost", self.port)) as plain, self.tls.wrap_socket(plain, server_hostname="localhost") as secure:
                return secure.getpeercert()["serialNumber"]
        before = serial()
        (self.home / "authd.key").write_text("nonsense")
        time.sleep(6)
        self.assertEqual(serial(), before)
        self.make_certificate("authd")
        wait_until(lambda: serial() != before, 15, "the new certificate is in use")
        self.assertTrue(self.works())


if __name__ == "__main__":
    unittest.main(verbosity=2)
