"""asv's results, as `asv run` writes them to results/<machine>/<commit>-<environment>.json."""

import itertools
import math
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field

from tilegate_ci.core.documents import Open, validated
from tilegate_ci.core.files import GateError, Place, fault
from tilegate_ci.formats.timings import Timings

TIME = "result"  # the median of the samples, in seconds


class AsvReport(Open):
    """A row of `results` has what `result_columns` names, as far as there is any."""

    params: dict[str, Any]
    result_columns: list[str]
    results: dict[str, list[Any]]
    date: Annotated[int, Field(ge=0, lt=10**14)] | None = None  # milliseconds


def read(text: str, path: str, time: str, verified: str) -> Timings:
    """`time` is a column. Benchmarks of memory, or that track a number, are left out."""
    report = validated(AsvReport, text, path)
    if verified:
        raise GateError(f"{path}: asv keeps no counters, so that --verified has none to look at")
    if time not in report.result_columns:
        known = ", ".join(name for name in report.result_columns if name[:5] in ("resul", "stats"))
        raise GateError(f"{path}: no column {time}; --time takes one of {known}")
    started = None
    if report.date is not None:
        started = datetime.fromtimestamp(report.date / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = Timings(path, str(report.params.get("machine") or "an unnamed machine"), started)
    for name, row in report.results.items():
        if not name.rpartition(".")[2].startswith(("time_", "timeraw_")):
            continue
        place: Place = ("results", name)
        cells = dict(zip(report.result_columns, row))
        results, times = cells.get(TIME), cells.get(time)
        if not (isinstance(results, list) and isinstance(times, list)):
            raise fault(path, place, f"{name} failed: it has no {time}")
        axes = cells.get("params") or []
        if not (isinstance(axes, list) and all(isinstance(axis, list) for axis in axes)):
            raise fault(path, place, "params: must be a list of lists")
        if not math.prod(map(len, axes)) == len(results) == len(times):
            text = f"{len(times)} values for {math.prod(map(len, axes))} combinations of params"
            raise fault(path, place, text)
        # The last parameter changes fastest.
        names = ["/".join([name, *map(str, case)]) for case in itertools.product(*axes)]
        for case, result, value in zip(names, results, times):
            if isinstance(result, float) and math.isnan(result):
                found.skip(case, "its setup raised NotImplementedError", place)
            elif value is None:
                raise fault(path, place, f"{case} failed: it has no {time}")
            else:
                found.add(case, value, None, place)
    if not (found.seconds or found.skipped):
        raise fault(path, ("results",), "no time_… benchmark in it")
    return found
