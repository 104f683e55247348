"""Functions as jobs: a concurrent.futures.Executor."""
from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import copy
import itertools
import os
import pickle
import secrets
import struct
import sys
import time
import zlib
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Optional, TypeVar, Union

from berth import _checkpoint, _task, errors
from berth._checkpoint import Checkpointable, Requeue
from berth._hub import Series
from berth._values import DurationLike
from berth.client import Client
from berth.model import Array, CheckpointPolicy, Group, Job, JobState, Policy, Resources

__all__ = ["Checkpointable", "Executor", "Future", "Requeue"]

T = TypeVar("T")
Calls = Sequence[tuple[tuple[Any, ...], dict[str, Any]]]
MAX_PAYLOAD = 96 << 10  # of the arguments of a command: the kernel's limit is 128 KiB for one
FLUSH_S = 0.005  # submits within this time become one request
TIMEOUTS = 3  # starts after the end of a walltime
READERS = 8
MOST_TASKS = 400  # of a map that chooses its chunks, and without a limit on how many run at once
PER_SLOT = 4  # as multiprocessing.Pool.map divides
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


class Future(concurrent.futures.Future[T]):
    """The result of a call. `job` is the name of its job. It can be awaited, too.

    >>> future = berth.Future("job-1")
    >>> future.job, future.done()
    ('job-1', False)
    """

    def __init__(self, job: str, cancel: Optional[Callable[[Future[T]], None]] = None) -> None:
        super().__init__()
        self.job, self._cancel = job, cancel

    def cancel(self) -> bool:
        """Drops the call and cancels its job, also while it runs. False: it has ended.

        >>> berth.Future("job-1").cancel()
        True
        """
        cancelled = super().cancel()
        if cancelled and self._cancel is not None:
            cancel, self._cancel = self._cancel, None
            cancel(self)
        return cancelled

    def __await__(self) -> Any:
        return asyncio.wrap_future(self).__await__()


class _RemoteTraceback(Exception):
    """Shown as the cause of an exception that a function raised in its task."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def _settle(future: Future[Any], data: bytes) -> None:
    """One element's pickled result."""
    if not future.set_running_or_notify_cancel():
        return None
    try:
        good, value, text = pickle.loads(data)
    except Exception as error:
        return future.set_exception(error)
    if good is None:
        return future.set_exception(errors.JobFailed(f"job {future.job} left no result: {value}"))
    if good:
        return future.set_result(value)
    value.__cause__ = _RemoteTraceback(text)
    return future.set_exception(value)


def _fail(future: Future[Any], error: BaseException) -> None:
    if not future.done() and future.set_running_or_notify_cancel():
        future.set_exception(error)


class _Chunks:
    """The calls of one job or array, in chunks of one task each."""

    def __init__(self, name: str, function: Any, chunks: list[Calls], folder: Optional[Path], apart: bool = False) -> None:
        import cloudpickle
        self.name, self.count = name, len(chunks)
        self.apart = apart  # each call of a chunk in a process of its own
        self.checkpoints = callable(getattr(function, "checkpoint", None))
        self.futures: list[list[Future[Any]]] = []
        self.nonce = secrets.token_hex(8)
        self.place = folder / name if folder is not None else None
        pickled, calls = cloudpickle.dumps(function), [cloudpickle.dumps(list(chunk)) for chunk in chunks]
        if self.checkpoints and (folder is None or any(len(chunk) > 1 for chunk in chunks)):
            raise ValueError("a function with a checkpoint needs a folder, and chunks of one call")
        if self.place is not None and folder is not None:
            self._write(self.place, folder, pickled, calls)
            self.arguments = [str(self.place / "task.py"), VERSION, str(self.place)]
        else:
            payload = base64.b64encode(zlib.compress(pickle.dumps((pickled, calls)), 6)).decode()
            if len(payload) > MAX_PAYLOAD:
                raise ValueError(f"the function and its arguments take {len(payload)} bytes, and at most {MAX_PAYLOAD} fit "
                                 "into a job: give the executor a folder that all nodes share")
            self.arguments = ["-c", Path(_task.__file__).read_text(encoding="utf-8"), VERSION, self.nonce, payload]

    @staticmethod
    def _write(place: Path, folder: Path, function: bytes, calls: list[bytes]) -> None:
        """The offsets of the chunks, then the chunks. The directory is as open to others as the folder."""
        place.mkdir()
        place.chmod(folder.stat().st_mode & 0o7777)
        (place / "task.py").write_bytes(Path(_task.__file__).read_bytes())
        (place / "function").write_bytes(function)
        offsets = list(itertools.accumulate(map(len, calls), initial=8 * (len(calls) + 1)))
        (place / "calls").write_bytes(struct.pack(f"<{len(offsets)}Q", *offsets) + b"".join(calls))

    def job_of(self, index: int) -> str:
        """The name of the job of a chunk."""
        return f"{self.name}.{index}" if self.count > 1 else self.name

    def stored(self, index: int) -> Optional[list[bytes]]:
        """The results in the folder; None if there are none."""
        if self.place is None:
            return None
        try:
            data = (self.place / f"{index}.result").read_bytes()
        except FileNotFoundError:
            return None
        found: list[bytes] = pickle.loads(data)
        return found


class Executor(concurrent.futures.Executor):
    """Runs functions as jobs, with the interface of concurrent.futures.

    `queue`: of the jobs. `resources`: of each task; default one core. `folder`: a directory that this machine and
    all nodes share; calls and results are files there. Whoever may write there can run code as you. Without one, a
    call and its arguments travel in the job (at most 96 KiB), and results in its output. `python`: the interpreter
    on the nodes, of the same version as this one, with cloudpickle; default this one. `job`: a template for
    everything else (walltime, priority, labels, retries), whose group may have an image, volumes, env.
    `max_retries`: starts after crashes and lost results, not after exceptions. `grace`: time for `checkpoint`.
    `client`: default Client().

    An exception in a function is raised by `result`, with the traceback of the task as its cause. A task that ends without a
    result (killed, out of memory) is JobFailed.

    >>> with berth.Executor(client, queue="research", python="/usr/bin/python3", job=template) as executor:
    ...     executor.submit(pow, 2, 10).result(timeout=60)
    ...     list(executor.map(abs, [-1, -2, -3], chunksize=2))
    1024
    [1, 2, 3]
    """

    def __init__(self, client: Optional[Client] = None, *, queue: str = "", resources: Optional[Resources] = None,
                 folder: Union[str, os.PathLike[str], None] = None, python: str = sys.executable, job: Optional[Job] = None,
                 walltime: Optional[DurationLike] = None, max_retries: int = 0, parallelism: int = 0, name: str = "call",
                 grace: DurationLike = "30s") -> None:
        import cloudpickle
        cloudpickle.register_pickle_by_value(_checkpoint)  # nodes need not have this package
        self._own = client is None
        self._client = client if client is not None else Client()
        self._loop, self._aio = self._client._loop, self._client._client
        self._folder = Path(folder).expanduser().resolve() if folder is not None else None
        self._python, self._name, self._parallelism, self._grace = python, name, parallelism, grace
        self._template = copy.deepcopy(job) if job is not None else Job()
        self._template.groups = self._template.groups or [Group("call", resources=Resources(cpu=1))]
        if queue:
            self._template.queue = queue
        if resources is not None:
            self._template.groups[0].resources = resources
        if walltime is not None:
            self._template.walltime = walltime
        self._template.max_retries = max_retries or self._template.max_retries
        self._open: set[Future[Any]] = set()
        self._queued: list[_Chunks] = []
        self._flushing = False
        self._running: set[asyncio.Future[None]] = set()
        self._down = False
        self._readers = concurrent.futures.ThreadPoolExecutor(READERS, thread_name_prefix="berth-results")

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Calls a function in a job of its own. Many submits within a moment become one request.

        >>> with berth.Executor(client, queue="research", python="/usr/bin/python3", job=template) as executor:
        ...     executor.submit(divmod, 7, 2).result(timeout=60)
        (3, 1)
        """
        chunks = self._chunks(fn, [[(args, kwargs)]])
        self._loop.loop.call_soon_threadsafe(self._enqueue, chunks)
        return chunks.futures[0][0]

    def map(self, fn: Callable[..., T], *iterables: Iterable[Any], timeout: Optional[float] = None,
            chunksize: Optional[int] = 1) -> Iterator[T]:
        """The results of calls with one element of each iterable, in their order. One array of jobs makes all calls.

        `chunksize`: calls in one task, one after the other, in one process. A task takes about 0.04 s of a core: give short
        calls larger chunks. None: more than 400 calls (or four times `parallelism`) share so many tasks, and each call still
        has a process of its own, a fork, in which it may crash alone. Their results come when their task ends. A function with
        a checkpoint and an executor with a walltime get a task for each call. `timeout`: in seconds, for all results.

        >>> with berth.Executor(client, queue="research", python="/usr/bin/python3", job=template) as executor:
        ...     list(executor.map(pow, [2, 3], [4, 5]))
        [16, 243]
        """
        futures = self.map_array(fn, *iterables, chunksize=chunksize)
        end = None if timeout is None else time.monotonic() + timeout

        def results() -> Iterator[T]:
            try:
                for future in futures:
                    yield future.result(None if end is None else end - time.monotonic())
            finally:
                for future in futures:
                    future.cancel()

        return results()

    def map_array(self, fn: Callable[..., T], *iterables: Iterable[Any], chunksize: Optional[int] = 1) -> list[Future[T]]:
        """As map, but returns the futures.

        >>> with berth.Executor(client, queue="research", python="/usr/bin/python3", job=template) as executor:
        ...     [future.result(timeout=60) for future in executor.map_array(abs, [-5, 6])]
        [5, 6]
        """
        if chunksize is not None and chunksize < 1:
            raise ValueError(f"chunksize must be at least 1, is {chunksize}")
        calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [(args, {}) for args in zip(*iterables)]
        if not calls:
            return []
        size = chunksize if chunksize is not None else self._size_for(fn, len(calls))
        chunks = self._chunks(fn, [calls[begin:begin + size] for begin in range(0, len(calls), size)],
                              apart=chunksize is None and size > 1)
        self._loop.loop.call_soon_threadsafe(self._enqueue, chunks)
        return [future for futures in chunks.futures for future in futures]

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no more calls. `wait`: until all have ended; `cancel_futures`: cancels them first.

        >>> executor = berth.Executor(client, queue="research")
        >>> executor.shutdown()
        """
        self._down = True
        for future in list(self._open) if cancel_futures else ():
            future.cancel()
        if wait:
            concurrent.futures.wait(list(self._open))
            self._readers.shutdown()
            if self._own:
                self._client.close()

    def _size_for(self, function: Callable[..., Any], count: int) -> int:
        """Of chunks whose calls differ from calls in tasks of their own in nothing but the time of their results."""
        if callable(getattr(function, "checkpoint", None)) or self._template.walltime is not None:
            return 1
        return -(-count // (PER_SLOT * self._parallelism or MOST_TASKS))

    def _chunks(self, function: Callable[..., Any], calls: list[Calls], apart: bool = False) -> _Chunks:
        if self._down:
            raise RuntimeError("cannot schedule new futures after shutdown")
        chunks = _Chunks(f"{self._name}-{secrets.token_hex(6)}", function, calls, self._folder, apart)
        for index, chunk in enumerate(calls):
            made: list[Future[Any]] = [Future(chunks.job_of(index), self._canceller(chunks, index)) for _ in chunk]
            chunks.futures.append(made)
            self._open.update(made)
            for future in made:
                future.add_done_callback(self._open.discard)
        return chunks

    def _canceller(self, chunks: _Chunks, index: int) -> Callable[[Future[Any]], None]:
        def cancel(future: Future[Any]) -> None:
            if all(one.cancelled() for one in chunks.futures[index]):
                self._loop.start(self._cancel(chunks.job_of(index)))
        return cancel

    async def _cancel(self, name: str) -> None:
        try:
            await self._aio.cancel(name, reason="the future was cancelled")
        except errors.BerthError:
            pass  # it has ended, or was not made yet

    def _job(self, chunks: _Chunks) -> Job:
        job = copy.deepcopy(self._template)
        job.name, group = chunks.name, job.groups[0]
        group.command = [self._python, *chunks.arguments]
        job.policies = [Policy(event="TaskFailed", exit_codes=[_task.RAISED], action="Abort"), *job.policies]
        if chunks.count > 1:
            job.array = Array(size=chunks.count, parallelism=self._parallelism)
        if chunks.apart:
            group.env = {**group.env, "BERTH_APART": str(1 + self._template.max_retries)}
        if chunks.checkpoints:
            group.env = {**group.env, "BERTH_CHECKPOINTS": "1"}
            job.checkpoint = CheckpointPolicy(signal="SIGUSR1", grace=self._grace, saved_exit_codes=[_task.SAVED])
            if job.walltime is not None:
                job.policies.append(Policy(event="Timeout", action="RestartJob"))
                job.max_retries = max(job.max_retries, TIMEOUTS)
        return job

    def _enqueue(self, chunks: _Chunks) -> None:
        """In the loop's thread."""
        self._queued.append(chunks)
        if not self._flushing:
            self._flushing = True
            self._start(self._flush())

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """In the loop's thread; asyncio itself does not keep tasks alive."""
        task = asyncio.ensure_future(coroutine)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _flush(self) -> None:
        await asyncio.sleep(FLUSH_S)
        self._flushing, queued = False, self._queued
        self._queued = []
        try:
            await asyncio.gather(*(self._follow(chunks) for chunks in queued))
            for begin in range(0, len(queued), 500):
                await self._send(queued[begin:begin + 500])
        except BaseException as error:
            for chunks in queued:
                self._fail_all(chunks, error)
            if not isinstance(error, Exception):
                raise

    async def _send(self, queued: list[_Chunks]) -> None:
        """All of a request or none: after a refusal, one by one, so that each call gets its own error."""
        try:
            await self._aio.submit_many([self._job(chunks) for chunks in queued])
        except errors.BerthError:
            for chunks in queued:
                try:
                    await self._aio.submit(self._job(chunks))
                except errors.BerthError as error:
                    self._fail_all(chunks, error)

    def _fail_all(self, chunks: _Chunks, error: BaseException) -> None:
        for futures in chunks.futures:
            for future in futures:
                _fail(future, error)

    async def _follow(self, chunks: _Chunks) -> None:
        """Before the jobs are submitted: nothing that happens to them is missed."""
        hub = self._aio._hub
        seen: set[int] = set()

        def see(index: int, state: int) -> None:
            if index not in seen:
                seen.add(index)
                self._start(self._finish(chunks, index, state))

        def ended(future: asyncio.Future[int]) -> None:
            hub.untrack(tracked)
            hub.unfollow(chunks.name)
            error = future.exception()
            if error is not None:
                return self._fail_all(chunks, error)
            if chunks.count == 1:
                return see(0, future.result())
            for index, futures in enumerate(chunks.futures):  # jobs that the array did not make
                for one in futures if index not in seen else ():
                    _fail(one, errors.JobFailed(f"job {one.job} was not run: the array ended before"))
            return None

        if chunks.count > 1:
            await hub.follow(Series(chunks.name, see, lambda error: self._fail_all(chunks, error)))
        tracked = await hub.expect(chunks.name)
        tracked.ended.add_done_callback(ended)

    async def _finish(self, chunks: _Chunks, index: int, state: int) -> None:
        """The job of a chunk has ended."""
        futures = chunks.futures[index]
        if all(future.done() for future in futures):
            return
        try:
            if chunks.place is not None:
                results = await asyncio.get_running_loop().run_in_executor(self._readers, chunks.stored, index)
            else:
                results = await self._printed(chunks, index)
            if results is None:
                raise await self._why(chunks.job_of(index), state)
        except Exception as error:
            for future in futures:
                _fail(future, error)
            return
        if len(results) == 1:  # it concerns the whole chunk
            results *= len(futures)
        for future, data in zip(futures, results):
            if not future.done():
                _settle(future, data)

    async def _printed(self, chunks: _Chunks, index: int) -> Optional[list[bytes]]:
        """The last line of the output."""
        parts = [part async for part in self._aio.logs(chunks.job_of(index), tail=1, stream="stdout")]
        nonce, _, line = b"".join(parts).strip().partition(b" ")
        if nonce.decode("ascii", "replace") != chunks.nonce:
            return None
        found: list[bytes] = pickle.loads(zlib.decompress(base64.b64decode(line)))
        return found

    async def _why(self, name: str, state: int) -> errors.JobFailed:
        """Why there is no result."""
        try:
            job = await self._aio.get(name)
        except errors.BerthError:
            return errors.JobFailed(f"job {name} left no result ({JobState.from_pb(state)})")
        status = job.status
        why = (status.message or status.cancel_reason) if status is not None else ""
        word = str(status.state).lower() if status is not None else ""
        return errors.JobFailed(f"job {name} {word} and left no result: {why}", job)
