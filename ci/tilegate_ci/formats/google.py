"""Google Benchmark's JSON, as --benchmark_out writes it."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from tilegate_ci.core.documents import Open, validated
from tilegate_ci.core.files import Place, fault, shown
from tilegate_ci.formats.timings import Timings, counted, is_time

TIME = "real_time"  # which is the manual time of a benchmark that has one
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_NONE = "no benchmark in it; aggregates alone are not enough"


class GoogleReport(Open):
    """Its rows are looked at one by one: failed ones have none of the counters."""

    context: dict[str, Any]
    benchmarks: list[dict[str, Any]]

    def rows(self, path: str) -> Iterator[tuple[Place, dict[str, Any]]]:
        """Each with its place, aggregates left out; GateError where one failed, or none is left."""
        some = False
        for index, row in enumerate(self.benchmarks):
            place: Place = ("benchmarks", index)
            if row.get("error_occurred"):
                name, reason = row.get("name", "a benchmark"), row.get("error_message")
                raise fault(path, place, f"{name}: error: {reason or 'without a message'}")
            if row.get("run_type") != "aggregate" and "aggregate_name" not in row:
                some = True
                yield place, row
        if not some:
            raise fault(path, ("benchmarks",), _NONE)


def utc(date: Any) -> str | None:
    """The date as reports show it; None where it is none."""
    try:
        return datetime.fromisoformat(date).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (TypeError, ValueError):
        return None


def read(text: str, path: str, time: str, verified: str) -> Timings:
    """`time` is real_time or cpu_time; `verified` is a counter that must be 1, or empty."""
    report = validated(GoogleReport, text, path)
    context = report.context
    device = str(context.get("device_name") or context.get("host_name") or "an unnamed machine")
    found = Timings(path, device, utc(context.get("date")))
    for place, row in report.rows(path):
        name = str(row.get("run_name") or row.get("name") or "")
        if row.get("skipped"):
            found.skip(name, str(row.get("skip_message") or ""), place)
            continue
        sound = counted(row, verified, name, path, place)
        found.add(name, _seconds(row, time, name, path, place), sound, place)
    return found


def _seconds(row: Mapping[str, Any], time: str, name: str, path: str, place: Place) -> object:
    value, unit = row.get(time), row.get("time_unit", "ns")
    if time not in ("real_time", "cpu_time") or value is None:
        raise fault(path, place, f"{name}: no time {time}; --time takes real_time or cpu_time")
    if not isinstance(unit, str) or unit not in _UNITS:
        raise fault(path, place, f"{name}: unknown time_unit {shown(unit)}")
    return value * _UNITS[unit] if is_time(value) else value
