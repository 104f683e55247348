"""Output of tasks."""
from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Optional

from berth import errors
from berth._channels import Channels, is_retryable
from berth._values import time_from_pb
from berth.v1 import job_pb2

_STREAMS = {"": job_pb2.LOG_STREAM_UNSPECIFIED, "stdout": job_pb2.STDOUT, "stderr": job_pb2.STDERR}


@dataclass(frozen=True)
class LogLine:
    """A part of the output of a task: of one stream ("stdout" or "stderr"), of one attempt, and when it was written.

    >>> berth.LogLine(b"step 1\\n", "stdout", 1).data
    b'step 1\\n'
    """

    data: bytes
    stream: str
    attempt: int
    time: Optional[datetime] = None


async def read_log(channels: Channels, job: str, task: str, follow: bool, tail: int, stream: str, attempt: int,
                   times: bool) -> AsyncIterator[LogLine]:
    """The output, resumed at the position reached over broken connections."""
    if stream not in _STREAMS:
        raise errors.InvalidArgument(f'stream: must be "stdout" or "stderr", is "{stream}"')
    request = job_pb2.ReadLogsRequest(job=job, task=task, follow=follow, tail_lines=tail, stream=_STREAMS[stream],
                                      attempt=attempt, times=times)
    backoff, resumable, failures = channels.backoff(), True, 0
    while True:
        try:
            async for part in channels.stream("JobService", "ReadLogs", request, job_pb2.ReadLogsResponse, None):
                backoff.reset()
                failures, resumable = 0, part.HasField("next")
                request.attempt = part.attempt
                getattr(request, "from").CopyFrom(part.next)
                request.tail_lines = 0
                if part.data:
                    yield LogLine(part.data, "stderr" if part.stream == job_pb2.STDERR else "stdout", part.attempt,
                                  time_from_pb(part.time) if part.HasField("time") else None)
            return
        except errors.BerthError as error:
            failures += 1
            if not is_retryable(error) or not resumable or (not follow and failures > 10):
                raise
            await channels.pause(backoff, error)
