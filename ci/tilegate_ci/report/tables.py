"""ci/tables: fills the generated blocks of the READMEs from the committed recordings."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilegate_ci.core.files import GateError, write_text
from tilegate_ci.core.ladder import LadderError, Rung, read_rungs
from tilegate_ci.core.model import GFLOPS, Benchmark, Run
from tilegate_ci.report import templates
from tilegate_ci.report.figures import (
    BASELINE,
    PICTURES,
    PROFILE,
    RATIO_NOTE,
    SHARE_SIZE,
    Measured,
    gflops,
    measured,
    percent,
    provenance,
    read_baseline,
    read_profile,
    read_variants,
    share,
)
from tilegate_ci.report.templates import Markdown, escaped

REPOSITORY = Path(__file__).resolve().parents[3]
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
        name = path.relative_to(arguments.repository)
        if not arguments.check:
            write_text(path, page.text)
            print(f"{name}: written")
        elif page.measured:
            print(f"{name}: not what the baseline says; `ci/tables` writes it", file=sys.stderr)
            failed = True
        else:
            print(f"{name}: the rung is not in the baseline; `ci/tables` says so there")
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
    profile, variants = read_profile(repository), read_variants(repository)
    ladder = ladder_block(run, rungs, found, profile is not None)
    pages = {top: Page(filled(top, "ladder", ladder), measured=True)}
    for rung in rungs:
        path = repository / "kernels" / rung.folder / "README.md"
        if not rung.numbered:
            continue
        if run is not None and rung.name in found:
            try:
                numbers = numbers_block(run, found[rung.name], variants, profile)
            except (KeyError, TypeError, AttributeError, ValueError) as problem:
                wrong = f"not a profile as ci/profile writes it: {problem!r}"
                raise TableError(f"{repository / PROFILE}: {wrong}") from problem
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


def ladder_block(
    run: Run | None, rungs: Sequence[Rung], found: Mapping[str, Measured], has_profile: bool
) -> str:
    """The pictures and the table of the top README."""
    if run is None:
        return NO_BASELINE
    shown = [(rung, found[rung.name]) for rung in rungs if rung.name in found]
    rows = [
        (
            Markdown(f"[{escaped(rung.title)}](kernels/{rung.folder})"),
            rung.idea,
            [gflops(each.square(size)) for size in SIZES],
            percent(share(each.square(SHARE_SIZE))),
        )
        for rung, each in shown
    ]
    pictures = {n: t for n, t in PICTURES.items() if has_profile or n != "roofline.svg"}
    made_on = provenance(run, [row for rung in found.values() for row in rung.rows.values()])
    return _block("ladder", pictures=pictures, rows=rows, made_on=made_on)


def numbers_block(
    run: Run, rung: Measured, variants: Run | None, profile: Mapping[str, Any] | None
) -> str:
    """The tables of a rung's own README: its shapes, its configurations if it has several, and
    what Nsight Compute counted."""
    rows = [
        (shape, f"{row.summary[GFLOPS] / 1000:.2f}", percent(share(row)))
        for shape, row in sorted(rung.rows.items())
    ]
    kernels: list[Mapping[str, Any]] = []
    for each in profile["rungs"] if profile is not None else ():
        kernels += each["kernels"] if each["name"] == rung.name else ()
    return _block(
        "numbers",
        name=rung.name,
        picture=PICTURES["ladder.svg"],
        rows=rows,
        made_on=provenance(run, rung.rows.values()),
        **_variants(variants, rung.name),
        profile=profile,
        kernels=[kernel["name"].partition("<")[0] for kernel in kernels],
        counters=[(title, [cell(kernel) for kernel in kernels]) for title, cell in _COUNTERS],
    )


def _block(template: str, **values: object) -> str:
    sizes = {"sizes": SIZES, "share_size": SHARE_SIZE, "ratio_note": RATIO_NOTE}
    return templates.markdown(template, **sizes, **values).rstrip("\n")


def _variants(run: Run | None, name: str) -> dict[str, object]:
    """The rung's configurations side by side, where it has more than one."""
    rows: dict[str, dict[int, Benchmark]] = {}
    for benchmark, row in run.benchmarks.items() if run is not None else ():
        stage, _, shape = benchmark.partition("/")
        if stage == name or stage.startswith(f"{name}."):
            rows.setdefault(stage, {})[int(shape.partition("x")[0])] = row
    if run is None or len(rows) < 2:
        return {"variants": []}
    sizes = sorted({size for row in rows.values() for size in row})
    speeds = {
        stage: [f"{row[size].summary[GFLOPS] / 1000:.2f}" if size in row else "-" for size in sizes]
        for stage, row in sorted(rows.items())
    }
    measured_on = provenance(run, [row for each in rows.values() for row in each.values()])
    return {
        "variants": [(stage, stage == name, cells) for stage, cells in speeds.items()],
        "variant_sizes": sizes,
        "variants_made_on": measured_on,
    }


def _access(kind: str, key: str) -> Callable[[Mapping[str, Any]], str]:
    def cell(kernel: Mapping[str, Any]) -> str:
        load, store = (kernel[f"{kind}_{way}"][key] for way in ("load", "store"))
        return " / ".join("-" if value is None else f"{value:,.4g}" for value in (load, store))

    return cell


_COUNTERS: Sequence[tuple[str, Callable[[Mapping[str, Any]], str]]] = (
    (
        "FMA pipe, issue slots busy",
        lambda k: "{fma_pipe_pct:.1f} %, {issue_slots_pct:.1f} %".format(**k["sm"]),
    ),
    ("FFMA of the instructions", lambda k: f"{k['instructions']['ffma_pct']:.1f} %"),
    ("registers a thread", lambda k: str(k["registers"])),
    ("shared memory a block", lambda k: f"{sum(k['shared_memory'].values())} bytes"),
    (
        "occupancy, theoretical and achieved",
        lambda k: "{theoretical_pct:.1f} %, {achieved_pct:.1f} %".format(**k["occupancy"]),
    ),
    ("device memory", lambda k: f"{k['dram']['gb_per_s']:,.0f} GB/s"),
    ("L2", lambda k: f"{k['l2']['gb_per_s']:,.0f} GB/s, {k['l2']['hit_pct']:.1f} % hits"),
    ("global sectors a request, load / store", _access("global", "sectors_per_request")),
    ("shared wavefronts an access, load / store", _access("shared", "wavefronts_per_instruction")),
    ("shared bank conflicts, load / store", _access("shared", "bank_conflicts")),
    ("first stalls", lambda k: ", ".join(f"{s['reason']} {s['pct']:.1f} %" for s in k["stalls"])),
)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
