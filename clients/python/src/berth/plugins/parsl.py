"""Parsl on Berth: HighThroughputExecutor(provider=BerthProvider(queue="research", ...)).

A block is a job. It has a task on each of its nodes, all of which start together and run Parsl's command, so it needs no launcher.
"""
from __future__ import annotations

import copy
import uuid
from collections.abc import Sequence
from typing import Any, Optional

from parsl.jobs.states import JobState as ParslState
from parsl.jobs.states import JobStatus
from parsl.providers.base import ExecutionProvider
from parsl.providers.errors import SubmitException
from parsl.utils import RepresentationMixin

from berth import errors
from berth.model import Group, Job, Resources, TaskAffinity
from berth.plugins._follow import Followed, shared

STATES = {"Pending": ParslState.PENDING, "Held": ParslState.HELD, "Binding": ParslState.PENDING, "Running": ParslState.RUNNING,
          "Restarting": ParslState.PENDING, "Suspended": ParslState.HELD, "Completing": ParslState.RUNNING,
          "Succeeded": ParslState.COMPLETED, "Failed": ParslState.FAILED, "Cancelled": ParslState.CANCELLED}
GROUP = "node"


class BerthProvider(ExecutionProvider, RepresentationMixin):  # type: ignore[misc]
    """Blocks as jobs.

    `queue`: a leaf queue. `cores_per_node`, `mem_per_node` (GB) and `gpus_per_node`: of each node of a block. `walltime`: of a
    block, such as "1h". `worker_init`: lines of a shell before the command. `job`: a template for everything else: priority,
    labels, retries, and an image or volumes in its group. The other parameters are Parsl's own.
    """

    def __init__(self, queue: str = "", *, cores_per_node: int = 1, mem_per_node: Optional[float] = None, gpus_per_node: int = 0,
                 nodes_per_block: int = 1, init_blocks: int = 1, min_blocks: int = 0, max_blocks: int = 1, parallelism: float = 1,
                 walltime: Optional[str] = None, worker_init: str = "", job: Optional[Job] = None) -> None:
        self.queue, self.walltime, self.worker_init, self.job = queue, walltime, worker_init, job
        self.cores_per_node, self.mem_per_node, self.gpus_per_node = cores_per_node, mem_per_node, gpus_per_node
        self.nodes_per_block, self.init_blocks, self.min_blocks, self.max_blocks = nodes_per_block, init_blocks, min_blocks, max_blocks
        self.parallelism = parallelism
        self.script_dir = None
        self.resources: dict[object, Any] = {}
        self._followed: Optional[Followed] = None

    @property
    def label(self) -> str:
        """Of the provider."""
        return "berth"

    @property
    def status_polling_interval(self) -> int:
        """In seconds. It costs nothing: states are known from the watch."""
        return 1

    def submit(self, command: str, tasks_per_node: int, job_name: str = "parsl.auto") -> object:
        """The name of the job of a block."""
        wanted = self._job(command, tasks_per_node, job_name)
        if self._followed is None:
            self._followed = shared()
        try:
            self._followed.submit(wanted)
        except errors.BerthError as error:
            raise SubmitException(job_name, str(error)) from error
        self.resources[wanted.name] = {"job_id": wanted.name, "status": JobStatus(ParslState.PENDING)}
        return wanted.name

    def _job(self, command: str, tasks_per_node: int, job_name: str) -> Job:
        job = copy.deepcopy(self.job) if self.job is not None else Job()
        job.groups = job.groups or [Group(GROUP)]
        group = job.groups[0]
        title = "".join(c if c.isalnum() else "-" for c in job_name.lower()).strip("-")[:40] or "parsl"
        job.name, job.queue = f"{title}-{uuid.uuid4().hex[:12]}", self.queue or job.queue
        if self.walltime is not None:
            job.walltime = self.walltime
        group.replicas = self.nodes_per_block
        if self.nodes_per_block > 1:
            group.affinity = TaskAffinity(apart_from_groups=[group.name])
        group.resources = Resources(cpu=self.cores_per_node, gpu=self.gpus_per_node or None,
                                    memory=None if self.mem_per_node is None else int(self.mem_per_node * 2**30))
        group.env = {**group.env, "PARSL_CORES": str(self.cores_per_node)}
        if self.mem_per_node is not None:
            group.env["PARSL_MEMORY_GB"] = str(self.mem_per_node)
        group.command = ["/bin/bash", "-c", f"{self.worker_init}\n{_repeated(command, tasks_per_node)}"]
        return job

    def status(self, job_ids: Sequence[object]) -> Sequence[JobStatus]:
        """What the watch has shown; the reason of an end is asked for once."""
        return [self._status(str(name)) for name in job_ids]

    def _status(self, name: str) -> JobStatus:
        known: JobStatus = self.resources[name]["status"]
        if known.terminal or self._followed is None:
            return known
        try:
            state = self._followed.state(name)
        except errors.BerthError as error:  # the watch ended: nobody knows
            return JobStatus(ParslState.UNKNOWN, str(error))
        if state is None and self._followed.ended(name):
            now = JobStatus(ParslState.MISSING, "the job was deleted")
        else:
            now = JobStatus(STATES.get(str(state), ParslState.PENDING))
        if now.terminal:
            now = self._end(name, now)
            self._followed.forget(name)
        self.resources[name]["status"] = now
        return now

    def _end(self, name: str, now: JobStatus) -> JobStatus:
        assert self._followed is not None
        try:
            job = self._followed.client.get(name)
            codes = [task.exit_code for task in self._followed.client.tasks(job=name) if task.exit_code is not None]
        except errors.BerthError as error:
            return JobStatus(now.state, str(error))
        status = job.status
        assert status is not None
        ran_out = (job.walltime is not None and status.start_time is not None and status.end_time is not None
                   and status.end_time - status.start_time >= job.walltime)
        state = ParslState.TIMEOUT if now.state == ParslState.FAILED and ran_out else now.state
        return JobStatus(state, status.message or status.cancel_reason or None, max(codes, default=None))

    def cancel(self, job_ids: Sequence[object]) -> Sequence[bool]:
        """Whether each was still there to be cancelled."""
        done = []
        for name in job_ids:
            try:
                done.append(self._followed is not None and self._followed.cancel(str(name), "Parsl does not need it any more"))
            except errors.BerthError:
                done.append(False)
        return done


def _repeated(command: str, count: int) -> str:
    """A command so many times side by side; the code is that of one that failed."""
    if count == 1:
        return command
    started = f"for index in $(seq {count}); do ( {command} ) & pids=\"$pids $!\"; done"
    return f"pids=\n{started}\ncode=0\nfor pid in $pids; do wait $pid || code=$?; done\nexit $code"
