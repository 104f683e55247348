#!/usr/bin/env python3
"""A leader that is killed, stopped or handed over: another server takes over, and nothing acknowledged is lost."""
import signal
import time

import grpc

from berth_api import cluster_pb2, job_pb2
from berth_harness import wait_until
from ha_world import HaWorld, skip_without_etcd

skip_without_etcd()


def takeover(world, end, count):
    """Seconds from `end(leader)` to the first accepted submit after it."""
    world.await_standby()
    before = world.leader()
    world.client.submit(f"before-{count}")
    begin = time.monotonic()
    end(before)
    world.client.submit(f"after-{count}", timeout_s=20)
    elapsed = time.monotonic() - begin
    names = world.client.job_names()
    assert {f"before-{count}", f"after-{count}"} <= names, names
    return elapsed, before


def hand_over(api):
    """When it began; None while no other server can take over."""
    begin = time.monotonic()
    try:
        api.cluster.HandOver(cluster_pb2.HandOverRequest(), timeout=5)
        return begin
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.FAILED_PRECONDITION, error
        return None


with HaWorld() as world:
    # A standby answers what it may, names the leader, and shows its revision.
    leader, standby = world.leader(), world.standbys()[0]
    world.client.submit("first")
    stub = world.client.apis[standby.address]
    try:
        stub.jobs.GetJob(job_pb2.GetJobRequest(name="first"), timeout=5)
        raise AssertionError("a standby answered for the leader")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNAVAILABLE, error
        assert dict(error.trailing_metadata())["berth-leader"] == leader.address, error
    wait_until(lambda: stub.jobs.GetJob(job_pb2.GetJobRequest(name="first"), timeout=5,
                                        metadata=[("berth-stale", "allow")]).name == "first", 5, "a stale read")
    members = stub.cluster.ListMembers(cluster_pb2.ListMembersRequest(), timeout=5)
    print("members:", [(m.name, m.alive, m.leads, m.not_eligible) for m in members.members], "term", members.term)

    for count in range(5):
        elapsed, dead = takeover(world, lambda leader: leader.kill(), f"kill-{count}")
        print(f"killed: {elapsed:.3f} s to the next accepted submit")
        wait_until(dead.running, 10, "it is started again")
    for count in range(2):
        elapsed, stopped = takeover(world, lambda leader: leader.signal(signal.SIGSTOP), f"stop-{count}")
        print(f"stopped: {elapsed:.3f} s")
        restarts = stopped.restarts
        stopped.signal(signal.SIGCONT)
        wait_until(lambda: stopped.restarts > restarts, 10, "a deposed leader ends")
    for count in range(3):
        world.await_standby()
        wait_until(lambda: world.client.call("cluster", "ListMembers", cluster_pb2.ListMembersRequest()) and all(
            m.alive and not m.not_eligible for m in world.client.call(
                "cluster", "ListMembers", cluster_pb2.ListMembersRequest()).members), 15, "a successor is known")
        world.client.submit(f"handed-{count}")
        leader = world.leader()
        api = world.client.apis[leader.address]
        begin = wait_until(lambda: hand_over(api), 15, "the other can take over")
        world.client.submit(f"over-{count}")
        print(f"handed over: {time.monotonic() - begin:.3f} s")
        wait_until(lambda: leader.restarts > 0, 10, "it is started again")
    for count in range(2):  # SIGTERM is a handover, too, once the other is known to be ready
        world.await_standby()
        time.sleep(5)
        elapsed, stopped = takeover(world, lambda leader: leader.signal(signal.SIGTERM), f"terminate-{count}")
        assert "it led until now" not in stopped.output()
        print(f"terminated: {elapsed:.3f} s")
        wait_until(stopped.running, 10, "it is started again")
    for server in world.servers:
        assert "cannot lead" not in server.output(), server.output()
    world.await_standby()
print("passed")
