#!/usr/bin/env python3
"""Work in running tasks: terminals of tasks with real pseudo-terminals, and their ports; and what happens when the server or
the agent goes away in between."""
import contextlib
import faulthandler
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

from berth_api import job_pb2, job_state, make_job
from berth_harness import BIN, Cluster, free_port, wait_until
from interactive_world import DETACH, SHELL, World, terminal_job
from pty_client import PtyClient
from relay import Relay


# No wait is without end: one that is too long fails, and a test that hangs says where.
socket.setdefaulttimeout(60)
faulthandler.dump_traceback_later(840, exit=True)


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

    def test_the_session_survives_a_network_that_loses_everything(self):
        """Nothing ends the connection: only keepalives show that it is dead, after 40 s."""
        self.submit(terminal_job("silent", SHELL))
        relay = Relay(self.cluster.server.port)
        client = PtyClient([str(BIN / "berth"), "--server", relay.address, "attach", "silent"])
        self.addCleanup(client.__exit__, None, None, None)
        client.type("z=kept-$((60+6)); echo set-$((3+3))\n")
        client.expect("set-6")
        relay.cut()
        client.expect("reconnecting", 90)
        relay.heal()
        wait_until(client.is_raw, 60, "the terminal of the task again")
        client.type("echo $z; exit\n")
        client.expect("kept-66")
        self.assertEqual(client.wait(), 0)

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

    def test_a_command_with_a_terminal_of_its_own(self):
        self.submit(make_job("host", "q", ["sleep", "1000"]))
        client = self.berth("exec", "host", "-t", "--", *SHELL, rows=35, columns=87)
        client.type("stty size; echo is-$((2+2))\n")
        client.expect("35 87")
        client.expect("is-4")
        client.type("exit 6\n")
        self.assertEqual(client.wait(), 6)
        self.assertTrue(client.is_restored())
        killed = self.berth("exec", "host", "-t", "--", *SHELL)
        killed.expect("bash-")
        killed.signal(signal.SIGTERM)
        self.assertEqual(killed.wait(), -signal.SIGTERM)
        self.assertTrue(killed.is_restored())

    def test_a_gang_has_a_terminal_for_each_task(self):
        self.submit(terminal_job("pair", ["sh", "-c", "echo i-am-$RANK; exec cat"], replicas=2))
        for task, rank in ("w-1", 1), ("w-0", 0):
            client = self.attach("pair", task)
            client.expect(f"i-am-{rank}")
            client.type(DETACH)
            self.assertEqual(client.wait(), 0)
        client = self.attach("job/pair/w-1")
        client.expect("i-am-1")


ECHO_SERVER = """
import socket, sys
family = socket.AF_INET6 if sys.argv[2:] else socket.AF_INET
server = socket.create_server(("::1" if sys.argv[2:] else "127.0.0.1", int(sys.argv[1])), family=family, backlog=64)
print("listening", flush=True)
import threading
def serve(connection):
    data = b""
    while True:
        piece = connection.recv(65536)
        if not piece:
            break
        data += piece
    connection.sendall(b"%d bytes, %s" % (len(data), data[-20:]))
    connection.close()
while True:
    threading.Thread(target=serve, args=(server.accept()[0],)).start()
"""


class Images(unittest.TestCase):
    """The same in a container: crun has the terminal of the task, and gives the command another one."""

    def test_a_shell_in_an_image(self):
        busybox = shutil.which("busybox")
        if os.getuid() != 0 or not os.path.exists("/usr/bin/crun") or busybox is None:
            self.skipTest("needs root, crun and a static busybox")
        cluster = Cluster().belongs_to(self)
        cluster.server.start()
        rootfs = cluster.home / "images" / "small" / "rootfs"
        for part in "bin", "proc", "dev", "sys", "tmp", "run":
            (rootfs / part).mkdir(parents=True)
        shutil.copy(busybox, rootfs / "bin" / "busybox")
        for name in "sh", "stty", "sleep", "id", "tar", "test", "cat":
            (rootfs / "bin" / name).symlink_to("busybox")
        crun = "/usr/bin/crun"
        if pathlib.Path("/sys/fs/cgroup/unified").exists():  # Debian's crun does not run with both versions mounted
            wrapper = cluster.home / "crun-here"
            wrapper.write_text("#!/bin/sh\nexec unshare -m sh -c 'umount /sys/fs/cgroup/unified; exec /usr/bin/crun \"$@\"' "
                               "crun \"$@\"\n")
            wrapper.chmod(0o755)
            crun = str(wrapper)
        cluster.add_agent("n1", images={"directory": str(cluster.home / "images"), "crun": crun})
        cluster.wait_nodes(1)
        cluster.create_queue("q")
        with PtyClient([str(BIN / "berth"), "--server", cluster.server.address, "run", "-it", "-n", "boxed", "-q", "q",
                        "--image", "small", "--", "sh"], rows=37, columns=91) as client:
            client.expect(r"\$ ")
            # crun passes sizes on once it has started.
            wait_until(lambda: client.type("stty size\n") or client.expect("37 91", 1), 15, "the size")
            client.type("id -u; echo $TERM; echo $((6*7))\n")
            client.expect("65534")
            client.expect("xterm-256color")
            client.expect("42")
            client.resize(44, 99)
            wait_until(lambda: client.type("stty size\n") or client.expect("44 99", 1), 15, "the new size")
            client.type("sleep 1000\n")
            time.sleep(0.5)
            client.type("\x03")
            client.type("echo code=$?\n")
            client.expect("code=130")
            # The network of the container is that of the node; its user makes the connection.
            with socket.create_server(("127.0.0.1", 0)) as server:
                forward = subprocess.Popen([str(BIN / "berth"), "--server", cluster.server.address, "port-forward", "boxed",
                                            f"0:{server.getsockname()[1]}"], stdout=subprocess.PIPE, text=True)
                self.addCleanup(forward.communicate)
                self.addCleanup(forward.kill)
                local = int(forward.stdout.readline().split()[1].rsplit(":", 1)[1])
                with socket.create_connection(("127.0.0.1", local), timeout=20) as connection:
                    inside, peer = server.accept()
                    inside.sendall(b"served\n")
                    self.assertEqual(connection.recv(100), b"served\n")
                    fields = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
                    self.assertEqual([f[7] for f in fields if int(f[1].split(":")[1], 16) == peer[1]], ["65534"])
                    inside.close()
            file = cluster.home / "file"
            file.write_text("copied")
            self.assertEqual(cluster.run_berth("cp", str(file), "boxed:/run/berth/work/it").returncode, 0)
            client.type("cat /run/berth/work/it; echo\n")
            client.expect("copied\r\n")
            client.type("exit 8\n")
            self.assertEqual(client.wait(), 8)
            self.assertTrue(client.is_restored())


class Ports(World):
    def serve(self, name, *arguments, script=ECHO_SERVER, **spec):
        port = free_port()
        self.submit(make_job(name, "q", ["/usr/bin/python3", "-uc", script, str(port), *arguments], **spec))
        wait_until(lambda: "listening" in self.cluster.berth("job", "logs", name), 20, "the server in the task")
        return port

    def forward(self, name, *arguments):
        """The program, and its local ports."""
        program = subprocess.Popen([str(BIN / "berth"), "--server", self.cluster.server.address, "port-forward", name,
                                    *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        def end():
            program.kill()
            program.communicate()
        self.addCleanup(end)
        count = sum(all(c.isdigit() or c == ":" for c in word) for word in arguments)
        lines = [program.stdout.readline() for _ in range(count)]
        return program, [int(line.split()[1].rsplit(":", 1)[1]) for line in lines]

    def ask(self, port, data):
        """Sends all, ends this side, and reads until the other side ends."""
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
            return answer.decode()

    def test_many_connections_that_end_each_side_on_its_own(self):
        port = self.serve("echo")
        program, (local,) = self.forward("echo", f"0:{port}")
        self.assertEqual(self.ask(local, b"hello"), "5 bytes, hello")
        big = b"x" * 3_000_000 + b"end"
        self.assertEqual(self.ask(local, big), "3000003 bytes, " + "x" * 17 + "end")
        answers = []

        def one(i):
            answers.append(self.ask(local, b"n" * i))
        threads = [threading.Thread(target=one, args=(i,)) for i in range(1, 25)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(int(a.split()[0]) for a in answers), list(range(1, 25)))
        self.assertIsNone(program.poll())

    def test_a_server_that_ends_its_side_first_still_receives(self):
        script = """
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listening", flush=True)
connection = server.accept()[0]
connection.sendall(b"bye")
connection.shutdown(socket.SHUT_WR)
data = b""
while piece := connection.recv(65536):
    data += piece
print("got", len(data), flush=True)
import time; time.sleep(1000)
"""
        port = self.serve("half", script=script)
        _, (local,) = self.forward("half", f"0:{port}")
        with socket.create_connection(("127.0.0.1", local), timeout=20) as connection:
            self.assertEqual(connection.recv(100), b"bye")
            self.assertEqual(connection.recv(100), b"")
            connection.sendall(b"y" * 500_000)
        wait_until(lambda: "got 500000" in self.cluster.berth("job", "logs", "half"), 20, "what it received")

    def test_a_port_that_nobody_listens_on_is_named_at_once_and_ends_one_connection(self):
        port = self.serve("alone")
        closed = free_port()
        program, (bad, good) = self.forward("alone", f"0:{closed}", f"0:{port}")
        begin = time.monotonic()
        self.assertEqual(self.ask(bad, b""), "")
        self.assertLess(time.monotonic() - begin, 5)
        self.assertEqual(self.ask(good, b"still"), "5 bytes, still")
        program.terminate()
        self.assertIn(f"nothing listens on port {closed} of the task", program.communicate(timeout=10)[1])

    def test_loopback_of_ipv6(self):
        port = self.serve("six", "6")
        _, (local,) = self.forward("six", "w-0", f"0:{port}")
        self.assertEqual(self.ask(local, b"v6"), "2 bytes, v6")

    def test_the_forwarding_survives_the_server(self):
        port = self.serve("lasting")
        program, (local,) = self.forward("lasting", f"0:{port}")
        self.cluster.server.kill()
        with contextlib.suppress(OSError):  # the local connection ends, sooner or later
            self.assertEqual(self.ask(local, b"lost"), "")
        self.cluster.server.start()
        wait_until(lambda: self.ask(local, b"back") == "4 bytes, back", 60, "a connection again")
        self.assertIsNone(program.poll())

    def test_a_task_that_ends_ends_its_connections(self):
        port = self.serve("ending")
        _, (local,) = self.forward("ending", f"0:{port}")
        with socket.create_connection(("127.0.0.1", local), timeout=30) as connection:
            connection.sendall(b"waits")
            self.cluster.berth("job", "cancel", "ending")
            self.assertEqual(connection.recv(100), b"")

    def test_the_connection_is_made_as_the_user_of_the_task(self):
        script = """
import pathlib, socket, sys, time
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listening", flush=True)
connection, peer = server.accept()
for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
    fields = line.split()
    if int(fields[1].split(":")[1], 16) == peer[1] and fields[3] == "01":
        print("uid", fields[7], flush=True)
time.sleep(1000)
"""
        port = self.serve("who", script=script)
        _, (local,) = self.forward("who", f"0:{port}")
        with socket.create_connection(("127.0.0.1", local), timeout=20):
            own = self.cluster.berth("exec", "who", "-n", "--", "id", "-u").strip()
            wait_until(lambda: f"uid {own}\n" in self.cluster.berth("job", "logs", "who"), 20, "the user")

    def test_refusals(self):
        run = self.cluster.run_berth
        self.submit(make_job("short", "q", ["true"]), "SUCCEEDED")
        self.assertEqual(run("port-forward", "ghost", "80").returncode, 3)
        ended = run("port-forward", "short", "80")
        self.assertEqual((ended.returncode, "is not running" in ended.stderr), (1, True))
        self.assertEqual(run("port-forward", "short", "w-0").returncode, 2)
        self.assertEqual(run("port-forward", "short", "80:90:100").returncode, 2)
        self.assertEqual(run("port-forward", "short", "70000").returncode, 2)


class Run(World):
    def end(self, name):
        self.addCleanup(self.cluster.run_berth, "job", "cancel", name, "--force")

    def test_a_shell_of_its_own(self):
        self.end("own")
        client = self.berth("run", "-it", "-n", "own", "-q", "q", "--", *SHELL, rows=31)
        client.expect("job/own submitted")
        client.expect("bash-")
        client.type("stty size; echo job-$BERTH_JOB\n")
        client.expect("31 80")
        client.expect("job-own")
        client.type("exit 5\n")
        self.assertEqual(client.wait(), 5)
        self.assertTrue(client.is_restored())

    def test_a_program_that_ends_at_once_is_shown_nevertheless(self):
        self.end("quick")
        client = self.berth("run", "-it", "-n", "quick", "-q", "q", "--", "sh", "-c", "echo done-$((5*5)); exit 4")
        self.assertEqual(client.wait(), 4)
        self.assertIn("done-25", client.shown)

    def test_it_waits_with_its_place_and_ctrl_c_cancels(self):
        self.submit(make_job("hog", "q", ["sleep", "1000"], cpu_millis=8000))
        self.end("waits")
        client = self.berth("run", "-it", "-n", "waits", "-q", "q", "-c", "8", "--", *SHELL, columns=200)
        client.expect("job/waits Pending, number 1 of 1 in its queue")
        client.type("\x03")
        client.expect(r"Cancel job waits\? \[Y/n\]")
        client.type("n\n")
        self.assertEqual(client.wait(), 130)
        self.assertTrue(client.is_restored())
        self.assertEqual(job_state(self.cluster.wait_job("waits", "PENDING")), "PENDING")
        self.end("cancelled")
        client = self.berth("run", "-it", "-n", "cancelled", "-q", "q", "-c", "8", "--", *SHELL, columns=200)
        client.expect("job/cancelled Pending")
        client.type("\x03")
        client.expect("Cancel job")
        client.type("y\n")
        self.assertEqual(client.wait(), 130)
        self.cluster.wait_job("cancelled", "CANCELLED")

    def test_the_server_restarts_while_it_waits_and_while_it_works(self):
        self.submit(make_job("first", "q", ["sleep", "1000"], cpu_millis=8000))
        self.end("second")
        client = self.berth("run", "-it", "-n", "second", "-q", "q", "-c", "8", "--", *SHELL, columns=200)
        client.expect("job/second Pending")
        self.cluster.server.kill()
        time.sleep(1)
        self.cluster.server.start()
        self.cluster.berth("job", "cancel", "first", "--force")
        client.expect("bash-", 60)
        client.type("y=$((80+8)); echo known-$((1+1))\n")
        client.expect("known-2")
        self.cluster.server.kill()
        client.expect("reconnecting")
        self.cluster.server.start()
        wait_until(client.is_raw, 30, "the terminal of the task again")
        client.type("echo value-$y; exit\n")
        client.expect("value-88")
        self.assertEqual(client.wait(), 0)

    def test_without_a_terminal_it_prints_the_output(self):
        self.end("plain")
        run = self.cluster.run_berth("run", "-n", "plain", "-q", "q", "--", "sh", "-c", "echo out; echo err >&2; exit 6")
        self.assertEqual((run.returncode, run.stdout), (6, "out\nerr\n"))
        self.assertIn("job/plain submitted", run.stderr)
        self.end("again")
        count = self.cluster.shared_file("count")
        run = self.cluster.run_berth("run", "-n", "again", "-q", "q", "--retries", "2", "--", "sh", "-c",
                                     f"echo try; echo x >> {count}; [ $(wc -l < {count}) -ge 2 ]")
        self.assertEqual((run.returncode, run.stdout), (0, "try\ntry\n"))

    def test_detach_and_wrong_options(self):
        run = self.cluster.run_berth
        self.end("later")
        detached = run("run", "-t", "--detach", "-n", "later", "-q", "q", "--", *SHELL)
        self.assertEqual((detached.returncode, detached.stdout), (0, "job/later submitted\n"))
        self.cluster.wait_job("later", "RUNNING")
        client = self.attach("later")
        client.type("echo here-$((1+1))\n")
        client.expect("here-2")
        self.assertEqual(run("run", "-it", "--", "true").returncode, 2)
        self.assertEqual(run("run", "-i", "--", "true").returncode, 2)
        self.assertEqual(run("run").returncode, 2)
        self.assertEqual(run("run", "--array", "0-3", "-n", "a", "--", "true").returncode, 2)
        self.assertEqual(run("run", "--idle-action", "suspend", "--", "true").returncode, 2)
        wrong = run("run", "--idle", "5s", "-q", "q", "--", "true")
        self.assertEqual(wrong.returncode, 4)
        self.assertIn("--idle", wrong.stderr)


class Idle(World):
    def interactive_job(self, name, command, action=job_pb2.Interactive.END):
        job = terminal_job(name, command)
        job.spec.interactive.idle.FromSeconds(60)
        job.spec.interactive.action = action
        self.submit(job)

    def test_jobs_that_nobody_uses(self):
        self.interactive_job("ends", SHELL)
        self.interactive_job("suspends", SHELL, job_pb2.Interactive.SUSPEND)
        self.interactive_job("busy", ["/usr/bin/python3", "-c", "import time\nwhile True:\n  end = time.process_time() + 0.2\n"
                                      "  while time.process_time() < end: pass\n  time.sleep(0.8)"])
        self.interactive_job("visited", SHELL)
        client = self.attach("visited")
        ended = self.cluster.wait_job("ends", "CANCELLED", timeout_s=150)
        self.assertIn("nobody has used this interactive job", ended.status.cancel_reason)
        suspended = self.cluster.wait_job("suspends", "SUSPENDED", timeout_s=30)
        self.assertIn("nobody has used this interactive job", suspended.status.message)
        for name in "busy", "visited":
            self.assertEqual(job_state(self.cluster.wait_job(name, "RUNNING")), "RUNNING")
        client.type("exit\n")
        self.assertEqual(client.wait(), 0)
        self.cluster.berth("job", "resume", "suspends")
        self.cluster.wait_job("suspends", "RUNNING")


if __name__ == "__main__":
    unittest.main(verbosity=2)
