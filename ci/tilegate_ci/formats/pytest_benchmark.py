"""pytest-benchmark's JSON, as --benchmark-json writes it."""

from typing import Any

from tilegate_ci.core.documents import Open, validated
from tilegate_ci.core.files import Place, fault
from tilegate_ci.formats.google import utc
from tilegate_ci.formats.timings import Timings, counted

TIME = "median"  # of the rounds, in seconds


class PytestRow(Open):
    fullname: str
    stats: dict[str, Any]
    extra_info: dict[str, Any] = {}


class PytestReport(Open):
    machine_info: dict[str, Any]
    benchmarks: list[PytestRow]
    datetime: str | None = None


def read(text: str, path: str, time: str, verified: str) -> Timings:
    """`time` is one of the statistics; `verified` is an entry of extra_info that must be 1, or
    empty. A test that failed or was skipped has no row."""
    report = validated(PytestReport, text, path)
    device = str(report.machine_info.get("node") or "an unnamed machine")
    found = Timings(path, device, utc(report.datetime))
    for index, row in enumerate(report.benchmarks):
        place: Place = ("benchmarks", index)
        if time not in row.stats:
            text = f"no statistic {time}; --time takes median, mean, min or max"
            raise fault(path, place, f"{row.fullname}: {text}")
        sound = counted(row.extra_info, verified, row.fullname, path, place)
        found.add(row.fullname, row.stats[time], sound, place)
    if not found.seconds:
        raise fault(path, ("benchmarks",), "no benchmark in it")
    return found
