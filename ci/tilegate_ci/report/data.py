"""What reports show: verdict files and runs, the baseline's history, the profile of the GPU."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilegate_ci.core import documents
from tilegate_ci.core.files import GateError
from tilegate_ci.core.names import YARDSTICK
from tilegate_ci.formats.profile import ProfileFile
from tilegate_ci.judge import verdict_file
from tilegate_ci.judge.compare import Comparison, Row
from tilegate_ci.judge.drift import Version, accepted_baselines
from tilegate_ci.judge.fleet import Fleet
from tilegate_ci.judge.paired import estimate
from tilegate_ci.model import (
    GFLOPS,
    OWN_RATIO,
    RATIO,
    Device,
    Run,
    baseline_path,
    relative,
    slowdown,
)


@dataclass(frozen=True)
class Source:
    """A file to report on: a verdict, an error in place of one, or a run without a comparison;
    of a fleet the whole, and after it each model, of which `code` may say that it was not
    judged."""

    path: str
    found: Comparison | Fleet | Run | str
    code: int = 2

    @property
    def comparison(self) -> Comparison | None:
        return self.found if isinstance(self.found, Comparison) else None

    @property
    def fleet(self) -> Fleet | None:
        return self.found if isinstance(self.found, Fleet) else None

    @property
    def error(self) -> str:
        return self.found if isinstance(self.found, str) else ""

    @property
    def run(self) -> Run | None:
        """The candidate of a comparison."""
        if self.comparison is not None:
            return self.comparison.candidate
        return self.found if isinstance(self.found, Run) else None


@dataclass(frozen=True)
class Profile:
    """Of one square size: 2·M·N·K FLOP, however a rung computes them, per byte of device memory, by
    rung; the memory's peak in GB/s."""

    path: str
    size: int
    intensity: Mapping[str, float]
    memory_gb_per_s: float


@dataclass(frozen=True)
class Pooled:
    """The geometric mean of several benchmarks' times, as a slow-down. Bounds, one-sided at 95 %,
    where all of them were measured in the same number of pairs."""

    name: str
    count: int
    slowdown: float
    lower: float | None
    upper: float | None


def load_sources(path: str) -> list[Source]:
    found = verdict_file.load(path)
    return of_fleet(found) if isinstance(found, Fleet) else [Source(path, found)]


def of_fleet(fleet: Fleet) -> list[Source]:
    members = fleet.models
    each = [Source(m.path, m.verdict or m.error, m.exit_code) for m in members]
    return [Source("all models", fleet), *each]


def history(device: Device, repository: Path) -> list[Version]:
    """The committed baselines of the device, oldest first. Empty without git, or before the first
    baseline; a version that cannot be read, as one of an older schema, is left out."""
    try:
        return accepted_baselines(f"bench/baselines/{baseline_path(device).name}", repository)
    except GateError:
        return []


def load_profile(device: Device, repository: Path) -> Profile | None:
    """What `ci/gate profile` committed for this device, if anything; None too where the counters
    do not tell the memory's peak, or the shape is no square."""
    path = repository / "bench" / "profile" / baseline_path(device).name
    if not path.exists():
        return None
    found = documents.load(ProfileFile, path)
    m, n, k = map(int, found.shape.split("x"))
    intensity: dict[str, float] = {}
    peaks: list[tuple[float, float]] = []
    for rung in found.rungs:
        moved = sum(kernel.dram.bytes or 0 for kernel in rung.kernels)
        if moved:
            intensity[rung.name] = 2 * m * n * k / moved
        for dram in (kernel.dram for kernel in rung.kernels):
            if dram.gb_per_s and dram.peak_pct and dram.peak_pct > 1:
                peaks.append((dram.peak_pct, 100 * dram.gb_per_s / dram.peak_pct))
    # Each kernel tells its rate and what share of the peak that is; the largest is most exact.
    share, peak = max(peaks, default=(0.0, 0.0))
    name = path.relative_to(repository).as_posix()
    return Profile(name, m, intensity, peak) if share and m == n == k else None


def of_processes(row: Row, comparison: Comparison) -> dict[str, list[float]]:
    """The slow-down of each process of either side, against the baseline's median."""
    if row.metric is None or row.baseline is None:
        return {}
    found = {}
    for side, run in (("baseline", comparison.baseline), ("candidate", comparison.candidate)):
        benchmark = run.benchmarks.get(row.name)
        values = benchmark.per_process.get(row.metric, ()) if benchmark else ()
        found[side] = [slowdown(row.baseline, value) for value in values]
    return found


def pooled(rows: Iterable[Row]) -> list[Pooled]:
    """Over all benchmarks that were judged by their time, then by rung, worst first; without the
    yardsticks."""
    timed = [r for r in rows if r.slowdown is not None and not r.name.startswith(f"{YARDSTICK}/")]
    timed = [row for row in timed if row.metric == OWN_RATIO] or timed
    if not timed:
        return []
    groups: dict[str, list[Row]] = {}
    for row in timed:
        groups.setdefault(row.name.partition("/")[0], []).append(row)
    rungs = [_pool(name, group) for name, group in groups.items()]
    every = "all rungs" if all(row.metric in (RATIO, GFLOPS) for row in timed) else "all"
    return [_pool(every, timed), *sorted(rungs, key=lambda found: -found.slowdown)]


def _pool(name: str, rows: Sequence[Row]) -> Pooled:
    mean = statistics.fmean(math.log1p(row.slowdown or 0.0) for row in rows)
    pairs = {len(row.pairs) for row in rows}
    if len(pairs) > 1 or max(pairs) < 2:
        return Pooled(name, len(rows), relative(mean), None, None)
    logs = [[math.log1p(value) for value in row.pairs] for row in rows]
    found = estimate([statistics.fmean(values) for values in zip(*logs)], 0.0)
    return Pooled(name, len(rows), relative(mean), relative(found.lower), relative(found.upper))
