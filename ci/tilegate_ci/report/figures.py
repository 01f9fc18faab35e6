"""What reports show: verdict files and runs, the baseline's history, the profile of the GPU; what
all of them say in the same words; and the figures that they pick from a baseline."""

import math
import re
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tilegate_ci.core import documents
from tilegate_ci.core.files import GateError
from tilegate_ci.core.names import YARDSTICK
from tilegate_ci.formats.profile import ProfileFile
from tilegate_ci.formats.run_file import Role, load
from tilegate_ci.formats.stages import Stage
from tilegate_ci.judge import verdict_file
from tilegate_ci.judge.compare import Comparison, Row
from tilegate_ci.judge.drift import Version, accepted_baselines
from tilegate_ci.judge.paired import estimate
from tilegate_ci.judge.verdict_file import Fleet
from tilegate_ci.model import (
    GFLOPS,
    OWN_RATIO,
    PER_SECOND,
    RATIO,
    Benchmark,
    Device,
    Metric,
    Run,
    RunFile,
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


# What a value of each metric is, in words.
METRIC_NAMES: Mapping[Metric | None, str] = {
    RATIO: "of cuBLAS",
    OWN_RATIO: "of the yardstick",
    PER_SECOND: "time",
    GFLOPS: "GFLOPS",
    None: "GFLOPS, not gated",
}


def duration(seconds: float) -> str:
    """In the unit that leaves one to three digits before the point."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:#.4g} {unit}"
    return f"{seconds / 1e-9:#.4g} ns"


def signed(slowdown: float) -> str:
    return f"{100 * slowdown:+.2f}".replace("-0.00", "+0.00")


def short(commit: str) -> str:
    return commit[:12] + commit[40:]


def commit_link(comparison: Comparison, commit: str) -> str | None:
    """The page of the commit; of one with changes after it, of that commit."""
    return f"{comparison.repository}/commit/{commit[:40]}" if comparison.repository else None


def started(run: Run) -> str:
    """When its first session began; empty where that is not known."""
    return min((session.started for session in run.sessions if session.started), default="")


def conditions(run: Run) -> list[str]:
    """What NVML said of the GPU after each session, in words. It is free in form, so whatever is
    not of ours is left out."""
    after = [session.conditions.get("after") for session in run.sessions if session.conditions]
    known = [side for side in after if isinstance(side, Mapping)]
    facts = [
        f"{words} {_range(values)} {unit}"
        for key, words, unit in (
            ("clock_sm_mhz", "SM clock", "MHz"),
            ("clock_mem_mhz", "memory clock", "MHz"),
            ("power_w", "power", "W"),
            ("temperature_c", "temperature", "°C"),
        )
        if (values := [v for side in known if isinstance(v := side.get(key), (int, float))])
    ]
    reasons = {str(r) for side in known for r in side.get("throttle_reasons") or ()}
    return facts + [f"throttled by {', '.join(sorted(reasons))}"] * bool(reasons)


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return low if low == high else f"{low} to {high}"


# The device whose numbers the README shows.
BASELINE = Path("bench") / "baselines" / "nvidia-h200.json"
PROFILE = Path("bench") / "profile" / "nvidia-h200.json"
VARIANTS = Path("bench") / "results" / "nvidia-h200-variants.json"
SHARE_SIZE = 4096
# Each with its title, which is also the text for readers who do not see it. The README shows the
# first.
PICTURES = {
    "staircase.svg": f"TFLOP/s and share of cuBLAS at {SHARE_SIZE}³, a bar per rung",
    "sizes.svg": "TFLOP/s over size",
    "roofline.svg": f"Roofline at {SHARE_SIZE}³",
}
# Dense INT8 peak of the tensor cores in TOPS, by GPU. NVIDIA's data sheets of the H100 SXM and H200
# SXM: 3,958 with sparsity, which doubles it; the peak of FP16 is half of this one.
INT8_PEAKS = {"NVIDIA H200": 1979.0, "NVIDIA H100 80GB HBM3": 1979.0}
DIGIT_PRODUCTS = 6  # of Int8x3 per product in FP32
RATIO_NOTE = (
    "Share of cuBLAS: cuBLAS's time divided by the rung's, each pair of launches timed in turn; "
    "the median of these ratios, not the quotient of two medians."
)

_PLAIN = re.compile(r"(\w+)/(\d+)x(\d+)x(\d+)")


@dataclass(frozen=True)
class Measured:
    """One rung's rows on hot, tightly packed operands, by (M, N, K)."""

    name: str
    rows: dict[tuple[int, int, int], Benchmark]

    def square(self, size: int) -> Benchmark | None:
        return self.rows.get((size, size, size))

    def shares(self) -> dict[int, float]:
        """Of the squares that were timed beside cuBLAS, by size."""
        known = {size: share(row) for size, row in self.squares().items()}
        return {size: value for size, value in known.items() if value is not None}

    def speeds(self) -> dict[int, float]:
        """TFLOP/s of the squares, by size."""
        return {size: row.summary[GFLOPS] / 1000 for size, row in self.squares().items()}

    def squares(self) -> dict[int, Benchmark]:
        """By size, ascending."""
        return {m: row for (m, n, k), row in sorted(self.rows.items()) if m == n == k}


def at_common_sizes(found: Sequence[Measured]) -> list[Measured]:
    """The rungs at the squares that half of them have, or more: sizes at which they compare."""
    counts = Counter(size for rung in found for size in rung.squares())
    common = [size for size, count in counts.items() if 2 * count >= len(found)] or counts
    return [
        Measured(rung.name, {(s, s, s): row for s, row in rung.squares().items() if s in common})
        for rung in found
    ]


@dataclass(frozen=True)
class Ladder:
    """What the charts of a run show: its rungs, and the sizes at which they compare; which of them
    split operands for tensor cores, and the TFLOP/s that these allow, 0 where that is not known;
    where the numbers come from."""

    found: Sequence[Measured]
    splits: Collection[str] = ()
    note: str = ""
    roof: float = 0.0
    profile: Profile | None = None

    @cached_property
    def squares(self) -> list[Measured]:
        return at_common_sizes(self.found)


def ladder_of(run: Run, rungs: Sequence[Stage], repository: Path, others: bool = False) -> Ladder:
    """`others` are rungs that the run has and `rungs` lacks."""
    return Ladder(
        measured(run, rungs, others),
        {rung.name for rung in rungs if rung.splits},
        f"{provenance(run, run.benchmarks.values())}.",
        INT8_PEAKS.get(run.device.name, 0.0) / DIGIT_PRODUCTS,
        load_profile(run.device, repository),
    )


def rung_picture(rung: Stage) -> str:
    return f"{rung.folder.name}.svg"


def rung_title(rung: Stage) -> str:
    return f"TFLOP/s over size: {rung.name}, the rung before it and cuBLAS; the others in grey"


def split_roof_note(roof: float) -> str:
    peak = f"{DIGIT_PRODUCTS * roof:,.0f} TOPS"
    return f"the dense INT8 peak of the data sheet, {peak}, ÷ {DIGIT_PRODUCTS} digit products"


def read_baseline(repository: Path) -> RunFile | None:
    path = repository / BASELINE
    return load(path, Role.BASELINE) if path.exists() else None


def read_results(repository: Path, what: str) -> RunFile | None:
    """Of bench/results: "shapes", every rung on odd, skinny and unaligned shapes; "sgemm", Sgemm
    on all of bench/shapes.csv; "forms", on squares in all forms; "random", on random problems;
    "sustained", stages alone, for seconds; "variants", the other configurations of some rungs,
    beside the default ones in the same processes; "prepared", products with a prepared B."""
    path = repository / VARIANTS.with_name(f"nvidia-h200-{what}.json")
    return load(path) if path.exists() else None


def read_profile(repository: Path) -> ProfileFile | None:
    path = repository / PROFILE
    return documents.load(ProfileFile, path) if path.exists() else None


def measured(run: Run, rungs: Iterable[Stage], others: bool = False) -> list[Measured]:
    """The rungs that the run has numbers of, in ladder order; after them, if wanted, the others
    that it names."""
    rows: dict[str, dict[tuple[int, int, int], Benchmark]] = {}
    for name, row in run.benchmarks.items():
        plain = _PLAIN.fullmatch(name)
        if plain:
            m, n, k = (int(extent) for extent in plain.groups()[1:])
            rows.setdefault(plain.group(1), {})[m, n, k] = row
    listed = [rung.name for rung in rungs if rung.name in rows]
    more = sorted(rows.keys() - set(listed)) if others else []
    return [Measured(name, rows[name]) for name in [*listed, *more]]


def share(row: Benchmark | None) -> float | None:
    """Speed as a share of cuBLAS, or of the project's yardstick, in the same processes: 1.0 is as
    fast."""
    return None if row is None else row.summary.get(RATIO, row.summary.get(OWN_RATIO))


def gflops(row: Benchmark | None) -> str:
    return "-" if row is None else f"{row.summary[GFLOPS]:,.0f}"


def tflops(row: Benchmark | None) -> str:
    return "-" if row is None else f"{row.summary[GFLOPS] / 1000:.2f}"


def percent(ratio: float | None) -> str:
    return "-" if ratio is None else f"{100 * ratio:.1f} %"


def provenance(run: Run, rows: Iterable[Benchmark]) -> str:
    """Where numbers come from: GPU, software, commits, processes."""
    parts = [machine(run.device.fields)]
    # A row that a merge kept from an older baseline says its own commit.
    commits = {str(row.fields.get("commit", run.commit)) for row in rows}
    each = ", ".join(sorted(map(short, commits)))
    parts.append(f"commit{'s' if len(commits) > 1 else ''} {each}")
    measured_in = f"median of {run.processes} processes" if run.processes > 1 else "one process"
    return ", ".join([*parts, measured_in])


def machine(device: Mapping[str, Any]) -> str:
    named = {"driver": "driver", "cuda": "CUDA", "cublas": "cuBLAS"}
    software = [f"{word} {device[key]}" for key, word in named.items() if key in device]
    return ", ".join([str(device["name"]), *software])
