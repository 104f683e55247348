"""Two servers and etcd, for ha_test.py, in a process of its own: the tests of the tree have other modules berth.v1.

Prints the addresses, then does a command for each line of its input: "handover", "kill", "end".
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ["BERTH_SOURCE"]) / "tests" / "integration"))

from berth_harness import BIN, wait_until
from ha_world import HaWorld


def hand_over(addresses):
    """Whether it was accepted."""
    command = [str(BIN / "berth"), "--server", addresses, "cluster", "handover"]
    return subprocess.run(command, capture_output=True, timeout=20).returncode == 0


def main():
    with HaWorld(servers=2) as world:
        addresses = ",".join(server.address for server in world.servers)
        world.cluster.add_agent("n1", server=addresses)
        print(addresses, flush=True)
        for line in sys.stdin:
            world.await_standby()
            before = world.leader()
            if line.strip() == "handover":
                wait_until(lambda: hand_over(addresses), 20, "handover")
                wait_until(lambda before=before: world.leader() not in (None, before), 30, "another leader")
            elif line.strip() == "kill":
                before.kill()
            else:
                return
            wait_until(world.leader, 30, "a leader")  # the one that was killed may lead again
            print("done", flush=True)


main()
