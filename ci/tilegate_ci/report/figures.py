"""What the tables and the pictures show, picked from a baseline."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilegate_ci.core.model import RATIO, Benchmark, Role, Run, load
from tilegate_ci.core.stages import Stage as Rung

# The device whose numbers the README shows.
BASELINE = Path("bench") / "baselines" / "nvidia-h200.json"
PROFILE = Path("bench") / "profile" / "nvidia-h200.json"
VARIANTS = Path("bench") / "results" / "nvidia-h200-variants.json"
YARDSTICK = "Cublas"
SHARE_SIZE = 4096

_PLAIN = re.compile(r"(\w+)/(\d+)x(\d+)x(\d+)")


@dataclass(frozen=True)
class Measured:
    """One rung's rows on hot, tightly packed operands, by (M, N, K)."""

    name: str
    rows: dict[tuple[int, int, int], Benchmark]

    def square(self, size: int) -> Benchmark | None:
        return self.rows.get((size, size, size))

    def squares(self) -> dict[int, Benchmark]:
        """By size, ascending."""
        return {m: row for (m, n, k), row in sorted(self.rows.items()) if m == n == k}


def read_baseline(repository: Path) -> Run | None:
    path = repository / BASELINE
    return load(str(path), Role.BASELINE) if path.exists() else None


def read_variants(repository: Path) -> Run | None:
    """The other configurations of some rungs, beside the default ones in the same processes."""
    path = repository / VARIANTS
    return load(str(path), Role.CANDIDATE) if path.exists() else None


def read_profile(repository: Path) -> dict[str, Any] | None:
    path = repository / PROFILE
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def measured(run: Run, rungs: Iterable[Rung]) -> list[Measured]:
    """The rungs that the run has numbers of, in ladder order."""
    rows: dict[str, dict[tuple[int, int, int], Benchmark]] = {}
    for name, row in run.benchmarks.items():
        plain = _PLAIN.fullmatch(name)
        if plain:
            m, n, k = (int(extent) for extent in plain.groups()[1:])
            rows.setdefault(plain.group(1), {})[m, n, k] = row
    return [Measured(rung.name, rows[rung.name]) for rung in rungs if rung.name in rows]


def share(row: Benchmark | None) -> float | None:
    """Speed as a share of cuBLAS in the same processes: 1.0 is as fast."""
    return None if row is None else row.summary.get(RATIO)


def provenance(run: Run, rows: Iterable[Benchmark]) -> str:
    """Where numbers come from: GPU, software, commits, processes."""
    parts = [machine(run.device.fields)]
    # A row that a merge kept from an older baseline says its own commit.
    commits = {str(row.fields.get("commit", run.commit)) for row in rows}
    told = ", ".join(sorted(commit[:12] + commit[40:] for commit in commits))
    parts.append(f"commit{'s' if len(commits) > 1 else ''} {told}")
    return ", ".join([*parts, f"median of {run.processes} processes"])


def machine(device: Mapping[str, Any]) -> str:
    """The GPU and its software."""
    named = {"driver": "driver", "cuda": "CUDA", "cublas": "cuBLAS"}
    told = [f"{word} {device[key]}" for key, word in named.items() if key in device]
    return ", ".join([str(device["name"]), *told])
