"""The roofline of a profile."""

import math
import statistics
from typing import Any

import altair as alt

from tilegate_ci.model import GFLOPS
from tilegate_ci.report.charts.base import (
    AXIS,
    INK,
    LEFT,
    LETTER,
    Chart,
    Point,
    along,
    beside,
    data_of,
    finished,
    label_of,
    layered,
    looks_of,
    round_values,
    tip,
)
from tilegate_ci.report.figures import Ladder, split_roof_note


def profiled(ladder: Ladder) -> list[dict[str, Any]]:
    """What a roofline shows: rungs both profiled and measured at that size."""
    profile = ladder.profile
    if profile is None:
        return []
    return [
        {"rung": rung.name, "x": intensity, **row.summary}
        for rung in ladder.found
        if (intensity := profile.intensity.get(rung.name)) is not None
        and (row := rung.square(profile.size)) is not None
        and "pct_peak" in row.summary
    ]


def roofline(ladder: Ladder, width: int) -> Chart:
    """TFLOP/s over FLOP per byte of device memory, at the size that was profiled."""
    profile, split_roof = ladder.profile, ladder.roof
    assert profile
    points = [{**p, "y": p[GFLOPS] / 1000} for p in profiled(ladder)]
    peak = statistics.median(100 * p["y"] / p["pct_peak"] for p in points)
    bandwidth = profile.memory_gb_per_s / 1000
    names = {peak: f"{peak:.1f} TFLOP/s of FFMA"}
    if split_roof:
        names[split_roof] = f"{split_roof:.0f} TFLOP/s: INT8 tensor cores ÷ 6, FP16 ÷ 3"
    roofs = sorted(names)
    plot, height = width - LEFT - 14, 440
    left = min(roofs[0] / bandwidth, *(p["x"] for p in points)) / 1.6
    right = max(roofs[-1] / bandwidth, *(p["x"] for p in points))
    right *= (right / left) ** (90 / (plot - 90))  # room for a name
    bottom, top = min(p["y"] for p in points) / 1.6, 1.6 * max(*roofs, *(p["y"] for p in points))
    start = max(left, bottom / bandwidth)
    below = (bottom / top) ** (10 / height)  # of a roof its name stands
    corners = [
        {"x": roof / bandwidth, "y": roof, "name": names[roof], "at": roof * below}
        for roof in roofs
    ]
    lines = [
        [{"x": start, "y": start * bandwidth}, corners[-1]],  # what memory allows
        *([corner, {"x": right, "y": corner["y"]}] for corner in corners),
    ]
    roof = [{**end, "line": number} for number, line in enumerate(lines) for end in line]

    def pixel(point: Point) -> tuple[float, float]:
        return (
            plot * math.log(point["x"] / left) / math.log(right / left),
            height * math.log(top / point["y"]) / math.log(top / bottom),
        )

    points.sort(key=lambda p: -p["x"])
    dots = [(*pixel(p), label_of(p["rung"])) for p in points]
    taken = [box for line in lines for box in along([pixel(p) for p in line])]
    for corner in corners:
        x, y = pixel(corner)
        taken.append((x, y, x + LETTER * len(corner["name"]), y + 20))
    for point, (box, end) in zip(points, beside(dots, taken, plot)):
        point["label"] = label_of(point["rung"])
        for key, x, y in (("at", box[0], (box[1] + box[3]) / 2), ("end", *end)):
            point[f"{key}_x"] = left * (right / left) ** (x / plot)
            point[f"{key}_y"] = top * (bottom / top) ** (y / height)
    across = alt.X("x:Q", title="FLOP of the product, 2·M·N·K, per byte of device memory")
    across = across.axis(values=round_values(left, right), format="~r")
    across = across.scale(type="log", domain=[left, right], nice=False)
    up = alt.Y("y:Q", title="TFLOP/s").axis(
        values=round_values(bottom, top), format="~r", domain=False
    )
    up = up.scale(type="log", domain=[bottom, top], nice=False)
    shown = tip(("rung:N", "rung", ""), ("y:Q", "TFLOP/s", ".2f"), ("x:Q", "FLOP per byte", ".1f"))
    colour, shape, _ = looks_of(ladder.found)
    drawn = alt.Chart(data_of(points))
    chart = layered(
        alt.Chart(data_of(roof))
        .mark_line(color=INK, strokeWidth=2)
        .encode(across, up, detail="line:N"),
        alt.Chart(data_of(corners))
        .mark_text(align="left", dx=4, color=AXIS)
        .encode(across, alt.Y("at:Q"), text=alt.Text("name:N")),
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
    words = [*(f"roof: {names[roof]}" for roof in roofs), f"{bandwidth:.2f} TB/s of device memory"]
    words += [f"{p['rung']}: {p['y']:.2f} at {p['x']:.1f} FLOP per byte" for p in points]
    notes = [f"Device memory: {bandwidth:.2f} TB/s, counted in {profile.path}.", ladder.note]
    if split_roof:
        notes.insert(0, f"Tensor cores: {split_roof_note(split_roof)}.")
    return finished(chart, width, f"Roofline at {profile.size}³", notes, words)
