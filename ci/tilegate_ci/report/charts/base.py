"""What all charts share: their look, how Altair is called, where labels stand."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from itertools import cycle, pairwise
from typing import Any, TypeAlias

import altair as alt

from tilegate_ci.core.names import YARDSTICK
from tilegate_ci.report.figures import Measured

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


LINE, LETTER = 14, 6.2  # of text of 11 pixels
Box = tuple[float, float, float, float]  # left, top, right, bottom
_PLACES = [
    (reach, angle) for reach in range(10, 160, 6) for angle in (0, 180, 45, 315, 135, 225, 90, 270)
]


def apart(values: Sequence[float], gap: float, high: float) -> list[float]:
    """The values moved up, and down again below `high`, until no two are closer than `gap`."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    places = list(values)
    for one, other in pairwise(order):
        places[other] = max(places[other], places[one] + gap)
    limit = high
    for index in reversed(order):
        places[index] = min(places[index], limit)
        limit = places[index] - gap
    return places


def beside(
    dots: Sequence[tuple[float, float, str]], taken: Sequence[Box], width: float
) -> list[tuple[Box, tuple[float, float]]]:
    """A box for each dot's label, in pixels, as near to it as there is room beside the other
    labels, the dots and what else is taken; and the end of a line to it, clear of other dots."""
    full = [*taken, *(_around(x, y, 7) for x, y, _ in dots)]
    found = []
    for x, y, label in dots:
        long = 4 + LETTER * len(label)
        others = [_around(u, v, 3) for u, v, _ in dots if math.hypot(u - x, v - y) > 10]
        for reach, angle in _PLACES:
            turn = math.radians(angle)
            left = x + reach * math.cos(turn) - long * (1 - math.cos(turn)) / 2
            top = y - reach * math.sin(turn) - LINE / 2
            box = (left, top, left + long, top + LINE)
            end = (min(max(x, left), left + long), min(max(y, top), top + LINE))
            inside = left >= 0 and left + long <= width
            if inside and not (hit([box], full) or hit(along([(x, y), end]), others)):
                break
        full.append(box)
        found.append((box, end))
    return found


def along(corners: Sequence[tuple[float, float]]) -> list[Box]:
    """Small boxes that cover a line."""
    return [
        _around(x0 + (x1 - x0) * part / 50, y0 + (y1 - y0) * part / 50, 3)
        for (x0, y0), (x1, y1) in pairwise(corners)
        for part in range(51)
    ]


def hit(some: Sequence[Box], others: Sequence[Box]) -> bool:
    return any(
        one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
        for one in some
        for other in others
    )


def _around(x: float, y: float, reach: float) -> Box:
    return x - reach, y - reach, x + reach, y + reach


def on_log_scale(channel: Any, low: float, high: float, **axis: Any) -> Any:
    """The channel X or Y, with ticks at 1, 2 and 5 times the powers of ten."""
    ticks = [digit * 10.0**power for power in range(-9, 7) for digit in (1, 2, 5)]
    channel = channel.axis(**axis, values=[tick for tick in ticks if low <= tick <= high])
    return channel.scale(type="log", domain=[low, high], nice=False)


PICTURE, WIDE, NARROW = 860, 1240, 350  # pixels: in the README; on the page, on a phone
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"  # vl-convert brings the first
_THEME: dict[str, Any] = {
    "font": FONT,
    "background": PAPER,
    "title": {"color": INK, "fontSize": 14, "subtitleColor": AXIS, "subtitleFontSize": 11},
    "view": {"stroke": None},
    "axis": {
        **{f"{part}Color": AXIS for part in ("domain", "tick", "label", "title")},
        **{"gridColor": GRID, "labelFontSize": 11, "titleFontWeight": "normal"},
    },
    "legend": {"labelColor": AXIS, "orient": "top", "title": None},
    "text": {"fontSize": 11},
}
_PADDING = {"left": 14, "right": 14, "top": 8, "bottom": 8}
LEFT, RIGHT = 70, 122  # room for the axis, and for names at the ends of lines

Point = Mapping[str, Any]
Layers: TypeAlias = alt.LayerChart
Chart: TypeAlias = alt.LayerChart | alt.HConcatChart | alt.VConcatChart


def looks_of(found: Sequence[Measured]) -> tuple[Any, ...]:
    """What sets a rung apart, the same in every chart: colour, shape, dash."""
    each = looks([rung.name for rung in found])
    kinds: tuple[Any, ...] = (alt.Color, alt.Shape, alt.StrokeDash)
    return tuple(
        kind("rung:N", legend=None).scale(domain=list(each), range=list(parts))
        for kind, parts in zip(kinds, zip(*each.values()))
    )


def label_of(name: str) -> str:
    return "cuBLAS" if name == YARDSTICK else name


def tip(*lines: tuple[str, str, str]) -> list[alt.Tooltip]:
    """Field, title and format of each line."""
    return [alt.Tooltip(field, title=title, format=form) for field, title, form in lines]


def layered(*layers: alt.Chart) -> Layers:
    return alt.LayerChart(layer=list(layers))


def data_of(rows: Sequence[Point]) -> alt.InlineData:
    return alt.InlineData(values=tuple(map(dict, rows)))  # Altair copies a list, but no tuple


def finished(
    chart: Chart, width: int, title: Any, notes: Sequence[str], words: Sequence[str]
) -> Chart:
    """With a heading and the look that all share. `words` tell the data to who cannot see them."""
    subtitle = [line for note in notes for line in textwrap.wrap(note, int(width / 6.3))]
    heading = alt.TitleParams(title, subtitle=subtitle, anchor="start", frame="bounds", offset=14)
    chart = chart.properties(title=heading, description="; ".join(words), padding=_PADDING)
    finished: Chart = chart.configure(**_THEME)
    return finished
