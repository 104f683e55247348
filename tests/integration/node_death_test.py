#!/usr/bin/env python3
"""A node dies or falls silent: its gang starts anew after lease + kill grace + margin, and never before.

Every rank writes "attempt time" lines while it lives; the two attempts of one rank must not overlap.
"""
import os
import signal
import socket
import threading
import time
import unittest

from berth_api import job_pb2, make_job, node_pb2
from berth_harness import Cluster, free_port, wait_until, write_yaml

LEASE_S, MARGIN_S, GRACE_S, HEARTBEAT_S = 3, 1, 1, 1
FENCE_S = LEASE_S + GRACE_S + MARGIN_S
# `silentBrake: 1`: with three nodes, one is already more than a fifth of the cluster.
CONFIG = {"lease": f"{LEASE_S}s", "heartbeatInterval": f"{HEARTBEAT_S}s", "fenceMargin": f"{MARGIN_S}s",
          "silentBrake": 1.0}
TICK = ('trap "" TERM; while true; do echo "$BERTH_ATTEMPT $(date +%s.%N)" >> "$TICKS/$RANK"; sleep 0.1; done')


class Relay(threading.Thread):
    """A TCP relay that can stop passing anything on, as a cut network does: connections stay, bytes do not move."""

    def __init__(self, target_port):
        super().__init__(daemon=True)
        self.port, self.target_port, self.cut = free_port(), target_port, threading.Event()
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.start()

    def run(self):
        while True:
            near, _ = self.listener.accept()
            if self.cut.is_set():
                near.close()
                continue
            far = socket.create_connection(("127.0.0.1", self.target_port))
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self.pump, args=(source, sink), daemon=True).start()

    def pump(self, source, sink):
        try:
            while data := source.recv(65536):
                while self.cut.is_set():
                    time.sleep(0.05)
                sink.sendall(data)
        except OSError:
            pass
        sink.close()


class NodeDeath(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(CONFIG)
        self.cluster.belongs_to(self)
        self.cluster.server.start()
        self.ticks = self.cluster.home / "ticks"
        self.ticks.mkdir()
        self.ticks.chmod(0o777)
        self.cluster.create_queue("q")

    def start_gang(self, replicas=2, **spec):
        """Tasks of 6 CPUs each: two cannot share a node of 8."""
        job = make_job("gang", "q", ["sh", "-c", TICK], replicas=replicas, cpu_millis=6000,
                       env={"TICKS": str(self.ticks)}, **spec)
        job.spec.kill_grace.FromSeconds(GRACE_S)
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id="gang", jobs=[job]), timeout=10)
        self.cluster.wait_job("gang", "RUNNING")
        wait_until(lambda: len(self.lines(0)) > 3 and len(self.lines(1)) > 3, 10, "both ranks tick")
        return {task.rank: task.node for task in self.cluster.api.tasks("gang")}

    def lines(self, rank):
        text = (self.ticks / str(rank)).read_text()
        return [(int(a), float(t)) for a, t in (line.split() for line in text.splitlines() if line.count(" ") == 1)]

    def first_tick(self, rank, attempt):
        return min((t for a, t in self.lines(rank) if a == attempt), default=None)

    def last_tick(self, rank, attempt):
        return max((t for a, t in self.lines(rank) if a == attempt), default=None)

    def wait_second_attempt(self, timeout_s):
        wait_until(lambda: self.first_tick(0, 2) and self.first_tick(1, 2), timeout_s, "the gang ticks anew")

    def assert_no_overlap(self):
        for rank in (0, 1):
            self.assertGreater(self.first_tick(rank, 2), self.last_tick(rank, 1), f"two attempts of rank {rank} at once")

    def node_state(self, name):
        node = self.cluster.api.nodes.GetNode(node_pb2.GetNodeRequest(name=name), timeout=5)
        return node_pb2.NodeState.Name(node.status.state)

    def test_dead_node(self):
        for name in ("n1", "n2", "n3"):
            self.cluster.add_agent(name)
        self.cluster.wait_nodes(3)
        victim = self.start_gang()[1]
        died = time.time()
        self.kill_node(victim)
        wait_until(lambda: self.node_state(victim) == "NODE_SILENT", LEASE_S + 5, "the dead node is silent")
        self.wait_second_attempt(FENCE_S + 20)
        # The last heartbeat may be up to one interval older than the death.
        waited = min(self.first_tick(rank, 2) for rank in (0, 1)) - died
        self.assertGreaterEqual(waited, FENCE_S - HEARTBEAT_S)
        self.assertEqual(self.node_state(victim), "NODE_LOST")
        self.assertNotIn(victim, {task.node for task in self.cluster.api.tasks("gang")})
        self.assert_no_overlap()
        print(f"dead node: gang ran anew after {waited:.1f} s (lease {LEASE_S} + grace {GRACE_S} + margin {MARGIN_S})")

    def kill_node(self, name):
        """The agent, its supervisors and their tasks at one blow."""
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
        self.cluster.add_agent("n2", server=f"127.0.0.1:{relay.port}", labels={"behind": "relay"})
        self.cluster.wait_nodes(3)
        self.cordon("n3")
        places = self.start_gang()
        self.assertEqual(set(places.values()), {"n1", "n2"})
        self.uncordon("n3")
        cut_rank = next(rank for rank, node in places.items() if node == "n2")
        cut = time.time()
        relay.cut.set()
        self.wait_second_attempt(FENCE_S + 20)
        lived = self.last_tick(cut_rank, 1) - cut
        waited = self.first_tick(cut_rank, 2) - cut
        self.assertLessEqual(lived, LEASE_S + GRACE_S + 0.5, "the agent kills strict tasks when its lease lapses")
        self.assertGreaterEqual(waited, FENCE_S - HEARTBEAT_S)
        self.assert_no_overlap()
        relay.cut.clear()
        self.cluster.wait_nodes(3)
        print(f"cut network: tasks behind it lived {lived:.1f} s, were replaced after {waited:.1f} s, node came back")

    def test_stopped_agent_cannot_keep_its_tasks_alive(self):
        """The supervisors watch the lease, too: an agent that hangs does not defeat fencing."""
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

    def test_short_silence_is_no_death(self):
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

    def cordon(self, name):
        self.cluster.api.nodes.CordonNode(node_pb2.CordonNodeRequest(name=name, reason="test"), timeout=5)

    def uncordon(self, name):
        self.cluster.api.nodes.UncordonNode(node_pb2.UncordonNodeRequest(name=name), timeout=5)

    def test_silent_brake(self):
        """Many nodes silent at once are more likely our network than their death: nothing is replaced."""
        self.cluster.server.stop()
        write_yaml(self.cluster.server.config, dict(CONFIG, silentBrake=0.2))
        self.cluster.server.start()
        names = ["n1", "n2", "n3", "n4", "n5", "n6"]
        for name in names:
            self.cluster.add_agent(name)
        self.cluster.wait_nodes(len(names))
        places = self.start_gang(replicas=3, max_retries=2)  # used up when the nodes come back without their tasks
        for name in places.values():
            self.kill_node(name)
        wait_until(lambda: self.cluster.server.metric("berth_silent_brake") == 1, LEASE_S + 5, "the brake holds")
        time.sleep(FENCE_S)
        self.assertIsNone(self.first_tick(0, 2))
        for name in places.values():
            self.cluster.agents[name].start()
        self.wait_second_attempt(30)
        self.assert_no_overlap()
        print("three of six nodes silent: nothing was replaced until they came back")


if __name__ == "__main__":
    unittest.main(verbosity=2)
