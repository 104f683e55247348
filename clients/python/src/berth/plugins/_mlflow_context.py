"""Tags of MLflow's runs. MLflow loads this while it is being imported."""
from __future__ import annotations

import os

from mlflow.tracking.context.abstract_context import RunContextProvider

TAGS = {"berth.job": "BERTH_JOB", "berth.job_uid": "BERTH_JOB_UID", "berth.queue": "BERTH_QUEUE", "berth.task": "BERTH_TASK",
        "berth.attempt": "BERTH_ATTEMPT", "berth.node": "BERTH_NODE", "berth.nodes": "BERTH_NODES", "berth.rank": "RANK",
        "berth.world_size": "WORLD_SIZE", "berth.array_job": "BERTH_ARRAY_JOB", "berth.array_index": "BERTH_ARRAY_INDEX",
        "berth.gpus": "BERTH_DEVICES_GPU", "berth.device_share": "BERTH_DEVICE_SHARE"}
LONGEST = 5000  # of a tag, as MLflow takes it


class BerthContext(RunContextProvider):  # type: ignore[misc]
    """The tags of a run that begins in a task."""

    def in_context(self) -> bool:
        """Whether this is a task of Berth."""
        return "BERTH_JOB" in os.environ

    def tags(self) -> dict[str, str]:
        """Those whose variable is set.

        >>> BerthContext().tags()
        {}
        """
        return {tag: os.environ[name][:LONGEST] for tag, name in TAGS.items() if os.environ.get(name)}
