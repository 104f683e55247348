#!/usr/bin/env python3
"""Paused jobs that lend their GPUs (pause: {devices: CHECKPOINT}), with real processes, a file instead of a GPU, and a
program that behaves like NVIDIA's cuda-checkpoint: two jobs take turns on one GPU. Needs root and control groups; without
them the test is skipped.
"""
import os
import pathlib
import signal
import time
import unittest

import grpc

from berth_api import job_pb2, job_state, job_status_pb2, node_pb2, types_pb2
from berth_harness import Cluster, alive, wait_until
from pause_test import has_freezer

# Has the GPU open, and appends a line every 50 ms, and one when it is told to stop.
COUNTER = """
import signal, sys, time
gpu = open(sys.argv[2])
out = open(sys.argv[1], "a", buffering=1)
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
n = 0
while not asked:
    n += 1
    print(n, file=out)
    time.sleep(0.05)
print("stopped", file=out)
"""

# Remembers the state of each process. A process can be restored only while no other one is on the GPU.
TOOL = """#!/bin/sh
cd DIRECTORY || exit 9
echo "$*" >> calls
case "$1" in
  --help) echo "--get-state --pid; --action lock [--timeout ms]"; exit 0;;
  --get-state) what=get-state; pid=$3;;
  --action) what=$2; pid=$4;;
  *) exit 2;;
esac
if [ -e fail-$what ]; then cat fail-$what; exit 1; fi
was=running
if [ -e state-$pid ]; then was=$(cat state-$pid); fi
change() {
  if [ "$was" != $1 ]; then echo "the process is $was"; exit 1; fi
  echo $2 > state-$pid
}
case $what in
  get-state) echo $was;;
  lock) change running locked;;
  checkpoint) change locked checkpointed;;
  restore)
    for file in state-*; do
      other=${file#state-}
      if [ $other != $pid ] && [ -d /proc/$other ] && [ $(cat $file) != checkpointed ]; then
        echo "process $other is on the GPU"; exit 1
      fi
    done
    change checkpointed locked;;
  unlock) change locked running;;
esac
"""


@unittest.skipUnless(has_freezer(), "needs root and control groups")
class Lend(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.cluster.belongs_to(self)
        self.cluster.server.start()
        self.cluster.create_queue("q")
        self.tool = self.cluster.home / "tool"
        self.tool.mkdir()
        program = self.tool / "cuda-checkpoint"
        program.write_text(TOOL.replace("DIRECTORY", str(self.tool)))
        program.chmod(0o755)
        self.gpu = pathlib.Path(f"/dev/shm/{self.cluster.home.name}-GPU-a")  # files of devices are below /dev
        self.gpu.write_text("a GPU")
        self.gpu.chmod(0o644)
        self.addCleanup(self.gpu.unlink)
        self.add_agent("n1")

    def add_agent(self, name, **config):
        files = {"gpu": {"variable": "CUDA_VISIBLE_DEVICES", "files": [str(self.gpu).replace("GPU-a", "{}")]}}
        self.cluster.add_agent(name, **{"cpu": "4", "discovery": {"disabled": True}, "deviceAccess": files, "sharedShm": True,
                                        "devices": [{"kind": "gpu", "uuid": "GPU-a"}],
                                        "cudaCheckpoint": str(self.tool / "cuda-checkpoint"), **config})
        self.cluster.wait_nodes(len(self.cluster.agents))
        if "no control groups" in self.cluster.agents[name].output():
            self.skipTest("no control groups on this machine")

    def job_of(self, name, replicas=1, devices=({"kind": "gpu", "count": 1},), **spec):
        lines = self.cluster.shared_file(f"{name}.txt")
        command = ["/usr/bin/python3", "-c", COUNTER, str(lines), str(self.gpu)]
        resources = types_pb2.ResourceRequest(cpu_millis=1000, memory_bytes=256 << 20,
                                              devices=[types_pb2.DeviceRequest(**device) for device in devices])
        group = job_pb2.TaskGroup(name="w", replicas=replicas, command=command, resources=resources)
        pause = job_pb2.PausePolicy(devices=job_pb2.PausePolicy.CHECKPOINT)
        job = job_pb2.Job(name=name, spec=job_pb2.JobSpec(queue="q", groups=[group], pause=pause, **spec))
        return job, lines

    def submit(self, name, **changes):
        job, lines = self.job_of(name, **changes)
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=name, jobs=[job]), timeout=10)
        return lines

    def run_counter(self, name, **changes):
        lines = self.submit(name, **changes)
        self.cluster.wait_job(name, "RUNNING")
        self.wait_more(lines)
        return lines

    def job(self, name):
        return self.cluster.api.jobs.GetJob(job_pb2.GetJobRequest(name=name), timeout=5)

    def task(self, name):
        (task,) = self.cluster.api.jobs.ListTasks(job_pb2.ListTasksRequest(job=name), timeout=5).tasks
        return task

    def wait_pause(self, name, state):
        def is_so():
            return job_status_pb2.JobPause.State.Name(self.job(name).status.pause.state) == state
        wait_until(is_so, 30, f"{name} is {state}")

    def pause(self, name, lent=True):
        self.cluster.berth("job", "suspend", "--freeze", name)
        self.wait_pause(name, "PAUSED")
        self.assertEqual(self.job(name).status.pause.devices_lent, lent)
        self.assertEqual(self.task(name).devices_lent, lent)

    def resume(self, name):
        self.cluster.berth("job", "resume", name)

    def wait_more(self, lines):
        before = len(lines.read_text()) if lines.exists() else 0
        wait_until(lambda: lines.exists() and len(lines.read_text()) > before, 20, "the counter counts")

    def check_still(self, lines):
        before = lines.read_text()
        time.sleep(0.3)
        self.assertEqual(lines.read_text(), before)

    def in_use(self):
        node = self.cluster.api.nodes.GetNode(node_pb2.GetNodeRequest(name="n1"), timeout=5)
        return list(node.status.devices_in_use)

    def test_two_jobs_take_turns_on_one_gpu(self):
        first = self.run_counter("first")
        second = self.submit("second")
        self.pause("first")
        self.cluster.wait_job("second", "RUNNING")
        for _ in range(3):
            self.wait_more(second)
            self.check_still(first)
            self.assertEqual(self.in_use(), ["GPU-a"])
            self.resume("first")
            self.wait_pause("first", "RESUMING")
            (reason,) = self.job("first").status.reasons
            self.assertEqual((reason.resource, reason.needed, reason.free), ("gpu", 1, 0))
            listed = self.cluster.berth("job", "describe", "first")
            self.assertIn("resumes once its devices are free: needs 1 gpu, 0 free: node n1, GPU-a", listed)
            self.pause("second")
            self.wait_more(first)
            self.check_still(second)
            self.assertEqual(self.task("first").attempt, 1)
            self.assertEqual(list(self.task("first").devices), ["GPU-a"])
            self.resume("second")
            self.wait_pause("second", "RESUMING")
            self.pause("first")
        self.wait_more(second)
        self.cluster.berth("job", "cancel", "second")
        self.cluster.wait_job("second", "CANCELLED")
        self.assertEqual(self.in_use(), [])
        self.resume("first")
        self.wait_more(first)
        self.cluster.berth("job", "cancel", "first")
        self.cluster.wait_job("first", "CANCELLED")
        numbers = [int(line) for line in first.read_text().split() if line != "stopped"]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))  # one process all the time

    def test_a_job_that_cannot_be_saved_keeps_its_gpu(self):
        first = self.run_counter("first")
        (self.tool / "fail-checkpoint").write_text("UVM is not supported")
        self.submit("second")
        self.pause("first", lent=False)
        self.check_still(first)
        self.assertEqual(self.task("first").message, "cuda-checkpoint exited with 1: UVM is not supported")
        self.assertIn("UVM is not supported", self.cluster.berth("job", "describe", "first"))
        self.assertEqual(job_state(self.job("second")), "PENDING")
        self.assertEqual(self.in_use(), ["GPU-a"])
        self.resume("first")
        self.wait_more(first)
        self.assertEqual(self.task("first").message, "")
        (self.tool / "fail-checkpoint").unlink()
        self.pause("first")
        self.cluster.wait_job("second", "RUNNING")

    def test_agent_and_server_are_killed_while_a_gpu_is_lent(self):
        first = self.run_counter("first")
        self.pause("first")
        second = self.run_counter("second")
        self.cluster.agents["n1"].kill()
        self.cluster.server.kill()
        self.wait_more(second)
        self.cluster.server.start()
        self.cluster.agents["n1"].start()
        self.cluster.wait_nodes(1)
        self.assertTrue(self.job("first").status.pause.devices_lent)
        self.check_still(first)
        self.wait_more(second)
        self.resume("first")
        self.wait_pause("first", "RESUMING")
        self.cluster.berth("job", "cancel", "second")
        self.wait_more(first)

    def test_jobs_end_while_their_gpu_is_lent(self):
        first = self.run_counter("first", max_retries=0)
        self.pause("first")
        second = self.run_counter("second")
        self.cluster.berth("job", "cancel", "first")
        self.cluster.wait_job("first", "CANCELLED")
        self.assertTrue(first.read_text().endswith("stopped\n"))
        self.assertNotIn("restore", (self.tool / "calls").read_text())
        self.wait_more(second)
        self.pause("second")
        third = self.run_counter("third")
        (pid,) = self.cluster.task_pids("second")
        supervisor = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        os.kill(supervisor, signal.SIGKILL)
        wait_until(lambda: not alive(pid), 30, "the task is dead")
        wait_until(lambda: job_state(self.job("second")) != "RUNNING", 30, "the end is known")
        self.wait_more(third)
        self.assertEqual(self.in_use(), ["GPU-a"])

    def test_a_node_without_the_program(self):
        self.cluster.berth("node", "cordon", "n1")
        self.add_agent("n2", cudaCheckpoint="none")
        first = self.run_counter("first")
        self.pause("first", lent=False)
        self.resume("first")
        self.wait_more(first)
        nodes = {name: self.cluster.api.nodes.GetNode(node_pb2.GetNodeRequest(name=name), timeout=5)
                 for name in ("n1", "n2")}
        self.assertTrue(nodes["n1"].inventory.checkpoints_devices)
        self.assertFalse(nodes["n2"].inventory.checkpoints_devices)

    def test_what_cannot_lend_is_refused_by_name(self):
        gpu = {"kind": "gpu", "count": 1}
        for changes, why in (
                ({"replicas": 2}, "only a job with one task can lend its GPUs; it has 2"),
                ({"devices": ()}, "it asks for no GPU that it could lend"),
                ({"devices": ({"kind": "gpu", "share": 0.5},)}, "a share of a GPU cannot be lent"),
                ({"devices": ({"kind": "gpu", "count": 1, "mig": "1g.10gb"},)}, "instances of MIG cannot be lent"),
                ({"devices": (gpu, {"kind": "nic", "count": 1})}, "a task with devices of kind nic cannot lend its GPUs")):
            with self.assertRaises(grpc.RpcError) as refused:
                self.submit("bad", **changes)
            self.assertEqual(refused.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
            self.assertIn(why, refused.exception.details())


if __name__ == "__main__":
    unittest.main()
