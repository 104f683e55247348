"""submitit on Berth: submitit.AutoExecutor(folder, cluster="berth").

A submission is a job, a batch is an array, and several tasks are a gang. Calls, results and logs are files in the folder, as
with submitit's other executors, so all nodes must share it, and have submitit and this package. States come from one watch.
"""
from __future__ import annotations

import os
import sys
import uuid
from pathlib import Path
from typing import Any, Optional

from submitit.core import core, job_environment, utils

from berth import _hub, errors
from berth.client import Client
from berth.model import Array, CheckpointPolicy, Group, Job, JobState, Policy, Resources

SAVED = 75
STATES = {"Pending": "PENDING", "Held": "PENDING", "Binding": "PENDING", "Running": "RUNNING", "Restarting": "REQUEUED",
          "Suspended": "PREEMPTED", "Completing": "COMPLETING", "Succeeded": "COMPLETED", "Failed": "FAILED",
          "Cancelled": "CANCELLED"}


def _berth_name(job_id: str) -> str:
    """The job of an id of submitit: "NAME_3" is element 3 of an array."""
    name, _, index = job_id.partition("_")
    return f"{name}.{index}" if index else name


class BerthInfoWatcher(core.InfoWatcher):  # type: ignore[misc]
    """Knows the states of all jobs from one watch, without asking."""

    def __init__(self, delay_s: int = 60) -> None:
        super().__init__(delay_s)
        self._client: Optional[Client] = None
        self._followed: dict[str, _hub.Tracked] = {}

    def client(self) -> Client:
        """Made when it is needed; BERTH_SERVER and the like."""
        if self._client is None:
            self._client = Client()
        return self._client

    def register_job(self, job_id: str) -> None:
        """Begins to follow a job, and its array."""
        super().register_job(job_id)
        for name in {_berth_name(job_id), job_id.partition("_")[0]}:
            if name not in self._followed:
                self._followed[name] = self.client()._loop.run(self._follow(name))

    async def _follow(self, name: str) -> _hub.Tracked:
        hub = self.client()._client._hub
        tracked = await hub.expect(name)
        await hub._look(tracked)  # it may have ended; an element of an array may not have been made yet
        return tracked

    def get_state(self, job_id: str, mode: str = "standard") -> str:
        """The state in Slurm's words, which submitit uses."""
        if job_id not in self._registered:
            self.register_job(job_id)
        state = JobState.from_pb(self._followed[_berth_name(job_id)].state)
        if state is not None:
            return STATES.get(str(state), "UNKNOWN")
        array = self._followed[job_id.partition("_")[0]]
        return "CANCELLED" if array.ended.done() else "PENDING"  # an element that was not made

    def get_info(self, job_id: str, mode: str = "force") -> dict[str, str]:
        """State and job."""
        return {"State": self.get_state(job_id), "JobID": _berth_name(job_id)}

    def update(self) -> None:
        """Nothing to ask for."""


class BerthJob(core.Job[Any]):  # type: ignore[misc]
    """A job of submitit that is a job of Berth."""

    watcher = BerthInfoWatcher()

    def cancel(self, check: bool = True) -> None:
        """Cancels the job; with `check`, an unknown one is an error."""
        try:
            self.watcher.client().cancel(_berth_name(self.job_id), reason="cancelled through submitit")
        except errors.FailedPrecondition:
            pass  # it has ended
        except errors.BerthError:
            if check:
                raise

    def exception(self) -> Any:
        """That of the task with the smallest id that raised. A task that ended without a result comes after those."""
        if not self._sub_jobs:
            return super().exception()
        self.wait()
        with_result = [job for job in self._sub_jobs if job.paths.result_pickle.exists()]
        without = [job for job in self._sub_jobs if job not in with_result]
        return next((error for job in [*with_result, *without] if (error := job.exception()) is not None), None)

    def results(self) -> list[Any]:
        """Of all tasks; raises as `exception` says."""
        self.wait()
        error = self.exception() if self._sub_jobs else None
        if error is not None:
            raise error
        found: list[Any] = super().results()
        return found

    def _interrupt(self) -> None:
        """As a preemption does: the checkpoint signal, and another start (for tests)."""
        client, name = self.watcher.client(), _berth_name(self.job_id)
        client.suspend(name)
        client.resume(name)


class BerthJobEnvironment(job_environment.JobEnvironment):  # type: ignore[misc]
    """What a task knows of itself."""

    _env = {"job_id": "BERTH_JOB", "num_tasks": "WORLD_SIZE", "num_nodes": "SUBMITIT_BERTH_NODES", "node": "NODE_RANK",
            "global_rank": "RANK", "local_rank": "LOCAL_RANK", "array_job_id": "BERTH_ARRAY_JOB",
            "array_task_id": "BERTH_ARRAY_INDEX"}

    def _requeue(self, countdown: int) -> None:
        """The exit code says that the work is saved; Berth starts the job again."""
        sys.exit(SAVED)


class BerthExecutor(core.PicklingExecutor):  # type: ignore[misc]
    """Parameters: submitit's shared ones, `berth_queue`, `berth_priority`, `berth_labels`, `berth_user`, `berth_max_parallel`."""

    job_class = BerthJob

    def __init__(self, folder: Any, max_num_timeout: int = 3, max_pickle_size_gb: float = 1.0,
                 python: Optional[str] = None) -> None:
        super().__init__(folder, max_num_timeout=max_num_timeout, max_pickle_size_gb=max_pickle_size_gb)
        self.python = sys.executable if python is None else python

    @classmethod
    def _valid_parameters(cls) -> set[str]:
        return {"queue", "priority", "labels", "user", "max_parallel", "signal_delay_s"}

    @classmethod
    def affinity(cls) -> int:
        """Chosen by AutoExecutor without `cluster` only where a server is named."""
        return 2 if os.environ.get("BERTH_SERVER") else 0

    def _internal_update_parameters(self, **kwargs: Any) -> None:
        unknown = set(kwargs) - self._valid_parameters() - {"name", "timeout_min", "mem_gb", "nodes", "cpus_per_task",
                                                            "gpus_per_node", "tasks_per_node", "stderr_to_stdout"}
        if unknown:
            raise ValueError(f"the executor for Berth has no parameters {', '.join(sorted(unknown))}; it has "
                             f"{', '.join(sorted(self._valid_parameters()))} and submitit's shared ones")
        super()._internal_update_parameters(**kwargs)

    def _num_tasks(self) -> int:
        return int(self.parameters.get("nodes", 1)) * int(self.parameters.get("tasks_per_node", 1))

    def _job(self, count: int) -> Job:
        values = self.parameters
        per_node = int(values.get("tasks_per_node", 1))
        memory, delay = values.get("mem_gb"), int(values.get("signal_delay_s", 30))
        gpus = int(values.get("gpus_per_node", 0)) / per_node
        if gpus != int(gpus):
            raise ValueError("gpus_per_node must be a multiple of tasks_per_node: each task gets its own GPUs")
        resources = Resources(cpu=values.get("cpus_per_task", 1), gpu=int(gpus) or None)
        if memory is not None:
            resources.memory = int(memory * 2**30 / per_node)
        group = Group("task", replicas=self._num_tasks(), resources=resources,
                      command=[self.python, "-u", "-m", "berth.plugins._submitit_task", str(self.folder)],
                      env={"SUBMITIT_EXECUTOR": "berth", "SUBMITIT_BERTH_NODES": str(values.get("nodes", 1)),
                           "SUBMITIT_STDERR_TO_STDOUT": "1" if values.get("stderr_to_stdout") else ""})
        for name in ("PYTHONPATH", "BERTH_SERVER"):
            if os.environ.get(name):
                group.env[name] = os.environ[name]
        walltime = int(float(values.get("timeout_min", 5)) * 60)
        title = "".join(c if c.isalnum() else "-" for c in str(values.get("name", "submitit")).lower()).strip("-")[:40]
        return Job(f"{title or 'submitit'}-{uuid.uuid4().hex[:12]}", queue=values.get("queue", ""), groups=[group],
                   priority=values.get("priority", 0), labels=dict(values.get("labels", {})), user=values.get("user", ""),
                   walltime=walltime, max_retries=self.max_num_timeout,
                   array=Array(size=count, parallelism=values.get("max_parallel", 0)) if count > 1 else None,
                   policies=[Policy(event="TaskFailed", action="Abort"), Policy(event="Timeout", action="RestartJob")],
                   checkpoint=CheckpointPolicy(signal=BerthJobEnvironment._usr_sig().name, grace=delay, saved_exit_codes=[SAVED],
                                               walltime_notice=min(delay, max(walltime - 1, 1))))

    def _make_submission_file_text(self, command: str, uid: str) -> str:
        raise NotImplementedError("jobs are submitted through the API, without a file")

    def _make_submission_command(self, submission_file_path: Path) -> list[str]:
        raise NotImplementedError("jobs are submitted through the API, without a command")

    @staticmethod
    def _get_job_id_from_submission_command(string: Any) -> str:
        raise NotImplementedError("jobs are submitted through the API, without a command")

    def _internal_process_submissions(self, delayed_submissions: Any) -> list[Any]:
        """One job, or one array for many; the pickles are there before the tasks."""
        wanted = self._job(len(delayed_submissions))
        ids = [f"{wanted.name}_{index}" if len(delayed_submissions) > 1 else wanted.name
               for index in range(len(delayed_submissions))]
        for job_id, delayed in zip(ids, delayed_submissions):
            delayed.set_timeout(self.parameters.get("timeout_min", 5), self.max_num_timeout)
            path = utils.JobPaths(self.folder, job_id).submitted_pickle
            path.parent.mkdir(parents=True, exist_ok=True)
            delayed.dump(path)
        size = sum(utils.JobPaths(self.folder, job_id).submitted_pickle.stat().st_size for job_id in ids)
        if size > self.max_pickle_size_gb * 2**30:
            raise RuntimeError(f"Submitting {size / 2**30:.2f} > {self.max_pickle_size_gb}GB of objects (function and arguments) "
                               "through pickle. If this is the intended behavior, update executor.max_pickle_size_gb")
        BerthJob.watcher.client().submit(wanted)
        tasks = list(range(self._num_tasks()))
        return [BerthJob(folder=self.folder, job_id=job_id, tasks=tasks) for job_id in ids]


def log_paths(folder: str) -> tuple[Path, Path]:
    """Of this task: standard output and standard error."""
    os.environ["SUBMITIT_FOLDER"] = folder
    paths = BerthJobEnvironment().paths
    paths.folder.mkdir(parents=True, exist_ok=True)
    return paths.stdout, paths.stdout if os.environ.get("SUBMITIT_STDERR_TO_STDOUT") else paths.stderr
