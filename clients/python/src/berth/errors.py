"""Errors of calls, as exceptions by code."""
from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Optional

import grpc
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, duration_pb2, message_factory

from berth._rpc_status import SERIALIZED
from berth._values import duration_from_pb

__all__ = ["Aborted", "AlreadyExists", "BerthError", "DeadlineExceeded", "FailedPrecondition", "Internal",
           "InvalidArgument", "JobFailed", "NotFound", "OutOfRange", "PermissionDenied", "ResourceExhausted",
           "Unauthenticated", "Unavailable", "Unimplemented", "Violation"]


@dataclass(frozen=True)
class Violation:
    """One problem with a request: the path of the field, and what is wrong and what would be right.

    >>> berth.Violation("groups[0].command", "required without image: the program and its arguments").field
    'groups[0].command'
    """

    field: str
    description: str

    def __str__(self) -> str:
        return f"{self.field}: {self.description}" if self.field else self.description


class BerthError(Exception):
    """A call failed. `code` is the name of the gRPC status; a subclass exists for each.

    `violations` lists everything that is wrong with the request. `retry_delay`: the server asks not to come earlier.

    >>> try:
    ...     client.get("no-such-job")
    ... except berth.BerthError as error:
    ...     print(error.code)
    NOT_FOUND
    """

    code = "UNKNOWN"

    def __init__(self, message: str, violations: tuple[Violation, ...] = (),
                 retry_delay: Optional[timedelta] = None) -> None:
        super().__init__(message)
        self.message = message
        self.violations = violations
        self.retry_delay = retry_delay

    def __str__(self) -> str:
        if not self.violations:
            return self.message
        return "\n".join(str(violation) for violation in self.violations)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.message, self.violations, self.retry_delay))


class InvalidArgument(BerthError):
    """The request is wrong: see `violations`.

    >>> berth.InvalidArgument.code
    'INVALID_ARGUMENT'
    """

    code = "INVALID_ARGUMENT"


class NotFound(BerthError):
    """The job, queue or node does not exist.

    >>> berth.NotFound.code
    'NOT_FOUND'
    """

    code = "NOT_FOUND"


class AlreadyExists(BerthError):
    """A name is in use, or a request id was used before for another request.

    >>> berth.AlreadyExists.code
    'ALREADY_EXISTS'
    """

    code = "ALREADY_EXISTS"


class FailedPrecondition(BerthError):
    """The request is valid, but not in the present state.

    >>> berth.FailedPrecondition.code
    'FAILED_PRECONDITION'
    """

    code = "FAILED_PRECONDITION"


class PermissionDenied(BerthError):
    """The caller may not do this; the message names the role that would allow it.

    >>> berth.PermissionDenied.code
    'PERMISSION_DENIED'
    """

    code = "PERMISSION_DENIED"


class Unauthenticated(BerthError):
    """The server does not know the caller.

    >>> berth.Unauthenticated.code
    'UNAUTHENTICATED'
    """

    code = "UNAUTHENTICATED"


class Aborted(BerthError):
    """The etag is not the current one: somebody else changed the object.

    >>> berth.Aborted.code
    'ABORTED'
    """

    code = "ABORTED"


class OutOfRange(BerthError):
    """The revision has aged out of the server's log: list again, and watch from now.

    >>> berth.OutOfRange.code
    'OUT_OF_RANGE'
    """

    code = "OUT_OF_RANGE"


class ResourceExhausted(BerthError):
    """A limit is reached. It was retried until the timeout.

    >>> berth.ResourceExhausted.code
    'RESOURCE_EXHAUSTED'
    """

    code = "RESOURCE_EXHAUSTED"


class Unimplemented(BerthError):
    """Berth does not have this feature, which the message names.

    >>> berth.Unimplemented.code
    'UNIMPLEMENTED'
    """

    code = "UNIMPLEMENTED"


class Unavailable(BerthError):
    """No server could be reached until the timeout.

    >>> berth.Unavailable.code
    'UNAVAILABLE'
    """

    code = "UNAVAILABLE"


class DeadlineExceeded(BerthError, TimeoutError):
    """The timeout of a call or of a wait is over.

    >>> issubclass(berth.DeadlineExceeded, TimeoutError)
    True
    """

    code = "DEADLINE_EXCEEDED"


class Internal(BerthError):
    """A bug of the server.

    >>> berth.Internal.code
    'INTERNAL'
    """

    code = "INTERNAL"


class JobFailed(BerthError):
    """A job that was waited for ended without success; `job` is its last state.

    >>> berth.JobFailed.code
    'JOB_FAILED'
    """

    code = "JOB_FAILED"

    def __init__(self, message: str, job: Any = None) -> None:
        super().__init__(message)
        self.job = job

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.message, self.job))


_CLASSES = {error.code: error for error in (
    InvalidArgument, NotFound, AlreadyExists, FailedPrecondition, PermissionDenied, Unauthenticated, Aborted, OutOfRange,
    ResourceExhausted, Unimplemented, Unavailable, DeadlineExceeded, Internal)}
STANDBY = "this server is a standby"  # how a standby's refusal begins: nothing has happened there


def _load() -> tuple[Any, Any, Any]:
    """google.rpc's messages, in a pool of their own: other packages register another file of the same name."""
    pool = descriptor_pool.DescriptorPool()
    for module in (any_pb2, duration_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
    pool.AddSerializedFile(SERIALIZED)
    names = ("google.rpc.Status", "google.rpc.BadRequest", "google.rpc.RetryInfo")
    if hasattr(message_factory, "GetMessageClass"):
        make = message_factory.GetMessageClass
    else:  # protobuf before 4.22
        make = message_factory.MessageFactory(pool).GetPrototype  # type: ignore[attr-defined]
    status, bad_request, retry_info = (make(pool.FindMessageTypeByName(name)) for name in names)
    return status, bad_request, retry_info


_Status, _BadRequest, _RetryInfo = _load()


def from_parts(code: str, message: str, details: Optional[bytes]) -> BerthError:
    """The exception for a status, with `details` as of grpc-status-details-bin."""
    violations: list[Violation] = []
    delay = None
    for entry in _Status.FromString(details).details if details else ():
        if entry.type_url.endswith("/google.rpc.BadRequest"):
            found = _BadRequest.FromString(entry.value).field_violations
            violations += [Violation(one.field, one.description) for one in found]
        elif entry.type_url.endswith("/google.rpc.RetryInfo"):
            delay = duration_from_pb(_RetryInfo.FromString(entry.value).retry_delay)
    made = _CLASSES.get(code, BerthError)(message, tuple(violations), delay)
    made.code = code
    return made


def from_rpc(error: grpc.RpcError) -> BerthError:
    """The exception for gRPC's own."""
    status: Any = error
    details = dict(list(status.trailing_metadata() or ())).get("grpc-status-details-bin")
    return from_parts(status.code().name, status.details() or "", details)
