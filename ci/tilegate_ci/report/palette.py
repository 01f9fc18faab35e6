"""Colours for light and dark paper, and how each rung looks: its own colour, marker and dash."""

from collections.abc import Sequence
from itertools import cycle

from tilegate_ci.core.names import YARDSTICK

PAPER, INK, AXIS, GRID = "#ffffff", "#1f2328", "#59636e", "#d1d9e0"
FAINT = "#b9c2cb"  # lines in the background
BAD, GOOD, WARN, ACCENT = "#b3261e", "#00704f", "#7a5c00", "#0065a3"
_RUNGS = [
    "#1a73d5", "#8d2f04", "#0c853d", "#82207e", "#8a7300", "#5d34a4", "#138282",
    "#9a0b33", "#607e09", "#0a5b74", "#b94082", "#764607", "#5a66d6", "#06614b",
]  # fmt: skip
_DARK_RUNGS = [
    "#70adfb", "#fdc1ac", "#69c27e", "#feb4f7", "#c5a93b", "#d4c8fe", "#0cc3c3",
    "#febec1", "#98b958", "#8edefe", "#e887b6", "#ffc48a", "#93a3fc", "#6aecc4",
]  # fmt: skip
# Each colour on white, and what a browser in dark mode shows in its place. Labels are set in the
# colour of their line, so all but GRID and FAINT have a contrast of 4.5 or more with the paper.
DARK_OF = {
    **{PAPER: "#0d1117", INK: "#f0f6fc", AXIS: "#9198a1", GRID: "#3d444d"},
    FAINT: "#545d67",
    **{BAD: "#ff8f87", GOOD: "#3dd6a4", WARN: "#e3c04a", ACCENT: "#6cb6ff"},
    **dict(zip(_RUNGS, _DARK_RUNGS)),
}
# Of different lengths, so that two rungs of one colour, or of colours that a reader does not tell
# apart, still differ.
_MARKERS = ("circle", "square", "triangle-up", "diamond", "cross")
_DASHES = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3))

Look = tuple[str, str, tuple[int, ...]]  # colour, marker, dash


def looks(names: Sequence[str]) -> dict[str, Look]:
    """By place in the ladder, which `names` are in the order of."""
    every = zip(cycle(_RUNGS), cycle(_MARKERS), cycle(_DASHES))
    found: dict[str, Look] = dict(zip((name for name in names if name != YARDSTICK), every))
    return {**found, YARDSTICK: (INK, "circle", (5, 3))}


def dark_style(drawn: str = "") -> str:
    """CSS that shows each colour's counterpart in dark mode: of the colours in `drawn`, or of all.
    It outranks the attributes of an SVG, so that one drawing serves both; readers without media
    queries see it on white."""
    rules = "".join(
        f'[{what}="{light}"]{{{what}:{dark}}}'
        for light, dark in DARK_OF.items()
        if not drawn or light in drawn
        for what in ("fill", "stroke")
    )
    return f"@media (prefers-color-scheme: dark) {{{rules}}}"
