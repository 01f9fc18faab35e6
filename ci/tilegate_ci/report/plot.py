"""ci/plot: draws bench/plots/*.svg from the committed baseline."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilegate_ci.core.files import GateError
from tilegate_ci.core.model import GFLOPS, Run
from tilegate_ci.core.stages import find_ladder as read_rungs
from tilegate_ci.report.canvas import (
    AXIS,
    INK,
    LIGHT_PAPER,
    LINES,
    canvas,
    colours,
    head,
    label_ends,
    svg,
)
from tilegate_ci.report.figures import (
    BASELINE,
    SHARE_SIZE,
    YARDSTICK,
    Measured,
    measured,
    read_baseline,
    read_profile,
    share,
)

REPOSITORY = Path(__file__).resolve().parents[3]
PLOTS = Path("bench") / "plots"


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="ci/plot", description=f"Draws {PLOTS}/*.svg from {BASELINE.as_posix()}."
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 when a file is not up to date"
    )
    parser.add_argument("--repository", type=Path, default=REPOSITORY, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    try:
        wanted = pictures(arguments.repository)
    except (GateError, OSError) as problem:
        print(f"plot: error: {problem}", file=sys.stderr)
        return 2
    except ImportError as problem:
        print(f"plot: error: {problem}; `ci/test` installs it into build/venv", file=sys.stderr)
        return 2
    folder = arguments.repository / PLOTS
    present = {path.name: path.read_text("utf-8") for path in sorted(folder.glob("*.svg"))}
    stale = [name for name, text in wanted.items() if not _same(present.get(name), text)]
    left_over = sorted(present.keys() - wanted.keys())
    for name in [*stale, *left_over]:
        if arguments.check:
            told = "drawn from no baseline" if name in left_over else "not what the baseline says"
            print(f"{PLOTS / name}: {told}; `ci/plot` mends it", file=sys.stderr)
        elif name in left_over:
            (folder / name).unlink()
            print(f"{PLOTS / name}: removed")
        else:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(wanted[name], encoding="utf-8")
            print(f"{PLOTS / name}: written")
    if not wanted:
        print(f"no baseline committed yet ({BASELINE.as_posix()}): nothing to draw")
    elif not stale and not left_over:
        print(f"{len(wanted)} pictures are up to date")
    return 1 if arguments.check and (stale or left_over) else 0


def pictures(repository: Path) -> dict[str, str]:
    """Each picture's file name and SVG text; none without a baseline."""
    run = read_baseline(repository)
    if run is None:
        return {}
    found = measured(run, read_rungs(repository))
    drawn = {"ladder.svg": _ladder(run, found), "share.svg": _share(run, found)}
    profile = read_profile(repository)
    if profile is not None:
        drawn["roofline.svg"] = _roofline(run, found, profile)
    return drawn


def _same(present: str | None, wanted: str) -> bool:
    """Byte for byte, if both were drawn by the same matplotlib; else what they show is compared,
    which the description inside them spells out."""
    if present is None:
        return False
    if _comment(present) == _comment(wanted):
        return present == wanted
    return _description(present) == _description(wanted)


def _comment(svg: str) -> str | None:
    found = re.search(r"<!-- matplotlib [^ ]+ -->", svg)
    return found.group() if found else None


def _description(svg: str) -> str | None:
    found = re.search(r"<desc>.*?</desc>", svg, re.DOTALL)
    return found.group() if found else None


def _ladder(run: Run, found: Sequence[Measured]) -> str:
    """GFLOPS over size, a line a rung, labelled at its end."""
    figure, axes = canvas(height=5.2, right=0.84)
    ends = []
    styles = colours(found)
    for rung in found:
        squares = rung.squares()
        if not squares:
            continue
        speeds = [row.summary[GFLOPS] / 1000 for row in squares.values()]
        colour, marker = styles[rung.name]
        yardstick = rung.name == YARDSTICK
        axes.plot(
            list(squares),
            speeds,
            color=colour,
            marker=marker,
            markersize=0 if yardstick else 3.5,
            linewidth=3 if yardstick else 1.4,
            linestyle=(0, (5, 2)) if yardstick else "-",
            zorder=1 if yardstick else 2,
        )
        ends.append((speeds[-1], rung.name, colour))
    sizes = sorted({size for rung in found for size in rung.squares()})
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.set_ylim(0, 1.05 * max(end[0] for end in ends))
    axes.set_xlabel("M = N = K")
    label_ends(axes, ends)
    head(figure, "TFLOP/s over size", run)
    rows = [
        f"{rung.name} at {size}: {row.summary[GFLOPS]:.0f} GFLOPS"
        for rung in found
        for size, row in rung.squares().items()
    ]
    return svg(figure, "GFLOPS over size, one line a rung", rows)


def _share(run: Run, found: Sequence[Measured]) -> str:
    """Share of cuBLAS at SHARE_SIZE, a bar a rung."""
    shares = {}
    for rung in found:
        value = share(rung.square(SHARE_SIZE))
        if value is not None and rung.name != YARDSTICK:
            shares[rung.name] = 100 * value
    figure, axes = canvas(height=1.2 + 0.28 * len(shares), right=0.95, left=0.16)
    places = range(len(shares), 0, -1)
    axes.barh(places, list(shares.values()), color=LINES[0], height=0.66)
    for place, value in zip(places, shares.values()):
        # Inside the bar if it has room, and the line at 100 does not run through it there.
        inside = 20 < value <= 100 or value > 112
        axes.annotate(
            f"{value:.1f} %",
            (value, place),
            (-5 if inside else 5, 0),
            textcoords="offset points",
            color=LIGHT_PAPER if inside else INK,
            ha="right" if inside else "left",
            va="center",
        )
    axes.axvline(100, color=INK, linewidth=1.5, linestyle=(0, (5, 2)))
    axes.set_yticks(places, list(shares))
    axes.set_ylim(0.4, len(shares) + 0.6)
    axes.set_xlim(0, 1.12 * max([100, *shares.values()]))
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    head(figure, f"Per cent of cuBLAS at {SHARE_SIZE}³", run)
    rows = [f"{name}: {value:.1f} % of cuBLAS" for name, value in shares.items()]
    return svg(figure, f"Share of cuBLAS at {SHARE_SIZE}³", rows)


def _roofline(run: Run, found: Sequence[Measured], profile: Mapping[str, Any]) -> str:
    """Speed over the arithmetic intensity that the profiler measured at the memory."""
    figure, axes = canvas(height=4.6, right=0.95)
    kernels = {rung["name"]: rung["kernels"] for rung in profile["rungs"] if "kernels" in rung}
    # What a byte a second is of the memory's peak is the same in every kernel's counters.
    dram = max((kernel["dram"] for each in kernels.values() for kernel in each), key=_percent)
    bandwidth = dram["gb_per_s"] / dram["peak_pct"] * 100 / 1000
    rows = [row for rung in found for row in rung.rows.values() if row.fields.get("pct_peak")]
    peak = max(row.summary[GFLOPS] / row.fields["pct_peak"] * 100 for row in rows) / 1000
    points = {}
    for rung in found:
        row = rung.square(SHARE_SIZE)
        if row is None or rung.name not in kernels:
            continue
        moved = sum(kernel["dram"]["bytes"] for kernel in kernels[rung.name])
        flop = sum(kernel["flop"] for kernel in kernels[rung.name])
        points[rung.name] = (flop / moved, row.summary[GFLOPS] / 1000)
    corner = peak / bandwidth
    ends = (min([corner / 4, *(x / 2 for x, _ in points.values())]), 4 * corner * 16)
    axes.plot([ends[0], corner, ends[1]], [ends[0] * bandwidth, peak, peak], color=INK, linewidth=2)
    styles = colours(found)
    for name, (x, y) in points.items():
        colour, marker = styles[name]
        axes.plot([x], [y], color=colour, marker=marker or "*", markersize=7)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(*ends)
    axes.set_ylim(0.3, 2 * peak)
    axes.set_xlabel("FLOP a byte of device memory")
    for name, (x, y) in _apart(points).items():
        label = "cuBLAS" if name == YARDSTICK else name
        axes.annotate(label, (x, y), color=styles[name][0], va="center", fontsize=8)
    axes.annotate(
        f"{peak:.1f} TFLOP/s, FFMA", (ends[0], peak), (4, 4), textcoords="offset points", color=AXIS
    )
    head(figure, f"Roofline at {SHARE_SIZE}³: TFLOP/s over measured intensity", run)
    told = [f"{name}: {x:.1f} FLOP a byte, {y:.2f} TFLOP/s" for name, (x, y) in points.items()]
    roof = f"roof: {peak:.1f} TFLOP/s, {bandwidth:.2f} TB/s"
    return svg(figure, f"Roofline at {SHARE_SIZE}³", [roof, *told])


def _percent(dram: Mapping[str, float]) -> float:
    return dram["peak_pct"]


def _apart(points: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """A place for each label, right of its point and clear of the labels above it."""
    places: dict[str, tuple[float, float]] = {}
    for name, (x, y) in sorted(points.items(), key=lambda item: -item[1][1]):
        place = (1.1 * x, y)
        while any(
            abs(place[1] / taken[1] - 1) < 0.15 and 0.6 < place[0] / taken[0] < 1.7
            for taken in places.values()
        ):
            place = (place[0], place[1] * 0.96)
        places[name] = place
    return places


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
