"""What reports show: verdict files and runs, the baseline's history, the profile of the GPU."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilegate_ci.core.files import GateError, read_json
from tilegate_ci.core.git import git
from tilegate_ci.core.model import GFLOPS, RATIO, Device, Run, RunSummary, baseline_path
from tilegate_ci.judge import verdict_file
from tilegate_ci.judge.compare import Comparison

MAX_COMMITS = 60


@dataclass(frozen=True)
class Source:
    """A file to report on: a verdict, an error in place of one, or a run that nobody compared.
    `measured` has the run's numbers by benchmark."""

    path: str
    commit: str | None
    device: Device | None
    comparison: Comparison | None
    error: str | None
    measured: Mapping[str, Mapping[str, Any]]

    @property
    def title(self) -> str:
        parts = [self.path]
        if self.device is not None:
            parts.append(self.device.name)
        if self.commit is not None:
            parts.append(f"commit {self.commit[:12]}{self.commit[40:]}")
        return ", ".join(parts)


@dataclass(frozen=True)
class Revision:
    """The baseline as of a commit: by benchmark, GFLOPS and the share of cuBLAS (or None)."""

    commit: str
    date: str
    values: Mapping[str, tuple[float, float | None]]


@dataclass(frozen=True)
class Profile:
    """Of one shape: FLOP per byte of device memory, by rung; and the memory's peak in GB/s."""

    path: str
    shape: str
    intensity: Mapping[str, float]
    memory_gb_per_s: float | None


def load_source(path: str) -> Source:
    found = verdict_file.load(path)
    if isinstance(found, Run):
        return _of_run(path, found, None)
    if isinstance(found, str):
        return Source(path, None, None, None, found, {})
    return _of_run(path, found.candidate, found)


def _of_run(path: str, run: Run | RunSummary, comparison: Comparison | None) -> Source:
    measured = {name: verdict_file.measured(row) for name, row in run.benchmarks.items()}
    return Source(path, run.commit, run.device, comparison, None, measured)


def history(device: Device, repository: Path) -> list[Revision]:
    """The committed baselines of the device, oldest first. Empty without git, or before the first
    baseline; a version that cannot be read, as one of an older schema, is left out."""
    name = f"bench/baselines/{baseline_path(device).name}"
    try:
        log = git(repository, "log", f"-{MAX_COMMITS}", "--format=%H %cs", "--", name)
    except GateError:
        return []
    found = []
    for line in reversed(log.stdout.splitlines()):
        commit, _, date = line.partition(" ")
        values = _values(git(repository, "show", f"{commit}:{name}").stdout)
        if values:
            found.append(Revision(commit, date, values))
    return found


def _values(text: str) -> dict[str, tuple[float, float | None]]:
    try:
        rows = json.loads(text)["benchmarks"]
        return {name: (float(row[GFLOPS]), row.get(RATIO)) for name, row in rows.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def load_profile(device: Device, repository: Path) -> Profile | None:
    """What `ci/profile` committed for this device, if anything."""
    path = repository / "bench" / "profile" / baseline_path(device).name
    if not path.exists():
        return None
    root = read_json(str(path))
    try:
        return _parse_profile(path.relative_to(repository).as_posix(), root)
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise GateError(f"{path}: not a profile as ci/profile writes it: {problem!r}") from problem


def _parse_profile(path: str, root: Any) -> Profile:
    intensity, peaks = {}, []
    for rung in root["rungs"]:
        kernels = rung["kernels"]
        flop = sum(kernel["flop"] or 0 for kernel in kernels)
        moved = sum(kernel["dram"]["bytes"] or 0 for kernel in kernels)
        if flop and moved:
            intensity[rung["name"]] = flop / moved
        peaks += [_peak(kernel["dram"]) for kernel in kernels]
    known = sorted(peak for peak in peaks if peak)
    return Profile(path, root["shape"], intensity, known[len(known) // 2] if known else None)


def _peak(dram: Mapping[str, Any]) -> float | None:
    """100 % of the memory's throughput: each kernel tells its own and what share that is."""
    rate, share = dram.get("gb_per_s"), dram.get("peak_pct")
    return 100 * rate / share if rate and share and share > 1 else None
