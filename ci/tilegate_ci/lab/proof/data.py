"""Recordings as arrays, and counts over sittings with their intervals."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilegate_ci.core.files import GateError
from tilegate_ci.judge.session import is_canary, void_reason
from tilegate_ci.lab.proof.recording import Arm, Recording
from tilegate_ci.lab.proof.rules import Seconds
from tilegate_ci.model import MIN_DELTA, Process, drifts, steady_delta
from tilegate_ci.report.figures import machine

RESAMPLES = 2000


@dataclass(frozen=True)
class Sitting:
    """`suite` and `arms` are without the processes that heat or a power brake voids; those of an
    arm are by round."""

    name: str
    names: tuple[str, ...]  # the suite's benchmarks, canaries left out
    suite: tuple[Process, ...]
    arms: Mapping[Arm, Mapping[int, Process]]
    void: int
    made_on: str  # GPU, software, commit
    board: str | None  # a name for the GPU itself, where the recording has one

    @cached_property
    def baseline(self) -> "Baseline":
        return baseline(self.suite)


def sittings(recordings: Sequence[Recording]) -> list[Sitting]:
    if not recordings:
        raise GateError("no recording given, and none in bench/recordings")
    first = recordings[0]
    for other in recordings[1:]:
        for field in ("name", "cublas"):
            here, there = (getattr(each.file.device, field) for each in (first, other))
            if here != there:
                raise GateError(
                    f"{other.path}: device.{field}: {there!r}, but {here!r} in {first.path}; "
                    "replay them apart"
                )
    names = [recording.file.sitting for recording in recordings]
    if len(set(names)) < len(names):
        raise GateError(f"the same sitting is there twice: {', '.join(sorted(names))}")
    return [_sitting(recording) for recording in recordings]


def _sitting(recording: Recording) -> Sitting:
    sound = {
        step: process
        for step, process in recording.processes.items()
        if void_reason(process.conditions) is None
    }
    arms: dict[Arm, dict[int, Process]] = {}
    for step, process in sound.items():
        arms.setdefault(step.arm, {})[step.round] = process
    suite = tuple(arms.pop(Arm(), {}).values())
    if len(suite) < 2:
        raise GateError(f"{recording.path}: {len(suite)} processes of the suite; replay needs more")
    names = set(suite[0].readings).intersection(*(process.readings for process in suite))
    return Sitting(
        recording.file.sitting,
        tuple(n for n in recording.file.benchmarks if n in names and not is_canary(n)),
        suite,
        arms,
        len(recording.processes) - len(sound),
        f"{machine(recording.file.device.fields)}, commit {recording.file.commit[:12]}",
        suite[0].conditions.before.get("board"),
    )


def seconds(process: Process, name: str) -> Seconds:
    """Of each replay that the recording kept."""
    return np.asarray(process.readings[name].rung_s)


@dataclass(frozen=True)
class Baseline:
    """What a baseline file would hold of these processes."""

    log_ratio: Mapping[str, float]
    delta: Mapping[str, float]
    drifting: frozenset[str] = frozenset()


def baseline(processes: Sequence[Process]) -> Baseline:
    values = {
        name: [p.readings[name].log_ratio for p in processes if name in p.readings]
        for name in processes[0].readings
    }
    wander = frozenset(name for name, logs in values.items() if drifts(logs))
    return Baseline(
        {name: statistics.median(logs) for name, logs in values.items()},
        {
            name: steady_delta(logs)
            if name in wander
            else max(MIN_DELTA, 3 * statistics.stdev(logs))
            for name, logs in values.items()
        },
        wander,
    )


def upper_bound(hits: int, total: int) -> float:
    """Of a share: one-sided, 95 %, by Clopper and Pearson."""
    from scipy import stats

    return float(stats.beta.ppf(0.95, hits + 1, total - hits)) if hits < total else 1.0


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
