"""pytest-benchmark's JSON, as --benchmark-json writes it."""

from typing import Any

from tilegate_ci.core.documents import Open, validated
from tilegate_ci.formats.google import utc
from tilegate_ci.formats.timings import TimedFile, TimedRow

TIME = "median"  # of the rounds, in seconds


class PytestRow(Open):
    fullname: str
    stats: dict[str, Any]
    extra_info: dict[str, Any] = {}


class PytestReport(Open):
    machine_info: dict[str, Any]
    benchmarks: list[PytestRow]
    datetime: str | None = None


def read(text: str, path: str) -> TimedFile:
    """A test that failed or was skipped has no row."""
    report = validated(PytestReport, text, path)
    device = str(report.machine_info.get("node") or "an unnamed machine")
    rows = (
        TimedRow(row.fullname, ("benchmarks", index), row.stats, row.extra_info)
        for index, row in enumerate(report.benchmarks)
    )
    takes = "median, mean, min or max"
    return TimedFile(device, utc(report.datetime), "statistic", TIME, takes, rows)
