#!/usr/bin/env python3
"""A ring all-reduce between real processes, using only Python's standard library.

Started WORLD_SIZE times with the environment that Berth gives every task: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT.
Rank 0 listens on MASTER_PORT and sends the addresses of all ranks to every rank. Then each rank connects to the next
one, and the vectors go around the ring: reduce-scatter (each rank ends with the sum of one chunk), then all-gather
(each chunk visits every rank). Each rank checks every element against the closed form and exits non-zero if one is wrong.

    rank 0 -> rank 1 -> rank 2 -> rank 3 -> rank 0          bytes sent per rank: 2 (n-1)/n of the vector

ELEMENTS, ROUNDS and TIMEOUT_S change the work. CORRUPT_RANK corrupts that rank's input to make the check fail.
"""
import array
import json
import os
import socket
import struct
import sys
import threading
import time

ELEMENTS = int(os.environ.get("ELEMENTS", "65536"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
TIMEOUT_S = float(os.environ.get("TIMEOUT_S", "60"))


def say(rank, text):
    print(f"[rank {rank}] {text}", flush=True)


def send_message(connection, payload):
    connection.sendall(struct.pack("!I", len(payload)) + payload)


def receive_exactly(connection, size):
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionError(f"the other side closed after {len(parts)} of {size} bytes")
        parts += part
    return bytes(parts)


def receive_message(connection):
    (size,) = struct.unpack("!I", receive_exactly(connection, 4))
    return receive_exactly(connection, size)


def listen_on(address, port):
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.settimeout(TIMEOUT_S)
    listener.bind((address, port))
    listener.listen(128)
    return listener


def connect_to(address, port, deadline):
    """Retries until the deadline: the peer may not be listening yet."""
    while True:
        try:
            connection = socket.create_connection((address, port), timeout=TIMEOUT_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def host_the_meeting(listener, world, own_place):
    """Rank 0: collects the address of every rank, then sends the whole list to each."""
    places, guests = {0: own_place}, []
    while len(places) < world:
        connection, peer = listener.accept()
        connection.settimeout(TIMEOUT_S)
        hello = json.loads(receive_message(connection))
        if hello["rank"] in places:
            raise RuntimeError(f"rank {hello['rank']} came twice")
        places[hello["rank"]] = [peer[0], hello["port"]]
        guests.append(connection)
    for connection in guests:
        send_message(connection, json.dumps(places).encode())
        connection.close()
    return places


def meet(rank, world, listener, deadline):
    """Returns where every rank listens: {rank: (address, port)}."""
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    own_port = listener.getsockname()[1]
    if rank == 0:
        meeting = listen_on("", port)
        places = host_the_meeting(meeting, world, [address, own_port])
        meeting.close()
    else:
        connection = connect_to(address, port, deadline)
        send_message(connection, json.dumps({"rank": rank, "port": own_port}).encode())
        places = json.loads(receive_message(connection))
        connection.close()
    return {int(key): tuple(value) for key, value in places.items()}


class Ring:
    """One connection to the next rank and one from the previous."""

    def __init__(self, rank, world):
        deadline = time.monotonic() + TIMEOUT_S
        listener = listen_on("", 0)
        places = meet(rank, world, listener, deadline)
        self.to_next = connect_to(*places[(rank + 1) % world], deadline)
        self.from_previous, _ = listener.accept()
        self.from_previous.settimeout(TIMEOUT_S)
        listener.close()

    def exchange(self, payload):
        """Sends to the next rank while receiving from the previous one: sending first would fill and block the ring."""
        failure = []

        def send():
            try:
                send_message(self.to_next, payload)
            except OSError as error:
                failure.append(error)

        sender = threading.Thread(target=send)
        sender.start()
        received = receive_message(self.from_previous)
        sender.join()
        if failure:
            raise failure[0]
        return received


def chunk_bounds(elements, world):
    """[begin, end) of each chunk; the first ones are longer by one if the length is not divisible."""
    size, longer = divmod(elements, world)
    bounds, begin = [], 0
    for chunk in range(world):
        end = begin + size + (1 if chunk < longer else 0)
        bounds.append((begin, end))
        begin = end
    return bounds


def all_reduce(ring, rank, world, vector):
    """Sums `vector` over all ranks, in place."""
    bounds = chunk_bounds(len(vector), world)
    for step in range(world - 1):  # reduce-scatter
        begin, end = bounds[(rank - step) % world]
        received = array.array("q", ring.exchange(vector[begin:end].tobytes()))
        begin, end = bounds[(rank - step - 1) % world]
        for index in range(begin, end):
            vector[index] += received[index - begin]
    for step in range(world - 1):  # all-gather
        begin, end = bounds[(rank + 1 - step) % world]
        received = array.array("q", ring.exchange(vector[begin:end].tobytes()))
        begin, end = bounds[(rank - step) % world]
        vector[begin:end] = received


def wrong_elements(vector, world, round_number):
    """Rank r contributes (r + 1) * (i + round) to element i, so the sum is world (world + 1) / 2 * (i + round)."""
    factor = world * (world + 1) // 2
    return [i for i, value in enumerate(vector) if value != factor * (i + round_number)]


def run_round(ring, rank, world, round_number):
    vector = array.array("q", ((rank + 1) * (i + round_number) for i in range(ELEMENTS)))
    if rank == int(os.environ.get("CORRUPT_RANK", "-1")):
        vector[ELEMENTS // 2] += 1
    started = time.monotonic()
    all_reduce(ring, rank, world, vector)
    elapsed = time.monotonic() - started
    wrong = wrong_elements(vector, world, round_number)
    if wrong:
        say(rank, f"round {round_number}: {len(wrong)} of {ELEMENTS} elements are wrong, the first at {wrong[0]}")
        return False
    megabytes = 2 * (world - 1) / world * ELEMENTS * 8 / 1e6
    say(rank, f"round {round_number}: sum of {ELEMENTS} integers over {world} ranks is right "
              f"({megabytes:.1f} MB sent in {elapsed * 1000:.0f} ms)")
    return True


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    say(rank, f"pid {os.getpid()} of {world}, meeting at {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}")
    if world == 1:
        say(rank, "alone: nothing to reduce")
        return 0
    ring = Ring(rank, world)
    right = [run_round(ring, rank, world, number) for number in range(ROUNDS)]
    say(rank, "all rounds are right" if all(right) else "FAILED")
    return 0 if all(right) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception as error:  # a dead peer or a timeout: report it in one line, and fail
        say(os.environ.get("RANK", "?"), f"FAILED: {type(error).__name__}: {error}")
        sys.exit(1)
