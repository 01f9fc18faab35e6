"""Speeds over sizes and over commits."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import altair as alt

from tilegate_ci.core.names import YARDSTICK
from tilegate_ci.report.charts.base import (
    LEFT,
    RIGHT,
    Chart,
    data_of,
    finished,
    label_of,
    layered,
    looks_of,
    tip,
)
from tilegate_ci.report.charts.labels import LINE, apart
from tilegate_ci.report.data import Revision
from tilegate_ci.report.figures import RATIO_NOTE, SHARE_SIZE, Measured
from tilegate_ci.report.palette import ACCENT, AXIS, INK, PAPER


def sizes(found: Sequence[Measured], note: str, width: int) -> Chart:
    """TFLOP/s over size."""
    points = _points(found, Measured.speeds)
    words = [f"{p['rung']} at {p['x']}: {p['y']:.2f}" for p in points]
    chart = _lines(points, "M = N = K", ("TFLOP/s", "d", ".2f"), found, width)
    return finished(chart, width, "TFLOP/s over size", [note], words)


def shares(found: Sequence[Measured], note: str, width: int) -> Chart:
    """Share of cuBLAS over size."""
    points = _points(found, Measured.shares)
    words = [f"{p['rung']} at {p['x']}: {p['y']:.1%}" for p in points]
    chart = _lines(points, "M = N = K", ("share of cuBLAS", "%", ".1%"), found, width)
    return finished(chart, width, "Share of cuBLAS over size", [RATIO_NOTE, note], words)


def bars(found: Sequence[Measured], note: str, width: int) -> Chart:
    """Share of cuBLAS, a bar per rung, at a size that can be chosen."""
    points = _points([rung for rung in found if rung.name != YARDSTICK], Measured.shares)
    size = _size_choice({p["x"] for p in points})
    names = list(dict.fromkeys(p["rung"] for p in points))
    top = 1.12 * max(1.0, *(p["y"] for p in points))
    plot = width - 136
    lacking = [
        {"rung": name, "x": size, "y": 0.0}
        for size in {p["x"] for p in points}
        for name in {*names} - {p["rung"] for p in points if p["x"] == size}
    ]
    base = alt.Chart(data_of(points)).transform_filter("datum.x == size")
    across = alt.X("y:Q", title="share of cuBLAS").axis(format="%", domain=False, tickCount=6)
    across = across.scale(domain=[0, top], nice=False)
    up = alt.Y("rung:N", sort=names, title=None).scale(domain=names)
    up = up.axis(ticks=False, domain=False, labelColor=INK, labelPadding=6)
    shown = tip(("rung:N", "rung", ""), ("y:Q", "of cuBLAS", ".1%"))
    text = base.encode(across, up, text=alt.Text("y:Q", format=".1%"))
    # Inside the bar if it has room, and the line at 100 % does not run through it there.
    room = top * 50 / plot  # of a text of 50 pixels
    inside = f"datum.y > {room:.3f} && (datum.y <= 1 || datum.y > {1 + room:.3f})"
    beside = f"datum.y < 1 && datum.y > {1 - room:.3f} ? 1 : datum.y"
    full = alt.Chart(data_of([{"y": 1}])).mark_rule(color=INK, strokeDash=[5, 2], strokeWidth=1.5)
    chart = layered(
        base.mark_bar(color=ACCENT, height=16).encode(across, up, tooltip=shown),
        text.transform_filter(inside).mark_text(align="right", dx=-5, color=PAPER),
        text.transform_filter(f"!({inside})")
        .transform_calculate(at=beside)
        .mark_text(align="left", dx=5, color=INK)
        .encode(alt.X("at:Q")),
        full.encode(across),
        alt.Chart(data_of(lacking))
        .transform_filter("datum.x == size")
        .transform_calculate(at=beside)
        .mark_text(align="left", dx=5, color=AXIS, text="not measured")
        .encode(alt.X("at:Q"), up),
    )
    chart = chart.properties(width=plot, height=23 * len(names)).add_params(size)
    words = [f"{p['rung']} at {p['x']}: {p['y']:.1%}" for p in points]
    title = alt.expr("'Share of cuBLAS at ' + size + '³'")
    return finished(chart, width, title, [RATIO_NOTE, note], words)


def history(
    found: Sequence[Measured], revisions: Sequence[Revision], commit: str, width: int
) -> Chart:
    """Share of cuBLAS over the commits of the baseline, and last in the present run."""
    runs = [(revision.commit[:7], revision.date, revision.shares) for revision in revisions]
    runs.append(("this run", commit[:7], {rung.name: rung.shares() for rung in found}))
    sizes = {size for rung in found for size in rung.shares()}
    points: list[dict[str, Any]] = [
        {"rung": rung.name, "x": name, "when": when, "size": size, "y": value}
        for rung in found
        for name, when, values in runs
        for size, value in values.get(rung.name, {}).items()
        if size in sizes
    ]
    choice = _size_choice({p["size"] for p in points})
    chart = _lines(points, None, ("share of cuBLAS", "%", ".1%"), found, width, choice)
    words = [f"{p['rung']} at {p['size']}, {p['x']}: {p['y']:.1%}" for p in points]
    title = alt.expr("'Share of cuBLAS at ' + size + '³ by commit'")
    return finished(chart, width, title, [RATIO_NOTE], words)


def _lines(
    points: list[dict[str, Any]],
    x_title: str | None,
    y: tuple[str, str, str],
    found: Sequence[Measured],
    width: int,
    choice: alt.Parameter | None = None,
) -> Chart:
    """A line per rung with its name at the end, on a scale of log2 where x has a title, else one of
    names. `points` have rung, x, y, and with a choice of sizes a size; `y` is the axis's title, its
    format and that of the tooltip."""
    points.sort(key=lambda point: point["rung"] != YARDSTICK)  # the others are drawn over it
    height, top = 380, 1.06 * max(point["y"] for point in points)
    ends: list[dict[str, Any]] = []
    for size in dict.fromkeys(point.get("size") for point in points):
        last = {point["rung"]: point for point in points if point.get("size") == size}
        places = apart([point["y"] for point in last.values()], top * LINE / height, top)
        for point, place in zip(last.values(), places):
            ends.append({**point, "label": label_of(point["rung"]), "at": place})
    values = list(dict.fromkeys(point["x"] for point in points))
    if x_title is not None:
        values.sort()
        across = alt.X("x:Q", title=x_title).axis(
            values=values, format="d", grid=False, labelFlush=False
        )
        ends_at = [values[0], values[-1] if len(values) > 1 else 2 * values[0]]
        across = across.scale(type="log", base=2, domain=ends_at, nice=False)
    else:
        across = alt.X("x:N", title=None, sort=None).axis(grid=False, labelAngle=-40)
        across = across.scale(type="point", padding=0.1, domain=values)
    up = alt.Y("y:Q", title=y[0]).axis(format=y[1], domain=False, tickCount=6)
    up = up.scale(domain=[0, top], nice=False)
    colour, shape, dash = looks_of(found)
    width_of = alt.when(alt.datum.rung == YARDSTICK).then(alt.value(3)).otherwise(alt.value(1.6))
    bold = alt.StrokeWidthValue(**width_of)
    pointed = alt.selection_point(
        name="pointed", fields=["rung"], on="pointerover", clear="pointerout"
    )
    faint = alt.OpacityValue(**alt.when(pointed).then(alt.value(1)).otherwise(alt.value(0.15)))
    at = ("x:Q", x_title, "") if x_title else ("x:N", "commit", "")
    shown = tip(("rung:N", "rung", ""), at, ("y:Q", y[0], y[2]))
    drawn, named = alt.Chart(data_of(points)), alt.Chart(data_of(ends))
    if choice is not None:
        shown += tip(("when:N", "of", ""))
        drawn = drawn.transform_filter("datum.size == size")
        named = named.transform_filter("datum.size == size")
    chart = layered(
        drawn.mark_line().encode(across, up, colour, dash, strokeWidth=bold, opacity=faint),
        drawn.mark_point(filled=True, size=45, opacity=1)
        .encode(across, up, colour, shape, opacity=faint, tooltip=shown)
        .add_params(pointed),
        named.mark_rule(xOffset=5, x2Offset=17, strokeWidth=0.8).encode(
            across, up, colour, x2=alt.X2("x"), y2=alt.Y2("at"), opacity=faint
        ),
        named.mark_text(align="left", dx=20).encode(
            across, alt.Y("at:Q"), colour, text=alt.Text("label:N"), opacity=faint
        ),
    ).properties(width=width - LEFT - RIGHT, height=height)
    return chart.add_params(choice) if choice is not None else chart


def _points(
    found: Sequence[Measured], values: Callable[[Measured], Mapping[int, float]]
) -> list[dict[str, Any]]:
    """A value by rung and size."""
    return [{"rung": r.name, "x": size, "y": y} for r in found for size, y in values(r).items()]


def _size_choice(sizes: Collection[int]) -> alt.Parameter:
    value, options = SHARE_SIZE if SHARE_SIZE in sizes else max(sizes), sorted(sizes)
    select = alt.binding_select(options=options, name="M = N = K")
    return alt.param("size", value=value, bind=select)
