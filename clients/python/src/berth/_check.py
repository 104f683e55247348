"""Checks of a job without a server, in the server's words.

They are the server's rules about the message alone that people break most (server/validation). tests/check_test.py
submits a corpus of wrong jobs to a server and compares every finding. Rules that depend on the server's state, limits or
version are known to the server only: Client.check.
"""
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from berth.errors import Violation
from berth.v1 import job_pb2

_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DNS_LABEL_RULE = ("must be a DNS label (at most 63 of a-z, 0-9 and '-', beginning and ending with a letter or digit)")
_LABEL_KEY_RULE = ("must be [DNS name/]NAME with NAME of at most 63 letters, digits, '-', '_' and '.', beginning and ending "
                   "with a letter or digit")
_LABEL_VALUE_RULE = ("must be empty or at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or "
                     "digit")
_RESOURCE_RULE = 'must be a resource name: a label key other than "cpu", "memory" and "scratch"'
_SIGNALS = {"SIGHUP", "SIGINT", "SIGQUIT", "SIGABRT", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGTERM", "SIGCONT",
            "SIGXCPU", "SIGWINCH"}
MAX_PRIORITY, MAX_GROUPS, MAX_LABELS, MAX_RETRIES, MAX_PATH = 1_000_000, 64, 64, 1000, 4096


def quoted(text: str) -> str:
    """As the server quotes what it was given."""
    shown = text.encode()[:80].decode(errors="ignore")
    escaped = shown.replace("\\", "\\\\").replace('"', '\\"').replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}..."' if len(text.encode()) > 80 else f'"{escaped}"'


def is_label_key(text: str) -> bool:
    """[DNS name/]NAME."""
    prefix, slash, name = text.rpartition("/")
    if slash and not (len(prefix) <= 253 and all(_DNS_LABEL.fullmatch(part) for part in prefix.split("."))):
        return False
    return "/" not in name and _LABEL_NAME.fullmatch(name) is not None


class Findings:
    """Collects violations."""

    def __init__(self) -> None:
        self.found: list[Violation] = []

    def add(self, path: str, text: str) -> None:
        """Something is wrong."""
        self.found.append(Violation(path, text))

    def range(self, path: str, value: int, low: int, high: int) -> None:
        """A number out of its range."""
        if not low <= value <= high:
            self.add(path, f"must be {low}..{high}, is {value}")

    def dns_label(self, path: str, text: str) -> None:
        """A name."""
        if not _DNS_LABEL.fullmatch(text):
            self.add(path, f"{_DNS_LABEL_RULE}, is {quoted(text)}")

    def labels(self, path: str, labels: Mapping[str, str]) -> None:
        """Labels of a job, or that nodes must have."""
        if len(labels) > MAX_LABELS:
            self.add(path, f"at most {MAX_LABELS} entries, has {len(labels)}")
        for key, value in sorted(labels.items()):
            if not is_label_key(key):
                self.add(f'{path}["{key}"]', f"key {_LABEL_KEY_RULE}")
            if value and not _LABEL_NAME.fullmatch(value):
                self.add(f'{path}["{key}"]', f"value {_LABEL_VALUE_RULE}, is {quoted(value)}")


def check_jobs(jobs: Iterable[job_pb2.Job]) -> list[Violation]:
    """What is wrong with the jobs of one request, with paths as of the server."""
    findings = Findings()
    for index, job in enumerate(jobs):
        _job(findings, f"jobs[{index}]", job)
    return findings.found


def _job(findings: Findings, path: str, job: job_pb2.Job) -> None:
    if job.name:
        findings.dns_label(f"{path}.name", job.name)
        if re.fullmatch(r"job-[0-9]+", job.name):
            findings.add(f"{path}.name", f"names of the form job-NUMBER are reserved for the server; omit {quoted(job.name)} "
                                         "or choose another name")
    spec, path = job.spec, f"{path}.spec"
    if spec.queue:
        findings.dns_label(f"{path}.queue", spec.queue)
    findings.range(f"{path}.priority", spec.priority, -MAX_PRIORITY, MAX_PRIORITY)
    if spec.priority_class:
        findings.dns_label(f"{path}.priority_class", spec.priority_class)
        if spec.priority:
            findings.add(f"{path}.priority_class", f"sets the priority; leave out priority, which is {spec.priority}")
    findings.range(f"{path}.max_retries", spec.max_retries, 0, MAX_RETRIES)
    findings.labels(f"{path}.labels", spec.labels)
    _dependencies(findings, f"{path}.dependencies", spec.dependencies)
    if spec.kill_signal and spec.kill_signal not in _SIGNALS:
        findings.add(f"{path}.kill_signal",
                     f"must be a signal name such as SIGTERM, SIGINT or SIGUSR1, is {quoted(spec.kill_signal)}")
    _groups(findings, path, spec)


def _dependencies(findings: Findings, path: str, dependencies: Any) -> None:
    names = set()
    for index, one in enumerate(dependencies):
        if not one.condition:
            findings.add(f"{path}[{index}].condition", "required: AFTER_OK, AFTER_ANY or AFTER_NOT_OK")
        if one.job in names:
            findings.add(f"{path}[{index}].job", f"{quoted(one.job)} is named twice")
        names.add(one.job)


def _groups(findings: Findings, path: str, spec: job_pb2.JobSpec) -> None:
    if not 1 <= len(spec.groups) <= MAX_GROUPS:
        return findings.add(f"{path}.groups", f"must be 1..{MAX_GROUPS} groups, has {len(spec.groups)}")
    first: dict[str, int] = {}
    for index, group in enumerate(spec.groups):
        where = f"{path}.groups[{index}]"
        _group(findings, where, group)
        if group.name in first and group.name:
            findings.add(f"{where}.name", f"{quoted(group.name)} is already the name of groups[{first[group.name]}]")
        first.setdefault(group.name, index)
    tasks = sum(_replicas(group) for group in spec.groups)
    if spec.min_available > tasks:
        findings.add(f"{path}.min_available", f"a gang of {spec.min_available} is larger than the job's {tasks} tasks; at most "
                                              f"{tasks}")
    return None


def _replicas(group: job_pb2.TaskGroup) -> int:
    return group.replicas if group.HasField("replicas") else 1


def _group(findings: Findings, path: str, group: job_pb2.TaskGroup) -> None:
    findings.dns_label(f"{path}.name", group.name)
    replicas = _replicas(group)
    if replicas < 1:
        findings.range(f"{path}.replicas", replicas, 1, 10_000)
    elif not 0 <= group.min_available <= replicas:
        findings.add(f"{path}.min_available", f"must be 0..{replicas} (replicas), is {group.min_available}")
    _resources(findings, f"{path}.resources", group.resources)
    if not group.command and not group.image:
        findings.add(f"{path}.command", "required without image: the program and its arguments")
    elif group.command and not group.command[0]:
        findings.add(f"{path}.command[0]", "the program must not be empty")
    for field in ("command", "args"):
        for index, word in enumerate(getattr(group, field)):
            if "\0" in word:
                findings.add(f"{path}.{field}[{index}]", "must not contain a NUL byte")
    _environment(findings, f"{path}.env", group.env)
    if group.working_dir and not group.working_dir.startswith("/"):
        findings.add(f"{path}.working_dir", f"must be an absolute path, is {quoted(group.working_dir)}")
    findings.labels(f"{path}.node_selector.match_labels", group.node_selector.match_labels)


def _environment(findings: Findings, path: str, variables: Any) -> None:
    names = set()
    for index, one in enumerate(variables):
        where = f"{path}[{index}]"
        if not _ENV_NAME.fullmatch(one.name):
            findings.add(f"{where}.name", "must be letters, digits and '_' and not begin with a digit, is " + quoted(one.name))
        elif one.name in names:
            findings.add(f"{where}.name", f"{one.name} is set twice")
        names.add(one.name)
        if "\0" in one.value:
            findings.add(f"{where}.value", "must not contain a NUL byte")
        if one.from_file and (not one.from_file.startswith("/") or len(one.from_file.encode()) > MAX_PATH):
            findings.add(f"{where}.from_file", f"must be an absolute path of at most {MAX_PATH} bytes")
        if one.from_file and one.value:
            findings.add(f"{where}.value", "not together with fromFile")


def _resources(findings: Findings, path: str, request: Any) -> None:
    kinds: dict[str, int] = {}
    for index, device in enumerate(request.devices):
        where = f"{path}.devices[{index}]"
        if not is_label_key(device.kind) or device.kind in ("cpu", "memory", "scratch"):
            findings.add(f"{where}.kind", f"{_RESOURCE_RULE}, is {quoted(device.kind)}")
        by_memory = device.memory_bytes and not device.count
        if not device.share and not device.cores and not by_memory:
            findings.range(f"{where}.count", device.count, 1, 128)
        if device.share and device.cores:
            findings.add(f"{where}.cores", "set either share or cores, not both")
        parts = device.share * 1000
        if parts and not (1 <= round(parts) <= 999 and abs(parts - round(parts)) < 1e-6):
            findings.add(f"{where}.share", "must be 0.001..0.999 in steps of 0.001")
        kind = "mig" if device.mig else device.kind
        if kind in kinds:
            findings.add(f"{where}.kind", f"at most one request per kind; devices[{kinds[kind]}] also requests {quoted(kind)}")
        kinds.setdefault(kind, index)
