"""Airflow on Berth: a task that is a job.

    from berth.plugins.airflow import BerthOperator
    BerthOperator(task_id="train", job="train.yaml", deferrable=True)

Nothing polls: workers and the triggerer wait on one watch of their process. A deferred task holds no slot of a worker, and all of
a triggerer share one connection.
"""
from __future__ import annotations

import asyncio
import hashlib
import queue
import re
import weakref
from collections.abc import AsyncIterator, Sequence
from typing import Any, Optional, Union

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from berth import aio, errors
from berth.client import Client
from berth.model import Job, JobState
from berth.plugins._follow import ENDED, Followed

LOG_LINES = 1000  # of a deferred task, in the log of Airflow
_clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, aio.Client]] = weakref.WeakKeyDictionary()


def _shared(server: str) -> aio.Client:
    """That of the running event loop."""
    known = _clients.setdefault(asyncio.get_running_loop(), {})
    if server not in known:
        known[server] = aio.Client(server or None)
    return known[server]


class BerthTrigger(BaseTrigger):  # type: ignore[misc]
    """Fires when a job has ended. If a person ends the deferred task, it cancels the job."""

    def __init__(self, job: str, server: str = "", cancel: bool = True) -> None:
        super().__init__()
        self.job, self.server, self.cancel = job, server, cancel

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """What makes the same trigger in another process."""
        return "berth.plugins.airflow.BerthTrigger", {"job": self.job, "server": self.server, "cancel": self.cancel}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event, with the state of the job."""
        try:
            ended = (await _shared(self.server).wait([self.job], check=False))[0]
            status = ended.status
            assert status is not None
            yield TriggerEvent({"job": self.job, "state": str(status.state), "message": status.message or status.cancel_reason})
        except errors.BerthError as error:
            yield TriggerEvent({"job": self.job, "state": "", "message": str(error)})

    async def on_kill(self) -> None:
        """A person has marked the task or cleared it."""
        if self.cancel:
            try:
                await _shared(self.server).cancel(self.job, reason="its task in Airflow was ended")
            except (errors.FailedPrecondition, errors.NotFound):
                pass  # it has ended


class BerthOperator(BaseOperator):  # type: ignore[misc]
    """Submits a job, shows its output in the log of the task, and ends as it does. XCom: `job`, its name.

    `job`: a berth.Job, or a manifest as text or as the name of a .yaml file, with Jinja. Its name may be left out.
    `deferrable`: waits in the triggerer; then the log has the last 1,000 lines of output, when the job has ended.
    `server`: default BERTH_SERVER. `cancel_on_kill`: an ended task cancels its job; otherwise the job goes on.

    Each try of the task is a job of its own, and a repeated submit of one try submits once. A job that fails, fails the task.
    """

    template_fields: Sequence[str] = ("job", "server")
    template_ext: Sequence[str] = (".yaml", ".yml")
    ui_color = "#dfe9f5"

    def __init__(self, *, job: Union[Job, str], deferrable: bool = False, server: str = "", cancel_on_kill: bool = True,
                 **options: Any) -> None:
        super().__init__(**options)
        self.job, self.deferrable, self.server, self.cancel_on_kill = job, deferrable, server, cancel_on_kill
        self._running: Optional[str] = None

    def execute(self, context: Any) -> str:
        """Until the job has ended, or until it is deferred."""
        client = Client(self.server or None)
        try:
            job, key = self._named(context["ti"])
            try:
                self._running = client.submit(job, request_id=key).name
            except (errors.InvalidArgument, errors.PermissionDenied, errors.Unimplemented) as error:
                raise AirflowFailException(str(error)) from error  # another try would get the same answer
            context["ti"].xcom_push(key="job", value=self._running)
            self.log.info("submitted job %s", self._running)
            if self.deferrable:
                self.defer(trigger=BerthTrigger(self._running, self.server, self.cancel_on_kill), method_name="ended")
            return self._wait(client, self._running)
        finally:
            client.close()

    def _named(self, task: Any) -> tuple[Job, str]:
        """The job of this try, and the id of its request."""
        job = Job.from_yaml(self.job) if isinstance(self.job, str) else Job.from_proto(self.job.to_proto())
        key = "/".join(str(part) for part in (task.dag_id, task.task_id, task.run_id, task.map_index, task.try_number))
        digest = hashlib.sha256(key.encode()).hexdigest()[:12]
        base = job.name or re.sub(r"[^a-z0-9]+", "-", f"{task.dag_id}-{task.task_id}".lower()).strip("-")
        job.name = f"{base[:48].strip('-')}-{digest}"
        job.annotations = {**job.annotations, "airflow/dag": task.dag_id, "airflow/task": task.task_id, "airflow/run": task.run_id}
        return job, f"airflow-{hashlib.sha256(key.encode()).hexdigest()}"

    def _wait(self, client: Client, name: str) -> str:
        """With the output of each attempt as it comes."""
        states: queue.SimpleQueue[JobState] = queue.SimpleQueue()
        Followed(client).attach(name, states.put)
        shown = False
        while (state := states.get()) not in ENDED:
            if state == JobState.RUNNING:
                shown = True
                self._show(client, name, follow=True)
        if not shown:
            self._show(client, name)
        status = client.get(name).status
        assert status is not None
        return _verdict(name, str(state), status.message or status.cancel_reason)

    def _show(self, client: Client, name: str, follow: bool = False, tail: int = 0) -> None:
        try:
            for line in _lines(client.logs(name, follow=follow, tail=tail)):
                self.log.info(line)
        except errors.BerthError as error:  # such as a job that never ran
            self.log.info("no output: %s", error)

    def ended(self, context: Any, event: dict[str, str]) -> str:
        """After the trigger."""
        name = event["job"]
        if event["state"]:
            client = Client(self.server or None)
            try:
                self._show(client, name, tail=LOG_LINES)
            finally:
                client.close()
        return _verdict(name, event["state"], event["message"])

    def on_kill(self) -> None:
        """The task is being ended while it waits in a worker."""
        if self._running is not None and self.cancel_on_kill:
            client = Client(self.server or None)
            try:
                client.cancel(self._running, reason="its task in Airflow was ended")
            except (errors.FailedPrecondition, errors.NotFound):
                pass  # it has ended
            finally:
                client.close()


def _verdict(name: str, state: str, message: str) -> str:
    """The name of a job that succeeded."""
    if state != "Succeeded":
        raise AirflowException(f"job {name} {state.lower() or 'is not known any more'}: {message}")
    return name


def _lines(parts: Any) -> Any:
    """Whole lines of a log."""
    left = b""
    for part in parts:
        *lines, left = (left + part).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace")
    if left:
        yield left.decode("utf-8", "replace")
