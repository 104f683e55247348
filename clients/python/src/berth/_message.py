"""The base of the generated dataclasses."""
from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from berth.errors import InvalidArgument, Violation

M = TypeVar("M", bound="Message")
D = TypeVar("D", bound="Document")


class Message:
    """A message of the API as a dataclass. `to_proto` and `from_proto` convert; nothing is lost but unknown fields."""

    def _write(self, pb: Any) -> None:
        raise NotImplementedError

    @classmethod
    def _read(cls: type[M], pb: Any) -> M:
        raise NotImplementedError

    @classmethod
    def _new(cls) -> Any:
        """An empty raw message."""
        raise NotImplementedError

    def to_proto(self) -> Any:
        """The raw message.

        >>> berth.Array(size=3).to_proto().size
        3
        """
        pb = self._new()
        self._write(pb)
        return pb

    @classmethod
    def from_proto(cls: type[M], pb: Any) -> M:
        """The dataclass of a raw message.

        >>> berth.Array.from_proto(berth.Array(size=3).to_proto())
        Array(size=3)
        """
        return cls._read(pb)

    def __repr__(self) -> str:
        """Only fields that differ from their defaults."""
        shown = []
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            default = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
            if value != default and not (default == () and value == []):
                shown.append(f"{field.name}={str(value)!r}" if isinstance(value, str) else f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


class Document(Message):
    """A message that manifests describe."""

    def to_yaml(self) -> str:
        """The manifest, which reads back as the same; without what only the server sets.

        >>> print(berth.Queue("research", weight=2).to_yaml(), end="")
        apiVersion: berth/v1
        kind: Queue
        name: research
        weight: 2
        """
        from berth import _manifest
        return _manifest.write(self)  # type: ignore[arg-type]

    @classmethod
    def from_yaml(cls: type[D], text: str, file: str = "manifest") -> D:
        """Reads a manifest of one document of this kind. InvalidArgument lists every error with its place in `file`.

        >>> berth.Queue.from_yaml("{apiVersion: berth/v1, kind: Queue, name: research, weight: 2}")
        Queue(name='research', weight=2)
        """
        from berth import _manifest
        found = _manifest.read(text, file)
        if len(found) != 1 or not isinstance(found[0], cls):
            names = ", ".join(type(one).__name__ for one in found) or "nothing"
            raise InvalidArgument(f"{file}: expected one {cls.__name__}, found {names}")
        return found[0]


class JobDocument(Document):
    """A job, which can be checked."""

    def check(self) -> list[Violation]:
        """What is wrong with the job, as far as it can be told without a server; empty if nothing is known to be wrong.

        The findings are those of the server, in its words. Client.check finds also what depends on the server: its queues,
        limits and names in use.

        >>> berth.Job(groups=[berth.Group(command=[])]).check()
        [Violation(field='jobs[0].spec.groups[0].command', description='required without image: the program and its arguments')]
        """
        from berth import _check
        return _check.check_jobs([self.to_proto()])
