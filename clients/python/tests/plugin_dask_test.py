"""dask-jobqueue's own tests with BerthCluster, and a real cluster: scale, adapt, lost workers, output, refusals."""
import os
import pathlib
import subprocess
import sys
import time
import unittest

import world

import berth

# Fixtures that its repository has and its package lacks.
FIXTURES = '''
import dask
import pytest
from berth.plugins.dask import BerthCluster

dask.config.set({"jobqueue.berth.queue": "research"})
from distributed.utils_test import loop, loop_in_thread, cleanup  # remembers the configuration


@pytest.fixture
def Cluster():
    return BerthCluster


@pytest.fixture
def EnvSpecificCluster():
    return BerthCluster
'''
# The others are about Slurm and the like, or need files that the package lacks.
LEFT_OUT = ("not qsub and not error_handling and not header_lines and not header_skip and not test_nworkers_scale and "
            "not (test_security and not temporary)")


class Dask(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = world.start(agents=4)
        cls.addClassCleanup(cls.cluster.stop)
        os.environ["BERTH_SERVER"] = cls.cluster.server.address
        cls.addClassCleanup(os.environ.pop, "BERTH_SERVER", None)
        cls.folder = world.shared_folder(cls.cluster, "dask")

    def make(self, **options):
        from berth.plugins.dask import BerthCluster
        made = BerthCluster(**{"queue": "research", "cores": 1, "memory": "500MB", "local_directory": str(self.folder),
                               "scheduler_options": {"dashboard_address": ":0"}, **options})
        self.addCleanup(made.close)
        return made

    def test_its_own_tests(self):
        (self.folder / "conftest_berth.py").write_text(FIXTURES)
        result = subprocess.run(
            [*world.as_task_user(), sys.executable, "-m", "pytest", "-q", "-p", "conftest_berth", "-p", "no:cacheprovider", "--pyargs",
             "dask_jobqueue.tests.test_job", "dask_jobqueue.tests.test_jobqueue_core", "-k", LEFT_OUT, "-o", "asyncio_mode=auto",
             f"--basetemp={self.folder}/t"], cwd=self.folder, capture_output=True, text=True, timeout=500,
            env={**os.environ, "PYTHONPATH": str(self.folder), "HOME": str(self.folder)})
        self.assertEqual(result.returncode, 0, result.stdout[-8000:] + result.stderr[-2000:])
        self.assertRegex(result.stdout, r"\b(2\d|3\d|4\d) passed")

    def test_scale_up_and_down(self):
        import distributed
        cluster = self.make(walltime="00:10:00", job_extra_directives={"priority": 7, "labels": {"team": "dask"}})
        with distributed.Client(cluster) as client, berth.Client() as server:
            cluster.scale(jobs=3)
            client.wait_for_workers(3, timeout=60)
            self.assertEqual(sum(client.gather(client.map(lambda n: n * n, range(50)))), sum(n * n for n in range(50)))
            jobs = [server.get(job.name) for job in server.jobs(labels={"team": "dask"})]
            self.assertEqual([(job.priority, job.walltime.total_seconds()) for job in jobs], [(7, 600)] * 3)
            self.assertEqual({worker["name"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()},
                             set(cluster.worker_spec))
            cluster.scale(jobs=1)
            world.berth_harness.wait_until(
                lambda: sum(job.status.state == "Running" for job in server.jobs(labels={"team": "dask"})) == 1, 60, "one job")
        cluster.close()
        with berth.Client() as server:
            world.berth_harness.wait_until(lambda: not list(server.jobs(labels={"team": "dask"}, active=True)), 60, "no job")

    def test_adapt_replaces_a_lost_worker(self):
        import distributed
        cluster = self.make(job=berth.Job(labels={"team": "lost"}))
        with distributed.Client(cluster) as client, berth.Client() as server:
            cluster.adapt(minimum_jobs=1, maximum_jobs=1, interval="1s")
            client.wait_for_workers(1, timeout=60)
            first = next(iter(server.jobs(labels={"team": "lost"}))).name
            with self.assertLogs("berth.plugins.dask", "WARNING") as said:
                server.cancel(first, reason="somebody else needs it", force=True)
                world.berth_harness.wait_until(
                    lambda: any(job.name != first and job.status.state == "Running" for job in server.jobs(labels={"team": "lost"})),
                    90, "another job")
            self.assertIn("somebody else needs it", said.output[0])
            self.assertEqual(client.submit(lambda: 7).result(timeout=60), 7)

    def test_adapt_follows_the_load(self):
        import distributed
        cluster = self.make(job=berth.Job(labels={"team": "adapt"}), processes=1)
        cluster.adapt(minimum_jobs=0, maximum_jobs=3, interval="200ms", wait_count=2)
        with distributed.Client(cluster) as client, berth.Client() as server:
            futures = client.map(lambda n: time.sleep(1) or n, range(12), pure=False)
            self.assertEqual(client.gather(futures), list(range(12)))
            del futures
            made = len(list(server.jobs(labels={"team": "adapt"})))
            self.assertTrue(1 <= made <= 6, made)
            world.berth_harness.wait_until(lambda: not list(server.jobs(labels={"team": "adapt"}, active=True)), 60, "no job")

    def test_output_in_files(self):
        import distributed
        cluster = self.make(log_directory=str(world.shared_folder(self.cluster, "logs")))
        with distributed.Client(cluster) as client:
            cluster.scale(jobs=1)
            client.wait_for_workers(1, timeout=60)
        written = [path.read_text() for path in pathlib.Path(self.cluster.home / "logs").glob("dask-worker-*.err")]
        self.assertTrue(any("Registered to" in text for text in written), written)

    def test_refusals(self):
        from berth.plugins.dask import BerthCluster
        with self.assertRaisesRegex(ValueError, "has no directives"):
            BerthCluster(cores=1, memory="1GB", job_directives_skip=["-x"])
        with self.assertRaisesRegex(berth.InvalidArgument, "wrong_field"):
            BerthCluster(cores=1, memory="1GB", job_extra_directives={"wrong_field": 1})
        self.assertIn("queue: research", self.make().manifest())


if __name__ == "__main__":
    unittest.main()
