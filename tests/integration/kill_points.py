"""Named points at which a program kills itself (in kill_point.cc), and the load under which that happens.

A point is right before or right after a call of one kind: `server.wal.before_sync` is the moment before `berthd` syncs
a write-ahead log.

    switch = KillSwitch(cluster.home)
    switch.watch(cluster.server)              # before it is started
    switch.arm("server.wal.before_sync", 3)   # the third from now
"""
import collections
import dataclasses
import mmap
import random
import struct
import subprocess
import threading
import time

import grpc

from berth_api import Api, job_pb2, job_state, make_job, task_state
from berth_harness import SOURCE, wait_until


@dataclasses.dataclass(frozen=True)
class Call:
    program: str
    call: str
    inside: str = ""  # the path of the file contains this
    ends: str = ""    # the path ends with this
    most: int = 1     # kill at one of this many first calls
    starting: bool = False  # only while the program starts


CALLS = {
    "server.wal.write": Call("berthd", "write", "/data/", ".log", 60),
    "server.wal.sync": Call("berthd", "sync", "/data/", ".log", 40),
    "server.answer.send": Call("berthd", "send", most=100),
    "server.start.wal_sync": Call("berthd", "sync", "/data/", ".log", 1, True),
    "server.start.manifest_sync": Call("berthd", "sync", "/data/", "", 6, True),
    "server.start.manifest_write": Call("berthd", "write", "MANIFEST", "", 3, True),
    "server.start.rename": Call("berthd", "rename", "/data/", "", 2, True),
    "server.start.unlink": Call("berthd", "unlink", "/data/", "", 2, True),
    "agent.journal.write": Call("berth-agent", "write", "/journal", "", 20),
    "agent.journal.sync": Call("berth-agent", "sync", "/journal", "", 20),
    "agent.task.mkdir": Call("berth-agent", "mkdir", "/tasks/", "", 4),
    "agent.group.mkdir": Call("berth-agent", "mkdir", "/sys/fs/cgroup/", "", 8),
    "agent.spec.write": Call("berth-agent", "write", "/tasks/", "/spec", 4),
    "agent.supervisor.spawn": Call("berth-agent", "spawn", "supervisor", "", 4),
    "agent.report.send": Call("berth-agent", "send", most=30),
    "supervisor.status.write": Call("berth-supervisor", "write", "/tasks/", "/status.tmp", 6),
    "supervisor.status.rename": Call("berth-supervisor", "rename", "/tasks/", "/status", 6),
    "supervisor.task.fork": Call("berth-supervisor", "fork", most=4),
}


def points(program):
    """Every point of a program, by name."""
    names = []
    for name in CALLS:
        if name.startswith(program + "."):
            place, call = name.rsplit(".", 1)
            names += [f"{place}.before_{call}", f"{place}.after_{call}"]
    return names


def call_of(point):
    place, moment = point.rsplit(".", 1)
    when, call = moment.split("_", 1)
    return CALLS[f"{place}.{call}"], when == "after"


class KillSwitch:
    """The order that watched programs read; as in struct Order of kill_point.cc."""

    LAYOUT = struct.Struct("qq32s16s128s32s")

    def __init__(self, home, name="kill-point"):
        self.library, self.path = home / "kill_point.so", home / name
        if not self.library.exists():
            subprocess.run(["c++", "-std=c++20", "-shared", "-fPIC", "-O1", "-o", str(self.library),
                            str(SOURCE / "tests" / "integration" / "kill_point.cc"), "-ldl"], check=True)
        self.path.write_bytes(bytes(self.LAYOUT.size))
        with open(self.path, "r+b") as file:
            self.shared = mmap.mmap(file.fileno(), self.LAYOUT.size)

    def watch(self, program):
        program.environment = {"LD_PRELOAD": str(self.library), "KILL_POINT": str(self.path),
                               "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}  # for sanitized builds

    def arm(self, point, count):
        call, after = call_of(point)
        order = self.LAYOUT.pack(0, after, *(text.encode() for text in (call.program, call.call, call.inside, call.ends)))
        self.shared[8:] = order[8:]
        self.shared[:8] = struct.pack("q", count)

    def left(self):
        return struct.unpack("q", self.shared[:8])[0]

    def disarm(self):
        self.shared[:8] = struct.pack("q", 0)


NOTE_START = 'echo "$BERTH_JOB $BERTH_GROUP_INDEX $BERTH_ATTEMPT $TORCHELASTIC_RESTART_COUNT $$" >> "$STARTS"'
AGAIN_LATER = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED,
               grpc.StatusCode.RESOURCE_EXHAUSTED)


class Load(threading.Thread):
    """Gangs over two nodes, some of which fail once and restart, some of which are cancelled, and jobs that stay
    suspended. A call whose answer was lost is repeated with the same request id."""

    GANG = 4

    def __init__(self, cluster, seed, index=0, address=None):
        super().__init__(daemon=True)
        self.cluster, self.index, self.random = cluster, index, random.Random(seed)
        self.starts = cluster.shared_file(f"starts-{index}")
        self.api, self.stopping = Api(address or cluster.server.address), threading.Event()
        self.acked, self.cancelled, self.lost_answers, self.wrong = {}, set(), 0, []

    def make(self, name, kind):
        # Not before all have recorded their start: a rank that is stopped immediately may not record it.
        all_started = f'[ "$(grep -c "^$BERTH_JOB [0-9]* [0-9]* 0 " "$STARTS")" -ge {self.GANG} ]'
        fails = ('if [ "$TORCHELASTIC_RESTART_COUNT" = 0 ] && [ "$RANK" = 1 ]; then '
                 f'until {all_started}; do sleep 0.05; done; exit 3; fi; ') if kind == "fails" else ""
        rest = "sleep 20" if kind == "long" else f"sleep {self.random.choice([0, 0.05, 0.2])}"
        gang = kind != "single" and kind != "kept"
        job = make_job(name, "load", ["sh", "-c", f"{NOTE_START}; {fails}{rest}"], replicas=self.GANG if gang else 1,
                       cpu_millis=9000 if gang else 100, env={"STARTS": str(self.starts)}, suspended=kind == "kept",
                       max_retries=1000)
        job.spec.retry_backoff.FromMilliseconds(50)
        job.spec.kill_grace.FromMilliseconds(500)
        return job

    def call(self, method, request):
        """The answer, or None if the call was refused or the load stops."""
        while not self.stopping.is_set():
            try:
                return method(request, timeout=5)
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.FAILED_PRECONDITION and isinstance(request, job_pb2.CancelJobRequest):
                    return None  # the job had ended
                if error.code() not in AGAIN_LATER:
                    self.wrong.append(f"{type(request).__name__}: {error.code()} {error.details()}")
                    return None
                self.lost_answers += 1
                time.sleep(0.05)
        return None

    def round(self, number):
        kinds = [self.random.choice(["gang", "fails", "long", "single"]), "single", "kept"]
        jobs = [self.make(f"l{self.index}-{number}-{kind}-{i}", kind) for i, kind in enumerate(kinds)]
        request = job_pb2.SubmitJobsRequest(request_id=f"r-{self.index}-{number}", jobs=jobs)
        answer = self.call(self.api.jobs.SubmitJobs, request)
        if answer is None:
            return
        if [job.name for job in answer.jobs] != [job.name for job in jobs]:
            self.wrong.append(f"wrong jobs returned: {[job.name for job in answer.jobs]}")
        self.acked.update((job.name, kind) for job, kind in zip(jobs, kinds))
        if kinds[0] == "long":
            time.sleep(self.random.choice([0, 0.1, 0.5]))
            self.cancel(jobs[0].name)

    def cancel(self, name):
        if self.call(self.api.jobs.CancelJob, job_pb2.CancelJobRequest(name=name, reason="test")) is not None:
            self.cancelled.add(name)

    def backlog(self):
        waiting = self.call(lambda _, timeout: self.api.all_jobs(states=[
            job_pb2.JOB_PENDING, job_pb2.JOB_BINDING, job_pb2.JOB_RUNNING, job_pb2.JOB_RESTARTING]), None)
        return 0 if waiting is None else len(waiting)

    def run(self):
        number = 0
        while not self.stopping.is_set():
            number += 1
            self.round(number)
            while not self.stopping.is_set() and self.backlog() > 12:
                time.sleep(0.1)

    def stop(self):
        self.stopping.set()
        self.join()
        self.api.close()

    def start_lines(self):
        """(job, index, attempt) -> [(start number, pid)]."""
        lines = collections.defaultdict(list)
        for line in self.starts.read_text().splitlines():
            job, index, attempt, start, pid = line.split()
            lines[job, index, attempt].append((int(start), int(pid)))
        return lines

    def check(self, test, whole=True):
        """Checks the stopped load. `whole`: no agent was killed, so all ranks recorded each start of a gang."""
        test.assertEqual(self.wrong, [])
        stored = {job.name: job for job in self.cluster.api.all_jobs()}
        test.assertEqual(sorted(set(self.acked) - set(stored)), [], "acknowledged submits are missing")
        for name, kind in self.acked.items():
            if kind == "long" and name not in self.cancelled:  # its cancel was never acknowledged
                self.cluster.api.jobs.CancelJob(job_pb2.CancelJobRequest(name=name), timeout=10)
                self.cancelled.add(name)
        for name, kind in self.acked.items():
            if kind == "kept":
                test.assertIn(job_state(stored[name]), ("HELD", "SUSPENDED"))
            else:
                self.cluster.wait_job(name, "CANCELLED" if kind == "long" else "SUCCEEDED", timeout_s=120)
        starts = self.start_lines()
        test.assertEqual({key: pids for key, pids in starts.items() if len(pids) > 1}, {}, "an attempt started twice")
        self.check_gangs(test, starts, whole)
        return len(starts)

    def check_gangs(self, test, starts, whole):
        ranks = collections.defaultdict(set)
        for (job, index, _), entries in starts.items():
            ranks[job, entries[0][0]].add(index)
        for (job, start), seen in ranks.items():
            if whole and self.acked.get(job) in ("gang", "fails"):
                test.assertEqual(len(seen), self.GANG, f"start {start} of {job} was not of the whole gang")
        for job, kind in self.acked.items():
            if kind in ("gang", "fails"):
                last = max(start for name, start in ranks if name == job)
                test.assertEqual(len(ranks[job, last]), self.GANG, f"{job} succeeded without its whole gang")


class GangWatch(threading.Thread):
    """Checks running gangs: none of their tasks may be pending or in preparation."""

    WITHOUT = ("PENDING", "NOMINATED", "BOUND", "PREPARING", "PREPARED")

    def __init__(self, load):
        super().__init__(daemon=True)
        self.load, self.api, self.stopping = load, Api(load.cluster.server.address), threading.Event()
        self.looks, self.partial = 0, []

    def look(self):
        for job in self.api.all_jobs(states=[job_pb2.JOB_RUNNING]):
            states = [task_state(task) for task in self.api.tasks(job.name)]
            self.looks += 1
            if not any(state == "RUNNING" for state in states) or not any(state in self.WITHOUT for state in states):
                continue
            now = self.api.jobs.GetJob(job_pb2.GetJobRequest(name=job.name), timeout=5)
            if job_state(now) == "RUNNING" and now.status.start_count == job.status.start_count:
                self.partial.append(f"{job.name}: {states}")

    def run(self):
        while not self.stopping.is_set():
            try:
                self.look()
            except grpc.RpcError:
                pass
            time.sleep(0.05)

    def stop(self):
        self.stopping.set()
        self.join()
        self.api.close()


def wait_killed(program, switch, timeout_s):
    """Waits until the program has killed itself at the armed point."""
    wait_until(lambda: not program.running(), timeout_s, f"{program.name} reaches its point ({switch.left()} calls left)", 0.005)
