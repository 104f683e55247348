#!/usr/bin/env python3
"""Bytes that no gRPC client would send to berthd's port: it survives, answers others in time, and its memory stays
bounded.

Random bytes (SEED=N repeats them), HTTP/2 with garbage, floods of cheap messages, and connections that stop half way. A
well-behaved client makes calls during each attack.
"""
import os
import pathlib
import random
import socket
import struct
import threading
import time
import unittest

from berth_api import cluster_pb2
from berth_harness import SANITIZED, Cluster, wait_until

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
MAX_CONCURRENT_STREAMS, STREAMS = 3, 10_000  # docs/operators/limits.md
ENHANCE_YOUR_CALM = 11
END_STREAM, END_HEADERS, ACK = 1, 4, 1
ANSWER_S = 20 if SANITIZED else 5  # of a good call during the attack; the attackers share two cores with berthd
MORE_MIB = 256                     # that berthd may use in addition to its use before
SEED = int(os.environ.get("SEED", "1"))


def frame(kind, flags, stream, payload=b"", length=None):
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def integer(value, bits, first=0):
    """An integer in the encoding of HPACK."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    out, value = [first | most], value - most
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes([*out, value])


def literal(name, value):
    """A header without indexing."""
    return b"\0" + integer(len(name), 7) + name + integer(len(value), 7) + value


def call_headers(method=b"/berth.v1.JobService/SubmitJobs"):
    return b"".join(literal(*pair) for pair in (
        (b":method", b"POST"), (b":scheme", b"http"), (b":path", method), (b":authority", b"x"), (b"te", b"trailers"),
        (b"content-type", b"application/grpc")))


class Connection:
    def __init__(self, port, greet=True):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=2)
        if greet:
            self.send(PREFACE + frame(SETTINGS, 0, 0))

    def send(self, data):
        """False once the other end has closed, or accepts nothing for two seconds."""
        try:
            self.socket.sendall(data)
            return True
        except OSError:
            return False

    def drain(self):
        self.socket.setblocking(False)
        try:
            while self.socket.recv(1 << 16):
                pass
        except OSError:
            pass
        finally:
            self.socket.settimeout(2)

    def frames(self):
        """(kind, stream, payload) of each received frame, until the other end closes or is silent for two seconds."""
        data = b""
        while True:
            try:
                more = self.socket.recv(1 << 16)
            except OSError:
                return
            if not more:
                return
            data += more
            while len(data) >= 9 and len(data) >= 9 + int.from_bytes(data[:3], "big"):
                length = int.from_bytes(data[:3], "big")
                yield data[3], int.from_bytes(data[5:9], "big"), data[9:9 + length]
                data = data[9 + length:]

    def close(self):
        self.socket.close()


class Http2Garbage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.cluster.server.start()
        cls.info()
        _, cls.files = cls.usage()

    @classmethod
    def info(cls):
        return cls.cluster.api.cluster.GetClusterInfo(cluster_pb2.GetClusterInfoRequest(), timeout=ANSWER_S)

    @classmethod
    def proc(cls):
        return pathlib.Path(f"/proc/{cls.cluster.server.process.pid}")

    @classmethod
    def usage(cls):
        """(peak memory in MiB since the last reset, open files) of berthd."""
        line = next(line for line in (cls.proc() / "status").read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) // 1024, len(list((cls.proc() / "fd").iterdir()))

    def setUp(self):
        self.dice, self.open = random.Random(SEED), []

    def connect(self, greet=True):
        connection = Connection(self.cluster.server.port, greet)
        self.open.append(connection)
        return connection

    def during(self, attack, more_mib=MORE_MIB):
        """Makes good calls, one after the other, until the attack is over; then checks its cost."""
        failure, slowest, calls = [], 0.0, 0
        (self.proc() / "clear_refs").write_text("5")  # resets the peak: proc(5)
        before, _ = self.usage()

        def run():
            try:
                attack()
            except Exception as error:  # reported by the test, not by the thread
                failure.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        while thread.is_alive() or calls == 0:
            begin = time.monotonic()
            self.info()
            slowest, calls = max(slowest, time.monotonic() - begin), calls + 1
            time.sleep(0.01)
        thread.join()
        self.assertEqual(failure, [])
        for connection in self.open:
            connection.close()
        self.assertTrue(self.cluster.server.running(), self.cluster.server.output()[-2000:])
        wait_until(lambda: self.usage()[1] <= self.files + 5, 30, "berthd has closed the connections")
        memory, _ = self.usage()
        print(f"  {calls} calls, the slowest {slowest * 1000:.0f} ms; memory {before} MiB, at most {memory} MiB")
        self.assertLess(memory, before + more_mib)

    def test_random_bytes(self):
        def attack():
            for _ in range(300):
                self.connect(greet=False).send(self.dice.randbytes(self.dice.randrange(1, 5000)))
        self.during(attack)

    def test_garbage_after_a_valid_preface(self):
        def attack():
            for _ in range(300):
                connection = self.connect()
                for _ in range(self.dice.randrange(1, 20)):
                    kind, flags, stream = self.dice.randrange(12), self.dice.randrange(256), self.dice.randrange(8)
                    connection.send(frame(kind, flags, stream, self.dice.randbytes(self.dice.randrange(100))))
        self.during(attack)

    def test_bad_lengths(self):
        wrong = [frame(SETTINGS, 0, 0, b"x" * 5), frame(PING, 0, 0, b"x" * 7), frame(WINDOW_UPDATE, 0, 0, b"\0" * 4),
                 frame(RST_STREAM, 0, 1, b"x"), frame(DATA, 0, 0, b"x"), frame(HEADERS, END_HEADERS, 0, call_headers()),
                 frame(HEADERS, END_HEADERS, 2, call_headers()), frame(CONTINUATION, 0, 1, b"x"),
                 frame(HEADERS, 0, 1, call_headers()) + frame(PING, 0, 0, b"x" * 8),
                 frame(DATA, 8, 1, b"\xff"), frame(DATA, 0, 1, b"", length=0xFFFFFF), frame(HEADERS, 0, 1, b"", length=0xFFFFFF),
                 *[frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 0x7FFFFFFF))] * 2,
                 frame(HEADERS, END_HEADERS, 1, integer(1 << 40, 7, 0x80)), frame(HEADERS, END_HEADERS, 1, b"\0\x7f" + b"\xff" * 20)]

        def attack():
            for data in wrong:
                for cut in (len(data), 9, 5):
                    self.connect().send(data[:cut])
        self.during(attack)

    def test_messages_with_false_lengths(self):
        def attack():
            for flag, length in ((0, 0xFFFFFFFF), (1, 100), (0, 1 << 22), (7, 3)):
                for stream in range(1, 40, 2):
                    connection = self.connect()
                    connection.send(frame(HEADERS, END_HEADERS, stream, call_headers()))
                    connection.send(frame(DATA, END_STREAM, stream, struct.pack(">BI", flag, length) + b"\xff" * 10))
        self.during(attack)

    def test_header_lists_without_end(self):
        def attack():
            for _ in range(5):
                connection = self.connect()
                connection.send(frame(HEADERS, 0, 1, call_headers()))
                block = b"".join(literal(b"x-%d" % i, b"y" * 1000) for i in range(16))[:16000]
                for _ in range(2000):  # 32 MB
                    if not connection.send(frame(CONTINUATION, 0, 1, block)):
                        break
        self.during(attack)

    def test_streams_that_are_reset_immediately(self):
        """CVE-2023-44487: gRPC 1.51 keeps about 25 KB for each for long; berthd cuts such connections (services/stream_guard.h)."""
        streams, connections = (30_000 if SANITIZED else 300_000), []

        def attack():
            sent = 0
            while sent < streams:
                connection = self.connect()
                connections.append(connection)
                for first in range(1, 2 * streams, 400):
                    burst = b"".join(frame(HEADERS, END_HEADERS, stream, call_headers()) +
                                     frame(RST_STREAM, 0, stream, struct.pack(">I", 8))
                                     for stream in range(first, first + 400, 2))
                    if sent >= streams or not connection.send(burst):
                        break
                    sent += 200
                    connection.drain()
        self.during(attack, more_mib=900)
        if not SANITIZED:
            self.assertGreater(len(connections), 1, "connections were cut")
            self.assertIn("a connection was cut", self.cluster.server.output())

    def test_streams_left_open_by_a_client_that_acknowledges_no_settings(self):
        """The limit of streams does not hold for it: gRPC 1.51 waits for the acknowledgement."""
        opened = []

        def attack():
            connection = self.connect()
            for first in range(1, 400_000, 400):
                burst = b"".join(frame(HEADERS, END_HEADERS, stream, call_headers()) for stream in range(first, first + 400, 2))
                if not connection.send(burst):
                    break
                connection.drain()
                opened.append(200)
        self.during(attack, more_mib=900)
        if not SANITIZED:
            self.assertLess(sum(opened), 200_000, "the connection was cut")

    def test_more_streams_than_a_connection_may_have(self):
        """Clients receive the limit; a client that opens more streams loses the connection."""
        limits, opened = [], []

        def attack():
            connection = self.connect()
            for kind, _, payload in connection.frames():
                if kind == SETTINGS and payload:
                    limits.append(dict(struct.iter_unpack(">HI", payload)).get(MAX_CONCURRENT_STREAMS))
                    break
            connection.send(frame(SETTINGS, ACK, 0))  # the limit applies from then on
            for first in range(1, 2 * STREAMS + 400, 200):
                burst = b"".join(frame(HEADERS, END_HEADERS, stream, call_headers()) for stream in range(first, first + 200, 2))
                if not connection.send(burst):
                    break
                opened.append(first)
            opened.append([kind for kind, _, _ in connection.frames()])
            wait_until(lambda: not connection.send(b"x"), 10, "the connection is closed")
        self.during(attack, more_mib=512)  # about 25 KB per stream
        self.assertEqual(limits, [STREAMS])

    def test_more_pings_than_allowed(self):
        """With time to answer between them; a client that sends too many loses the connection, with the reason."""
        reasons = []

        def attack():
            connection = self.connect()
            for _ in range(20):
                connection.send(frame(PING, 0, 0, b"12345678"))
                time.sleep(0.05)
            reasons.extend(payload for kind, _, payload in connection.frames() if kind == GOAWAY)
        self.during(attack)
        self.assertTrue(any(int.from_bytes(reason[4:8], "big") == ENHANCE_YOUR_CALM for reason in reasons), reasons)

    def test_pings_and_settings_with_unread_answers(self):
        def attack():
            for data in (frame(PING, 0, 0, b"12345678"), frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535))):
                connection = self.connect()
                for _ in range(500):
                    if not connection.send(data * 500):
                        break
        self.during(attack)

    def test_calls_that_never_end(self):
        def attack():
            for _ in range(20):
                connection = self.connect()
                connection.send(b"".join(frame(HEADERS, END_HEADERS, stream, call_headers()) +
                                         frame(DATA, 0, stream, struct.pack(">BI", 0, 1 << 20) + b"x" * 100)
                                         for stream in range(1, 200, 2)))
            time.sleep(1)
        self.during(attack)

    def test_connections_that_stop_half_way(self):
        def attack():
            for i in range(400):
                self.connect(greet=False).send((PREFACE + frame(SETTINGS, 0, 0))[: i % len(PREFACE)])
            time.sleep(1)
        self.during(attack)


if __name__ == "__main__":
    unittest.main(verbosity=2)
