"""What functions with checkpoints use. Tasks get it by value: nodes need not have this package."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional


class Requeue:
    """What the next attempt calls, as a `checkpoint` method returns it: a function and its arguments.

    >>> berth.Requeue(pow, 2, 10).args
    (2, 10)
    """

    def __init__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs


class Checkpointable:
    """A callable whose job survives preemption, drains, suspensions and the end of its walltime.

    Before such a stop, `checkpoint` is called with the arguments of the call. It saves what is done, and returns a Requeue:
    what the next attempt calls. It is called in the main thread, between two steps of the interpreter, and has the `grace`
    of the executor.

    >>> class Count(berth.Checkpointable):
    ...     def __init__(self):
    ...         self.done = 0
    ...     def __call__(self, steps):
    ...         while self.done < steps:
    ...             self.done += 1
    ...         return self.done
    >>> isinstance(Count().checkpoint(3), berth.Requeue)
    True
    """

    def checkpoint(self, *args: Any, **kwargs: Any) -> Optional[Requeue]:
        """By default, the object itself is saved as it is now, and called again.

        >>> berth.Checkpointable().checkpoint(7).args
        (7,)
        """
        return Requeue(self, *args, **kwargs)  # type: ignore[arg-type]
