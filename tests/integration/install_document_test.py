#!/usr/bin/env python3
"""docs/operators/install.md, Three machines: its commands, word for word, on three Debian 12 machines with networks of their
own.

    tests/integration/install_document_test.py        as root; a few minutes, and the network the first time

deploy/test leaves it out unless BERTH_ROOT_TESTS=1.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from berth_harness import SANITIZED, SOURCE, wait_until
from debian_root import CACHE, Root, prepare
from packages_root_test import asked
from packages_test import build

DOCUMENT = SOURCE / "docs" / "operators" / "install.md"
MACHINES = {"berthd": "10.77.0.1", "n1": "10.77.0.11", "n2": "10.77.0.12"}
BRIDGE = "berth-doc"
LONGEST_S = 120  # all commands together


def blocks():
    """[([machine], commands)]: the blocks of the section that begin with a comment "# on MACHINE and MACHINE"."""
    section = DOCUMENT.read_text().split("### Three machines\n")[1].split("\n### ")[0]
    found = re.findall(r"^```\n# on ([^\n]*)\n(.*?)^```$", section, re.M | re.S)
    if len(found) != section.count("```") // 2:
        raise AssertionError("a block of the document does not say where it is run")
    return [(where.split(" and "), commands) for where, commands in found]


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


class Document(unittest.TestCase):
    def test_each_block_names_its_machines(self):
        self.assertEqual([where for where, _ in blocks()], [["berthd"], ["n1", "n2"], ["berthd"]])


@unittest.skipUnless(asked(__name__), "takes minutes and downloads a Debian; BERTH_ROOT_TESTS=1")
@unittest.skipIf(SANITIZED, "packages are made of a release build")
class InstallDocument(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        prepare()
        cls.home = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=CACHE))
        cls.addClassCleanup(shutil.rmtree, cls.home, True)
        result = build(cls.home / "debs")
        assert result.returncode == 0, result.stderr
        cls.make_network()
        cls.machines = {}
        for name in MACHINES:
            cls.machines[name] = machine = Root(cls.home / name, name, cls.home / "debs")
            cls.addClassCleanup(machine.remove)
            cls.furnish(machine)
        # The packages that apt needs beside ours: there is no way out of these networks.
        first = cls.machines["berthd"].offline("apt-get update -qq && apt-get install -y --download-only /debs/berth-*.deb")
        assert first.returncode == 0, first.stderr
        for name, machine in cls.machines.items():
            machine.take_kept()
            machine.boot(f"--network-namespace-path=/run/netns/{BRIDGE}-{name}")

    @classmethod
    def make_network(cls):
        """A bridge, and a network namespace for each machine with one end of a cable to it."""
        ip("link", "add", BRIDGE, "type", "bridge")
        cls.addClassCleanup(ip, "link", "delete", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for name, address in MACHINES.items():
            space = f"{BRIDGE}-{name}"
            ip("netns", "add", space)
            cls.addClassCleanup(ip, "netns", "delete", space)
            ip("link", "add", f"bdoc-{name}", "type", "veth", "peer", "name", "host0", "netns", space)
            ip("link", "set", f"bdoc-{name}", "master", BRIDGE, "up")
            ip("-n", space, "link", "set", "lo", "up")
            ip("-n", space, "address", "add", f"{address}/24", "dev", "host0")
            ip("-n", space, "link", "set", "host0", "up")

    @classmethod
    def furnish(cls, machine):
        """What the document presupposes: names, ssh from berthd, and the packages in root's directory there."""
        names = "".join(f"{address} {name}\n" for name, address in MACHINES.items())
        (machine.folder / "etc/hosts").write_text("127.0.0.1 localhost\n" + names)
        ssh = machine.folder / "root/.ssh"
        ssh.mkdir(mode=0o700, exist_ok=True)
        key = cls.home / "ssh-key"
        if not key.exists():
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        shutil.copy(f"{key}.pub", ssh / "authorized_keys")
        if machine.name == "berthd":
            shutil.copy(key, ssh / "id_ed25519")
            (ssh / "config").write_text("StrictHostKeyChecking accept-new\nLogLevel ERROR\n")
            for package in (cls.home / "debs").glob("*.deb"):
                shutil.copy(package, machine.folder / "root")

    def test_the_commands_lead_to_a_job_on_two_nodes(self):
        begin, prefix = time.monotonic(), "set -e; "
        for where, commands in blocks():
            for name in where:
                if "berth node list" in commands:
                    self.wait_for_nodes()
                # One shell on each machine: the last block goes on where the first has ended.
                place = "cd /root/pki; " if name == "berthd" and "pki" not in commands else "cd /root; "
                output = self.machines[name].must(prefix + place + commands, 600)
        took = time.monotonic() - begin
        self.assertRegex(output, r"(?m)^n1\b.*Ready")
        self.assertRegex(output, r"(?m)^n2\b.*Ready")
        self.assertEqual(set(re.findall(r"(?m)^\[worker-[01]\] (n[12])$", output)), {"n1", "n2"})
        print(f"the commands of the document took {took:.0f} s", flush=True)
        self.assertLess(took, LONGEST_S)
        for name in ("n1", "n2"):
            self.assertFalse((self.machines[name].folder / "root/agent.key").exists())

    def wait_for_nodes(self):
        """A person types the next line later than a test does."""
        environment = next(commands for _, commands in blocks() if "berth node list" in commands).split("berth node list")[0]
        wait_until(lambda: self.machines["berthd"].must(f"cd /root/pki; {environment} berth node list").count("Ready") == 2, 60,
                   "both nodes are ready", 1)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
