#!/usr/bin/env python3
"""A node dies or falls silent: its gang restarts after lease + kill grace + margin, and never before.

Every rank writes "attempt time" lines while it lives; the two attempts of one rank must not overlap.
"""
import os
import signal
import time
import unittest

from berth_harness import wait_until, write_yaml
from relay import Relay
from ticking_gang import CONFIG, FENCE_S, GRACE_S, HEARTBEAT_S, LEASE_S, MARGIN_S, TickingGang


class NodeDeath(TickingGang):
    def test_dead_node(self):
        for name in ("n1", "n2", "n3"):
            self.cluster.add_agent(name)
        self.cluster.wait_nodes(3)
        victim = self.start_gang()[1]
        died = time.time()
        self.kill_node(victim)
        wait_until(lambda: self.node_state(victim) == "NODE_SILENT", LEASE_S + 5, "the dead node is silent")
        self.wait_second_attempt(FENCE_S + 20)
        # The last heartbeat can be up to one interval older than the death.
        waited = min(self.first_tick(rank, 2) for rank in (0, 1)) - died
        self.assertGreaterEqual(waited, FENCE_S - HEARTBEAT_S)
        self.assertEqual(self.node_state(victim), "NODE_LOST")
        self.assertNotIn(victim, {task.node for task in self.cluster.api.tasks("gang")})
        self.assert_no_overlap()
        print(f"dead node: gang ran again after {waited:.1f} s (lease {LEASE_S} + grace {GRACE_S} + margin {MARGIN_S})")

    def kill_node(self, name):
        """Kills the agent, its supervisors and their tasks together."""
        agent = self.cluster.agents[name]
        agent.kill()
        for pid in self.cluster.processes(str(agent.state)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:  # a task's `sleep` that just ended
                pass

    def test_cut_network_agent_kills_its_tasks_first(self):
        relay = Relay(self.cluster.server.port)
        self.cluster.add_agent("n1")
        self.cluster.add_agent("n3")
        self.cluster.wait_nodes(2)
        self.cluster.add_agent("n2", server=relay.address, labels={"behind": "relay"})
        self.cluster.wait_nodes(3)
        self.cordon("n3")
        places = self.start_gang()
        self.assertEqual(set(places.values()), {"n1", "n2"})
        self.uncordon("n3")
        cut_rank = next(rank for rank, node in places.items() if node == "n2")
        cut = time.time()
        relay.cut()
        self.wait_second_attempt(FENCE_S + 20)
        lived = self.last_tick(cut_rank, 1) - cut
        waited = self.first_tick(cut_rank, 2) - cut
        self.assertLessEqual(lived, LEASE_S + GRACE_S + 0.5, "the agent kills strict tasks when its lease expires")
        self.assertGreaterEqual(waited, FENCE_S - HEARTBEAT_S)
        self.assert_no_overlap()
        relay.heal()
        self.cluster.wait_nodes(3)
        print(f"cut network: tasks behind it lived {lived:.1f} s, were replaced after {waited:.1f} s, node returned")

    def test_stopped_agent_cannot_keep_its_tasks_alive(self):
        """The supervisors watch the lease, too: an agent that hangs does not prevent fencing."""
        for name in ("n1", "n2", "n3"):
            self.cluster.add_agent(name)
        self.cluster.wait_nodes(3)
        agent = self.cluster.agents[self.start_gang()[1]]
        stopped = time.time()
        agent.signal(signal.SIGSTOP)
        self.addCleanup(agent.signal, signal.SIGCONT)
        self.wait_second_attempt(FENCE_S + 20)
        lived = self.last_tick(1, 1) - stopped
        self.assertLessEqual(lived, LEASE_S + GRACE_S + 0.5)
        self.assert_no_overlap()
        print(f"stopped agent: its task lived {lived:.1f} s longer")

    def test_a_short_silence_loses_nothing(self):
        for name in ("n1", "n2"):
            self.cluster.add_agent(name)
        self.cluster.wait_nodes(2)
        places = self.start_gang()
        agent = self.cluster.agents[places[1]]
        agent.signal(signal.SIGSTOP)
        time.sleep(LEASE_S * 0.5)
        agent.signal(signal.SIGCONT)
        time.sleep(FENCE_S + 1)
        job = self.cluster.wait_job("gang", "RUNNING")
        self.assertEqual(job.status.start_count, 1)
        self.assertEqual({a for a, _ in self.lines(0) + self.lines(1)}, {1})
        print("an agent stopped for half a lease lost nothing")

    def test_silent_brake(self):
        """If many nodes are silent at once, the network is more likely at fault than the nodes: nothing is replaced."""
        self.cluster.server.stop()
        write_yaml(self.cluster.server.config, dict(CONFIG, silentBrake=0.2))
        self.cluster.server.start()
        names = ["n1", "n2", "n3", "n4", "n5", "n6"]
        for name in names:
            self.cluster.add_agent(name)
        self.cluster.wait_nodes(len(names))
        places = self.start_gang(replicas=3, max_retries=2)  # consumed when the nodes return without their tasks
        for name in places.values():
            self.kill_node(name)
        wait_until(lambda: self.cluster.server.metric("berth_silent_brake") == 1, LEASE_S + 5, "the brake holds")
        time.sleep(FENCE_S)
        self.assertIsNone(self.first_tick(0, 2))
        for name in places.values():
            self.cluster.agents[name].start()
        self.wait_second_attempt(30)
        self.assert_no_overlap()
        print("three of six nodes silent: nothing was replaced until they returned")


if __name__ == "__main__":
    unittest.main(verbosity=2)
