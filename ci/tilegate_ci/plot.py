"""ci/plot: draws bench/plots/*.svg from the committed baseline."""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from tilegate_ci.figures import (
    BASELINE,
    SHARE_SIZE,
    YARDSTICK,
    Measured,
    measured,
    provenance,
    read_baseline,
    share,
)
from tilegate_ci.files import GateError
from tilegate_ci.ladder import LadderError, read_rungs
from tilegate_ci.model import GFLOPS, Run

REPOSITORY = Path(__file__).resolve().parents[2]
PLOTS = Path("bench") / "plots"

# Each colour on white, and what a browser in dark mode shows in its place on DARK_PAPER. All have
# a contrast of 4.5 or more, since labels are set in the colour of their line.
LIGHT_PAPER, DARK_PAPER = "#ffffff", "#0d1117"
INK, AXIS, GRID = "#1f2328", "#59636e", "#d1d9e0"
DARK_OF = {
    LIGHT_PAPER: DARK_PAPER,
    INK: "#f0f6fc",
    AXIS: "#9198a1",
    GRID: "#3d444d",
    "#0065a3": "#6cb6ff",
    "#b34700": "#ff9c57",
    "#00704f": "#3dd6a4",
    "#9a3d78": "#f08cc8",
    "#7a5c00": "#e3c04a",
    "#5b5bbf": "#a9a9ff",
}
FONT = "DejaVu Sans"  # ships with matplotlib
FALLBACKS = "Verdana, Helvetica, sans-serif"  # for who looks at it

# Neighbours differ for every kind of colour vision; where colours come round, markers differ.
LINES = [colour for colour in DARK_OF if colour not in (LIGHT_PAPER, INK, AXIS, GRID)]
MARKERS = "osD^v"


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
    except (GateError, LadderError, OSError) as problem:
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
    return {"ladder.svg": _ladder(run, found), "share.svg": _share(run, found)}


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
    figure, axes = _canvas(height=5.2, right=0.84)
    ends = []
    colours = _colours(found)
    for rung in found:
        squares = rung.squares()
        if not squares:
            continue
        speeds = [row.summary[GFLOPS] / 1000 for row in squares.values()]
        colour, marker = colours[rung.name]
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
    _label_ends(axes, ends)
    _head(figure, "TFLOP/s over size", run)
    rows = [
        f"{rung.name} at {size}: {row.summary[GFLOPS]:.0f} GFLOPS"
        for rung in found
        for size, row in rung.squares().items()
    ]
    return _svg(figure, "GFLOPS over size, one line a rung", rows)


def _share(run: Run, found: Sequence[Measured]) -> str:
    """Share of cuBLAS at SHARE_SIZE, a bar a rung."""
    shares = {}
    for rung in found:
        value = share(rung.square(SHARE_SIZE))
        if value is not None and rung.name != YARDSTICK:
            shares[rung.name] = 100 * value
    figure, axes = _canvas(height=1.2 + 0.28 * len(shares), right=0.95, left=0.16)
    places = range(len(shares), 0, -1)
    axes.barh(places, list(shares.values()), color=LINES[0], height=0.66)
    for place, value in zip(places, shares.values()):
        # Inside the bar, where the line at 100 does not run through it, if the bar has room.
        inside = value > 20
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
    _head(figure, f"Per cent of cuBLAS at {SHARE_SIZE}³", run)
    rows = [f"{name}: {value:.1f} % of cuBLAS" for name, value in shares.items()]
    return _svg(figure, f"Share of cuBLAS at {SHARE_SIZE}³", rows)


def _colours(found: Sequence[Measured]) -> dict[str, tuple[str, str]]:
    """Colour and marker of each rung, by its place in the ladder."""
    styles = {}
    for place, rung in enumerate(found):
        marker = MARKERS[place // len(LINES) % len(MARKERS)]
        styles[rung.name] = (LINES[place % len(LINES)], marker)
    styles[YARDSTICK] = (INK, "")
    return styles


def _canvas(height: float, right: float, left: float = 0.07) -> tuple[Any, Any]:
    """A figure with room for the heading and the labels at fixed places: laying out by the extent
    of text would make the picture depend on the fonts of the machine."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcdefaults()
    mpl.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "tilegate",
            "font.family": FONT,
            "font.size": 9,
            "text.color": INK,
            "axes.labelcolor": AXIS,
            "axes.edgecolor": AXIS,
            "xtick.color": AXIS,
            "ytick.color": AXIS,
        }
    )
    width = 8.4
    figure = Figure(figsize=(width, height), facecolor=LIGHT_PAPER)
    axes = figure.add_axes((left, 0.46 / height, right - left, (height - 1.06) / height))
    axes.set_facecolor("none")
    axes.set_axisbelow(True)
    axes.grid(color=GRID, linewidth=0.6)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _head(figure: Any, title: str, run: Run) -> None:
    height = figure.get_figheight()
    figure.text(0.015, 1 - 0.24 / height, title, fontsize=11, fontweight="bold", va="center")
    told = provenance(run, run.benchmarks.values())
    figure.text(0.015, 1 - 0.44 / height, told, fontsize=7.5, color=AXIS, va="center")


def _label_ends(axes: Any, ends: Sequence[tuple[float, str, str]]) -> None:
    """Names beside the last point of each line, pushed apart where they would overlap."""
    low, high = axes.get_ylim()
    gap = (high - low) * 0.038
    places: list[float] = []
    ordered = sorted(ends)
    for value, _, _ in ordered:
        places.append(max(value, places[-1] + gap) if places else value)
    # What was pushed past the top comes back down.
    limit = high
    for index in reversed(range(len(places))):
        places[index] = min(places[index], limit)
        limit = places[index] - gap
    x = axes.get_xlim()[1]
    for place, (_, name, colour) in zip(places, ordered):
        axes.annotate(
            "cuBLAS" if name == YARDSTICK else name,
            (x, place),
            (3, 0),
            textcoords="offset points",
            color=colour,
            va="center",
            fontweight="bold" if name == YARDSTICK else "normal",
            annotation_clip=False,
        )


def _svg(figure: Any, title: str, rows: Sequence[str]) -> str:
    """The SVG text, with a title and the data in words for readers who do not see the picture, and
    the colours of dark mode. Renderers that know no media queries draw it for white paper."""
    import matplotlib as mpl

    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    rules = "".join(
        f'[style*="{what}: {light}"]{{{what}:{dark} !important}}'
        for light, dark in DARK_OF.items()
        for what in ("fill", "stroke")
    )
    head = (
        f"<!-- matplotlib {mpl.__version__} -->\n"
        f" <title>{escape(title)}</title>\n"
        f" <desc>{escape('; '.join(rows))}</desc>\n"
        f" <style>@media (prefers-color-scheme: dark) {{{rules}}}</style>\n"
    )
    text = stream.getvalue().replace(f"'{FONT}'", f"'{FONT}', {FALLBACKS}")
    opened = re.search(r"<svg [^>]*>\n", text)
    assert opened is not None
    text = text[: opened.end()] + head + text[opened.end() :]
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
