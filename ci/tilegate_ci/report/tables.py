"""ci/tables: fills the generated blocks of the READMEs from the committed recordings."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilegate_ci.core.files import GateError
from tilegate_ci.core.model import GFLOPS, Benchmark, Run
from tilegate_ci.core.stages import Stage as Rung
from tilegate_ci.core.stages import find_ladder as read_rungs
from tilegate_ci.report.figures import (
    BASELINE,
    SHARE_SIZE,
    Measured,
    measured,
    provenance,
    read_baseline,
    read_profile,
    read_variants,
    share,
)

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
    except (GateError, TableError, OSError) as problem:
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
    profile = read_profile(repository)
    ladder = ladder_block(run, rungs, found, profile is not None)
    pages = {top: Page(filled(top, "ladder", ladder), measured=True)}
    for rung in rungs:
        path = repository / rung.folder / "README.md"
        if rung.yardstick:
            continue
        if run is not None and rung.name in found:
            blocks = [
                numbers_block(run, found[rung.name]),
                *variants_block(read_variants(repository), rung.name),
                *profile_block(profile, rung.name),
            ]
            numbers = "\n\n".join(blocks)
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
    shown = [rung for rung in rungs if rung.name in found]
    lines = [
        "![GFLOPS over size, one line a rung](bench/plots/ladder.svg)",
        "",
        f"![Share of cuBLAS at {SHARE_SIZE}³](bench/plots/share.svg)",
        "",
        *([f"![Roofline at {SHARE_SIZE}³](bench/plots/roofline.svg)", ""] * has_profile),
        "| rung | idea | "
        + " | ".join(f"{size}³" for size in SIZES)
        + f" | of cuBLAS at {SHARE_SIZE}³ |",
        "|---|---|" + "---:|" * (len(SIZES) + 1),
    ]
    for rung in shown:
        mine = found[rung.name]
        speeds = [_gflops(mine.square(size)) for size in SIZES]
        link = f"[{rung.title}]({rung.folder})"
        cells = [link, rung.idea, *speeds, _percent(share(mine.square(SHARE_SIZE)))]
        lines.append("| " + " | ".join(cells) + " |")
    rows = [row for rung in found.values() for row in rung.rows.values()]
    return "\n".join([*lines, "", f"GFLOPS, M = N = K. {provenance(run, rows)}."])


def numbers_block(run: Run, rung: Measured) -> str:
    """The table of a rung's own README."""
    lines = [
        "![GFLOPS over size, one line a rung](../../bench/plots/ladder.svg)",
        "",
        "| M×N×K | TFLOP/s | of cuBLAS |",  # noqa: RUF001
        "|---|---:|---:|",
    ]
    for (m, n, k), row in sorted(rung.rows.items()):
        speed = f"{row.summary[GFLOPS] / 1000:.2f}"
        lines.append(f"| {m}×{n}×{k} | {speed} | {_percent(share(row))} |")  # noqa: RUF001
    return "\n".join([*lines, "", f"{rung.name} on {provenance(run, rung.rows.values())}."])


def variants_block(run: Run | None, name: str) -> list[str]:
    """The rung's configurations side by side; nothing if it has only one."""
    if run is None:
        return []
    rows: dict[str, dict[int, Benchmark]] = {}
    for benchmark, row in run.benchmarks.items():
        stage, _, shape = benchmark.partition("/")
        if stage == name or stage.startswith(f"{name}."):
            rows.setdefault(stage, {})[int(shape.partition("x")[0])] = row
    if len(rows) < 2:
        return []
    sizes = sorted({size for row in rows.values() for size in row})
    lines = [
        "| configuration | " + " | ".join(f"{size}³" for size in sizes) + " |",
        "|---|" + "---:|" * len(sizes),
    ]
    for stage, by_size in sorted(rows.items()):
        speeds = [
            f"{by_size[size].summary[GFLOPS] / 1000:.2f}" if size in by_size else "-"
            for size in sizes
        ]
        label = "default" if stage == name else f"`{stage}`"
        lines.append(f"| {label} | {' | '.join(speeds)} |")
    told = provenance(run, [row for each in rows.values() for row in each.values()])
    return ["\n".join([*lines, "", f"TFLOP/s, `bench --variants` on {told}."])]


def profile_block(profile: Mapping[str, Any] | None, name: str) -> list[str]:
    """What Nsight Compute counted, a column a kernel."""
    if profile is None:
        return []
    kernels = next((rung["kernels"] for rung in profile["rungs"] if rung["name"] == name), None)
    if not kernels:
        return []
    lines = [f"| counter | {' | '.join(_kernel_name(k) for k in kernels)} |"]
    lines.append("|---|" + "---:|" * len(kernels))
    for title, cell in _COUNTERS:
        lines.append(f"| {title} | {' | '.join(cell(kernel) for kernel in kernels)} |")
    device = profile["device"]
    told = (
        f"Nsight Compute {profile['ncu']} at {profile['shape']} on {device['name']}, "
        f"driver {device['driver']}, CUDA {device['cuda']}, commit {profile['commit'][:12]}; "
        "all counters in [bench/profile](../../bench/profile/nvidia-h200.md)."
    )
    return ["\n".join([*lines, "", told])]


def _kernel_name(kernel: Mapping[str, Any]) -> str:
    return f"`{kernel['name'].partition('<')[0]}`"


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


def _gflops(row: Benchmark | None) -> str:
    return "-" if row is None else f"{row.summary[GFLOPS]:,.0f}"


def _percent(ratio: float | None) -> str:
    return "-" if ratio is None else f"{100 * ratio:.1f} %"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
