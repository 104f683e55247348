#!/usr/bin/env python3
"""A checked ring all-reduce with MPI: each rank's vector goes once around the ring, and every rank adds up all of them.

ROUNDS, ELEMENTS and PAUSE_S change the work.
"""
import array
import os
import sys
import time

from mpi4py import MPI

ROUNDS, ELEMENTS = int(os.environ.get("ROUNDS", "10")), int(os.environ.get("ELEMENTS", "4096"))
PAUSE_S = float(os.environ.get("PAUSE_S", "0"))


def all_reduce(world, own):
    rank, size = world.Get_rank(), world.Get_size()
    total, passing = array.array("q", own), own
    for _ in range(size - 1):
        received = array.array("q", bytes(8 * len(own)))
        world.Sendrecv(passing, dest=(rank + 1) % size, recvbuf=received, source=(rank - 1) % size)
        for index, value in enumerate(received):
            total[index] += value
        passing = received
    return total


def main():
    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    print(f"[rank {rank}] of {size} in {os.environ['BERTH_TASK']} on {os.environ['BERTH_NODE']}", flush=True)
    for number in range(ROUNDS):
        own = array.array("q", ((rank + 1) * (index + number) for index in range(ELEMENTS)))
        factor = size * (size + 1) // 2
        if list(all_reduce(world, own)) != [factor * (index + number) for index in range(ELEMENTS)]:
            print(f"[rank {rank}] round {number} is WRONG", flush=True)
            world.Abort(1)
        if rank == 0:
            print(f"round {number} of {ROUNDS} is right", flush=True)
        time.sleep(PAUSE_S)
    world.Barrier()
    if rank == 0:
        print("all rounds are right", flush=True)


if __name__ == "__main__":
    sys.exit(main())
