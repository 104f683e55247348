"""Calls about the usage history, for asyncio."""
from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Optional, Union

from berth import _values
from berth._calls import PAGE, Calls
from berth._usage import Capacity, Usage, UsageKey, UsageStep, key_number, step_number
from berth.model import CapacityRow, EndedJob, HistoryState, JobState, UsageRow
from berth.v1 import history_pb2


def _set_period(request: Any, since: Optional[_values.PastLike], until: Optional[_values.PastLike]) -> None:
    if since is not None:
        getattr(request, "from").CopyFrom(_values.time_to_pb(_values.as_past(since)))
    if until is not None:
        request.to.CopyFrom(_values.time_to_pb(_values.as_past(until)))


class HistoryCalls(Calls):
    """What is about used resources and jobs that have ended; a base of aio.Client."""

    async def usage(self, *, by: Sequence[UsageKey] = ("queue",), since: Optional[_values.PastLike] = None,
                    until: Optional[_values.PastLike] = None, step: UsageStep = "total", queue: str = "", depth: int = 0,
                    user: str = "", account: str = "") -> Usage:
        """Who used how much, from the event log: by queue, user, account, priority class and device model.

        `since` and `until`: a datetime, a text of RFC 3339, or how long ago ("30d", a timedelta); default: all that is known.
        `since` is rounded down to the step, and `until` up, in UTC; a total to the hour. "minute" is by queue only, and kept
        for a shorter time. `queue`: with the queues below it. `depth`: deeper queues count for theirs of this depth; 1: below
        the root. FailedPrecondition if the server keeps no history; ResourceExhausted for an answer that is too large.

        >>> usage = await client.usage(by=["queue", "user"], since="24h")
        >>> "research" in [row.queue for row in usage.rows]
        True
        """
        request = history_pb2.GetUsageRequest(step=step_number(step), by=[key_number(key) for key in by], queue_depth=depth,
                                              queue=queue, user=user, account=account, page_size=PAGE)
        _set_period(request, since, until)
        usage: Optional[Usage] = None
        async for page in self._pages("HistoryService", "GetUsage", request, history_pb2.GetUsageResponse):
            usage = usage or Usage(state=HistoryState.from_proto(page.state))
            usage.rows += [UsageRow.from_proto(row) for row in page.rows]
        return usage or Usage()

    async def capacity(self, *, since: Optional[_values.PastLike] = None, until: Optional[_values.PastLike] = None,
                       step: UsageStep = "total", by_model: bool = False) -> Capacity:
        """How the capacity of all nodes was used: held, reserved, free, fragmented, cordoned, down, unhealthy.

        `since`, `until` and `step` as of usage. `by_model`: a row for each device model, and one for everything else.
        FailedPrecondition, ResourceExhausted, PermissionDenied.

        >>> row = (await client.capacity(since="24h")).rows[0]
        >>> row.total.core_hours > 0
        True
        """
        request = history_pb2.GetCapacityRequest(step=step_number(step), by_model=by_model, page_size=PAGE)
        _set_period(request, since, until)
        capacity: Optional[Capacity] = None
        async for page in self._pages("HistoryService", "GetCapacity", request, history_pb2.GetCapacityResponse):
            capacity = capacity or Capacity(state=HistoryState.from_proto(page.state))
            capacity.rows += [CapacityRow.from_proto(row) for row in page.rows]
        return capacity or Capacity()

    async def ended_jobs(self, *, since: Optional[_values.PastLike] = None, until: Optional[_values.PastLike] = None,
                         queue: str = "", user: str = "", owner: str = "", account: str = "",
                         states: Sequence[Union[JobState, str]] = (), name: str = "",
                         uids: Sequence[int] = ()) -> AsyncIterator[EndedJob]:
        """Jobs that have ended, also those that the server has deleted; the one that ended last first, page by page.

        All filters that are given must match. `since` and `until`: of the end, as of usage. `queue`: with the queues below
        it. `name`: a pattern such as "train-*". `uids`: at most 1,000. FailedPrecondition if the server keeps no history.

        >>> "hello" in [job.name async for job in client.ended_jobs(queue="research", since="24h")]
        True
        """
        numbers: Any = [JobState(state).number for state in states]
        request = history_pb2.ListEndedJobsRequest(queue=queue, user=user, owner=owner, account=account, states=numbers,
                                                   name_pattern=name, uids=uids, page_size=PAGE)
        if since is not None:
            request.since.CopyFrom(_values.time_to_pb(_values.as_past(since)))
        if until is not None:
            request.until.CopyFrom(_values.time_to_pb(_values.as_past(until)))
        async for page in self._pages("HistoryService", "ListEndedJobs", request, history_pb2.ListEndedJobsResponse):
            for job in page.jobs:
                yield EndedJob.from_proto(job)
