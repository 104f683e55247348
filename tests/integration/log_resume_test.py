#!/usr/bin/env python3
"""`berth job logs -f` across stops and kills of the server, and the duration of a stop with connected clients."""
import signal
import subprocess
import time
import unittest

from berth_harness import BIN, SANITIZED, Cluster, wait_until

LINES = 600
JOB = f"""apiVersion: berth/v1
kind: Job
name: talker
queue: q
groups:
- name: w
  replicas: 1
  resources: {{cpu: 100m}}
  command: [sh, -c, 'i=0; while [ $i -lt {LINES} ]; do echo out $i; echo err $i >&2; i=$((i+1)); sleep 0.01; done']
"""


class LogResume(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster().belongs_to(self)
        self.cluster.server.start()
        self.cluster.add_agent("n1")
        self.cluster.wait_nodes(1)  # by a client that stays connected and idle
        self.cluster.berth("queue", "create", "q")

    def follow(self, name, *options):
        path = self.cluster.home / name
        with open(path, "wb") as output:
            process = subprocess.Popen([str(BIN / "berth"), "--server", self.cluster.server.address, "job", "logs", "-f",
                                        "talker", *options], stdout=output, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        self.addCleanup(process.stderr.close)
        return process, path

    def test_followers_miss_nothing_and_see_nothing_twice(self):
        server = self.cluster.server
        self.cluster.berth("submit", self.cluster.manifest(JOB))
        self.cluster.wait_job("talker", "RUNNING")
        both, both_path = self.follow("both")
        errors, errors_path = self.follow("errors", "--stream", "stderr", "--tail", "1")

        def grows_by(lines):
            size = len(both_path.read_text().split("\n"))
            wait_until(lambda: len(both_path.read_text().split("\n")) > size + lines, 30, "the follower continues")

        grows_by(20)
        begin = time.monotonic()
        self.assertEqual(server.stop(), 0)
        self.assertLess(time.monotonic() - begin, 5 if SANITIZED else 1, "a stop is fast")
        time.sleep(0.5)
        server.start()
        grows_by(20)
        server.kill()
        server.start()
        for process in (both, errors):
            self.assertEqual(process.wait(120), 0, process.stderr.read())
        lines = both_path.read_text().split("\n")
        for stream in ("out", "err"):
            self.assertEqual([line for line in lines if line.startswith(stream)],
                             [f"{stream} {i}" for i in range(LINES)])
        tail = errors_path.read_text().split("\n")[:-1]
        self.assertEqual(tail, [f"err {i}" for i in range(LINES - len(tail), LINES)])
        self.assertEqual(self.cluster.wait_job("talker", "SUCCEEDED").status.start_count, 1)

    def test_a_log_on_a_silent_node_is_refused_with_the_reason(self):
        self.cluster.berth("submit", self.cluster.manifest(JOB.replace("name: talker", "name: quick")
                                                           .replace(f"-lt {LINES}", "-lt 1")))
        self.cluster.wait_job("quick", "SUCCEEDED")
        self.cluster.agents["n1"].signal(signal.SIGKILL)
        refused = wait_until(lambda: (lambda result: result if result.returncode == 1 else None)(
            self.cluster.run_berth("job", "logs", "quick", "--request-timeout", "1s")), 60, "the node is silent")
        self.assertIn('node "n1", which has the output, is silent', refused.stderr)


if __name__ == "__main__":
    unittest.main()
