#!/usr/bin/env python3
"""The real `berth` and `berth-agent` with the addresses of two servers: they go where the leader is, and on when it is
killed, stopped or hands over."""
import signal
import subprocess
import time

from berth_api import job_pb2, node_pb2
from berth_harness import BIN, wait_until
from ha_world import HaWorld, skip_without_etcd

LINES = 1200
JOB = f"""apiVersion: berth/v1
kind: Job
name: talker
queue: default
groups:
- name: w
  replicas: 1
  resources: {{cpu: 100m}}
  command: [sh, -c, 'i=0; while [ $i -lt {LINES} ]; do echo line $i; i=$((i+1)); sleep 0.01; done']
"""

skip_without_etcd()


class Clients:
    def __init__(self, world):
        self.world = world
        self.addresses = ",".join(server.address for server in world.servers)
        self.started = []

    def arguments(self, *arguments):
        return [str(BIN / "berth"), "--server", self.addresses, *arguments]

    def run(self, *arguments):
        result = subprocess.run(self.arguments(*arguments), capture_output=True, text=True, timeout=60)
        assert result.returncode == 0, (arguments, result)
        return result

    def start(self, name, *arguments):
        path = self.world.home / name
        with open(path, "wb") as output:
            process = subprocess.Popen(self.arguments(*arguments), stdout=output, stderr=subprocess.STDOUT)
        self.started.append(process)
        return process, path

    def kill(self):
        for process in self.started:
            process.kill()
            process.wait()


def hand_over(clients):
    return subprocess.run(clients.arguments("cluster", "handover"), capture_output=True, timeout=20).returncode == 0


def epoch(world):
    return world.client.call("nodes", "GetNode", node_pb2.GetNodeRequest(name="n1")).status.epoch


def change(world, clients, end, what):
    """Ends the leader, and returns it once the agent has registered with the other one."""
    world.await_standby()
    leader, before = world.leader(), epoch(world)
    begin = time.monotonic()
    end(leader)
    clients.run("submit", "--name", what, "--cpu", "1m", "--", "true")
    submitted = time.monotonic() - begin
    wait_until(lambda: epoch(world) > before, 20, "the agent registers", 0.02)
    print(f"{what}: {submitted:.2f} s to the next accepted submit, {time.monotonic() - begin:.2f} s to the agent")
    return leader


with HaWorld() as world:
    clients = Clients(world)
    try:
        world.cluster.add_agent("n1", server=clients.addresses)
        wait_until(lambda: "READY" in clients.run("node", "list").stdout.upper(), 20, "the node is ready")
        clients.run("submit", world.cluster.manifest(JOB))
        wait_until(lambda: "Running" in clients.run("job", "list").stdout, 20, "the job runs")
        log, log_path = clients.start("log", "job", "logs", "-f", "talker")
        wait, wait_path = clients.start("wait", "job", "wait", "talker")
        watch, watch_path = clients.start("watch", "job", "watch", "talker")

        # A standby answers with --stale, and says so.
        standby = world.standbys()[0]
        stale = subprocess.run([str(BIN / "berth"), "--server", f"{standby.address},{world.leader().address}", "--stale",
                                "job", "list"], capture_output=True, text=True, timeout=20)
        assert stale.returncode == 0 and "talker" in stale.stdout, stale
        assert f", from the standby {standby.address}\n" in stale.stderr, stale

        killed = change(world, clients, lambda leader: leader.kill(), "killed")
        wait_until(killed.running, 10, "it is started again")
        change(world, clients, lambda leader: wait_until(lambda: hand_over(clients), 15, "a successor is known"),
               "handed-over")
        stopped = change(world, clients, lambda leader: leader.signal(signal.SIGSTOP), "stopped")
        stopped.signal(signal.SIGCONT)

        for process, path in ((log, log_path), (wait, wait_path), (watch, watch_path)):
            assert process.wait(60) == 0, path.read_text()
        lines = [line for line in log_path.read_text().split("\n") if line]
        assert lines == [f"line {i}" for i in range(LINES)], (len(lines), lines[:3], lines[-3:])
        assert wait_path.read_text() == "job/talker Succeeded\n", wait_path.read_text()
        seen = watch_path.read_text().split("\n")
        assert len(seen) == len(set(seen)) and sum(line.endswith("job/talker  Succeeded") for line in seen) == 1, seen
        job = world.client.call("jobs", "GetJob", job_pb2.GetJobRequest(name="talker"))
        assert job.status.start_count == 1, job
        for name in ("killed", "handed-over", "stopped"):
            clients.run("job", "wait", name)
    except BaseException:
        for path in world.home.glob("*/agent.log"):
            print(path.read_text()[-4000:])
        raise
    finally:
        clients.kill()
print("passed")
