"""TorchX on Berth: torchx run -s berth -cfg queue=research dist.ddp -j 2x8 --script train.py

Each role is a group of the job, each replica a task. All replicas start together.
"""
from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Optional

import torchx.schedulers.api as api
from torchx.specs import AppDef, AppDryRunInfo, AppState, ReplicaStatus, RetryPolicy, Role, RoleStatus, macros, runopts

from berth import errors
from berth.client import Client
from berth.model import EnvVar, Group, Job, JobState, Policy, Resources, TaskState, Volume
from berth.model import Task as BerthTask

SESSION = "torchx.pytorch.org/session"
STATES = {"Pending": AppState.PENDING, "Held": AppState.PENDING, "Binding": AppState.PENDING, "Running": AppState.RUNNING,
          "Restarting": AppState.PENDING, "Suspended": AppState.PENDING, "Completing": AppState.RUNNING,
          "Succeeded": AppState.SUCCEEDED, "Failed": AppState.FAILED, "Cancelled": AppState.CANCELLED}
TASKS = {"Running": AppState.RUNNING, "Releasing": AppState.RUNNING, "Lost": AppState.RUNNING, "Succeeded": AppState.SUCCEEDED,
         "Failed": AppState.FAILED}
RETRIES = {RetryPolicy.REPLICA: "RestartTask", RetryPolicy.APPLICATION: "RestartJob"}
ROLE_RETRY = "ROLE"


@dataclasses.dataclass
class BerthRequest:
    """What a dry run shows: the manifest."""

    job: Job

    def __str__(self) -> str:
        return self.job.to_yaml()


def dns_label(text: str) -> str:
    """As a name of a group or job."""
    return re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")[:63] or "role"


def app_state(state: Optional[JobState]) -> AppState:
    """Of a job."""
    return STATES.get(str(state), AppState.UNKNOWN)


def task_state(state: Optional[TaskState]) -> AppState:
    """Of a replica."""
    return TASKS.get(str(state), AppState.PENDING)


class BerthScheduler(api.Scheduler[Any]):  # type: ignore[misc]
    """Implements TorchX's interface with one client."""

    def __init__(self, session_name: str, client: Optional[Client] = None) -> None:
        super().__init__("berth", session_name)
        self._given = client

    @property
    def client(self) -> Client:
        """Made when it is needed; BERTH_SERVER and the like."""
        if self._given is None:
            self._given = Client()
        return self._given

    def close(self) -> None:
        """Ends the connection."""
        given, self._given = self._given, None
        if given is not None:
            given.close()

    def _run_opts(self) -> runopts:
        opts = runopts()
        opts.add("queue", type_=str, default=None, help="a leaf queue; default: the queue named default")
        opts.add("priority", type_=int, default=0, help="higher goes first")
        opts.add("priority_class", type_=str, default=None, help="a priority class, instead of priority")
        opts.add("walltime", type_=str, default=None, help='longest run, such as "12h"')
        opts.add("run_as", type_=str, default=None, help="user of its tasks on the nodes")
        opts.add("user", type_=str, default=None, help="the user for accounting")
        opts.add("working_dir", type_=str, default=None, help="of its tasks; default: a directory for each task")
        return opts

    def _submit_dryrun(self, app: AppDef, cfg: Any) -> AppDryRunInfo:
        if len({dns_label(role.name) for role in app.roles}) != len(app.roles):
            raise ValueError("two roles have the same name as a group of Berth: use letters, digits and '-'")
        retries = max((role.max_retries for role in app.roles), default=0)
        job = Job("", queue=cfg.get("queue") or "", priority=cfg.get("priority") or 0, walltime=cfg.get("walltime"),
                  priority_class=cfg.get("priority_class") or "", run_as=cfg.get("run_as") or "", user=cfg.get("user") or "",
                  max_retries=retries, groups=[self._group(role, cfg) for role in app.roles],
                  annotations={SESSION: self.session_name, "torchx.pytorch.org/app": app.name},
                  labels={"torchx": "true"})
        from torchx.schedulers.ids import make_unique
        job.name = dns_label(make_unique(dns_label(app.name)))
        for role, group in zip(app.roles, job.groups):
            group.command, group.env = self._filled(role, job.name)
        return AppDryRunInfo(BerthRequest(job), str)

    @staticmethod
    def _filled(role: Role, name: str) -> tuple[list[str], dict[str, Any]]:
        """Command and environment with TorchX's macros. A "$" stays one: Berth replaces $NAME, as a shell would."""
        values = macros.Values(img_root="", app_id=name, replica_id="${BERTH_GROUP_INDEX}", rank0_env="MASTER_ADDR")
        filled = values.apply(role)
        environment: dict[str, Any] = {**filled.env, "TORCHX_JOB_ID": f"berth://torchx/{name}"}
        return [filled.entrypoint, *filled.args], environment

    @staticmethod
    def _group(role: Role, cfg: Any) -> Group:
        resource = role.resource
        if role.min_replicas is not None and role.min_replicas != role.num_replicas:
            least: Optional[int] = role.min_replicas
        else:
            least = None
        group = Group(dns_label(role.name), replicas=role.num_replicas, min_available=least, working_dir=cfg.get("working_dir") or "",
                      resources=Resources(cpu=max(resource.cpu, 0) or None, gpu=max(resource.gpu, 0) or None,
                                          memory=resource.memMB * 2**20 if resource.memMB > 0 else None,
                                          extended={str(k): int(v) for k, v in resource.devices.items()}))
        if role.image and not role.image.startswith(("/", ".")):
            group.image = role.image
        elif role.image and not group.working_dir:
            group.working_dir = role.image  # a directory that all nodes share
        group.volumes = [_volume(mount) for mount in role.mounts]
        action = RETRIES.get(role.retry_policy, "RestartGroup" if role.retry_policy.name == ROLE_RETRY else "RestartJob")
        if role.max_retries:
            group.policies = [Policy(event="TaskFailed", action=action)]
        return group

    def schedule(self, dryrun_info: AppDryRunInfo) -> str:
        """Submits; the id is the name of the job."""
        return self.client.submit(dryrun_info.request.job).name

    def describe(self, app_id: str) -> Optional[api.DescribeAppResponse]:
        """None for a job that does not exist."""
        try:
            job = self.client.get(app_id)
            tasks = list(self.client.tasks(job=app_id))
        except errors.NotFound:
            return None
        status = job.status
        assert status is not None
        roles = [Role(group.name, image=group.image, num_replicas=group.replicas or 1, entrypoint=group.command[0],
                      args=group.command[1:], env={name: value.value if isinstance(value, EnvVar) else value
                                                   for name, value in group.env.items()}) for group in job.groups]
        return api.DescribeAppResponse(
            app_id=app_id, state=app_state(status.state), num_restarts=status.retries, msg=status.message or "",
            roles_statuses=[RoleStatus(group.name, [_replica(task) for task in tasks if task.group == group.name])
                            for group in job.groups], roles=roles)

    def list(self) -> list[api.ListAppResponse]:
        """All jobs that TorchX submitted and the server still keeps."""
        return [api.ListAppResponse(app_id=job.name, state=app_state(job.status.state if job.status else None))
                for job in self.client.jobs(labels={"torchx": "true"})]

    def _cancel_existing(self, app_id: str) -> None:
        try:
            self.client.cancel(app_id, reason="cancelled through TorchX")
        except errors.FailedPrecondition:
            pass  # it has ended

    def log_iter(self, app_id: str, role_name: str, k: int = 0, regex: Optional[str] = None, since: Optional[datetime] = None,
                 until: Optional[datetime] = None, should_tail: bool = False,
                 streams: Optional[api.Stream] = None) -> Iterable[str]:
        """Lines of a replica. `since` and `until` are the time of writing on the node, within 0.1 s."""
        stream = "" if streams in (None, api.Stream.COMBINED) else str(streams.value)
        lines = self._lines(app_id, f"{dns_label(role_name)}-{k}", should_tail, stream, since, until)
        return api.filter_regex(regex, lines) if regex else lines

    def _lines(self, app_id: str, task: str, follow: bool, stream: str, since: Optional[datetime],
               until: Optional[datetime]) -> Iterable[str]:
        left = b""
        timed = since is not None or until is not None
        for part in self.client.log_parts(app_id, task, follow=follow, stream=stream, times=timed):
            if part.time is not None and since is not None and part.time < since.astimezone():
                continue
            if part.time is not None and until is not None and part.time > until.astimezone():
                break
            *lines, left = (left + part.data).split(b"\n")
            for line in lines:
                yield line.decode("utf-8", "replace") + "\n"
        if left:
            yield left.decode("utf-8", "replace")


def _replica(task: BerthTask) -> ReplicaStatus:
    return ReplicaStatus(id=task.index, state=task_state(task.state), role=task.group, hostname=task.node)


def _volume(mount: Any) -> Volume:
    """A bind mount; other kinds are refused."""
    if type(mount).__name__ != "BindMount":
        raise ValueError(f"Berth has no mounts of type {type(mount).__name__}: use a bind mount of a directory of the nodes")
    return Volume(path=mount.dst_path, host_path=mount.src_path, read_only=mount.read_only)


def create_scheduler(session_name: str, **options: Any) -> BerthScheduler:
    """TorchX's entry point."""
    return BerthScheduler(session_name, options.get("client"))
