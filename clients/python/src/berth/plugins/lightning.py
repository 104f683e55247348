"""Lightning in tasks of Berth.

    from berth.plugins.lightning import trainer_options
    trainer = lightning.Trainer(strategy="ddp", **trainer_options())

A task of the job is a node of Lightning, which starts a process for each GPU of the task. Under `torchrun` in the task, Lightning's
own environment for it is used. Outside of Berth the options are empty, so the same program runs anywhere.
"""
from __future__ import annotations

import os
from typing import Any

try:
    from lightning.fabric.plugins.environments import ClusterEnvironment
except ImportError:  # installed as pytorch-lightning
    from lightning_fabric.plugins.environments import ClusterEnvironment

CHILD = "BERTH_LIGHTNING_TASK"  # set for the processes that Lightning starts in a task


def in_torchrun() -> bool:
    """Whether torchrun started this process: it sets its own RANK, WORLD_SIZE and LOCAL_RANK."""
    return "TORCHELASTIC_MAX_RESTARTS" in os.environ


def trainer_options() -> dict[str, Any]:
    """Options of Trainer and Fabric for this task: num_nodes, devices, and the environment as a plugin.

    >>> trainer_options()
    {}
    """
    if "BERTH_JOB" not in os.environ:
        return {}
    if in_torchrun():
        return {"num_nodes": int(os.environ["GROUP_WORLD_SIZE"]), "devices": int(os.environ["LOCAL_WORLD_SIZE"])}
    environment = BerthEnvironment()
    return {"num_nodes": environment.tasks, "devices": int(os.environ.get("PET_NPROC_PER_NODE", "1")), "plugins": [environment]}


class BerthEnvironment(ClusterEnvironment):  # type: ignore[misc]
    """A task of Berth as a node of Lightning, by the variables that Berth sets."""

    def __init__(self) -> None:
        super().__init__()
        self._is_child = os.environ.get(CHILD) == os.environ["BERTH_TASK"]
        os.environ[CHILD] = os.environ["BERTH_TASK"]
        # Lightning replaces WORLD_SIZE for its processes, and Berth's is not needed by anyone else here.
        self.tasks = int(os.environ.setdefault("BERTH_LIGHTNING_TASKS", os.environ["WORLD_SIZE"]))
        self._global_rank, self._world_size = self.node_rank(), self.tasks

    @staticmethod
    def detect() -> bool:
        """Whether this process is a task of Berth that torchrun did not start."""
        return "BERTH_JOB" in os.environ and "MASTER_ADDR" in os.environ and not in_torchrun()

    @property
    def creates_processes_externally(self) -> bool:
        """Lightning starts the processes of a task, from its first one."""
        return self._is_child

    @property
    def main_address(self) -> str:
        """Of the node of rank 0."""
        return os.environ["MASTER_ADDR"]

    @property
    def main_port(self) -> int:
        """Reserved for the job."""
        return int(os.environ["MASTER_PORT"])

    def world_size(self) -> int:
        """Processes of all tasks."""
        return self._world_size

    def set_world_size(self, size: int) -> None:
        """By Lightning: tasks times devices."""
        self._world_size = size

    def global_rank(self) -> int:
        """Of this process."""
        return self._global_rank

    def set_global_rank(self, rank: int) -> None:
        """By Lightning."""
        self._global_rank = rank
        try:
            from lightning.fabric.utilities.rank_zero import rank_zero_only
        except ImportError:
            from lightning_fabric.utilities.rank_zero import rank_zero_only
        rank_zero_only.rank = rank

    def local_rank(self) -> int:
        """In the task: each sees its own GPUs only, counted from 0."""
        return int(os.environ["LOCAL_RANK"]) if self._is_child else 0

    def node_rank(self) -> int:
        """The rank of the task."""
        return int(os.environ["RANK"])

    def validate_settings(self, num_devices: int, num_nodes: int) -> None:
        """ValueError for another number of nodes than the job has tasks."""
        if num_nodes != self.tasks:
            raise ValueError(f"num_nodes={num_nodes}, and the job {os.environ['BERTH_JOB']} has {self.tasks} tasks: "
                             "take Trainer(**trainer_options()), or ask for as many tasks")

    def teardown(self) -> None:
        """The next Trainer of this process starts anew."""
        if not self._is_child:
            os.environ.pop(CHILD, None)
