"""ci/tables: fills the generated blocks of the READMEs from the committed baseline."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tilegate_ci.figures import (
    BASELINE,
    SHARE_SIZE,
    Measured,
    measured,
    provenance,
    read_baseline,
    share,
)
from tilegate_ci.files import GateError
from tilegate_ci.ladder import LadderError, Rung, read_rungs
from tilegate_ci.model import GFLOPS, Benchmark, Run

REPOSITORY = Path(__file__).resolve().parents[2]
SIZES = (1024, 2048, 4096)
NO_BASELINE = f"No baseline committed yet (`{BASELINE.as_posix()}`)."


class TableError(Exception):
    """A README without the place for its block; its text is one line for the user."""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="ci/tables",
        description="Fills the generated tables of README.md and kernels/*/README.md "
        f"from {BASELINE.as_posix()}.",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 when a file is not up to date"
    )
    parser.add_argument("--repository", type=Path, default=REPOSITORY, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    try:
        wanted = documents(arguments.repository)
    except (GateError, LadderError, TableError, OSError) as problem:
        print(f"tables: error: {problem}", file=sys.stderr)
        return 2
    stale = [path for path, text in wanted.items() if path.read_text("utf-8") != text]
    for path in stale:
        told = path.relative_to(arguments.repository)
        if arguments.check:
            print(f"{told}: not what the baseline says; `ci/tables` writes it", file=sys.stderr)
        else:
            path.write_text(wanted[path], encoding="utf-8")
            print(f"{told}: written")
    if not stale:
        print(f"{len(wanted)} files are up to date")
    return 1 if arguments.check and stale else 0


def documents(repository: Path) -> dict[Path, str]:
    """Each file with a generated block, and what it should hold."""
    rungs = read_rungs(repository)
    run = read_baseline(repository)
    found = measured(run, rungs) if run is not None else []
    top = repository / "README.md"
    wanted = {top: filled(top, "ladder", ladder_block(run, rungs, found))}
    by_name = {rung.name: rung for rung in found}
    for rung in rungs:
        page = repository / "kernels" / rung.folder / "README.md"
        if rung.name in by_name and rung.numbered:
            wanted[page] = filled(page, "numbers", numbers_block(run, by_name[rung.name]))
        elif page.exists() and run is None and begin("numbers") in page.read_text("utf-8"):
            wanted[page] = filled(page, "numbers", NO_BASELINE)
        # A rung that the baseline does not have yet keeps its page as its author wrote it.
    return wanted


def begin(block: str) -> str:
    return f"<!-- {block}:begin -->"


def filled(path: Path, block: str, content: str) -> str:
    """The file's text with `content` between the block's markers."""
    first, last = begin(block), f"<!-- {block}:end -->"
    if not path.exists():
        raise TableError(f"{path}: missing; it should hold {first} and {last}")
    text = path.read_text(encoding="utf-8")
    if text.count(first) != 1 or text.count(last) != 1 or text.index(first) > text.index(last):
        raise TableError(f"{path}: should hold {first} and, after it, {last}, once each")
    head, rest = text.split(first)
    return f"{head}{first}\n{content}\n{last}{rest.split(last)[1]}"


def ladder_block(run: Run | None, rungs: Sequence[Rung], found: Sequence[Measured]) -> str:
    """The pictures and the table of the top README."""
    if run is None:
        return NO_BASELINE
    by_name = {rung.name: rung for rung in found}
    shown = [rung for rung in rungs if rung.name in by_name]
    lines = [
        "![GFLOPS over size, one line a rung](bench/plots/ladder.svg)",
        "",
        f"![Share of cuBLAS at {SHARE_SIZE}³](bench/plots/share.svg)",
        "",
        "| rung | idea | "
        + " | ".join(f"{size}³" for size in SIZES)
        + f" | of cuBLAS at {SHARE_SIZE}³ |",
        "|---|---|" + "---:|" * (len(SIZES) + 1),
    ]
    for rung in shown:
        rows = by_name[rung.name]
        speeds = [_gflops(rows.square(size)) for size in SIZES]
        link = f"[{rung.title}](kernels/{rung.folder})"
        cells = [link, rung.idea, *speeds, _percent(share(rows.square(SHARE_SIZE)))]
        lines.append("| " + " | ".join(cells) + " |")
    rows = [row for rung in found for row in rung.rows.values()]
    return "\n".join([*lines, "", f"GFLOPS, M = N = K. {provenance(run, rows)}."])


def numbers_block(run: Run | None, rung: Measured) -> str:
    """The table of a rung's own README."""
    assert run is not None
    lines = ["| M×N×K | TFLOP/s | of cuBLAS |", "|---|---:|---:|"]  # noqa: RUF001
    for (m, n, k), row in sorted(rung.rows.items()):
        speed = f"{row.summary[GFLOPS] / 1000:.2f}"
        lines.append(f"| {m}×{n}×{k} | {speed} | {_percent(share(row))} |")  # noqa: RUF001
    return "\n".join([*lines, "", f"{rung.name} on {provenance(run, rung.rows.values())}."])


def _gflops(row: Benchmark | None) -> str:
    return "-" if row is None else f"{row.summary[GFLOPS]:,.0f}"


def _percent(ratio: float | None) -> str:
    return "-" if ratio is None else f"{100 * ratio:.1f} %"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
