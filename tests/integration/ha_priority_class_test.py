#!/usr/bin/env python3
"""Priority classes with high availability: a standby has them, and so has the server that takes over."""
import subprocess

from berth_harness import BIN, wait_until
from ha_world import HaWorld, skip_without_etcd

skip_without_etcd()

CLASSES = """
apiVersion: berth/v1
kind: PriorityClass
name: high
value: 1000
---
apiVersion: berth/v1
kind: Queue
name: q
"""


def berth(server, *arguments, stdin=None):
    return subprocess.run([str(BIN / "berth"), "--server", server.address, *arguments], capture_output=True, text=True,
                          input=stdin, timeout=60)


def succeed(server, *arguments, stdin=None):
    result = berth(server, *arguments, stdin=stdin)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


with HaWorld() as world:
    world.await_standby()
    leader, standby = world.leader(), world.standbys()[0]
    assert "priority-class/high created" in succeed(leader, "apply", "-f", "-", stdin=CLASSES)
    wait_until(lambda: "high" in berth(standby, "--stale", "priority-class", "list").stdout, 10, "the standby has it")
    succeed(leader, "submit", "--name", "before", "--queue", "q", "--priority-class", "high", "--", "true")
    leader.halt()
    successor = wait_until(lambda: world.leader() if world.leader() is not leader else None, 20, "a new leader")
    assert "high" in succeed(successor, "priority-class", "list")
    assert "1000 (class high)" in succeed(successor, "job", "describe", "before")
    succeed(successor, "submit", "--name", "after", "--queue", "q", "--priority-class", "high", "--", "true")
    succeed(successor, "priority-class", "delete", "high")
    assert "1000 (class high)" in succeed(successor, "job", "describe", "after")
print("ok")
