"""PSI/J's own tests of an executor, which its source has; jobs of several nodes, refusals."""
import os
import shutil
import subprocess
import sys
import unittest

import world

import berth

# Of its repository, and neither in its package nor in its source archive: what its tests import.
PARAMS = '''
class ExecutorTestParams:
    executor, launcher, url = "berth", "LAUNCHER", None
    account, queue_name, multi_node_queue_name, custom_attributes = None, "research", None, None
'''
TOOLS = '''
import contextlib, pathlib, shutil, tempfile
import psij

HOME = pathlib.Path.home() / ".psij" / "test"
PLACE = HOME


def _make_test_dir():
    HOME.mkdir(parents=True, exist_ok=True)


def _get_timeout(params):
    from datetime import timedelta
    return timedelta(seconds=60)


def assert_completed(job, status, attached=False):
    assert status is not None and status.state == psij.JobState.COMPLETED, (status, job.spec)
    assert status.exit_code == 0, status


def _get_executor_instance(params, job=None):
    if job is not None:
        job.spec.launcher = params.launcher
        job.spec.attributes = psij.JobAttributes(queue_name=params.queue_name)
    return psij.JobExecutor.get_instance(params.executor)


@contextlib.contextmanager
def _deploy(path):
    with tempfile.TemporaryDirectory(dir=HOME) as folder:
        yield pathlib.Path(shutil.copy(path, folder))
'''
FIXTURES = '''
import pytest
from executor_test_params import ExecutorTestParams


@pytest.fixture
def execparams():
    return ExecutorTestParams()
'''
# The others are about descriptors, other executors and documents.
FILES = ["test_executor.py", "test_resources.py", "test_issue_435.py"]
LEFT_OUT = "not script_generation and not resource_generation"


class PsiJ(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = world.start(agents=4)
        cls.addClassCleanup(cls.cluster.stop)
        os.environ["BERTH_SERVER"] = cls.cluster.server.address
        cls.addClassCleanup(os.environ.pop, "BERTH_SERVER", None)
        cls.folder = world.shared_folder(cls.cluster, "psij")

    def test_its_own_tests(self):
        import psij.version
        place = world.shared_folder(self.cluster, "source")
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                        "--no-binary", ":all:", f"psij-python=={psij.version.VERSION}", "-d", str(place)],
                       check=True)
        shutil.unpack_archive(next(place.glob("*.tar.gz")), place)
        tests = next(place.glob("psij-python-*/tests"))
        (tests / "_test_tools.py").write_text(TOOLS)
        (tests / "conftest.py").write_text(FIXTURES)
        for launcher in ("single", "multiple"):
            with self.subTest(launcher):
                (tests / "executor_test_params.py").write_text(PARAMS.replace("LAUNCHER", launcher))
                result = subprocess.run(
                    [*world.as_task_user(), sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *FILES, "-k", LEFT_OUT],
                    cwd=tests, capture_output=True, text=True, timeout=300,
                    env={**os.environ, "HOME": str(self.folder)})
                self.assertEqual(result.returncode, 0, result.stdout[-6000:] + result.stderr[-2000:])
                self.assertRegex(result.stdout, r"\b1[5-9] passed")

    def run_job(self, state="COMPLETED", **spec):
        import psij
        attributes = psij.JobAttributes(queue_name="research", account="ada", custom_attributes={
            "berth.priority": 4, "slurm.qos": "is for another executor"})
        job = psij.Job(psij.JobSpec(attributes=attributes, **spec))
        seen = []
        job.set_job_status_callback(lambda job, status: seen.append(status.state.name))
        psij.JobExecutor.get_instance("berth", url=self.cluster.server.address).submit(job)
        status = job.wait()
        self.assertEqual(seen, ["QUEUED", "ACTIVE", state])
        return job, status

    def test_processes_on_two_nodes(self):
        import psij
        out = self.folder / "two"
        job, _ = self.run_job(executable="/bin/sh", arguments=["-c", 'echo "$0 $BERTH_NODE $_PSI_J_PROCESS_INDEX_"', "$$HOME $HOME"],
                              stdout_path=out, launcher="multiple", resources=psij.ResourceSpecV1(
                                  node_count=2, processes_per_node=2, memory=200_000_000))
        lines = sorted(out.read_text().splitlines())
        self.assertEqual({line.split()[2] for line in lines} and len({line.split()[2] for line in lines}), 2, lines)
        self.assertEqual(sorted((line.rsplit(" ", 2)[0], line.split()[3]) for line in lines),
                         [("$$HOME $HOME", index) for index in "1122"])
        with berth.Client() as client:
            made = client.get(job.native_id)
        self.assertEqual((made.priority, made.labels, made.groups[0].resources.memory), (4, {"account": "ada"}, 100_000_000))

    def test_scripts_before_and_after_and_an_empty_environment(self):
        before, after, out = (self.folder / name for name in ("before", "after", "log"))
        before.write_text(f"echo before >>{out}\nexport FOUND=yes\n")
        after.write_text(f"echo after >>{out}\n")
        _, status = self.run_job("FAILED", executable="/bin/sh", arguments=["-c", "echo $FOUND; exit 7"], stdout_path=out,
                                 pre_launch=before, post_launch=after)
        self.assertEqual((out.read_text(), status.exit_code), ("before\nyes\nafter\n", 7))
        self.assertIn("exited with 7", status.message)
        bare = self.folder / "bare"
        self.run_job(executable="/usr/bin/env", inherit_environment=False, environment={"ONLY": "this one"}, stdout_path=bare)
        self.assertEqual(bare.read_text(), "ONLY=this one\n")

    def test_refusals(self):
        import psij
        executor = psij.JobExecutor.get_instance("berth")
        two = psij.ResourceSpecV1(node_count=2)
        for text, spec in (
                ('launcher "mpirun"', {"launcher": "mpirun"}), ("runs one process", {"launcher": "single", "resources": two}),
                ("reservation_id", {"attributes": psij.JobAttributes(reservation_id="r")}),
                ("exclusive_node_use", {"resources": psij.ResourceSpecV1(exclusive_node_use=True)}),
                ("no_such_field", {"attributes": psij.JobAttributes(custom_attributes={"berth.no_such_field": 1})}),
                ("nowhere", {"attributes": psij.JobAttributes(queue_name="nowhere")})):
            with self.subTest(text), self.assertRaisesRegex((psij.InvalidJobException, psij.SubmitException), text):
                executor.submit(psij.Job(psij.JobSpec("/bin/true", **spec)))
        with self.assertRaises(psij.InvalidJobException):
            executor.attach(psij.Job(), "no-such-job")


if __name__ == "__main__":
    unittest.main()
