#!/usr/bin/env python3
"""Real servers, a real etcd and real agents under faults: kill -9 and SIGSTOP of each, cuts between servers and members
of etcd and between agents and servers, one way and both ways, slow links, slow disks of etcd, handovers, in any mix, while
clients submit, update and read jobs, and tasks run.

    tests/integration/ha_faults.py [--faults 1000] [--seed 1]

Checked at the end: every acknowledged submit is in the final state; the histories of what clients saw are linearizable;
no attempt of a task started twice, no two attempts ran at the same time, and all tasks ended well; no standby differed
from its leader; the log of each store verifies (berthd --fsck).
"""
import argparse
import collections
import pathlib
import random
import shutil
import signal
import subprocess
import threading
import time

import grpc

from berth_api import cluster_pb2, job_pb2
from berth_harness import BIN, take_ports, wait_until, Program, write_yaml
from ha_tasks import CONFIG, Tasks
from ha_world import HaClient, HaWorld, skip_without_etcd
from relay import Delays

OPERATIONS_PER_JOB = 8


def linearizable(history):
    """Whether an order of the operations explains the answers. history: (kind, value, begin, end or None)."""
    seen = set()

    def search(done, state):
        if (done, state) in seen:
            return False
        seen.add((done, state))
        rest = [i for i in range(len(history)) if not done >> i & 1]
        answered = [history[i][3] for i in rest if history[i][3] is not None]
        if not answered:
            return True
        first_end = min(answered)
        for i in rest:
            kind, value, begin, end = history[i]
            if begin > first_end:
                continue
            after = state
            if kind == "submit":
                after = 0 if state is None else state
            elif kind == "update":
                if end is not None and (value[1] != (state is not None)):
                    continue
                after = state if state is None else value[0]
            elif end is not None and value != state:
                continue
            if search(done | 1 << i, after):
                return True
        return False

    return search(0, None)


class Client(threading.Thread):
    """Works on jobs of its own; every second operation is on one of another client."""

    def __init__(self, faults, number):
        super().__init__(daemon=True)
        self.faults, self.number, self.random = faults, number, random.Random(faults.seed * 1000 + number)
        self.client = HaClient(faults.world.servers)
        self.jobs, self.operations, self.error = 0, 0, None

    def run(self):
        try:
            while not self.faults.ending.is_set():
                self.operate()
                time.sleep(self.random.uniform(0, 0.05))
        except Exception as error:  # shown at the end
            self.error = error

    def operate(self):
        histories = self.faults.histories
        with self.faults.lock:
            open_jobs = [j for j, h in histories.items() if len(h) < OPERATIONS_PER_JOB]
            if not open_jobs or self.random.random() < 0.3:
                self.jobs += 1
                job, kind = f"c{self.number}-{self.jobs}", "submit"
                histories[job] = []
            else:
                job, kind = self.random.choice(open_jobs), self.random.choice(["update", "get"])
            self.operations += 1
            value = self.operations * 100 + self.number
            entry = [kind, value, time.monotonic(), None]
            histories[job].append(entry)
        try:
            result = getattr(self, kind)(job, value)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.NOT_FOUND:
                entry[1] = (value, True) if kind == "update" else value
                if kind == "get":
                    with self.faults.lock:
                        histories[job].remove(entry)
                return  # no answer: it may have happened
            result = None
        entry[1] = {"submit": value, "update": (value, result is not None), "get": result}[kind]
        entry[3] = time.monotonic()
        self.faults.answers.append(entry[3])

    def submit(self, job, value):
        request = job_pb2.SubmitJobsRequest(request_id=f"s-{job}")
        new = request.jobs.add(name=job)
        new.spec.queue, new.spec.suspended = "default", True
        new.spec.groups.add(name="w", replicas=1, command=["true"]).resources.cpu_millis = 1000
        self.client.call("jobs", "SubmitJobs", request)
        return value

    def update(self, job, value):
        request = job_pb2.UpdateJobRequest()
        request.job.name = job
        request.job.spec.priority = value
        request.update_mask.paths.append("spec.priority")
        return self.client.call("jobs", "UpdateJob", request, once=f"u-{value}")

    def get(self, job, _):
        return self.client.call("jobs", "GetJob", job_pb2.GetJobRequest(name=job)).spec.priority


class Faults:
    def __init__(self, seed):
        self.seed, self.random = seed, random.Random(seed)
        self.lock, self.ending = threading.Lock(), threading.Event()
        self.histories, self.answers, self.counts = {}, [], collections.Counter()
        self.begun = []
        self.world = self.tasks = None
        self.optional = ["slow disk"] if shutil.which("strace") else []

    def one(self):
        world, rng = self.world, self.random
        server, etcd = rng.choice(world.servers), rng.choice(world.etcds)
        leader = world.leader() or server
        agents = {"kill agent": self.tasks.kill_agent, "stop agent": self.tasks.stop_agent,
                  "cut agent": self.tasks.cut_agent, "cut agent one way": self.tasks.cut_agent_one_way}
        kind = rng.choice(["kill leader", "kill server", "stop leader", "stop server", "kill etcd", "stop etcd", "cut",
                           "cut all", "cut one way", "slow", "handover", *agents, *self.optional])
        self.counts[kind] += 1
        self.begun.append((time.monotonic(), f"{kind} ({server.member}, {etcd.member}; {leader.member} leads)"))
        length = rng.choice([rng.uniform(0.05, 0.5), rng.uniform(0.5, 3.0)])
        if kind in ("kill leader", "kill server"):
            target = leader if kind == "kill leader" else server
            if target.running():
                target.signal(signal.SIGKILL)
            time.sleep(rng.uniform(0.1, 0.6))
        elif kind in ("stop leader", "stop server", "stop etcd"):
            target = {"stop leader": leader, "stop server": server, "stop etcd": etcd}[kind]
            process = target.process
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGSTOP)
                time.sleep(length)
                process.send_signal(signal.SIGCONT)
        elif kind == "kill etcd":
            if etcd.running():
                etcd.kill()
            time.sleep(length / 2)
            etcd.start()
        elif kind in agents:
            agents[kind]()
        elif kind == "slow disk":
            self.slow_disk(etcd, length)
        elif kind in ("cut", "cut all", "cut one way"):
            relays = [world.relays[server.member, etcd.member]] if kind == "cut" else [
                relay for (name, _), relay in world.relays.items() if name == server.member]
            direction = rng.choice(["to_server", "to_agent"])  # of all relays: the server hears, or is heard, no more
            for relay in relays:
                if kind == "cut one way":
                    getattr(relay, direction).set()
                else:
                    relay.cut()
            time.sleep(length)
            for relay in relays:
                relay.heal()
        elif kind == "slow":
            for (name, _), relay in world.relays.items():
                if name == server.member:
                    relay.fault = self.slow
            time.sleep(length)
            for relay in world.relays.values():
                relay.fault = None
        elif kind == "handover":
            try:
                world.client.apis[leader.address].cluster.HandOver(cluster_pb2.HandOverRequest(), timeout=3,
                                                                   wait_for_ready=False)
            except grpc.RpcError:
                pass  # it does not lead any more, or there is no successor
        time.sleep(rng.uniform(0, 0.3))

    @staticmethod
    def slow_disk(etcd, length):
        """Each sync of the member's disk takes 3 s for a while."""
        process = etcd.process
        if process is None or process.poll() is not None:
            return
        slow = subprocess.Popen(["strace", "-f", "-p", str(process.pid), "-e", "trace=fdatasync", "-e",
                                 "inject=fdatasync:delay_enter=3000000", "-o", "/dev/null"], stderr=subprocess.DEVNULL)
        time.sleep(length + 3)
        slow.terminate()
        slow.wait()

    def start_work(self):
        self.tasks = Tasks(self.world, self.seed)
        self.clients = [Client(self, number) for number in range(4)]
        for worker in (self.tasks, *self.clients):
            worker.start()

    def run(self, count):
        self.slow = Delays(self.seed)
        for i in range(count):
            self.one()
            if i % 100 == 99:
                print(f"{i + 1} faults, {len(self.answers)} answers", flush=True)

    def end_work(self):
        self.world.await_standby(60)
        time.sleep(3)
        self.ending.set()
        for client in self.clients:
            client.join(60)
            assert client.error is None, client.error
            assert not client.is_alive(), "a client got no answer although all faults are over"

    def check(self):
        world = self.world
        print(self.tasks.finish())
        names = world.client.job_names()
        answered = {job for job, history in self.histories.items()
                    if any(kind == "submit" and end is not None for kind, _, _, end in history)}
        assert answered <= names, f"acknowledged and lost: {sorted(answered - names)[:10]}"
        for job, history in self.histories.items():
            assert linearizable(history), (job, history)
        for server in world.servers:
            assert "cannot lead" not in server.output(), server.output()[-5000:]
        gaps = sorted(((b - a, a) for a, b in zip(self.answers, self.answers[1:])), reverse=True)
        print(f"{sum(self.counts.values())} faults {dict(self.counts)}; {len(self.histories)} jobs, "
              f"{len(self.answers)} answers, {sum(s.restarts for s in world.servers)} restarts; "
              f"longest time without any answer {gaps[0][0]:.2f} s")
        for length, at in gaps[:3]:
            print(f"  {length:.2f} s:", ", ".join(
                f"{begin - at:+.1f} s {what}" for begin, what in self.begun if at - 4 < begin < at + length))
        for server in world.servers:
            server.stop(30)
        logs = {}
        for server in world.servers:
            done = subprocess.run([str(BIN / "berthd"), "--fsck", str(server.data)], capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
            logs[server.member] = [line for line in done.stdout.splitlines() if "log" in line]
        print("fsck:", logs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    skip_without_etcd()
    faults = Faults(options.seed)
    with HaWorld(config=CONFIG, relays=True) as world:
        faults.world = world
        faults.start_work()
        faults.run(options.faults)
        faults.end_work()
        faults.check()
    print("passed")


if __name__ == "__main__":
    main()
