#!/usr/bin/env python3
"""The usage history: its figures are those of the jobs that ran, add up, and survive crashes and their own deletion."""
import shutil
import time
import unittest

from berth_api import history_pb2, job_pb2, job_status_pb2, types_pb2
from berth_harness import Cluster, wait_until

Usage = history_pb2.GetUsageRequest
UNIT = 1000  # thousandths of a second


def gpu_seconds(amounts):
    return amounts.count_milli_seconds["gpu"] / UNIT


class UsageHistory(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster({"access": {"withoutTls": {"user": "ada"}}}).belongs_to(self)
        self.cluster.server.start()

    def usage(self, *by, **fields):
        return self.cluster.api.history.GetUsage(Usage(by=by, page_size=1000, **fields), timeout=20)

    def ended(self, **fields):
        request = history_pb2.ListEndedJobsRequest(page_size=1000, **fields)
        return {job.name: job for job in self.cluster.api.history.ListEndedJobs(request, timeout=20).jobs}

    def capacity(self, **fields):
        return self.cluster.api.history.GetCapacity(history_pb2.GetCapacityRequest(**fields), timeout=20)

    def submit(self, name, queue="research", gpus=2, seconds="1.5", tasks=1, **spec):
        group = job_pb2.TaskGroup(name="w", command=["train"], env={"BERTH_SIM_RUN_TIME": f"{seconds}s"},
                                  replicas=tasks, resources=types_pb2.ResourceRequest(
                                      cpu_millis=1000, devices=[types_pb2.DeviceRequest(kind="gpu", count=gpus)]))
        job = job_pb2.Job(name=name, spec=job_pb2.JobSpec(queue=queue, groups=[group], **spec))
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(jobs=[job]), timeout=20)

    def add_nodes(self):
        self.cluster.create_queue("lab")
        self.cluster.create_queue("research", parent="lab")
        self.cluster.create_queue("teaching", parent="lab")
        self.cluster.add_simulation([{"name": "n[1-4]", "cpu": "16", "memory": "64Gi", "devices": {"gpu": 8},
                                      "models": {"gpu": "H100"}}])
        self.cluster.wait_nodes(4)

    def test_figures_are_those_of_the_jobs(self):
        self.add_nodes()
        for number in range(12):
            self.submit(f"j{number}", queue="research" if number % 3 else "teaching", user=f"u{number % 2}",
                        labels={"account": "physics"} if number % 2 else {}, tasks=1 + number % 2)
        for number in range(12):
            self.cluster.wait_job(f"j{number}", "SUCCEEDED")
        jobs = self.ended()
        self.assertEqual(len(jobs), 12)
        for number in range(12):
            job = jobs[f"j{number}"]
            status = self.cluster.api.jobs.GetJob(job_pb2.GetJobRequest(name=job.name), timeout=5).status
            self.assertEqual((job.state, job.end_time), (job_status_pb2.JOB_SUCCEEDED, status.end_time))
            self.assertEqual(job.first_start_time, status.start_time)
            ran = (status.end_time.ToMicroseconds() - status.start_time.ToMicroseconds()) / 1e6
            gpus = 2 * (1 + number % 2)
            # From the bind to the report of the end: a little more than the run; its tasks may end apart.
            self.assertGreater(gpu_seconds(job.held), gpus * 1.4)
            self.assertLess(gpu_seconds(job.held), gpus * (ran + 3))
        by_user = {row.user: row for row in self.usage(Usage.USER).rows}
        for user in ("u0", "u1"):
            held = sum(gpu_seconds(job.held) for job in jobs.values() if job.user == user)
            self.assertAlmostEqual(gpu_seconds(by_user[user].held), held, delta=0.02)
        by_queue = {row.queue: row for row in self.usage(Usage.QUEUE).rows}
        self.assertEqual(by_queue["teaching"].queue_path, "lab/teaching")
        (lab,) = self.usage(Usage.QUEUE, queue_depth=1, queue="lab").rows
        self.assertAlmostEqual(gpu_seconds(lab.held), sum(gpu_seconds(job.held) for job in jobs.values()), delta=0.02)
        models = {row.device_model: row for row in self.usage(Usage.DEVICE_MODEL).rows}
        self.assertEqual(gpu_seconds(models["H100"].held), gpu_seconds(lab.held))
        self.assertGreater(models[""].held.cpu_milli_seconds, 0)
        self.assertNotIn("gpu", models[""].held.count_milli_seconds)
        accounts = {row.account: row for row in self.usage(Usage.ACCOUNT).rows}
        self.assertEqual(set(accounts), {"", "physics"})
        self.check_capacity(gpu_seconds(lab.held))

    def check_capacity(self, held):
        answer = self.capacity()
        (row,) = answer.rows
        parts = ("held", "reserved", "free", "fragmented", "cordoned", "down", "unhealthy")
        for amount in (gpu_seconds, lambda time: time.cpu_milli_seconds / UNIT):
            total = amount(row.total) + amount(row.overcommitted)
            self.assertAlmostEqual(sum(amount(getattr(row, part)) for part in parts), total, delta=0.01)
        self.assertAlmostEqual(gpu_seconds(row.held), held, delta=0.02)
        seconds = answer.state.as_of.ToMicroseconds() / 1e6 - answer.state.since.ToMicroseconds() / 1e6
        self.assertLess(gpu_seconds(row.total), 32 * seconds)
        before = gpu_seconds(row.free)
        time.sleep(1)
        self.assertGreater(gpu_seconds(self.capacity().rows[0].free), before + 20)  # without any event

    def test_nothing_changes_over_crashes_and_after_the_history_was_deleted(self):
        self.add_nodes()
        for number in range(4):
            self.submit(f"j{number}")
        self.submit("long", seconds="600", gpus=4)
        for number in range(4):
            self.cluster.wait_job(f"j{number}", "SUCCEEDED")
        self.cluster.wait_job("long", "RUNNING")
        jobs = {name: gpu_seconds(job.held) for name, job in self.ended().items()}
        self.cluster.server.kill()
        self.cluster.server.start()
        self.assertEqual({name: gpu_seconds(job.held) for name, job in self.ended().items()}, jobs)
        self.cluster.server.stop()
        shutil.rmtree(self.cluster.server.data / "history")
        self.cluster.server.start()
        wait_until(lambda: self.ended() != {}, 20, "the history is built again")
        self.assertEqual({name: gpu_seconds(job.held) for name, job in self.ended().items()}, jobs)
        self.cluster.api.jobs.CancelJob(job_pb2.CancelJobRequest(name="long"), timeout=10)
        self.cluster.wait_job("long", "CANCELLED")
        job = self.ended(name_pattern="lo*")["long"]
        ran = (job.end_time.ToMicroseconds() - job.first_start_time.ToMicroseconds()) / 1e6
        self.assertGreater(gpu_seconds(job.held), 4 * (ran - 0.1))
        self.assertLess(gpu_seconds(job.held), 4 * (ran + 3))

    def test_work_that_nodes_and_other_jobs_cost_is_lost(self):
        self.add_nodes()
        self.submit("victim", gpus=8, tasks=4, seconds="600", preemptible=True, priority=0)
        self.cluster.wait_job("victim", "RUNNING")
        time.sleep(2)
        self.submit("urgent", gpus=8, tasks=4, seconds="0.5", priority=100)
        self.cluster.wait_job("urgent", "SUCCEEDED")
        self.cluster.wait_job("victim", "RUNNING")
        lost = gpu_seconds(self.usage().rows[0].lost_to_preemption)
        self.assertGreater(lost, 32 * 1.9)
        self.cluster.api.jobs.CancelJob(job_pb2.CancelJobRequest(name="victim"), timeout=10)
        self.cluster.wait_job("victim", "CANCELLED")
        job = self.ended()["victim"]
        self.assertEqual(job.evictions, 1)
        self.assertAlmostEqual(gpu_seconds(job.lost_to_preemption), lost, delta=0.01)
        self.assertEqual(gpu_seconds(job.lost_to_faults), 0)
        self.assertGreater(gpu_seconds(job.held), lost)

    def test_a_server_without_it_says_so_and_starts_it_later(self):
        self.cluster.server.stop()
        cluster = Cluster({"usage": {"enabled": False}}).belongs_to(self)
        cluster.server.start()
        with self.assertRaisesRegex(Exception, "usage.enabled"):
            cluster.api.history.GetUsage(Usage(), timeout=10)
        self.assertFalse((cluster.server.data / "history").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
