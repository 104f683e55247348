"""MLflow in tasks of Berth: runs have tags that say which job they belong to.

Nothing has to be called: MLflow finds the provider of tags when this package is installed. In a job of several tasks that log to one
run, `log_system_metrics()` keeps the system metrics of each task apart.
"""
from __future__ import annotations

import os

import mlflow

from berth.plugins._mlflow_context import BerthContext

__all__ = ["BerthContext", "log_system_metrics"]


def log_system_metrics() -> None:
    """From now on, runs log CPU, memory, disk, network and GPU, under system/TASK/ in a task of Berth."""
    if "BERTH_TASK" in os.environ:
        mlflow.set_system_metrics_node_id(os.environ["BERTH_TASK"])
    mlflow.enable_system_metrics_logging()
