"""Google Benchmark's JSON, as --benchmark_out writes it."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from tilegate_ci.core.documents import Open, validated
from tilegate_ci.core.files import Place, fault, shown
from tilegate_ci.formats.timings import TimedFile, TimedRow, is_time

TIME = "real_time"  # which is the manual time of a benchmark that has one
_TIMES = (TIME, "cpu_time")
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


def read(text: str, path: str) -> TimedFile:
    report = validated(GoogleReport, text, path)
    context = report.context
    device = str(context.get("device_name") or context.get("host_name") or "an unnamed machine")
    rows = (_row(place, row, path) for place, row in report.rows(path))
    return TimedFile(device, utc(context.get("date")), "time", TIME, " or ".join(_TIMES), rows)


def _row(place: Place, row: Mapping[str, Any], path: str) -> TimedRow:
    name, unit = str(row.get("run_name") or row.get("name") or ""), row.get("time_unit", "ns")
    if row.get("skipped"):
        return TimedRow(name, place, skipped=str(row.get("skip_message") or ""))
    if not isinstance(unit, str) or unit not in _UNITS:
        raise fault(path, place, f"{name}: unknown time_unit {shown(unit)}")
    times = {each: row[each] for each in _TIMES if row.get(each) is not None}
    scaled = {n: value * _UNITS[unit] if is_time(value) else value for n, value in times.items()}
    return TimedRow(name, place, scaled, row)
