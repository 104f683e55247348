#!/usr/bin/env python3
"""Memory of berthd per task: 22 calls submit 2,200 jobs of 10,000 tasks, 22 million tasks. By default berthd accepts 5
million of them and refuses the rest. With a higher limit it accepts all, uses little memory, restarts with them, and
forgets them.
"""
import pathlib
import unittest

import grpc

from berth_api import job_pb2, make_job, queue_pb2
from berth_harness import Cluster, wait_until

MIB = 1 << 20
MOST = 512 * MIB  # with AddressSanitizer; full records of all tasks would need 2.2 GiB
CALLS, JOBS, TASKS = 22, 100, 10_000


class TaskMemory(unittest.TestCase):
    def start(self, config):
        self.cluster = Cluster(config)
        self.cluster.belongs_to(self)
        self.cluster.server.start()

    def restart(self):
        self.cluster.server.kill()
        self.cluster.server.start()

    def memory(self, line):
        status = pathlib.Path(f"/proc/{self.cluster.server.process.pid}/status").read_text()
        return next(int(found.split()[1]) for found in status.splitlines() if found.startswith(line)) * 1024

    def check_memory(self, when):
        peak = self.memory("VmHWM:")
        print(f"  {when}: {self.memory('VmRSS:') // MIB} MiB resident, {peak // MIB} at most")
        self.assertLess(peak, MOST)

    def submit(self, call):
        jobs = [make_job(f"big-{call}-{i}", "default", ["true"], replicas=TASKS) for i in range(JOBS)]
        request = job_pb2.SubmitJobsRequest(request_id=f"call-{call}", jobs=jobs)
        return self.cluster.api.jobs.SubmitJobs(request, timeout=120)

    def active_tasks(self):
        queue = self.cluster.api.queues.GetQueue(queue_pb2.GetQueueRequest(name="default"), timeout=60)
        return queue.status.active_tasks

    def refused(self, call):
        with self.assertRaises(grpc.RpcError) as caught:
            self.submit(call)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED, caught.exception.details())
        self.assertIn("at most 5000000 tasks", caught.exception.details())
        self.assertIn("limits.active_tasks", caught.exception.details())
        details = dict(caught.exception.trailing_metadata()).get("grpc-status-details-bin", b"")
        self.assertIn(b"google.rpc.RetryInfo", details)

    def test_refused_beyond_the_limit(self):
        self.start({})
        for call in range(5):
            self.submit(call)
        for call in range(5, CALLS):
            self.refused(call)
        self.assertEqual(self.active_tasks(), 5_000_000)
        self.restart()
        self.assertEqual(self.active_tasks(), 5_000_000)
        self.refused(5)
        for i in range(JOBS):
            self.cluster.api.jobs.CancelJob(job_pb2.CancelJobRequest(name=f"big-0-{i}"), timeout=60)
        wait_until(lambda: self.active_tasks() == 4_000_000, 60, "cancelled jobs free capacity")
        self.submit(5)
        self.check_memory("5,000,000 tasks")

    def test_22_million_pending_tasks(self):
        self.start({"limits": {"activeTasks": CALLS * JOBS * TASKS}, "finishedJobTtl": "1s"})
        for call in range(CALLS):
            self.submit(call)
        self.assertEqual(self.active_tasks(), CALLS * JOBS * TASKS)
        self.check_memory("22,000,000 tasks")
        self.restart()
        self.assertEqual(self.active_tasks(), CALLS * JOBS * TASKS)
        tasks = self.cluster.api.jobs.ListTasks(job_pb2.ListTasksRequest(job="big-21-99", page_size=1000), timeout=60)
        self.assertEqual(len(tasks.tasks), 1000)
        self.check_memory("after a restart")
        for call in range(CALLS):
            for i in range(JOBS):
                self.cluster.api.jobs.CancelJob(job_pb2.CancelJobRequest(name=f"big-{call}-{i}"), timeout=60)
        wait_until(lambda: not self.cluster.api.jobs.ListJobs(job_pb2.ListJobsRequest(), timeout=60).jobs, 120,
                   "they are cancelled and forgotten")
        self.check_memory("all forgotten")
        self.restart()
        self.assertEqual(self.active_tasks(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
