"""The roofline of a profile."""

import math
import statistics
from collections.abc import Sequence
from typing import Any

import altair as alt

from tilegate_ci.model import GFLOPS
from tilegate_ci.report.charts.base import (
    LEFT,
    Chart,
    Point,
    data_of,
    finished,
    label_of,
    layered,
    looks_of,
    tip,
)
from tilegate_ci.report.charts.labels import LETTER, along, beside
from tilegate_ci.report.data import Profile
from tilegate_ci.report.figures import Measured
from tilegate_ci.report.palette import AXIS, INK


def profiled(found: Sequence[Measured], profile: Profile) -> list[dict[str, Any]]:
    """What a roofline shows: rungs both profiled and measured at that size. Not those above what
    memory gives: the profiler counts the operations of tensor cores on integers as no FLOP."""
    return [
        {"rung": rung.name, "x": intensity, **row.summary}
        for rung in found
        if (intensity := profile.intensity.get(rung.name)) is not None
        and (row := rung.square(profile.size)) is not None
        and "pct_peak" in row.summary
        and row.summary[GFLOPS] <= intensity * profile.memory_gb_per_s
    ]


def roofline(found: Sequence[Measured], profile: Profile, note: str, width: int) -> Chart:
    """TFLOP/s over the arithmetic intensity that the profiler counted, at the size it profiled."""
    points = [{**p, "y": p[GFLOPS] / 1000} for p in profiled(found, profile)]
    peak = statistics.median(100 * p["y"] / p["pct_peak"] for p in points)
    bandwidth = profile.memory_gb_per_s / 1000
    corner = peak / bandwidth
    plot, height = width - LEFT - 14, 400
    roof_name = f"{peak:.1f} TFLOP/s of FFMA"
    left = min(corner, *(p["x"] for p in points)) / 1.6
    right = max(corner, *(p["x"] for p in points))
    right *= (right / left) ** (90 / (plot - 90))  # room for a name
    bottom, top = min(p["y"] for p in points) / 1.6, max(peak * 2, *(p["y"] * 1.3 for p in points))
    start = max(left, bottom / bandwidth)
    roof = [{"x": start, "y": start * bandwidth}, {"x": corner, "y": peak}, {"x": right, "y": peak}]

    def pixel(point: Point) -> tuple[float, float]:
        return (
            plot * math.log(point["x"] / left) / math.log(right / left),
            height * math.log(top / point["y"]) / math.log(top / bottom),
        )

    points.sort(key=lambda p: -p["x"])
    dots = [(*pixel(p), label_of(p["rung"])) for p in points]
    x, y = pixel(roof[1])
    taken = [(x, y - 20, x + LETTER * len(roof_name), y), *along([pixel(p) for p in roof])]
    for point, (box, end) in zip(points, beside(dots, taken, plot)):
        point["label"] = label_of(point["rung"])
        for key, x, y in (("at", box[0], (box[1] + box[3]) / 2), ("end", *end)):
            point[f"{key}_x"] = left * (right / left) ** (x / plot)
            point[f"{key}_y"] = top * (bottom / top) ** (y / height)
    across = alt.X("x:Q", title="FLOP per byte of device memory, as the profiler counted them")
    across = across.axis(values=_within(left, right), format="~r")
    across = across.scale(type="log", domain=[left, right], nice=False)
    up = alt.Y("y:Q", title="TFLOP/s").axis(values=_within(bottom, top), format="~r", domain=False)
    up = up.scale(type="log", domain=[bottom, top], nice=False)
    shown = tip(("rung:N", "rung", ""), ("y:Q", "TFLOP/s", ".2f"), ("x:Q", "FLOP per byte", ".1f"))
    colour, shape, _ = looks_of(found)
    drawn = alt.Chart(data_of(points))
    chart = layered(
        alt.Chart(data_of(roof)).mark_line(color=INK, strokeWidth=2).encode(across, up),
        alt.Chart(data_of(roof[1:2]))
        .mark_text(align="left", dy=-9, color=AXIS, text=roof_name)
        .encode(across, up),
        drawn.mark_rule(strokeWidth=0.8).encode(
            across, up, colour, x2=alt.X2("end_x"), y2=alt.Y2("end_y")
        ),
        drawn.mark_point(filled=True, size=70, opacity=1).encode(
            across, up, colour, shape, tooltip=shown
        ),
        drawn.mark_text(align="left", dx=2).encode(
            alt.X("at_x:Q"), alt.Y("at_y:Q"), colour, text=alt.Text("label:N")
        ),
    ).properties(width=plot, height=height)
    words = [f"roof {roof_name} and {bandwidth:.2f} TB/s of device memory"]
    words += [f"{p['rung']}: {p['y']:.2f} at {p['x']:.1f} FLOP per byte" for p in points]
    notes = [f"Device memory: {bandwidth:.2f} TB/s, counted in {profile.path}.", note]
    return finished(chart, width, f"Roofline at {profile.size}³", notes, words)


def _within(low: float, high: float) -> list[float]:
    """1, 2 and 5 times the powers of ten between the two."""
    ticks = [digit * 10.0**power for power in range(-6, 7) for digit in (1, 2, 5)]
    return [tick for tick in ticks if low <= tick <= high]
