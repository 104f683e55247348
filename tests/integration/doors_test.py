#!/usr/bin/env python3
"""Input from outside, with real programs: idle HTTP clients, forced cancels, limits of grace periods, filtered lists,
changed walltimes, and deceptive text."""
import socket
import threading
import time
import unittest

import grpc

from berth_api import job_pb2, make_job
from berth_harness import Cluster, alive, wait_until

STUBBORN = ["sh", "-c", "trap '' TERM INT; while :; do sleep 1; done"]


class Doors(unittest.TestCase):
    def start(self, agents=("n1",), config=None):
        self.cluster = Cluster(config)
        self.cluster.belongs_to(self)
        self.cluster.server.start()
        self.cluster.create_queue("q")
        self.agents = {name: self.cluster.add_agent(name) for name in agents}
        self.cluster.wait_nodes(len(agents))

    def submit(self, *jobs):
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=jobs[0].name, jobs=jobs), timeout=20)

    def test_idle_clients_do_not_block_health_and_metrics(self):
        self.start(agents=())
        host, port = self.cluster.server.http.split(":")
        texts = [b"", b"GET /metrics HTTP/1.1\r\nX: ", b"POST / HTTP/1.1\r\nContent-Length: 99\r\n\r\nhalf"]
        idle = []
        for i in range(64):
            idle.append(socket.create_connection((host, int(port)), timeout=5))
            idle[-1].sendall(texts[i % 3])
        for path in ("/readyz", "/metrics", "/healthz"):
            begin = time.monotonic()
            self.assertEqual(self.cluster.server.get(path)[0], 200)
            self.assertLess(time.monotonic() - begin, 1, path)
        for connection in idle:
            connection.close()

    def test_slow_clients_do_not_block_health_and_metrics(self):
        """More clients than connections: 300 send endless bodies in small pieces, and the others read no answer."""
        self.start(agents=())
        host, port = self.cluster.server.http.split(":")
        slow, done = [], threading.Event()
        for i in range(400):
            slow.append(socket.socket())
            slow[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow[-1].connect((host, int(port)))
            slow[-1].sendall([b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2147483647\r\n\r\n", b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"][i % 4 == 3])

        def trickle():
            while not done.wait(0.5):
                for connection in slow:
                    try:
                        connection.send(b"x")
                    except OSError:
                        pass  # the server closed it
        trickler = threading.Thread(target=trickle)
        trickler.start()
        try:
            for _ in range(5):
                for path in ("/readyz", "/metrics", "/healthz"):
                    self.assertEqual(self.cluster.server.get(path)[0], 200)
                time.sleep(0.5)
        finally:
            done.set()
            trickler.join()
            for connection in slow:
                connection.close()

    def test_a_cancel_reports_running_tasks_and_force_ends_it(self):
        self.start(config={"limits": {"killGrace": "20m"}})
        self.submit(make_job("stubborn", "q", STUBBORN, replicas=2, kill_grace={"seconds": 1200}))
        self.cluster.wait_job("stubborn", "RUNNING")
        pids = wait_until(lambda: self.cluster.task_pids("stubborn"), 10, "tasks run")
        said = self.cluster.berth("job", "cancel", "stubborn")
        self.assertEqual(said, "job/stubborn cancelling: 2 tasks are being stopped\n")
        self.cluster.wait_job("stubborn", "COMPLETING")
        time.sleep(2)
        self.assertTrue(all(alive(pid) for pid in pids))
        self.cluster.berth("job", "cancel", "stubborn", "--force", "--wait", "--reason", "now")
        self.cluster.wait_job("stubborn", "CANCELLED", timeout_s=10)
        self.assertFalse(any(alive(pid) for pid in pids))
        with self.assertRaises(grpc.RpcError) as caught:
            self.submit(make_job("greedy", "q", ["true"], kill_grace={"seconds": 1201}))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertIn("limits.kill_grace", caught.exception.details())

    def test_force_does_not_wait_for_a_node_that_does_not_return(self):
        self.start(agents=("n1",), config={"lease": "2s", "heartbeatInterval": "500ms"})
        self.submit(make_job("kept", "q", ["sleep", "600"], on_node_loss=job_pb2.KEEP))
        self.cluster.wait_job("kept", "RUNNING")
        self.agents["n1"].kill()
        api = self.cluster.api.jobs
        lost = lambda: [t for t in api.ListTasks(job_pb2.ListTasksRequest(node="n1"), timeout=5).tasks
                        if t.state == job_pb2.TASK_LOST]
        wait_until(lost, 30, "the task is lost")
        self.cluster.berth("job", "cancel", "kept", "--force")
        job = self.cluster.wait_job("kept", "CANCELLED", timeout_s=5)
        self.assertTrue(api.GetJob(job_pb2.GetJobRequest(name="kept"), timeout=5).status.cancel_forced, job)

    def test_force_within_the_lease_takes_effect_once_the_node_is_silent(self):
        self.start(agents=("n1",), config={"lease": "2s", "heartbeatInterval": "500ms"})
        self.submit(make_job("cut-off", "q", ["sleep", "600"], kill_grace={"seconds": 1200}))  # fenced after that
        self.cluster.wait_job("cut-off", "RUNNING")
        self.agents["n1"].kill()
        self.cluster.berth("job", "cancel", "cut-off", "--force")
        self.cluster.wait_job("cut-off", "CANCELLED", timeout_s=30)

    def test_filtered_lists_and_a_changed_walltime(self):
        self.start(agents=("n1", "n2"))
        api = self.cluster.api.jobs
        self.submit(make_job("a-1", "q", ["sleep", "600"], user="ann", walltime={"seconds": 600}),
                    make_job("b-1", "q", ["sleep", "600"], user="bob"))
        self.cluster.wait_job("a-1", "RUNNING")
        self.cluster.wait_job("b-1", "RUNNING")
        names = lambda **filters: [job.name for job in api.ListJobs(job_pb2.ListJobsRequest(
            order=job_pb2.ListJobsRequest.NEWEST_FIRST, filter=job_pb2.JobFilter(**filters)), timeout=5).jobs]
        self.assertEqual(names(), ["b-1", "a-1"])
        self.assertEqual(names(user="ann"), ["a-1"])
        self.assertEqual(names(name_pattern="b*"), ["b-1"])
        tasks = api.ListTasks(job_pb2.ListTasksRequest(job="a-1"), timeout=5).tasks
        self.assertIn("a-1", names(node=tasks[0].node))
        there = api.ListTasks(job_pb2.ListTasksRequest(node=tasks[0].node), timeout=5).tasks
        self.assertIn("a-1", [task.job for task in there])
        update = job_pb2.UpdateJobRequest(job=job_pb2.Job(name="a-1"), update_mask={"paths": ["spec.walltime"]})
        update.job.spec.walltime.FromMilliseconds(1)
        with self.assertRaises(grpc.RpcError) as caught:
            api.UpdateJob(update, timeout=5)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)
        job = api.GetJob(job_pb2.GetJobRequest(name="a-1"), timeout=5)
        ran = time.time() - job.status.start_time.seconds
        update.job.spec.walltime.FromSeconds(int(ran) + 5)
        api.UpdateJob(update, timeout=5)
        self.cluster.wait_job("a-1", "FAILED", timeout_s=20)

    def test_long_and_strange_text_is_abbreviated(self):
        self.start(agents=())
        job = make_job("x" * 10_000, "q", ["true"], labels={"k" * 10_000: "%" * 10_000, "a\x1b[2J\u202e": "v"})
        with self.assertRaises(grpc.RpcError) as caught:
            self.submit(job)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertNotIn("\x1b", caught.exception.details())
        manifest = self.cluster.manifest("kind: Job\nname: a\n" + "k" * 10_000 + ": 1\n")
        refused = self.cluster.run_berth("submit", str(manifest))
        self.assertNotEqual(refused.returncode, 0)
        self.assertLess(len(refused.stderr), 1000)


if __name__ == "__main__":
    unittest.main()
