"""A real container registry (Debian's docker-registry) on loopback, with TLS and passwords.

    registry = Registry(home, {"ann": "secret"}).start()
    registry.push(layout, "1", "team/small:1")
"""
import base64
import json
import re
import shutil
import subprocess

from berth_harness import Program, free_port, wait_until, write_yaml

NEEDED = ("docker-registry", "skopeo", "htpasswd")


class Authority:
    """Of all registries of a test."""

    def __init__(self, home):
        self.home = home / "authority"
        self.home.mkdir()
        self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", "ca.key", "-out", "ca.crt",
                     "-subj", "/CN=registries")
        self.openssl("req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", "registry.key", "-out", "registry.csr",
                     "-subj", "/CN=registry")
        (self.home / "names").write_text("subjectAltName = IP:127.0.0.1, DNS:localhost\n")
        self.openssl("x509", "-req", "-in", "registry.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days",
                     "2", "-extfile", "names", "-out", "registry.crt")
        self.trusted = self.home / "trusted"  # the directory, as skopeo wants it
        self.trusted.mkdir()
        shutil.copy(self.home / "ca.crt", self.trusted)

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.home, check=True, capture_output=True)

    @property
    def ca(self):
        return str(self.home / "ca.crt")


class Registry(Program):
    def __init__(self, home, authority, users, name="registry"):
        self.home, self.authority, self.users = home / name, authority, users
        self.home.mkdir()
        self.port = free_port()
        passwords = self.home / "passwords"
        passwords.touch()
        for user, password in users.items():
            subprocess.run(["htpasswd", "-Bb", str(passwords), user, password], check=True, capture_output=True)
        config = write_yaml(self.home / "config.yml", {
            "version": 0.1, "log": {"level": "error"},
            "storage": {"filesystem": {"rootdirectory": str(self.home / "data")}},
            "auth": {"htpasswd": {"realm": "test", "path": str(passwords)}},
            "http": {"addr": f"127.0.0.1:{self.port}",
                     "tls": {"certificate": str(authority.home / "registry.crt"), "key": str(authority.home / "registry.key")}}})
        super().__init__(name, ["docker-registry", "serve", str(config)], self.home / "log")

    @property
    def host(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        super().start()
        wait_until(lambda: subprocess.run(["curl", "-sk", f"https://{self.host}/v2/"], capture_output=True).returncode == 0,
                   20, "the registry answers")
        return self

    def push(self, layout, tag, name):
        user, password = next(iter(self.users.items()))
        subprocess.run(["skopeo", "--insecure-policy", "copy", "--dest-cert-dir", str(self.authority.trusted), "--dest-creds",
                        f"{user}:{password}", f"oci:{layout.path}:{tag}", f"docker://{self.host}/{name}"], check=True,
                       capture_output=True)

    def credentials(self, path, user, password, *hosts, owner=0):
        """A file as `skopeo login --authfile` writes it."""
        entry = {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}
        path.write_text(json.dumps({"auths": {host: entry for host in (self.host, *hosts)}}))
        path.chmod(0o600)
        shutil.chown(path, owner)
        return str(path)

    def gets(self, pattern=""):
        """Requests that were answered so far and match: "blobs/", "manifests/"."""
        return len(re.findall(rf'"GET /v2/[^"]*{pattern}[^"]*" 200 ', self.output()))
