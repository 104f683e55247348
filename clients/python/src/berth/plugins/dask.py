"""Dask on Berth: workers as jobs, with the interface of dask-jobqueue.

    from berth.plugins.dask import BerthCluster
    cluster = BerthCluster(queue="research", cores=8, memory="32GB")
    cluster.adapt(maximum_jobs=20)

Each worker process group is a job. The scheduler runs here, so nodes must reach this machine. Workers run `python`, which has
the same versions of Dask; they need not have this package.
"""
from __future__ import annotations

import asyncio
import copy
import logging
import re
import shlex
import uuid
from collections.abc import Mapping
from typing import Any, Optional

import dask
import yaml
from dask_jobqueue import core
from distributed.core import Status

from berth.client import Client
from berth.model import Group, JobState, Resources
from berth.model import Job as BerthSpec
from berth.plugins._follow import ENDED, Followed, shared

logger = logging.getLogger(__name__)
DEFAULTS: dict[str, Any] = {
    "name": "dask-worker", "cores": None, "memory": None, "processes": None, "python": None, "interface": None,
    "death-timeout": 60, "local-directory": None, "shared-temp-directory": None, "extra": None,
    "worker-command": "distributed.cli.dask_worker", "worker-extra-args": [], "env-extra": None, "job-script-prologue": [],
    "job-extra": None, "job-extra-directives": {}, "job-directives-skip": [], "log-directory": None, "scheduler-options": {},
    "shebang": "#!/usr/bin/env bash", "queue": None, "walltime": None, "run-as": None, "gpus": 0}
dask.config.update_defaults({"jobqueue": {"berth": DEFAULTS}})


class BerthJob(core.Job):  # type: ignore[misc]
    """A job of Berth that runs workers. See BerthCluster."""

    config_name = "berth"

    def __init__(self, scheduler: Optional[str] = None, name: Optional[str] = None, queue: Optional[str] = None,
                 walltime: Any = None, run_as: Optional[str] = None, gpus: Optional[int] = None,
                 job: Optional[BerthSpec] = None, client: Optional[Client] = None, config_name: Optional[str] = None,
                 **options: Any) -> None:
        super().__init__(scheduler=scheduler, name=name, config_name=config_name, **options)
        if self.job_directives_skip:
            raise ValueError("job_directives_skip: a job of Berth has no directives; leave the field out instead")

        def setting(given: Any, key: str) -> Any:
            return given if given is not None else dask.config.get(f"jobqueue.{self.config_name}.{key}")

        self._client, self._template = client, job
        self._queue, self._walltime = setting(queue, "queue"), setting(walltime, "walltime")
        self._run_as, self._gpus = setting(run_as, "run-as"), int(setting(gpus, "gpus"))
        self._followed: Optional[Followed] = None
        self._closing = False
        self.job_header = self._header()

    def _header(self) -> str:
        """The extra fields as comments, and where the output goes."""
        lines = [f"# {key}: {value}" for key, value in self._extra().items()]
        if self.log_directory is not None:
            path = shlex.quote(f"{self.log_directory}/{self.job_name or 'worker'}")
            lines.append(f'exec >{path}-"$BERTH_JOB".out 2>{path}-"$BERTH_JOB".err')
        return "\n".join(lines)

    def _extra(self) -> dict[str, Any]:
        extra = self.job_extra_directives or {}
        if not isinstance(extra, Mapping):
            raise ValueError("job_extra_directives must be a dict of fields of a manifest, such as {'priority': 5}")
        return dict(extra)

    def spec(self) -> BerthSpec:
        """The job as it is submitted."""
        made = copy.deepcopy(self._template) if self._template is not None else BerthSpec()
        made.groups = made.groups or [Group("worker")]
        group = made.groups[0]
        shell = shlex.split(self.shebang[2:]) if self.shebang.startswith("#!") else ["/bin/sh"]
        group.command = [*shell, "-c", self.job_script()]
        if group.resources is None or group.resources == Resources():
            group.resources = Resources(cpu=self.worker_cores, memory=self.worker_memory, gpu=self._gpus or None)
        title = re.sub(r"[^a-z0-9]+", "-", f"{self.job_name or 'dask'}-{self.name}".lower()).strip("-")[:45]
        made.name = f"{title or 'dask'}-{uuid.uuid4().hex[:12]}"
        made.queue, made.run_as = self._queue or made.queue, self._run_as or made.run_as
        if self._walltime is not None:
            made.walltime = _walltime(self._walltime)
        if self._extra():
            made = BerthSpec.from_yaml(yaml.safe_dump({**yaml.safe_load(made.to_yaml()), **self._extra()}))
        return made

    async def start(self) -> None:
        """Submits the job. It waits for its place, and its workers register when they run."""
        loop, spec = asyncio.get_running_loop(), self.spec()
        followed = self._followed = Followed(self._client) if self._client is not None else shared()

        def changed(state: JobState) -> None:
            if state in ENDED:
                loop.call_soon_threadsafe(self._ended, state)

        self.job_id = await loop.run_in_executor(None, followed.submit, spec, changed)
        logger.debug("Starting job: %s", self.job_id)
        await core.ProcessInterface.start(self)

    def _ended(self, state: JobState) -> None:
        """In the loop of the cluster, which has learnt of lost workers from the scheduler: `adapt` and `scale` replace them."""
        if not self._closing and self._followed is not None and self.job_id is not None:
            asyncio.get_running_loop().run_in_executor(None, _warn, self._followed, self.job_id, str(self.name), state)
        self.status = Status.closed
        self._event_finished.set()

    async def close(self) -> None:
        """Cancels the job."""
        self._closing = True
        if self.job_id is not None and self._followed is not None:
            loop, followed = asyncio.get_running_loop(), self._followed
            await loop.run_in_executor(None, followed.cancel, self.job_id, "the Dask cluster does not need it any more")
            followed.forget(self.job_id)
        await core.ProcessInterface.close(self)


def _warn(followed: Followed, job: str, worker: str, state: JobState) -> None:
    logger.warning("job %s of Dask worker %s ended: %s %s", job, worker, str(state).lower(), followed.why(job))


def _walltime(value: Any) -> Any:
    """A duration; also as dask-jobqueue writes it, "HH:MM:SS" or "DAYS-HH:MM:SS"."""
    if not isinstance(value, str) or ":" not in value:
        return value
    days, _, clock = value.rpartition("-")
    parts = [int(part) for part in clock.split(":")]
    seconds = 0
    for part in parts + [0] * (3 - len(parts)):
        seconds = 60 * seconds + part
    return 86400 * int(days or 0) + seconds


class BerthCluster(core.JobQueueCluster):  # type: ignore[misc]  # noqa: D101 - it is composed
    __doc__ = f"""Workers of Dask as jobs of Berth.

    Parameters
    ----------
    queue : str
        A leaf queue; default: the queue named default.
    walltime : str
        Longest run of a job, such as "2h" or "02:00:00". Default: no end.
    run_as : str
        User of the workers on the nodes.
    gpus : int
        GPUs of a job. Default 0.
    job : berth.Job
        A template for everything else: priority, labels, retries, and an image or volumes in its group.
    client : berth.Client
        Default: berth.Client(), which reads BERTH_SERVER.
    {core.job_parameters}
    {core.cluster_parameters}
    job_extra_directives : dict
        Fields of the manifest of a job, such as {{"priority": 5}}.

    Examples
    --------
        cluster = BerthCluster(queue="research", cores=24, memory="500 GB", walltime="8h")
        cluster.scale(jobs=10)                # or cluster.adapt(maximum_jobs=20)
        client = distributed.Client(cluster)
    """
    job_cls = BerthJob

    @property
    def _dummy_job(self) -> BerthJob:
        """Raises what is wrong with a field when the cluster is made, and not for each worker."""
        job: BerthJob = super()._dummy_job
        job.spec()
        return job

    def manifest(self) -> str:
        """The manifest of a job of this cluster, as YAML."""
        return str(self._dummy_job.spec().to_yaml())
