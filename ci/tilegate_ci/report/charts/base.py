"""What all charts share: their look, and how Altair is called."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import altair as alt

from tilegate_ci.core.names import YARDSTICK
from tilegate_ci.report.figures import Measured
from tilegate_ci.report.palette import AXIS, GRID, INK, PAPER, looks

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


def looks_of(found: Sequence[Measured]) -> tuple[Any, Any, Any]:
    """What sets a rung apart, the same in every chart: colour, shape, dash."""
    each = looks([rung.name for rung in found])
    kinds: tuple[Any, ...] = (alt.Color, alt.Shape, alt.StrokeDash)
    colour, shape, dash = (
        kind("rung:N", legend=None).scale(domain=list(each), range=list(parts))
        for kind, parts in zip(kinds, zip(*each.values()))
    )
    return colour, shape, dash


def label_of(name: str) -> str:
    return "cuBLAS" if name == YARDSTICK else name


def tip(*lines: tuple[str, str, str]) -> list[alt.Tooltip]:
    """Field, title and format of each line."""
    return [alt.Tooltip(field, title=title, format=form) for field, title, form in lines]


def layered(*layers: alt.Chart) -> Layers:
    return alt.LayerChart(layer=list(layers))


def data_of(rows: Sequence[Point]) -> alt.InlineData:
    return alt.InlineData(
        values=tuple(map(dict, rows))
    )  # which Altair does not copy, unlike a list


def finished(
    chart: Chart, width: int, title: Any, notes: Sequence[str], words: Sequence[str]
) -> Chart:
    """With a heading and the look that all share. `words` tell the data to who cannot see them."""
    subtitle = [line for note in notes for line in textwrap.wrap(note, int(width / 6.3))]
    heading = alt.TitleParams(title, subtitle=subtitle, anchor="start", frame="bounds", offset=14)
    chart = chart.properties(title=heading, description="; ".join(words), padding=_PADDING)
    finished: Chart = chart.configure(**_THEME)
    return finished
