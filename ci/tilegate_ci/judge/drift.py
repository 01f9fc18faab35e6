"""Drift: a creep over accepted baselines, each step of it below the margin."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilegate_ci.core.files import GateError
from tilegate_ci.core.git import git, said
from tilegate_ci.formats.run_file import Role, parse
from tilegate_ci.judge.confirm import is_canary
from tilegate_ci.judge.paired import ALPHA, holm
from tilegate_ci.model import RunFile

MAX_COMMITS = 60
MIN_POINTS = 5  # fewer recordings say too little about a trend and the scatter around it
MOST_RUNGS = 0.5  # of the benchmarks: where more of them drift, it is the machine


@dataclass(frozen=True)
class Version:
    """The baseline as of a commit of this repository."""

    commit: str
    date: str
    run: RunFile


@dataclass(frozen=True)
class Drift:
    """`slower` is the log slow-down along the trend, from the recording of commit `first` to that
    of `last`; `p` is of `it is no more than the margin`."""

    name: str
    slower: float
    delta: float
    p: float
    points: int
    first: str
    last: str
    kind: str


@dataclass(frozen=True)
class Point:
    commit: str
    software: tuple[str | None, ...]  # cuBLAS first
    log_ratio: float
    board: str | None = None


@dataclass(frozen=True)
class Series:
    name: str
    points: Sequence[Point]
    delta: float


def accepted_baselines(name: str, repository: Path) -> list[Version]:
    """The committed versions of the baseline at path `name`, oldest first. One that cannot be read,
    as of an older schema, is left out."""
    log = git(repository, "log", f"-{MAX_COMMITS}", "--format=%H %cs", "--", name)
    if log.returncode:
        raise GateError(f"{name}: its history cannot be read{said(log)}")
    found = []
    for line in reversed(log.stdout.splitlines()):
        commit, _, date = line.partition(" ")
        text = git(repository, "show", f"{commit}:{name}").stdout
        try:
            found.append(Version(commit, date, parse(text, f"{commit}:{name}", Role.BASELINE)))
        except GateError:
            continue
    return found


def drifts(history: Sequence[RunFile]) -> list[Drift]:
    """The benchmarks of the newest of these baselines that became slower by more than their margin
    along a straight line, beyond doubt; the worst first. A chance of at most 1 % that there is a
    false one among them, by Holm. A benchmark that was not recorded with the same cuBLAS five times
    is left out."""
    if not history:
        return []
    return judged(
        Series(name, _points(name, history), row.margin(row.decisive))
        for name, row in history[-1].benchmarks.items()
        if not is_canary(name)
    )


def judged(every: Iterable[Series]) -> list[Drift]:
    """As drifts, of series that are long enough to say something."""
    found = [_trend(series) for series in every if len(series.points) >= MIN_POINTS]
    certain = holm([trend.p for trend in found], ALPHA)
    drifting = [trend for trend, fallen in zip(found, certain) if fallen]
    if len(drifting) > MOST_RUNGS * len(found):
        drifting = [replace(trend, kind="machine") for trend in drifting]
    return sorted(drifting, key=lambda trend: -trend.slower)


def _points(name: str, history: Sequence[RunFile]) -> list[Point]:
    """A row that a baseline kept from the one before is one recording, not two; with another cuBLAS
    a new series begins."""
    points: list[Point] = []
    seen: Mapping[str, list[float]] = {}
    for run in history:
        row = run.benchmarks.get(name)
        if row is None or row.ratio_to_cublas is None or row.per_process == seen:
            continue
        seen = row.per_process
        if points and points[-1].software[0] != run.device.cublas:
            points = []
        bench = "one place" if row.placement_pct is None else "places"  # how bench measured it
        software = (run.device.cublas, run.device.driver, run.device.cuda, bench)
        conditions = (run.sessions[0].conditions or {}) if run.sessions else {}
        board = conditions.get("before", {}).get("board")
        log_ratio = math.log(row.ratio_to_cublas)
        points.append(Point(row.commit or run.commit, software, log_ratio, board))
    return points


def _trend(series: Series) -> Drift:
    """The least-squares line, with a one-sided t test of its fall."""
    from scipy import stats

    points, delta = series.points, series.delta
    span = len(points) - 1
    line = stats.linregress(range(len(points)), [-point.log_ratio for point in points])
    slower, error = span * float(line.slope), span * float(line.stderr)
    p = float(stats.t.sf((slower - delta) / max(error, 1e-9), len(points) - 2))
    first, last = points[0], points[-1]
    kind = "code" if first.software == last.software else "measurement"
    if None not in (first.board, last.board) and first.board != last.board:
        kind = "machine"
    return Drift(series.name, slower, delta, p, len(points), first.commit, last.commit, kind)
