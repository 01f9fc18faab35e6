"""The executor beside Nsight Compute, as two tables on the page of the executor.

PYTHONPATH=ci python3 tests/counters/device/table.py  # the blocks in kernels/device/README.md
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from measure import ASYNC_METRICS

from tilegate_ci.checks.committed import with_block
from tilegate_ci.checks.counters import BASELINE, load
from tilegate_ci.core.files import read_text, write_text
from tilegate_ci.model import REPOSITORY

# ncu's name (see measure.py): the executor's.
EXACT = {
    "global_load.requests": "global_load.requests",
    "global_load.sectors": "global_load.sectors",
    "global_store.requests": "global_store.requests",
    "global_store.sectors": "global_store.sectors",
    "shared_load.requests": "shared_load.requests",
    "sass_shared_load.wavefronts": "shared_load.wavefronts",
    "shared_store.requests": "shared_store.requests",
    "sass_shared_store.wavefronts": "shared_store.wavefronts",
    "fma": "fma",
}
# As EXACT, where the case does such a thing.
ASYNC = {name: name for name in ASYNC_METRICS}
NOISY = ("shared_load.wavefronts", "shared_store.wavefronts")

Columns = tuple[tuple[str, tuple[str, ...]], ...]
_COLUMNS: Columns = (
    ("global load requests, sectors", ("global_load.requests", "global_load.sectors")),
    ("global store", ("global_store.requests", "global_store.sectors")),
    ("shared load requests, wavefronts", ("shared_load.requests", "shared_load.wavefronts")),
    ("shared store", ("shared_store.requests", "shared_store.wavefronts")),
    ("FMA", ("fma",)),
)
_ASYNC_COLUMNS: Columns = (
    ("`cp.async` requests, wavefronts", ("shared_copy.requests", "shared_copy.wavefronts")),
    ("bulk loads, sectors", ("bulk_load.requests", "bulk_load.sectors")),
    (
        "multiplications, wavefronts",
        ("shared_multiply.requests", "shared_multiply.wavefronts"),
    ),
)

Run = Mapping[str, int]
Counted = Mapping[str, Mapping[str, int]]


def page(repository: Path) -> Path:
    return repository / "kernels" / "device" / "README.md"


def with_tables(text: str, cases: Mapping[str, Sequence[Run]], counted: Counted) -> str:
    """Cases of the committed table; the second table has only asynchronous ones."""
    in_table = {name: runs for name, runs in cases.items() if name in counted}
    of_async = {
        name: runs for name, runs in in_table.items() if ASYNC.keys() & counted[name].keys()
    }
    for block, chosen, columns in (
        ("ncu", in_table, _COLUMNS),
        ("ncu-async", of_async, _ASYNC_COLUMNS),
    ):
        text = with_block(text, block, _table(chosen, counted, columns), page(REPOSITORY))
    return text


def _table(cases: Mapping[str, Sequence[Run]], counted: Counted, columns: Columns) -> str:
    """A number where both agree, else `here / ncu`; pipe wavefronts, where noisy, in brackets."""
    by_counter = {counter: ncu for ncu, counter in (EXACT | ASYNC).items()}
    rows = []
    for name, runs in cases.items():
        cells = []
        for _, keys in columns:
            done = [key for key in keys if key in counted[name]]
            parts = [_cell(key, by_counter[key], runs, counted[name]) for key in done]
            cells.append(", ".join(parts))
        rows.append([name, *cells])
    heads = ["case", *(heading for heading, _ in columns)]
    lines = ["".join(f" {cell} |" if cell else " |" for cell in row) for row in (heads, *rows)]
    lines.insert(1, "---|" * len(heads))
    return "\n".join(f"|{line}" for line in lines)


def _cell(key: str, ncu: str, runs: Sequence[Run], counted: Mapping[str, int]) -> str:
    here, there = counted[key], runs[0][ncu]
    text = str(here) if here == there else f"{here} / {there}"
    pipe = sorted({run[key] for run in runs}) if key in NOISY else [there]
    if pipe != [there]:
        text += f" ({pipe[0]} to {pipe[-1]})" if len(pipe) > 1 else f" ({pipe[0]})"
    return text


def main() -> int:
    measured = REPOSITORY / "tests" / "counters" / "measured" / "cases.json"
    cases = json.loads(measured.read_text(encoding="utf-8"))["cases"]
    counted = {name: case.counters for name, case in load(REPOSITORY / BASELINE).items()}
    path = page(REPOSITORY)
    write_text(path, with_tables(read_text(path), cases, counted))
    return 0


if __name__ == "__main__":
    sys.exit(main())
