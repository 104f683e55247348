"""Commands inside running tasks."""
from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

import grpc

from berth import errors
from berth._channels import Channels, is_retryable
from berth.v1 import job_pb2

PART = 64 << 10
MAX_OUTPUT = 64 << 20
ATTEMPTS = 10


@dataclass(frozen=True)
class ExecResult:
    """How a command in a task ended: its exit code (128 + N: by signal N) and its output.

    >>> berth.ExecResult(0, b"8\\n", b"").exit_code
    0
    """

    exit_code: int
    stdout: bytes
    stderr: bytes


async def execute(channels: Channels, job: str, task: str, command: list[str], input: bytes,
                  timeout_s: Optional[float]) -> ExecResult:
    """Runs a command once: it is tried again only while no server has taken it."""
    async def run() -> ExecResult:
        backoff = channels.backoff()
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await _once(channels, job, task, command, input)
            except _NotTaken as refused:
                if attempt == ATTEMPTS or not is_retryable(refused.error):
                    raise refused.error from None
                await channels.pause(backoff, refused.error)
        raise AssertionError("unreachable")

    try:
        return await asyncio.wait_for(run(), timeout_s)
    except asyncio.TimeoutError:
        raise errors.DeadlineExceeded(f"the command in job {job} has not ended after {timeout_s} s") from None


class _NotTaken(Exception):
    """The command did not begin."""

    def __init__(self, status: grpc.RpcError) -> None:
        self.status, self.error = status, errors.from_rpc(status)
        super().__init__(str(self.error))


async def _once(channels: Channels, job: str, task: str, command: list[str], input: bytes) -> ExecResult:
    """One attempt, in a thread: with grpc.aio, a command that ends before its input was written would be an error."""
    channel, over = channels.blocking_channel(), threading.Event()
    call = channel.stream_stream("/berth.v1.JobService/Exec", request_serializer=job_pb2.ExecRequest.SerializeToString,
                                 response_deserializer=job_pb2.ExecResponse.FromString)(
        _requests(job, task, command, input, over))
    try:
        return await asyncio.get_running_loop().run_in_executor(None, _read, call, job)
    except _NotTaken as refused:
        channels.note(refused.status)
        raise
    finally:
        over.set()
        cancel: Any = call.cancel  # typed in some versions of the stubs only
        cancel()
        channel.close()


def _read(call: Any, job: str) -> ExecResult:
    taken, output, size = False, {job_pb2.STDOUT: bytearray(), job_pb2.STDERR: bytearray()}, 0
    try:
        for part in call:
            taken = True
            output[part.stream or job_pb2.STDOUT] += part.output
            size += len(part.output)
            if size > MAX_OUTPUT:
                raise errors.ResourceExhausted(f"the command wrote more than {MAX_OUTPUT >> 20} MiB: write to a file")
            if part.HasField("exit_code"):
                return ExecResult(part.exit_code, bytes(output[job_pb2.STDOUT]), bytes(output[job_pb2.STDERR]))
    except grpc.RpcError as broken:
        if taken:
            raise errors.from_rpc(broken) from None
        raise _NotTaken(broken) from None
    raise errors.Unavailable(f"the server ended the command in job {job}")


def _requests(job: str, task: str, command: list[str], input: bytes, over: threading.Event) -> Iterator[Any]:
    yield job_pb2.ExecRequest(open=job_pb2.ExecRequest.Open(job=job, task=task, command=command))
    for begin in range(0, len(input), PART):
        yield job_pb2.ExecRequest(input=input[begin:begin + PART])
    yield job_pb2.ExecRequest(input_end=True)
    over.wait()  # the command would end with the client's side
