"""TCP relays that simulate network faults for the tests.

    relay = Relay(server.port)             # listens at relay.address
    relay.cut(); relay.heal()              # connections stay open; bytes are held, and arrive late
    relay.fault = Resets(random.Random(1)) # on all connections, until it is None again
"""
import random
import socket
import struct
import threading
import time

from berth_harness import free_port


class Fault:
    """A fault for bytes in transit. Connections may share one: it has its own `random`."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pieces(self, data):
        """Yields (seconds to wait, bytes to forward then); raises ConnectionError to reset the connection."""
        yield 0, data


class Delays(Fault):
    """Each piece arrives 50 to 500 ms late."""

    def pieces(self, data):
        yield self.random.uniform(0.05, 0.5), data


class Stalls(Fault):
    """One piece in five is lost and arrives when it is retransmitted; all pieces after it wait for it."""

    def __init__(self, seed, longest_s=1.0):
        super().__init__(seed)
        self.longest_s = longest_s

    def pieces(self, data):
        yield self.random.uniform(0.2, self.longest_s) if self.random.random() < 0.2 else 0, data


class Resets(Fault):
    """Resets the connection at any byte, about once per given number of bytes."""

    def __init__(self, seed, bytes_between=6000):
        super().__init__(seed)
        self.bytes_between = bytes_between

    def pieces(self, data):
        if self.random.random() > len(data) / self.bytes_between:
            yield 0, data
            return
        yield 0, data[:self.random.randrange(len(data))]
        raise ConnectionResetError


class Drip(Fault):
    """A limited number of bytes per second."""

    def __init__(self, seed, bytes_per_second):
        super().__init__(seed)
        self.bytes_per_second = bytes_per_second

    def pieces(self, data):
        while data:
            size = max(1, min(len(data), self.random.randint(1, max(1, self.bytes_per_second // 4))))
            yield size / self.bytes_per_second, data[:size]
            data = data[size:]


class AnyOf(Fault):
    def __init__(self, seed, faults):
        super().__init__(seed)
        self.faults = faults

    def pieces(self, data):
        yield from self.random.choice(self.faults).pieces(data)


class Relay(threading.Thread):
    def __init__(self, target_port, host="127.0.0.1"):
        super().__init__(daemon=True)
        self.host, self.port, self.target_port = host, free_port(), target_port
        self.to_server, self.to_agent = threading.Event(), threading.Event()  # set: cut
        self.fault, self.connections, self.resets = None, 0, 0
        self.listener = socket.create_server((host, self.port))
        self.start()

    @property
    def address(self):
        return f"{self.host}:{self.port}"

    def cut(self):
        self.to_server.set()
        self.to_agent.set()

    def heal(self):
        self.to_server.clear()
        self.to_agent.clear()
        self.fault = None

    def run(self):
        while True:
            near, _ = self.listener.accept()
            if self.to_server.is_set():
                near.close()
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self.target_port))
            except OSError:  # the server is down
                near.close()
                continue
            self.connections += 1
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for source, sink, cut in ((near, far, self.to_server), (far, near, self.to_agent)):
                threading.Thread(target=self.pump, args=(source, sink, cut), daemon=True).start()

    def pump(self, source, sink, cut):
        try:
            while data := source.recv(65536):
                self.pass_on(data, sink, cut)
        except ConnectionResetError:
            self.resets += 1
            self.reset(source)
            self.reset(sink)
            return
        except OSError:
            pass
        try:
            sink.shutdown(socket.SHUT_RDWR)  # close alone waits for the other thread, which reads from it
        except OSError:
            pass
        sink.close()

    def pass_on(self, data, sink, cut):
        fault, at = self.fault, 0
        for wait_s, piece in (fault.pieces(data) if fault is not None else [(0, data)]):
            if wait_s:
                time.sleep(wait_s)
            while cut.is_set():
                time.sleep(0.02)
            sink.sendall(piece)
            at += len(piece)
            if fault is not self.fault:  # healed or reset: the rest is sent at once
                sink.sendall(data[at:])
                return

    @staticmethod
    def reset(connection):
        """RST, not FIN: bytes in flight are lost."""
        try:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.shutdown(socket.SHUT_RD)
        except OSError:
            pass
        connection.close()
