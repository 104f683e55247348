#!/usr/bin/env python3
"""kill -9 at named points: right before and right after a write to a log, its sync, the sending of an answer, the
creation of a control group, the start of a supervisor, and so on (kill_points.py lists them), under a load of gangs,
restarts and cancels.

Invariants: every acknowledged job is present; no (job, task, attempt) starts twice; gangs are whole; running tasks
continue.

KILLS (of each point; default 3), POINTS (a regular expression) and SEED change the run.
"""
import os
import random
import re
import time
import unittest

from berth_api import job_pb2, make_job
from berth_harness import Cluster, alive, wait_until
from kill_points import GangWatch, KillSwitch, Load, call_of, points, wait_killed

KILLS = int(os.environ.get("KILLS", "3"))
SEED = int(os.environ.get("SEED", str(time.time_ns() % 1_000_000)))
WANTED = re.compile(os.environ.get("POINTS", ""))
REACH_S = 60  # the load reaches a point within this time


class KillPoints(unittest.TestCase):
    def setUp(self):
        print(f"SEED={SEED} KILLS={KILLS}", flush=True)
        self.random = random.Random(SEED)
        # Agents may not reach a server for minutes that is killed again as soon as it is ready.
        self.cluster = Cluster({"lease": "1h"})
        self.cluster.belongs_to(self)

    def start(self):
        self.cluster.server.start()
        for agent in self.cluster.agents.values():
            agent.start()
        self.cluster.wait_nodes(2)
        self.cluster.create_queue("load")
        self.survivors = self.start_survivors()
        self.load = Load(self.cluster, SEED)
        self.watch = GangWatch(self.load)
        self.load.start()
        self.watch.start()

    def start_survivors(self):
        """A gang over both nodes that must outlive every kill."""
        notes = self.cluster.shared_file("survivors")
        job = make_job("survivors", "load", ["sh", "-c", 'echo $$ >> "$NOTES"; exec sleep 100000'], replicas=2,
                       cpu_millis=17000, env={"NOTES": str(notes)})
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id="survivors", jobs=[job]), timeout=10)
        self.cluster.wait_job("survivors", "RUNNING")
        wait_until(lambda: notes.read_text().count("\n") == 2, 20, "two survivors have written their pids")
        return [int(pid) for pid in notes.read_text().split()]

    def check_survivors(self):
        self.assertTrue(all(alive(pid) for pid in self.survivors), "a running task died")
        job = self.cluster.wait_job("survivors", "RUNNING", timeout_s=30)
        self.assertEqual(job.status.start_count, 1)

    def plan(self, *programs):
        """Every wanted point KILLS times, in random order: (point, count)."""
        names = [name for program in programs for name in points(program) if WANTED.search(name)] * KILLS
        self.random.shuffle(names)
        return [(name, self.random.randint(1, call_of(name)[0].most)) for name in names]

    def finish(self, kills, whole):
        self.load.stop()
        self.watch.stop()
        self.check_survivors()
        started = self.load.check(self, whole)
        self.assertEqual(self.watch.partial, [], "partially running gangs")
        print(f"{kills} kills: {len(self.load.acked)} acknowledged jobs all present, "
              f"{len(self.load.cancelled)} cancelled, {started} real tasks started once each, "
              f"{self.load.lost_answers} answers lost and requested again, "
              f"running gangs checked {self.watch.looks} times", flush=True)

    def kill_while_starting(self, program, switch, point, count):
        """A start may make fewer such calls than `count`."""
        program.kill()
        switch.arm(point, count)
        program.start(wait=False)
        wait_until(lambda: not program.running() or program.get("/readyz")[0] == 200, REACH_S, "it is killed or ready", 0.01)
        switch.disarm()
        if program.running():
            return False
        program.process.wait()
        return True

    def test_server(self):
        switch = KillSwitch(self.cluster.home)
        switch.watch(self.cluster.server)
        for name in ("n1", "n2"):
            self.cluster.add_agent(name, start=False, cpu="36", sharedPid=True)  # the tasks see host pids
        self.start()
        server, kills, missed = self.cluster.server, 0, 0
        for point, count in self.plan("server"):
            if call_of(point)[0].starting:
                if not self.kill_while_starting(server, switch, point, count):
                    missed += 1
                    continue
            else:
                switch.arm(point, count)
                wait_killed(server, switch, REACH_S)
            kills += 1
            server.start()
        print(f"{missed} starts had fewer calls than the kill point waited for", flush=True)
        self.finish(kills, whole=True)

    def start_agents(self):
        """Two agents, each with a kill switch, which their supervisors inherit."""
        switches = {}
        for name in ("n1", "n2"):
            agent = self.cluster.add_agent(name, start=False, cpu="36", sharedPid=True)  # they see host pids
            switches[name] = KillSwitch(self.cluster.home, f"kill-{name}")
            switches[name].watch(agent)
        self.start()
        return switches

    def test_agent(self):
        switches = self.start_agents()
        plan = self.plan("agent")
        for point, count in plan:
            name = self.random.choice(["n1", "n2"])
            switches[name].arm(point, count)
            wait_killed(self.cluster.agents[name], switches[name], REACH_S)
            self.cluster.agents[name].start()
        self.finish(len(plan), whole=False)

    def test_supervisor(self):
        """Its own task ends with it, as a failure that consumes a retry of the job; no other task does."""
        switches = self.start_agents()
        plan = self.plan("supervisor")
        for point, count in plan:
            switch = switches[self.random.choice(["n1", "n2"])]
            switch.arm(point, count)
            wait_until(lambda: switch.left() <= 0, REACH_S, f"a supervisor reaches {point}")
        self.finish(len(plan), whole=False)


if __name__ == "__main__":
    unittest.main(verbosity=2)
