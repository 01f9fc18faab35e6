"""Google Benchmark's JSON, as --benchmark_out writes it."""

from collections.abc import Mapping
from typing import Any

from tilegate_ci.core import documents
from tilegate_ci.core.files import Place, fault, shown
from tilegate_ci.formats.collect import BenchmarkReport, utc
from tilegate_ci.formats.timings import Timings, is_time

TIME = "real_time"  # which is the manual time of a benchmark that has one
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def read(text: str, path: str, time: str, verified: str) -> Timings:
    """`time` is real_time or cpu_time; `verified` is a counter that must be 1, or empty."""
    report = documents.parse(BenchmarkReport, text, path)
    context = report.context
    device = str(context.get("device_name") or context.get("host_name") or "an unnamed machine")
    found = Timings(path, device, utc(context.get("date")))
    for index, row in enumerate(report.benchmarks):
        place: Place = ("benchmarks", index)
        name = str(row.get("run_name") or row.get("name") or "")
        if row.get("error_occurred"):
            reason = row.get("error_message") or "without a message"
            raise fault(path, place, f"{name}: error: {reason}")
        if row.get("run_type") == "aggregate" or "aggregate_name" in row:
            continue
        if row.get("skipped"):
            found.skip(name, str(row.get("skip_message") or ""), place)
            continue
        sound = _counter(row, verified, name, path, place) == 1 if verified else None
        found.add(name, _seconds(row, time, name, path, place), sound, place)
    if not (found.seconds or found.skipped):
        raise fault(path, ("benchmarks",), "no benchmark in it; aggregates alone are not enough")
    return found


def _seconds(row: Mapping[str, Any], time: str, name: str, path: str, place: Place) -> object:
    value, unit = row.get(time), row.get("time_unit", "ns")
    if time not in ("real_time", "cpu_time") or value is None:
        raise fault(path, place, f"{name}: no time {time}; --time takes real_time or cpu_time")
    if not isinstance(unit, str) or unit not in _UNITS:
        raise fault(path, place, f"{name}: unknown time_unit {shown(unit)}")
    return value * _UNITS[unit] if is_time(value) else value


def _counter(row: Mapping[str, Any], counter: str, name: str, path: str, place: Place) -> Any:
    if counter not in row:
        raise fault(path, place, f"{name}: no counter {counter}, which --verified names")
    return row[counter]
