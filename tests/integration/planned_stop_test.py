#!/usr/bin/env python3
"""berthd is down for three leases. A planned stop (SIGTERM) and `berth cluster pause` keep every task in its process; a
crash without either fences as documented; an agent that was unreachable before the stop never leads to two attempts at
once.
"""
import pathlib
import signal
import time
import unittest

from berth_api import cluster_pb2
from berth_harness import alive, wait_until
from ticking_gang import FENCE_S, GRACE_S, LEASE_S, TickingGang

AWAY_S = 3 * LEASE_S
STOP_LEASE_S = 30


class PlannedStop(TickingGang):
    config = {**TickingGang.config, "stopLease": f"{STOP_LEASE_S}s"}

    def start_all(self):
        for name in ("n1", "n2", "n3"):
            self.cluster.add_agent(name)
        self.cluster.wait_nodes(3)
        self.cordon("n3")
        places = self.start_gang()
        self.uncordon("n3")
        self.pids = self.task_pids()
        self.assertGreaterEqual(len(self.pids), 2)
        return places

    def task_pids(self):
        """Pids of the gang's shells, by their command line; a short-lived fork of a shell looks the same."""
        parents = {}
        for pid in self.cluster.processes():
            try:
                arguments = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                parent = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if arguments[0] == b"sh" and b"TICKS" in b" ".join(arguments):
                parents[pid] = parent
        return sorted(pid for pid, parent in parents.items() if parent not in parents)

    def check_same_processes(self):
        self.cluster.wait_nodes(3)
        self.check_never_restarted()
        self.assertEqual(self.task_pids(), self.pids)
        self.assertTrue(all(alive(pid) for pid in self.pids))

    def test_a_planned_stop(self):
        self.start_all()
        self.assertEqual(self.cluster.server.stop(), 0)
        self.assertIn("agents were granted a longer lease for the stop", self.cluster.server.output())
        time.sleep(AWAY_S)
        self.assertTrue(all(alive(pid) for pid in self.pids), "tasks continue while berthd is down")
        self.cluster.server.start()
        self.check_same_processes()
        # The usual lease applies again: a node that dies now is fenced in the usual time.
        node = {task.rank: task.node for task in self.cluster.api.tasks("gang")}[0]
        died = time.time()
        self.cluster.agents[node].signal(signal.SIGSTOP)
        self.addCleanup(lambda: self.cluster.agents[node].signal(signal.SIGCONT))
        self.wait_second_attempt(FENCE_S + 20)
        self.assertLess(time.time() - died, STOP_LEASE_S)
        self.assert_no_overlap()

    def test_a_pause_and_a_crash(self):
        self.start_all()
        said = self.cluster.berth("cluster", "pause", "--for", "60s")
        self.assertIn("3 nodes hold the longer lease", said)
        self.assertIn("Paused", self.cluster.berth("cluster", "info"))
        self.cluster.server.kill()
        time.sleep(AWAY_S)
        self.assertTrue(all(alive(pid) for pid in self.pids), "tasks continue while berthd is down")
        self.cluster.server.start()
        self.check_same_processes()
        self.assertNotIn("Paused", self.cluster.berth("cluster", "info"))

    def test_agents_that_restart_while_it_is_down_keep_the_longer_lease(self):
        self.start_all()
        self.assertEqual(self.cluster.server.stop(), 0)
        for agent in self.cluster.agents.values():
            agent.kill()
        time.sleep(2 * LEASE_S)
        for agent in self.cluster.agents.values():
            agent.start()
        time.sleep(LEASE_S)
        self.cluster.server.start()
        self.check_same_processes()

    def test_a_pause_is_bounded_and_ends(self):
        self.cluster.add_agent("n1")
        self.cluster.wait_nodes(1)
        refused = self.cluster.run_berth("cluster", "pause", "--for", "48h")
        self.assertEqual(refused.returncode, 4)
        self.assertIn("longestLease", refused.stderr)
        self.assertEqual(self.cluster.run_berth("cluster", "pause", "--for", "1s").returncode, 4)
        self.cluster.berth("cluster", "maintenance", "--for", "5m")
        info = self.cluster.api.cluster.GetClusterInfo(cluster_pb2.GetClusterInfoRequest(), timeout=5)
        self.assertEqual((info.pause.nodes_holding, info.pause.nodes_not_holding), (1, 0))
        self.cluster.berth("cluster", "resume")
        self.assertNotIn("Paused", self.cluster.berth("cluster", "info"))
        self.assertIn("the cluster is paused", self.cluster.server.output())

    def test_a_crash_without_a_pause_fences(self):
        self.start_all()
        self.cluster.server.kill()
        time.sleep(AWAY_S)
        self.assertFalse(any(alive(pid) for pid in self.pids), "agents without a server kill their fenced tasks")
        self.cluster.server.start()
        self.wait_second_attempt(FENCE_S + 30)
        self.assert_no_overlap()

    def test_an_agent_that_was_not_reached_before_the_stop(self):
        places = self.start_all()
        away = self.cluster.agents[places[1]]
        away.signal(signal.SIGSTOP)
        self.addCleanup(lambda: away.running() and away.signal(signal.SIGCONT))
        stopped = time.time()
        self.assertEqual(self.cluster.server.stop(), 0)
        self.assertIn(places[1], self.cluster.server.output().split("did not confirm the longer lease")[1])
        time.sleep(AWAY_S)
        self.assertLessEqual(self.last_tick(1, 1) - stopped, LEASE_S + GRACE_S + 1, "its supervisor keeps the usual lease")
        self.cluster.server.start()
        # The server must assume that it holds the longer lease, and it does not return.
        self.wait_second_attempt(STOP_LEASE_S + FENCE_S + 30)
        self.assertGreaterEqual(self.first_tick(1, 2) - stopped, STOP_LEASE_S)
        self.assert_no_overlap()


if __name__ == "__main__":
    unittest.main(verbosity=2)
