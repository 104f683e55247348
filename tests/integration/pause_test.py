#!/usr/bin/env python3
"""Jobs that are paused (berth job suspend --freeze, and preemptMode Pause), with real processes: a counter that stands
still and goes on, also when the agent, the server or the supervisor is killed in between, and what ends a frozen task.
Needs root and control groups; without them the test is skipped.
"""
import os
import pathlib
import signal
import time
import unittest

import grpc

from berth_api import job_pb2, job_state, job_status_pb2, make_job
from berth_harness import Cluster, alive, wait_until

# Appends a line every 50 ms, and one when it is told to stop.
COUNTER = """
import signal, sys, time
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


def has_freezer():
    groups = pathlib.Path("/sys/fs/cgroup")
    return os.getuid() == 0 and ((groups / "freezer").is_dir() or (groups / "cgroup.procs").exists())


@unittest.skipUnless(has_freezer(), "needs root and control groups")
class Pause(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.cluster.belongs_to(self)
        self.cluster.server.start()
        self.cluster.create_queue("q")
        self.cluster.add_agent("n1", cpu="4")
        self.cluster.wait_nodes(1)
        if "no control groups" in self.cluster.agents["n1"].output():
            self.skipTest("no control groups on this machine")

    def submit(self, job):
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=job.name, jobs=[job]), timeout=10)

    def counter(self, name="counter", cpu_millis=3000, **spec):
        """A job that counts into a file, and runs."""
        lines = self.cluster.shared_file(f"{name}.txt")
        self.submit(make_job(name, "q", ["/usr/bin/python3", "-c", COUNTER, str(lines)], cpu_millis=cpu_millis, **spec))
        self.cluster.wait_job(name, "RUNNING")
        self.wait_more(lines)
        return lines

    def job(self, name="counter"):
        return self.cluster.api.jobs.GetJob(job_pb2.GetJobRequest(name=name), timeout=5)

    def pause_of(self, name="counter"):
        return job_status_pb2.JobPause.State.Name(self.job(name).status.pause.state)

    def wait_pause(self, state, name="counter"):
        wait_until(lambda: self.pause_of(name) == state, 30, f"{name} is {state}")

    def pause(self, name="counter"):
        self.cluster.berth("job", "suspend", "--freeze", name)
        self.wait_pause("PAUSED", name)

    def wait_more(self, lines):
        before = len(lines.read_text())
        wait_until(lambda: len(lines.read_text()) > before, 20, "the counter counts")

    def check_still(self, lines, seconds=0.6):
        before = lines.read_text()
        time.sleep(seconds)
        self.assertEqual(lines.read_text(), before)

    def check_counts_on(self, lines):
        """Every number once: it is the same process."""
        self.wait_more(lines)
        numbers = [int(line) for line in lines.read_text().split("\n")[:-1]]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))

    def test_a_counter_stands_still_and_goes_on(self):
        lines = self.counter()
        self.pause()
        self.check_still(lines)
        text = self.cluster.berth("job", "list")
        self.assertIn("Paused", text)
        text = self.cluster.berth("job", "describe", "counter")
        self.assertIn("Paused", text)
        refused = self.cluster.run_berth("exec", "counter", "--", "true")
        self.assertIn("is paused", refused.stderr)
        self.assertNotEqual(refused.returncode, 0)
        self.cluster.berth("job", "resume", "counter")
        self.check_counts_on(lines)
        job = self.job()
        self.assertEqual(job.status.start_count, 1)
        self.assertGreater(job.status.pause.total.ToTimedelta().total_seconds(), 0.5)
        self.cluster.berth("exec", "counter", "--", "true")
        self.pause()  # again
        self.check_still(lines)
        self.cluster.berth("job", "resume", "counter")
        self.check_counts_on(lines)

    def test_an_urgent_job_gets_the_cpu_and_the_paused_one_waits_for_it(self):
        lines = self.counter()
        self.submit(make_job("urgent", "q", ["sleep", "4711"], cpu_millis=3000))
        wait_until(lambda: self.job("urgent").status.reasons, 20, "the urgent job waits")
        begin = time.monotonic()
        self.cluster.berth("job", "suspend", "--freeze", "counter")
        self.cluster.wait_job("urgent", "RUNNING")
        seconds = time.monotonic() - begin
        print(f"pause to start of the urgent task: {seconds:.3f} s")
        self.assertLess(seconds, 2 if os.getloadavg()[0] < 2 * os.cpu_count() else 20)
        self.cluster.berth("job", "resume", "counter")
        self.wait_pause("RESUMING")
        self.check_still(lines)
        (reason,) = self.job().status.reasons
        self.assertEqual(reason.code, job_status_pb2.WaitReason.PAUSE_ENDS)
        self.assertIn("resumes once its CPU is free", self.cluster.berth("job", "explain", "counter"))
        self.cluster.berth("job", "cancel", "urgent")
        self.check_counts_on(lines)
        self.assertEqual(self.pause_of(), "STATE_UNSPECIFIED")

    def victim(self, name="counter"):
        """A counter that makes room by a pause."""
        return self.counter(name, preempt_mode=job_pb2.PAUSE)

    def urgent(self, priority=5, **spec):
        """Submits a job that needs the counter's CPU; the seconds until it runs."""
        begin = time.monotonic()
        self.submit(make_job("urgent", "q", ["sleep", "4711"], cpu_millis=3000, priority=priority, **spec))
        self.cluster.wait_job("urgent", "RUNNING")
        return time.monotonic() - begin

    def test_an_urgent_job_pauses_a_running_one(self):
        lines = self.victim()
        seconds = self.urgent()
        print(f"submit to start of the urgent task, which pauses another: {seconds:.3f} s")
        self.assertLess(seconds, 2 if os.getloadavg()[0] < 2 * os.cpu_count() else 20)
        self.check_still(lines)
        pause = self.job().status.pause
        self.assertEqual(pause.beneficiary, "urgent")
        self.assertEqual(pause.detail, "its priority 0 is below 5")
        self.assertIn("for job urgent: its priority 0 is below 5", self.cluster.berth("job", "describe", "counter"))
        self.assertIn("paused for job urgent", self.cluster.berth("job", "explain", "counter"))
        self.assertIn("counter", self.cluster.berth("job", "list", "--paused"))
        self.assertNotIn("urgent", self.cluster.berth("job", "list", "--paused", "-o", "name"))
        refused = self.cluster.run_berth("job", "resume", "counter")
        self.assertIn('is paused for job "urgent", and not by its user', refused.stderr)
        self.assertNotEqual(refused.returncode, 0)
        metrics = self.cluster.server.get("/metrics")[1]
        self.assertIn('berth_jobs_paused{by="preemption"} 1', metrics)
        self.assertIn('berth_job_pauses_total{by="preemption"} 1', metrics)
        self.check_still(lines)
        self.cluster.berth("job", "cancel", "urgent")
        self.check_counts_on(lines)
        self.assertEqual(self.job().status.start_count, 1)
        self.assertEqual(self.job().status.evictions, 0)

    def test_the_server_is_killed_while_a_job_is_paused_for_another(self):
        lines = self.victim()
        self.urgent()
        self.cluster.server.kill()
        self.cluster.server.start()
        self.cluster.wait_nodes(1)
        self.assertEqual(self.job().status.pause.beneficiary, "urgent")
        self.check_still(lines)
        self.cluster.berth("job", "cancel", "urgent")
        self.check_counts_on(lines)

    def test_jobs_of_a_queue_with_slices_take_turns(self):
        self.cluster.berth("queue", "update", "q", "--slice", "10s")
        lines = [self.victim("first")]
        lines.append(self.cluster.shared_file("second.txt"))
        self.submit(make_job("second", "q", ["/usr/bin/python3", "-c", COUNTER, str(lines[1])], cpu_millis=3000,
                             preempt_mode=job_pb2.PAUSE))
        self.cluster.wait_job("second", "RUNNING")
        self.check_still(lines[0])
        self.assertEqual(self.job("first").status.pause.detail, "its turn of 10s is over")
        for other, one in ((1, 0), (0, 1)):
            self.wait_more(lines[one])
            self.check_still(lines[other])
        self.check_counts_on(lines[1])
        self.assertEqual([self.job(name).status.start_count for name in ("first", "second")], [1, 1])

    def test_resume_all_takes_what_users_paused_and_nothing_else(self):
        lines = self.victim()
        self.urgent()
        self.cluster.add_agent("n2", cpu="4")
        self.cluster.wait_nodes(2)
        others = self.counter("other")
        self.pause("other")
        self.cluster.berth("job", "resume", "--all", "--yes")
        self.check_counts_on(others)
        self.check_still(lines)
        self.assertEqual(self.pause_of(), "RESUMING")

    def test_the_agent_is_killed_while_frozen(self):
        lines = self.counter()
        self.pause()
        self.cluster.agents["n1"].kill()
        self.check_still(lines)
        self.cluster.agents["n1"].start()
        self.cluster.wait_nodes(1)
        self.check_still(lines)
        self.assertEqual(self.pause_of(), "PAUSED")
        self.cluster.berth("job", "resume", "counter")
        self.check_counts_on(lines)

    def test_the_agent_is_down_while_it_is_paused_and_resumed(self):
        lines = self.counter()
        self.cluster.agents["n1"].kill()
        self.cluster.berth("job", "suspend", "--freeze", "counter")
        self.assertEqual(self.pause_of(), "PAUSING")
        self.cluster.agents["n1"].start()
        self.wait_pause("PAUSED")
        self.check_still(lines)
        self.cluster.agents["n1"].kill()
        self.cluster.berth("job", "resume", "counter")
        self.cluster.agents["n1"].start()
        self.check_counts_on(lines)

    def test_the_server_is_killed_while_frozen(self):
        lines = self.counter()
        self.pause()
        since = self.job().status.pause.since
        self.cluster.server.kill()
        self.check_still(lines)
        self.cluster.server.start()
        self.cluster.wait_nodes(1)
        self.assertEqual(self.pause_of(), "PAUSED")
        self.assertEqual(self.job().status.pause.since, since)
        self.check_still(lines)
        self.cluster.berth("job", "resume", "counter")
        self.check_counts_on(lines)

    def test_a_frozen_task_is_cancelled_and_ends_by_itself(self):
        lines = self.counter()
        self.pause()
        (pid,) = self.cluster.task_pids("counter")
        self.cluster.berth("job", "cancel", "counter")
        self.cluster.wait_job("counter", "CANCELLED")
        self.assertTrue(lines.read_text().endswith("stopped\n"))
        self.assertFalse(alive(pid))

    def test_a_frozen_task_is_cancelled_by_force(self):
        lines = self.counter()
        self.pause()
        (pid,) = self.cluster.task_pids("counter")
        self.cluster.berth("job", "cancel", "--force", "counter")
        self.cluster.wait_job("counter", "CANCELLED")
        wait_until(lambda: not alive(pid), 20, "the task is dead")
        self.assertNotIn("stopped", lines.read_text())

    def test_a_frozen_task_is_stopped_by_a_suspension(self):
        lines = self.counter()
        self.pause()
        self.cluster.berth("job", "suspend", "counter")
        self.cluster.wait_job("counter", "SUSPENDED")
        self.assertTrue(lines.read_text().endswith("stopped\n"))
        self.cluster.berth("job", "resume", "counter")
        self.cluster.wait_job("counter", "RUNNING")
        self.wait_more(lines)
        self.assertEqual(self.job().status.start_count, 2)

    def test_its_node_is_drained(self):
        lines = self.counter()
        self.pause()
        self.cluster.berth("node", "drain", "n1")
        self.cluster.wait_job("counter", "SUSPENDED")
        self.assertTrue(lines.read_text().endswith("stopped\n"))

    def test_the_supervisor_of_a_frozen_task_is_killed(self):
        self.counter(max_retries=0)
        self.pause()
        (pid,) = self.cluster.task_pids("counter")
        supervisor = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        os.kill(supervisor, signal.SIGKILL)
        wait_until(lambda: not alive(pid), 30, "the task is dead")
        wait_until(lambda: job_state(self.job()) != "RUNNING", 30, "the end is known")

    def test_what_cannot_be_paused_is_refused_by_name(self):
        self.submit(make_job("large", "q", ["true"], cpu_millis=64000))
        refused = self.cluster.run_berth("job", "suspend", "--freeze", "large")
        self.assertIn("does not run: it is PENDING; only a running job can be frozen", refused.stderr)
        self.cluster.add_agent("n2", cpu="4", cgroups={"mode": "OFF"})
        self.cluster.wait_nodes(2)
        self.cluster.berth("node", "cordon", "n1")
        self.submit(make_job("plain", "q", ["sleep", "4711"]))
        self.cluster.wait_job("plain", "RUNNING")
        refused = self.cluster.run_berth("job", "suspend", "--freeze", "plain")
        self.assertIn('node n2 cannot freeze the tasks of job "plain"', refused.stderr)
        with self.assertRaises(grpc.RpcError) as wrong:
            self.cluster.api.jobs.SuspendJob(job_pb2.SuspendJobRequest(name="plain", mode=9), timeout=5)
        self.assertEqual(wrong.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)


if __name__ == "__main__":
    unittest.main()
