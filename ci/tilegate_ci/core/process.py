"""What one process of bench measured: the unit of evidence. Collecting, gate runs, their journal
and recordings all hold this."""

import math
from typing import Any

from pydantic import Field

from tilegate_ci.core.formats import Finite, Given, Line, Model, Name, Positive
from tilegate_ci.core.model import Device, Summary


class Reading(Summary):
    """One benchmark in one process: medians over its repetitions. The seconds of each replay are
    there where bench was asked for them, and the number of the place where the operands lay; those
    of cuBLAS are 0 where there is none. `kernels` are the symbols of what a configuration
    launches."""

    planted_percent: Given[Finite] = None
    place: list[int] = Field(default=[], exclude=True)
    rung_s: list[float] = Field(default=[], exclude=True)
    cublas_s: list[float] = Field(default=[], exclude=True)
    kernels: str = Field(default="", exclude=True)

    @property
    def log_ratio(self) -> float:
        """What the gate compares: log(time of cuBLAS / time of the rung) where there is one."""
        return math.log(getattr(self, self.decisive))


class Conditions(Model):
    """What NVML said of the GPU around a process; empty where it said nothing."""

    before: dict[str, Any] = {}
    after: dict[str, Any] = {}


class Process(Model):
    device: Device
    seed: Given[int] = None
    min_time_s: Given[Positive] = None
    plant: Given[str] = None  # the slow-down that bench was asked to plant: "<rung>:<percent>"
    peak_gflops: Given[Positive] = None
    started: Given[str] = None
    wall_s: float = Field(default=0, ge=0)
    conditions: Conditions = Conditions()
    readings: dict[Name, Reading] = Field(min_length=1)
    source: str = Field(default="", exclude=True)  # the file that it was read from


class OtherProcess(Process):
    """Of another project. `skipped` says why some of its benchmarks did not run."""

    readings: dict[Line, Reading] = Field(min_length=1)
    skipped: dict[Line, str] = {}
