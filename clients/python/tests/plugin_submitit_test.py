"""submitit's own tests of a cluster, with Berth as the cluster; and preemption."""
import os
import pathlib
import subprocess
import sys
import time
import unittest

import world

import berth


class Counter:
    """As in submitit's documentation: it is checkpointed and called again."""

    def __init__(self):
        self.done = 0

    def __call__(self, steps, flag):
        import submitit
        while self.done < steps:
            self.done += 1
            if self.done == 5 and not pathlib.Path(flag).exists():
                pathlib.Path(flag).touch()
                time.sleep(60)
        return self.done, submitit.JobEnvironment().cluster

    def checkpoint(self, steps, flag):
        import submitit
        return submitit.helpers.DelayedSubmission(self, steps, flag)


class Submitit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = world.start(agents=4)
        cls.addClassCleanup(cls.cluster.stop)
        os.environ["BERTH_SERVER"] = cls.cluster.server.address
        cls.addClassCleanup(os.environ.pop, "BERTH_SERVER", None)
        import cloudpickle
        cloudpickle.register_pickle_by_value(sys.modules[__name__])

    def executor(self, name, **parameters):
        import submitit
        folder = world.shared_folder(self.cluster, name)
        executor = submitit.AutoExecutor(folder / "%j", cluster="berth")
        executor.update_parameters(berth_queue="research", timeout_min=5, cpus_per_task=1, **parameters)
        return executor

    def setUp(self):
        old = os.umask(0)  # tasks have another user
        self.addCleanup(os.umask, old)

    def test_results_errors_and_logs(self):
        executor = self.executor("plain")
        job = executor.submit(lambda a, b: (print("said"), a + b)[1], 2, b=3)
        self.assertEqual(job.result(), 5)
        self.assertIn("said", job.stdout())
        self.assertIn(job.state, ("COMPLETED", "RUNNING"))
        failed = executor.submit(divmod, 1, 0)
        self.assertIn("ZeroDivisionError", str(failed.exception()))

    def test_arrays_and_gangs(self):
        executor = self.executor("array")
        jobs = executor.map_array(pow, range(8), [2] * 8)
        self.assertEqual([job.result() for job in jobs], [n * n for n in range(8)])
        with berth.Client() as client:
            self.assertEqual(str(client.get(jobs[0].job_id.partition("_")[0]).array.size), "8")
        gang = self.executor("gang", nodes=2, tasks_per_node=2)

        def rank():
            import submitit
            environment = submitit.JobEnvironment()
            return environment.global_rank, environment.num_tasks
        self.assertEqual(sorted(gang.submit(rank).results()), [(n, 4) for n in range(4)])

    def test_the_error_of_a_gang_is_that_of_the_task_that_raised(self):
        def late(ranks):
            import os

            import submitit
            rank = submitit.JobEnvironment().global_rank
            if rank == 0:  # ends without a result, after the others have raised
                time.sleep(3)
                os._exit(1)
            time.sleep(ranks - rank)
            raise RuntimeError(f"rank {rank} failed")

        job = self.executor("late", tasks_per_node=3).submit(late, 3)
        self.assertIn("rank 1 failed", str(job.exception()))
        with self.assertRaisesRegex(Exception, "rank 1 failed"):
            job.results()

    def test_preemption_and_cancel(self):
        executor = self.executor("preempt")
        flag = self.cluster.home / "preempt" / "flag"
        job = executor.submit(Counter(), 9, str(flag))
        world.berth_harness.wait_until(flag.exists, 60, "the first attempt")
        job._interrupt()
        self.assertEqual(job.result(), (9, "berth"))
        long = executor.submit(time.sleep, 600)
        world.berth_harness.wait_until(lambda: long.state == "RUNNING", 60, "running")
        long.cancel()
        world.berth_harness.wait_until(lambda: long.state == "CANCELLED", 60, "cancelled")
        self.assertTrue(long.done())
        with self.assertRaisesRegex(NameError, "nonsense"):
            executor.update_parameters(nonsense=1)

    def test_submititis_own_tests(self):
        """Those that concern any executor, with ours in the place of the local one."""
        plugin = self.cluster.home / "conftest_berth.py"
        plugin.write_text(PLUGIN)
        chosen = ("test_local_map_array or test_local_submit_array or test_local_error or test_pickle_output_from_main or "
                  "test_get_first_task_error or test_stdout or test_load_submission or test_custom_checkpoint")
        base = world.shared_folder(self.cluster, "own")
        result = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "conftest_berth", "--pyargs", "submitit.local.test_local", "-k", chosen,
             f"--basetemp={base}/t", "-p", "no:cacheprovider"], cwd=self.cluster.home, capture_output=True, text=True, timeout=400,
            env={**os.environ, "PYTHONPATH": f"{self.cluster.home}:{os.environ.get('PYTHONPATH', '')}"})
        self.assertEqual(result.returncode, 0, result.stdout[-6000:] + result.stderr[-2000:])
        self.assertRegex(result.stdout, r"\b([89]|1\d) passed")


PLUGIN = '''
import os
import pathlib
import pytest
from berth.plugins import submitit as ours
from submitit.local import local

os.umask(0)


class Executor(ours.BerthExecutor):
    @classmethod
    def name(cls):
        return "berth"

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.update_parameters(queue="research", cpus_per_task=0.5)
        pathlib.Path(self.folder).mkdir(parents=True, exist_ok=True)


local.LocalExecutor = Executor


@pytest.fixture(autouse=True)
def open_to_tasks(tmp_path):
    for place in (tmp_path, tmp_path.parent):
        place.chmod(0o777)
'''


if __name__ == "__main__":
    unittest.main()
