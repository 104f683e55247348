#!/usr/bin/env python3
"""Bad networks between agents and server and between clients and server: delays, stalls, resets at any byte, or a few
bytes at a time.

Invariants under each fault: no attempt starts twice, no rank runs twice at once, gangs are whole. Jobs make progress;
once the network is healthy, all nodes return and every acknowledged job ends as expected.

SECONDS (of each fault; default 8) and SEED change the run.
"""
import os
import time
import unittest

from berth_api import job_pb2, make_job
from berth_harness import Cluster, wait_until
from kill_points import GangWatch, Load
from relay import AnyOf, Delays, Drip, Relay, Resets, Stalls
from ticking_gang import CONFIG, FENCE_S, LEASE_S, TICK

SECONDS = int(os.environ.get("SECONDS", "8"))
SEED = int(os.environ.get("SEED", str(time.time_ns() % 1_000_000)))


class BadNetwork(unittest.TestCase):
    def setUp(self):
        print(f"SEED={SEED}", flush=True)
        self.cluster = Cluster(CONFIG)
        self.cluster.belongs_to(self)
        self.cluster.server.start()
        self.relays = {name: Relay(self.cluster.server.port) for name in ("n1", "n2", "clients")}
        for name in ("n1", "n2"):
            self.cluster.add_agent(name, server=self.relays[name].address, cpu="36")
        self.cluster.wait_nodes(2)
        self.cluster.create_queue("load")
        self.ticks = self.cluster.home / "ticks"
        self.ticks.mkdir()
        self.ticks.chmod(0o777)
        self.start_ticking()
        self.load = Load(self.cluster, SEED, address=self.relays["clients"].address)
        self.watch = GangWatch(self.load)
        self.load.start()
        self.watch.start()

    def start_ticking(self):
        job = make_job("ticking", "load", ["sh", "-c", TICK], replicas=2, cpu_millis=17000, env={"TICKS": str(self.ticks)},
                       max_retries=1000)
        job.spec.kill_grace.FromSeconds(1)
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id="ticking", jobs=[job]), timeout=10)
        self.cluster.wait_job("ticking", "RUNNING")

    def lives(self, rank):
        """attempt -> (first tick, last tick)."""
        lives = {}
        for line in (self.ticks / str(rank)).read_text().splitlines():
            if line.count(" ") == 1:
                attempt, at = int(line.split()[0]), float(line.split()[1])
                first, last = lives.get(attempt, (at, at))
                lives[attempt] = min(first, at), max(last, at)
        return lives

    def run_through(self, faults):
        """`faults`: pairs of a name and a function that creates the fault."""
        for what, make in faults:
            begun, started = sum(relay.connections for relay in self.relays.values()), len(self.load.start_lines())
            for number, relay in enumerate(self.relays.values()):
                relay.fault = make(SEED + number)
            time.sleep(SECONDS)
            self.assertTrue(all(relay.is_alive() for relay in self.relays.values()))
            connections = sum(relay.connections for relay in self.relays.values()) - begun
            print(f"{what}: {len(self.load.start_lines()) - started} tasks started in {SECONDS} s, {connections} new connections",
                  flush=True)

    def finish(self):
        for relay in self.relays.values():
            relay.heal()
        healed = time.monotonic()
        self.cluster.wait_nodes(2)
        back = time.monotonic() - healed
        wait_until(lambda: min(max(last for _, last in self.lives(rank).values()) for rank in (0, 1)) > time.time() - 1,
                   FENCE_S + 60, "the gang ticks")
        self.load.stop()
        self.watch.stop()
        started = self.load.check(self, whole=False)
        self.assertEqual(self.watch.partial, [], "partially running gangs")
        for rank in (0, 1):
            lives = [life for _, life in sorted(self.lives(rank).items())]
            for (_, last), (first, _) in zip(lives, lives[1:]):
                self.assertGreater(first, last, f"two attempts of rank {rank} at once")
        print(f"nodes back after {back:.1f} s; {len(self.load.acked)} acknowledged jobs all present, {started} real tasks "
              f"started once each; {self.load.lost_answers} answers lost and requested again; the gang was started "
              f"{len(self.lives(0))} times; {sum(relay.resets for relay in self.relays.values())} resets", flush=True)

    def test_faults_that_a_lease_outlasts(self):
        self.run_through([
            ("50 to 500 ms late", Delays),
            ("stalls of up to a third of a lease", lambda seed: Stalls(seed, LEASE_S / 3)),
            ("resets at any byte", Resets),
            ("4,000 bytes a second", lambda seed: Drip(seed, 4000)),
            ("all of these", lambda seed: AnyOf(seed, [Delays(seed), Stalls(seed), Resets(seed), Drip(seed, 4000)]))])
        self.assertGreater(len(self.load.start_lines()), 0, "jobs make progress")
        self.finish()

    def test_a_network_too_slow_for_heartbeats(self):
        self.run_through([("20 bytes a second", lambda seed: Drip(seed, 20))])
        self.finish()


if __name__ == "__main__":
    unittest.main(verbosity=2)
