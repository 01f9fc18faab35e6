"""Colours for light and dark paper, and how each rung looks: its own colour, marker and dash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilegate_ci.report.figures import YARDSTICK

PAPER, INK, AXIS, GRID = "#ffffff", "#1f2328", "#59636e", "#d1d9e0"
BAD, GOOD, WARN, ACCENT = "#b3261e", "#00704f", "#7a5c00", "#0065a3"
# Each colour on white, and what a browser in dark mode shows in its place. Labels are set in the
# colour of their line, so all but GRID have a contrast of 4.5 or more with the paper.
DARK_OF = {
    PAPER: "#0d1117",
    INK: "#f0f6fc",
    AXIS: "#9198a1",
    GRID: "#3d444d",
    BAD: "#ff8f87",
    GOOD: "#3dd6a4",
    WARN: "#e3c04a",
    ACCENT: "#6cb6ff",
}
_RUNGS = {
    "#1a73d5": "#70adfb",
    "#8d2f04": "#fdc1ac",
    "#0c853d": "#69c27e",
    "#82207e": "#feb4f7",
    "#8a7300": "#c5a93b",
    "#5d34a4": "#d4c8fe",
    "#138282": "#0cc3c3",
    "#9a0b33": "#febec1",
    "#607e09": "#98b958",
    "#0a5b74": "#8edefe",
    "#b94082": "#e887b6",
    "#764607": "#ffc48a",
    "#5a66d6": "#93a3fc",
    "#06614b": "#6aecc4",
}
DARK_OF.update(_RUNGS)
# Of different lengths, so that two rungs of one colour, or of colours that a reader does not tell
# apart, still differ.
_MARKERS = ("circle", "square", "triangle-up", "diamond", "cross")
_DASHES = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3))


@dataclass(frozen=True)
class Look:
    colour: str
    marker: str
    dash: tuple[int, ...]


def looks(names: Sequence[str]) -> dict[str, Look]:
    """By place in the ladder, which `names` are in the order of."""
    colours = list(_RUNGS)
    found = {
        name: Look(
            colours[place % len(colours)],
            _MARKERS[place % len(_MARKERS)],
            _DASHES[place % len(_DASHES)],
        )
        for place, name in enumerate(name for name in names if name != YARDSTICK)
    }
    return {**found, YARDSTICK: Look(INK, "circle", (5, 3))}


def dark_style() -> str:
    """CSS that shows each colour's counterpart in dark mode. It outranks the attributes of an SVG,
    so that one drawing serves both; readers without media queries see it on white."""
    rules = "".join(
        f'[{what}="{light}"]{{{what}:{dark}}}'
        for light, dark in DARK_OF.items()
        for what in ("fill", "stroke")
    )
    return f"@media (prefers-color-scheme: dark) {{{rules}}}"
