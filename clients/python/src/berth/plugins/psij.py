"""PSI/J on Berth: psij.JobExecutor.get_instance("berth").

A job of PSI/J is a job of Berth with a task on each of its nodes. `url` is the server; default BERTH_SERVER. States come from one
watch. Custom attributes "berth.FIELD" are fields of the manifest: {"berth.priority": 5}.
"""
from __future__ import annotations

import concurrent.futures
import re
import time
import uuid
from typing import Optional

import psij
import yaml

from berth import errors
from berth.client import Client
from berth.model import Group, Job, JobState, Resources, TaskAffinity
from berth.plugins._follow import Followed, shared
from berth.plugins._shell import quoted

STATES = {"Running": psij.JobState.ACTIVE, "Completing": psij.JobState.ACTIVE, "Succeeded": psij.JobState.COMPLETED,
          "Failed": psij.JobState.FAILED, "Cancelled": psij.JobState.CANCELED}
PREFIX = "berth."
GROUP = "node"


class BerthExecutor(psij.JobExecutor):  # type: ignore[misc]
    """Submits, cancels, lists and attaches. The launchers are "single" and "multiple"."""

    def __init__(self, url: Optional[str] = None, config: Optional[psij.JobExecutorConfig] = None) -> None:
        super().__init__(url=url, config=config or psij.JobExecutorConfig())
        self._followed = Followed(Client(url)) if url else shared()
        # What changes is told in order, by a thread that may ask the server.
        self._teller = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="berth-psij")

    def submit(self, job: psij.Job) -> None:
        """InvalidJobException for what cannot be done here, SubmitException for what the server refuses."""
        spec = self._check_job(job)
        try:
            made = berth_job(spec)
        except BaseException:
            job.executor = None
            raise
        job._native_id = made.name
        try:
            self._followed.submit(made, lambda state: self._changed(job, made.name, state))
        except errors.InvalidArgument as error:
            raise psij.InvalidJobException(str(error)) from error
        except errors.BerthError as error:
            raise psij.SubmitException(str(error), exception=error) from error
        self._teller.submit(self._set_job_status, job, psij.JobStatus(psij.JobState.QUEUED, time=time.time(),
                                                                      metadata={"nativeId": made.name}))

    def cancel(self, job: psij.Job) -> None:
        """Returns once the server has been told. A job that has ended stays as it is."""
        try:
            self._followed.cancel(job.native_id, "cancelled through PSI/J")
        except errors.BerthError as error:
            raise psij.SubmitException(str(error), exception=error) from error

    def list(self) -> list[str]:
        """All jobs that the server keeps."""
        return [job.name for job in self._followed.client.jobs()]

    def attach(self, job: psij.Job, native_id: str) -> None:
        """Follows a job that exists."""
        if job.status.state != psij.JobState.NEW:
            raise psij.InvalidJobException("Job must be in the NEW state")
        job.executor, job._native_id = self, native_id
        # Under a name of its own: the executor may follow the job already.
        follower = Followed(self._followed.client)
        try:
            follower.attach(native_id, lambda state: self._changed(job, native_id, state))
        except errors.NotFound as error:
            raise psij.InvalidJobException(str(error)) from error

    def _changed(self, job: psij.Job, name: str, state: JobState) -> None:
        """In the thread of the client."""
        told = STATES.get(str(state))
        if told is not None:
            self._teller.submit(self._tell, job, name, told)

    def _tell(self, job: psij.Job, name: str, state: psij.JobState) -> None:
        code, why = (self._end(name) if state.final else (None, ""))
        self._set_job_status(job, psij.JobStatus(state, time=time.time(), exit_code=code, message=why or None))

    def _end(self, name: str) -> tuple[Optional[int], str]:
        """Exit code and reason: that of a task that failed, else that of rank 0."""
        try:
            tasks = sorted(self._followed.client.tasks(job=name), key=lambda task: task.rank)
            codes = [task.exit_code for task in tasks if task.exit_code is not None]
            return next((code for code in codes if code), codes[0] if codes else None), self._followed.why(name)
        except errors.BerthError as error:
            return None, str(error)


def berth_job(spec: psij.JobSpec) -> Job:
    """The job for a specification."""
    resources, attributes = spec.resources, spec.attributes or psij.JobAttributes()
    if not isinstance(resources, psij.ResourceSpecV1):
        raise psij.InvalidJobException(f"resources of version {resources.version} are not known here")
    if not spec.executable:
        raise psij.InvalidJobException("the specification has no executable")
    if attributes.reservation_id:
        raise psij.InvalidJobException("reservation_id: Berth makes reservations by itself; leave it out")
    nodes, per_node = resources.computed_node_count, resources.computed_processes_per_node
    title = re.sub(r"[^a-z0-9]+", "-", (spec.name or "psij").lower()).strip("-")[:40] or "psij"
    group = Group(GROUP, replicas=nodes, command=["/bin/sh", "-c", script(spec, nodes, per_node)], resources=Resources(
        cpu=per_node * (resources.cpu_cores_per_process or 1), gpu=per_node * (resources.gpu_cores_per_process or 0) or None,
        memory=None if resources.memory is None else -(-resources.memory // nodes)))
    if spec.directory is not None:
        group.working_dir = str(spec.directory)
    if nodes > 1:
        group.affinity = TaskAffinity(apart_from_groups=[GROUP])
    if resources.exclusive_node_use:
        raise psij.InvalidJobException("exclusive_node_use: ask for all that a node has instead")
    job = Job(f"{title}-{uuid.uuid4().hex[:12]}", queue=attributes.queue_name or "", groups=[group],
              walltime=attributes.duration, labels={"account": attributes.account} if attributes.account else {})
    extra = {key[len(PREFIX):]: value for key, value in (attributes.custom_attributes or {}).items() if key.startswith(PREFIX)}
    if extra:
        try:
            job = Job.from_yaml(yaml.safe_dump({**yaml.safe_load(job.to_yaml()), **extra}))
        except errors.InvalidArgument as error:
            raise psij.InvalidJobException(f"custom attributes: {error}") from error
    return job


def script(spec: psij.JobSpec, nodes: int, per_node: int) -> str:
    """What runs on each node: the scripts before and after, and between them one or `per_node` processes."""
    launcher = spec.launcher or ("single" if nodes * per_node == 1 else "multiple")
    if launcher not in ("single", "multiple"):
        raise psij.InvalidJobException(f'launcher "{launcher}": here are "single" and "multiple"; each process knows RANK, '
                                       "WORLD_SIZE and MASTER_ADDR of its node")
    if launcher == "single" and nodes > 1:
        raise psij.InvalidJobException('launcher "single" runs one process: take "multiple" for several nodes')
    if nodes > 1 and (spec.pre_launch or spec.post_launch):
        raise psij.InvalidJobException("pre_launch and post_launch run on one node: leave them out for several nodes")
    command = quoted([str(spec.executable), *(spec.arguments or [])])
    variables = quoted([f"{name}={value}" for name, value in (spec.environment or {}).items()])
    if variables or not spec.inherit_environment:
        command = f"env {'' if spec.inherit_environment else '-i '}{variables} {command}"
    command += f" <{quoted([str(spec.stdin_path or '/dev/null')])}"
    for path, number in ((spec.stdout_path, 1), (spec.stderr_path, 2)):
        command += f" {number}>>{quoted([str(path)])}" if path is not None else ""
    count = per_node if launcher == "multiple" else 1
    lines = [f". {quoted([str(spec.pre_launch)])}"] if spec.pre_launch else []
    if count == 1 and not spec.post_launch:
        return "\n".join([*lines, f"exec {command}"])
    lines += [f"export _PSI_J_PROCESS_COUNT={count}", "pids=", f"for index in $(seq {count}); do",
              f"  _PSI_J_PROCESS_INDEX_=$index {command} &", '  pids="$pids $!"', "done",
              "code=0", "for pid in $pids; do wait $pid || code=$?; done"]
    return "\n".join([*lines, *([f". {quoted([str(spec.post_launch)])}"] if spec.post_launch else []), "exit $code"])
