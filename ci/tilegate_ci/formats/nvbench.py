"""NVBench's JSON, as --json writes it. Numbers in it are text."""

from typing import Any

from tilegate_ci.core.documents import Open, validated
from tilegate_ci.core.files import GateError, Place, fault
from tilegate_ci.formats.timings import Timings

TIME = "nv/cold/time/gpu/mean"


class Value(Open):
    """Of an axis, or of a summary, where the one that matters is called "value"."""

    name: str
    value: Any = None

    @property
    def text(self) -> str:
        return str(self.value)


class Tagged(Open):
    tag: str
    data: list[Value] | None = None

    @property
    def value(self) -> str | None:
        return next((item.text for item in self.data or () if item.name == "value"), None)


class State(Open):
    """One configuration of a benchmark. A list that would be empty is null."""

    device: int | None = None
    axis_values: list[Value] | None = None
    summaries: list[Tagged] | None = None
    is_skipped: bool = False
    skip_reason: str | None = None

    def name(self, benchmark: str) -> str:
        axes = (f"{axis.name}={axis.text}" for axis in self.axis_values or ())
        return "/".join([benchmark, *axes])


class Sweep(Open):
    name: str
    states: list[State] | None = None


class Gpu(Open):
    id: int
    name: str


class NvbenchReport(Open):
    devices: list[Gpu] | None
    benchmarks: list[Sweep] | None


def read(text: str, path: str, time: str, verified: str) -> Timings:
    """`time` is the tag of a summary; `verified` of one that must be 1, or empty."""
    report = validated(NvbenchReport, text, path)
    found = Timings(path, _device(report, path))
    for index, benchmark in enumerate(report.benchmarks or ()):
        for number, state in enumerate(benchmark.states or ()):
            place: Place = ("benchmarks", index, "states", number)
            name = state.name(benchmark.name)
            if state.is_skipped:
                found.skip(name, state.skip_reason or "", place)
                continue
            summaries = {item.tag: item.value for item in state.summaries or ()}
            seconds = _number(summaries, time, "--time", name, path, place)
            sound = None
            if verified:
                sound = _number(summaries, verified, "--verified", name, path, place) == 1
            found.add(name, seconds, sound, place)
    if not (found.seconds or found.skipped):
        raise fault(path, ("benchmarks",), "no benchmark in it")
    return found


def _device(report: NvbenchReport, path: str) -> str:
    every = [state for benchmark in report.benchmarks or () for state in benchmark.states or ()]
    used = {state.device for state in every} - {None}
    if len(used) > 1:
        raise GateError(f"{path}: measured on {len(used)} devices; choose one by --devices 0")
    names = {device.id: device.name for device in report.devices or ()}
    return next((names[number] for number in used if number in names), "an unnamed machine")


def _number(
    summaries: dict[str, str | None], tag: str, option: str, name: str, path: str, place: Place
) -> float:
    if tag not in summaries:
        known = ", ".join(sorted(tag for tag in summaries if "/time/" in tag)) or "none"
        raise fault(
            path, place, f"{name}: no summary {tag}; {option} names one, times are: {known}"
        )
    try:
        return float(summaries[tag] or "")
    except ValueError as problem:
        text = f"{name}: {tag} must be a number, not {summaries[tag]!r}"
        raise fault(path, place, text) from problem
