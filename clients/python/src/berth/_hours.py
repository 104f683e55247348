"""Hours of resources: bases of the generated dataclasses of the usage history."""
from __future__ import annotations

from typing import Any

from berth._message import Message

MILLI_SECONDS = 3_600_000  # of an hour of one core or device
MEBIBYTE_SECONDS = 1024 * 3600  # of an hour of a GiB


class Hours(Message):
    """The base of ResourceTime. The fields are those of the API; these are hours."""

    cpu_milli_seconds: Any
    memory_mebibyte_seconds: Any
    scratch_mebibyte_seconds: Any
    count_milli_seconds: Any

    def device_hours(self, kind: str) -> float:
        """Of a kind of devices, or of an extended resource: 1.0 is one device for an hour.

        >>> berth.ResourceTime(count_milli_seconds={"nic": 7_200_000}).device_hours("nic")
        2.0
        """
        return float(self.count_milli_seconds.get(kind, 0)) / MILLI_SECONDS

    @property
    def gpu_hours(self) -> float:
        """Hours of one GPU.

        >>> berth.ResourceTime(count_milli_seconds={"gpu": 1_800_000}).gpu_hours
        0.5
        """
        return self.device_hours("gpu")

    @property
    def core_hours(self) -> float:
        """Hours of one core.

        >>> berth.ResourceTime(cpu_milli_seconds=3_600_000).core_hours
        1.0
        """
        return float(self.cpu_milli_seconds) / MILLI_SECONDS

    @property
    def memory_gib_hours(self) -> float:
        """Hours of a GiB of memory.

        >>> berth.ResourceTime(memory_mebibyte_seconds=3_686_400).memory_gib_hours
        1.0
        """
        return float(self.memory_mebibyte_seconds) / MEBIBYTE_SECONDS

    @property
    def scratch_gib_hours(self) -> float:
        """Hours of a GiB of the nodes' local disks.

        >>> berth.ResourceTime(scratch_mebibyte_seconds=3_686_400).scratch_gib_hours
        1.0
        """
        return float(self.scratch_mebibyte_seconds) / MEBIBYTE_SECONDS


class Held(Message):
    """The base of what has a field `held`. Its hours are here, too; 0 if nothing was held."""

    held: Any

    @property
    def gpu_hours(self) -> float:
        """Hours of GPUs that were held.

        >>> berth.UsageRow(held=berth.ResourceTime(count_milli_seconds={"gpu": 3_600_000})).gpu_hours
        1.0
        """
        return 0.0 if self.held is None else float(self.held.gpu_hours)

    @property
    def core_hours(self) -> float:
        """Hours of cores that were held.

        >>> berth.UsageRow().core_hours
        0.0
        """
        return 0.0 if self.held is None else float(self.held.core_hours)

    @property
    def memory_gib_hours(self) -> float:
        """Hours of a GiB of memory that were held.

        >>> berth.UsageRow().memory_gib_hours
        0.0
        """
        return 0.0 if self.held is None else float(self.held.memory_gib_hours)
