"""Parsl's own tests of applications, errors and scaling over BerthProvider; blocks of several nodes, and how blocks end."""
import os
import subprocess
import sys
import unittest

import world

import berth

# Python's managers have sockets in TMPDIR, which has a long name here.
CONFIG = '''
import os
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from berth.plugins.parsl import BerthProvider


def fresh_config():
    return Config(executors=[HighThroughputExecutor(
        label="berth", address="127.0.0.1", encrypted=True, max_workers_per_node=2,
        provider=BerthProvider("research", worker_init="export TMPDIR=/tmp PATH=" + os.environ["PATH"], cores_per_node=2,
                               mem_per_node=1, init_blocks=1, max_blocks=2))], usage_tracking=0)
'''
# In the place of Parsl's own provider, which starts processes of this machine.
IN_ITS_PLACE = '''
import os
import parsl.providers
from berth.plugins.parsl import BerthProvider


def provider(launcher=None, worker_init="", **options):
    return BerthProvider("research", worker_init=f"export TMPDIR=/tmp PATH={os.environ['PATH']}\\n{worker_init}", **options)


parsl.providers.LocalProvider = provider
'''
APPS = ["test_python_apps", "test_bash_apps", "test_error_handling", "sites/test_concurrent.py"]
SCALING = ["test_scaling/test_scale_down.py", "test_htex/test_connected_blocks.py", "test_htex/test_disconnected_blocks.py",
           "test_htex/test_multiple_disconnected_blocks.py", "test_htex/test_missing_worker.py"]


PATH = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"


class Parsl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = world.start(agents=4)
        cls.addClassCleanup(cls.cluster.stop)
        os.environ["BERTH_SERVER"] = cls.cluster.server.address
        cls.addClassCleanup(os.environ.pop, "BERTH_SERVER", None)
        cls.folder = world.shared_folder(cls.cluster, "parsl")

    def its_tests(self, files, *options):
        import parsl.tests
        place = os.path.dirname(parsl.tests.__file__)
        (self.folder / "config.py").write_text(CONFIG)
        (self.folder / "in_its_place.py").write_text(IN_ITS_PLACE)
        result = subprocess.run(
            [*world.as_task_user(), sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={place}",
             f"--confcutdir={place}", *options, *(f"{place}/{name}" for name in files)],
            cwd=self.folder, capture_output=True, text=True, timeout=500,
            env={**os.environ, "PYTHONPATH": str(self.folder), "HOME": str(self.folder), "PATH": PATH})
        self.assertEqual(result.returncode, 0, result.stdout[-8000:] + result.stderr[-2000:])
        return int(result.stdout.rpartition(" passed")[0].split()[-1])

    def test_its_own_tests_of_applications(self):
        self.assertGreater(self.its_tests(
            APPS, "--config=config.py", "-k", "not issue3328 and not (timeout_after_exception and 0.005)"), 80)

    def test_its_own_tests_of_scaling(self):
        self.assertGreater(self.its_tests(SCALING, "--config=local", "-p", "in_its_place"), 4)

    def test_a_block_of_two_nodes(self):
        from parsl.jobs.states import JobState

        from berth.plugins.parsl import BerthProvider
        provider = BerthProvider("research", cores_per_node=2, mem_per_node=0.1, nodes_per_block=2, job=berth.Job(priority=3))
        block = provider.submit("echo $NODE_RANK $WORLD_SIZE $PARSL_CORES $index; exit $NODE_RANK", 2)
        self.wait_for(provider, block, JobState.FAILED)
        self.assertEqual(provider.status([block])[0].exit_code, 1)
        with berth.Client() as client:
            self.assertEqual(client.get(block).priority, 3)
            tasks = list(client.tasks(job=block))
            self.assertEqual(len({task.node for task in tasks}), 2)
            logs = [sorted(b"".join(client.logs(block, f"node-{index}")).split(b"\n")[:-1]) for index in (0, 1)]
            # Ranks follow the places of tasks, not their indexes.
            self.assertEqual(sorted(logs), [[b"0 2 2 1", b"0 2 2 2"], [b"1 2 2 1", b"1 2 2 2"]])

    def wait_for(self, provider, block, state):
        world.berth_harness.wait_until(lambda: provider.status([block])[0].state == state, 60, state)

    def test_ends_of_blocks(self):
        from parsl.jobs.states import JobState
        from parsl.providers.errors import SubmitException

        from berth.plugins.parsl import BerthProvider
        provider = BerthProvider("research", walltime="4s")
        block = provider.submit("sleep 60", 1)
        self.wait_for(provider, block, JobState.RUNNING)
        self.wait_for(provider, block, JobState.TIMEOUT)
        self.assertEqual(provider.cancel([block]), [False])
        provider = BerthProvider("research", worker_init="echo begin")
        block = provider.submit("sleep 60", 1)
        self.wait_for(provider, block, JobState.RUNNING)
        self.assertEqual(provider.cancel([block]), [True])
        self.wait_for(provider, block, JobState.CANCELLED)
        with self.assertRaisesRegex(SubmitException, 'there is no queue "nowhere"'):
            BerthProvider("nowhere").submit("true", 1)


if __name__ == "__main__":
    unittest.main()
