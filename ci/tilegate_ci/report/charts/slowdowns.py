"""Slow-downs: of all benchmarks, and of one in each of its measurements."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from tilegate_ci.judge.compare import Row
from tilegate_ci.model import OWN_RATIO, PER_SECOND, RATIO, Verdict, relative
from tilegate_ci.report.charts.base import (
    ACCENT,
    AXIS,
    BAD,
    GOOD,
    GRID,
    INK,
    WARN,
    Chart,
    data_of,
    finished,
    layered,
    tip,
)
from tilegate_ci.report.figures import METRIC_NAMES, Pooled, duration, percent, signed

_POOLED = "geometric mean"
_LOOKS = {
    Verdict.REGRESSED.value: (BAD, "triangle-right"),
    Verdict.INCONCLUSIVE.value: (WARN, "square"),
    Verdict.INCOMPARABLE.value: (WARN, "cross"),
    Verdict.PASS.value: (INK, "circle"),
    # A dash, of which Vega's own has no area to fill.
    Verdict.IDENTICAL.value: (AXIS, "M-1,-0.25H1V0.25H-1Z"),
    Verdict.IMPROVED.value: (GOOD, "triangle-left"),
    _POOLED: (ACCENT, "diamond"),
}
_TICKS = (-0.8, -0.5, -0.2, -0.1, -0.05, -0.02, 0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)

Processes = Mapping[str, Sequence[float]]  # the slow-down in each, by side


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
        named = {"label": f"{mean.name}, mean of {mean.count}", "verdict": _POOLED, "speeds": ""}
        lines.append({**named, "slow": mean.slowdown, "low": mean.lower, "high": mean.upper})
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
    kinds = [kind for kind in _LOOKS if any(line["verdict"] == kind for line in lines)]
    legend = alt.Legend(columns=3 if narrow else len(kinds))
    colours, shapes = ([_LOOKS[kind][at] for kind in kinds] for at in (0, 1))
    colour = alt.Color("verdict:N", legend=legend).scale(domain=kinds, range=colours)
    shape = alt.Shape("verdict:N", legend=legend).scale(domain=kinds, range=shapes)
    shown = tip(
        *(("label:N", "benchmark", ""), ("verdict:N", "verdict", ""), ("pairs:Q", "pairs", "")),
        *(("slow:Q", "slow-down", "+.2%"), ("low:Q", "lower", "+.2%"), ("high:Q", "upper", "+.2%")),
        *(("to:Q", "margin", ".1%"), ("p:Q", "p", ".1g"), ("speeds:N", "baseline → candidate", "")),
    )
    base = alt.Chart(data_of(lines))
    columns: list[tuple[str, Any, int, str]] = [
        *(("label:N", "right", -12, INK), ("value:N", "left", plot + 14, AXIS)),
        ("speeds:N", "left", plot + 205, AXIS),
    ]
    if narrow:  # above the line, where there is no room beside it
        columns = [("label:N", "left", 0, INK), ("value:N", "right", plot, AXIS)]
    text = [
        base.mark_text(align=align, dy=-12 if narrow else 0, color=ink).encode(
            up, alt.XValue(x), alt.Text(field)
        )
        for field, align, x, ink in columns
    ]
    chart = layered(
        base.mark_bar(color=GRID, opacity=0.6, height=step).encode(
            alt.X("from:Q"), up, x2=alt.X2("to")
        ),
        alt.Chart(data_of([{"slow": 0}])).mark_rule(color=AXIS).encode(across),
        alt.Chart(data_of(ticks)).mark_tick(color=AXIS, height=9).encode(across, up),
        base.mark_rule(strokeWidth=2).encode(alt.X("low:Q"), up, colour, x2=alt.X2("high")),
        base.mark_point(filled=True, size=80, opacity=1).encode(
            across, up, colour, shape, tooltip=shown
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
    return finished(chart, width, "Slow-downs, worst first", notes, words)


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
    drawn = alt.Chart(data_of(points)).transform_filter("datum.benchmark == benchmark")
    span = alt.Chart(data_of(spans)).transform_filter("datum.benchmark == benchmark")
    up = alt.Y("y:Q", title="slow-down").axis(format="+.2~%", domain=False, tickCount=5)
    across = alt.X("x:N", title=None, sort=None).axis(grid=False, labelAngle=-40)
    colour = alt.Color("side:N", legend=None).scale(
        domain=["baseline", "candidate", "pair"], range=[AXIS, ACCENT, ACCENT]
    )
    shown = tip(("x:N", "measured", ""), ("y:Q", "slow-down", "+.3%"))
    whole = {"x": alt.value(0), "x2": alt.value("width")}
    chart = layered(
        span.mark_rect(color=GRID, opacity=0.6).encode(alt.Y("from:Q"), y2=alt.Y2("to"), **whole),
        span.mark_rect(color=ACCENT, opacity=0.25).encode(
            alt.Y("low:Q"), y2=alt.Y2("high"), **whole
        ),
        span.mark_rule(color=INK).encode(alt.Y("slow:Q"), **whole),
        drawn.mark_point(filled=True, size=60, opacity=1).encode(across, up, colour, tooltip=shown),
    ).properties(width=width - 90, height=190)
    note = "Grey: the margin. Line: the slow-down that is judged. Blue band: its 95 % bounds."
    words = [f"{p['benchmark']}, {p['x']}: {p['y']:+.2%}" for p in points]
    title = alt.expr("benchmark")
    return finished(chart.add_params(chosen), width, title, [note], words)


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
