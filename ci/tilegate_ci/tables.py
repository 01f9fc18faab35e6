"""ci/tables: fills the generated blocks of the READMEs from the committed baseline."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
        pages = documents(arguments.repository)
    except (GateError, LadderError, TableError, OSError) as problem:
        print(f"tables: error: {problem}", file=sys.stderr)
        return 2
    failed = False
    for path, page in pages.items():
        if path.read_text(encoding="utf-8") == page.text:
            continue
        told = path.relative_to(arguments.repository)
        if not arguments.check:
            path.write_text(page.text, encoding="utf-8")
            print(f"{told}: written")
        elif page.measured:
            print(f"{told}: not what the baseline says; `ci/tables` writes it", file=sys.stderr)
            failed = True
        else:
            print(f"{told}: the rung is not in the baseline; `ci/tables` says so there")
    print(f"{len(pages)} files looked at")
    return 1 if failed else 0


@dataclass(frozen=True)
class Page:
    """What a file with a generated block should hold. A rung that is not measured yet is its
    author's work in progress, so its page is written but not insisted on."""

    text: str
    measured: bool


def documents(repository: Path) -> dict[Path, Page]:
    rungs = read_rungs(repository)
    run = read_baseline(repository)
    found = {} if run is None else {rung.name: rung for rung in measured(run, rungs)}
    top = repository / "README.md"
    pages = {top: Page(filled(top, "ladder", ladder_block(run, rungs, found)), measured=True)}
    for rung in rungs:
        path = repository / "kernels" / rung.folder / "README.md"
        if not rung.numbered:
            continue
        if run is not None and rung.name in found:
            numbers = numbers_block(run, found[rung.name])
            pages[path] = Page(filled(path, "numbers", numbers), measured=True)
        elif path.exists() and begin("numbers") in path.read_text(encoding="utf-8"):
            missing = NO_BASELINE if run is None else f"{rung.name} is not in the baseline yet."
            pages[path] = Page(filled(path, "numbers", missing), measured=False)
    return pages


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


def ladder_block(run: Run | None, rungs: Sequence[Rung], found: Mapping[str, Measured]) -> str:
    """The pictures and the table of the top README."""
    if run is None:
        return NO_BASELINE
    shown = [rung for rung in rungs if rung.name in found]
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
        rows = found[rung.name]
        speeds = [_gflops(rows.square(size)) for size in SIZES]
        link = f"[{rung.title}](kernels/{rung.folder})"
        cells = [link, rung.idea, *speeds, _percent(share(rows.square(SHARE_SIZE)))]
        lines.append("| " + " | ".join(cells) + " |")
    rows = [row for rung in found.values() for row in rung.rows.values()]
    return "\n".join([*lines, "", f"GFLOPS, M = N = K. {provenance(run, rows)}."])


def numbers_block(run: Run, rung: Measured) -> str:
    """The table of a rung's own README."""
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
