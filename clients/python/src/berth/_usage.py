"""What Client.usage and Client.capacity return, and the words of their arguments."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from berth.model import CapacityRow, HistoryState, UsageRow
from berth.v1 import history_pb2

UsageKey = Literal["queue", "user", "account", "class", "model"]
UsageStep = Literal["minute", "hour", "day", "month", "total"]

_KEYS: dict[str, int] = {
    "queue": history_pb2.GetUsageRequest.QUEUE, "user": history_pb2.GetUsageRequest.USER,
    "account": history_pb2.GetUsageRequest.ACCOUNT, "class": history_pb2.GetUsageRequest.PRIORITY_CLASS,
    "model": history_pb2.GetUsageRequest.DEVICE_MODEL}
_STEPS: dict[str, int] = {
    "minute": history_pb2.HISTORY_STEP_MINUTE, "hour": history_pb2.HISTORY_STEP_HOUR, "day": history_pb2.HISTORY_STEP_DAY,
    "month": history_pb2.HISTORY_STEP_MONTH, "total": history_pb2.HISTORY_STEP_TOTAL}


@dataclass
class Usage:
    """Who used how much: a row for each period and key that was asked for, and how far the figures go.

    `state.since` and `state.as_of` are the first and the last moment that the figures know; `state.gaps` lie between.

    >>> berth.Usage([berth.UsageRow(queue="research")]).rows[0].queue
    'research'
    """

    rows: list[UsageRow] = field(default_factory=list)
    state: HistoryState = field(default_factory=HistoryState)


@dataclass
class Capacity:
    """How the capacity of the cluster was used: a row for each period, and how far the figures go, as in Usage.

    In each row, total + overcommitted = held + reserved + free + fragmented + cordoned + down + unhealthy.

    >>> berth.Capacity().rows
    []
    """

    rows: list[CapacityRow] = field(default_factory=list)
    state: HistoryState = field(default_factory=HistoryState)


def _number(numbers: dict[str, int], word: str, what: str) -> Any:
    if word not in numbers:
        raise ValueError(f"{what} {word!r} is none of {', '.join(numbers)}")
    return numbers[word]


def key_number(word: str) -> Any:
    """The number in the API of a UsageKey; ValueError for another word."""
    return _number(_KEYS, word, "the key")


def step_number(word: str) -> Any:
    """The number in the API of a UsageStep; ValueError for another word."""
    return _number(_STEPS, word, "the step")
