#!/usr/bin/env python3
"""kill -9 of berthd, 50 times, at random moments under load.

Invariants: every acknowledged submit is present afterwards; no (job, task, attempt) starts twice (each task appends one
line to one O_APPEND file); a gang that ran before the first kill continues in the same processes through all kills.

KILLS and SEED change the run.
"""
import collections
import os
import random
import threading
import time
import unittest

import grpc

from berth_api import Api, job_pb2, job_state, make_job
from berth_harness import Cluster, alive, wait_until

KILLS = int(os.environ.get("KILLS", "50"))
SEED = int(os.environ.get("SEED", str(time.time_ns() % 1_000_000)))
NOTE_START = 'echo "$BERTH_JOB $BERTH_TASK $BERTH_ATTEMPT $$" >> "$STARTS"'


class Submitter(threading.Thread):
    """Submits batches until stopped; repeats a call whose answer was lost with the same request id."""

    def __init__(self, index, address, starts, seed):
        super().__init__()
        self.index, self.starts, self.random = index, str(starts), random.Random(seed)
        self.api, self.stopping = Api(address), threading.Event()
        self.acked, self.lost_answers, self.wrong, self.backlog_full = [], 0, [], threading.Event()

    def batch(self, number):
        """A few jobs that run, and some that stay suspended, to load the store."""
        jobs = []
        for item in range(self.random.randint(1, 8)):
            runs = item == 0 and not self.backlog_full.is_set()
            command = ["sh", "-c", f"{NOTE_START}; sleep {self.random.choice([0, 0.05, 0.3])}"]
            jobs.append(make_job(f"load-{self.index}-{number}-{item}", "load", command, cpu_millis=100,
                                 replicas=self.random.choice([1, 1, 2]) if runs else 1,
                                 env={"STARTS": self.starts}, suspended=not runs))
        return jobs

    def submit(self, request):
        while not self.stopping.is_set():
            try:
                answer = self.api.jobs.SubmitJobs(request, timeout=5)
                names = [job.name for job in answer.jobs]
                if names != [job.name for job in request.jobs]:
                    self.wrong.append(f"requested {[j.name for j in request.jobs]}, got {names}")
                return True
            except grpc.RpcError as error:
                if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED,
                                        grpc.StatusCode.CANCELLED, grpc.StatusCode.RESOURCE_EXHAUSTED):
                    self.wrong.append(f"{error.code()} {error.details()}")
                    return False
                self.lost_answers += 1
                time.sleep(0.05)
        return False

    def run(self):
        number = 0
        while not self.stopping.is_set():
            number += 1
            jobs = self.batch(number)
            if self.submit(job_pb2.SubmitJobsRequest(request_id=f"r-{self.index}-{number}", jobs=jobs)):
                self.acked += [(job.name, job.spec.suspended) for job in jobs]
            time.sleep(0.01)


class ServerKill(unittest.TestCase):
    def start_lines(self):
        """(job, task, attempt) -> pids."""
        lines = collections.defaultdict(list)
        for line in self.starts.read_text().splitlines():
            job, task, attempt, pid = line.split()
            lines[job, task, attempt].append(int(pid))
        return lines

    def start_survivors(self):
        """A gang that must outlive every kill."""
        command = ["sh", "-c", f"{NOTE_START}; exec sleep 100000"]
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id="survivors", jobs=[
            make_job("survivors", "load", command, replicas=4, env={"STARTS": str(self.starts)})]), timeout=10)
        self.cluster.wait_job("survivors", "RUNNING")
        return wait_until(lambda: self.survivor_pids(4), 20, "four survivors have written their pids")

    def survivor_pids(self, count):
        pids = sorted(pid for (job, _, _), pids in self.start_lines().items() if job == "survivors" for pid in pids)
        return pids if len(pids) == count else None

    def check_survivors(self, pids):
        self.assertTrue(all(alive(pid) for pid in pids), "a running task died with berthd")
        job = self.cluster.wait_job("survivors", "RUNNING", timeout_s=30)
        self.assertEqual(job.status.start_count, 1)

    def kill_and_start(self, chooser):
        time.sleep(chooser.choice([0.02, 0.1, 0.3, 0.6]) * (0.5 + chooser.random()))
        self.cluster.server.kill()
        begin = time.monotonic()
        self.cluster.server.start()
        return time.monotonic() - begin

    def hold_back(self, submitters):
        """Limits the backlog of real processes to the capacity of two cores."""
        waiting = len(self.cluster.api.all_jobs(states=[job_pb2.JOB_PENDING, job_pb2.JOB_BINDING]))
        for submitter in submitters:
            (submitter.backlog_full.set if waiting > 40 else submitter.backlog_full.clear)()

    def test_fifty_kills(self):
        print(f"SEED={SEED} KILLS={KILLS}", flush=True)
        chooser = random.Random(SEED)
        # Agents may not reach a server that dies every half second for longer than the usual lease.
        with Cluster({"coalescingWindow": "1ms", "lease": "120s"}) as self.cluster:
            self.starts = self.cluster.shared_file("starts")
            self.cluster.server.start()
            self.cluster.add_agent("n1", cpu="64", sharedPid=True)  # the tasks see host pids
            self.cluster.create_queue("load")
            self.cluster.wait_nodes(1)
            pids = self.start_survivors()
            submitters = [Submitter(i, self.cluster.server.address, self.starts, SEED + i) for i in range(3)]
            for submitter in submitters:
                submitter.start()
            try:
                restart_times = []
                for kill in range(KILLS):
                    restart_times.append(self.kill_and_start(chooser))
                    self.hold_back(submitters)
                    if kill % 10 == 9:
                        self.check_survivors(pids)
            finally:
                for submitter in submitters:
                    submitter.stopping.set()
                for submitter in submitters:
                    submitter.join()
            self.check_survivors(pids)
            self.check_all_there(submitters)
            print(f"restart to ready: median {sorted(restart_times)[len(restart_times) // 2] * 1000:.0f} ms, "
                  f"longest {max(restart_times) * 1000:.0f} ms", flush=True)

    def check_all_there(self, submitters):
        for submitter in submitters:
            self.assertEqual(submitter.wrong, [])
        acked = dict(entry for submitter in submitters for entry in submitter.acked)
        stored = {job.name: job for job in self.cluster.api.all_jobs()}
        missing = sorted(set(acked) - set(stored))
        self.assertEqual(missing, [], "acknowledged submits are missing")
        self.assertGreater(len(acked), KILLS)
        running = [name for name, suspended in acked.items() if not suspended]
        for name in running:
            job = self.cluster.wait_job(name, "SUCCEEDED", timeout_s=120)
            self.assertEqual(job.status.start_count, 1, f"{name} was restarted although none of its tasks failed")
        starts = self.start_lines()
        twice = {key: pids for key, pids in starts.items() if len(pids) > 1}
        self.assertEqual(twice, {}, "started twice")
        tasks = sum(stored[name].spec.groups[0].replicas for name in running)
        started = sum(1 for job, _, _ in starts if job in set(running))
        self.assertEqual(started, tasks, "every task of every job that succeeded started exactly once")
        held = [job_state(stored[name]) for name, suspended in acked.items() if suspended]
        self.assertEqual(set(held) - {"HELD", "SUSPENDED"}, set())
        print(f"{KILLS} kills: {len(acked)} acknowledged jobs all present, {started} real tasks started once each, "
              f"{sum(s.lost_answers for s in submitters)} answers lost and requested again; 4 tasks continued", flush=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
