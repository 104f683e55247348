#!/usr/bin/env python3
"""How berthd ends and what it reports: calls and streams end with UNAVAILABLE; a file size limit counts as a full disk;
the log names who did what; a stopped server does not produce a hint about TLS."""
import os
import resource
import threading
import time
import unittest

import grpc

from berth_api import cluster_pb2, job_pb2, make_job, watch_pb2
from berth_harness import Cluster, wait_until


class GracefulEnd(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.cluster.belongs_to(self)
        self.cluster.server.start()
        self.cluster.create_queue("q")

    def follow(self, name, call, codes):
        """Reads the stream on a separate thread; returns its code when it ends."""
        def read():
            try:
                for _ in call:
                    pass
                codes[name] = grpc.StatusCode.OK
            except grpc.RpcError as error:
                codes[name] = error.code()
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        return thread

    def test_streams_end_with_unavailable(self):
        cluster, codes, threads = self.cluster, {}, []
        cluster.add_agent("n1")
        cluster.wait_nodes(1)
        job = make_job("noisy", "q", ["sh", "-c", "while true; do echo line; sleep 0.01; done"])
        cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id="noisy", jobs=[job]), timeout=10)
        cluster.wait_job("noisy", "RUNNING")
        threads.append(self.follow("watch", cluster.api.watch.Watch(watch_pb2.WatchRequest(nodes=True)), codes))
        logs = job_pb2.ReadLogsRequest(job="noisy", follow=True)
        threads.append(self.follow("logs", cluster.api.jobs.ReadLogs(logs), codes))
        never = threading.Event()

        def silence():
            yield from ()
            never.wait(60)
        threads.append(self.follow("exec", cluster.api.jobs.Exec(silence()), codes))
        health = cluster.api.channel.unary_stream("/grpc.health.v1.Health/Watch", request_serializer=lambda m: m,
                                                  response_deserializer=lambda b: b)
        threads.append(self.follow("health", health(b"", wait_for_ready=True), codes))
        # Idle; only gRPC ends it.
        reflection = cluster.api.channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                                                       request_serializer=lambda m: m, response_deserializer=lambda b: b)
        threads.append(self.follow("reflection", reflection(silence(), wait_for_ready=True), codes))
        time.sleep(1)
        self.assertEqual(codes, {})
        self.assertEqual(cluster.server.stop(), 0)
        never.set()
        for thread in threads:
            thread.join(20)
        self.assertEqual(codes, {name: grpc.StatusCode.UNAVAILABLE for name in ("watch", "logs", "exec", "health", "reflection")})

    def test_calls_that_wait_for_the_disk_end_with_unavailable(self):
        server, api, codes = self.cluster.server, self.cluster.api, {}
        jobs = [make_job(f"j{i}", "q", ["true"], suspended=True) for i in range(20)]
        api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id="jobs", jobs=jobs), timeout=10)
        _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (4096, hard))  # nothing can be written from here on

        def cancel(name):
            try:
                api.jobs.CancelJob(job_pb2.CancelJobRequest(name=name), timeout=60)
                codes[name] = grpc.StatusCode.OK
            except grpc.RpcError as error:
                codes[name] = error.code()
        threads = [threading.Thread(target=cancel, args=(f"j{i}",), daemon=True) for i in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(2)
        self.assertEqual(codes, {}, "the calls wait")
        server.stop(timeout_s=40)
        for thread in threads:
            thread.join(20)
        self.assertEqual(set(codes.values()), {grpc.StatusCode.UNAVAILABLE})

    def test_a_file_size_limit_is_a_full_disk(self):
        server, number = self.cluster.server, 0
        _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (256 << 10, hard))
        refused = 0
        while refused < 2:
            number += 1
            self.assertLess(number, 500, "the limit was never reached")
            job = make_job(f"fill-{number}", "q", ["true"], suspended=True, annotations={"padding": os.urandom(15000).hex()})
            try:
                self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=f"f{number}", jobs=[job]), timeout=3)
            except grpc.RpcError as error:
                self.assertIn(error.code(), (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.DEADLINE_EXCEEDED))
                refused += error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        self.assertTrue(server.running(), "SIGXFSZ ended it")
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        wait_until(lambda: server.get("/readyz")[0] == 200, 30, "it continues")

    def test_the_log_names_who_did_what(self):
        cluster = self.cluster
        cluster.add_agent("n1")
        cluster.wait_nodes(1)
        job = make_job("sleeper", "q", ["sleep", "1000"])
        cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id="s", jobs=[job]), timeout=10)
        cluster.berth("job", "suspend", "sleeper")
        cluster.berth("job", "cancel", "sleeper")
        forced = make_job("forced", "q", ["sleep", "1000"])
        cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id="f", jobs=[forced]), timeout=10)
        cluster.berth("job", "cancel", "forced", "--force", "--reason", "stuck")
        cluster.berth("node", "cordon", "n1")
        info = cluster.api.cluster.GetClusterInfo(cluster_pb2.GetClusterInfoRequest(), timeout=5)
        self.assertEqual((info.nodes["READY"], info.nodes["CORDONED"], info.nodes["DRAINING"]), (0, 1, 0))
        cluster.berth("node", "drain", "n1")
        info = cluster.api.cluster.GetClusterInfo(cluster_pb2.GetClusterInfoRequest(), timeout=5)
        self.assertEqual((info.nodes["READY"], info.nodes["CORDONED"], info.nodes["DRAINING"]), (0, 0, 1))
        self.assertIn("1 draining", cluster.berth("cluster", "info"))
        lines = cluster.server.output().splitlines()
        for event in ("job suspended", "job cancelled", "node cordon or drain changed"):
            said = [line for line in lines if f" {event} " in line]
            self.assertTrue(said, f"no line contains {event!r}")
            self.assertTrue(all("by=127.0.0.1:" in line or "by=\"127.0.0.1:" in line for line in said), said)
        said = {name: [line for line in lines if " job cancelled " in line and f"job={name} " in line]
                for name in ("sleeper", "forced")}
        self.assertRegex("\n".join(said["sleeper"]), r" forced=no\b")
        self.assertRegex("\n".join(said["forced"]), r" forced=yes reason=stuck\b")
        self.assertEqual(len([line for line in lines if "node registered" in line]), 1)

    def test_a_crash_produces_no_hint_about_tls(self):
        agent = self.cluster.add_agent("n1")
        self.cluster.wait_nodes(1)
        self.cluster.server.kill()
        wait_until(lambda: "not registered" in agent.output(), 20, "the agent reports it")
        time.sleep(3)
        self.assertNotIn("TLS", agent.output())
        self.assertIn(self.cluster.server.address, agent.output())

    def test_an_agent_that_registers_again_reports_its_changes(self):
        agent = self.cluster.add_agent("n1", cpu="4")
        self.cluster.wait_nodes(1)
        agent.stop()
        self.cluster.add_agent("n1", cpu="6")
        wait_until(lambda: self.cluster.server.output().count("node registered") == 2, 30, "the second registration")
        again = [line for line in self.cluster.server.output().splitlines() if "node registered" in line][1]
        self.assertIn("changed=cpu", again)


if __name__ == "__main__":
    unittest.main(verbosity=2)
