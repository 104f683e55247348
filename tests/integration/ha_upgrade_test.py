#!/usr/bin/env python3
"""A rolling upgrade: two versions side by side, each leading and each following the other, while clients and tasks work.

    tests/integration/ha_upgrade_test.py [--old BERTHD]

Without --old the newer version is a copy of this one that says another version. With it, the older one is that program.
"""
import argparse
import pathlib
import stat
import time

from berth_api import cluster_pb2
from berth_harness import BIN, wait_until
from ha_faults import Faults
from ha_tasks import CONFIG
from ha_world import HaWorld, skip_without_etcd

NEWER = b"9.9.9"


def newer_copy(program, directory):
    """The program with another version of the same length."""
    version = next(line for line in (pathlib.Path(__file__).parents[2] / "CMakeLists.txt").read_text().splitlines()
                   if line.startswith("project(")).split()[2].encode()
    assert len(version) == len(NEWER), version
    content = pathlib.Path(program).read_bytes()
    assert content.count(version + b"\0") > 0, version
    path = directory / "berthd-newer"
    path.write_bytes(content.replace(version + b"\0", NEWER + b"\0"))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def await_leader(world, server):
    wait_until(lambda: world.leader() is server, 30, f"{server.member} leads")


def await_follower(world, server):
    wait_until(lambda: server in world.standbys(), 60, f"{server.member} follows")


def replace(world, server, program):
    """Stops a standby and starts it with another program."""
    server.stop()
    server.arguments[0] = str(program)
    server.start()
    await_follower(world, server)


def hand_over(world, leader):
    def done():
        world.client.apis[leader.address].cluster.HandOver(cluster_pb2.HandOverRequest(), timeout=5)
        return True
    wait_until(done, 20, "a successor is known")


def versions(world):
    members = world.client.call("cluster", "ListMembers", cluster_pb2.ListMembersRequest()).members
    return {member.name: member.version for member in members}


def upgrade(world, newer, older):
    first, second = world.leader(), world.standbys()[0]
    time.sleep(2)
    replace(world, second, newer)
    if older is None:
        wait_until(lambda: len(set(versions(world).values())) == 2, 10, "two versions side by side")
    time.sleep(2)
    hand_over(world, first)  # to the newer one; the older one follows it
    await_leader(world, second)
    await_follower(world, first)
    time.sleep(2)
    second.halt()  # the older one takes over again
    await_leader(world, first)
    second.start()
    await_follower(world, second)
    time.sleep(2)
    hand_over(world, first)
    await_leader(world, second)
    await_follower(world, first)
    replace(world, first, newer)
    assert len(set(versions(world).values())) == 1, versions(world)
    second.halt()
    await_leader(world, first)
    second.start()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--old")
    options = parser.parse_args()
    skip_without_etcd()
    faults = Faults(seed=1)
    with HaWorld(config=CONFIG, relays=True) as world:
        newer = BIN / "berthd" if options.old else newer_copy(BIN / "berthd", world.home)
        faults.world = world
        for server in world.servers:
            server.stop()
            server.arguments[0] = options.old or str(BIN / "berthd")
        for server in world.servers:
            server.start()
        wait_until(world.leader, 20, "a server leads")
        world.await_standby()
        faults.start_work()
        upgrade(world, newer, options.old)
        faults.end_work()
        faults.check()
    print("passed")


if __name__ == "__main__":
    main()
