"""Pairs the benchmarks of two runs by name and judges each pair."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import pydantic
from pydantic import AfterValidator, ConfigDict, computed_field, model_validator

from tilegate_ci.core.documents import Commit, Finite, Line, Natural, Schema, Text
from tilegate_ci.core.files import printable
from tilegate_ci.core.names import canonical_name, matching, rerun_command
from tilegate_ci.model import (
    DECISIVE,
    GFLOPS,
    MIN_DELTA,
    OTHER,
    SEVERITY,
    Benchmark,
    Metric,
    Run,
    RunFile,
    RunRow,
    Verdict,
    exit_code,
    log_slowdown,
    relative,
)

_SHAPE = re.compile(r"/(\d+)x(\d+)x(\d+)")


@dataclass(frozen=True)
class Margin:
    """The slow-down that passes. To be one, it must exceed both: the relative margin, 0.01 is 1 %,
    and the absolute one."""

    relative: float = MIN_DELTA
    seconds: float = 0.0

    def delta(self, base_s: float) -> float:
        """As a log ratio, of a benchmark that takes so long at the base."""
        return math.log1p(max(self.relative, self.seconds / base_s))

    def absolute(self, base_s: float | None) -> float | None:
        """The absolute one, where it decides because it is the wider one."""
        return self.seconds if base_s and self.seconds / base_s > self.relative else None


NO_MARGIN = Margin(0.0)  # beside that of the baseline
MAX_INCONCLUSIVE = 0.02  # of the suite; a benchmark marked key is always too many


@pydantic.dataclasses.dataclass(frozen=True, config=ConfigDict(strict=True))
class Row:
    """One benchmark's verdict. `metric` and `delta` are None where no time is gated. What was
    measured in pairs has the slow-down of each, one-sided 95 % bounds of their mean, and the
    p-value of `it is no more than delta`."""

    name: Line
    verdict: Verdict
    note: Text
    rerun: Text
    key: bool
    metric: Metric | None = None
    baseline: Finite | None = None
    candidate: Finite | None = None
    slowdown: Finite | None = None
    delta: Finite | None = None
    lower: Finite | None = None
    upper: Finite | None = None
    p: Finite | None = None
    share: Finite | None = None  # of the errors allowed, that the last look could use
    pairs: tuple[Finite, ...] = ()
    margin_s: Finite | None = None  # the absolute margin, where it is wider than the relative one
    placement: Finite | None = None  # how much slower its slowest place in memory is
    again: Text = ""  # the command that measures the pairs of a red row again


def _worst_first(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    return tuple(sorted(rows, key=lambda r: (SEVERITY[r.verdict], -(r.slowdown or 0.0), r.name)))


def _https(address: str) -> str:
    """It becomes a link, so nothing else."""
    if not address.startswith("https://"):
        raise ValueError(f"must begin with https://, not {address!r}")
    return address


@pydantic.dataclasses.dataclass(frozen=True, config=ConfigDict(strict=True))
class Comparison:
    """The verdict file. Rows worst first. `differences` says why the two runs as wholes are
    incomparable. The pairs are of `base_commit`, which need not be the commit of the baseline's
    recording."""

    baseline: Run
    candidate: Run
    rows: Annotated[tuple[Row, ...], AfterValidator(_worst_first)]
    differences: tuple[Line, ...]
    left_out: Natural
    warnings: tuple[Line, ...]
    base_commit: Commit | None = None
    repository: Annotated[Line, AfterValidator(_https)] | None = None  # its address on the web
    kind: Literal["verdict"] = "verdict"  # a run's file has no kind
    schema: Schema = 1

    @model_validator(mode="after")
    def _names_are_canonical(self) -> "Comparison":
        """Of our own benchmarks; another project's are called whatever they like."""
        if self.candidate.device.kind != OTHER:
            for name in (*self.candidate.benchmarks, *(row.name for row in self.rows)):
                canonical_name(name)
        return self

    @computed_field  # type: ignore[prop-decorator]
    @property
    def exit_code(self) -> int:
        verdicts = {row.verdict for row in self.rows}
        if self.differences:
            verdicts.add(Verdict.INCOMPARABLE)  # even where every row is new or in error
        undecided = [row for row in self.rows if row.verdict is Verdict.INCONCLUSIVE]
        few = len(undecided) <= MAX_INCONCLUSIVE * len(self.rows)
        if few and not any(row.key for row in undecided):
            verdicts.discard(Verdict.INCONCLUSIVE)
        return exit_code(verdicts)


def compare(
    baseline: RunFile, candidate: RunFile, pattern: str | None = None, margin: Margin = NO_MARGIN
) -> Comparison:
    """Judges the benchmarks whose name `pattern` is found in; the others are left out. `margin` may
    widen those of the baseline."""
    names = sorted({*baseline.benchmarks, *candidate.benchmarks})
    chosen = matching(names, pattern)
    differences = tuple(baseline.device.differences(candidate.device))
    pairs = {n: (baseline.benchmarks.get(n), candidate.benchmarks.get(n)) for n in chosen}
    rows = [
        judge(name, old, new, candidate.device.kind, comparable=not differences, margin=margin)
        for name, (old, new) in pairs.items()
    ]
    return Comparison(
        baseline=baseline,
        candidate=candidate,
        rows=tuple(rows),
        differences=differences,
        left_out=len(names) - len(chosen),
        warnings=(*baseline.warnings, *candidate.warnings, *_metric_warnings(candidate, pairs)),
    )


def judge(
    name: str,
    old: RunRow | None,
    new: RunRow | None,
    device_kind: str,
    comparable: bool = True,
    margin: Margin = NO_MARGIN,
) -> Row:
    """The verdict on one pair; either side, but not both, may be None."""
    metric = _metric(old, new, device_kind)
    shown = metric or GFLOPS
    row = Row(
        name=name,
        verdict=Verdict.PASS,
        note="",
        rerun=rerun_command(name, device_kind),
        key=any(side.key for side in (old, new) if side is not None),
        metric=metric,
        baseline=old.summary.get(shown) if old is not None else None,
        candidate=new.summary.get(shown) if new is not None else None,
        placement=new.placement_pct / 100 if new and new.placement_pct is not None else None,
    )
    if new is None:
        return replace(row, verdict=Verdict.ERROR, note="missing in the candidate")
    if not new.sound:
        return replace(row, verdict=Verdict.ERROR, note="not verified in the candidate")
    if old is None:
        return replace(row, verdict=Verdict.NEW, note="not in the baseline")
    if not old.sound:
        return replace(row, verdict=Verdict.ERROR, note="not verified in the baseline")
    if not comparable:
        return replace(row, verdict=Verdict.INCOMPARABLE, note="other device or cuBLAS")
    if metric is None:
        return row
    delta, base_s = old.margin(metric), seconds(name, old)
    if base_s and margin.delta(base_s) > delta:
        delta = margin.delta(base_s)
        row = replace(row, margin_s=margin.absolute(base_s))
    slower_by = log_slowdown(old.summary[metric], new.summary[metric])
    verdict = Verdict.PASS
    if abs(slower_by) > delta:
        verdict = Verdict.REGRESSED if slower_by > 0 else Verdict.IMPROVED
    return replace(row, verdict=verdict, slowdown=relative(slower_by), delta=delta)


def seconds(name: str, row: Benchmark | None) -> float | None:
    """Of one call; None where that is not known."""
    shape = _SHAPE.search(name)
    if row is None:
        return None
    if row.per_second is not None:
        return 1 / row.per_second
    if row.gflops is None or shape is None:
        return None
    return 2 * math.prod(map(int, shape.groups())) / row.gflops / 1e9


def _metric(old: RunRow | None, new: RunRow | None, kind: str) -> Metric | None:
    """What decides: the ratio where both sides have one; on simt no time at all."""
    if kind == "simt":
        return None
    sides = [side.summary for side in (old, new) if side is not None]
    return next((metric for metric in DECISIVE if all(metric in s for s in sides)), GFLOPS)


def _metric_warnings(
    candidate: RunFile, pairs: Mapping[str, tuple[RunRow | None, RunRow | None]]
) -> list[str]:
    """A ratio on one side only means weaker evidence: times move with the clock, ratios do not."""
    found = []
    for name, (old, new) in pairs.items():
        if old is not None and new is not None and old.decisive != new.decisive:
            ratio, time = sorted((old.decisive, new.decisive), key=DECISIVE.index)
            why = f"{ratio} on one side only; compared by {time}"
            found.append(printable(f"{candidate.path}: {name}: {why}"))
    return found
