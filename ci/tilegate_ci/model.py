"""Runs, benchmarks and their margins, processes, verdicts."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import (
    BeforeValidator,
    Field,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from tilegate_ci.core.documents import (
    Commit,
    Count,
    Document,
    Finite,
    Given,
    Line,
    Model,
    Natural,
    Open,
    Positive,
)
from tilegate_ci.core.names import canonical_name

# The checkout that this file is in; of a package that pip installed, the current folder.
_CHECKOUT = Path(__file__).resolve().parents[2]
REPOSITORY = _CHECKOUT if (_CHECKOUT / "ci" / "gate").exists() else Path.cwd()
T = TypeVar("T")

# Metrics of a benchmark, each a median over processes. Higher is faster in every one.
Metric = Literal["gflops", "ratio_to_cublas", "pct_peak", "per_second", "ratio_to_yardstick"]
GFLOPS: Metric = "gflops"
RATIO: Metric = "ratio_to_cublas"
METRICS: tuple[Metric, ...] = (GFLOPS, RATIO, "pct_peak")  # of bench
# Of the benchmarks of other projects: 1 / seconds, and the yardstick's time / the benchmark's.
PER_SECOND: Metric = "per_second"
OWN_RATIO: Metric = "ratio_to_yardstick"
# A verdict is by the first of these that both sides have.
DECISIVE = (RATIO, OWN_RATIO, PER_SECOND, GFLOPS)
OTHER: Final = "other"  # the kind of device that other projects' benchmarks ran on, whatever it is


# The margin of a benchmark: the slow-down that passes, by how far the processes of its baseline
# lie apart. Values are the logarithms of what they measured, in the order of the processes.
MIN_DELTA = 0.01
WANDERS = 0.6  # a drift: steps between processes are below this share of the standard deviation


def delta_of(per_process: Sequence[float]) -> float:
    """max(1 %, 3 x the sample standard deviation of the logs); the values themselves are given."""
    logs = [math.log(value) for value in per_process]
    return max(MIN_DELTA, 3 * statistics.stdev(logs)) if len(logs) > 1 else MIN_DELTA


def margins(logs: Any) -> tuple[Any, Any]:
    """The margin, and whether it is that of a drift: they scatter beyond the least margin because
    they wander from process to process, and such a baseline says little about the next session. Its
    margin is by the scatter around a straight line, or from process to process: pairs of processes
    stand next to each other, so that a drift widens their differences little. The processes are the
    last axis: of many benchmarks at once both are arrays."""
    import numpy as np

    values = np.asarray(logs)
    count = values.shape[-1]
    off = values - values.mean(axis=-1, keepdims=True)
    times = np.arange(count) - (count - 1) / 2
    slope = off @ times / max(times @ times, 1)
    spread, step, line = (
        np.maximum(MIN_DELTA, 3 * np.sqrt((deviations**2).sum(axis=-1) / max(freedom, 1)))
        for deviations, freedom in (
            (off, count - 1),
            (np.diff(values, axis=-1), 2 * (count - 1)),  # as a variance, of what has no trend
            (off - slope[..., None] * times, count - 2),
        )
    )
    drifts = (step < WANDERS * spread) & (count > 2)
    return np.where(drifts, np.minimum(line, step), spread)[()], drifts


class Device(Open):
    kind: Literal["cuda", "simt", "other"]
    name: Line
    driver: Given[str] = None
    cuda: Given[str] = None
    cublas: Given[Line] = None  # needed to compare runs
    compute_capability: Given[Count] = None
    multiprocessors: Given[Count] = None

    @model_validator(mode="after")
    def _cuda_has_cublas(self) -> "Device":
        if self.kind == "cuda" and self.cublas is None:
            raise ValueError('"cublas" is missing')
        return self

    def differences(self, other: "Device") -> list[str]:
        """What keeps times on the two devices from being compared, one phrase per field.

        No time is gated on simt, so there a run from any machine will do."""
        fields = ("kind",) if self.kind == other.kind == "simt" else ("kind", "name", "cublas")
        return [
            f"{field} {getattr(self, field)!r} in the baseline, "
            f"{getattr(other, field)!r} in the candidate"
            for field in fields
            if getattr(self, field) != getattr(other, field)
        ]


class Summary(Open):
    """What was measured of one benchmark: medians, over repetitions or over processes."""

    gflops: Given[Positive] = None
    ratio_to_cublas: Given[Positive] = None  # time of cuBLAS / time of the rung
    pct_peak: Given[Positive] = None
    per_second: Given[Positive] = None  # these two of other projects' benchmarks, in place of them
    ratio_to_yardstick: Given[Positive] = None
    bytes: Given[Count] = None
    # By how much its slowest place in memory is slower than its quickest.
    placement_pct: Given[Annotated[Finite, Field(ge=0)]] = None
    # Whether the result of the timed launches was checked and right.
    verified: Annotated[bool, BeforeValidator(lambda value: value is True)] = False
    # Of another project that did not declare how its results are checked.
    unchecked: Annotated[bool, Field(exclude_if=lambda value: not value)] = False

    @model_validator(mode="after")
    def _of_bench_or_of_others(self) -> "Summary":
        if self.gflops is None and self.per_second is None:
            raise ValueError('"gflops" is missing')
        if self.gflops is not None and (self.unchecked or self.per_second is not None):
            raise ValueError("unchecked and per_second are of other projects' benchmarks")
        return self

    @property
    def sound(self) -> bool:
        """The result was verified, or the project declares no verification."""
        return self.verified or self.unchecked

    @property
    def summary(self) -> dict[str, float]:
        """The metrics that there are."""
        found = {metric: getattr(self, metric) for metric in (*METRICS, OWN_RATIO, PER_SECOND)}
        return {metric: value for metric, value in found.items() if value is not None}

    @property
    def decisive(self) -> Metric:
        return next(metric for metric in DECISIVE if getattr(self, metric) is not None)


Series = Annotated[list[Positive], Field(min_length=1)]


class Benchmark(Summary):
    """With its evidence, where that is known: a value for each process, by metric."""

    per_process: dict[str, Series] = {}


class RunRow(Benchmark):
    """One row of a run's file."""

    delta: Annotated[Given[Positive], Field(lt=1)] = None
    key: bool = False
    commit: Given[Commit] = None  # after a merge: where the row was recorded
    per_process: dict[str, Series]

    @field_validator("per_process")
    @classmethod
    def _of_the_same_processes(cls, values: dict[str, list[float]]) -> dict[str, list[float]]:
        if len({len(series) for series in values.values()}) > 1:
            counts = [f"{metric} has {len(series)}" for metric, series in sorted(values.items())]
            raise ValueError(f"differing numbers of processes: {', '.join(counts)}")
        return values

    @model_validator(mode="after")
    def _has_its_evidence(self) -> "RunRow":
        for metric in DECISIVE:
            if metric in self.summary and metric not in self.per_process:
                raise ValueError(f'per_process: "{metric}" is missing, evidence for the summary')
            if metric in self.per_process and metric not in self.summary:
                raise ValueError(f'per_process: "{metric}" has no summary beside it')
        return self

    def margin(self, metric: str) -> float:
        """The slow-down that the gate lets pass, as a log ratio."""
        known = self.delta if metric == self.decisive else None
        known = delta_of(self.per_process[metric]) if known is None else known
        return min(known, self._margins(metric)[0]) if self.drifts(metric) else known

    def drifts(self, metric: str) -> bool:
        """Whether its processes wander, so that it takes pairs to judge by it."""
        return self._margins(metric)[1]

    def _margins(self, metric: str) -> tuple[float, bool]:
        margin, drifts = margins([math.log(value) for value in self.per_process[metric]])
        return float(margin), bool(drifts)


class Protocol(Open):
    processes: Count
    min_time_s: Given[Positive] = None
    seed: Given[Natural] = None
    plant: Given[str] = None  # a slow-down planted to prove the gate: never a baseline
    peak_gflops_per_process: Given[list[Positive]] = None


class Session(Open):
    started: Given[str] = None
    processes: Given[Count] = None
    conditions: Given[dict[str, Any]] = None


class Run(Model):
    """What was measured, where and when: what a verdict file says of either side."""

    path: Line
    commit: Commit
    device: Device
    sessions: list[Session] = []
    benchmarks: Mapping[Line, Benchmark] = Field(alias="measured")

    @property
    def dirty(self) -> bool:
        return self.commit.endswith("-dirty")

    @property
    def processes(self) -> int:
        """Processes behind the row that has fewest: the evidence counts, not the protocol."""
        return min(len(row.per_process[row.decisive]) for row in self.benchmarks.values())


def _named(rows: dict[str, T], info: ValidationInfo) -> dict[str, T]:
    """By names as bench writes them; another project's are called whatever they like."""
    device = info.data.get("device")  # None: it is wrong, which is said first
    if device is None or device.kind == OTHER:
        return rows
    return {canonical_name(name): row for name, row in rows.items()}


class RunFile(Run, Document, Open):
    """A file, with all that a verdict needs. The reader adds `path` and what it let pass."""

    path: SkipJsonSchema[str] = Field(default="", exclude=True)
    warnings: SkipJsonSchema[tuple[str, ...]] = Field(default=(), exclude=True)
    protocol: Protocol
    sessions: list[Session]
    benchmarks: dict[Line, RunRow]

    @field_validator("benchmarks", mode="wrap")
    @classmethod
    def _each_once(
        cls, rows: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> dict[str, RunRow]:
        found: dict[str, RunRow] = _named(handler(rows), info)
        if not found:
            raise ValueError("no benchmark in it")
        if len(found) < len(rows):
            ((name, _),) = Counter(map(canonical_name, rows)).most_common(1)
            raise ValueError(f"duplicate benchmark: {name} is there twice")
        return found


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
    stem = "simt" if device.kind == "simt" else device_stem(device.name)
    return REPOSITORY / "bench" / "baselines" / f"{stem}.json"


def device_stem(name: str) -> str:
    """nvidia-h200 of NVIDIA H200."""
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in name.lower()).split()
    return "-".join(words)


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
    readings: dict[Line, Reading] = Field(min_length=1)
    # Why some of another project's benchmarks did not run.
    skipped: dict[Line, str] = Field(default={}, exclude_if=lambda reasons: not reasons)
    source: str = Field(default="", exclude=True)  # the file that it was read from

    @field_validator("readings")
    @classmethod
    def _by_name(cls, rows: dict[str, Reading], info: ValidationInfo) -> dict[str, Reading]:
        return _named(rows, info)


class Verdict(Enum):
    """Worst first: the order of the reports."""

    ERROR = "error"
    REGRESSED = "regressed"
    INCONCLUSIVE = "inconclusive"
    INCOMPARABLE = "incomparable"
    NEW = "new"
    PASS = "pass"
    IDENTICAL = "identical"  # the machine code is the same, so there is nothing to judge
    IMPROVED = "improved"


SEVERITY = {verdict: rank for rank, verdict in enumerate(Verdict)}

_EXIT_CODES = {
    Verdict.ERROR: 2,
    Verdict.REGRESSED: 1,
    Verdict.INCONCLUSIVE: 3,
    Verdict.INCOMPARABLE: 4,
}

# An error may hide a regression, and a regression must not be excused by the rest.
_PRECEDENCE = (2, 1, 4, 3)

EXIT_MEANINGS = {
    0: "nothing regressed",
    1: "regressed: slower than the baseline by more than the margin",
    2: "error: something could not be judged",
    3: "inconclusive: too noisy to say",
    4: "incomparable: another device or software stack, or a session that cannot be judged",
}


def exit_code(verdicts: Iterable[Verdict]) -> int:
    return worst(_EXIT_CODES.get(verdict, 0) for verdict in verdicts)


def worst(codes: Iterable[int]) -> int:
    found = {*codes}
    return next((code for code in _PRECEDENCE if code in found), 0)
