#!/usr/bin/env python3
"""Networks that are cut one way, that flap, and that fail: strict tasks never run twice at once, and a network that
recovers within the lease costs nothing.

The relay cuts bytes; a network namespace cuts packets, so that packets in flight are sent again, late. SEED changes the
flapping.
"""
import os
import random
import subprocess
import time
import unittest

from berth_harness import wait_until
from relay import Relay
from ticking_gang import FENCE_S, GRACE_S, HEARTBEAT_S, LEASE_S, TickingGang

SEED = int(os.environ.get("SEED", str(time.time_ns() % 1_000_000)))


class Namespace:
    """A separate host, 10.213.N.2, connected to this one, 10.213.N.1."""

    def __init__(self, test):
        number = os.getpid() % 250 + 1
        self.name, self.cable, self.host = f"berth-{os.getpid()}", f"berth{os.getpid() % 100000}", f"10.213.{number}.1"
        self.ip("netns", "add", self.name)
        test.addCleanup(self.ip, "netns", "del", self.name)
        self.ip("link", "add", self.cable, "type", "veth", "peer", "name", "far", "netns", self.name)
        self.ip("addr", "add", f"{self.host}/30", "dev", self.cable)
        self.ip("-n", self.name, "addr", "add", f"10.213.{number}.2/30", "dev", "far")
        for device in ("lo", "far"):
            self.ip("-n", self.name, "link", "set", device, "up")
        self.connect()

    @staticmethod
    def ip(*arguments):
        subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)

    def cut(self):
        self.ip("link", "set", self.cable, "down")

    def connect(self):
        self.ip("link", "set", self.cable, "up")


class Partition(TickingGang):
    def gang_behind(self, relay, command=()):
        """Starts a gang of two, one of them on n2, which is behind the relay; n3 is free. Returns the rank on n2."""
        for name in ("n1", "n3"):
            self.cluster.add_agent(name)
        self.cluster.wait_nodes(2)
        agent = self.cluster.add_agent("n2", server=relay.address, start=False)
        agent.arguments = [*command, *agent.arguments]
        agent.start()
        self.cluster.wait_nodes(3)
        self.cordon("n3")
        places = self.start_gang()
        self.assertEqual(set(places.values()), {"n1", "n2"})
        self.uncordon("n3")
        return next(rank for rank, node in places.items() if node == "n2")

    def check_fenced(self, rank, cut):
        """The gang restarts, not before the fence, and the rank that was cut off has ended by then."""
        self.wait_second_attempt(FENCE_S + 20)
        lived, waited = self.last_tick(rank, 1) - cut, self.first_tick(rank, 2) - cut
        self.assertLessEqual(lived, LEASE_S + GRACE_S + 0.5)
        self.assert_no_overlap()
        return f"lived {lived:.1f} s, was replaced after {waited:.1f} s"

    def check_never_restarted(self):
        super().check_never_restarted()
        newest = min(self.lines(rank)[-1][1] for rank in (0, 1))
        self.assertLess(time.time() - newest, 2, "both ranks keep ticking")

    def test_server_hears_nothing(self):
        relay = Relay(self.cluster.server.port)
        rank = self.gang_behind(relay)
        cut = time.time()
        relay.to_server.set()
        summary = self.check_fenced(rank, cut)
        # A server that heard nothing for this long waits for the fence, whatever happened to the tasks.
        self.assertGreaterEqual(self.first_tick(rank, 2) - cut, FENCE_S - HEARTBEAT_S)
        relay.heal()
        self.cluster.wait_nodes(3)
        print(f"towards the server nothing passes: the rank {summary}")

    def test_agent_hears_nothing(self):
        relay = Relay(self.cluster.server.port)
        rank = self.gang_behind(relay)
        cut = time.time()
        relay.to_agent.set()
        summary = self.check_fenced(rank, cut)
        relay.heal()
        self.cluster.wait_nodes(3)
        print(f"towards the agent nothing passes: the rank {summary}")

    def test_flapping(self):
        print(f"SEED={SEED}", flush=True)
        chooser = random.Random(SEED)
        relay = Relay(self.cluster.server.port)
        self.gang_behind(relay)
        begin, cuts = time.monotonic(), 0
        while time.monotonic() - begin < 20:
            for way in chooser.choice([(relay.to_server,), (relay.to_agent,), (relay.to_server, relay.to_agent)]):
                way.set()
            time.sleep(chooser.uniform(0.05, LEASE_S / 3))
            relay.heal()
            time.sleep(chooser.uniform(0.05, LEASE_S / 3))
            cuts += 1
        self.check_never_restarted()
        print(f"{cuts} cuts of up to a third of the lease in 20 s: nothing was restarted")

    @unittest.skipIf(os.getuid() != 0, "network namespaces need root")
    def test_no_network(self):
        network = Namespace(self)
        rank = self.gang_behind(Relay(self.cluster.server.port, network.host), ("ip", "netns", "exec", network.name))
        network.cut()
        time.sleep(LEASE_S / 2)
        network.connect()
        self.check_never_restarted()
        network.cut()
        summary = self.check_fenced(rank, time.time())
        network.connect()
        wait_until(lambda: self.node_state("n2") == "NODE_READY", 60, "n2 is back")
        print(f"no packet passes: half a lease changed nothing; for longer the rank {summary}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
