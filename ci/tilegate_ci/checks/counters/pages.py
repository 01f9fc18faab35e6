"""What the committed counters say of a rung, on the rung's own page."""

from collections.abc import Mapping
from pathlib import Path

from tilegate_ci.checks.counters.count import SECTOR_BYTES, excess_of, kinds_of, total, unit_of
from tilegate_ci.checks.counters.table import SHAPES, load
from tilegate_ci.core import markdown
from tilegate_ci.core.markdown import Block, has_block
from tilegate_ci.formats.stages import find_ladder

_NAMES = {
    "global_load": "global loads",
    "global_store": "global stores",
    "shared_load": "shared loads",
    "shared_store": "shared stores",
    "shared_copy": "stores of asynchronous copies",
    "bulk_load": "loads of the copy engine",
    "bulk_store": "stores of the copy engine",
    "shared_multiply": "shared loads of tensor cores",
}


def blocks(repository: Path, baseline: Path) -> list[Block]:
    """Of the pages that quote the counters."""
    table = load(baseline)
    found = []
    for stage in find_ladder(repository):
        page = repository / stage.folder / "README.md"
        case = table.get(f"{stage.name}/{SHAPES[0]}")
        if case is not None and has_block(page, "counters"):
            found.append(Block(page, "counters", _block(stage.name, case.counters)))
    return found


def _block(rung: str, counters: Mapping[str, int]) -> str:
    heads = ("", "requests", "sectors, wavefronts", "beyond the least")
    rows = [
        [_NAMES[kind], *(f"{counters[f'{kind}.{what}']:,}" for what in columns)]
        for kind in kinds_of(counters)
        if counters[f"{kind}.requests"]
        for columns in [("requests", unit_of(kind), excess_of(kind))]
    ]
    wavefronts = total(counters, "wavefronts")
    intensity = 2 * counters["fma"] / (SECTOR_BYTES * total(counters, "sectors"))
    totals = [
        f"{counters['barriers']:,} barriers, each counted once per block",
        f"{counters['fma']:,} FMA",
        f"counted intensity {intensity:.2f} FLOP per byte",
    ]
    if wavefronts:
        totals.append(f"{32 * wavefronts / counters['fma']:.3f} shared wavefronts per warp FMA")
    command = f"`ci/explain {rung} {SHAPES[0]}` shows the lines."
    return "\n".join([*markdown.table(heads, rows), "", f"{'; '.join(totals)}. {command}"])
