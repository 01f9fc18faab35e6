"""Recordings as arrays, and counts over sittings with their intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilegate_ci.core.files import GateError
from tilegate_ci.core.model import MIN_DELTA
from tilegate_ci.judge.session import is_canary, void_reason
from tilegate_ci.proof.recording import Process, Recording
from tilegate_ci.proof.rules import Seconds
from tilegate_ci.report.figures import machine

RESAMPLES = 2000


@dataclass(frozen=True)
class Sitting:
    """`suite` and `arms` are without the processes that heat or a power brake voids. An arm's
    key is (rung, plant_percent, build)."""

    name: str
    names: tuple[str, ...]  # the suite's benchmarks, canaries left out
    suite: tuple[Process, ...]
    arms: Mapping[tuple[str, float | None, str | None], Mapping[int, Process]]
    void: int
    made_on: str  # GPU, software, commit


def sittings(recordings: Sequence[Recording]) -> list[Sitting]:
    if not recordings:
        raise GateError("no recording given, and none in bench/recordings")
    first = recordings[0]
    for other in recordings[1:]:
        for field in ("name", "cublas"):
            if first.device.get(field) != other.device.get(field):
                raise GateError(
                    f"{other.path}: device.{field}: {other.device.get(field)!r}, but "
                    f"{first.device.get(field)!r} in {first.path}; replay them apart"
                )
    names = [recording.sitting for recording in recordings]
    if len(set(names)) < len(names):
        raise GateError(f"the same sitting is there twice: {', '.join(sorted(names))}")
    return [_sitting(recording) for recording in recordings]


def _sitting(recording: Recording) -> Sitting:
    sound = [p for p in recording.processes if void_reason(p.fields["conditions"]) is None]
    arms: dict[tuple[str, float | None, str | None], dict[int, Process]] = {}
    for process in sound:
        if process.rung is not None:
            key = (process.rung, process.plant_percent, process.build)
            arms.setdefault(key, {})[process.round] = process
    suite = tuple(process for process in sound if process.rung is None)
    if len(suite) < 2:
        raise GateError(f"{recording.path}: {len(suite)} processes of the suite; replay needs more")
    names = set(suite[0].rows).intersection(*(process.rows for process in suite))
    ordered = [name for name in recording.fields["benchmarks"] if name in names]
    return Sitting(
        recording.sitting,
        tuple(name for name in ordered if not is_canary(name)),
        suite,
        arms,
        len(recording.processes) - len(sound),
        f"{machine(recording.device)}, commit {recording.fields['commit'][:12]}",
    )


def seconds(process: Process, name: str) -> Seconds:
    row = process.rows[name]
    off: Seconds = 1e-6 * np.asarray(row.samples, dtype=float)
    return math.exp(row.log_rung) * (1 + off)


@dataclass(frozen=True)
class Baseline:
    """What a baseline file would hold of these processes."""

    log_ratio: Mapping[str, float]
    delta: Mapping[str, float]


def baseline(processes: Sequence[Process]) -> Baseline:
    values = {
        name: [process.rows[name].log_ratio for process in processes if name in process.rows]
        for name in processes[0].rows
    }
    return Baseline(
        {name: statistics.median(logs) for name, logs in values.items()},
        {name: max(MIN_DELTA, 3 * statistics.stdev(logs)) for name, logs in values.items()},
    )


@dataclass(frozen=True)
class Count:
    """In one sitting: hits among `total` that are not all independent of each other."""

    sitting: str
    hits: int
    total: int
    independent: int = 0


@dataclass(frozen=True)
class Rate:
    counts: tuple[Count, ...]

    @property
    def hits(self) -> int:
        return sum(count.hits for count in self.counts)

    @property
    def total(self) -> int:
        return sum(count.total for count in self.counts)

    @property
    def independent(self) -> int:
        return sum(count.independent for count in self.counts)

    @property
    def share(self) -> float | None:
        return self.hits / self.total if self.total else None

    def interval(self, draw: np.random.Generator) -> tuple[float, float] | None:
        """95 %, bootstrapped over sittings: those are what is independent. None of fewer than
        two."""
        used = [count for count in self.counts if count.total]
        if len(used) < 2:
            return None
        hits = np.array([count.hits for count in used])
        totals = np.array([count.total for count in used])
        chosen = draw.integers(0, len(used), (RESAMPLES, len(used)))
        shares = hits[chosen].sum(axis=1) / totals[chosen].sum(axis=1)
        low, high = np.quantile(shares, (0.025, 0.975))
        return float(low), float(high)


def by_sitting(
    everything: Iterable[Sitting], count: Callable[[Sitting], tuple[int, int, int]]
) -> Rate:
    return Rate(tuple(Count(sitting.name, *count(sitting)) for sitting in everything))
