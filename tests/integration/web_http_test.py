#!/usr/bin/env python3
"""berth-web without a browser: server-sent events that lose nothing, many connections, clients that misbehave, a stop with
open streams, and two servers of which one dies.
"""
import base64
import contextlib
import http.client
import json
import signal
import socket
import subprocess
import time
import unittest

from berth_harness import BIN, Cluster, wait_until
from ha_world import HaWorld, skip_without_etcd
from web_browser import Web


class Events:
    """A stream of server-sent events."""

    def __init__(self, web, path="/api/watch", last_id=None, body=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=30)
        headers = {"Host": web.address, **({"Last-Event-ID": last_id} if last_id else {})}
        if body is None:
            self.connection.request("GET", path, headers=headers)
        else:
            self.connection.request("POST", path, json.dumps(body), {**headers, "Content-Type": "application/json"})
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, (self.answer.status, self.answer.read())
        self.last_id = last_id

    def next(self):
        """(event, data)"""
        event, data = None, ""
        while True:
            line = self.answer.readline().decode()
            if not line:
                raise EOFError("the stream has ended")
            line = line.rstrip("\n")
            name, _, value = line.partition(": ")
            if name == "event":
                event = value
            elif name == "data":
                data += value
            elif name == "id":
                self.last_id = value
            elif not line and event:
                return event, json.loads(data)

    def until(self, event, wanted=lambda data: True):
        while True:
            found, data = self.next()
            if found == event and wanted(data):
                return data

    def jobs(self, names):
        """Reads until each of these was submitted; returns the events that told so."""
        missing, found = set(names), []
        while missing:
            event, data = self.next()
            assert event != "reset", "changes were lost"
            for change in data.get("events", []) if event == "changes" else []:
                if change["type"] == "JOB_SUBMITTED" and change["job"] in missing:
                    missing.discard(change["job"])
                    found.append(change["job"])
        return found

    def close(self):
        self.connection.close()


def call(port, method, request, **headers):
    return post(port, f"/berth.v1.{method.replace('.', '/')}", request, **headers)


def post(port, path, request, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", path, json.dumps(request),
                       {"Host": f"127.0.0.1:{port}", "Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()
    return answer.status, body


@unittest.skipUnless((BIN / "berth-web").exists(), "berth-web is not built")
class Http(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.cluster.server.start()
        cls.cluster.create_queue("q")

    def setUp(self):
        self.web = Web(self.cluster.home, name=f"web-{self._testMethodName}", server=self.cluster.server.address).start()
        self.addCleanup(self.web.stop)

    def submit(self, *names):
        for name in names:
            self.cluster.berth("submit", "--name", name, "--queue", "q", "--gpus", "1", "--", "true")

    def raw(self, data):
        """What comes back for these bytes."""
        with socket.create_connection(("127.0.0.1", self.web.port), timeout=20) as connection, contextlib.suppress(OSError):
            connection.sendall(data)
            return connection.recv(65536)
        return b""

    def test_a_stream_that_comes_back_has_missed_nothing(self):
        stream = Events(self.web)
        self.addCleanup(stream.close)
        self.assertTrue(stream.until("state", lambda data: data["live"])["live"])
        self.submit("before")
        stream.jobs(["before"])
        last = stream.last_id
        stream.close()
        self.submit("between-1", "between-2")
        time.sleep(1)
        again = Events(self.web, last_id=last)
        self.addCleanup(again.close)
        self.assertEqual(again.jobs(["between-1", "between-2"]), ["between-1", "between-2"])

    def test_who_was_away_for_too_long_is_told_to_read_again(self):
        stream = Events(self.web, last_id="1-1")
        self.addCleanup(stream.close)
        stream.until("reset")
        other = Events(self.web, last_id="nonsense")
        self.addCleanup(other.close)
        other.until("reset")

    def test_changes_of_half_a_second_are_one_message(self):
        stream = Events(self.web)
        self.addCleanup(stream.close)
        stream.until("state", lambda data: data["live"])
        manifest = "\n---\n".join(json.dumps({"apiVersion": "berth/v1", "kind": "Job", "name": f"many-{i}", "queue": "q",
                                               "groups": [{"name": "w", "resources": {"gpu": 1}, "command": ["true"]}]}) for i in range(700))
        self.cluster.berth("submit", self.cluster.manifest(manifest))
        messages, told = 0, 0
        while told < 700:
            data = stream.until("changes")
            messages += 1
            told += sum(change["type"] == "JOB_SUBMITTED" for change in data.get("events", [])) + data.get("more", 0)
        self.assertLess(messages, 30)

    def test_connections_that_do_nothing_keep_nobody_out(self):
        idle = []
        try:
            for _ in range(700):
                with contextlib.suppress(OSError):
                    idle.append(socket.create_connection(("127.0.0.1", self.web.port), timeout=5))
            for connection in idle[:100]:
                connection.sendall(b"POST /berth.v1.JobService/ListJobs HTTP/1.1\r\nContent-Le")
            for connection in idle[200:]:
                connection.close()
            wait_until(lambda: call(self.web.port, "ClusterService.GetClusterInfo", {})[0] == 200, 20, "an answer")
        finally:
            for connection in idle:
                connection.close()

    def test_requests_that_are_wrong_are_refused(self):
        host = f"Host: {self.web.address}\r\n".encode()
        self.assertIn(b" 405 ", self.raw(b"PUT / HTTP/1.1\r\n" + host + b"\r\n"))
        self.assertIn(b" 403 ", self.raw(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"))
        self.assertIn(b" 413 ", self.raw(b"POST /api/sign-out HTTP/1.1\r\n" + host + b"Content-Length: 99999999\r\n\r\n"))
        self.assertIn(b" 431 ", self.raw(b"GET / HTTP/1.1\r\n" + host + b"".join(b"X-%d: 1\r\n" % i for i in range(150)) + b"\r\n"))
        self.raw(b"GET / HTTP/1.1\r\n" + host + b"X: " + b"a" * 100_000 + b"\r\n\r\n")
        self.raw(b"\x16\x03\x01" + bytes(range(256)))
        self.assertIn(b" 404 ", self.raw(b"GET /../../etc/passwd HTTP/1.1\r\n" + host + b"\r\n"))
        self.assertIn(b" 404 ", self.raw(b"GET /api/history HTTP/1.1\r\n" + host + b"\r\n"))
        status, answer = call(self.web.port, "WatchService.Watch", {})
        self.assertEqual((status, answer["code"]), (404, "not_found"))
        status, answer = call(self.web.port, "JobService.GetJob", {"name": "nothing"})
        self.assertEqual((status, answer["code"]), (404, "not_found"))
        self.assertTrue(self.web.running())

    def test_a_write_that_is_sent_again_is_done_once(self):
        job = {"jobs": [{"name": "once", "spec": {"queue": "q", "groups": [{"name": "w", "command": ["true"], "resources": {"cpu": 1}}]}}]}
        first = call(self.web.port, "JobService.SubmitJobs", {**job, "requestId": "r1"})
        again = call(self.web.port, "JobService.SubmitJobs", {**job, "requestId": "r1"})
        self.assertEqual(first, again)
        self.assertEqual(first[0], 200)
        headers = {"Berth-Request-Id": "cancel-1"}
        self.assertEqual(call(self.web.port, "JobService.CancelJob", {"name": "once"}, **headers)[0], 200)
        self.assertEqual(call(self.web.port, "JobService.CancelJob", {"name": "once"}, **headers)[0], 200)

    def test_it_stops_at_once_with_open_streams(self):
        streams = [Events(self.web) for _ in range(20)]
        for stream in streams:
            stream.until("state")
        begin = time.monotonic()
        self.web.signal(signal.SIGTERM)
        for stream in streams:
            stream.until("end")
            stream.close()
        self.web.process.wait(20)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertEqual(self.web.process.returncode, 0)

    def test_without_berthd_answers_say_so_and_streams_go_on_later(self):
        stream = Events(self.web)
        self.addCleanup(stream.close)
        stream.until("state", lambda data: data["live"])
        self.cluster.server.kill()
        self.assertFalse(stream.until("state", lambda data: not data["live"])["live"])
        status, answer = call(self.web.port, "JobService.ListJobs", {})
        self.assertEqual((status, answer["code"]), (503, "unavailable"))
        self.cluster.server.start()
        stream.until("state", lambda data: data["live"])
        self.submit("after")
        stream.jobs(["after"])


@unittest.skipUnless((BIN / "berth-web").exists(), "berth-web is not built")
@unittest.skipUnless((BIN / "berth-web").exists(), "berth-web is not built")
class Terminals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.cluster.server.start()
        cls.cluster.add_agent("n1")
        cls.cluster.wait_nodes(1)
        cls.cluster.create_queue("q")
        cls.cluster.berth("submit", "--name", "shell", "--queue", "q", "--", "sleep", "600")
        cls.cluster.wait_job("shell", "RUNNING")
        cls.web = Web(cls.cluster.home, name="web-terminals", server=cls.cluster.server.address).start()
        cls.addClassCleanup(cls.web.stop)

    def open(self, *command, web=None, **more):
        body = {"open": {"job": "shell", "command": list(command), "terminal": {"rows": 24, "columns": 80}, **more}}
        events = Events(web or self.web, "/api/terminal", body=body)
        self.addCleanup(events.close)
        return events

    def send(self, events_id, **body):
        return post(self.web.port, "/api/terminal/input", {"id": events_id, **body})

    def read_until(self, events, wanted):
        """The output up to these bytes."""
        output = b""
        while wanted not in output:
            event, data = events.next()
            self.assertEqual(event, "output", data)
            output += base64.b64decode(data["data"])
        return output

    def test_what_is_typed_reaches_the_task_and_comes_back(self):
        events = self.open("sh")
        terminal = events.until("opened")["id"]
        self.assertEqual(self.send(terminal, input=base64.b64encode(b"tty; echo 4''2\r").decode())[0], 200)
        self.assertIn(b"/dev/pts/", self.read_until(events, b"42\r\n"))
        self.assertEqual(self.send(terminal, resize={"rows": 50, "columns": 132}, input=base64.b64encode(b"stty size\r").decode())[0], 200)
        self.read_until(events, b"50 132")
        self.assertEqual(self.send(terminal, input=base64.b64encode(b"exit 7\r").decode())[0], 200)
        self.assertEqual(events.until("end"), {"exitCode": 7})
        status, answer = self.send(terminal, input="")
        self.assertEqual((status, answer["code"]), (404, "not_found"))

    def test_a_command_that_prints_without_end_waits_for_the_page_and_ends_with_it(self):
        before = self.web.memory_kib()
        events = self.open("sh", "-c", "exec yes floods-the-page")
        events.until("opened")
        time.sleep(3)  # nobody reads
        self.assertLess(self.web.memory_kib() - before, 20_000)
        found = ["pgrep", "-f", "^yes floods-the-page"]
        self.assertEqual(subprocess.run(found, stdout=subprocess.DEVNULL, check=False).returncode, 0)
        events.close()
        wait_until(lambda: subprocess.run(found, stdout=subprocess.DEVNULL, check=False).returncode == 1, 20, "the command has ended")

    def test_what_is_wrong_is_refused(self):
        for body in ({}, {"open": {"job": "shell", "command": ["sh"]}}, {"open": {"job": "shell", "port": 22, "terminal": {"rows": 1, "columns": 1}}},
                     {"open": {"jobb": "shell"}}, "x"):
            status, answer = post(self.web.port, "/api/terminal", body)
            self.assertEqual((status, answer["code"]), (400, "invalid_argument"), body)
        end = self.open("sh", job="nothing").until("end")
        self.assertEqual(end["code"], "not_found")
        self.assertIn("nothing", end["message"])
        for body in ({"id": "guess", "input": "eA=="}, {"input": "eA=="}):
            self.assertEqual(post(self.web.port, "/api/terminal/input", body)[0], 404)
        terminal = self.open("sleep", "60").until("opened")["id"]
        self.assertEqual(self.send(terminal, input=base64.b64encode(b"x" * 70_000).decode())[0], 400)
        # A page of somebody else.
        status, answer = post(self.web.port, "/api/terminal", {"open": {}}, Origin="https://evil.example")
        self.assertEqual((status, answer["code"]), (403, "permission_denied"))
        status, answer = post(self.web.port, "/api/terminal", {"open": {}}, **{"Content-Type": "text/plain"})
        self.assertEqual(status, 400)

    def test_input_that_nobody_reads_is_bounded(self):
        events = self.open("sh", "-c", "stty raw -echo; echo ready; exec sleep 60")
        terminal = events.until("opened")["id"]
        self.read_until(events, b"ready")
        chunk = base64.b64encode(b"x" * 60_000).decode()
        statuses = []
        for _ in range(200):
            statuses.append(self.send(terminal, input=chunk)[0])
            if statuses[-1] != 200:
                break
        self.assertEqual(statuses[-1], 429, statuses)

    def test_terminals_can_be_turned_off(self):
        web = Web(self.cluster.home, name="web-without", server=self.cluster.server.address, terminals=False).start()
        self.addCleanup(web.stop)
        status, answer = post(web.port, "/api/terminal", {"open": {"job": "shell"}})
        self.assertEqual((status, answer["code"]), (501, "unimplemented"))
        self.assertIn("berth job exec", answer["message"])


class TwoServers(unittest.TestCase):
    def test_calls_and_changes_go_on_at_the_other_server(self):
        skip_without_etcd()
        with HaWorld() as world:
            web = Web(world.home, server=",".join(server.address for server in world.servers)).start()
            try:
                world.client.submit("first")
                stream = Events(web)
                stream.until("state", lambda data: data["live"])
                world.await_standby()
                world.leader().kill()
                begin = time.monotonic()
                wait_until(lambda: call(web.port, "JobService.GetJob", {"name": "first"})[0] == 200, 30, "an answer", 0.1)
                print(f"an answer {time.monotonic() - begin:.1f} s after the leader was killed")
                stream.until("state", lambda data: data["live"])
                world.client.submit("second")
                stream.jobs(["second"])
                stream.close()
            finally:
                web.stop()


if __name__ == "__main__":
    unittest.main(verbosity=2)
