"""Every chart, as an Altair specification: it draws the README's picture and the page's chart.

Places are computed for a width, so that labels stand beside what they name and never on each
other. The page has each chart in two widths, for a screen and for a phone."""

import math
import statistics
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import altair as alt

from tilegate_ci.core.model import GFLOPS, OWN_RATIO, PER_SECOND, RATIO, relative
from tilegate_ci.core.names import YARDSTICK
from tilegate_ci.core.verdicts import Verdict
from tilegate_ci.judge.compare import Row
from tilegate_ci.report.data import Pooled, Profile, Revision
from tilegate_ci.report.figures import (
    METRIC_NAMES,
    RATIO_NOTE,
    SHARE_SIZE,
    Measured,
    duration,
    percent,
    signed,
)
from tilegate_ci.report.palette import ACCENT, AXIS, BAD, GOOD, GRID, INK, PAPER, WARN, looks

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
_LEFT, _RIGHT = 70, 122  # room for the axis, and for names at the ends of lines
_LINE, _LETTER = 14, 6.2  # pixels, of text of 11 pixels
_LOOKS = {
    Verdict.REGRESSED: (BAD, "triangle-right"),
    Verdict.INCONCLUSIVE: (WARN, "square"),
    Verdict.INCOMPARABLE: (WARN, "cross"),
    Verdict.PASS: (INK, "circle"),
    Verdict.IDENTICAL: (AXIS, "M-1,-0.25H1V0.25H-1Z"),  # a dash; Vega's own has no area to fill
    Verdict.IMPROVED: (GOOD, "triangle-left"),
}
_POOLED = "geometric mean"
_TICKS = (-0.8, -0.5, -0.2, -0.1, -0.05, -0.02, 0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)

Point = Mapping[str, Any]
Processes = Mapping[str, Sequence[float]]  # the slow-down in each, by side
Chart = alt.LayerChart


def sizes(found: Sequence[Measured], note: str, width: int) -> Chart:
    """TFLOP/s over size."""
    points = _points(found, Measured.speeds)
    words = [f"{p['rung']} at {p['x']}: {p['y']:.2f}" for p in points]
    chart = _lines(points, "M = N = K", ("TFLOP/s", "d", ".2f"), found, width)
    return _finished(chart, width, "TFLOP/s over size", [note], words)


def shares(found: Sequence[Measured], note: str, width: int) -> Chart:
    """Share of cuBLAS over size."""
    points = _points(found, Measured.shares)
    words = [f"{p['rung']} at {p['x']}: {p['y']:.1%}" for p in points]
    chart = _lines(points, "M = N = K", ("share of cuBLAS", "%", ".1%"), found, width)
    return _finished(chart, width, "Share of cuBLAS over size", [RATIO_NOTE, note], words)


def bars(found: Sequence[Measured], note: str, width: int) -> Chart:
    """Share of cuBLAS, a bar per rung, at a size that can be chosen."""
    points = _points([rung for rung in found if rung.name != YARDSTICK], Measured.shares)
    size = _size_choice({p["x"] for p in points})
    names = list(dict.fromkeys(p["rung"] for p in points))
    top = 1.12 * max(1.0, *(p["y"] for p in points))
    base = alt.Chart(_data(points)).transform_filter("datum.x == size")
    across = alt.X("y:Q", title="share of cuBLAS").axis(format="%", domain=False, tickCount=6)
    across = across.scale(domain=[0, top], nice=False)
    up = alt.Y("rung:N", sort=names, title=None).scale(domain=names)
    up = up.axis(ticks=False, domain=False, labelColor=INK, labelPadding=6)
    tip = _tip(("rung:N", "rung", ""), ("y:Q", "of cuBLAS", ".1%"))
    text = base.encode(across, up, text=alt.Text("y:Q", format=".1%"))
    # Inside the bar if it has room, and the line at 100 % does not run through it there.
    inside = "datum.y > 0.2 && (datum.y <= 1 || datum.y > 1.12)"
    full = alt.Chart(_data([{"y": 1}])).mark_rule(color=INK, strokeDash=[5, 2], strokeWidth=1.5)
    chart = _layered(
        base.mark_bar(color=ACCENT, height=16).encode(across, up, tooltip=tip),
        text.transform_filter(inside).mark_text(align="right", dx=-5, color=PAPER),
        text.transform_filter(f"!({inside})").mark_text(align="left", dx=5, color=INK),
        full.encode(across),
    )
    chart = chart.properties(width=width - 136, height=23 * len(names)).add_params(size)
    words = [f"{p['rung']} at {p['x']}: {p['y']:.1%}" for p in points]
    title = alt.expr("'Share of cuBLAS at ' + size + '³'")
    return _finished(chart, width, title, [RATIO_NOTE, note], words)


def profiled(found: Sequence[Measured], profile: Profile) -> list[dict[str, Any]]:
    """What a roofline shows: rungs both profiled and measured at that size."""
    return [
        {"rung": rung.name, "x": profile.intensity[rung.name], **row.summary}
        for rung in found
        if rung.name in profile.intensity
        and (row := rung.square(profile.size)) is not None
        and "pct_peak" in row.summary
    ]


def roofline(found: Sequence[Measured], profile: Profile, note: str, width: int) -> Chart:
    """TFLOP/s over the arithmetic intensity that the profiler counted, at the size it profiled."""
    points = [{**p, "y": p[GFLOPS] / 1000} for p in profiled(found, profile)]
    peak = statistics.median(100 * p["y"] / p["pct_peak"] for p in points)
    bandwidth = profile.memory_gb_per_s / 1000
    corner = peak / bandwidth
    plot, height = width - _LEFT - 14, 400
    roof_name = f"{peak:.1f} TFLOP/s of FFMA"
    left = min(corner, *(p["x"] for p in points)) / 1.6
    right = max(corner, *(p["x"] for p in points))
    right *= (right / left) ** (90 / (plot - 90))  # room for a name
    bottom, top = min(p["y"] for p in points) / 1.6, peak * 2
    start = max(left, bottom / bandwidth)
    roof = [{"x": start, "y": start * bandwidth}, {"x": corner, "y": peak}, {"x": right, "y": peak}]

    def pixel(point: Point) -> tuple[float, float]:
        return (
            plot * math.log(point["x"] / left) / math.log(right / left),
            height * math.log(top / point["y"]) / math.log(top / bottom),
        )

    points.sort(key=lambda p: -p["x"])
    dots = [(*pixel(p), _label(p["rung"])) for p in points]
    x, y = pixel(roof[1])
    taken = [(x, y - 20, x + _LETTER * len(roof_name), y), *_along([pixel(p) for p in roof])]
    for point, (box, end) in zip(points, beside(dots, taken, plot)):
        point["label"] = _label(point["rung"])
        for key, x, y in (("at", box[0], (box[1] + box[3]) / 2), ("end", *end)):
            point[f"{key}_x"] = left * (right / left) ** (x / plot)
            point[f"{key}_y"] = top * (bottom / top) ** (y / height)
    across = alt.X("x:Q", title="FLOP per byte of device memory, as the profiler counted them")
    across = across.axis(values=_within(left, right), format="~r")
    across = across.scale(type="log", domain=[left, right], nice=False)
    up = alt.Y("y:Q", title="TFLOP/s").axis(values=_within(bottom, top), format="~r", domain=False)
    up = up.scale(type="log", domain=[bottom, top], nice=False)
    tip = _tip(("rung:N", "rung", ""), ("y:Q", "TFLOP/s", ".2f"), ("x:Q", "FLOP per byte", ".1f"))
    colour, shape, _ = _looks(found)
    drawn = alt.Chart(_data(points))
    chart = _layered(
        alt.Chart(_data(roof)).mark_line(color=INK, strokeWidth=2).encode(across, up),
        alt.Chart(_data(roof[1:2]))
        .mark_text(align="left", dy=-9, color=AXIS, text=roof_name)
        .encode(across, up),
        drawn.mark_rule(strokeWidth=0.8).encode(across, up, colour, x2="end_x", y2="end_y"),
        drawn.mark_point(filled=True, size=70, opacity=1).encode(
            across, up, colour, shape, tooltip=tip
        ),
        drawn.mark_text(align="left", dx=2).encode(
            alt.X("at_x:Q"), alt.Y("at_y:Q"), colour, text="label:N"
        ),
    ).properties(width=plot, height=height)
    words = [f"roof {roof_name} and {bandwidth:.2f} TB/s of device memory"]
    words += [f"{p['rung']}: {p['y']:.2f} at {p['x']:.1f} FLOP per byte" for p in points]
    notes = [f"Device memory: {bandwidth:.2f} TB/s, counted in {profile.path}.", note]
    return _finished(chart, width, f"Roofline at {profile.size}³", notes, words)


def history(
    found: Sequence[Measured], revisions: Sequence[Revision], commit: str, width: int
) -> Chart:
    """Share of cuBLAS over the commits of the baseline, and last in the present run."""
    runs = [(revision.commit[:7], revision.date, revision.shares) for revision in revisions]
    runs.append(("this run", commit[:7], {rung.name: rung.shares() for rung in found}))
    points: list[dict[str, Any]] = [
        {"rung": rung.name, "x": name, "when": when, "size": size, "y": value}
        for rung in found
        for name, when, values in runs
        for size, value in values.get(rung.name, {}).items()
    ]
    choice = _size_choice({p["size"] for p in points})
    chart = _lines(points, None, ("share of cuBLAS", "%", ".1%"), found, width, choice)
    words = [f"{p['rung']} at {p['size']}, {p['x']}: {p['y']:.1%}" for p in points]
    title = alt.expr("'Share of cuBLAS at ' + size + '³ by commit'")
    return _finished(chart, width, title, [RATIO_NOTE], words)


def forest(
    rows: Sequence[Row],
    means: Sequence[Pooled],
    processes: Mapping[str, Processes],
    others: int,
    width: int,
) -> Chart:
    """Slow-downs with intervals and margins: of `rows`, which are given worst first, then of all,
    then of each rung. The candidate's processes are drawn where a benchmark has no pairs."""
    narrow = width < 600
    step, plot = (34, width - 24) if narrow else (21, width - 640)
    lines: list[dict[str, Any]] = []
    ticks: list[dict[str, Any]] = []
    for row in rows:
        single = () if row.pairs else processes.get(row.name, {}).get("candidate", ())
        ticks += [{"place": len(lines), "slow": value} for value in single]
        lines.append({"label": row.name, "verdict": row.verdict.value, "speeds": _speeds(row)})
        lines[-1] |= {"p": row.p, "pairs": len(row.pairs), **_span(row)}
    for mean in means:
        shown = {"label": f"{mean.name}, mean of {mean.count}", "verdict": _POOLED, "speeds": ""}
        lines.append({**shown, "slow": mean.slowdown, "low": mean.lower, "high": mean.upper})
    for place, line in enumerate(lines):
        line |= {"place": place, "value": f"{signed(line['slow'])} %"}
        if line["low"] is not None and not narrow:
            line["value"] += f"  ({signed(line['low'])} to {signed(line['high'])})"
    keys = ("slow", "low", "high", "from", "to")
    drawn = [v for line in [*lines, *ticks] for k in keys if (v := line.get(k)) is not None]
    room = 0.08 * (max(0.0, *drawn) - min(0.0, *drawn))
    low, high = min(0.0, *drawn) - room, max(0.0, *drawn) + room
    far = max(high, -low) > 0.3
    across = alt.X("slow:Q", title="slow-down: relative increase in time").axis(
        orient="top",
        labelExpr="datum.value ? format(datum.value, '+.1~%') : '0'",
        domain=False,
        offset=8,
        tickCount=4,
        values=[tick for tick in _TICKS if low <= tick <= high] if far else alt.Undefined,
    )
    across = across.scale(
        type="symlog" if far else "linear", constant=0.02, domain=[low, high], nice=False
    )
    up = alt.Y("place:O", axis=None).scale(domain=list(range(len(lines))), padding=0)
    names = [v.value for v in _LOOKS if any(line["verdict"] == v.value for line in lines)]
    known = {**{v.value: look for v, look in _LOOKS.items()}, _POOLED: (ACCENT, "diamond")}
    names += [_POOLED] * bool(means)
    legend = alt.Legend(columns=3 if narrow else len(names))
    colour = alt.Color("verdict:N", legend=legend)
    colour = colour.scale(domain=names, range=[known[n][0] for n in names])
    shape = alt.Shape("verdict:N", legend=legend)
    shape = shape.scale(domain=names, range=[known[n][1] for n in names])
    tip = _tip(
        *(("label:N", "benchmark", ""), ("verdict:N", "verdict", ""), ("pairs:Q", "pairs", "")),
        *(("slow:Q", "slow-down", "+.2%"), ("low:Q", "lower", "+.2%"), ("high:Q", "upper", "+.2%")),
        *(("to:Q", "margin", ".1%"), ("p:Q", "p", ".1g"), ("speeds:N", "baseline → candidate", "")),
    )
    base = alt.Chart(_data(lines))
    columns: list[tuple[str, Any, int, str]] = [
        *(("label:N", "right", -12, INK), ("value:N", "left", plot + 14, AXIS)),
        ("speeds:N", "left", plot + 205, AXIS),
    ]
    if narrow:  # above the line, where there is no room beside it
        columns = [("label:N", "left", 0, INK), ("value:N", "right", plot, AXIS)]
    text = [
        base.mark_text(align=align, dy=-12 if narrow else 0, color=ink).encode(
            up, x=alt.value(x), text=field
        )
        for field, align, x, ink in columns
    ]
    chart = _layered(
        base.mark_bar(color=GRID, opacity=0.6, height=step).encode(alt.X("from:Q"), up, x2="to"),
        alt.Chart(_data([{"slow": 0}])).mark_rule(color=AXIS).encode(across),
        alt.Chart(_data(ticks)).mark_tick(color=AXIS, height=9).encode(across, up),
        base.mark_rule(strokeWidth=2).encode(alt.X("low:Q"), up, colour, x2="high"),
        base.mark_point(filled=True, size=80, opacity=1).encode(
            across, up, colour, shape, tooltip=tip
        ),
        *text,
    ).properties(width=plot, height=step * len(lines))
    note = "Bars: one-sided 95 % bounds, where pairs were measured; elsewhere a tick per process. "
    note += "Grey: the margin."
    measured = {METRIC_NAMES[row.metric].replace("of ", "share of ") for row in rows}
    what = " or ".join(sorted(measured))
    beside_it = f"Beside it: slow-down, its bounds, {what} of baseline → candidate."
    notes = [note, *[beside_it] * (not narrow)]
    notes += [f"{others} more benchmarks are in the table."] * bool(others)
    words = [f"{line['label']}: {line['value']}, {line['verdict']}" for line in lines]
    return _finished(chart, width, "Slow-downs, worst first", notes, words)


def detail(rows: Sequence[Row], processes: Mapping[str, Processes], width: int) -> Chart:
    """The slow-down in each pair, or else in each process, of one benchmark, which the parameter
    `benchmark` names; around it the margin and the bounds of the mean."""
    points, spans = [], []
    for row in rows:
        series = {"pair": row.pairs} if row.pairs else processes.get(row.name, {})
        points += [
            {"benchmark": row.name, "side": side, "x": f"{side} {number}", "y": value}
            for side, values in series.items()
            for number, value in enumerate(values, 1)
        ]
        spans.append({"benchmark": row.name, **_span(row)})
    chosen = alt.param(name="benchmark", value=rows[0].name)
    drawn = alt.Chart(_data(points)).transform_filter("datum.benchmark == benchmark")
    span = alt.Chart(_data(spans)).transform_filter("datum.benchmark == benchmark")
    up = alt.Y("y:Q", title="slow-down").axis(format="+.2~%", domain=False, tickCount=5)
    across = alt.X("x:N", title=None, sort=None).axis(grid=False, labelAngle=-40)
    colour = alt.Color("side:N", legend=None).scale(
        domain=["baseline", "candidate", "pair"], range=[AXIS, ACCENT, ACCENT]
    )
    tip = _tip(("x:N", "measured", ""), ("y:Q", "slow-down", "+.3%"))
    whole = {"x": alt.value(0), "x2": alt.value("width")}
    chart = _layered(
        span.mark_rect(color=GRID, opacity=0.6).encode(alt.Y("from:Q"), y2="to", **whole),
        span.mark_rect(color=ACCENT, opacity=0.25).encode(alt.Y("low:Q"), y2="high", **whole),
        span.mark_rule(color=INK).encode(alt.Y("slow:Q"), **whole),
        drawn.mark_point(filled=True, size=60, opacity=1).encode(across, up, colour, tooltip=tip),
    ).properties(width=width - 90, height=190)
    note = "Grey: the margin. Line: the slow-down that is judged. Blue band: its 95 % bounds."
    words = [f"{p['benchmark']}, {p['x']}: {p['y']:+.2%}" for p in points]
    title = alt.expr("benchmark")
    return _finished(chart.add_params(chosen), width, title, [note], words)


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
        places = apart([point["y"] for point in last.values()], top * _LINE / height, top)
        for point, place in zip(last.values(), places):
            ends.append({**point, "label": _label(point["rung"]), "at": place})
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
    colour, shape, dash = _looks(found)
    bold = alt.when(alt.datum.rung == YARDSTICK).then(alt.value(3)).otherwise(alt.value(1.6))
    pointed = alt.selection_point(
        name="pointed", fields=["rung"], on="pointerover", clear="pointerout"
    )
    faint = alt.when(pointed).then(alt.value(1)).otherwise(alt.value(0.15))
    at = ("x:Q", x_title, "") if x_title else ("x:N", "commit", "")
    tip = _tip(("rung:N", "rung", ""), at, ("y:Q", y[0], y[2]))
    drawn, named = alt.Chart(_data(points)), alt.Chart(_data(ends))
    if choice is not None:
        tip += _tip(("when:N", "of", ""))
        drawn = drawn.transform_filter("datum.size == size")
        named = named.transform_filter("datum.size == size")
    chart = _layered(
        drawn.mark_line().encode(across, up, colour, dash, strokeWidth=bold, opacity=faint),
        drawn.mark_point(filled=True, size=45, opacity=1)
        .encode(across, up, colour, shape, opacity=faint, tooltip=tip)
        .add_params(pointed),
        named.mark_rule(xOffset=5, x2Offset=17, strokeWidth=0.8).encode(
            across, up, colour, x2="x", y2="at", opacity=faint
        ),
        named.mark_text(align="left", dx=20).encode(
            across, alt.Y("at:Q"), colour, text="label:N", opacity=faint
        ),
    ).properties(width=width - _LEFT - _RIGHT, height=height)
    return chart.add_params(choice) if choice is not None else chart


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


Box = tuple[float, float, float, float]  # left, top, right, bottom
_PLACES = [
    (reach, angle) for reach in range(10, 120, 6) for angle in (0, 180, 45, 315, 135, 225, 90, 270)
]


def beside(
    dots: Sequence[tuple[float, float, str]], taken: Sequence[Box], width: float
) -> list[tuple[Box, tuple[float, float]]]:
    """A box for each dot's label, in pixels, as near to it as there is room beside the other
    labels, the dots and what else is taken; and the end of a line to it, clear of other dots."""
    full = [*taken, *(_around(x, y, 7) for x, y, _ in dots)]
    found = []
    for x, y, label in dots:
        long = 4 + _LETTER * len(label)
        others = [_around(u, v, 3) for u, v, _ in dots if math.hypot(u - x, v - y) > 10]
        for reach, angle in _PLACES:
            turn = math.radians(angle)
            left = x + reach * math.cos(turn) - long * (1 - math.cos(turn)) / 2
            top = y - reach * math.sin(turn) - _LINE / 2
            box = (left, top, left + long, top + _LINE)
            end = (min(max(x, left), left + long), min(max(y, top), top + _LINE))
            inside = left >= 0 and left + long <= width
            if inside and not (hit([box], full) or hit(_along([(x, y), end]), others)):
                break
        full.append(box)
        found.append((box, end))
    return found


def _around(x: float, y: float, reach: float) -> Box:
    return x - reach, y - reach, x + reach, y + reach


def _along(corners: Sequence[tuple[float, float]]) -> list[Box]:
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


def _within(low: float, high: float) -> list[float]:
    """1, 2 and 5 times the powers of ten between the two."""
    ticks = [digit * 10.0**power for power in range(-6, 7) for digit in (1, 2, 5)]
    return [tick for tick in ticks if low <= tick <= high]


def _looks(found: Sequence[Measured]) -> tuple[Any, Any, Any]:
    """What sets a rung apart, the same in every chart: colour, shape, dash."""
    each = looks([rung.name for rung in found])
    kinds: tuple[Any, ...] = (alt.Color, alt.Shape, alt.StrokeDash)
    colour, shape, dash = (
        kind("rung:N", legend=None).scale(domain=list(each), range=list(parts))
        for kind, parts in zip(kinds, zip(*each.values()))
    )
    return colour, shape, dash


def _points(
    found: Sequence[Measured], values: Callable[[Measured], Mapping[int, float]]
) -> list[dict[str, Any]]:
    """A value by rung and size."""
    return [{"rung": r.name, "x": size, "y": y} for r in found for size, y in values(r).items()]


def _size_choice(sizes: Collection[int]) -> alt.Parameter:
    value, options = SHARE_SIZE if SHARE_SIZE in sizes else max(sizes), sorted(sizes)
    select = alt.binding_select(options=options, name="M = N = K")
    return alt.param("size", value=value, bind=select)


def _span(row: Row) -> dict[str, float | None]:
    """The slow-down, its bounds and the margin around none."""
    delta = row.delta or 0.0
    bounds = {"slow": row.slowdown, "low": row.lower, "high": row.upper}
    return {**bounds, "from": relative(-delta), "to": relative(delta)}


def _speeds(row: Row) -> str:
    known = [value for value in (row.baseline, row.candidate) if value is not None]
    if row.metric == PER_SECOND:
        return " → ".join(duration(1 / value) for value in known)
    share = row.metric in (RATIO, OWN_RATIO)
    return " → ".join(percent(value) if share else f"{value:,.0f} GFLOPS" for value in known)


def _label(name: str) -> str:
    return "cuBLAS" if name == YARDSTICK else name


def _tip(*lines: tuple[str, str, str]) -> list[alt.Tooltip]:
    """Field, title and format of each line."""
    return [alt.Tooltip(field, title=title, format=form) for field, title, form in lines]


def _layered(*layers: alt.Chart) -> Chart:
    return Chart(layer=list(layers))


def _data(rows: Sequence[Point]) -> alt.InlineData:
    return alt.InlineData(values=[dict(row) for row in rows])


def _finished(
    chart: Chart, width: int, title: Any, notes: Sequence[str], words: Sequence[str]
) -> Chart:
    """With a heading and the look that all share. `words` tell the data to who cannot see them."""
    subtitle = [line for note in notes for line in textwrap.wrap(note, int(width / 6.3))]
    heading = alt.TitleParams(title, subtitle=subtitle, anchor="start", frame="bounds", offset=14)
    chart = chart.properties(title=heading, description="; ".join(words), padding=_PADDING)
    finished: Chart = chart.configure(**_THEME)
    return finished
