"""Snakemake on Berth: snakemake --executor berth."""

import os
import re
import uuid
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Optional

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.settings import CommonSettings, ExecutorSettingsBase

import berth
from berth._hub import Tracked

LOGS = os.path.join(".snakemake", "berth_logs")


@dataclass
class ExecutorSettings(ExecutorSettingsBase):
    """Options --berth-..."""

    queue: Optional[str] = field(default=None, metadata={"help": "Queue of the jobs; default: the queue named default"})
    priority: Optional[int] = field(default=None, metadata={"help": "Priority of the jobs", "type": int})
    run_as: Optional[str] = field(default=None, metadata={"help": "User of the tasks on the nodes"})
    retries: Optional[int] = field(default=None, metadata={"help": "Starts after lost results of a node, by Berth itself",
                                                           "type": int})
    snakemake_mem_mb: Optional[int] = field(default=300, metadata={
        "help": "Memory of the Snakemake process in each job, which is added to mem_mb of the rule", "type": int})


common_settings = CommonSettings(non_local_exec=True, implies_no_shared_fs=False, job_deploy_sources=False,
                                 pass_default_storage_provider_args=True, pass_default_resources_args=True,
                                 pass_envvar_declarations_to_cmd=True, auto_deploy_default_storage_provider=False,
                                 init_seconds_before_status_checks=0)


class Executor(RemoteExecutor):  # type: ignore[misc]
    """Submits each job of the DAG, and follows all of them with one watch."""

    def __post_init__(self) -> None:
        self.options: ExecutorSettings = self.workflow.executor_settings or ExecutorSettings()
        self.client = berth.Client()
        self.run = uuid.uuid4().hex[:8]
        self.followed: dict[str, Tracked] = {}

    def run_job(self, job: Any) -> None:
        """Submits one job, or a group of jobs that run together."""
        script = self.get_jobscript(job)
        self.write_jobscript(job, script)
        wanted = self.job_of(job, script)
        self.followed[wanted.name] = self.client._loop.run(self.client._client._hub.expect(wanted.name))
        try:
            self.client.submit(wanted)
        except berth.BerthError as error:
            raise WorkflowError(f"Berth refused the job of {job}: {error}") from None
        self.report_job_submission(SubmittedJobInfo(job, external_jobid=wanted.name))

    def job_of(self, job: Any, script: str) -> berth.Job:
        """The job for a rule. Its command is a script, because Berth would replace $NAME in a command itself."""
        resources = job.resources
        rule = re.sub(r"[^a-z0-9]+", "-", str(job.name).lower()).strip("-")[:30] or "job"
        amounts = berth.R(cpu=max(int(job.threads), 1))
        if resources.get("mem_mb"):
            amounts.memory = (int(resources.get("mem_mb")) + int(self.options.snakemake_mem_mb or 0)) * 2**20
        if resources.get("disk_mb") and self.asks_for_scratch(job):
            amounts.scratch = int(resources.get("disk_mb")) * 2**20
        gpus = resources.get("gpu") or resources.get("gpus") or resources.get("nvidia_gpu")
        if gpus:
            amounts.gpu = int(gpus)
        group = berth.Group("rule", command=["/bin/sh", os.path.abspath(script)], working_dir=os.getcwd(), resources=amounts)
        priority = resources.get("berth_priority", self.options.priority)
        runtime = resources.get("runtime")
        return berth.Job(f"smk-{self.run}-{rule}-{uuid.uuid4().hex[:6]}", groups=[group], run_as=self.options.run_as or "",
                         queue=str(resources.get("berth_queue", self.options.queue) or ""), priority=int(priority or 0),
                         walltime=None if runtime is None else int(runtime) * 60, max_retries=self.options.retries or 0,
                         labels={"snakemake-run": self.run, "snakemake-rule": rule})

    @staticmethod
    def asks_for_scratch(job: Any) -> bool:
        """Snakemake sets disk_mb by default; only a rule that has its own value reserves scratch."""
        return bool(job.resources.get("berth_scratch"))

    async def check_active_jobs(self, active_jobs: list[SubmittedJobInfo]) -> AsyncGenerator[SubmittedJobInfo, None]:
        """Reports what the watch has seen. Nothing is asked."""
        for info in active_jobs:
            tracked = self.followed[info.external_jobid]
            if not tracked.ended.done():
                yield info
                continue
            self.followed.pop(info.external_jobid)
            error = tracked.ended.exception()
            state = None if error is not None else berth.JobState.from_pb(tracked.ended.result())
            if state == berth.JobState.SUCCEEDED:
                self.report_job_success(info)
            else:
                self.report_failure(info, str(error or state))

    def report_failure(self, info: SubmittedJobInfo, what: str) -> None:
        """With the output of the job in a file."""
        logs, why = [], ""
        try:
            job = self.client.get(info.external_jobid)
            why = job.status.message if job.status is not None else ""
            os.makedirs(LOGS, exist_ok=True)
            path = os.path.abspath(os.path.join(LOGS, f"{info.external_jobid}.log"))
            with open(path, "wb") as out:
                for part in self.client.logs(info.external_jobid):
                    out.write(part)
            logs.append(path)
        except berth.BerthError as error:
            why = why or str(error)
        self.report_job_error(info, msg=f"Berth job {info.external_jobid} {what.lower()}: {why}. ", aux_logs=logs)

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:
        """When the workflow is cancelled."""
        for info in active_jobs:
            try:
                self.client.cancel(info.external_jobid, reason="the workflow was cancelled")
            except berth.BerthError as error:
                self.logger.debug(f"{info.external_jobid}: {error}")

    def shutdown(self) -> None:
        """Ends the watch, too."""
        super().shutdown()
        self.client.close()
