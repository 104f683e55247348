#!/usr/bin/env python3
"""The checkpoint signal comes before each foreseen stop, and a task that saves when asked loses nothing: a shell script
that writes a file in its handler, stopped by drains, a suspend, the end of its walltime, and a cancel that asks for it.
"""
import pathlib
import tempfile
import unittest

from berth_api import job_pb2, make_job, types_pb2
from berth_harness import Cluster, wait_until

WITHIN_S = 60
# Ends with 85 once it has saved; without the signal it never saves.
SCRIPT = "trap 'echo saved >> \"$SAVED\"; exit 85' USR1; echo ready > \"$READY\"; while :; do sleep 0.1; done"


class Checkpoint(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.cluster.belongs_to(self)
        self.cluster.server.start()
        for name in ("n1", "n2"):
            self.cluster.add_agent(name)
        self.cluster.wait_nodes(2)
        self.cluster.create_queue("q")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="berth-saved-", dir="/var/tmp"))
        self.folder.chmod(0o777)
        self.addCleanup(lambda: [f.unlink() for f in self.folder.iterdir()] and None or self.folder.rmdir())

    def run_job(self, name, before=(), walltime_s=0):
        saved, ready = self.folder / name, self.folder / f"{name}.ready"
        job = make_job(name, "q", ["sh", "-c", SCRIPT], env={"SAVED": str(saved), "READY": str(ready)})
        checkpoint = job.spec.checkpoint
        checkpoint.signal = "SIGUSR1"
        checkpoint.grace.seconds = 30
        checkpoint.saved_exit_codes.append(85)
        checkpoint.before.extend(before)
        if walltime_s:
            job.spec.walltime.seconds = walltime_s
            checkpoint.walltime_notice.seconds = walltime_s - 3
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=name, jobs=[job]), timeout=10)
        wait_until(ready.exists, WITHIN_S, "the handler is set")
        return saved

    def test_a_drain_and_a_suspend(self):
        saved = self.run_job("drained")
        self.cluster.berth("node", "drain", self.node_of("drained"))
        wait_until(saved.exists, WITHIN_S, "it saved before the drain")
        self.cluster.wait_job("drained", "RUNNING")
        saved.unlink()
        self.cluster.berth("job", "suspend", "drained")
        wait_until(saved.exists, WITHIN_S, "it saved before the suspend")
        self.cluster.wait_job("drained", "SUSPENDED")
        self.assertEqual(saved.read_text(), "saved\n")

    def node_of(self, job):
        return self.cluster.api.jobs.ListTasks(job_pb2.ListTasksRequest(job=job), timeout=10).tasks[0].node

    def test_a_drain_by_checkpoint_lets_the_task_end_by_itself(self):
        saved = self.run_job("saves")
        node = self.node_of("saves")
        self.cluster.berth("node", "drain", node, "--mode", "checkpoint", "--deadline", "30m", "--reason", "fan")
        wait_until(saved.exists, WITHIN_S, "it was asked to save")
        wait_until(lambda: self.node_of("saves") != node, WITHIN_S, "it runs elsewhere")
        self.cluster.wait_job("saves", "RUNNING")
        job = self.cluster.api.jobs.GetJob(job_pb2.GetJobRequest(name="saves"), timeout=10)
        self.assertEqual(job.status.message, "w-0 saved its work and ended, for the drain")
        self.assertEqual(job.status.retries, 0)
        self.assertEqual(saved.read_text(), "saved\n", "it was asked once")
        described = self.cluster.berth("node", "describe", node)
        self.assertRegex(described, r"Drain: +Checkpoint since .*, until ")
        self.cluster.berth("node", "uncordon", node)
        self.assertNotIn("Drain:", self.cluster.berth("node", "describe", node))

    def test_a_drain_that_waits_stops_the_task_at_its_deadline(self):
        saved = self.run_job("waits")
        node = self.node_of("waits")
        self.cluster.berth("node", "drain", node, "--mode", "wait", "--deadline", "6s")
        self.cluster.server.stop()  # the deadline survives a restart
        self.cluster.server.start()
        self.assertFalse(saved.exists())
        wait_until(saved.exists, WITHIN_S, "it saved before it was stopped")
        wait_until(lambda: self.node_of("waits") != node, WITHIN_S, "it runs elsewhere")

    def test_a_drain_when_placed_moves_the_task_once_there_is_another_place(self):
        saved = self.run_job("moves")
        node = self.node_of("moves")
        other = next(name for name in self.cluster.agents if name != node)
        self.cluster.berth("node", "cordon", other)
        self.cluster.berth("node", "drain", node, "--mode", "when-placed", "--deadline", "8h")
        self.assertRegex(self.cluster.berth("node", "describe", node), r"Drain: +WhenPlaced since .*, until ")
        self.cluster.server.stop()  # the drain survives a restart
        self.cluster.server.start()
        self.cluster.wait_nodes(2)
        self.assertFalse(saved.exists())
        self.assertEqual(self.node_of("moves"), node)
        self.cluster.berth("node", "uncordon", other)
        wait_until(saved.exists, WITHIN_S, "it was asked to save")
        wait_until(lambda: self.node_of("moves") == other, WITHIN_S, "it runs on the other node")
        self.cluster.wait_job("moves", "RUNNING")
        job = self.cluster.api.jobs.GetJob(job_pb2.GetJobRequest(name="moves"), timeout=10)
        self.assertEqual(job.status.retries, 0)

    def test_a_drain_of_a_device_leaves_the_node_in_use(self):
        self.cluster.add_agent("g", devices=[{"kind": "gpu", "uuid": uuid} for uuid in ("GPU-a", "GPU-b")])
        self.cluster.wait_nodes(3)
        job = make_job("gpu", "q", ["sleep", "100000"])
        job.spec.groups[0].resources.devices.append(types_pb2.DeviceRequest(kind="gpu", count=1))
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id="gpu", jobs=[job]), timeout=10)
        self.cluster.wait_job("gpu", "RUNNING")

        def devices():
            tasks = self.cluster.api.jobs.ListTasks(job_pb2.ListTasksRequest(job="gpu"), timeout=10).tasks
            return list(tasks[0].devices)
        used = devices()
        other = [{"GPU-a": "GPU-b", "GPU-b": "GPU-a"}[used[0]]]
        wrong = self.cluster.run_berth("node", "drain", "g", "--device", used[0], "--device", "GPU-x")
        self.assertNotEqual(wrong.returncode, 0)
        self.assertIn('node "g" has no "GPU-x"', wrong.stderr)
        self.cluster.berth("node", "drain", "g", "--device", used[0])
        wait_until(lambda: devices() == other, WITHIN_S, "it runs on the other GPU of the node")
        self.cluster.wait_job("gpu", "RUNNING")
        self.assertIn("Ready,DrainingDevices", self.cluster.berth("node", "list"))
        # It is remembered over restarts of the agent and of the server.
        for program in (self.cluster.agents["g"], self.cluster.server):
            program.stop()
            program.start()
        self.cluster.wait_nodes(3)
        self.assertIn("Now since", self.cluster.berth("node", "describe", "g"))
        self.assertIn(f"; only {used[0]}", self.cluster.berth("node", "describe", "g"))
        self.cluster.berth("node", "uncordon", "g")
        self.assertNotIn("Drain", self.cluster.berth("node", "list"))

    def test_the_end_of_the_walltime(self):
        saved = self.run_job("long", walltime_s=15)
        self.cluster.wait_job("long", "FAILED")
        self.assertEqual(saved.read_text(), "saved\n")
        job = self.cluster.api.jobs.GetJob(job_pb2.GetJobRequest(name="long"), timeout=10)
        self.assertEqual(job.status.message, "walltime of 15s used up")
        ran = job.status.end_time.seconds - job.status.start_time.seconds
        self.assertLess(ran, 14, "it ended when it had saved, not at the end of the walltime")

    def test_a_cancel_only_if_the_job_asks_for_it(self):
        plain = self.run_job("plain")
        asks = self.run_job("asks", before=[job_pb2.CheckpointPolicy.CANCEL])
        for name in ("plain", "asks"):
            self.cluster.berth("job", "cancel", name)
            self.cluster.wait_job(name, "CANCELLED")
        self.assertTrue(asks.exists())
        self.assertFalse(plain.exists())


if __name__ == "__main__":
    unittest.main()
