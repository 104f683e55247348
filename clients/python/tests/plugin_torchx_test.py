"""The real `torchx` with the scheduler for Berth: run, status, log, cancel, list."""
import os
import pathlib
import subprocess
import sys
import unittest

import world


class TorchX(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = world.start(agents=2)
        cls.addClassCleanup(cls.cluster.stop)

    def torchx(self, *arguments, code=0):
        environment = {**os.environ, "BERTH_SERVER": self.cluster.server.address, "HOME": str(self.cluster.home)}
        result = subprocess.run([str(pathlib.Path(sys.executable).parent / "torchx"), *arguments], cwd=self.cluster.home,
                                capture_output=True, text=True, timeout=120, env=environment)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def test_run_wait_log_list(self):
        said = self.torchx("run", "-s", "berth", "-cfg", "queue=research", "--wait", "--log", "utils.sh", "--num_replicas", "2",
                           "--cpu", "1", "--memMB", "64", "--image", "/tmp", "sh", "-c", "echo rank $RANK of $WORLD_SIZE")
        self.assertIn("SUCCEEDED", said)
        handle = next(word for word in said.split() if word.startswith("berth://"))
        self.assertRegex(self.torchx("status", handle), r"SUCCEEDED")
        logs = self.torchx("log", handle)
        self.assertIn("rank 0 of 2", logs)
        self.assertIn("rank 1 of 2", logs)
        self.assertIn(handle.rsplit("/", 1)[1], self.torchx("list", "-s", "berth"))

    def test_dry_run_cancel_and_refusals(self):
        arguments = ("utils.sh", "--cpu", "1", "--memMB", "64", "--image", "/tmp", "sleep", "600")
        dry = self.torchx("run", "-s", "berth", "-cfg", "queue=research,walltime=1h", "--dryrun", *arguments)
        self.assertIn("walltime: 1h", dry)
        self.assertIn("apiVersion: berth/v1", dry)
        said = self.torchx("run", "-s", "berth", "-cfg", "queue=research", *arguments)
        handle = next(word for word in said.split() if word.startswith("berth://"))
        self.torchx("cancel", handle)
        world.berth_harness.wait_until(lambda: "CANCELLED" in self.torchx("status", handle), 60, "cancelled", interval_s=0.5)
        refused = self.torchx("run", "-s", "berth", "-cfg", "queue=nowhere", *arguments, code=1)
        self.assertIn('there is no queue "nowhere"', refused)


if __name__ == "__main__":
    unittest.main()
