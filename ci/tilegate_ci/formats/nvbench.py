"""NVBench's JSON, as --json writes it. Numbers in it are text."""

from typing import Any

from tilegate_ci.core.documents import Open, validated
from tilegate_ci.core.files import GateError, Place
from tilegate_ci.formats.timings import TimedFile, TimedRow, number

TIME = "nv/cold/time/gpu/mean"


class Value(Open):
    """Of an axis, or of a summary, where the one that matters is called "value"."""

    name: str
    value: Any = None


class Tagged(Open):
    tag: str
    data: list[Value] | None = None

    @property
    def value(self) -> str | None:
        return next((str(item.value) for item in self.data or () if item.name == "value"), None)


class State(Open):
    """One configuration of a benchmark. A list that would be empty is null."""

    device: int | None = None
    axis_values: list[Value] | None = None
    summaries: list[Tagged] | None = None
    is_skipped: bool = False
    skip_reason: str | None = None


class Sweep(Open):
    name: str
    states: list[State] | None = None


class Gpu(Open):
    id: int
    name: str


class NvbenchReport(Open):
    devices: list[Gpu] | None
    benchmarks: list[Sweep] | None


def read(text: str, path: str) -> TimedFile:
    report = validated(NvbenchReport, text, path)
    rows = [
        _row(state, benchmark.name, ("benchmarks", index, "states", at))
        for index, benchmark in enumerate(report.benchmarks or ())
        for at, state in enumerate(benchmark.states or ())
    ]
    tags = ", ".join(sorted({tag for row in rows for tag in row.times if "/time/" in tag}))
    return TimedFile(_device(report, path), None, "summary", TIME, f"one of {tags}", rows)


def _row(state: State, benchmark: str, place: Place) -> TimedRow:
    axes = (f"{axis.name}={axis.value}" for axis in state.axis_values or ())
    name = "/".join([benchmark, *axes])
    if state.is_skipped:
        return TimedRow(name, place, skipped=state.skip_reason or "")
    summaries = {item.tag: number(item.value) for item in state.summaries or ()}
    return TimedRow(name, place, summaries, summaries)


def _device(report: NvbenchReport, path: str) -> str:
    every = [state for benchmark in report.benchmarks or () for state in benchmark.states or ()]
    used = {state.device for state in every} - {None}
    if len(used) > 1:
        raise GateError(f"{path}: measured on {len(used)} devices; choose one by --devices 0")
    names = {device.id: device.name for device in report.devices or ()}
    return next((names[each] for each in used if each in names), "an unnamed machine")
