"""Runs in each task of a Ray cluster, with the node's Python. Needs Ray and nothing of this package.

    python -c SOURCE NODES OPTIONS [COMMAND...]

OPTIONS is JSON: options of `ray start`, and start_s. The task of rank 0 starts the head at MASTER_PORT. When all nodes are there
it runs the command with RAY_ADDRESS, and ends with its exit code. Without a command the cluster stays until the job is ended.
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

STEP_S = 0.3
END_S = 5  # a node would move its objects to others for 30 s, but the whole cluster ends
children: list[subprocess.Popen[bytes]] = []


def end(number, frame):
    """Passes a signal on; who waits for the children sees their end."""
    for child in children:
        if child.poll() is None:
            child.send_signal(number)
    signal.alarm(END_S)


def kill(number, frame):
    """What has not ended by now."""
    for child in children:
        if child.poll() is None:
            child.kill()


def own_address():
    """Of this node, as the other nodes reach it."""
    with open(os.environ["BERTH_HOSTFILE"]) as hosts:
        return hosts.read().split()[int(os.environ["NODE_RANK"])]


def start(options, head, place):
    """`ray start` in the foreground. Ports are free ones and directories their own, so that several nodes may share a host."""
    own, master = own_address(), f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats", "--log-style", "record",
               f"--node-ip-address={own}", f"--temp-dir={place}",
               "--min-worker-port=0", "--max-worker-port=0", "--dashboard-agent-listen-port=0"]
    if head:
        command += ["--head", f"--port={os.environ['MASTER_PORT']}", f"--ray-client-server-port={free_port()}"]
    else:
        command.append(f"--address={master}")
    for name, value in options.items():
        if head or (not name.startswith("dashboard") and name != "include-dashboard"):
            command.append(f"--{name}={value}")
    child = subprocess.Popen(command, env={**os.environ, "RAY_DISABLE_IMPORT_WARNING": "1"})
    children.append(child)
    return child


def free_port():
    """Ray refuses 0 for the port of its client server."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def wait_for_head(deadline, node=None):
    """Until something listens at the head's port; `node`: the head, if it is here."""
    while time.monotonic() < deadline:
        if node is not None and node.poll() is not None:
            sys.exit(f"the head ended with {node.returncode}")
        try:
            socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), 2).close()
            return
        except OSError:
            time.sleep(STEP_S)
    sys.exit(f"the head at {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']} does not answer")


def wait_for_nodes(count, node, address, deadline):
    """Until all nodes have registered."""
    import ray
    ray.init(address=address, log_to_driver=False, configure_logging=False, namespace="berth")
    try:
        while sum(one["Alive"] for one in ray.nodes()) < count:
            if node.poll() is not None:
                sys.exit(f"the head ended with {node.returncode}")
            if time.monotonic() > deadline:
                sys.exit(f"{sum(one['Alive'] for one in ray.nodes())} of {count} nodes have come")
            time.sleep(STEP_S)
    finally:
        ray.shutdown()


def run(command, node, address):
    """The exit code of the command; if the node ends before, the command is ended."""
    print(f"RAY_ADDRESS={address}", flush=True)
    if not command:
        return node.wait()
    child = subprocess.Popen(command, env={**os.environ, "RAY_ADDRESS": address})
    children.append(child)
    while child.poll() is None:
        if node.poll() is not None:
            child.terminate()
            return child.wait() or 1
        time.sleep(STEP_S)
    return child.returncode


def main(arguments):
    count, options, command = int(arguments[0]), json.loads(arguments[1]), arguments[2:]
    deadline = time.monotonic() + options.pop("start_s")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    signal.signal(signal.SIGALRM, kill)
    head = os.environ["RANK"] == "0"
    # Short: sockets are in it. Nodes that start together on one host would choose the same names in one directory.
    place = f"/tmp/ray-{os.environ['BERTH_JOB_UID']}-{os.environ['BERTH_EPOCH']}-{os.environ['RANK']}"
    address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    if not head:
        wait_for_head(deadline)
    node = start(options, head, place)
    try:
        if not head:
            return node.wait()
        wait_for_head(deadline, node)
        wait_for_nodes(count, node, address, deadline)
        code = run(command, node, address)
    finally:
        if node.poll() is None:
            end(signal.SIGTERM, None)
            node.wait()
        shutil.rmtree(place, ignore_errors=True)
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
