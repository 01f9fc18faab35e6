"""Efficiency of products over several GPUs."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from tilegate_ci.report.charts.base import (
    ACCENT,
    AXIS,
    LEFT,
    LINE,
    RIGHT,
    WARN,
    Chart,
    Layers,
    apart,
    data_of,
    finished,
    layered,
)

HEIGHT = 300
_COLOURS = {"column-parallel": ACCENT, "row-parallel": WARN}
_DASHES = {"strong": [1, 0], "weak": [5, 3]}

# By panel, then form and kind of scaling: efficiency by n.
Panels = Mapping[str, Mapping[tuple[str, str], Mapping[int, float]]]


def scaling(panels: Panels, gpus: int, note: str, width: int) -> Chart:
    """Side by side, with one scale."""
    every = [
        value for lines in panels.values() for of_n in lines.values() for value in of_n.values()
    ]
    low = math.floor(10 * min(every)) / 10
    across = (width - len(panels) * (LEFT + RIGHT)) // len(panels)
    drawn = [_panel(title, lines, low, across) for title, lines in panels.items()]
    words = [
        f"{title}, {form}, {kind} scaling, {n}: {value:.3f}"
        for title, lines in panels.items()
        for (form, kind), of_n in lines.items()
        for n, value in of_n.items()
    ]
    notes = [
        f"Strong: n³ on one GPU and on {gpus}. Weak: n³ on one GPU, {gpus} n³ on {gpus} GPUs: "
        f"N = {gpus} n column-parallel, K = {gpus} n row-parallel.",
        note,
    ]
    title = f"Efficiency on {gpus} GPUs"
    return finished(alt.HConcatChart(hconcat=drawn), width, title, notes, words)


def _panel(
    title: str, lines: Mapping[tuple[str, str], Mapping[int, float]], low: float, width: int
) -> Layers:
    points: list[dict[str, Any]] = [
        {"form": form, "kind": kind, "line": f"{form}, {kind}", "n": n, "y": value}
        for (form, kind), of_n in lines.items()
        for n, value in of_n.items()
    ]
    sizes = sorted({point["n"] for point in points})
    x = alt.X("n:Q", title="n").axis(values=sizes, format="d", grid=False, labelFlush=False)
    x = x.scale(type="log", base=2, domain=[sizes[0], sizes[-1]], nice=False)
    y = alt.Y("y:Q", title="efficiency").axis(domain=False, format=".2f")
    y = y.scale(domain=[low, 1.02], nice=False)
    colour = alt.Color("form:N", legend=None).scale(
        domain=list(_COLOURS), range=list(_COLOURS.values())
    )
    dash = alt.StrokeDash("kind:N", legend=None).scale(
        domain=list(_DASHES), range=list(_DASHES.values())
    )
    drawn, named = alt.Chart(data_of(points)), alt.Chart(data_of(_ends(points, low)))
    chart = layered(
        drawn.mark_line(strokeWidth=1.8).encode(x, y, colour, dash),
        drawn.mark_point(filled=True, size=36, opacity=1).encode(x, y, colour),
        named.mark_rule(xOffset=5, x2Offset=15, strokeWidth=0.8).encode(
            x, y, colour, x2=alt.X2("last"), y2=alt.Y2("at")
        ),
        named.mark_text(align="left", dx=18).encode(
            alt.X("last:Q"), alt.Y("at:Q"), colour, text=alt.Text("line:N")
        ),
    )
    heading = alt.TitleParams(title, anchor="start", frame="bounds", fontSize=12, color=AXIS)
    return chart.properties(width=width, height=HEIGHT, title=heading)


def _ends(points: Sequence[dict[str, Any]], low: float) -> list[dict[str, Any]]:
    """The last point of each line, and where its name stands: at the right end of the panel."""
    edge = max(point["n"] for point in points)
    last = {point["line"]: point for point in points}
    high = 1.02
    places = apart([point["y"] for point in last.values()], LINE * (high - low) / HEIGHT, high)
    return [{**point, "last": edge, "at": place} for point, place in zip(last.values(), places)]
