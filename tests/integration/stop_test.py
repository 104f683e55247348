#!/usr/bin/env python3
"""SIGSTOP of the server or of an agent for several leases, then SIGCONT: fenced tasks are replaced once and never run
twice at once; tasks that are not fenced (onNodeLoss: Keep) continue in the same process; all programs recover.

STOP_S=60 stops for a minute, with the default lease (15 s); the default is 12 s, with a lease of 3 s.
"""
import os
import signal
import time
import unittest

from berth_api import job_pb2, make_job
from berth_harness import alive, wait_until
from ticking_gang import GRACE_S, TickingGang

STOP_S = int(os.environ.get("STOP_S", "12"))
LEASE_S, HEARTBEAT_S, MARGIN_S = (15, 5, 5) if STOP_S > 30 else (3, 1, 1)
FENCE_S = LEASE_S + GRACE_S + MARGIN_S


class Stopped(TickingGang):
    config = {"lease": f"{LEASE_S}s", "heartbeatInterval": f"{HEARTBEAT_S}s", "fenceMargin": f"{MARGIN_S}s",
              "silentBrake": 1.0}

    def start_all(self):
        """Starts a gang of two, a free third node, and a kept task on each node of the gang. Returns the kept pids."""
        self.assertGreater(STOP_S, 2 * LEASE_S)
        for name in ("n1", "n2", "n3"):
            self.cluster.add_agent(name, sharedPid=True)  # the tasks see host pids
        self.cluster.wait_nodes(3)
        self.cordon("n3")
        self.places = self.start_gang()
        notes = self.cluster.shared_file("kept")
        for name in ("kept-1", "kept-2"):
            job = make_job(name, "q", ["sh", "-c", 'echo $$ >> "$NOTES"; exec sleep 100000'], cpu_millis=2000,
                           env={"NOTES": str(notes)}, on_node_loss=job_pb2.KEEP)
            self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=name, jobs=[job]), timeout=10)
            self.cluster.wait_job(name, "RUNNING")
        wait_until(lambda: notes.read_text().count("\n") == 2, 20, "the kept tasks have written their pids")
        self.uncordon("n3")
        return [int(pid) for pid in notes.read_text().split()]

    def stand_still(self, program):
        """Returns the time at which it was stopped."""
        self.addCleanup(lambda: program.running() and program.signal(signal.SIGCONT))
        stopped = time.time()
        program.signal(signal.SIGSTOP)
        return stopped

    def check_replaced_once(self, kept):
        self.wait_second_attempt(FENCE_S + 30)
        self.cluster.wait_nodes(3)
        time.sleep(FENCE_S + 1)  # no late event changes the state after this
        job = self.cluster.wait_job("gang", "RUNNING")
        self.assertEqual(job.status.start_count, 2)
        self.assertEqual({attempt for attempt, _ in self.lines(0) + self.lines(1)}, {1, 2}, "one new start")
        self.assert_no_overlap()
        self.assertLess(time.time() - min(self.lines(rank)[-1][1] for rank in (0, 1)), 5, "both ranks keep ticking")
        self.assertTrue(all(alive(pid) for pid in kept), "a kept task has ended")
        for name in ("kept-1", "kept-2"):
            self.assertEqual(self.cluster.wait_job(name, "RUNNING").status.start_count, 1)

    def test_server(self):
        kept = self.start_all()
        stopped = self.stand_still(self.cluster.server)
        time.sleep(STOP_S)
        lived = max(self.last_tick(rank, 1) for rank in (0, 1)) - stopped
        self.assertLessEqual(lived, LEASE_S + GRACE_S + 0.5, "agents without a server kill their fenced tasks")
        self.cluster.server.signal(signal.SIGCONT)
        self.check_replaced_once(kept)
        print(f"server stopped for {STOP_S} s, lease {LEASE_S} s: tasks lived {lived:.1f} s of it and were started once more")

    def test_agent(self):
        kept = self.start_all()
        node = self.places[1]
        agent = self.cluster.agents[node]
        stopped = self.stand_still(agent)
        self.wait_second_attempt(FENCE_S + 20)
        waited = self.first_tick(1, 2) - stopped
        lived = self.last_tick(1, 1) - stopped
        self.assertLessEqual(lived, LEASE_S + GRACE_S + 0.5, "its supervisors kill fenced tasks without it")
        self.assertGreaterEqual(waited, FENCE_S - HEARTBEAT_S)
        time.sleep(max(0, stopped + STOP_S - time.time()))
        agent.signal(signal.SIGCONT)
        self.check_replaced_once(kept)
        print(f"agent stopped for {STOP_S} s, lease {LEASE_S} s: its task lived {lived:.1f} s of it and was replaced after "
              f"{waited:.1f} s")


if __name__ == "__main__":
    unittest.main(verbosity=2)
