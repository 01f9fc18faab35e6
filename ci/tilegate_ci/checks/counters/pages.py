"""What the committed counters say of a rung, on the rung's own page."""

from collections.abc import Mapping
from pathlib import Path

from tilegate_ci.checks.counters.count import SECTOR_BYTES, excess_of, kinds_of, total, unit_of
from tilegate_ci.checks.counters.table import SHAPES, load
from tilegate_ci.core import markdown
from tilegate_ci.core.files import read_text
from tilegate_ci.core.markdown import begin, with_block
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


def pages(repository: Path, baseline: Path) -> dict[Path, str]:
    """The text that each page with such a block should have."""
    table = load(baseline)
    result = {}
    for stage in find_ladder(repository):
        path = repository / stage.folder / "README.md"
        name = f"{stage.name}/{SHAPES[0]}"
        if name not in table or not path.exists():
            continue
        text = read_text(path)
        if begin("counters") in text:
            block = _block(stage.name, table[name].counters)
            result[path] = with_block(text, "counters", block, path)
    return result


def stale(repository: Path, baseline: Path) -> list[Path]:
    wanted = pages(repository, baseline)
    return [path for path, text in wanted.items() if read_text(path) != text]


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
