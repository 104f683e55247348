"""Gangs that train with PyTorch (torch_gang/train.py), what happened to them, and whether that was right."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

from berth_api import job_pb2
from berth_harness import SOURCE, Cluster, wait_until
from relay import Relay

long = unittest.skipUnless(os.environ.get("CASES") == "all", "runs with CASES=all")
HAS_TORCH = subprocess.run([sys.executable, "-c", "import torch.distributed"], capture_output=True).returncode == 0
LEASE_S, MARGIN_S, GRACE_S, HEARTBEAT_S = 6, 1, 3, 1
CONFIG = {"lease": f"{LEASE_S}s", "heartbeatInterval": f"{HEARTBEAT_S}s", "fenceMargin": f"{MARGIN_S}s",
          "silentBrake": 1.0}  # with five nodes, one is a fifth of the cluster
STEPS, SAVE_EVERY, STEP_S, KILL_AT = 140, 25, 0.02, 60
MEMBERS, NODES = 4, 5
WITHIN_S = int(os.environ.get("WITHIN_S", "180"))  # importing torch in several processes takes long on a loaded machine

TRAIN = str(SOURCE / "tests" / "integration" / "torch_gang" / "train.py")
PYTHON = ["/usr/bin/python3", TRAIN]
# torch 1.13 writes the output of its workers only to files on Python 3.11, else it fails; --tee shows it too. Python's
# first process dies of a signal that it does not handle: it is ignored until train.py handles it.
TORCHRUN = ["env", "--ignore-signal=USR1", "torchrun", "--redirects=1", "--tee=1", "--max_restarts=5",
            "--monitor_interval=0.2", TRAIN]
MEETING = ("import os, signal; from torch.distributed import TCPStore; s = TCPStore('0.0.0.0', "
           "int(os.environ['MASTER_PORT']), None, True, wait_for_workers=False); signal.pause()")


class Records:
    """What the processes of one job wrote."""

    def __init__(self, directory):
        self.processes = []  # the lines of each process, in order of their start
        for file in directory.iterdir():
            lines = [json.loads(line) for line in file.read_text().split("\n")[:-1]]
            if lines:
                self.processes.append(lines)
        self.processes.sort(key=lambda lines: lines[0]["time"])

    def lines(self, what):
        return [line for process in self.processes for line in process if line["what"] == what]

    def newest_step(self):
        return max((line["step"] for line in self.lines("step")), default=0)

    def end(self):
        """(digest of the model, loss of the last step), on which all members agree."""
        digests = {line["digest"] for line in self.lines("end")}
        losses = {line["loss"] for line in self.lines("step") if line["step"] == STEPS}
        assert len(digests) == len(losses) == 1, f"members disagree at the end: {digests} {losses}"
        return digests.pop(), losses.pop()

    def repeated(self):
        """The most steps that any rank did more than once."""
        most = 0
        for rank in range(MEMBERS):
            steps = [line["step"] for line in self.lines("step") if line["rank"] == rank]
            most = max(most, len(steps) - len(set(steps)))
        return most

    def overlaps(self):
        """Pairs of processes that lived in the gang at one time and must not: of one rank, or of different worlds."""
        lives = []
        for lines in self.processes:
            if any(line["what"] == "meet" for line in lines):
                begin = next(line["time"] for line in lines if line["what"] == "meet")
                lives.append((begin, lines[-1]["time"], lines[0]))
        return [(one, other) for index, (begin, end, one) in enumerate(lives) for begun, ended, other in lives[:index]
                if begin < ended and begun < end and (one["rank"] == other["rank"] or one["world"] != other["world"])]

    def summary(self):
        starts = [f"{p[0]['task']}/{p[0]['attempt']} epoch {p[0]['epoch']} rank {p[0]['rank']} of {p[0]['world']}: "
                  f"{p[0]['time']:.1f} to {p[-1]['time']:.1f} s, {p[-1]['what']} {p[-1].get('step', '')}"
                  for p in self.processes]
        return "\n".join(starts)


@unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")
class AgentsForTraining(unittest.TestCase):
    """Five agents for all cases of a class; the network of the last can be cut."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(CONFIG)
        cls.failed = False
        cls.addClassCleanup(lambda: cls.cluster.__exit__(AssertionError if cls.failed else None, None, None))
        cls.cluster.server.start()
        cls.relay = Relay(cls.cluster.server.port)
        # torchrun tells its peers apart by host name and pid, and here all nodes are one host
        for number in range(1, NODES):
            cls.cluster.add_agent(f"n{number}", sharedPid=True)
        cls.cluster.add_agent(f"n{NODES}", server=cls.relay.address, sharedPid=True)  # its network can be cut
        cls.cluster.wait_nodes(NODES)

    def tearDown(self):
        result = self._outcome.result
        if any(case is self for case, _ in [*result.failures, *result.errors]):
            type(self).failed = True
            for job in self.cluster.api.all_jobs():
                self.describe(job.name)
        self.recover()

    def describe(self, name):
        print(f"--- {name}\n{self.cluster.run_berth('job', 'describe', name).stdout}", flush=True)
        print(self.cluster.run_berth("job", "logs", name, "--tail", "30").stdout[-6000:], flush=True)

    def recover(self):
        """All nodes serve the next case."""
        self.relay.heal()
        for agent in self.cluster.agents.values():
            if not agent.running():
                agent.start()
        for job in self.cluster.api.all_jobs():
            self.cluster.run_berth("job", "cancel", job.name, "--force")
        self.cluster.wait_nodes(NODES)


class TrainingGang(AgentsForTraining):
    """Gangs of four that need a node for each member, and their records."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.create_queue("q")
        cls.undisturbed = cls.run_undisturbed()

    def describe(self, name):
        super().describe(name)
        if (self.cluster.home / name).exists():
            print(self.records(name).summary(), flush=True)

    @classmethod
    def run_undisturbed(cls):
        cls.submit("undisturbed")
        cls.cluster.wait_job("undisturbed", "SUCCEEDED", timeout_s=WITHIN_S)
        return cls.records("undisturbed").end()

    @classmethod
    def submit(cls, name, command=None, groups=(), **spec):
        """`groups`: before the workers. `spec`: keys of the job; those of the workers are in `worker`."""
        home = cls.cluster.home / name
        for directory in (home, home / "records"):
            directory.mkdir()
            directory.chmod(0o777)
        environment = {"RECORDS": str(home / "records"), "CHECKPOINT": str(home / "checkpoint"), "STEPS": str(STEPS),
                       "STEP_S": str(STEP_S), "SAVE_EVERY": str(SAVE_EVERY)}
        worker = {"name": "w", "replicas": MEMBERS, "resources": {"cpu": 6}, "command": command or PYTHON,
                  "env": environment, **spec.pop("worker", {})}
        job = {"apiVersion": "berth/v1", "kind": "Job", "name": name, "queue": "q", "killGrace": f"{GRACE_S}s",
               "retryBackoff": "100ms", "maxRetries": 3, "groups": [*groups, worker], **spec}
        cls.cluster.berth("submit", cls.cluster.manifest(json.dumps(job), f"{name}.yaml"))

    @classmethod
    def records(cls, name):
        return Records(cls.cluster.home / name / "records")

    def wait_step(self, name, step=KILL_AT):
        wait_until(lambda: self.records(name).newest_step() >= step, WITHIN_S, f"{name} is at step {step}", 0.02)

    def task_of_rank(self, name, rank):
        """(task, node) that runs the process with this rank, which torchrun may have given."""
        line = [line for line in self.records(name).lines("step") if line["rank"] == rank][-1]
        return line["task"], line["node"]

    def pid(self, name, task):
        """The first process of the task, outside of its PID namespace."""
        for pid in self.cluster.task_pids(name):
            if f"BERTH_TASK={task}\0".encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes() + b"\0":
                return pid
        raise LookupError(f"{task} of {name} has no process")

    def kill_task(self, name, task):
        os.kill(self.pid(name, task), signal.SIGKILL)

    def kill_worker(self, name, task):
        """The process that torchrun started."""
        children = subprocess.run(["pgrep", "-P", str(self.pid(name, task)), "-f", "train.py"], capture_output=True,
                                  text=True, check=True).stdout.split()
        self.assertEqual(len(children), 1)
        os.kill(int(children[0]), signal.SIGKILL)

    def check(self, name, restarted, starts, retries, repeated=SAVE_EVERY + 2):
        """The job succeeds as if nothing had happened. `restarted`: the tasks with a second attempt, or "all"."""
        job = self.cluster.wait_job(name, "SUCCEEDED", "FAILED", timeout_s=WITHIN_S)
        records = self.records(name)
        said = f"{job.status.message}\n{records.summary()}"
        self.assertEqual(job_pb2.JobState.Name(job.status.state), "JOB_SUCCEEDED", said)
        tasks = {f"{task.group}-{task.index}": task.attempt for task in self.cluster.api.tasks(name)
                 if not task.group.endswith("-spares")}
        expected = {task: 2 if restarted == "all" or task in restarted else 1 for task in tasks}
        self.assertEqual(tasks, expected, said)
        self.assertEqual((job.status.start_count, job.status.retries), (starts, retries), said)
        self.assertEqual(records.overlaps(), [], said)
        self.assertEqual({line["world"] for line in records.lines("step")}, {MEMBERS}, said)
        self.assertEqual(records.end(), self.undisturbed, said)
        self.assertLessEqual(records.repeated(), repeated, said)
        print(f"{name}: {records.repeated()} steps twice, the rest of the run stood for {self.stall(records):.1f} s",
              flush=True)
        return records

    @staticmethod
    def stall(records):
        times = sorted(line["time"] for line in records.lines("step"))
        return max(after - before for before, after in zip(times, times[1:]))
