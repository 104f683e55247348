#!/usr/bin/env python3
"""Conditions, with real programs: a gang whose tasks were restarted one by one, and a queue whose jobs are all refused
for their own faults. Both in `describe` and as metrics."""
import os
import pathlib
import signal
import time
import unittest

from berth_api import job_pb2, make_job, queue_pb2, task_state
from berth_harness import Cluster, wait_until

PIECEMEAL = 'berth_job_conditions{condition="GANG_RESTARTED_PIECEMEAL"}'
OFTEN = 'berth_job_conditions{condition="RESTARTS_OFTEN"}'
REFUSED = 'berth_queue_conditions{condition="STARTS_REFUSED"}'
WITHIN_S = 60


def command_line(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()


class Conditions(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.cluster.belongs_to(self)
        self.cluster.server.start()
        for name in ("n1", "n2"):
            self.cluster.add_agent(name)
        self.cluster.wait_nodes(2)
        self.cluster.create_queue("q")
        self.cluster.create_queue("other")

    def submit(self, *jobs):
        self.cluster.api.jobs.SubmitJobs(
            job_pb2.SubmitJobsRequest(request_id=f"{jobs[0].name}-{time.time_ns()}", jobs=jobs), timeout=10)

    def metric_becomes(self, name, value):
        wait_until(lambda: self.cluster.server.metric(name) == value, WITHIN_S, f"{name} is {value}")

    def test_a_gang_whose_tasks_were_restarted_one_by_one(self):
        gang = make_job("gang", "q", ["sleep", "100000"], replicas=2, cpu_millis=100, max_retries=10)
        gang.spec.groups[0].membership = job_pb2.RENDEZVOUS
        gang.spec.groups.add(name="rdzv", role=job_pb2.COORDINATOR, command=["sleep", "100001"])
        self.submit(gang)
        self.cluster.wait_job("gang", "RUNNING")
        self.assertEqual(self.cluster.server.metric(PIECEMEAL), 0)
        self.assertNotIn("Conditions", self.cluster.berth("job", "describe", "gang"))
        first = [pid for pid in self.cluster.task_pids("gang") if b"100000" in command_line(pid)]
        self.assertEqual(len(first), 2)
        for number, pid in enumerate(first):
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: self.attempts("gang") == 4 + number, WITHIN_S, "the task runs again")
        described = self.cluster.berth("job", "describe", "gang")
        self.assertIn("all 2 running tasks were restarted one by one since the gang started", described)
        self.metric_becomes(PIECEMEAL, 1)
        self.assertEqual(self.cluster.server.metric(OFTEN), 0)
        self.cluster.berth("job", "cancel", "gang")
        self.cluster.wait_job("gang", "CANCELLED")
        self.metric_becomes(PIECEMEAL, 0)

    def attempts(self, job):
        """The sum of the attempts of its tasks; 0 unless all run."""
        tasks = self.cluster.api.jobs.ListTasks(job_pb2.ListTasksRequest(job=job), timeout=10).tasks
        return sum(task.attempt for task in tasks) if all(task_state(task) == "RUNNING" for task in tasks) else 0

    def test_a_queue_whose_jobs_are_refused_one_after_the_other(self):
        typos = [make_job(f"typo-{number}", "q", ["true"], cpu_millis=100) for number in range(3)]
        for job in typos:
            job.spec.groups[0].working_dir = "/does-not-exist"
            self.submit(job)
            self.cluster.wait_job(job.name, "FAILED", timeout_s=WITHIN_S)
        self.metric_becomes(REFUSED, 1)
        described = self.cluster.berth("queue", "describe", "q")
        self.assertIn("the last 6 starts of its jobs were refused, and none has run since", described)
        queue = self.cluster.api.queues.GetQueue(queue_pb2.GetQueueRequest(name="q"), timeout=10)
        self.assertEqual([(condition.kind, condition.count) for condition in queue.status.conditions],
                         [(queue_pb2.QueueCondition.STARTS_REFUSED, 6)])
        self.assertNotIn("Conditions", self.cluster.berth("queue", "describe", "other"))
        self.submit(make_job("well", "q", ["true"], cpu_millis=100))
        self.cluster.wait_job("well", "SUCCEEDED")
        self.metric_becomes(REFUSED, 0)
        self.assertNotIn("Conditions", self.cluster.berth("queue", "describe", "q"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
