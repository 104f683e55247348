"""Values of fields: how people write them, and what a dataclass keeps.

Each descriptor below is the default of a field of a generated dataclass. It takes what people write ("72h", "512Mi",
"RestartJob") and keeps one type, so that what is read has that type. A value that cannot be read raises ValueError at
the line that sets it.
"""
from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from typing import Any, Generic, Optional, TypeVar, Union, overload

from google.protobuf.duration_pb2 import Duration as DurationPb
from google.protobuf.timestamp_pb2 import Timestamp as TimestampPb

_UNITS = {"d": 86_400_000_000_000, "h": 3_600_000_000_000, "m": 60_000_000_000, "s": 1_000_000_000, "ms": 1_000_000,
          "us": 1_000, "ns": 1}
_BINARY = {f"{letter}i": 1024 ** (power + 1) for power, letter in enumerate("KMGTPE")}
_DECIMAL = {"k": 1000, **{letter: 1000 ** (power + 2) for power, letter in enumerate("MGTPE")}}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|us|ns|d|h|m|s)")
_MOST = 2**63 - 1

DurationLike = Union[timedelta, str, int, float]
TimeLike = Union[datetime, str]
PastLike = Union[datetime, timedelta, str]


def parse_duration(text: str) -> timedelta:
    """Reads "72h", "1h30m", "500ms", "2d" or "0", as manifests do; ValueError otherwise."""
    text = text.strip()
    if text == "0":
        return timedelta()
    parts = list(_PART.finditer(text))
    if not parts or "".join(part.group(0) for part in parts) != text:
        raise ValueError(f'"{text}" is no duration; write "72h", "1h30m", "1.5s", "500ms" or "2d"')
    total = sum(Decimal(part.group(1)) * _UNITS[part.group(2)] for part in parts)
    return timedelta(microseconds=float(Decimal(total) / 1000))


def as_duration(value: DurationLike) -> timedelta:
    """A timedelta, a text of parse_duration, or a number of seconds."""
    if isinstance(value, timedelta):
        return value
    if isinstance(value, str):
        return parse_duration(value)
    return timedelta(seconds=value)


def format_duration(value: timedelta) -> str:
    """The text that parse_duration reads as the same value: "1h30m"."""
    left = round(value / timedelta(microseconds=1))
    if left == 0:
        return "0"
    sign, left, text = "-" if left < 0 else "", abs(left), ""
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count, left = divmod(left, _UNITS[unit] // 1000)
        text += f"{count}{unit}" if count else ""
    return sign + text


def _scaled(text: str, factor: int, what: str) -> int:
    """A decimal number times a factor, exactly."""
    try:
        value = Decimal(text) * factor
    except InvalidOperation:
        raise ValueError(f'"{text}" is no {what}') from None
    if value != value.to_integral_value() or not 0 <= value <= _MOST:
        raise ValueError(f'"{text}" is no {what}: it is negative, too precise or too large')
    return int(value)


def parse_bytes(text: str) -> int:
    """Reads "64", "512Mi", "1.5Ti", "80GB" or "80GiB" as bytes; ValueError otherwise."""
    text = text.strip()
    bare = text[:-1] if text.endswith("B") else text
    for suffix, factor in (*_BINARY.items(), *_DECIMAL.items()):
        if bare.endswith(suffix):
            return _scaled(bare[:-len(suffix)], factor, 'amount of bytes; write "512Mi", "1Ti" or "80GB"')
    return _scaled(bare, 1, 'amount of bytes; write "512Mi", "1Ti" or "80GB"')


def format_bytes(value: int) -> str:
    """The shortest text that parse_bytes reads as the same number: "512Mi"."""
    for suffix, factor in reversed(_BINARY.items()):
        if value and value % factor == 0:
            return f"{value // factor}{suffix}"
    return str(value)


def parse_millis(text: str) -> int:
    """Reads "2", "1.5" or "500m" as thousandths of a core; ValueError otherwise."""
    text = text.strip()
    what = 'amount of cores; write "2", "1.5" or "500m"'
    return _scaled(text[:-1], 1, what) if text.endswith("m") else _scaled(text, 1000, what)


def format_millis(value: int) -> str:
    """The text that parse_millis reads as the same number: "500m"."""
    return str(value // 1000) if value % 1000 == 0 else f"{value}m"


def as_bytes(value: Union[int, str]) -> int:
    """A number of bytes, or a text of parse_bytes."""
    return parse_bytes(value) if isinstance(value, str) else int(value)


def as_cores(value: Union[float, str]) -> float:
    """A number of cores, or a text of parse_millis; in steps of 0.001."""
    if isinstance(value, str):
        return parse_millis(value) / 1000
    if not math.isfinite(value):
        raise ValueError(f"{value} is no number of cores")
    return round(value * 1000) / 1000


def as_time(value: TimeLike) -> datetime:
    """A datetime with a time zone, or a text of RFC 3339 such as "2026-11-24T09:00:00Z"."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", value.strip()))
        except ValueError:
            raise ValueError(f'"{value}" is no time; write "2026-11-24T09:00:00Z"') from None
    if value.tzinfo is None:
        raise ValueError(f"the time {value} needs a time zone, such as datetime.timezone.utc")
    return value.astimezone(timezone.utc)


def as_past(value: PastLike) -> datetime:
    """A time of as_time, or how long ago: a timedelta, or a text of parse_duration such as "30d"."""
    if isinstance(value, str) and (value.strip() == "0" or _PART.match(value.strip())):
        value = parse_duration(value)
    if isinstance(value, timedelta):
        return datetime.now(timezone.utc) - value
    return as_time(value)


def duration_to_pb(value: timedelta) -> DurationPb:
    """The message of a duration."""
    message = DurationPb()
    message.FromTimedelta(value)
    return message


def duration_from_pb(message: DurationPb) -> timedelta:
    """The duration of a message, to the microsecond."""
    return timedelta(seconds=message.seconds, microseconds=message.nanos / 1000)


def time_to_pb(value: datetime) -> TimestampPb:
    """The message of a time."""
    message = TimestampPb()
    message.FromDatetime(value.astimezone(timezone.utc).replace(tzinfo=None))
    return message


def time_from_pb(message: TimestampPb) -> datetime:
    """The time of a message, in UTC, to the microsecond."""
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=message.seconds,
                                                                microseconds=message.nanos // 1000)


class Choice(str, enum.Enum):
    """An enum of the API, whose values are written as in manifests: "RestartJob".

    A value that this version does not know, of a newer server, is a member "Unknown(17)": it equals no other.
    """

    @classmethod
    def _missing_(cls, value: object) -> Any:
        if isinstance(value, str):
            wanted = value.replace("_", "").lower()
            for member in cls:
                if wanted in (member.value.lower(), cls._prefix().lower() + member.value.lower()):
                    return member
        known = ", ".join(member.value for member in cls)
        raise ValueError(f"{cls.__name__} has no value {value!r}; it has {known}")

    @classmethod
    def _prefix(cls) -> str:
        """What the names in the API begin with, without underscores."""
        return ""

    @classmethod
    def _numbers(cls) -> dict[str, int]:
        return {}

    @classmethod
    def from_pb(cls: type[C], number: int) -> Optional[C]:
        """The member of a number in the API; None for 0, the unspecified one."""
        if number == 0:
            return None
        for name, known in cls._numbers().items():
            if known == number:
                return cls(name)
        unknown = str.__new__(cls, f"Unknown({number})")
        unknown._value_ = f"Unknown({number})"
        unknown._name_ = f"UNKNOWN_{number}"
        return unknown

    @property
    def number(self) -> int:
        """The number in the API."""
        found = self._numbers().get(self.value)
        if found is None:
            return int(self.value[len("Unknown("):-1])
        return found

    def __str__(self) -> str:
        return str(self.value)


C = TypeVar("C", bound=Choice)
S = TypeVar("S")


class _Field:
    """A descriptor that keeps its value in the instance under its own name."""

    name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def _kept(self, instance: object) -> Any:
        return instance.__dict__.get(self.name)


class Duration(_Field):
    """A duration: takes a timedelta, a text such as "1h30m", or seconds; keeps a timedelta. None: not set."""

    @overload
    def __get__(self, instance: None, owner: type) -> None: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Optional[timedelta]: ...
    def __get__(self, instance: Optional[object], owner: type) -> Optional[timedelta]:
        """The value; of the class, the default."""
        value: Optional[timedelta] = None if instance is None else self._kept(instance)
        return value

    def __set__(self, instance: object, value: Optional[DurationLike]) -> None:
        """Reads what people write."""
        instance.__dict__[self.name] = None if value is None else as_duration(value)


class Time(_Field):
    """A time: takes a datetime with a time zone, or a text of RFC 3339; keeps a datetime in UTC. None: not set."""

    @overload
    def __get__(self, instance: None, owner: type) -> None: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Optional[datetime]: ...
    def __get__(self, instance: Optional[object], owner: type) -> Optional[datetime]:
        """The value; of the class, the default."""
        value: Optional[datetime] = None if instance is None else self._kept(instance)
        return value

    def __set__(self, instance: object, value: Optional[TimeLike]) -> None:
        """Reads what people write."""
        instance.__dict__[self.name] = None if value is None else as_time(value)


class Bytes(_Field):
    """An amount of bytes: takes a number or a text such as "512Mi"; keeps an int. None: not set."""

    @overload
    def __get__(self, instance: None, owner: type) -> None: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Optional[int]: ...
    def __get__(self, instance: Optional[object], owner: type) -> Optional[int]:
        """The value; of the class, the default."""
        value: Optional[int] = None if instance is None else self._kept(instance)
        return value

    def __set__(self, instance: object, value: Union[int, str, None]) -> None:
        """Reads what people write."""
        instance.__dict__[self.name] = None if value is None else as_bytes(value)


class Cores(_Field):
    """An amount of cores: takes a number or a text such as "500m"; keeps a float. None: not set."""

    @overload
    def __get__(self, instance: None, owner: type) -> None: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Optional[float]: ...
    def __get__(self, instance: Optional[object], owner: type) -> Optional[float]:
        """The value; of the class, the default."""
        value: Optional[float] = None if instance is None else self._kept(instance)
        return value

    def __set__(self, instance: object, value: Union[float, str, None]) -> None:
        """Reads what people write."""
        instance.__dict__[self.name] = None if value is None else as_cores(value)


class One(_Field, Generic[C]):
    """A value of an enum: takes a member or its text, in any case; keeps a member. None: not set."""

    def __init__(self, choice: type[C]) -> None:
        self.choice = choice

    @overload
    def __get__(self, instance: None, owner: type) -> None: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Optional[C]: ...
    def __get__(self, instance: Optional[object], owner: type) -> Optional[C]:
        """The value; of the class, the default."""
        value: Optional[C] = None if instance is None else self._kept(instance)
        return value

    def __set__(self, instance: object, value: Union[C, str, None]) -> None:
        """Reads what people write."""
        if value is not None and not isinstance(value, self.choice):
            value = self.choice(value)
        instance.__dict__[self.name] = value


class Many(_Field, Generic[C]):
    """Values of an enum: takes members or their texts; keeps a list of members."""

    def __init__(self, choice: type[C]) -> None:
        self.choice = choice

    @overload
    def __get__(self, instance: None, owner: type) -> tuple[()]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> list[C]: ...
    def __get__(self, instance: Optional[object], owner: type) -> Union[list[C], tuple[()]]:
        """The value; of the class, the default."""
        value: list[C] = [] if instance is None else self._kept(instance)
        return () if instance is None else value

    def __set__(self, instance: object, value: Iterable[Union[C, str]]) -> None:
        """Reads what people write."""
        if isinstance(value, str):
            value = [value]
        instance.__dict__[self.name] = [one if isinstance(one, self.choice) else self.choice(one) for one in value]
