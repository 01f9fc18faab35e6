"""A recorded run: what baseline and candidate files hold, and the statistics of one benchmark."""

import math
import statistics
from collections import Counter
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from tilegate_ci.core import formats
from tilegate_ci.core.files import GateError, check_finite, fault, parse_json, read_text
from tilegate_ci.core.formats import (
    Commit,
    Count,
    Document,
    Finite,
    Given,
    Line,
    Name,
    Natural,
    Open,
    Positive,
)
from tilegate_ci.core.margin import delta_of, drifts, steady_delta
from tilegate_ci.core.names import canonical_name


def _repository() -> Path:
    """The checkout that this file is in; of a package that pip installed, the current folder."""
    folder = Path(__file__).resolve().parents[3]
    return folder if (folder / "ci" / "gate").exists() else Path.cwd()


REPOSITORY = _repository()

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

# A summary is written with six digits of the median of numbers written with six digits.
AGREEMENT = 1e-3


class Role(Enum):
    """What a run is read as. It says which disagreement between a summary and its per-process
    values would hide a regression, and so is an error: a baseline that looks slower than its
    evidence, a candidate that looks faster, and either of them in a run to be accepted."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"
    ACCEPTED = "accepted"


class Device(Open):
    kind: Literal["cuda", "simt", "other"]
    name: Line
    driver: Given[str] = None
    cuda: Given[str] = None
    cublas: Given[Line] = None  # without it nobody could tell whether two runs are comparable
    compute_capability: Given[Count] = None
    multiprocessors: Given[Count] = None

    @model_validator(mode="after")
    def _cuda_has_cublas(self) -> "Device":
        if self.kind == "cuda" and self.cublas is None:
            raise ValueError('"cublas" is missing')
        return self

    @property
    def fields(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

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
    # Only true is: the timed launches' result was checked and right.
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
        """Nothing says that the result was wrong, and somebody looked who had to."""
        return self.verified or self.unchecked

    @property
    def summary(self) -> dict[str, float]:
        """The metrics that there are."""
        found = {metric: getattr(self, metric) for metric in (*METRICS, OWN_RATIO, PER_SECOND)}
        return {metric: value for metric, value in found.items() if value is not None}

    @property
    def fields(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

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
        return min(known, steady_delta(self._logs(metric))) if self.drifts(metric) else known

    def drifts(self, metric: str) -> bool:
        """Whether its processes wander, so that it takes pairs to judge by it."""
        return drifts(self._logs(metric))

    def _logs(self, metric: str) -> list[float]:
        return [math.log(value) for value in self.per_process[metric]]


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


class Run(Open):
    """What was measured, where and when."""

    commit: Commit
    device: Device
    sessions: list[Session]
    benchmarks: Mapping[str, Benchmark]
    _path: str = PrivateAttr("")

    @property
    def path(self) -> str:
        return self._path

    @property
    def fields(self) -> dict[str, Any]:
        """As its file has it, fields unknown to us included."""
        return self.model_dump(mode="json", by_alias=True)

    @property
    def dirty(self) -> bool:
        return self.commit.endswith("-dirty")

    @property
    def processes(self) -> int:
        """Processes behind the row that has fewest: the evidence counts, not the protocol."""
        return min(len(row.per_process[row.decisive]) for row in self.benchmarks.values())


class RunFile(Run, Document, Open):
    """A file, with all that a verdict needs."""

    protocol: Protocol
    benchmarks: dict[Name, RunRow]
    _warnings: tuple[str, ...] = PrivateAttr(())

    @field_validator("benchmarks", mode="wrap")
    @classmethod
    def _each_once(cls, rows: Any, handler: ValidatorFunctionWrapHandler) -> dict[str, RunRow]:
        found: dict[str, RunRow] = handler(rows)
        if not found:
            raise ValueError("no benchmark in it")
        if len(found) < len(rows):
            ((name, _),) = Counter(map(canonical_name, rows)).most_common(1)
            raise ValueError(f"duplicate benchmark: {name} is there twice")
        return found

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the reader let pass."""
        return self._warnings


class OtherRunFile(RunFile):
    """Of another project: its benchmarks are called whatever they like."""

    benchmarks: dict[Line, RunRow]


def load(path: str | Path, role: Role = Role.CANDIDATE) -> RunFile:
    """Reads and checks a file; GateError says what is wrong with it. Whatever could hide a
    regression is an error that names its place."""
    return parse(read_text(path), str(path), role)


def parse(text: str, path: str, role: Role = Role.CANDIDATE) -> RunFile:
    root = parse_json(text, path)
    if isinstance(root, dict) and "context" in root and "schema" not in root:
        raise GateError(
            f"{path}: Google Benchmark's own output; `ci/gate collect` makes a run of it"
        )
    check_finite(root, path)
    device = root.get("device") if isinstance(root, dict) else None
    other = isinstance(device, dict) and device.get("kind") == OTHER
    run = formats.validated(OtherRunFile if other else RunFile, text, path)
    run._path = path
    for name, row in run.benchmarks.items():
        run._warnings += tuple(_disagreements(name, row, path, role))
        if role is Role.BASELINE:
            run._warnings += tuple(_margin(name, row, path))
    return run


def _margin(name: str, row: RunRow, path: str) -> list[str]:
    """A warning about a margin that is narrower than its evidence gives, which can only make the
    gate stricter; an error for a wider one, which would hide slow-downs."""
    known = delta_of(row.per_process[row.decisive])
    if row.delta is None or abs(row.delta - known) <= AGREEMENT * known:
        return []
    word = "wider" if row.delta > known else "narrower"
    message = fault(
        path,
        ("benchmarks", name, "delta"),
        f"{row.delta:.6g} is {word} than what its per_process values give, {known:.6g}",
    )
    if row.delta > known:
        raise message
    return [f"{message}; judged as written"]


def _disagreements(name: str, row: RunRow, path: str, role: Role) -> list[str]:
    """Warnings about summaries that are not the median of their evidence; an error for a lie that
    hides a slow-down. The reader cannot know which of the two numbers was edited: the harmless
    direction is judged as it is written, because that can only make the gate stricter."""
    warnings = []
    for metric, written in row.summary.items():
        if metric not in row.per_process:
            continue
        median = statistics.median(row.per_process[metric])
        if abs(written - median) <= AGREEMENT * median:
            continue
        faster = written > median
        message = fault(
            path,
            ("benchmarks", name, metric),
            f"{written:.6g} is {'faster' if faster else 'slower'} than the median of its "
            f"per_process values, {median:.6g}",
        )
        if role is Role.ACCEPTED or faster == (role is Role.CANDIDATE):
            raise message
        warnings.append(f"{message}; judged as written")
    return warnings


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
