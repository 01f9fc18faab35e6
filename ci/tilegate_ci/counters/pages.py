"""What the committed counters say of a rung, on the rung's own page."""

from collections.abc import Mapping
from pathlib import Path

from tilegate_ci.core.files import read_text
from tilegate_ci.core.stages import find_ladder
from tilegate_ci.counters.count import KINDS, excess_of, unit_of
from tilegate_ci.counters.table import SHAPES, load

BEGIN, END = "<!-- counters:begin -->", "<!-- counters:end -->"


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
        if BEGIN in text:
            head, _, rest = text.partition(BEGIN)
            block = f"{BEGIN}\n{_table(stage.name, table[name].counters)}{END}"
            result[path] = f"{head}{block}{rest.partition(END)[2]}"
    return result


def stale(repository: Path, baseline: Path) -> list[Path]:
    wanted = pages(repository, baseline)
    return [path for path, text in wanted.items() if read_text(path) != text]


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
    totals = f"{counters['barriers']} barriers, {counters['fma']} FMA: "
    totals += f"{2 * counters['fma'] / (32 * sectors):.2f} FLOP per byte of global memory"
    if wavefronts:
        totals += f", {32 * wavefronts / counters['fma']:.3f} shared wavefronts per warp FMA"
    command = f"`ci/explain {rung} {SHAPES[0]}` shows the lines."
    return "\n".join([*rows, "", f"{totals}. {command}"]) + "\n"
