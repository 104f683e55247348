"""Agents and tasks for ha_faults.py. Tasks note each of their starts, and hold a lock for as long as any of their
processes lives: two attempts of a task that ran at the same time are found, as is an attempt that started twice.
"""
import collections
import random
import signal
import threading
import time

from berth_api import job_pb2, job_state
from berth_harness import wait_until
from ha_world import HaClient
from relay import Relay

LEASE_S = 3
CONFIG = {"lease": f"{LEASE_S}s", "heartbeatInterval": "1s", "fenceMargin": "1s"}
UNDER_WAY = 8  # jobs
SCRIPT = """exec 9>>{home}/lock.$BERTH_JOB
flock -n 9 || echo $BERTH_JOB $BERTH_ATTEMPT >>{home}/twice
echo $BERTH_JOB $BERTH_ATTEMPT >>{home}/started
sleep {length:.2f}
"""


class Tasks(threading.Thread):
    def __init__(self, world, seed, agents=3):
        super().__init__(daemon=True)
        self.world, self.random = world, random.Random(seed)
        self.client = HaClient(world.servers)
        self.home = world.home / "tasks"
        self.home.mkdir()
        self.home.chmod(0o777)
        for name in ("twice", "started"):
            (self.home / name).touch()
            (self.home / name).chmod(0o666)
        self.relays = {f"n{i}": [Relay(server.port) for server in world.servers] for i in range(agents)}
        for name, relays in self.relays.items():
            world.cluster.add_agent(name, server=",".join(relay.address for relay in relays))
        self.ending, self.error, self.submitted, self.succeeded = threading.Event(), None, 0, 0
        self.open = []

    def run(self):
        try:
            while not self.ending.is_set() or self.open:
                if not self.ending.is_set() and len(self.open) < UNDER_WAY:
                    self.submit()
                self.open = [job for job in self.open if not self.has_ended(job)]
                time.sleep(0.05)
        except Exception as error:  # shown at the end
            self.error = error

    def submit(self):
        self.submitted += 1
        name = f"t-{self.submitted}"
        request = job_pb2.SubmitJobsRequest(request_id=name)
        job = request.jobs.add(name=name)
        job.spec.queue = "default"
        job.spec.kill_grace.seconds = 1
        script = SCRIPT.format(home=self.home, length=self.random.uniform(0.5, 8))
        job.spec.groups.add(name="w", replicas=1, command=["sh", "-c", script]).resources.cpu_millis = 1000
        self.client.call("jobs", "SubmitJobs", request)
        self.open.append(name)

    def has_ended(self, name):
        job = self.client.call("jobs", "GetJob", job_pb2.GetJobRequest(name=name))
        state = job_state(job)
        assert state not in ("FAILED", "CANCELLED"), job
        self.succeeded += state == "SUCCEEDED"
        return state == "SUCCEEDED"

    # ---- Faults. Those longer than the lease make the server fence the node.

    def length(self):
        return self.random.choice([self.random.uniform(0.1, 2), self.random.uniform(LEASE_S, 3 * LEASE_S)])

    def kill_agent(self):
        agent = self.world.cluster.agents[self.random.choice(list(self.relays))]
        agent.kill()
        time.sleep(self.random.uniform(0, 1))
        agent.start()

    def stop_agent(self):
        agent = self.world.cluster.agents[self.random.choice(list(self.relays))]
        agent.signal(signal.SIGSTOP)
        time.sleep(self.length())
        agent.signal(signal.SIGCONT)

    def cut_agent(self, one_way=False):
        relays = self.relays[self.random.choice(list(self.relays))]
        for relay in relays:
            if one_way:
                relay.to_agent.set()
            else:
                relay.cut()
        time.sleep(self.length())
        for relay in relays:
            relay.heal()

    def cut_agent_one_way(self):
        self.cut_agent(one_way=True)

    def finish(self, timeout_s=180):
        """Waits until all jobs have succeeded, and checks them. Returns a summary."""
        self.ending.set()
        wait_until(lambda: self.error is not None or not self.is_alive(), timeout_s,
                   "all tasks end")
        if self.error is not None:
            raise self.error
        twice = (self.home / "twice").read_text()
        assert twice == "", f"ran although another attempt of the task ran: {twice}"
        starts = collections.Counter((self.home / "started").read_text().splitlines())
        again = [start for start, count in starts.items() if count > 1]
        assert again == [], f"attempts that started twice: {again}"
        jobs = {start.split()[0] for start in starts}
        assert self.succeeded == self.submitted == len(jobs), (self.submitted, self.succeeded, len(jobs))
        return f"{self.submitted} tasks, {len(starts)} attempts, none twice"
