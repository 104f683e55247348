#!/usr/bin/env python3
"""kill -9 at named points: right before and right after a write of a log, its sync, an answer on its way out, the making of a
control group, the start of a supervisor, and so on (kill_points.py lists them), under a load of gangs, restarts and cancels.

Holds: every acknowledged job is there; no (job, task, attempt) starts twice; gangs are whole; what ran before runs on.

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
REACH_S = 60  # a point is reached within this under the load


class KillPoints(unittest.TestCase):
    def setUp(self):
        print(f"SEED={SEED} KILLS={KILLS}", flush=True)
        self.random = random.Random(SEED)
        # A server that is killed again as soon as it is ready may not be found by its agents for minutes.
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
        wait_until(lambda: notes.read_text().count("\n") == 2, 20, "two survivors have told their pids")
        return [int(pid) for pid in notes.read_text().split()]

    def check_survivors(self):
        self.assertTrue(all(alive(pid) for pid in self.survivors), "a running task died")
        job = self.cluster.wait_job("survivors", "RUNNING", timeout_s=30)
        self.assertEqual(job.status.start_count, 1)

    def plan(self, *programs):
        """Every wanted point so often, in a random order: (point, count)."""
        names = [name for program in programs for name in points(program) if WANTED.search(name)] * KILLS
        self.random.shuffle(names)
        return [(name, self.random.randint(1, call_of(name)[0].most)) for name in names]

    def finish(self, kills, whole):
        self.load.stop()
        self.watch.stop()
        self.check_survivors()
        started = self.load.check(self, whole)
        self.assertEqual(self.watch.partial, [], "gangs that run in part")
        print(f"{kills} kills: {len(self.load.acked)} acknowledged jobs all there, {len(self.load.cancelled)} of them cancelled, "
              f"{started} real tasks started once each, {self.load.lost_answers} answers lost and asked again, running gangs "
              f"looked at {self.watch.looks} times", flush=True)

    def kill_while_starting(self, program, switch, point, count):
        """It may start with fewer such calls than `count`."""
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
            self.cluster.add_agent(name, start=False, cpu="36", sharedPid=True)  # pids that are known out here
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
        print(f"{missed} starts had fewer calls than were waited for", flush=True)
        self.finish(kills, whole=True)

    def start_agents(self):
        """Two, each with a switch, which their supervisors have, too."""
        switches = {}
        for name in ("n1", "n2"):
            agent = self.cluster.add_agent(name, start=False, cpu="36", sharedPid=True)  # pids that are known out here
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
        """Its own task ends with it, as a failure that the job's retries pay for; no other task does."""
        switches = self.start_agents()
        plan = self.plan("supervisor")
        for point, count in plan:
            switch = switches[self.random.choice(["n1", "n2"])]
            switch.arm(point, count)
            wait_until(lambda: switch.left() <= 0, REACH_S, f"a supervisor reaches {point}")
        self.finish(len(plan), whole=False)


if __name__ == "__main__":
    unittest.main(verbosity=2)
