#!/usr/bin/env python3
"""Clocks that jump, and processes that are stopped for a while. Leases use steady clocks: a jump of the time of day
changes nothing, and a stop longer than a lease leads to one new start, never to two attempts at once.
"""
import signal
import struct
import subprocess
import time
import unittest

from berth_api import job_pb2, make_job
from berth_harness import SOURCE, wait_until
from ticking_gang import CONFIG, FENCE_S, GRACE_S, LEASE_S, TickingGang


class Clock:
    """The time of day of one program, which must be started after this object is created."""

    def __init__(self, program, home):
        library, self.path = home / "day_clock.so", home / "day-clock"
        if not library.exists():
            subprocess.run(["c++", "-shared", "-fPIC", "-O1", "-o", str(library),
                            str(SOURCE / "tests" / "integration" / "day_clock.cc")], check=True)
        self.path.write_bytes(struct.pack("q", 0))
        program.environment = {"LD_PRELOAD": str(library), "DAY_CLOCK": str(self.path)}

    def set(self, hours):
        with open(self.path, "r+b") as file:
            file.write(struct.pack("q", hours * 3600))


class ClockJumps(TickingGang):
    config = {**CONFIG, "lease": "15s"}  # no restart in between takes this long
    jobs = 0

    def check_never_restarted(self):
        super().check_never_restarted()
        self.assertEqual({self.node_state(name) for name in self.cluster.agents}, {"NODE_READY"})

    def run_job(self, name):
        job = make_job(name, "q", ["true"], cpu_millis=100)
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=name, jobs=[job]), timeout=10)
        return self.cluster.wait_job(name, "SUCCEEDED")

    def ahead(self):
        """How far the server's clock is ahead of this one."""
        self.jobs += 1
        return self.run_job(f"at-{self.jobs}").status.submit_time.ToSeconds() - time.time()

    def test_server_clock_jumps(self):
        server = self.cluster.server
        server.stop()
        clock = Clock(server, self.cluster.home)
        server.start()
        for name in ("n1", "n2"):
            self.cluster.add_agent(name)
        self.cluster.wait_nodes(2)
        self.start_gang()
        # The time of the server never goes back: it stops until the clock has caught up.
        for hours, shown in ((1, 1), (-1, 1), (48, 48)):
            clock.set(hours)
            wait_until(lambda ahead=shown * 3600: abs(self.ahead() - ahead) < 120, 30, "the server's clock jumped")
        self.check_never_restarted()
        # The stored times are now two days ahead.
        clock.set(-1)
        server.kill()
        server.start()
        self.cluster.wait_nodes(2)
        self.run_job("after")
        self.check_never_restarted()
        print("the server's clock jumped back and forth by two days, also across a kill: nothing was restarted")

    def test_agent_clock_jumps(self):
        self.cluster.add_agent("n1")
        agent = self.cluster.add_agent("n2", start=False)
        clock = Clock(agent, self.cluster.home)
        agent.start()
        self.cluster.wait_nodes(2)
        self.start_gang()
        for hours in (1, -1, 48):
            clock.set(hours)
            time.sleep(LEASE_S / 2)
        agent.kill()
        clock.set(-1)
        agent.start()
        self.check_never_restarted()
        hour_ago = time.strftime("%Y-%m-%dT%H:", time.gmtime(time.time() - 3600))
        self.assertIn(hour_ago, agent.output(), "the agent's clock jumped")
        print("an agent's clock jumped back and forth by two days, also across a kill: its task continued")


class StoppedServer(TickingGang):
    def test_longer_than_a_lease(self):
        for name in ("n1", "n2"):
            self.cluster.add_agent(name)
        self.cluster.wait_nodes(2)
        self.start_gang()
        stopped = time.time()
        self.cluster.server.signal(signal.SIGSTOP)
        time.sleep(2 * FENCE_S)
        last = max(self.last_tick(rank, 1) for rank in (0, 1)) - stopped
        self.assertLessEqual(last, LEASE_S + GRACE_S + 0.5, "agents without a server kill their tasks")
        self.cluster.server.signal(signal.SIGCONT)
        self.wait_second_attempt(30)
        self.assert_no_overlap()
        self.assertEqual({a for a, _ in self.lines(0) + self.lines(1)}, {1, 2}, "one new start")
        print(f"a server stopped for {2 * FENCE_S} s: tasks lived {last:.1f} s of it and were started once more")


if __name__ == "__main__":
    unittest.main(verbosity=2)
