"""Gangs whose ranks log that they are alive, for tests of silent nodes."""
import time
import unittest

from berth_api import job_pb2, make_job, node_pb2
from berth_harness import Cluster, wait_until

LEASE_S, MARGIN_S, GRACE_S, HEARTBEAT_S = 3, 1, 1, 1
FENCE_S = LEASE_S + GRACE_S + MARGIN_S
# `silentBrake: 1`: with three nodes, one is more than a fifth of the cluster.
CONFIG = {"lease": f"{LEASE_S}s", "heartbeatInterval": f"{HEARTBEAT_S}s", "fenceMargin": f"{MARGIN_S}s",
          "silentBrake": 1.0}
TICK = ('trap "" TERM; while true; do echo "$BERTH_ATTEMPT $(date +%s.%N)" >> "$TICKS/$RANK"; sleep 0.1; done')


class TickingGang(unittest.TestCase):
    config = CONFIG

    def setUp(self):
        self.cluster = Cluster(self.config)
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
        wait_until(lambda: self.first_tick(0, 2) and self.first_tick(1, 2), timeout_s, "the gang ticks again")

    def check_never_restarted(self):
        """No restart, not even within the time of a fence."""
        time.sleep(FENCE_S)
        job = self.cluster.wait_job("gang", "RUNNING")
        self.assertEqual(job.status.start_count, 1)
        self.assertEqual({a for a, _ in self.lines(0) + self.lines(1)}, {1})

    def assert_no_overlap(self):
        for rank in (0, 1):
            self.assertGreater(self.first_tick(rank, 2), self.last_tick(rank, 1), f"two attempts of rank {rank} at once")

    def node_state(self, name):
        node = self.cluster.api.nodes.GetNode(node_pb2.GetNodeRequest(name=name), timeout=5)
        return node_pb2.NodeState.Name(node.status.state)

    def cordon(self, name):
        self.cluster.api.nodes.CordonNode(node_pb2.CordonNodeRequest(name=name, reason="test"), timeout=5)

    def uncordon(self, name):
        self.cluster.api.nodes.UncordonNode(node_pb2.UncordonNodeRequest(name=name), timeout=5)
