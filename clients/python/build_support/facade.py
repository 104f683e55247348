"""berth/client.py: the blocking client, a method for each of aio.Client and aio.JobHandle."""
import ast
import re

HEAD = '''\
"""The blocking client, written by the build from aio.py. Calls run in one background thread of the process."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Optional, Union

from berth import _values, aio
from berth._exec import ExecResult
from berth._log import LogLine
from berth._loop import Loop
from berth._settings import TIMEOUT_S
from berth._submit import AnyJob
from berth._usage import Capacity, Usage, UsageKey, UsageStep
from berth.errors import Violation
'''

CLIENT = '''

class Client:
    """{doc}
    """

    def __init__({init}) -> None:
        self._loop = Loop.shared()
        self._client = aio.Client({pass_init})

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connections of the client. Calls under way fail.

        >>> berth.Client("127.0.0.1:7070").close()
        """
        self._loop.run(self._client.close())

    def _handle(self, handle: aio.JobHandle) -> JobHandle:
        return JobHandle(self, handle)

    @staticmethod
    def _plain(job: Union[JobHandle, str]) -> Union[aio.JobHandle, str]:
        return job._handle if isinstance(job, JobHandle) else job
'''

HANDLE = '''

class JobHandle:
    """{doc}
    """

    def __init__(self, client: Client, handle: aio.JobHandle) -> None:
        self._client, self._handle, self._loop = client, handle, client._loop

    @property
    def name(self) -> str:
        """The name of the job.

        >>> client.job("hello").name
        'hello'
        """
        return self._handle.name

    @property
    def uid(self) -> int:
        """The number of the job, which never repeats; 0 if the server has not been asked.

        >>> client.job("hello").uid
        0
        """
        return self._handle.uid

    def __repr__(self) -> str:
        return repr(self._handle)
'''


def blocking(text):
    """The docstring of the blocking method: examples without await."""
    text = re.sub(r"(?<!\w)\(await ((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))+)\)", r"\1", text)
    text = text.replace("\\", "\\\\")
    return text.replace("async for", "for").replace("await ", "").replace("berth.aio.Client", "berth.Client")


def arguments(function):
    """(as declared, as passed on), without self."""
    args = function.args
    declared, passed = ["self"], []
    defaults = [None] * (len(args.args) - len(args.defaults)) + list(args.defaults)
    for one, default in list(zip(args.args, defaults))[1:]:
        declared.append(declaration(one, default))
        passed.append(one.arg)
    if args.kwonlyargs:
        declared.append("*")
    for one, default in zip(args.kwonlyargs, args.kw_defaults):
        declared.append(declaration(one, default))
        passed.append(f"{one.arg}={one.arg}")
    return ", ".join(declared), ", ".join(passed)


def declaration(one, default):
    text = f"{one.arg}: {ast.unparse(one.annotation)}"
    return text if default is None else f"{text} = {ast.unparse(default)}"


def doc_lines(function):
    return ['        """' + blocking(ast.get_docstring(function, clean=False)).rstrip(), '        """']


def method(function, target, handles):
    """The lines of one method. `handles`: the methods of the class whose arguments may be handles."""
    declared, passed = arguments(function)
    returns = ast.unparse(function.returns)
    name = function.name
    if name in handles:
        passed = passed.replace("jobs", "[self._plain(job) for job in jobs]", 1)
    call = f"self.{target}.{name}({passed})"
    if isinstance(function, ast.AsyncFunctionDef) and returns.startswith("AsyncIterator"):
        returns, body = returns.removeprefix("Async"), f"return self._loop.iterate({call})"
    elif isinstance(function, ast.AsyncFunctionDef) and returns == "JobHandle":
        body = f"return self._handle(self._loop.run({call}))"
    elif isinstance(function, ast.AsyncFunctionDef) and returns == "list[JobHandle]":
        body = f"return [self._handle(one) for one in self._loop.run({call})]"
    elif isinstance(function, ast.AsyncFunctionDef):
        body = f"self._loop.run({call})" if returns == "None" else f"return self._loop.run({call})"
    else:
        body = f"return self._handle({call})"
    return ["", f"    def {name}({declared}) -> {returns}:", *doc_lines(function), f"        {body}"]


def classes(texts):
    found = {}
    for text in texts:
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef):
                found[node.name] = node
    return found


def public(node):
    return [one for one in node.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))
            and not one.name.startswith("_") and one.name != "close"]


def model_names(texts):
    """The imports from berth.model of the sources."""
    found = set()
    for text in texts:
        for node in ast.parse(text).body:
            if isinstance(node, ast.ImportFrom) and node.module == "berth.model":
                found |= {one.name for one in node.names}
    return sorted(found)


def module(*sources):
    """The text of the module, from those of aio.py, _cluster_calls.py and _history_calls.py."""
    known = classes(sources)
    client, handle = known["Client"], known["JobHandle"]
    init = next(one for one in client.body if isinstance(one, ast.FunctionDef) and one.name == "__init__")
    declared, passed = arguments(init)
    lines = [HEAD + f"from berth.model import {', '.join(model_names(sources))}", "",
             '__all__ = ["Client", "JobHandle"]',
             HANDLE.format(doc=blocking(ast.get_docstring(handle, clean=False)).rstrip()).rstrip("\n")]
    for one in public(handle):
        lines += method(one, "_handle", ())
    lines.append(CLIENT.format(doc=blocking(ast.get_docstring(client, clean=False)).rstrip(), init=declared,
                               pass_init=passed).rstrip("\n"))
    for one in [*public(client), *public(known["ClusterCalls"]), *public(known["HistoryCalls"])]:
        lines += method(one, "_client", ("wait",))
    return "\n".join(lines) + "\n"
