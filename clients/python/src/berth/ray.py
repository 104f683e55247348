"""A Ray cluster as one gang: berth-ray --nodes 4 --gpu 8 -- python train.py

A task of the job is a node of Ray. All start together, and the command runs beside the head, with RAY_ADDRESS, once every node has
registered. The job ends with the command. If a node is lost, the gang ends or starts again, as `max_retries` says.
"""
from __future__ import annotations

import argparse
import json
import queue
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

from berth import _ray_node, errors
from berth._values import DurationLike
from berth.client import Client
from berth.model import DeviceRequest, Group, Job, JobState, Policy, Resources
from berth.plugins._follow import ENDED, Followed

__all__ = ["cluster", "main"]

STORE_SHARE = 0.3  # of a node's memory for its object store, as Ray divides it
START_S = 180


def cluster(nodes: int, command: Sequence[str] = (), *, resources: Optional[Resources] = None, python: str = sys.executable,
            options: Optional[dict[str, Any]] = None, start_timeout: int = START_S, name: str = "", queue: str = "",
            walltime: Optional[DurationLike] = None, **fields: Any) -> Job:
    """The job of a Ray cluster of `nodes` nodes, each with `resources`.

    `command`: runs beside the head, and ends the job; without one the cluster stays until the job is ended. `python`: the
    interpreter on the nodes, which has Ray. `options`: more options of `ray start`. `start_timeout`: seconds in which all nodes
    must have come. `fields`: other fields of the job. Groups are "head" and "worker", so `image` and the like can be set there.

    >>> job = berth.ray.cluster(4, ["python", "train.py"], resources=berth.R(cpu=8, memory="32Gi", gpu=1), queue="research")
    >>> [(group.name, group.replicas, str(group.resources.gpu)) for group in job.groups]
    [('head', 1, '1'), ('worker', 3, '1')]
    >>> client.check([job])
    []
    """
    if nodes < 1:
        raise ValueError(f"a cluster has at least 1 node, not {nodes}")
    amounts = resources if resources is not None else Resources(cpu=1)
    said: dict[str, Any] = {"start_s": start_timeout, "include-dashboard": "false", **_amounts(amounts), **(options or {})}
    line = [python, "-c", Path(_ray_node.__file__).read_text(encoding="utf-8"), str(nodes), json.dumps(said), *command]
    groups = [Group("head", replicas=1, resources=amounts, command=line, policies=[Policy(event="TaskCompleted", action="Complete")])]
    if nodes > 1:
        groups.append(Group("worker", replicas=nodes - 1, resources=amounts, command=line[:5]))
    return Job(name, queue=queue, walltime=walltime, groups=groups, **fields)


def _amounts(resources: Resources) -> dict[str, Any]:
    """What Ray shall believe a node has: what its task gets."""
    gpus = resources.gpu.count if isinstance(resources.gpu, DeviceRequest) else resources.gpu
    found: dict[str, Any] = {"num-gpus": gpus or 0}
    if resources.cpu is not None:
        found["num-cpus"] = max(int(resources.cpu), 1)
    if resources.memory is not None:
        found["object-store-memory"] = int(resources.memory * STORE_SHARE)
        found["memory"] = resources.memory - found["object-store-memory"]
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="berth-ray", description="Runs a command on a Ray cluster that is one gang of Berth.")
    add = parser.add_argument
    add("--nodes", type=int, required=True, help="nodes of Ray; each is a task")
    add("--cpu", default="1", help="of each node; default 1")
    add("--memory", help='of each node, such as "64Gi"')
    add("--gpu", type=int, help="of each node")
    add("--queue", default="", help="a leaf queue; default: the queue named default")
    add("--name", default="", help="of the job; default: one that the server makes")
    add("--walltime", help='longest run, such as "12h"')
    add("--priority", type=int, default=0, help="higher goes first")
    add("--max-retries", type=int, default=0, help="starts of the whole cluster after it was lost")
    add("--image", default="", help="an image that has Ray")
    add("--python", default="", help="the interpreter on the nodes; default: this one, or python3 of the image")
    add("--option", action="append", default=[], metavar="NAME=VALUE", help="of `ray start`, such as include-dashboard=true")
    add("--start-timeout", type=int, default=START_S, help=f"seconds in which all nodes must have come; default {START_S}")
    add("--detach", action="store_true", help="submit, print the name, and end")
    add("--dry-run", action="store_true", help="print the manifest, and submit nothing")
    add("command", nargs="*", help="runs beside the head; without one the cluster stays until it is cancelled")
    return parser


def _job(given: argparse.Namespace) -> Job:
    python = given.python or ("python3" if given.image else sys.executable)
    options = dict(option.partition("=")[::2] for option in given.option)
    job = cluster(given.nodes, given.command, resources=Resources(cpu=given.cpu, memory=given.memory, gpu=given.gpu), python=python,
                  options=options, start_timeout=given.start_timeout, name=given.name, queue=given.queue, walltime=given.walltime,
                  priority=given.priority, max_retries=given.max_retries)
    for group in job.groups:
        group.image = given.image
    return job


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """The command berth-ray. It shows the output of the head, and returns the exit code of its task.

    >>> berth.ray.main(["--dry-run", "--nodes", "2", "--queue", "research", "--", "python", "x.py"])
    apiVersion: berth/v1
    ...
    """
    given = _parser().parse_args(arguments)
    job = _job(given)
    if given.dry_run:
        print(job.to_yaml(), end="")
        return 0
    with Client() as client:
        try:
            handle = client.submit(job)
            print(handle.name, file=sys.stdout if given.detach else sys.stderr, flush=True)
            return 0 if given.detach else _follow(client, handle.name)
        except errors.BerthError as error:
            print(f"berth-ray: {error}", file=sys.stderr)
            return 1


def _follow(client: Client, name: str) -> int:
    """Shows each attempt of the head. An interrupt cancels the job."""
    states: queue.SimpleQueue[JobState] = queue.SimpleQueue()
    Followed(client).attach(name, states.put)
    shown = False
    try:
        while (state := states.get()) not in ENDED:
            if state == JobState.RUNNING:
                shown = True
                _show(client, name, follow=True)
    except KeyboardInterrupt:
        client.cancel(name, reason="interrupted")
        raise
    if not shown:
        _show(client, name)
    status = client.get(name).status
    if state == JobState.SUCCEEDED or status is None:
        return 0
    print(f"berth-ray: job {name} {str(state).lower()}: {status.message or status.cancel_reason}", file=sys.stderr)
    codes = [task.exit_code for task in client.tasks(job=name) if task.group == "head" and task.exit_code]
    return codes[0] if codes else 1


def _show(client: Client, name: str, follow: bool = False) -> None:
    try:
        for part in client.log_parts(name, "head-0", follow=follow):
            out = sys.stderr if part.stream == "stderr" else sys.stdout
            out.write(part.data.decode("utf-8", "replace"))
            out.flush()
    except errors.BerthError as error:
        print(f"berth-ray: no output: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
