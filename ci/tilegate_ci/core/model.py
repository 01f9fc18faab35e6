"""A recorded run: what baseline and candidate files hold, and the statistics of one row."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMA = 1
KINDS = ("cuda", "simt")
MIN_DELTA = 0.01
REPOSITORY = Path(__file__).resolve().parents[3]

# Metrics of a row, each a median over processes. Higher is faster in every one.
GFLOPS, RATIO = "gflops", "ratio_to_cublas"
METRICS = (GFLOPS, RATIO, "pct_peak")

ROW_FIELDS = frozenset({*METRICS, "bytes", "commit", "delta", "key", "per_process", "verified"})
RUN_FIELDS = frozenset({"schema", "commit", "device", "protocol", "sessions", "benchmarks"})


@dataclass(frozen=True)
class Device:
    kind: str
    name: str
    cublas: str | None
    fields: Mapping[str, Any]

    def differences(self, other: Device) -> list[str]:
        """What keeps times on the two devices from being compared, one phrase a field.

        No time is gated on simt, so there a run from any machine will do."""
        fields = ("kind",) if self.kind == other.kind == "simt" else ("kind", "name", "cublas")
        return [
            f"{field} {getattr(self, field)!r} in the baseline, "
            f"{getattr(other, field)!r} in the candidate"
            for field in fields
            if getattr(self, field) != getattr(other, field)
        ]


@dataclass(frozen=True)
class Benchmark:
    """One row. `fields` is the row as its file has it, fields unknown to us included."""

    name: str
    summary: Mapping[str, float]
    per_process: Mapping[str, tuple[float, ...]]
    delta: float | None
    key: bool
    verified: bool
    fields: Mapping[str, Any]

    @property
    def decisive(self) -> str:
        return RATIO if RATIO in self.summary else GFLOPS

    def margin(self, metric: str) -> float:
        """The slow-down that the gate lets pass, as a log ratio."""
        if self.delta is not None and metric == self.decisive:
            return self.delta
        return delta_of(self.per_process[metric])


@dataclass(frozen=True)
class Run:
    """A file. `fields` is its top level as written; `warnings` is what the reader let pass."""

    path: str
    commit: str
    device: Device
    benchmarks: Mapping[str, Benchmark]
    fields: Mapping[str, Any]
    warnings: tuple[str, ...]

    @property
    def dirty(self) -> bool:
        return self.commit.endswith("-dirty")

    @property
    def processes(self) -> int:
        """Processes behind the row that has fewest: the evidence counts, not the protocol."""
        return min(len(row.per_process[GFLOPS]) for row in self.benchmarks.values())


def delta_of(per_process: Sequence[float]) -> float:
    """max(1 %, 3 x the sample standard deviation of the logs)."""
    if len(per_process) < 2:
        return MIN_DELTA
    return max(MIN_DELTA, 3 * statistics.stdev(math.log(value) for value in per_process))


def log_slowdown(baseline: float, candidate: float) -> float:
    return math.log(baseline) - math.log(candidate)


def slowdown(baseline: float, candidate: float) -> float:
    """The relative increase in time: 0.05 takes 1.05 times as long, below zero is faster. Speeds
    are given, and time is their inverse."""
    return relative(log_slowdown(baseline, candidate))


def relative(log_ratio: float) -> float:
    """The relative increase that a log ratio stands for, as reports show it."""
    return math.expm1(min(log_ratio, 700.0))


def baseline_path(device: Device) -> Path:
    """Where the baseline of a device is committed."""
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in device.name.lower()).split()
    stem = "simt" if device.kind == "simt" else "-".join(words)
    return REPOSITORY / "bench" / "baselines" / f"{stem}.json"
