"""Jobs that a plugin waits for: their states come from the client's one watch, and nothing is asked twice."""
from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Optional

from berth import errors
from berth._hub import Tracked
from berth.client import Client
from berth.model import Job, JobState

ENDED = frozenset((JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED))
Changed = Callable[[JobState], None]


class Followed:
    """The jobs of one host, by name. `changed` is called in the client's thread with each new state, and must not block."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._known: dict[str, Tracked] = {}

    def submit(self, job: Job, changed: Optional[Changed] = None) -> str:
        """Submits a job that has a name. It is followed before, so nothing that happens to it is missed."""
        self._known[job.name] = self.client._loop.run(self._expect(job.name, changed))
        try:
            self.client.submit(job)
        except BaseException:
            self.forget(job.name)
            raise
        return job.name

    def attach(self, name: str, changed: Optional[Changed] = None) -> None:
        """Follows a job that exists. NotFound without one."""
        self._known[name] = self.client._loop.run(self._track(name, changed))

    async def _expect(self, name: str, changed: Optional[Changed]) -> Tracked:
        tracked = await self.client._client._hub.expect(name)
        tracked.changed = _caller(changed)
        return tracked

    async def _track(self, name: str, changed: Optional[Changed]) -> Tracked:
        tracked = await self.client._client._hub.track(name)
        tracked.changed = _caller(changed)
        if tracked.changed is not None and tracked.state:
            tracked.changed(tracked.state)
        return tracked

    def known(self, name: str) -> bool:
        """Whether a job is followed."""
        return name in self._known

    def state(self, name: str) -> Optional[JobState]:
        """The last state that the watch has shown; None before the first, and for a job that was deleted before its end.

        Raises why the watch cannot go on.
        """
        tracked = self._known[name]
        if tracked.ended.done():
            try:
                tracked.ended.result()
            except errors.NotFound:
                return None
        return JobState.from_pb(tracked.state)

    def ended(self, name: str) -> bool:
        """Whether a job has ended, or is gone."""
        return self._known[name].ended.done()

    def why(self, name: str) -> str:
        """What the server says about the end of a job; "" without a reason."""
        try:
            status = self.client.get(name).status
        except errors.BerthError as error:
            return str(error)
        return (status.message or status.cancel_reason or "") if status is not None else ""

    def cancel(self, name: str, reason: str) -> bool:
        """Cancels a job. False: it had ended, or is gone."""
        try:
            self.client.cancel(name, reason=reason)
        except (errors.FailedPrecondition, errors.NotFound):
            return False
        return True

    def forget(self, name: str) -> None:
        """It is not followed any more."""
        tracked = self._known.pop(name, None)
        if tracked is not None:
            self.client._loop.loop.call_soon_threadsafe(self.client._client._hub.untrack, tracked)


_shared: dict[tuple[int, str], Followed] = {}
_sharing = threading.Lock()


def shared() -> Followed:
    """That of this process for the server that BERTH_SERVER names now: one connection and one watch for all its jobs."""
    key = (os.getpid(), os.environ.get("BERTH_SERVER", ""))
    with _sharing:
        if key not in _shared:
            _shared[key] = Followed(Client())
        return _shared[key]


def _caller(changed: Optional[Changed]) -> Optional[Callable[[int], None]]:
    if changed is None:
        return None

    def call(number: int) -> None:
        state = JobState.from_pb(number)
        if state is not None:
            changed(state)

    return call

