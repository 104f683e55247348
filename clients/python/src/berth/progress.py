"""A progress bar for waits, in terminals and notebooks. Needs tqdm: pip install berth[progress]."""
from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Iterable
from typing import Any, Optional, TypeVar, Union

from berth import aio
from berth.client import Client, JobHandle
from berth.model import Job

__all__ = ["wait_with_progress", "watch_futures"]

T = TypeVar("T")


def wait_with_progress(client: Client, jobs: Iterable[Union[JobHandle, str]], *, timeout: Optional[float] = None,
                       check: bool = True, **options: Any) -> list[Job]:
    """As Client.wait, with a bar that counts the jobs that have ended and shows how many failed.

    `options` go to tqdm.auto.tqdm.

    >>> import io
    >>> berth.progress.wait_with_progress(client, ["hello"], timeout=60, file=io.StringIO())[0].name
    'hello'
    """
    names = list(jobs)
    bar = _bar(len(names), "job", options)
    try:
        return client._loop.run(_wait(client._client, [client._plain(job) for job in names], timeout, check, bar))
    finally:
        bar.close()


async def _wait(client: aio.Client, jobs: list[Union[aio.JobHandle, str]], timeout: Optional[float], check: bool,
                bar: Any) -> list[Job]:
    import asyncio
    failed = 0

    async def one(job: Union[aio.JobHandle, str]) -> Job:
        nonlocal failed
        ended = (await client.wait([job], timeout=timeout, check=False))[0]
        failed += ended.status is not None and str(ended.status.state) != "Succeeded"
        if failed:
            bar.set_postfix(failed=failed, refresh=False)
        bar.update()
        return ended

    tasks = [asyncio.ensure_future(one(job)) for job in jobs]
    try:
        ended = list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
    if check and failed:
        return await client.wait([job.name for job in ended], timeout=timeout)  # raises for the first that failed
    return ended


def watch_futures(futures: Iterable[concurrent.futures.Future[T]], *, timeout: Optional[float] = None,
                  **options: Any) -> list[concurrent.futures.Future[T]]:
    """Waits for futures of an Executor with a bar, and returns them. A future that failed does not raise here.

    TimeoutError after `timeout` seconds. `options` go to tqdm.auto.tqdm.

    >>> import concurrent.futures, io
    >>> done = concurrent.futures.Future(); done.set_result(3)
    >>> [future.result() for future in berth.progress.watch_futures([done], file=io.StringIO())]
    [3]
    """
    known = list(futures)
    bar, lock = _bar(len(known), "call", options), threading.Lock()
    failed = 0

    def ended(future: concurrent.futures.Future[T]) -> None:
        nonlocal failed
        with lock:
            if future.cancelled() or future.exception() is not None:
                failed += 1
                bar.set_postfix(failed=failed, refresh=False)
            bar.update()

    try:
        for future in known:
            future.add_done_callback(ended)
        if concurrent.futures.wait(known, timeout=timeout).not_done:
            raise TimeoutError(f"the calls have not ended after {timeout} s")
    finally:
        bar.close()
    return known


def _bar(total: int, unit: str, options: dict[str, Any]) -> Any:
    from tqdm.auto import tqdm
    return tqdm(total=total, **{"unit": unit, **options})
