"""Jobs, nodes, shares and usage of queues as pandas frames. Needs pandas: pip install berth[frames].

A frame is written by pandas itself: frame.to_csv, and with pyarrow frame.to_parquet.
"""
from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Optional

from berth._usage import Capacity, Usage
from berth.model import EndedJob, Job, Node, QueueShares, ResourceList, ResourceTime

if TYPE_CHECKING:
    import pandas

__all__ = ["capacity_frame", "ended_jobs_frame", "jobs_frame", "nodes_frame", "shares_frame", "usage_frame"]


def _frame(rows: list[dict[str, Any]], columns: list[str]) -> pandas.DataFrame:
    import pandas
    return pandas.DataFrame(rows, columns=columns)


def _requested(job: Job, kind: str) -> float:
    """What all tasks of the job request together: cores, bytes, or devices."""
    total = 0.0
    for group in job.groups:
        request, replicas = group.resources, 1 if group.replicas is None else group.replicas
        if request is None:
            continue
        if kind == "cpu":
            amount = request.cpu or 0.0
        elif kind == "memory":
            amount = float(request.memory or 0)
        else:
            amount = _devices(request.gpu)
        total += amount * replicas
    return total


def _devices(request: Any) -> float:
    if request is None or isinstance(request, int):
        return float(request or 0)
    return float(request.share or request.cores / 100 or request.count)


def _seconds(begin: Optional[datetime], end: Optional[datetime]) -> Optional[float]:
    return None if begin is None or end is None else (end - begin).total_seconds()


JOBS = ["name", "uid", "queue", "user", "owner", "state", "priority", "tasks", "cpu", "memory", "gpu", "submit_time", "start_time",
        "end_time", "wait_s", "run_s", "gpu_hours", "starts", "retries", "evictions", "message"]


def jobs_frame(jobs: Iterable[Job]) -> pandas.DataFrame:
    """A row for each job, of Client.jobs or Client.history.

    `cpu`, `memory` (bytes) and `gpu` are what all its tasks request; `wait_s` is from submission to the latest start, `run_s`
    from there to the end, and `gpu_hours` the product of run_s and gpu: what earlier starts used is not in it.

    >>> frame = berth.frames.jobs_frame(client.history(queue="research"))
    >>> "Succeeded" in set(frame["state"])
    True
    """
    rows = []
    for job in jobs:
        status = job.status
        if status is None:
            raise ValueError(f"job {job.name} has no status: it is not from the server")
        gpu, run_s = _requested(job, "gpu"), _seconds(status.start_time, status.end_time)
        rows.append({
            "name": job.name, "uid": job.uid, "queue": job.queue, "user": job.user, "owner": status.owner,
            "state": str(status.state), "priority": job.priority,
            "tasks": sum(1 if group.replicas is None else group.replicas for group in job.groups),
            "cpu": _requested(job, "cpu"), "memory": _requested(job, "memory"), "gpu": gpu, "submit_time": status.submit_time,
            "start_time": status.start_time, "end_time": status.end_time,
            "wait_s": _seconds(status.submit_time, status.start_time), "run_s": run_s,
            "gpu_hours": None if run_s is None else run_s * gpu / 3600, "starts": status.start_count,
            "retries": status.retries, "evictions": status.evictions, "message": status.message})
    return _frame(rows, JOBS)


def _amounts(prefix: str, amounts: Optional[ResourceList]) -> dict[str, float]:
    if amounts is None:
        return {}
    found = {f"{prefix}_cpu": amounts.cpu, f"{prefix}_memory": amounts.memory, f"{prefix}_scratch": amounts.scratch}
    found.update({f"{prefix}_{kind}": count for kind, count in amounts.counts.items()})
    return {name: float(value) for name, value in found.items() if value is not None}


SHARES = ["allocated", "guarantee", "deserved", "fair_share", "demand", "borrowed", "lent", "limit"]


def shares_frame(shares: Iterable[QueueShares]) -> pandas.DataFrame:
    """A row for each queue, of Client.shares; columns such as "allocated_gpu" and "borrowed_cpu".

    >>> frame = berth.frames.shares_frame(client.shares())
    >>> "research" in set(frame["queue"])
    True
    """
    rows = []
    for one in shares:
        row: dict[str, Any] = {"queue": one.queue, "parent": one.parent, "dominant_share": one.dominant_share}
        for name in SHARES:
            row.update(_amounts(name, getattr(one, name)))
        rows.append(row)
    columns = ["queue", "parent", "dominant_share"]
    return _frame(rows, columns + sorted({name for row in rows for name in row} - set(columns)))


def nodes_frame(nodes: Iterable[Node]) -> pandas.DataFrame:
    """A row for each node, of Client.nodes: state, and capacity, allocated and free amounts.

    >>> frame = berth.frames.nodes_frame(client.nodes())
    >>> list(frame["capacity_cpu"])
    [8.0, 8.0]
    """
    rows = []
    for node in nodes:
        status = node.status
        if status is None:
            raise ValueError(f"node {node.name} has no status: it is not from the server")
        row: dict[str, Any] = {"name": node.name, "state": str(status.state), "cordoned": status.cordoned,
                               "draining": status.draining, "tasks": status.tasks}
        for name in ("capacity", "allocated", "free"):
            row.update(_amounts(name, getattr(status, name)))
        rows.append(row)
    columns = ["name", "state", "cordoned", "draining", "tasks"]
    return _frame(rows, columns + sorted({name for row in rows for name in row} - set(columns)))


UNITS = ["gpu_hours", "core_hours", "memory_gib_hours", "scratch_gib_hours"]


def _hours(time: Optional[ResourceTime]) -> dict[str, float]:
    """Hours by unit: those of UNITS, and "nic_hours" for other kinds."""
    if time is None:
        return dict.fromkeys(UNITS, 0.0)
    others = {f"{kind.replace('-', '_')}_hours": time.device_hours(kind) for kind in sorted(time.count_milli_seconds)}
    return {"gpu_hours": time.gpu_hours, "core_hours": time.core_hours, "memory_gib_hours": time.memory_gib_hours,
            "scratch_gib_hours": time.scratch_gib_hours, **others}


def _time_frame(entries: Iterable[Any], columns: list[str], parts: list[str], main: str) -> pandas.DataFrame:
    """A row for each entry: its `columns`, and hours of each of its `parts`. Those of `main` have no suffix."""
    rows: list[dict[str, Any]] = []
    units = list(UNITS)
    for entry in entries:
        row = {name: getattr(entry, "from_" if name == "from" else name) for name in columns}
        for part in parts:
            for unit, hours in _hours(getattr(entry, part)).items():
                row[unit if part == main else f"{unit}_{part}"] = hours
                units += [unit] if unit not in units else []
        rows.append(row)
    hours_of = [unit if part == main else f"{unit}_{part}" for unit in units for part in parts]
    frame = _frame(rows, columns + hours_of)
    return frame.fillna(dict.fromkeys(hours_of, 0.0))


USAGE = ["from", "to", "queue", "queue_path", "user", "account", "priority_class", "device_model"]
USAGE_PARTS = ["held", "lost_to_preemption", "lost_to_faults", "paused", "reserved", "waiting"]


def usage_frame(usage: Usage) -> pandas.DataFrame:
    """A row for each period and key, of Client.usage; the columns of `berth usage -o csv`.

    "gpu_hours", "core_hours", "memory_gib_hours" and "scratch_gib_hours" were held, "gpu_hours_lost_to_preemption" and so on
    are parts of that. Other kinds of devices have columns of their own, such as "nic_hours". Keys that were not asked for
    are empty.

    >>> frame = berth.frames.usage_frame(client.usage(by=["queue"], since="24h"))
    >>> float(frame.set_index("queue").loc["research", "core_hours"]) > 0
    True
    """
    return _time_frame(usage.rows, USAGE, USAGE_PARTS, "held")


CAPACITY_PARTS = ["total", "overcommitted", "held", "reserved", "free", "fragmented", "cordoned", "down", "unhealthy"]


def capacity_frame(capacity: Capacity) -> pandas.DataFrame:
    """A row for each period, of Client.capacity; columns such as "gpu_hours_total" and "gpu_hours_held".

    >>> frame = berth.frames.capacity_frame(client.capacity(since="24h"))
    >>> bool((frame["core_hours_free"] <= frame["core_hours_total"]).all())
    True
    """
    return _time_frame(capacity.rows, ["from", "to", "device_model"], CAPACITY_PARTS, "")


ENDED = ["uid", "name", "queue", "queue_path", "user", "owner", "account", "priority_class", "state", "submit_time",
         "first_start_time", "last_start_time", "end_time", "tasks", "start_count", "retries", "evictions", "exit_code",
         "exit_signal", "message"]
ENDED_PARTS = ["held", "paused", "lost_to_preemption", "lost_to_faults"]


def ended_jobs_frame(jobs: Iterable[EndedJob]) -> pandas.DataFrame:
    """A row for each job, of Client.ended_jobs, with what it held in its whole life and what of it was lost.

    >>> frame = berth.frames.ended_jobs_frame(client.ended_jobs(queue="research", since="24h"))
    >>> "hello" in set(frame["name"])
    True
    """
    frame = _time_frame(jobs, ENDED, ENDED_PARTS, "held")
    frame["state"] = frame["state"].map(str)
    return frame
