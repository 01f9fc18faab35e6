"""Speeds: a staircase of bars at one size, lines over sizes, lines over commits, the roofline."""

import math
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import altair as alt

from tilegate_ci.core.names import YARDSTICK
from tilegate_ci.judge.drift import Version
from tilegate_ci.model import GFLOPS
from tilegate_ci.report import figures
from tilegate_ci.report.charts.base import (
    ACCENT,
    AXIS,
    FAINT,
    INK,
    LEFT,
    LETTER,
    LINE,
    RIGHT,
    WARN,
    Chart,
    Layers,
    Point,
    along,
    apart,
    beside,
    data_of,
    finished,
    label_of,
    layered,
    looks_of,
    on_log_scale,
    tip,
)
from tilegate_ci.report.figures import RATIO_NOTE, SHARE_SIZE, Ladder, Measured

FP32, SPLIT = "FP32 arithmetic", "Operands split for tensor cores"
_TFLOPS = ("TFLOP/s", "~r", ".2f")
_SHARE = ("share of cuBLAS", "%", ".1%")


def staircase(ladder: Ladder, width: int) -> Chart:
    """TFLOP/s and share of cuBLAS, a bar per rung, at a size that can be chosen. Rungs that split
    operands for tensor cores are a group with a scale of its own, where cuBLAS stands again."""
    found, split_roof = ladder.squares, ladder.roof
    shares_of = {each.name: each.shares() for each in found}
    points = _points(found, Measured.speeds)
    for point in points:
        share = shares_of[point["rung"]].get(point["x"])
        point["label"] = label_of(point["rung"])
        point["speed"] = _three_digits(point["y"])
        point["share"] = "" if share is None else f"{share:.0%}"
    rows = [row.summary for each in found for row in each.squares().values()]
    peaks = [row[GFLOPS] / 10 / row["pct_peak"] for row in rows if row.get("pct_peak")]
    roofs = {FP32: statistics.median(peaks) if peaks else 0.0, SPLIT: split_roof}
    size = _size_choice({p["x"] for p in points})
    panels = [
        _steps(title, [each.name for each in group], points, roofs[title], width)
        for title, group in _groups(ladder).items()
    ]
    words = [f"{p['rung']} at {p['x']}: {p['y']:.2f}, {p['share'] or '-'}" for p in points]
    chart = alt.VConcatChart(vconcat=panels, spacing=12).add_params(size)
    lines = "Dashed: cuBLAS. Roofs: the FFMA peak that bench measures"
    if split_roof:
        lines += f"; {figures.split_roof_note(split_roof)}"
    title = alt.expr("'TFLOP/s at ' + size + '³'")
    return finished(chart, width, title, [f"{lines}.", ladder.note], words)


def _steps(
    title: str, names: Sequence[str], points: Sequence[dict[str, Any]], roof: float, width: int
) -> Layers:
    """Bars of some of the points, and two columns of numbers at their right."""
    points = [point for point in points if point["rung"] in names]
    plot = width - 242
    top = 1.03 * max(roof, *(p["y"] for p in points))
    across = alt.X("y:Q", title=None).axis(format="~r", domain=False, tickCount=6)
    across = across.scale(domain=[0, top], nice=False)
    labels = [label_of(name) for name in names]
    up = alt.Y("label:N", sort=labels, title=None).scale(domain=labels)
    up = up.axis(ticks=False, domain=False, labelColor=INK, labelPadding=6, minExtent=104)
    drawn = alt.Chart(data_of(points)).transform_filter("datum.x == size")
    reference = drawn.transform_filter(alt.datum.rung == YARDSTICK)
    shown = tip(("label:N", "rung", ""), ("y:Q", "TFLOP/s", ".2f"), ("share:N", "of cuBLAS", ""))
    fill = alt.when(alt.datum.rung == YARDSTICK).then(alt.value(AXIS)).otherwise(alt.value(ACCENT))
    layers = [
        drawn.mark_bar(height=13).encode(across, up, alt.Color(**fill), tooltip=shown),
        reference.mark_rule(color=AXIS, strokeDash=[4, 3]).encode(across),
    ]
    for field, right, head in (("speed", 52, "TFLOP/s"), ("share", 116, "of cuBLAS")):
        at = alt.value(plot + right)
        text = drawn.mark_text(align="right", color=INK)
        layers.append(text.encode(alt.XValue(plot + right), up, text=alt.Text(f"{field}:N")))
        heads = alt.Chart(data_of([{}])).mark_text(align="right", color=AXIS, text=head)
        layers.append(heads.encode(x=at, y=alt.value(-9)))
    if roof:
        line = alt.Chart(data_of([{"y": roof}]))
        words = f"{_three_digits(roof)} roof"
        layers.append(line.mark_rule(color=INK, strokeWidth=1.5).encode(across))
        name = line.mark_text(align="right", dx=-4, color=AXIS, text=words)
        layers.append(name.encode(across, y=alt.value(-9)))
    chart = layered(*layers).properties(width=plot, height=17 * len(names))
    return chart.properties(title=_heading(title))


def sizes(ladder: Ladder, width: int) -> Chart:
    """TFLOP/s over size: a few of the rungs in FP32, beside them the ones that split operands."""
    panels, words = _panels(ladder, Measured.speeds, _TFLOPS, width)
    return finished(panels, width, "TFLOP/s over size", [ladder.note], words)


def shares(ladder: Ladder, width: int) -> Chart:
    """Share of cuBLAS over size, likewise, the other rungs in grey."""
    panels, words = _panels(ladder, Measured.shares, _SHARE, width, grey=True)
    notes = [RATIO_NOTE, ladder.note]
    return finished(panels, width, "Share of cuBLAS over size", notes, words)


def _panels(
    ladder: Ladder,
    values: Callable[[Measured], Mapping[int, float]],
    y: tuple[str, str, str],
    width: int,
    grey: bool = False,
) -> tuple[Chart, list[str]]:
    """Side by side where there is room, with one scale; and their data in words."""
    side_by_side, found = width >= 600, ladder.squares
    groups = _groups(ladder)
    few = {title: _few(group, title == SPLIT) for title, group in groups.items()}
    drawn = found if grey else [each for rungs in few.values() for each in rungs]
    every = [value for each in drawn for value in values(each).values()]
    domain = (min(every) / 1.2, max(every) * 1.2)
    panel_width = width
    if side_by_side and len(groups) > 1:  # 262: axes, names at the ends of lines, and the gap
        panel_width = (width - 262) // 2 + LEFT + RIGHT
    panels, words = [], []
    for title, group in groups.items():
        points = _points(few[title], values)
        words += [f"{p['rung']} at {p['x']}: {format(p['y'], y[2])}" for p in points]
        others = [each for each in group if each not in few[title]]
        behind = _points(others, values) if grey else ()
        panel = _lines(points, y, found, panel_width, domain=domain, grey=behind)
        panels.append(panel.properties(title=_heading(title)))
    if side_by_side:
        return alt.HConcatChart(hconcat=panels), words
    return alt.VConcatChart(vconcat=panels), words


def one_rung(ladder: Ladder, name: str, before: str | None, width: int) -> Chart:
    """TFLOP/s over size: a rung, the one before it and cuBLAS in colour, the others in grey."""
    keen = {YARDSTICK: INK, **({before: WARN} if before else {}), name: ACCENT}
    points = _points(ladder.squares, Measured.speeds)
    shown = [p for each in keen for p in points if p["rung"] == each]
    for point in shown:
        point["label"] = f"{label_of(point['rung'])} {_three_digits(point['y'])}"
    grey = [p for p in points if p["rung"] not in keen]
    chart = _lines(shown, _TFLOPS, ladder.squares, width, colours=keen, grey=grey)
    words = [f"{p['rung']} at {p['x']}: {p['y']:.2f}" for p in shown]
    return finished(chart, width, f"{label_of(name)}: TFLOP/s over size", [ladder.note], words)


def history(ladder: Ladder, versions: Sequence[Version], commit: str, width: int) -> Chart:
    """Share of cuBLAS over the commits of the baseline, and last in the present run: of the rungs
    that the other charts show, the others in grey."""
    found = ladder.squares
    past = [(v.commit[:7], v.date, figures.measured(v.run, (), others=True)) for v in versions]
    runs = [
        (name, when, {rung.name: rung.shares() for rung in rungs})
        for name, when, rungs in [*past, ("this run", commit[:7], found)]
    ]
    sizes = {size for rung in found for size in rung.shares()}
    points: list[dict[str, Any]] = [
        {"rung": rung.name, "x": name, "when": when, "size": size, "y": value}
        for rung in found
        for name, when, values in runs
        for size, value in values.get(rung.name, {}).items()
        if size in sizes
    ]
    choice = _size_choice({p["size"] for p in points})
    fp32 = [each for each in found if each.name not in ladder.splits]
    few = {each.name for each in _few(fp32, False)} | {*ladder.splits}
    shown = [p for p in points if p["rung"] in few]
    grey = [p for p in points if p["rung"] not in few]
    chart = _lines(shown, _SHARE, found, width, choice, grey=grey)
    words = [f"{p['rung']} at {p['size']}, {p['x']}: {p['y']:.1%}" for p in points]
    title = alt.expr("'Share of cuBLAS at ' + size + '³ by commit'")
    return finished(chart, width, title, [RATIO_NOTE], words)


def _lines(
    points: list[dict[str, Any]],
    y: tuple[str, str, str],
    found: Sequence[Measured],
    width: int,
    choice: alt.Parameter | None = None,
    domain: tuple[float, float] | None = None,
    colours: Mapping[str, str] | None = None,
    grey: Sequence[dict[str, Any]] = (),
) -> Layers:
    """A line per rung with its name at the end: over sizes, or of a size that can be chosen over
    commits. `points` have rung, x, y, and with a choice of sizes a size; `y` is the axis's title,
    its format and that of the tooltip, `domain` its ends. `colours` replaces those of the ladder.
    `grey` has the points of lines in the background."""
    points.sort(key=lambda point: point["rung"] != YARDSTICK)  # the others are drawn over it
    height = 340
    values = [point["y"] for point in [*points, *grey]]
    low, high = domain or (min(values) / 1.2, max(values) * 1.2)
    step = (high / low) ** (LINE / height)  # from one label to the next
    ends: list[dict[str, Any]] = []
    for size in dict.fromkeys(point.get("size") for point in points):
        last = {point["rung"]: point for point in points if point.get("size") == size}
        logs = [math.log(point["y"]) for point in last.values()]
        places = apart(logs, math.log(step), math.log(high))
        for point, place in zip(last.values(), places):
            ends.append({"label": label_of(point["rung"]), **point, "at": math.exp(place)})
    extents = list(dict.fromkeys(point["x"] for point in [*points, *grey]))
    drawn, named, behind = (alt.Chart(data_of(rows)) for rows in (points, ends, grey))
    told = [("rung:N", "rung", ""), ("x:Q", "M = N = K", ""), ("y:Q", y[0], y[2])]
    if choice is None:
        extents.sort()
        across = alt.X("x:Q", title="M = N = K")
        across = across.axis(values=extents, format="d", grid=False, labelFlush=False)
        ends_at = [extents[0], extents[-1] if len(extents) > 1 else 2 * extents[0]]
        across = across.scale(type="log", base=2, domain=ends_at, nice=False)
    else:
        across = alt.X("x:N", title=None, sort=None).axis(grid=False, labelAngle=-40)
        across = across.scale(type="point", padding=0.1, domain=extents)
        told = [told[0], ("x:N", "commit", ""), told[2], ("when:N", "of", "")]
        of_size = [chart.transform_filter("datum.size == size") for chart in (drawn, named, behind)]
        drawn, named, behind = of_size
    up = on_log_scale(alt.Y("y:Q", title=y[0]), low, high, format=y[1], domain=False)
    colour, shape, dash = looks_of(found)
    if colours is not None:
        scale = {"domain": list(colours), "range": list(colours.values())}
        colour = alt.Color("rung:N", legend=None).scale(**scale)
        shape, dash = alt.ShapeValue("circle"), alt.StrokeDashValue([1, 0])
    thick = alt.when(alt.datum.rung == YARDSTICK).then(alt.value(3)).otherwise(alt.value(1.6))
    bold = alt.StrokeWidthValue(**thick)
    pointed = alt.selection_point(
        name=f"pointed{len(points)}", fields=["rung"], on="pointerover", clear="pointerout"
    )
    faint = alt.OpacityValue(**alt.when(pointed).then(alt.value(1)).otherwise(alt.value(0.15)))
    shown = tip(*told)
    asked = {"tooltip": shown} if colours is None else {}  # which one of the grey lines it is
    faded = behind.mark_line(color=FAINT, strokeWidth=1.2)
    layers = [
        *([faded.encode(across, up, detail="rung:N", **asked)] if grey else []),
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
    ]
    chart = layered(*layers).properties(width=width - LEFT - RIGHT, height=height)
    return chart.add_params(choice) if choice is not None else chart


def _groups(ladder: Ladder) -> dict[str, list[Measured]]:
    """The rungs in two groups, each with cuBLAS: in FP32, and with split operands if there are
    any."""
    rungs = [each for each in ladder.squares if each.rows]
    split = [each for each in rungs if each.name in ladder.splits]
    fp32 = [each for each in rungs if each not in split]
    yardstick = [each for each in fp32 if each.name == YARDSTICK]
    return {FP32: fp32, SPLIT: [*split, *yardstick]} if split else {FP32: fp32}


def _few(found: Sequence[Measured], every: bool) -> list[Measured]:
    """Rungs that a chart has room for: each by half faster than the one before it, then the last;
    and cuBLAS."""
    chosen: list[Measured] = []
    rungs = [each for each in found if each.rows and each.name != YARDSTICK]
    for each in rungs:
        fastest = max(each.speeds().values())
        before = max(chosen[-1].speeds().values()) if chosen else 0.0
        if every or fastest >= 1.5 * before or each is rungs[-1]:
            chosen.append(each)
    return [*chosen, *(each for each in found if each.name == YARDSTICK)]


def _three_digits(value: float) -> str:
    return f"{value:#.3g}".rstrip(".")


def _heading(title: str) -> alt.TitleParams:
    return alt.TitleParams(title, anchor="start", frame="bounds", fontSize=12, color=AXIS, offset=6)


def _points(
    found: Sequence[Measured], values: Callable[[Measured], Mapping[int, float]]
) -> list[dict[str, Any]]:
    """A value by rung and size."""
    return [{"rung": r.name, "x": size, "y": y} for r in found for size, y in values(r).items()]


def _size_choice(sizes: Collection[int]) -> alt.Parameter:
    value, options = SHARE_SIZE if SHARE_SIZE in sizes else max(sizes), sorted(sizes)
    select = alt.binding_select(options=options, name="M = N = K")
    return alt.param("size", value=value, bind=select)


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
    across = on_log_scale(across, left, right, format="~r")
    up = on_log_scale(alt.Y("y:Q", title="TFLOP/s"), bottom, top, format="~r", domain=False)
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
        notes.insert(0, f"Tensor cores: {figures.split_roof_note(split_roof)}.")
    return finished(chart, width, f"Roofline at {profile.size}³", notes, words)
