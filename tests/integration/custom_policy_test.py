#!/usr/bin/env python3
"""An installed Berth is enough to build a berthd with custom policies: deploy/examples/custom-policy, whose filter and
score then decide where tasks run. The stock berthd and berth-sim reject files that name them."""
import os
import pathlib
import subprocess
import unittest

from berth_harness import BIN, SOURCE, Cluster

BUILD = pathlib.Path(os.environ.get("BERTH_BUILD", BIN.parent))
POLICIES = {"filters": ["resources/devices", "node_selector", "taints", "maintenance"],
            "scores": ["newest_first", "best_fit"]}
USAGE, BROKEN = 2, 2


def node(name, generation, **labels):
    return {"name": name, "cpu": 8, "memory": "8Gi", "runTime": "1h",
            "labels": {"generation": str(generation), **labels}}


NODES = [node("old", 1), node("new", 3), node("leaving", 9, maintenance="soon")]


def build_settings():
    cache = (BUILD / "CMakeCache.txt").read_text().splitlines()
    settings = [line.split("=", 1) for line in cache if "=" in line and not line.startswith(("#", "//"))]
    return {name.split(":")[0]: value for name, value in settings}


SETTINGS = build_settings()
# Objects with sanitizers or coverage counters require the same in the program that links them.
FOR_ITSELF = bool(SETTINGS.get("BERTH_SANITIZE")) or SETTINGS.get("BERTH_COVERAGE") == "ON"


@unittest.skipIf(FOR_ITSELF, "a build with sanitizers or coverage cannot be linked by other programs")
class CustomPolicy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster({"scheduling": POLICIES})
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        prefix, build = cls.cluster.home / "prefix", cls.cluster.home / "build"
        cls.command("cmake", "--install", BUILD, "--prefix", prefix)
        cls.command("cmake", "-G", SETTINGS["CMAKE_GENERATOR"], "-S", SOURCE / "deploy/examples/custom-policy", "-B", build,
                    f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
        cls.command("cmake", "--build", build, "-j", "2")
        cls.custom = build / "custom-berthd"
        cls.stock = list(cls.cluster.server.arguments)
        cls.cluster.server.arguments[0] = str(cls.custom)
        cls.cluster.server.start()
        cls.cluster.add_simulation(NODES)
        cls.cluster.wait_nodes(len(NODES))
        cls.cluster.berth("queue", "create", "q")

    @classmethod
    def command(cls, *words):
        result = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=600)
        assert result.returncode == 0, f"{words}:\n{result.stdout[-3000:]}{result.stderr[-3000:]}"

    def submit(self, name, cpu, tolerations="[]"):
        self.cluster.berth("submit", self.cluster.manifest(
            f"apiVersion: berth/v1\nkind: Job\nname: {name}\nqueue: q\ngroups:\n- name: w\n  replicas: 1\n"
            f"  resources: {{cpu: {cpu}}}\n  command: [run]\n  tolerations: {tolerations}\n"))

    def runs_on(self, name):
        self.cluster.wait_job(name, "RUNNING")
        return [task.node for task in self.cluster.api.tasks(name)]

    def test_the_filter_and_the_score_decide_where_tasks_run(self):
        for name, where in [("first", "new"), ("second", "old")]:  # the newest first, except the one under maintenance
            self.submit(name, 8)
            self.assertEqual(self.runs_on(name), [where])
        self.submit("third", 8)
        self.submit("tolerant", 4, "[{key: maintenance}]")  # starts after "third" was evaluated
        self.assertEqual(self.runs_on("tolerant"), ["leaving"])
        waiting = self.cluster.wait_job("third", "PENDING")
        self.assertFalse([task.node for task in self.cluster.api.tasks("third") if task.node])
        self.assertTrue(waiting.status.reasons)
        self.cluster.berth("job", "cancel", "first")
        self.assertEqual(self.runs_on("third"), ["new"])

    def test_the_stock_programs_reject_them_by_name(self):
        data = self.cluster.home / "stock-data"
        result = subprocess.run([*self.stock[:-1], str(data)], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, USAGE, result.stderr)
        for unknown in ('unknown filter "maintenance"', 'unknown score "newest_first"'):
            self.assertIn(unknown, result.stdout + result.stderr)
        self.assertFalse(data.exists())

    def test_z_a_program_with_the_policies_verifies_the_log(self):  # last: it stops the server
        self.cluster.server.stop()
        result = subprocess.run([str(BIN / "berth-sim"), "verify", str(self.cluster.server.data)],
                                capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, BROKEN, result.stdout + result.stderr)
        self.assertIn('unknown filter "maintenance"', result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
