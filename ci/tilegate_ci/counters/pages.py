"""What the committed counters say of a rung, on the rung's own page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tilegate_ci.core.ladder import read_rungs
from tilegate_ci.counters.table import KINDS, SHAPES, excess_of, load_baseline, unit_of

BEGIN, END = "<!-- counters:begin -->", "<!-- counters:end -->"
_BLOCK = re.compile(f"{re.escape(BEGIN)}\n.*?{re.escape(END)}", re.DOTALL)


def pages(repository: Path, baseline: Path) -> dict[Path, str]:
    """The text that each page with such a block should have."""
    table = load_baseline(baseline)
    result = {}
    for rung in read_rungs(repository):
        path = repository / "kernels" / rung.folder / "README.md"
        name = f"{rung.name}/{SHAPES[0]}"
        if name not in table or not path.exists():
            continue
        text = path.read_text(encoding="utf-8")
        if BEGIN in text:
            block = f"{BEGIN}\n{_table(rung.name, table[name][0])}{END}"
            result[path] = _BLOCK.sub(lambda _, block=block: block, text)
    return result


def stale(repository: Path, baseline: Path) -> list[Path]:
    wanted = pages(repository, baseline)
    return [path for path, text in wanted.items() if path.read_text("utf-8") != text]


def _table(rung: str, counters: Mapping[str, int]) -> str:
    rows = ["| | requests | sectors, wavefronts | beyond the least |", "|---|---:|---:|---:|"]
    for kind in KINDS:
        requests = counters[f"{kind}.requests"]
        if requests:
            units, excess = (
                counters[f"{kind}.{unit_of(kind)}"],
                counters[f"{kind}.{excess_of(kind)}"],
            )
            rows.append(f"| {kind.replace('_', ' ')}s | {requests} | {units} | {excess} |")
    wavefronts = counters["shared_load.wavefronts"] + counters["shared_store.wavefronts"]
    sectors = counters["global_load.sectors"] + counters["global_store.sectors"]
    told = f"{counters['barriers']} barriers, {counters['fma']} FMA: "
    told += f"{2 * counters['fma'] / (32 * sectors):.2f} FLOP a byte of global memory"
    if wavefronts:
        told += f", {32 * wavefronts / counters['fma']:.3f} shared wavefronts a warp's FMA"
    command = f"`ci/explain {rung} {SHAPES[0]}` shows the lines."
    return "\n".join([*rows, "", f"{told}. {command}"]) + "\n"
