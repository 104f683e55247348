"""The event loop of blocking clients, in a thread of its own."""
from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, Optional, TypeVar

T = TypeVar("T")
AHEAD = 1024  # entries of an iterator that are read before somebody asks for them


class Loop:
    """Runs coroutines for callers of any thread. One serves all clients of the process: `shared`."""

    _shared: Optional[Loop] = None
    _making = threading.Lock()

    def __init__(self) -> None:
        self._pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="berth-client", daemon=True)
        self._thread.start()

    @classmethod
    def shared(cls) -> Loop:
        """That of this process, which lives as long as it; a child after a fork gets its own."""
        with cls._making:
            if cls._shared is None or cls._shared._pid != os.getpid():
                cls._shared = cls()
            return cls._shared

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def start(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Begins a coroutine, and returns at once."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine. An interrupt cancels it."""
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("a blocking call in a callback of the client: use berth.aio there")
        future = self.start(coroutine)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, source: AsyncIterator[T]) -> Iterator[T]:
        """The entries of an asynchronous iterator; it ends with the returned one."""
        pump = _Pump(source)
        running = self.start(pump.run())
        try:
            while True:
                ended = pump.ended  # before the last entries are taken
                yield from pump.take()
                if ended:
                    return running.result()
                self.loop.call_soon_threadsafe(pump.free)
                pump.filled.wait()
        finally:
            running.cancel()


class _Pump:
    """Moves entries from the loop's thread to the caller's, many at a time."""

    def __init__(self, source: AsyncIterator[Any]) -> None:
        self._source = source
        self._entries: collections.deque[Any] = collections.deque()
        self.filled, self.ended = threading.Event(), False
        self._room: Optional[asyncio.Event] = None

    async def run(self) -> None:
        """Until the source ends."""
        self._room = asyncio.Event()
        try:
            async for entry in self._source:
                self._entries.append(entry)
                self.filled.set()
                while len(self._entries) >= AHEAD:
                    self._room.clear()
                    await self._room.wait()
        finally:
            self.ended = True
            self.filled.set()
            close: Optional[Any] = getattr(self._source, "aclose", None)
            if close is not None:
                await close()

    def free(self) -> None:
        """Entries were taken."""
        if self._room is not None:
            self._room.set()

    def take(self) -> Iterator[Any]:
        """What is there, without waiting."""
        self.filled.clear()
        while self._entries:
            yield self._entries.popleft()
