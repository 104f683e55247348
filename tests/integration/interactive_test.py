#!/usr/bin/env python3
"""Work in running tasks: terminals of tasks with real pseudo-terminals, ports, copies, and what happens when the server,
the agent or the network goes away in between."""
import os
import pathlib
import signal
import socket
import subprocess
import tarfile
import threading
import time
import unittest
import urllib.request

from berth_api import job_pb2, job_state, make_job, types_pb2
from berth_harness import BIN, Cluster, alive, free_port, wait_until
from pty_client import PtyClient

SHELL = ["bash", "--norc", "-i"]
DETACH = "\x10\x11"


def terminal_job(name, command, **spec):
    job = make_job(name, "q", command, **spec)
    job.spec.groups[0].terminal = True
    return job


class World(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.cluster.server.start()
        cls.cluster.add_agent("n1", cpu="8")
        cls.cluster.wait_nodes(1)
        cls.cluster.create_queue("q")

    def submit(self, job, *states):
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(jobs=[job]), timeout=10)
        self.addCleanup(self.cluster.run_berth, "job", "cancel", job.name, "--force")
        self.cluster.wait_job(job.name, *(states or ("RUNNING",)))

    def berth(self, *arguments, **size):
        """`berth` on a terminal."""
        client = PtyClient([str(BIN / "berth"), "--server", self.cluster.server.address, *arguments], **size)
        self.addCleanup(client.__exit__, None, None, None)
        return client

    def attach(self, name, *arguments, **size):
        return self.berth("attach", name, *arguments, **size)


class Attach(World):
    def test_a_shell_on_its_terminal(self):
        self.submit(terminal_job("shell", SHELL))
        client = self.attach("shell", rows=33, columns=77)
        client.type("tty; stty size; echo $TERM; echo $((6*7))\n")
        client.expect(r"/dev/pts/\d+")
        client.expect("33 77")
        client.expect("xterm-256color")
        client.expect("42")
        self.assertTrue(client.is_raw())
        client.resize(44, 99)
        wait_until(lambda: client.type("stty size\n") or client.expect("44 99", 1), 15, "the new size")
        # Ctrl-C goes to the program in the foreground, not to berth.
        client.type("sleep 1000\n")
        time.sleep(0.5)
        client.type("\x03")
        client.type("echo code=$?\n")
        client.expect("code=130")
        client.type("exit 7\n")
        self.assertEqual(client.wait(), 7)
        self.assertTrue(client.is_restored())
        self.cluster.wait_job("shell", "FAILED")
        log = self.cluster.berth("job", "logs", "shell")
        self.assertIn("44 99", log)

    def test_a_client_that_detaches_or_dies_leaves_the_task_running_and_the_next_one_sees_what_was_printed(self):
        self.submit(terminal_job("kept", SHELL))
        first = self.attach("kept")
        first.type("echo mark-$((40+2)); sleep 1; echo later-$((1+1))\n")
        first.expect("mark-42")
        first.type(DETACH)
        self.assertEqual(first.wait(), 0)
        self.assertIn("detached", first.shown)
        self.assertTrue(first.is_restored())
        time.sleep(1.2)
        second = self.attach("kept")
        second.expect("mark-42")
        second.expect("later-2")
        third = self.attach("kept")  # several at a time
        third.expect("later-2")
        third.type("echo both-$((3+3))\n")
        second.expect("both-6")
        third.expect("both-6")
        third.signal(signal.SIGKILL)
        second.signal(signal.SIGTERM)
        self.assertEqual(second.wait(), -signal.SIGTERM)
        self.assertTrue(second.is_restored())
        last = self.attach("kept")
        last.expect("both-6")
        last.type("exit\n")
        self.assertEqual(last.wait(), 0)

    def test_a_key_like_the_first_of_the_detach_keys_reaches_the_program(self):
        self.submit(terminal_job("keys", ["cat", "-v"]))
        client = self.attach("keys")
        client.type("a\x10b\n")
        client.expect(r"a\^Pb\r\na\^Pb")
        client.type("\x04")
        self.assertEqual(client.wait(), 0)

    def test_the_session_survives_the_server_and_the_agent(self):
        self.submit(terminal_job("tough", SHELL))
        client = self.attach("tough")
        client.type("x=remember-$((50+5)); echo set-$((2+2))\n")
        client.expect("set-4")
        self.cluster.server.kill()
        client.expect("reconnecting")
        wait_until(client.is_restored, 5, "the terminal while nothing is attached")
        self.cluster.server.start()
        wait_until(client.is_raw, 30, "the terminal of the task again")
        client.type("echo $x\n")
        client.expect("remember-55")
        agent = self.cluster.agents["n1"]
        agent.kill()
        client.expect("reconnecting")
        agent.start()
        wait_until(client.is_raw, 60, "the terminal of the task again")
        client.type("echo again-$x\n")
        client.expect("again-remember-55")
        client.type("exit 3\n")
        self.assertEqual(client.wait(), 3)
        self.assertTrue(client.is_restored())

    def test_a_task_that_ends_while_the_connection_is_lost(self):
        go = self.cluster.shared_file("go")
        self.submit(terminal_job("gone", ["sh", "-c", f"echo ready; until [ -s {go} ]; do sleep 0.1; done; exit 9"]))
        client = self.attach("gone")
        client.expect("ready")
        self.cluster.server.kill()
        client.expect("reconnecting")
        go.write_text("x")
        time.sleep(1)
        self.cluster.server.start()
        self.assertEqual(client.wait(60), 9)

    def test_a_client_that_reads_nothing_does_not_stop_the_task(self):
        self.submit(terminal_job("flood", ["sh", "-c", "i=0; while [ $i -lt 20000 ]; do echo line-$i-$(printf %0200d 0); "
                                           "i=$((i+1)); done; echo the-end; sleep 1000"]))
        client = self.attach("flood")
        client.expect("line-")
        client.signal(signal.SIGSTOP)
        wait_until(lambda: "the-end" in self.cluster.berth("job", "logs", "flood", "--tail", "3"), 60,
                   "the end of the output")
        client.signal(signal.SIGCONT)

    def test_an_interactive_shell_ends_at_once_when_the_job_is_cancelled(self):
        self.submit(terminal_job("stopped", SHELL))
        client = self.attach("stopped")
        client.type("echo up-$((1+1))\n")
        client.expect("up-2")
        begin = time.monotonic()
        self.cluster.berth("job", "cancel", "stopped", "--reason", "enough of it")
        self.assertEqual(client.wait(), 128 + signal.SIGHUP)
        self.assertLess(time.monotonic() - begin, 8)
        self.assertIn("enough of it", client.shown)

    def test_refusals(self):
        self.submit(make_job("plain", "q", ["sleep", "1000"]))
        client = self.attach("plain")
        self.assertEqual(client.wait(), 1)
        self.assertIn('task w-0 of job "plain" has no terminal', client.shown)
        self.assertEqual(self.attach("ghost").wait(), 3)
        size = job_pb2.TerminalSize(rows=24, columns=80)
        for text, opened in {
                "open.command: not together with attach or port": dict(attach=True, terminal=size, command=["true"]),
                "open.port: not together with attach": dict(attach=True, terminal=size, port=80),
                "open.terminal: required with attach": dict(attach=True),
                "open.terminal: not together with port": dict(port=80, terminal=size),
                "open.port: must be 1..65535": dict(port=70000),
                "open.command: required": {}}.items():
            request = job_pb2.ExecRequest(open=job_pb2.ExecRequest.Open(job="plain", **opened))
            with self.assertRaises(Exception) as caught:
                list(self.cluster.api.jobs.Exec(iter([request]), timeout=10))
            self.assertIn(text, caught.exception.details())

    def test_a_gang_has_a_terminal_for_each_task(self):
        self.submit(terminal_job("pair", ["sh", "-c", "echo i-am-$RANK; exec cat"], replicas=2))
        for task, rank in ("w-1", 1), ("w-0", 0):
            client = self.attach("pair", task)
            client.expect(f"i-am-{rank}")
            client.type(DETACH)
            self.assertEqual(client.wait(), 0)
        client = self.attach("job/pair/w-1")
        client.expect("i-am-1")


if __name__ == "__main__":
    unittest.main(verbosity=2)
