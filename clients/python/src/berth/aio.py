"""The client for asyncio. `berth.Client` has the same methods, which block."""
from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Optional, Union

from berth import _values, errors
from berth._calls import PAGE
from berth._channels import Channels, new_request_id
from berth._cluster_calls import ClusterCalls
from berth._exec import ExecResult, execute
from berth._history_calls import HistoryCalls
from berth._hub import Hub, watch
from berth._log import LogLine, read_log
from berth._settings import TIMEOUT_S, Settings
from berth._submit import AnyJob, batches, job_pb
from berth.errors import Violation
from berth.model import Estimate, Event, Explanation, Job, JobState, Plan, Task
from berth.v1 import explain_pb2, job_pb2, watch_pb2

__all__ = ["Client", "ExecResult", "JobHandle", "LogLine"]

CLOSE_S = 0.02  # gRPC still ends the calls that were cancelled, for which it needs the event loop


class JobHandle:
    """A job on the server: its name and uid, and the calls about it.

    >>> handle = await client.submit(berth.Job(queue="research", groups=[berth.Group(command=["true"])]))
    >>> job = await handle.wait(timeout=60)
    >>> print(job.status.state)
    Succeeded
    """

    def __init__(self, client: Client, name: str, uid: int = 0) -> None:
        self._client, self.name, self.uid = client, name, uid

    def __repr__(self) -> str:
        return f"<job {self.name}>"

    async def get(self) -> Job:
        """The job as it is now; NotFound once it is deleted.

        >>> (await client.job("hello").get()).queue
        'research'
        """
        return await self._client.get(self.name)

    async def wait(self, timeout: Optional[float] = None, check: bool = True) -> Job:
        """Waits until the job has ended, and returns it. `timeout` in seconds; None: without end.

        Raises JobFailed if it did not succeed, unless `check` is false; DeadlineExceeded after the timeout; NotFound if it
        was deleted.

        >>> (await client.job("hello").wait(timeout=60)).name
        'hello'
        """
        return (await self._client.wait([self], timeout=timeout, check=check))[0]

    async def cancel(self, reason: str = "", force: bool = False) -> Job:
        """Cancels the job: see Client.cancel.

        >>> job = await client.job("pausing").cancel("an example")
        """
        return await self._client.cancel(self.name, reason=reason, force=force)

    async def events(self) -> AsyncIterator[Event]:
        """The changes of the job and its tasks from now on, until it has ended: see Client.watch.

        >>> handle = await client.submit(berth.Job(queue="research", groups=[berth.Group(command=["true"])]))
        >>> states = [str(event.job_state) async for event in handle.events()]
        >>> states[-1]
        'Succeeded'
        """
        async for event in self._client._events_of(self.name, self.uid):
            yield event

    async def logs(self, task: str = "", follow: bool = False, tail: int = 0) -> AsyncIterator[bytes]:
        """The output of a task: see Client.logs.

        >>> b"".join([part async for part in client.job("hello").logs()])
        b'hello\\n'
        """
        async for data in self._client.logs(self.name, task, follow=follow, tail=tail):
            yield data

    async def exec(self, command: Sequence[str], task: str = "", input: bytes = b"",
                   timeout: Optional[float] = None) -> ExecResult:
        """Runs a command inside a running task: see Client.exec.

        >>> (await client.job("sleeper").exec(["echo", "hi"])).stdout
        b'hi\\n'
        """
        return await self._client.exec(self.name, command, task=task, input=input, timeout=timeout)

    async def tasks(self) -> list[Task]:
        """The tasks of the job.

        >>> [task.group for task in await client.job("hello").tasks()]
        ['worker']
        """
        return [task async for task in self._client.tasks(job=self.name)]

    async def explain(self) -> Explanation:
        """Why the job waits: see Client.explain.

        >>> (await client.job("waiting").explain()).reasons[0].code
        <WaitReasonCode.NO_MATCHING_NODE: 'NoMatchingNode'>
        """
        return await self._client.explain(self.name)


class Client(ClusterCalls, HistoryCalls):
    """Calls to Berth. One client serves any number of callers of one event loop; close it at the end.

    `server`: "HOST:PORT", several with commas, or "unix:PATH"; default BERTH_SERVER, else 127.0.0.1:7070. `certificate`,
    `key` and `ca`: PEM files; default BERTH_TLS_CERTIFICATE, BERTH_TLS_KEY and BERTH_TLS_CA, else the certificate of `berth
    login` or of berth-authd (`auth_socket`, BERTH_AUTH_SOCKET). `timeout`: seconds for each call, retries included.

    Calls are retried while the server cannot be reached or is overloaded, over restarts and to another leader, and are done
    once. What fails raises a BerthError.

    >>> print((await client.cluster()).version.count("."))
    2
    """

    def __init__(self, server: Optional[str] = None, *, certificate: Optional[str] = None, key: Optional[str] = None,
                 ca: Optional[str] = None, auth_socket: Optional[str] = None, timeout: float = TIMEOUT_S) -> None:
        self._channels = Channels(Settings.of(server, certificate, key, ca, auth_socket, timeout))
        self._hub = Hub(self._channels, self._read)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the watch and the connections. Calls under way fail.

        >>> await berth.aio.Client("127.0.0.1:7070").close()
        """
        await self._hub.close()
        await self._channels.close()
        await asyncio.sleep(CLOSE_S)

    async def submit(self, job: AnyJob, *, request_id: str = "", on_behalf_of: str = "") -> JobHandle:
        """Submits one job, or a raw message of one. It is on the server's disk when this returns.

        `request_id`: at most 128 bytes; a repeat with the same id within 24 hours returns the first answer. Default: a
        random one, so that retries of this call submit once. `on_behalf_of`: the user who owns the job.

        Raises InvalidArgument with all violations, AlreadyExists for a name in use, Unimplemented, PermissionDenied.

        >>> (await client.submit(berth.Job("once", queue="research", groups=[berth.Group(command=["true"])]))).name
        'once'
        """
        return (await self.submit_many([job], request_id=request_id, on_behalf_of=on_behalf_of))[0]

    async def submit_many(self, jobs: Iterable[AnyJob], *, request_id: str = "",
                          on_behalf_of: str = "") -> list[JobHandle]:
        """Submits many jobs in their order, in requests of at most 1,000. Of each request, all jobs are accepted or none.

        With a `request_id`, the n-th request has the id "ID-n", so a repeat of the call with equal jobs submits nothing
        twice. A name may depend on a job of the same request only. Errors as of submit.

        >>> jobs = [berth.Job(queue="research", groups=[berth.Group(command=["true"])]) for _ in range(3)]
        >>> len(await client.submit_many(jobs))
        3
        """
        async def send(index: int, batch: job_pb2.SubmitJobsRequest) -> list[JobHandle]:
            batch.on_behalf_of = on_behalf_of
            batch.request_id = (request_id and (f"{request_id}-{index}" if index else request_id)) or new_request_id()
            answer = await self._call("JobService", "SubmitJobs", batch, job_pb2.SubmitJobsResponse)
            return [JobHandle(self, one.name, one.uid) for one in answer.jobs]

        handles: list[JobHandle] = []
        under_way: Optional[asyncio.Task[list[JobHandle]]] = None
        try:
            for index, batch in enumerate(batches(jobs)):  # the next is made while the server has the one before
                if under_way is not None:
                    handles += await under_way
                under_way = asyncio.ensure_future(send(index, batch))
                await asyncio.sleep(0)
            return handles + await under_way if under_way is not None else handles
        finally:
            if under_way is not None:
                under_way.cancel()

    async def check(self, jobs: Iterable[AnyJob]) -> list[Violation]:
        """What the server would refuse about these jobs; empty if it would accept them. Nothing is submitted.

        >>> await client.check([berth.Job(queue="no-such-queue", groups=[berth.Group(command=["true"])])])
        [Violation(field='jobs[0].spec.queue', description='there is no queue "no-such-queue"; ...')]
        """
        found: list[Violation] = []
        for batch in batches(jobs):
            batch.dry_run = True
            try:
                await self._call("JobService", "SubmitJobs", batch, job_pb2.SubmitJobsResponse)
            except (errors.InvalidArgument, errors.NotFound, errors.FailedPrecondition, errors.AlreadyExists,
                    errors.Unimplemented) as refused:
                found += refused.violations or (Violation("", refused.message),)
        return found

    def job(self, name: str) -> JobHandle:
        """The handle of a job by name. Nothing is called.

        >>> client.job("hello").name
        'hello'
        """
        return JobHandle(self, name)

    async def get(self, name: str) -> Job:
        """A job with its status; NotFound without one of this name.

        >>> print((await client.get("hello")).status.state)
        Succeeded
        """
        return Job.from_proto(await self._read(name))

    async def _read(self, name: str) -> job_pb2.Job:
        return await self._call("JobService", "GetJob", job_pb2.GetJobRequest(name=name), job_pb2.Job)

    async def jobs(self, *, queue: str = "", states: Sequence[Union[JobState, str]] = (),
                   labels: Optional[Mapping[str, str]] = None, user: str = "", owner: str = "", name: str = "", node: str = "",
                   series: str = "", active: bool = False, ended: bool = False, members: bool = True,
                   submitted_after: Union[datetime, str, None] = None, newest_first: bool = False) -> AsyncIterator[Job]:
        """Jobs in the order of submission, page by page; without command, env and annotations.

        All filters that are given must match. `queue`: with the queues below it. `name`: a pattern such as "train-*".
        `series`: made by this array or schedule. `members=False` leaves out jobs that arrays and schedules made. NotFound
        for a queue, node or series that does not exist.

        >>> [job.name async for job in client.jobs(queue="research", name="hel*")]
        ['hello']
        """
        numbers: Any = [JobState(state).number for state in states]
        filter = job_pb2.JobFilter(states=numbers, queue=queue, labels=dict(labels or {}), user=user, owner=owner,
                                   name_pattern=name, node=node, series=series, active_only=active, ended_only=ended,
                                   without_members=not members)
        if submitted_after is not None:
            filter.submitted_after.CopyFrom(_values.time_to_pb(_values.as_time(submitted_after)))
        order = job_pb2.ListJobsRequest.NEWEST_FIRST if newest_first else job_pb2.ListJobsRequest.OLDEST_FIRST
        request = job_pb2.ListJobsRequest(page_size=PAGE, filter=filter, order=order)
        async for page in self._pages("JobService", "ListJobs", request, job_pb2.ListJobsResponse):
            for job in page.jobs:
                yield Job.from_proto(job)

    async def history(self, *, queue: str = "", user: str = "",
                      submitted_after: Union[datetime, str, None] = None) -> AsyncIterator[Job]:
        """Jobs that have ended and that the server still keeps (`ttl_after_finished`), the newest first.

        >>> "hello" in [job.name async for job in client.history(queue="research")]
        True
        """
        async for job in self.jobs(queue=queue, user=user, ended=True, submitted_after=submitted_after, newest_first=True):
            yield job

    async def tasks(self, *, job: str = "", node: str = "") -> AsyncIterator[Task]:
        """The tasks of a job, or those that are on a node now; with both, the job's tasks on that node.

        >>> [print(task.state) async for task in client.tasks(job="hello")]
        Succeeded
        [None]
        """
        request = job_pb2.ListTasksRequest(job=job, node=node, page_size=PAGE)
        async for page in self._pages("JobService", "ListTasks", request, job_pb2.ListTasksResponse):
            for task in page.tasks:
                yield Task.from_proto(task)

    async def watch(self, *, jobs: Sequence[str] = (), all_jobs: bool = True, nodes: bool = False, queues: bool = False,
                    hyper_nodes: bool = False, revision: int = 0, incarnation: int = 0) -> AsyncIterator[Event]:
        """Every change, in order and without gaps, from now on or after a revision (with its incarnation: ClusterInfo).

        It goes on over broken connections, restarts of the server and other leaders. It never skips an event: OutOfRange if
        the server's log no longer has what comes next; then list again, and watch from now. `jobs`: only these.
        `all_jobs=False` without `jobs`: no jobs at all.

        >>> info = await client.cluster()
        >>> handle = await client.submit(berth.Job(queue="research", groups=[berth.Group(command=["true"])]))
        >>> async for event in client.watch(revision=info.revision, incarnation=info.incarnation):
        ...     if event.job == handle.name and event.type == "JobSubmitted":
        ...         break
        """
        request = watch_pb2.WatchRequest(from_revision=revision, incarnation=incarnation, jobs=jobs, nodes=nodes, queues=queues,
                                         hyper_nodes=hyper_nodes, no_jobs=not all_jobs and not jobs)
        async for response in watch(self._channels, request):
            for event in response.events:
                yield Event.from_proto(event)

    async def _events_of(self, name: str, uid: int) -> AsyncIterator[Event]:
        request, begun = watch_pb2.WatchRequest(jobs=[name]), False
        async for response in watch(self._channels, request):
            if not begun:  # what happened before is read
                begun = True
                job = await self._read(name)
                if job.status.state in (job_pb2.JOB_SUCCEEDED, job_pb2.JOB_FAILED, job_pb2.JOB_CANCELLED):
                    yield Event(type="JobChanged", job=name, job_uid=job.uid, job_state=JobState.from_pb(job.status.state),
                                message=job.status.message)
                    return
            for event in response.events:
                if uid and event.job_uid != uid:
                    continue
                yield Event.from_proto(event)
                if event.type == watch_pb2.ChangeEvent.JOB_DELETED or event.job_state in (
                        job_pb2.JOB_SUCCEEDED, job_pb2.JOB_FAILED, job_pb2.JOB_CANCELLED):
                    return

    async def wait(self, jobs: Iterable[Union[JobHandle, str]], *, timeout: Optional[float] = None, first: bool = False,
                   check: bool = True) -> list[Job]:
        """Waits until all jobs have ended, or with `first` one of them, and returns those that have, in their order.

        Nothing polls: all waits of the client share one watch. `timeout` in seconds; None: without end. Raises JobFailed
        if one of them did not succeed, unless `check` is false; DeadlineExceeded; NotFound.

        >>> [job.name for job in await client.wait(["hello"], timeout=60)]
        ['hello']
        """
        handles = [job if isinstance(job, JobHandle) else JobHandle(self, job) for job in jobs]
        tracked = []
        try:
            await self._hub.begin()
            limit = asyncio.Semaphore(32)

            async def track(handle: JobHandle) -> None:
                async with limit:
                    tracked.append(await self._hub.track(handle.name, handle.uid))

            await asyncio.gather(*(track(handle) for handle in handles))
            by_name = {one.name: one for one in tracked}
            ends = [by_name[handle.name].ended for handle in handles]
            when = asyncio.FIRST_COMPLETED if first else asyncio.ALL_COMPLETED
            _, left = await asyncio.wait(ends, timeout=timeout, return_when=when) if ends else (None, set())
            ended = [handle for handle, end in zip(handles, ends) if end.done()]
            if left and not (first and ended):
                unended = [handle.name for handle, end in zip(handles, ends) if not end.done()]
                raise errors.DeadlineExceeded(f"{len(unended)} jobs have not ended: {', '.join(unended[:10])}")
            return [await self._final(handle, by_name[handle.name].ended.result(), check) for handle in ended]
        finally:
            for one in tracked:
                self._hub.untrack(one)

    async def _final(self, handle: JobHandle, state: int, check: bool) -> Job:
        try:
            pb = await self._read(handle.name)
        except errors.NotFound:  # deleted already
            pb = job_pb2.Job(name=handle.name, uid=handle.uid)
        pb.status.state = state  # type: ignore[assignment]
        job = Job.from_proto(pb)
        if check and state != job_pb2.JOB_SUCCEEDED:
            why = pb.status.message or pb.status.cancel_reason
            raise errors.JobFailed(f"job {job.name} {str(JobState.from_pb(state)).lower()}: {why}", job)
        return job

    async def cancel(self, name: str, *, reason: str = "", force: bool = False) -> Job:
        """Cancels a job and returns it as it was. `force`: SIGKILL at once. FailedPrecondition once it has ended.

        >>> held = berth.Job(queue="research", suspended=True, groups=[berth.Group(command=["true"])])
        >>> handle = await client.submit(held)
        >>> job = await client.cancel(handle.name, reason="an example")
        """
        return await self._job_call("CancelJob", job_pb2.CancelJobRequest(name=name, reason=reason, force=force))

    async def suspend(self, name: str) -> Job:
        """Stops the tasks of a job, which stays until it is resumed.

        >>> job = await client.suspend("pausing")
        """
        return await self._job_call("SuspendJob", job_pb2.SuspendJobRequest(name=name))

    async def resume(self, name: str) -> Job:
        """Releases a job that is suspended or on hold.

        >>> job = await client.resume("pausing")
        """
        return await self._job_call("ResumeJob", job_pb2.ResumeJobRequest(name=name))

    async def delete(self, name: str) -> None:
        """Deletes a job that has ended; FailedPrecondition otherwise.

        >>> handle = await client.submit(berth.Job(queue="research", groups=[berth.Group(command=["true"])]))
        >>> job = await handle.wait(timeout=60)
        >>> await client.delete(handle.name)
        """
        await self._call("JobService", "DeleteJob", job_pb2.DeleteJobRequest(name=name), job_pb2.DeleteJobResponse,
                         gone_is_done=True)

    async def update(self, name: str, *, priority: Optional[int] = None, labels: Optional[Mapping[str, str]] = None,
                     walltime: Optional[_values.DurationLike] = None, no_walltime: bool = False, etag: str = "") -> Job:
        """Changes what is given: priority, all labels, or walltime. Aborted if `etag` is given and not the current one.

        >>> (await client.update("waiting", priority=5)).priority
        5
        """
        request = job_pb2.UpdateJobRequest(job=job_pb2.Job(name=name, etag=etag))
        spec, paths = request.job.spec, request.update_mask.paths
        if priority is not None:
            spec.priority = priority
            paths.append("spec.priority")
        if labels is not None:
            spec.labels.update(labels)
            paths.append("spec.labels")
        if walltime is not None or no_walltime:
            if walltime is not None:
                spec.walltime.CopyFrom(_values.duration_to_pb(_values.as_duration(walltime)))
            paths.append("spec.walltime")
        return await self._job_call("UpdateJob", request)

    async def _job_call(self, method: str, request: object) -> Job:
        return Job.from_proto(await self._call("JobService", method, request, job_pb2.Job))

    async def logs(self, name: str, task: str = "", *, follow: bool = False, tail: int = 0,
                   stream: str = "", attempt: int = 0) -> AsyncIterator[bytes]:
        """The output of a task ("GROUP-INDEX"; default: that of rank 0), in parts of at most 64 KiB.

        `follow`: until the task ends. It goes on at the same byte over broken connections. `tail`: only the last lines.
        `stream`: "stdout" or "stderr"; default both, as written. `attempt`: default the latest. NotFound,
        FailedPrecondition if the node has no output any more.

        >>> [part async for part in client.logs("hello")]
        [b'hello\\n']
        """
        async for line in self.log_parts(name, task, follow=follow, tail=tail, stream=stream, attempt=attempt):
            yield line.data

    async def log_parts(self, name: str, task: str = "", *, follow: bool = False, tail: int = 0, stream: str = "",
                        attempt: int = 0, times: bool = False) -> AsyncIterator[LogLine]:
        """As logs, with the stream of each part, and with `times` when it was written.

        >>> [(part.stream, part.data) async for part in client.log_parts("hello")]
        [('stdout', b'hello\\n')]
        """
        async for part in read_log(self._channels, name, task, follow, tail, stream, attempt, times):
            yield part

    async def exec(self, name: str, command: Sequence[str], *, task: str = "", input: bytes = b"",
                   timeout: Optional[float] = None) -> ExecResult:
        """Runs a command inside a running task and returns its output and exit code, once it has ended.

        `input`: its standard input. `timeout` in seconds; None: without end. At most 64 MiB of output are kept, then
        ResourceExhausted. FailedPrecondition unless the task runs. It is not repeated once the server has taken it.

        >>> await client.exec("sleeper", ["sh", "-c", "cat; exit 3"], input=b"hi")
        ExecResult(exit_code=3, stdout=b'hi', stderr=b'')
        """
        return await execute(self._channels, name, task, list(command), input, timeout)

    async def explain(self, name: str) -> Explanation:
        """Why a job waits, what would start it, and when it would start.

        >>> (await client.explain("waiting")).reasons[0].code
        <WaitReasonCode.NO_MATCHING_NODE: 'NoMatchingNode'>
        """
        answer = await self._call("ExplainService", "ExplainJob", explain_pb2.ExplainJobRequest(job=name),
                                  explain_pb2.ExplainJobResponse)
        return Explanation.from_proto(answer)

    async def plan(self, job: AnyJob) -> Plan:
        """Where a job would go if it were submitted now, and whom it would evict. Nothing is submitted.

        >>> (await client.plan(berth.Job(queue="research", groups=[berth.Group(command=["true"])]))).starts_now
        True
        """
        answer = await self._call("ExplainService", "PlanJob", explain_pb2.PlanJobRequest(job=job_pb(job)),
                                  explain_pb2.PlanJobResponse)
        return Plan.from_proto(answer)

    async def estimate(self, name: str) -> Estimate:
        """When a pending job would start. All is None if `unknown` says why there is no estimate.

        >>> (await client.estimate("waiting")).likely is None
        True
        """
        answer = await self._call("ExplainService", "EstimateJob", explain_pb2.EstimateJobRequest(job=name),
                                  explain_pb2.EstimateJobResponse)
        return Estimate.from_proto(answer)
