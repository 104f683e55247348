"""Berth, a batch scheduler for AI clusters.

>>> client = berth.Client()                 # BERTH_SERVER, BERTH_TLS_...: as the command line
>>> handle = client.submit(berth.Job(queue="research", groups=[berth.Group(command=["true"])]))
>>> print(handle.wait(timeout=60).status.state)
Succeeded

`berth.aio.Client` has the same methods for asyncio.
"""
from berth import _manifest, aio, frames, model, progress, ray
from berth._manifest import Resource
from berth._usage import Capacity, Usage
from berth._version import VERSION as __version__  # noqa: N811
from berth.aio import ExecResult, LogLine
from berth.client import Client, JobHandle
from berth.errors import *  # noqa: F403
from berth.errors import __all__ as _errors
from berth.executor import Checkpointable, Executor, Future, Requeue
from berth.model import *  # noqa: F403
from berth.model import Resources
from berth.model import __all__ as _model

R = Resources


def read_manifest(text: str, file: str = "manifest") -> list[Resource]:
    """Reads all documents of a manifest: jobs, queues, HyperNodes and priority classes.

    InvalidArgument lists every error with its line and column in `file`.

    >>> [type(one).__name__ for one in berth.read_manifest("{apiVersion: berth/v1, kind: Queue, name: a}")]
    ['Queue']
    """
    return _manifest.read(text, file)


__all__ = [*_errors, *_model, "Capacity", "Checkpointable", "Client", "ExecResult", "Executor", "Future", "JobHandle", "LogLine", "R",
           "Requeue", "Usage", "__version__", "aio", "frames", "model", "progress", "ray", "read_manifest"]
