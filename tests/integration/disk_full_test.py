#!/usr/bin/env python3
"""A full disk pauses berthd: new jobs are refused, running tasks continue, nothing acknowledged is lost, and free space
ends the pause.

The data directory is a small tmpfs, which needs root; without root the test is skipped.
"""
import os
import subprocess
import time
import unittest

import grpc

from berth_api import job_pb2, make_job
from berth_harness import Cluster, alive, wait_until

SIZE_MIB = 96
LEASE_S = 3


class SmallDisk(unittest.TestCase):
    """berthd with its data on a disk of SIZE_MIB, and one agent on another disk."""
    leases = {}

    def setUp(self):
        if os.getuid() != 0:
            self.skipTest("needs root to mount a tmpfs")
        self.cluster = Cluster({"limits": {"jobSize": "256Ki"}, **self.leases})
        self.cluster.belongs_to(self)
        self.disk = self.cluster.home / "disk"
        self.disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE_MIB}m", "tmpfs", str(self.disk)],
                                 capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"cannot mount here: {mounted.stderr.strip()}")
        self.addCleanup(self.unmount)
        self.cluster.server.arguments[-1] = str(self.disk / "data")

    def unmount(self):
        self.cluster.stop()
        subprocess.run(["umount", str(self.disk)], check=False)

    def start_runner(self):
        """The pid of a task that runs as long as its lease is valid."""
        cluster = self.cluster
        cluster.server.start()
        cluster.add_agent("n1", sharedPid=True)  # the task sees its host pid
        cluster.create_queue("q")
        cluster.wait_nodes(1)
        pid_file = cluster.shared_file("pid")
        runner = make_job("runner", "q", ["sh", "-c", f"echo $$ > {pid_file}; exec sleep 100000"])
        cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id="runner", jobs=[runner]), timeout=10)
        cluster.wait_job("runner", "RUNNING")
        return int(wait_until(lambda: pid_file.read_text(), 10, "the runner's pid"))

    def submit(self, number):
        """Submits a job with 60 KiB of annotations. True: acknowledged. False: the disk is full. None: no answer."""
        job = make_job(f"fill-{number}", "q", ["true"], suspended=True, annotations={"padding": os.urandom(30000).hex()})
        try:
            self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=f"f{number}", jobs=[job]), timeout=3)
            return True
        except grpc.RpcError as error:
            # A job that was accepted before berthd noticed the full disk gets no answer yet.
            self.assertIn(error.code(), (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.DEADLINE_EXCEEDED))
            return False if error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED else None

    def fill_disk(self, left_mib=2):
        """Fills all but a little of the free space with a file; jobs fill the rest."""
        stat = os.statvfs(self.disk)
        with open(self.disk / "ballast", "wb") as ballast:
            ballast.write(b"\0" * max(0, stat.f_bavail * stat.f_frsize - (left_mib << 20)))

    def fill_up(self, name):
        with open(self.disk / name, "wb", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(b"\0" * 4096)
            except OSError:
                pass  # every last block


class DiskFull(SmallDisk):
    def test_pause_and_continue(self):
        cluster = self.cluster
        pid = self.start_runner()
        self.fill_disk()
        acknowledged, refused, number = [], 0, 0
        while refused < 3:
            number += 1
            self.assertLess(number, 2000, "the disk did not fill up")
            answer = self.submit(number)
            acknowledged += [f"fill-{number}"] if answer else []
            refused += answer is False
        self.check_paused(pid)
        os.unlink(self.disk / "ballast")
        wait_until(lambda: cluster.server.get("/readyz")[0] == 200, 30, "the pause ends")
        self.assertTrue(self.submit(number + 1))
        acknowledged.append(f"fill-{number + 1}")
        self.check_nothing_lost(acknowledged, pid)
        cluster.server.kill()
        cluster.server.start()
        self.check_nothing_lost(acknowledged, pid)
        print(f"full after {len(acknowledged) - 1} jobs; refused, continued, and all present after kill -9 and restart")

    def test_start_on_a_full_disk(self):
        """Killed while the disk is full: it starts, its agent returns, tasks continue, and new jobs wait for space."""
        cluster = self.cluster
        pid = self.start_runner()
        self.assertEqual(cluster.server.metric("berth_store_reserve_bytes"), 32 << 20)
        cluster.server.kill()
        self.fill_up("ballast")
        cluster.server.start(wait=False)
        wait_until(lambda: cluster.server.get("/readyz")[0] == 503 and "disk full" in cluster.server.get("/readyz")[1], 30,
                   "it runs, and reports the full disk")
        self.assertLess(cluster.server.metric("berth_store_reserve_bytes"), 32 << 20)
        self.assertEqual([job.name for job in cluster.api.all_jobs()], ["runner"])
        cluster.wait_nodes(1)
        cluster.wait_job("runner", "RUNNING", timeout_s=30)
        with self.assertRaises(grpc.RpcError) as refused:
            cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id="new", jobs=[make_job("new", "q", ["true"])]), timeout=10)
        self.assertEqual(refused.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertTrue(alive(pid))
        os.unlink(self.disk / "ballast")
        wait_until(lambda: cluster.server.get("/readyz")[0] == 200, 30, "the pause ends")
        self.assertEqual(cluster.server.metric("berth_store_reserve_bytes"), 32 << 20)
        cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id="new", jobs=[make_job("new", "q", ["true"])]), timeout=10)
        cluster.wait_job("new", "SUCCEEDED")
        self.assertTrue(alive(pid))

    def test_killed_when_jobs_have_filled_the_disk(self):
        """It starts anyway, with every acknowledged job."""
        cluster = self.cluster
        cluster.server.start()
        cluster.create_queue("q")
        self.fill_disk(left_mib=40)
        acknowledged, refused = [], False
        while not refused:
            names = [f"many-{len(acknowledged) + i}" for i in range(20)]
            jobs = [make_job(name, "q", ["true"], suspended=True, annotations={"padding": os.urandom(30000).hex()}) for name in names]
            try:
                cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=names[0], jobs=jobs), timeout=20)
                acknowledged += names
            except grpc.RpcError as error:
                self.assertIn(error.code(), (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.DEADLINE_EXCEEDED))
                refused = True
        self.assertGreater(len(acknowledged), 500)
        cluster.server.kill()
        self.fill_up("rest")
        cluster.server.start(wait=False)
        wait_until(lambda: cluster.server.get("/readyz")[0] == 503 and "disk full" in cluster.server.get("/readyz")[1], 60,
                   "it runs, and reports the full disk")
        self.assertGreater(cluster.server.metric("berth_store_reserve_bytes"), 0)
        self.assertEqual(set(acknowledged) - {job.name for job in cluster.api.all_jobs()}, set())
        cluster.add_agent("n1")
        cluster.wait_nodes(1)
        subprocess.run(["mount", "-o", "remount,size=256m", str(self.disk)], check=True)
        wait_until(lambda: cluster.server.get("/readyz")[0] == 200, 30, "the pause ends")

    def check_paused(self, pid):
        server = self.cluster.server
        status, body = server.get("/readyz")
        self.assertEqual(status, 503)
        self.assertIn("disk full", body)
        self.assertEqual(server.get("/healthz")[0], 200, "a full disk is no reason to restart the process")
        self.assertEqual(server.metric("berth_accepting_work"), 0)
        self.assertTrue(server.running())
        self.assertTrue(alive(pid), "running tasks are unaffected")
        info = self.cluster.berth("cluster", "info")
        self.assertIn("disk full", info)

    def check_nothing_lost(self, acknowledged, pid):
        stored = {job.name for job in self.cluster.api.all_jobs()}
        self.assertEqual(sorted(set(acknowledged) - stored), [])
        self.cluster.wait_job("runner", "RUNNING", timeout_s=30)
        self.assertTrue(alive(pid))


class PlannedStop(SmallDisk):
    leases = {"lease": f"{LEASE_S}s", "heartbeatInterval": "1s", "fenceMargin": "1s", "stopLease": "30s"}

    def test_a_planned_stop_on_a_full_disk(self):
        """The longer lease is recorded in the reserved space: a task that depends on it survives the stop."""
        cluster = self.cluster
        pid = self.start_runner()
        self.fill_up("ballast")
        self.assertIn(False, (self.submit(number) for number in range(2000)), "the disk did not fill up")
        wait_until(lambda: cluster.server.get("/readyz")[0] == 503, 30, "it reports the full disk")
        self.assertEqual(cluster.server.stop(), 0)
        said = cluster.server.output()
        self.assertIn("agents were granted a longer lease for the stop", said)
        self.assertNotIn("did not confirm the longer lease", said)
        self.assertNotIn("cannot be recorded", said)
        time.sleep(3 * LEASE_S)
        self.assertTrue(alive(pid), "the agent holds the longer lease")
        cluster.server.start(wait=False)
        cluster.wait_nodes(1)
        self.assertEqual(cluster.wait_job("runner", "RUNNING", timeout_s=30).status.start_count, 1)
        self.assertTrue(alive(pid))


if __name__ == "__main__":
    unittest.main(verbosity=2)
