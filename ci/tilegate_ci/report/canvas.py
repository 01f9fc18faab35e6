"""What the pictures share: paper, colours that read in light and dark, headings, the SVG text."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from html import escape
from typing import Any

from tilegate_ci.core.model import Run
from tilegate_ci.report.figures import YARDSTICK, Measured, provenance

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


def colours(found: Sequence[Measured]) -> dict[str, tuple[str, str]]:
    """Colour and marker of each rung, by its place in the ladder."""
    styles = {}
    for place, rung in enumerate(found):
        marker = MARKERS[place // len(LINES) % len(MARKERS)]
        styles[rung.name] = (LINES[place % len(LINES)], marker)
    styles[YARDSTICK] = (INK, "")
    return styles


def canvas(height: float, right: float, left: float = 0.07) -> tuple[Any, Any]:
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


def head(figure: Any, title: str, run: Run) -> None:
    height = figure.get_figheight()
    figure.text(0.015, 1 - 0.24 / height, title, fontsize=11, fontweight="bold", va="center")
    told = provenance(run, run.benchmarks.values())
    figure.text(0.015, 1 - 0.44 / height, told, fontsize=7.5, color=AXIS, va="center")


def label_ends(axes: Any, ends: Sequence[tuple[float, str, str]]) -> None:
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


def svg(figure: Any, title: str, rows: Sequence[str]) -> str:
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
