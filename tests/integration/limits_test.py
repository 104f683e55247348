#!/usr/bin/env python3
"""Limits of docs/operators/limits.md that need real connections: the number of connections, descriptors reserved for
the store, and clients and agents that do not read: they are disconnected, and the server's memory stays the same.
"""
import pathlib
import socket
import threading
import time
import unittest

import grpc

from bad_input_test import FakeAgent
from berth_api import Api, agent_pb2, job_pb2, make_job, watch_pb2
from berth_harness import Cluster, wait_until

MIB = 1 << 20


def connect(port, source="127.0.0.1"):
    connection = socket.socket()
    connection.settimeout(5)
    connection.bind((source, 0))
    connection.connect(("127.0.0.1", port))
    return connection


def taken(connection):
    """The gRPC server sends first; a rejected connection is closed."""
    try:
        return connection.recv(1) != b""
    except OSError:
        return False


class Limits(unittest.TestCase):
    def start(self, config=None, command=()):
        self.cluster = Cluster(config)
        self.cluster.belongs_to(self)
        self.cluster.server.arguments = [*command, *self.cluster.server.arguments]
        self.cluster.server.start()
        self.cluster.create_queue("q")

    def submit(self, *jobs):
        return self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=jobs[0].name, jobs=jobs), timeout=20)

    def fresh_client_works(self):
        api = Api(self.cluster.server.address)
        try:
            return api.jobs.ListJobs(job_pb2.ListJobsRequest(), timeout=5) is not None
        finally:
            api.close()

    def resident(self):
        status = pathlib.Path(f"/proc/{self.cluster.server.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) * 1024

    def refused_with_delay(self, call):
        with self.assertRaises(grpc.RpcError) as caught:
            call()
        self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED, caught.exception.details())
        details = dict(caught.exception.trailing_metadata()).get("grpc-status-details-bin", b"")
        self.assertIn(b"google.rpc.RetryInfo", details)
        print("  " + caught.exception.details())


class Connections(Limits):
    def test_one_address_cannot_take_all(self):
        self.start({"limits": {"connections": 40, "connectionsPerAddress": 20}})
        self.assertTrue(self.fresh_client_works())
        open_ones, refused = [], 0
        for _ in range(60):
            connection = connect(self.cluster.server.port)
            if taken(connection):
                open_ones.append(connection)
            else:
                refused += 1
                connection.close()
        self.assertLess(len(open_ones), 20)
        self.assertGreater(len(open_ones), 10)
        others = [connect(self.cluster.server.port, "127.0.0.2") for _ in range(30)]
        of_others = sum(taken(connection) for connection in others)
        self.assertEqual(of_others, 20, "each address has a separate share")
        self.assertTrue(self.cluster.api.jobs.ListJobs(job_pb2.ListJobsRequest(), timeout=5) is not None)
        for connection in [*open_ones, *others]:
            connection.close()
        wait_until(self.fresh_client_works, 20, "connections are accepted again")
        print(f"{refused} of 60 connections of one address rejected, then 20 of 30 of another one accepted")

    def test_out_of_descriptors(self):
        self.start(command=["prlimit", "--nofile=256:256"])
        self.submit(make_job("before", "q", ["true"], suspended=True))
        crowd = [connect(self.cluster.server.port) for _ in range(400)]
        wait_until(lambda: "a connection was refused" in self.cluster.server.output(), 20, "the log reports it")
        for number in range(20):
            self.submit(make_job(f"amid-{number}", "q", ["true"], suspended=True))
        for connection in crowd:
            connection.close()
        wait_until(self.fresh_client_works, 30, "new clients can connect again")
        self.cluster.server.kill()
        self.cluster.server.start()
        self.assertEqual(len(self.cluster.api.all_jobs()), 21)
        print("400 connections with 256 descriptors: jobs continued, and new clients connected afterwards")


class SlowReaders(Limits):
    batches = 0

    def flood(self, seconds):
        """Makes one change after the other."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.batches += 1
            self.submit(*[make_job(f"f-{self.batches}-{i}", "q", ["true"], suspended=True)
                          for i in range(20)])
            time.sleep(0.03)
        return True

    def test_watchers(self):
        self.start({"lease": "3s", "heartbeatInterval": "1s", "limits": {"watchers": 20}})
        self.flood(2)
        before = self.resident()
        narrow = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 65536)]
        apis = [Api(self.cluster.server.address, narrow) for _ in range(20)]
        slow = [api.watch.Watch(watch_pb2.WatchRequest(from_revision=1)) for api in apis]
        for call in slow:
            next(iter(call))  # the stream has begun; nothing more is read
        wait_until(lambda: self.cluster.server.metric("berth_watchers") == 20, 10, "all watch")
        self.refused_with_delay(lambda: next(iter(self.cluster.api.watch.Watch(watch_pb2.WatchRequest()))))
        self.flood(8)
        wait_until(lambda: self.flood(0.5) and self.cluster.server.metric("berth_watchers") == 0, 60, "disconnected")
        grown = self.resident() - before
        self.assertLess(grown, 128 * MIB)
        for call in slow:
            call.cancel()
        for api in apis:
            api.close()
        print(f"20 watchers that do not read, {self.batches * 20} jobs: disconnected; the server grew by {grown // MIB} MiB")

    def test_agent(self):
        """Its orders are dropped with its stream; other agents get theirs in the meantime."""
        self.start({"lease": "30s", "heartbeatInterval": "1s"})
        agent = FakeAgent(self.cluster.server.address, "slow", "id-1", cpu_millis=4_000_000)
        self.addCleanup(agent.close)
        agent.inbox = Stuck(agent.inbox)  # its reading thread stops at the next message
        beats = threading.Event()
        threading.Thread(target=self.beat, args=(agent, beats), daemon=True).start()
        self.addCleanup(beats.set)
        self.submit(make_job("stuck", "q", ["true"], cpu_millis=4_000_000 - 200_000))  # the first order
        before, most = self.resident(), 0
        for number in range(200):
            self.submit(make_job(f"large-{number}", "q", ["echo", "x" * 240_000], cpu_millis=1000))
            most = max(most, self.resident())
            if self.cluster.server.metric("berth_agent_sessions") == 0:
                break
        wait_until(lambda: self.cluster.server.metric("berth_agent_sessions") == 0, 20, "it is disconnected")
        self.cluster.add_agent("well", cpu="64")
        self.cluster.wait_nodes(2)
        job = make_job("runs", "q", ["true"], cpu_millis=1000)
        job.spec.groups[0].node_selector.exclude_nodes.append("slow")
        self.submit(job)
        self.cluster.wait_job("runs", "SUCCEEDED")
        self.assertLess(most - before, 384 * MIB)
        print(f"an agent that does not read was disconnected; until then the server grew by {(most - before) // MIB} MiB")

    @staticmethod
    def beat(agent, stop):
        number = 0
        while not stop.wait(1):
            number += 1
            agent.send(agent_pb2.AgentMessage(epoch=agent.epoch, heartbeat=agent_pb2.Heartbeat(sequence=number)))


class Stuck:
    def __init__(self, inner):
        self.inner = inner

    def put(self, _):
        threading.Event().wait()


if __name__ == "__main__":
    unittest.main(verbosity=2)
