"""The test suite that Snakemake publishes for executors, a workflow with a failure, and a DAG of many rules."""
import os
import subprocess
import sys
import time
import unittest

import world

SUITE = '''
from typing import Optional

import snakemake.common.tests
from snakemake_executor_plugin_berth import ExecutorSettings


class TestWorkflows(snakemake.common.tests.TestWorkflowsLocalStorageBase):
    __test__ = True

    def get_executor(self) -> str:
        return "berth"

    def get_executor_settings(self) -> Optional[ExecutorSettings]:
        return ExecutorSettings(queue="research")

    def get_envvars(self):
        return ["HOME", "XDG_CACHE_HOME"]  # the user of the tasks has no home
'''
BAD = '''
envvars: "HOME", "XDG_CACHE_HOME"
rule bad:
    output: "x"
    shell: "echo the reason >&2; exit 3"
'''
MANY = '''
envvars: "HOME", "XDG_CACHE_HOME"
N = int(config["count"])
rule all:
    input: expand("done/{n}", n=range(N)), "sum"
rule one:
    output: "done/{n}"
    resources: mem_mb=100
    shell: "echo {wildcards.n} > {output}"
rule total:
    input: expand("done/{n}", n=range(N))
    output: "sum"
    resources: mem_mb=100
    shell: "cat {input} | awk '{{s+=$1}} END {{print s}}' > {output}"
'''


class Snakemake(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = world.start(agents=4, cpu="2")
        cls.addClassCleanup(cls.cluster.stop)

    def run_in(self, folder, *command):
        environment = {**os.environ, "BERTH_SERVER": self.cluster.server.address, "HOME": str(folder),
                       "XDG_CACHE_HOME": str(folder)}
        return subprocess.run([*world.as_task_user(), sys.executable, "-m", *command], cwd=folder, capture_output=True,
                              text=True, timeout=2000, env=environment)

    def test_the_suite_of_the_interface(self):
        folder = world.shared_folder(self.cluster, "suite")
        (folder / "test_suite.py").write_text(SUITE)
        result = self.run_in(folder, "pytest", "-q", "test_suite.py", f"--basetemp={folder}/t", "-p", "no:cacheprovider")
        self.assertEqual(result.returncode, 0, result.stdout[-6000:] + result.stderr[-2000:])
        self.assertRegex(result.stdout, r"\b2 passed")

    def test_a_failure_shows_the_output(self):
        folder = world.shared_folder(self.cluster, "failing")
        (folder / "Snakefile").write_text(BAD)
        result = self.run_in(folder, "snakemake", "--executor", "berth", "--berth-queue", "research", "--jobs", "2")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("exited with", result.stderr)
        logs = list((folder / ".snakemake" / "berth_logs").iterdir())
        self.assertIn("the reason", logs[0].read_text())

    def test_a_dag_of_many_rules(self):
        """SNAKEMAKE_RULES=500 measures."""
        count = int(os.environ.get("SNAKEMAKE_RULES", "24"))
        folder = world.shared_folder(self.cluster, "many")
        (folder / "Snakefile").write_text(MANY)
        began, used = time.monotonic(), os.times()
        result = self.run_in(folder, "snakemake", "--executor", "berth", "--berth-queue", "research", "--jobs", "100",
                             "--latency-wait", "30", "--config", f"count={count}")
        ended = os.times()
        print(f"{count} rules in {time.monotonic() - began:.0f} s; the Snakemake that submits took "
              f"{ended.children_user + ended.children_system - used.children_user - used.children_system:.0f} s of a core", flush=True)
        self.assertEqual(result.returncode, 0, result.stderr[-4000:])
        self.assertEqual((folder / "sum").read_text().strip(), str(sum(range(count))))


if __name__ == "__main__":
    unittest.main()
