#!/usr/bin/env python3
"""The units under deploy/systemd: settings that tasks and the store depend on are present, systemd accepts the units,
and all but the agent stay sandboxed. No systemd runs here; without systemd-analyze that part is skipped.
"""
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from berth_harness import BIN, SOURCE

UNITS = SOURCE / "deploy" / "systemd"
WORST_EXPOSURE = 20  # of 100, by `systemd-analyze security`


def read(name):
    """{(section, key): [values]}; empty values are kept, because they have a meaning."""
    settings, section = {}, None
    for line in (UNITS / name).read_text().splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            section = line.strip("[]")
            continue
        key, value = line.split("=", 1)
        settings.setdefault((section, key), []).append(value)
    return settings


class Systemd(unittest.TestCase):
    def service(self, settings, key):
        values = settings.get(("Service", key), [])
        self.assertEqual(len(values), 1, f"{key}: {values}")
        return values[0]

    def test_tasks_outlive_the_agent(self):
        agent = read("berth-agent.service")
        self.assertEqual(self.service(agent, "KillMode"), "process")
        self.assertEqual(self.service(agent, "OOMPolicy"), "continue")
        self.assertEqual(self.service(agent, "TasksMax"), "infinity")
        inherited = {key for _, key in agent} & {
            "PrivateTmp", "ProtectSystem", "ProtectHome", "PrivateDevices", "NoNewPrivileges", "SystemCallFilter",
            "RestrictAddressFamilies", "MemoryDenyWriteExecute", "OOMScoreAdjust", "User", "DynamicUser"}
        self.assertFalse(inherited, "tasks would inherit these")
        kept = set(" ".join(agent["Service", "CapabilityBoundingSet"]).split())
        self.assertLessEqual({"CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_CHOWN"}, kept)
        self.assertRegex((UNITS / "berth-agent.sysusers").read_text(), r"(?m)^u berth-tasks ")

    @unittest.skipIf(shutil.which("systemd-analyze") is None, "systemd-analyze is not installed")
    def test_the_unit_of_the_agent_argues_for_each_part_of_the_sandbox_that_it_leaves_out(self):
        text = (UNITS / "berth-agent.service").read_text()
        comments = "\n".join(line for line in text.splitlines() if line.startswith("#"))
        table = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", "--json=short",
                                str(UNITS / "berth-agent.service")], capture_output=True, text=True, timeout=60).stdout
        missing = {entry["json_field"] for entry in json.loads(table) if entry["set"] is False}
        names = {"RootDirectoryOrRootImage": "RootDirectory", "SystemCallFilter": "SystemCallFilter"}
        sandbox = {names.get(field, field).split("_")[0] for field in missing}
        sandbox -= {"CapabilityBoundingSet", "UserOrDynamicUser", "User"}  # argued beside their own line
        self.assertGreater(len(sandbox), 10)
        self.assertEqual({field for field in sandbox if field not in comments}, set())

    def test_berthd_is_not_root_and_writes_only_its_store(self):
        berthd = read("berthd.service")
        user = self.service(berthd, "User")
        self.assertRegex((UNITS / "berthd.sysusers").read_text(), rf"(?m)^u {user} ")
        self.assertEqual(self.service(berthd, "StateDirectory"), "berth")  # /var/lib/berth, the default data directory
        self.assertEqual(self.service(berthd, "CapabilityBoundingSet"), "")
        self.assertEqual(self.service(berthd, "ProtectSystem"), "strict")
        self.assertEqual(self.service(berthd, "NoNewPrivileges"), "yes")

    def test_berth_authd_has_no_rights_and_sees_the_users_of_the_machine(self):
        authd = read("berth-authd.service")
        user = self.service(authd, "User")
        self.assertRegex((UNITS / "berth-authd.sysusers").read_text(), rf"(?m)^u {user} ")
        self.assertEqual(self.service(authd, "RuntimeDirectory"), "berth")  # /run/berth, where its socket is
        self.assertEqual(self.service(authd, "RuntimeDirectoryMode"), "0755")
        self.assertEqual(self.service(authd, "CapabilityBoundingSet"), "")
        self.assertEqual(self.service(authd, "NoNewPrivileges"), "yes")
        self.assertNotIn(("Service", "PrivateUsers"), authd)  # the kernel would report all others as nobody

    def test_berth_web_has_no_rights_but_port_443(self):
        web = read("berth-web.service")
        user = self.service(web, "User")
        self.assertRegex((UNITS / "berth-web.sysusers").read_text(), rf"(?m)^u {user} ")
        self.assertEqual(self.service(web, "CapabilityBoundingSet"), "CAP_NET_BIND_SERVICE")
        self.assertEqual(self.service(web, "NoNewPrivileges"), "yes")
        self.assertEqual(self.service(web, "ProtectSystem"), "strict")

    def test_all_are_restarted_but_not_with_an_invalid_configuration(self):
        for name in ["berthd", "berth-agent", "berth-authd", "berth-web"]:
            unit = read(f"{name}.service")
            self.assertEqual(self.service(unit, "Restart"), "on-failure")
            self.assertEqual(self.service(unit, "RestartPreventExitStatus"), "2")
            self.assertEqual(unit["Unit", "StartLimitIntervalSec"], ["0"])
            command = self.service(unit, "ExecStart").split()
            self.assertEqual(command[0], f"/usr/bin/{name}")
            usage = subprocess.run([str(BIN / name), "--help"], capture_output=True, text=True, timeout=20).stdout
            for flag in re.findall(r"--[a-z-]+", " ".join(command)):
                self.assertIn(flag, usage)
            with tempfile.NamedTemporaryFile(suffix=".yaml") as wrong:
                wrong.write(b"nonsense: 1\n")
                wrong.flush()
                result = subprocess.run([str(BIN / name), *command[1:-1], wrong.name], capture_output=True, timeout=20)
            self.assertEqual(result.returncode, 2)

    @unittest.skipIf(shutil.which("systemd-analyze") is None, "systemd-analyze is not installed")
    def test_systemd_accepts_them(self):
        with tempfile.TemporaryDirectory() as home:
            for name in ["berthd.service", "berth-agent.service", "berth-authd.service", "berth-web.service", "berth-backup.service"]:  # programs must exist there
                text = (UNITS / name).read_text().replace("/usr/bin/", f"{BIN.resolve()}/").replace("/usr/libexec/berth/", f"{UNITS}/")
                unit = pathlib.Path(home, name)
                unit.write_text(text)
                result = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60)
                self.assertEqual((result.returncode, result.stdout + result.stderr), (0, ""), name)
            for name in ["berthd.service", "berth-authd.service", "berth-web.service", "berth-backup.service"]:
                result = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager",
                                         f"--threshold={WORST_EXPOSURE}", str(pathlib.Path(home, name))],
                                        capture_output=True, text=True, timeout=60)
                self.assertEqual(result.returncode, 0, result.stdout[-300:])


if __name__ == "__main__":
    unittest.main(verbosity=2)
