"""One Watch for everything in the process that waits for jobs.

    wait for a, b    track(a), track(b); once the watch has begun, each is read once; then its events decide

A wait asks for a state, so it loses nothing when a revision has aged out of the server's log: the watch begins anew, and
all jobs that somebody waits for are read again.
"""
from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Optional

from berth import errors
from berth._channels import Channels, is_retryable
from berth.v1 import job_pb2, watch_pb2

Read = Callable[[str], Awaitable[Any]]
ENDED = frozenset((job_pb2.JOB_SUCCEEDED, job_pb2.JOB_FAILED, job_pb2.JOB_CANCELLED))
IDLE_S = 60.0
READS_AT_ONCE = 32


async def watch(channels: Channels, request: Any, deadline: Optional[float] = None) -> AsyncIterator[Any]:
    """The responses of a watch, resumed after the last revision over broken connections, restarts and other leaders.

    Raises OutOfRange if the server no longer has that revision, and whatever else cannot be retried.
    """
    backoff = channels.backoff()
    loop = asyncio.get_running_loop()
    while True:
        error: Optional[errors.BerthError] = None
        left = None if deadline is None else max(deadline - loop.time(), 0.001)
        try:
            async for response in channels.stream("WatchService", "Watch", request, watch_pb2.WatchResponse, left):
                backoff.reset()
                request.from_revision, request.incarnation = response.revision, response.incarnation
                yield response
        except errors.BerthError as failed:
            if not is_retryable(failed):
                raise
            error = failed
        await channels.pause(backoff, error)  # a stream that ends cleanly: the server is shutting down


class Tracked:
    """A job that somebody waits for. `state` is the last one that is known; `ended` resolves to the final one."""

    __slots__ = ("changed", "ended", "expected", "name", "state", "uid")

    def __init__(self, name: str, uid: int) -> None:
        self.name, self.uid, self.state = name, uid, 0
        self.expected = False  # perhaps not submitted yet
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.changed: Optional[Callable[[int], None]] = None

    def see(self, state: int) -> None:
        """The job has this state now."""
        if self.ended.done() or state in (0, self.state):  # 0: something else about it changed
            return
        self.state = state
        if self.changed is not None:
            self.changed(state)
        if state in ENDED:
            self.ended.set_result(state)

    def gone(self) -> None:
        """The job was deleted."""
        if not self.ended.done():
            self.ended.set_exception(errors.NotFound(f'job "{self.name}" was deleted'))
            self.ended.exception()  # it need not be awaited


class Series:
    """The jobs of an array that somebody waits for.

    `see` gets the index and the state of each that has ended; `broken`: why the watch cannot go on.
    """

    def __init__(self, name: str, see: Callable[[int, int], None], broken: Callable[[errors.BerthError], None]) -> None:
        self.name, self.see, self.broken = name, see, broken


class Hub:
    """Belongs to one event loop."""

    def __init__(self, channels: Channels, read: Read) -> None:
        self._channels, self._read = channels, read
        self._tracked: dict[str, set[Tracked]] = {}
        self._series: dict[str, Series] = {}
        self._task: Optional[asyncio.Task[None]] = None
        self._begun: Optional[asyncio.Future[None]] = None

    async def begin(self) -> None:
        """Returns once the watch has begun: what changes from now on is seen."""
        if self._task is None or self._task.done():
            self._begun = asyncio.get_running_loop().create_future()
            self._task = asyncio.ensure_future(self._run())
        assert self._begun is not None
        await asyncio.shield(self._begun)

    async def close(self) -> None:
        """Ends the watch; those who wait get Unavailable."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._fail(errors.Unavailable("the client was closed"))

    async def track(self, name: str, uid: int = 0) -> Tracked:
        """Follows a job until `untrack`. NotFound if there is none."""
        one = Tracked(name, uid)
        self._tracked.setdefault(name, set()).add(one)
        try:
            await self.begin()
            await self._look(one, first=True)
        except BaseException:
            self.untrack(one)
            raise
        return one

    def untrack(self, one: Tracked) -> None:
        """Nobody waits for it any more."""
        found = self._tracked.get(one.name)
        if found is not None:
            found.discard(one)
            if not found:
                del self._tracked[one.name]

    async def follow(self, series: Series) -> None:
        """Follows the jobs of an array that is submitted after this, under a name that no job had."""
        self._series[series.name] = series
        await self.begin()

    async def expect(self, name: str) -> Tracked:
        """As track, for a job that is submitted after this, under a name that no job had."""
        one = Tracked(name, 0)
        one.expected = True
        self._tracked.setdefault(name, set()).add(one)
        await self.begin()
        return one

    def unfollow(self, name: str) -> None:
        """Nobody waits for the array any more."""
        self._series.pop(name, None)

    async def _look(self, one: Tracked, first: bool = False) -> None:
        try:
            job = await self._read(one.name)
        except errors.NotFound:
            if first and not one.uid:
                raise
            return None if one.expected else one.gone()
        if one.uid and job.uid != one.uid:
            return one.gone()
        one.uid = job.uid
        return one.see(job.status.state)

    async def _look_at_all(self) -> None:
        limit = asyncio.Semaphore(READS_AT_ONCE)

        async def look(one: Tracked) -> None:
            async with limit:
                await self._look(one)

        await asyncio.gather(*(look(one) for known in list(self._tracked.values()) for one in list(known)),
                             *(self._list(series) for series in list(self._series.values())))

    async def _list(self, series: Series) -> None:
        """Those that have ended; none yet if the array is still to be submitted."""
        request = job_pb2.ListJobsRequest(page_size=1000, filter=job_pb2.JobFilter(series=series.name, ended_only=True))
        while True:
            try:
                page = await self._channels.call("JobService", "ListJobs", request, job_pb2.ListJobsResponse)
            except errors.NotFound:
                return
            for job in page.jobs:
                series.see(job.status.member_of.index, job.status.state)
            request.page_token = page.next_page_token
            if not request.page_token:
                return

    async def _run(self) -> None:
        try:
            again = False
            while True:
                try:
                    return await self._follow(again)
                except errors.OutOfRange:
                    again = True
        except errors.BerthError as error:
            self._fail(error)

    def _fail(self, error: errors.BerthError) -> None:
        if self._begun is not None and not self._begun.done():
            self._begun.set_exception(error)
            self._begun.exception()
        for known in self._tracked.values():
            for one in known:
                if not one.ended.done():
                    one.ended.set_exception(error)
                    one.ended.exception()
        for series in list(self._series.values()):
            series.broken(error)

    async def _follow(self, again: bool) -> None:
        """One watch; returns when nobody has waited for a while."""
        loop = asyncio.get_running_loop()
        looking: Optional[asyncio.Future[None]] = None
        busy = loop.time()
        async for response in watch(self._channels, watch_pb2.WatchRequest()):
            if again:
                again = False
                looking = asyncio.ensure_future(self._look_at_all())
            if self._begun is not None and not self._begun.done():
                self._begun.set_result(None)
            if looking is not None and looking.done():
                looking.result()
                looking = None
            for event in response.events:
                known = self._tracked.get(event.job)
                if known:
                    self._see(known, event)
                elif self._series and event.job_state in ENDED and "." in event.job:
                    self._see_member(event)
            if self._tracked or self._series:
                busy = loop.time()
            elif loop.time() - busy > IDLE_S:
                return

    def _see_member(self, event: Any) -> None:
        name, _, index = event.job.rpartition(".")
        series = self._series.get(name)
        if series is not None and index.isdigit():
            series.see(int(index), event.job_state)

    @staticmethod
    def _see(known: set[Tracked], event: Any) -> None:
        for one in list(known):
            if one.uid and event.job_uid != one.uid:
                continue
            if event.type == watch_pb2.ChangeEvent.JOB_DELETED:
                one.gone()
            elif event.type == watch_pb2.ChangeEvent.JOB_CHANGED:
                one.see(event.job_state)
