#!/usr/bin/env python3
"""Invalid configuration: exit code 2, with file, line, column and a fix; a service manager then gives up."""
import os
import pathlib
import subprocess
import tempfile
import unittest

from berth_harness import BIN

USAGE = 2


class ConfigErrors(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="berth-test-")
        self.addCleanup(directory.cleanup)
        self.home = pathlib.Path(directory.name)

    def run_program(self, *arguments):
        result = subprocess.run([str(BIN / arguments[0]), *map(str, arguments[1:])], capture_output=True, text=True, timeout=60,
                                cwd=self.home)
        return result.returncode, result.stderr

    def refused(self, program, flag, text, *words):
        path = self.home / "config.yaml"
        path.write_text(text)
        code, said = self.run_program(program, flag, path)
        self.assertEqual(code, USAGE, said)
        for word in words:
            self.assertIn(word, said)
        return path

    def test_a_missing_file(self):
        for program, flag in [("berthd", "--config"), ("berth-agent", "--config"), ("berth-agent", "--simulate")]:
            with self.subTest(f"{program} {flag}"):
                code, said = self.run_program(program, flag, self.home / "no-such.yaml")
                self.assertEqual(code, USAGE, said)
                self.assertIn("no-such.yaml", said)

    def test_a_server_without_port(self):
        tasks = "" if os.getuid() != 0 else "taskUser: nobody\n"
        path = self.refused("berth-agent", "--config", f"# the agent\n{tasks}server: nope\n", "must be HOST:PORT, as in nope:7070")
        line = 2 if not tasks else 3
        self.assertIn(f"{path}:{line}:", self.run_program("berth-agent", "--config", path)[1])
        self.refused("berth-agent", "--simulate", "server: nope\nnodes: [{name: n1, cpu: 1}]\n", "config.yaml:1:", "HOST:PORT")

    def test_relative_directories(self):
        self.refused("berthd", "--config", "httpListen: \"off\"\ndataDirectory: var/data\n", "config.yaml:2:",
                     "must be an absolute path")
        self.refused("berthd", "--config", "backupDirectory: backups\n", "config.yaml:1:", "must be an absolute path")
        self.refused("berth-agent", "--config", "stateDirectory: var/agent\n", "config.yaml:1:", "must be an absolute path")
        for key in ("log: {file: berthd.log}", "tls: {certificate: a.pem, key: /k, ca: /c}"):
            self.refused("berthd", "--config", key + "\n", "config.yaml:1:", "must be an absolute path")
        for key in ("log: {file: agent.log}", "tls: {certificate: /c, key: a.key, ca: /c}", "discovery: {topologyFile: t.xml}"):
            self.refused("berth-agent", "--config", key + "\n", "config.yaml:1:", "must be an absolute path")
        self.assertFalse((self.home / "var").exists())

    def test_invalid_addresses(self):
        for address in ("http://berthd:7070", '"a b:7070"', "::1:7070"):
            with self.subTest(address):
                self.refused("berth-agent", "--config", f"server: {address}\n", "config.yaml:1:", "must be HOST:PORT")

    def test_a_log_file_that_cannot_be_written(self):
        """The service manager must not restart them repeatedly."""
        tasks = "" if os.getuid() != 0 else "taskUser: nobody\n"
        self.refused("berthd", "--config", f"httpListen: \"off\"\ndataDirectory: {self.home}/data\nlog: {{file: /proc/none/berthd.log}}\n",
                     "log.file", "/proc/none/berthd.log")
        self.refused("berth-agent", "--config", f"{tasks}stateDirectory: {self.home}/agent\nlog: {{file: /proc/none/agent.log}}\n",
                     "config.yaml:", "log.file", "/proc/none/agent.log")

    def test_a_configuration_is_checked_without_a_start(self):
        tasks = "" if os.getuid() != 0 else "taskUser: nobody\n"
        valid = {"berthd": f"dataDirectory: {self.home}/data\nlease: 20s\n", "berth-agent": f"{tasks}stateDirectory: {self.home}/agent\n"}
        for program, text in valid.items():
            path = self.home / "config.yaml"
            path.write_text(text)
            result = subprocess.run([BIN / program, "--config", path, "--check-config"], capture_output=True, text=True, timeout=60)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, f"{path}: valid\n", ""))
            path.write_text(text + "unknownKey: 1\n")
            code, said = self.run_program(program, "--config", path, "--check-config")
            self.assertEqual(code, USAGE)
            self.assertIn(f"{path}:3" if tasks or program == "berthd" else f"{path}:2", said)
            path.write_text(text + "tls: {certificate: /none.pem, key: /none.key, ca: /none.pem}\n")
            code, said = self.run_program(program, "--config", path, "--check-config")
            self.assertEqual(code, USAGE)
            self.assertIn("/none.pem", said)
        self.assertEqual([path.name for path in self.home.iterdir()], ["config.yaml"], "neither stores nor state directories are made")

    def test_other_errors_name_their_place(self):
        self.refused("berthd", "--config", "lease: 3s\nheartbeatInterval: 2s\n", "config.yaml:2:", "a third of lease")
        self.refused("berth-agent", "--config", "server: localhost:7070\nhealth:\n  interval: 2h\n", "config.yaml:3:", "1s..1h")


if __name__ == "__main__":
    unittest.main(verbosity=2)
