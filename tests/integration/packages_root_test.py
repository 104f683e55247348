#!/usr/bin/env python3
"""Debian packages in clean Debian 12 roots with a running systemd: installation, an upgrade of the server and the agent
below 100 running tasks, removal and purge.

    tests/integration/packages_root_test.py           as root; a few minutes, and the network the first time

deploy/test leaves it out unless BERTH_ROOT_TESTS=1.
"""
import os
import pathlib
import shutil
import sys
import tempfile
import time
import unittest

from berth_harness import SANITIZED, wait_until
from debian_root import CACHE, Root, prepare
from packages_test import FILES, SERVICES, build

OLD, NEW = "0.0.1", "0.0.2"
USERS = {"berth", "berth-tasks", "berth-authd", "berth-web"}
TASKS = 100
LEASE_S = 15


def asked(module):
    """Whether somebody runs this test by hand, and not ctest."""
    return module == "__main__" and "BERTH_BUILD" not in os.environ or os.environ.get("BERTH_ROOT_TESTS") == "1"


@unittest.skipUnless(asked(__name__), "takes minutes and downloads a Debian; BERTH_ROOT_TESTS=1")
@unittest.skipIf(SANITIZED, "packages are made of a release build")
class PackagesRoot(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.getuid() != 0:
            raise AssertionError("run this as root")
        missing = [tool for tool in ("mmdebstrap", "systemd-nspawn", "nsenter") if shutil.which(tool) is None]
        if missing:
            raise AssertionError(f"{', '.join(missing)}: not installed: deploy/install-deps --test")
        prepare()
        cls.home = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=CACHE))
        cls.addClassCleanup(shutil.rmtree, cls.home, True)
        for version in (OLD, NEW):
            result = build(cls.home / "debs" / version, version)
            assert result.returncode == 0, result.stderr

    def root(self, name):
        root = Root(self.home / name, name, self.home / "debs")
        self.addCleanup(root.remove)
        return root

    def install(self, root, version=OLD):
        result = root.offline(f"apt-get update -qq && apt-get install -y --no-install-recommends /debs/{version}/*.deb")
        self.assertEqual(result.returncode, 0, result.stdout[-3000:] + result.stderr[-3000:])

    def test_installed_and_purged(self):
        root = self.root("clean")
        before = root.files()
        self.install(root)
        after = root.files()
        for name, files in FILES.items():
            for path in files:
                place = path if path in after else f"usr/{path}"  # a merged /usr: /lib is /usr/lib
                self.assertEqual(after[place][1:], ("0", "0"), f"{name}: {path}")
        accounts = {line.split(":")[0]: line.split(":") for line in (root.folder / "etc/passwd").read_text().splitlines()}
        self.assertLessEqual(USERS, set(accounts))
        for user in USERS:
            self.assertEqual(accounts[user][6], "/usr/sbin/nologin")
            self.assertLess(int(accounts[user][2]), 1000)
        wanted = {path for path in after if pathlib.Path(path).name.endswith(".service") and "multi-user.target.wants" in path}
        self.assertFalse({path for path in wanted if "berth" in path}, "enabled without being asked for")
        for command in ["berth --version", "berth completion bash | bash -n", "berthd --version", "berth-agent --version", "berth-sim --help >/dev/null",
                        "berth-web --version", "berth-authd --version",
                        "/usr/lib/berth/slurm/sinfo --version", "python3 -c 'import berth; berth.Job(\"x\", queue=\"q\")'",
                        "berth-agent --discover >/dev/null", "systemd-analyze verify --man=no " + " ".join(f"{name}.service" for name in SERVICES.values())]:
            result = root.offline(command)
            self.assertEqual((result.returncode, result.stderr), (0, ""), f"{command}: {result.stdout}")
        result = root.offline(f"dpkg --purge {' '.join(FILES)} && apt-get autoremove --purge -y -qq")
        self.assertEqual(result.returncode, 0, result.stderr)
        left = set(root.files()) - set(before)
        # Packages of Debian that came as dependencies leave some folders. No name with "berth" is left.
        self.assertFalse({path for path in left if "berth" in path}, left)

    def test_a_hundred_tasks_live_through_an_upgrade_of_server_and_agent(self):
        root = self.root("site")
        self.install(root)
        configuration = root.folder / "etc/berth/agent.yaml"
        configuration.write_text(configuration.read_text() + "server: 127.0.0.1:7070\nlabels: {kept: 'yes'}\n")
        edited = configuration.read_text()
        root.boot("--private-network")
        root.must("systemctl enable --now berthd berth-agent")
        wait_until(lambda: "Ready" in root.must("berth node list"), 60, "the node is ready", 1)
        self.check_owners(root)
        root.must(f"berth submit --name ticks --replicas {TASKS} --cpu 1m --memory 8Mi -- sleep 86399")
        wait_until(lambda: len(self.tasks(root)) == TASKS, 300, "all tasks run", 1)
        tasks, daemons = self.tasks(root), self.daemons(root)

        for version in (NEW, OLD):  # the way back, too
            root.must(f"dpkg -i /debs/{version}/berth-server_*.deb /debs/{version}/berth-agent_*.deb /debs/{version}/berth-client_*.deb")
            self.assertEqual(configuration.read_text(), edited)
            self.assertEqual(root.must("dpkg-query -W -f '${Version}' berth-agent"), version)
            self.assertFalse(set(daemons) & set(self.daemons(root)), "both were restarted")
            daemons = self.daemons(root)
            wait_until(lambda: "Ready" in root.must("berth node list"), 60, "the node is ready again", 1)
            time.sleep(2 * LEASE_S)
            self.assertEqual(self.tasks(root), tasks, "some tasks ended")
            self.assertRegex(root.must("berth job list --no-headers"), r"(?m)^ticks\b.*Running")

        # With tasks, the agent cannot be removed; the attempt changes nothing.
        refused = root.run("dpkg --remove berth-agent")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("berth-agent: tasks run on this node. Move them away first", refused.stderr)
        self.assertEqual(self.tasks(root), tasks)
        self.assertEqual(root.must("systemctl is-active berth-agent").strip(), "active")

        root.must("berth job cancel ticks --yes")
        wait_until(lambda: not self.tasks(root) and root.run("pgrep -f /berth-supervisor").returncode == 1, 120, "all have ended", 1)
        self.purge(root)

    def tasks(self, root):
        """{(pid, start)} of the tasks' processes: the same set before and after means that none of them ended."""
        lines = root.run("ps -u berth-tasks -o pid=,lstart=,args=").stdout.splitlines()
        return {line.strip() for line in lines if "sleep 86399" in line}

    def daemons(self, root):
        return root.must("systemctl show -P MainPID berthd berth-agent").split()

    def check_owners(self, root):
        """StateDirectory= and the users of the packages."""
        self.assertEqual(root.must("stat -c '%U %G %a' /var/lib/berth").strip(), "berth berth 700")
        self.assertEqual(root.must("stat -c '%U %G %a' /var/lib/berth-agent").strip(), "root root 711")
        self.assertEqual(root.must("ps -o user= -C berthd").strip(), "berth")
        self.assertIn("berthd", root.must("journalctl -u berthd --no-pager"))
        self.assertEqual(root.must("find /var/log -name '*berth*'"), "")  # the journal only

    def purge(self, root):
        root.must(f"dpkg --remove {' '.join(FILES)}")
        self.assertEqual(root.run("pgrep -f berth").stdout, "")
        self.assertTrue((root.folder / "var/lib/berth").exists(), "only a purge removes the store")
        root.must(f"dpkg --purge {' '.join(FILES)}")
        self.assertNotIn("berth", root.must("systemctl list-unit-files --no-pager"))
        left = [path for path in root.files() if "berth" in path]
        self.assertEqual(left, [])


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
