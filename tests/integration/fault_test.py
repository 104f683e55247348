#!/usr/bin/env python3
"""Who is at fault for a refused start, with real programs: a typo fails the job of its user and affects no others; a
faulty node backs off and is then cordoned, and no task is evicted."""
import os
import time
import unittest

from google.protobuf import duration_pb2

from berth_api import job_pb2, make_job, node_pb2
from berth_harness import Cluster, alive, wait_until
from kill_points import KillSwitch, wait_killed

WITHIN_S = 30  # "within seconds", on a loaded machine


class Fault(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.cluster.belongs_to(self)
        self.notes = self.cluster.shared_file("notes")

    def start(self, agents=3, **config):
        self.cluster.server.start()
        for number in range(1, agents + 1):
            self.cluster.add_agent(f"n{number}", **config)
        self.cluster.wait_nodes(agents)
        self.cluster.create_queue("q")
        self.cluster.create_queue("others")

    def submit(self, *jobs):
        self.cluster.api.jobs.SubmitJobs(
            job_pb2.SubmitJobsRequest(request_id=f"{jobs[0].name}-{time.time_ns()}", jobs=jobs), timeout=10)

    def start_healthy_gang(self):
        job = make_job("healthy", "others", ["sh", "-c", 'echo $$ >> "$NOTES"; exec sleep 100000'], replicas=3,
                       cpu_millis=5000, env={"NOTES": str(self.notes)})
        self.submit(job)
        self.cluster.wait_job("healthy", "RUNNING")
        wait_until(lambda: self.notes.read_text().count("\n") == 3, 20, "three members have written their pids")
        return [int(pid) for pid in self.notes.read_text().split()]

    def nodes(self):
        return self.cluster.api.nodes.ListNodes(node_pb2.ListNodesRequest(), timeout=10).nodes

    def check_untouched(self, pids):
        self.assertTrue(all(alive(pid) for pid in pids), "a healthy task died")
        job = self.cluster.wait_job("healthy", "RUNNING")
        self.assertEqual(job.status.start_count, 1)

    def check_nobody_is_blamed(self):
        for node in self.nodes():
            status = node.status
            self.assertFalse(status.cordoned or status.draining, f"{node.name}: {status.reason}")
            self.assertFalse(status.HasField("backoff_until"), node.name)
            self.assertEqual(status.refusals, 0, node.name)

    def directories(self):
        """Names of task directories on all nodes, except those of the healthy gang."""
        names = []
        for agent in self.cluster.agents.values():
            for directory in (agent.state / "tasks").iterdir():
                if not (directory / "status").exists() or b"phase=1" not in (directory / "status").read_bytes():
                    names.append(str(directory))
        return names

    def try_typos(self, count, kind, **spec):
        """`count` jobs with the same mistake: each fails with the agent's message, after at most two starts."""
        names = [f"{kind}-{number}" for number in range(count)]
        jobs = []
        for name in names:
            job = make_job(name, "q", ["sleep", "1"], cpu_millis=100, max_retries=3)
            for key, value in spec.items():
                setattr(job.spec.groups[0], key, value)
            jobs.append(job)
        begin = time.monotonic()
        self.submit(*jobs)
        failed = [self.cluster.wait_job(name, "FAILED", timeout_s=WITHIN_S) for name in names]
        print(f"{count} jobs ({kind}) failed within {time.monotonic() - begin:.2f} s", flush=True)
        return failed

    def test_a_wrong_working_directory_fails_only_its_job(self):
        self.start()
        pids = self.start_healthy_gang()
        for count in (5, 8):
            for job in self.try_typos(count, f"typo{count}", working_dir="/does-not-exist"):
                self.assertRegex(job.status.message, r"^\S+-0: cannot enter directory /does-not-exist: No such file or "
                                                     r"directory \(refused by n[123] and n[123]\)$")
                self.assertEqual(job.status.start_count, 2)
                self.assertEqual(job.status.retries, 0)
            self.check_nobody_is_blamed()
        self.check_untouched(pids)
        listed = self.cluster.berth("job", "list", "--all")
        self.assertIn("cannot enter directory /does-not-exist", listed)
        self.assertIn("cannot enter directory /does-not-exist", self.cluster.berth("job", "get", "typo5-0"))
        self.assertEqual(self.directories(), [], "refused starts left directories")
        self.assertEqual(self.cluster.server.metric('berth_starts_refused_total{fault="job"}'), 26)
        self.assertEqual(self.cluster.server.metric('berth_starts_refused_total{fault="node"}'), 0)
        self.assertEqual(self.cluster.server.metric("berth_nodes_backing_off"), 0)

    def test_a_missing_image_fails_only_its_job(self):
        self.start()
        pids = self.start_healthy_gang()
        for job in self.try_typos(5, "image", image="team/tyop:1"):
            self.assertIn("image", job.status.message)
            self.assertRegex(job.status.message, r"\(refused by n[123] and n[123]\)$")
        self.check_nobody_is_blamed()
        self.check_untouched(pids)

    def test_an_impossible_prepare_timeout_fails_only_its_job(self):
        self.start()
        pids = self.start_healthy_gang()
        names = [f"hasty-{number}" for number in range(8)]
        self.submit(*[make_job(name, "q", ["sleep", "1"], cpu_millis=100,
                               prepare_timeout=duration_pb2.Duration(nanos=1_000_000)) for name in names])
        for name in names:  # a prepare that was fast enough is no failure
            job = self.cluster.wait_job(name, "FAILED", "SUCCEEDED", timeout_s=WITHIN_S)
            if job_pb2.JobState.Name(job.status.state) == "JOB_FAILED":
                self.assertRegex(job.status.message, r"-0 was not prepared within 1ms \(prepareTimeout\) on n[123] and n[123]$")
                self.assertEqual(job.status.start_count, 2)
        self.check_nobody_is_blamed()
        self.check_untouched(pids)

    def test_on_a_single_node_the_typo_fails_after_a_second_attempt(self):
        self.start(agents=1)
        (job,) = self.try_typos(1, "alone", working_dir="/does-not-exist")
        self.assertRegex(job.status.message, r"cannot enter directory /does-not-exist: .* \(refused by n1\)$")
        self.assertEqual(job.status.start_count, 2)
        self.check_nobody_is_blamed()

    def test_a_node_that_cannot_start_tasks_backs_off_is_cordoned_and_evicts_no_task(self):
        self.check_broken_prolog(replicas=1)

    def test_a_node_that_cannot_start_gangs_backs_off_is_cordoned_and_evicts_no_task(self):
        self.check_broken_prolog(replicas=2)  # prepared first, and refused at start

    def check_broken_prolog(self, replicas):
        prolog = self.cluster.home / "prolog"
        prolog.write_text(f'#!/bin/sh\n[ ! -e "{self.cluster.home}/broken" ] || exit 3\n')
        prolog.chmod(0o755)
        self.start(agents=1, hooks={"prolog": [str(prolog)]})
        healthy = make_job("healthy", "others", ["sh", "-c", 'echo $$ >> "$NOTES"; exec sleep 100000'],
                           cpu_millis=1000, env={"NOTES": str(self.notes)})
        self.submit(healthy)
        self.cluster.wait_job("healthy", "RUNNING")
        wait_until(lambda: self.notes.read_text().count("\n") == 1, 20, "the healthy task has written its pid")
        pids = [int(pid) for pid in self.notes.read_text().split()]
        (self.cluster.home / "broken").touch()
        self.submit(*[make_job(f"j{number}", "q", ["true"], replicas=replicas, cpu_millis=100) for number in range(5)])

        def says_why():
            job = self.cluster.api.jobs.GetJob(job_pb2.GetJobRequest(name="j0"), timeout=5)
            codes = {job_pb2.WaitReason.Code.Name(reason.code): reason for reason in job.status.reasons}
            reason = codes.get("NODES_BACKING_OFF")
            return reason is not None and reason.nodes == 1 and "prolog exited with 3" in reason.detail and reason
        reason = wait_until(says_why, 30, "the reason names the nodes that back off", 0.01)
        self.assertRegex(reason.detail, r"1 node is backing off until [0-9:]+ UTC, after refusing (this job|job j\d): prolog")
        self.assertTrue(reason.HasField("until"))
        wait_until(lambda: "backs off until" in self.cluster.berth("node", "list"), 30, "node list shows the back-off")
        self.assertGreater(self.cluster.server.metric('berth_starts_refused_total{fault="node"}'), 0)

        def cordoned():
            (node,) = self.nodes()
            return node.status.cordoned and node
        node = wait_until(cordoned, 90, "the node is cordoned")
        self.assertFalse(node.status.draining)
        self.assertRegex(node.status.reason, r"^starts refused: 5 jobs in a row, the last: prolog exited with 3")
        self.check_untouched(pids)
        (self.cluster.home / "broken").unlink()
        self.cluster.berth("node", "uncordon", "n1")
        for number in range(5):
            self.cluster.wait_job(f"j{number}", "SUCCEEDED", timeout_s=90)
        self.check_untouched(pids)

    def test_out_of_memory_is_in_the_jobs_message(self):
        self.start(agents=1)
        if "cgroups: none" in self.cluster.agents["n1"].output():
            self.skipTest("no control groups on this machine")
        hungry = "b = []\nwhile True: b.append(bytearray(8 << 20))"
        wish = make_job("hungry", "q", ["python3", "-c", hungry])
        wish.spec.groups[0].resources.memory_bytes = 64 << 20
        self.submit(wish)
        job = self.cluster.wait_job("hungry", "FAILED")
        if "ran out of memory" not in job.status.message and "MemoryError" in self.cluster.berth("job", "logs", "hungry"):
            self.skipTest("memory is limited by rlimits on this machine")
        self.assertRegex(job.status.message, r"^\S+-0 ran out of memory on n1: it requested 64Mi \(exit 137\)$")
        self.assertIn("ran out of memory on n1", self.cluster.berth("job", "list", "--all"))


class KilledBeforeExec(unittest.TestCase):
    """An agent that is killed between journalling a start and the supervisor's exec: nothing ran, and the job restarts
    without consuming a retry."""

    POINTS = ("agent.spec.before_write", "agent.spec.after_write", "agent.supervisor.before_spawn", "agent.group.after_mkdir",
              "supervisor.status.before_write", "supervisor.status.before_rename")

    def test_the_start_is_refused_and_repeated(self):
        cluster = Cluster({"lease": "1h"})
        cluster.belongs_to(self)
        switch = KillSwitch(cluster.home)
        starts = cluster.shared_file("starts")
        cluster.server.start()
        agent = cluster.add_agent("n1", start=False)
        switch.watch(agent)
        agent.start()
        cluster.wait_nodes(1)
        cluster.create_queue("q")
        done = 0
        for number, point in enumerate(self.POINTS * int(os.environ.get("KILLS", "1"))):
            name = f"j{number}"
            switch.arm(point, 1)
            job = make_job(name, "q", ["sh", "-c", 'echo "$BERTH_JOB $BERTH_ATTEMPT" >> "$STARTS"'], cpu_millis=100,
                           env={"STARTS": str(starts)})
            cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=name, jobs=[job]), timeout=10)
            if point.startswith("agent."):
                try:
                    wait_killed(agent, switch, 20)
                except AssertionError:  # without control groups this point is never reached
                    switch.disarm()
                    cluster.wait_job(name, "SUCCEEDED")
                    continue
                agent.start()
            ended = cluster.wait_job(name, "SUCCEEDED", "FAILED", timeout_s=60)
            switch.disarm()
            self.assertEqual(job_pb2.JobState.Name(ended.status.state), "JOB_SUCCEEDED", f"{point}: {ended.status.message}")
            self.assertEqual(ended.status.retries, 0, point)
            self.assertEqual(starts.read_text().splitlines().count(f"{name} 2"), 1, point)
            self.assertNotIn(f"{name} 1", starts.read_text().splitlines(), point)
            done += 1
        self.assertGreaterEqual(done, 4)
        self.assertEqual(len(starts.read_text().splitlines()), len(set(starts.read_text().splitlines())))
        print(f"{done} kills before the command began: all ran once, at the second attempt", flush=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
