"""asv's results, as `asv run` writes them to results/<machine>/<commit>-<environment>.json."""

import itertools
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field

from tilegate_ci.core.documents import Open, validated
from tilegate_ci.core.files import Place, fault
from tilegate_ci.formats.timings import TimedFile, TimedRow

TIME = "result"  # the median of the samples, in seconds


class AsvReport(Open):
    """A row of `results` has what `result_columns` names, as far as there is any."""

    params: dict[str, Any]
    result_columns: list[str]
    results: dict[str, list[Any]]
    date: Annotated[int, Field(ge=0, lt=10**14)] | None = None  # milliseconds


def read(text: str, path: str) -> TimedFile:
    report = validated(AsvReport, text, path)
    started = None
    if report.date is not None:
        started = datetime.fromtimestamp(report.date / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    device = str(report.params.get("machine") or "an unnamed machine")
    takes = ", ".join(n for n in report.result_columns if n[:5] in ("resul", "stats"))
    return TimedFile(device, started, "column", TIME, f"one of {takes}", _rows(report, path))


def _rows(report: AsvReport, path: str) -> Iterator[TimedRow]:
    """A row per combination of parameters. Benchmarks of memory, or that track a number, are left
    out."""
    for name, cells in report.results.items():
        if not name.rpartition(".")[2].startswith(("time_", "timeraw_")):
            continue
        place: Place = ("results", name)
        columns = dict(zip(report.result_columns, cells))
        results, axes = columns.get(TIME), columns.get("params") or []
        if not isinstance(results, list):
            raise fault(path, place, f"{name} failed: it has no {TIME}")
        if not (isinstance(axes, list) and all(isinstance(axis, list) for axis in axes)):
            raise fault(path, place, "params: must be a list of lists")
        count = math.prod(map(len, axes))
        if count != len(results):
            raise fault(path, place, f"{len(results)} values for {count} combinations of params")
        series = {n: of for n, of in columns.items() if isinstance(of, list) and len(of) == count}
        # The last parameter changes fastest.
        for at, case in enumerate(itertools.product(*axes)):
            full = "/".join([name, *map(str, case)])
            if isinstance(results[at], float) and math.isnan(results[at]):
                yield TimedRow(full, place, skipped="its setup raised NotImplementedError")
            else:
                yield TimedRow(
                    full, place, {column: values[at] for column, values in series.items()}
                )
