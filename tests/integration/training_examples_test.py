#!/usr/bin/env python3
"""The training examples of deploy/examples as they stand in the folder, with real PyTorch: each trains to its end, and
with CASES=all each also resumes after one of its processes has died."""
import os
import pathlib
import re
import shutil
import signal
import unittest

from berth_api import job_pb2
from berth_harness import SOURCE, wait_until
from training_gang import MEMBERS, WITHIN_S, AgentsForTraining, long


class TrainingExamples(AgentsForTraining):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.create_queue("research")
        cls.examples = cls.cluster.home / "examples"
        shutil.copytree(SOURCE / "deploy/examples", cls.examples)
        cls.examples.chmod(0o755)
        cls.shared = cls.cluster.home / "shared"
        cls.shared.mkdir()
        cls.shared.chmod(0o777)

    def submit(self, name, **environment):
        """The file with the folders of this test, and more of the environment."""
        text = (self.examples / f"{name}.yaml").read_text()
        more = "".join(f", {key}: '{value}'" for key, value in environment.items())
        for old, new in (("/usr/local/share/berth/examples", str(self.examples)), ("/shared/", f"{self.shared}/"),
                         (f"{name}.checkpoint", f"{name}.checkpoint{more}")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        self.cluster.berth("submit", self.cluster.manifest(text, f"{name}.yaml"))

    def check(self, name):
        job = self.cluster.wait_job(name, "SUCCEEDED", "FAILED", timeout_s=WITHIN_S)
        logs = self.cluster.berth("job", "logs", name)
        self.assertEqual(job_pb2.JobState.Name(job.status.state), "JOB_SUCCEEDED", f"{job.status.message}\n{logs[-4000:]}")
        self.assertRegex(logs, r"trained 200 steps in a world of 4: loss 0\.\d{4}\n")
        return job, logs

    def run_alone(self, name):
        self.submit(name)
        job, logs = self.check(name)
        self.assertEqual((job.status.start_count, job.status.retries), (1, 0))
        self.assertEqual(len(re.findall(r"rank \d of 4 begins at step 0\n", logs)), MEMBERS)
        self.assertEqual(len(re.findall(r"saved step \d+\n", logs)), 200 // 25)

    def run_and_kill(self, name):
        """Kills the process of one member once a checkpoint exists. Returns what was started a second time, or "all"."""
        (self.shared / f"{name}.checkpoint").unlink(missing_ok=True)
        self.cluster.run_berth("job", "delete", name)
        self.submit(name, STEP_S="0.03")
        wait_until(lambda: (self.shared / f"{name}.checkpoint").exists(), WITHIN_S, "a checkpoint", 0.05)
        rank_2 = next(t for t in self.cluster.api.tasks(name) if t.rank == 2)
        task = f"BERTH_TASK={rank_2.group}-{rank_2.index}\0".encode()
        pid = next(pid for pid in self.cluster.task_pids(name) if task in pathlib.Path(f"/proc/{pid}/environ").read_bytes())
        os.kill(pid, signal.SIGKILL)
        job, logs = self.check(name)
        self.assertRegex(logs, r"rank \d of 4 begins at step (25|50|75|100|125|150|175)\n")
        self.assertEqual(job.status.retries, 1, job.status.message)
        again = [t.index for t in self.cluster.api.tasks(name) if t.attempt == 2]
        if len(again) == len(self.cluster.api.tasks(name)):
            self.assertEqual(job.status.start_count, 2)
            return "all"
        self.assertEqual((job.status.start_count, again), (1, [rank_2.index]))
        return "one"

    def test_ddp(self):
        self.run_alone("ddp")

    def test_torchrun(self):
        self.run_alone("torchrun")

    def test_torchrun_elastic(self):
        self.run_alone("torchrun-elastic")

    def test_torchrun_with_a_coordinator(self):
        self.run_alone("torchrun-coordinator")

    @long
    def test_with_a_process_that_dies(self):
        for name, restarted in (("ddp", "all"), ("torchrun", "all"), ("torchrun-elastic", "one"),
                                ("torchrun-coordinator", "one")):
            with self.subTest(name):
                self.assertEqual(self.run_and_kill(name), restarted)


if __name__ == "__main__":
    unittest.main(verbosity=2)
