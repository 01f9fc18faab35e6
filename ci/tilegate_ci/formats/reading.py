"""One process, written by bench or by another project's benchmarks."""

import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tilegate_ci.core.documents import validated
from tilegate_ci.core.files import GateError, fault, parse_json, printable, shown
from tilegate_ci.core.names import matching
from tilegate_ci.formats import asv, bench, google, nvbench, plain, pytest_benchmark
from tilegate_ci.formats.timings import TimedFile, TimedRow, is_time
from tilegate_ci.model import OTHER, OWN_RATIO, Device, Process, Reading

# By keys that a file has.
_READERS: list[tuple[set[str], Callable[[str, str], TimedFile]]] = [
    ({"benchmarks", "context"}, google.read),
    ({"benchmarks", "devices"}, nvbench.read),
    ({"benchmarks", "machine_info"}, pytest_benchmark.read),
    ({"results", "result_columns"}, asv.read),
]


@dataclass(frozen=True)
class Declared:
    """What the owner says of the benchmarks; empty: the format's usual time, no yardstick, results
    that are not declared to be checked, all benchmarks."""

    time: str = ""
    yardstick: str = ""
    verified: str = ""
    filter: str = ""


def read_any(text: str, path: str, declared: Declared) -> Process:
    """Our own bench tells the kind of its device; whatever else there is is another project's.
    What the gate kept of a process is taken too."""
    root = _root(text, path)
    if isinstance(root, dict) and "readings" in root:
        return validated(Process, text, path).model_copy(update={"source": path})
    context = root.get("context") if isinstance(root, dict) else None
    if not (isinstance(context, dict) and "device_kind" in context):
        return _other(root, text, path, declared)
    if declared != Declared():
        options = "--time, --yardstick and --verified"
        raise GateError(f"{path}: {options} are for another project's benchmarks")
    return bench.read_process(text, path)


def read_process(text: str, path: str, declared: Declared) -> Process:
    """Of another project. GateError where the text is of no known format, or lacks what was
    declared."""
    return _other(_root(text, path), text, path, declared)


def is_process(text: str) -> bool:
    """Whether a program wrote it that measures, as its first words tell; else it may be a run."""
    begin = ('"context"', '"meta"', '"devices"', '"machine_info"', '"commit_hash"')
    return plain.is_plain(text) or text.lstrip("{ \n").startswith(begin)


def _root(text: str, path: str) -> Any:
    """Of JSON its value; None where the text is of the plain form, or of none."""
    lines = plain.is_plain(text) or not text.lstrip().startswith(("{", "["))
    return None if lines and text.strip() else parse_json(text, path)


def _other(root: object, text: str, path: str, declared: Declared) -> Process:
    keys = {*root} if isinstance(root, dict) else set()
    known = [reader for needs, reader in _READERS if needs <= keys]
    if root is not None and not known:
        raise GateError(
            f"{path}: neither Google Benchmark's JSON, from --benchmark_out=FILE, nor NVBench's, "
            "from --json FILE, nor pytest-benchmark's, from --benchmark-json=FILE, nor asv's "
            "results, nor lines of name,seconds"
        )
    report = known[0](text, path) if known else plain.read(text, path)
    repetitions: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    skipped: dict[str, str] = {}
    for row in report.rows:
        where = row.line or path
        if not (row.name.strip() and row.name.isprintable()):
            raise fault(where, row.place, "a name must be one line of printable text")
        if row.skipped is None:
            repetitions[row.name].append(_timed(row, report, declared, where))
        else:
            skipped[row.name] = printable(" ".join(row.skipped.split())) or "without a reason"
    if not (repetitions or skipped):
        raise GateError(f"{path}: no benchmark in it")
    if not repetitions:
        name, why = next(iter(skipped.items()))
        raise GateError(f"{path}: every benchmark was skipped, first {name}: {why}")
    medians = {name: statistics.median(s for s, _ in each) for name, each in repetitions.items()}
    chosen = matching(medians, declared.filter or None)
    yardsticks = _yardsticks(chosen, medians, declared.yardstick, path)
    readings = {}
    for name in dict.fromkeys([*chosen, *yardsticks.values()]):
        yardstick = yardsticks.get(name, name)
        readings[name] = Reading(
            per_second=1 / medians[name],
            ratio_to_yardstick=medians[yardstick] / medians[name] if yardstick != name else None,
            verified=bool(declared.verified) and all(sound for _, sound in repetitions[name]),
            unchecked=not declared.verified,
        )
    return Process(
        device=validated(Device, json.dumps({"kind": OTHER, "name": report.device}), path),
        started=report.started,
        readings=readings,
        skipped={name: why for name, why in skipped.items() if name not in repetitions},
        source=path,
    )


def _timed(row: TimedRow, report: TimedFile, declared: Declared, where: str) -> tuple[float, bool]:
    """Seconds, and whether the result was right by the counter that --verified names; GateError
    where the row has no time, or lacks that counter."""
    name, time, counter = row.name, declared.time or report.usual, declared.verified

    def wrong(text: str) -> GateError:
        return fault(where, row.place, text)

    if time not in row.times:
        raise wrong(f"{name}: no {report.time} {time}; --time takes {report.takes}")
    if counter and counter not in row.counters:
        raise wrong(f"{name}: no counter {counter}, which --verified names")
    seconds, sound = row.times[time], row.counters.get(counter)
    if seconds is None:
        raise wrong(f"{name} failed: it has no {time}")
    if not is_time(seconds):
        text = f"a time must be a finite number above zero, not {shown(seconds)}"
        raise wrong(f"{name}: {text}")
    if isinstance(sound, str):
        raise wrong(f"{name}: {counter} must be a number, not {sound!r}")
    return float(seconds), sound == 1


def _yardsticks(
    names: Iterable[str], measured: Mapping[str, float], pattern: str, path: str
) -> dict[str, str]:
    """Of each benchmark; a yardstick is its own."""
    if not pattern:
        return {}
    yardsticks = {name: yardstick_of(name, pattern) for name in names}
    for name, yardstick in yardsticks.items():
        if yardstick not in measured:
            every = ", ".join(sorted(measured)[:8])
            raise GateError(
                f"{path}: --yardstick {pattern!r}: {name} should have the yardstick "
                f"{yardstick}, which was not measured; measured were {every}"
            )
    return yardsticks


def yardstick_of(name: str, pattern: str) -> str:
    """The pattern's parts in place of the name's: * keeps a part, and as the last one the rest."""
    own, parts = name.split("/"), pattern.split("/")
    if parts[-1] == "*":
        parts[-1:] = own[len(parts) - 1 :]
    kept = (own[at] if part == "*" and at < len(own) else part for at, part in enumerate(parts))
    return "/".join(kept)


def yardsticks_in(process: Process) -> list[str]:
    """The yardsticks of a process that has some."""
    lacking = [name for name, row in process.readings.items() if OWN_RATIO not in row.summary]
    return lacking if len(lacking) < len(process.readings) else []
