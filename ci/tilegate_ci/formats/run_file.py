"""A run: made of processes, or read from a file and checked."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path

from tilegate_ci.core import documents
from tilegate_ci.core.documents import commit_digits, validated
from tilegate_ci.core.files import GateError, fault, parse_json, printable, read_text, rounded
from tilegate_ci.formats.reading import is_process
from tilegate_ci.model import (
    DECISIVE,
    Process,
    Protocol,
    Reading,
    RunFile,
    RunRow,
    Session,
    delta_of,
)


def collect(
    processes: Sequence[Process],
    commit: str,
    sessions: Sequence[Session] | None = None,
    path: str = "collect",
    ragged: bool = False,
) -> RunFile:
    """The run that these processes make; GateError when they are not of one kind. `path` is where
    it is to be written; later processes may lack some benchmarks if it is `ragged`."""
    try:
        commit_digits(commit)
    except ValueError as problem:
        raise GateError(f"--commit: {problem}") from problem
    first = processes[0]
    for process in processes[1:]:
        _check_alike(first, process, ragged)
    if sessions is None:
        sessions = [Session(started=first.started, processes=len(processes), conditions={})]
    series = {
        name: [process for process in processes if name in process.readings]
        for name in dict.fromkeys(name for process in processes for name in process.readings)
    }
    return RunFile(
        schema=1,
        path=path,
        commit=commit,
        device=first.device,
        protocol=_protocol(next(iter(series.values()))),
        sessions=list(sessions),
        benchmarks={name: _row([p.readings[name] for p in of]) for name, of in series.items()},
    )


def _protocol(processes: Sequence[Process]) -> Protocol:
    first = processes[0]
    peaks = [rounded(p.peak_gflops) for p in processes if p.peak_gflops is not None]
    return Protocol(
        processes=len(processes),
        seed=first.seed,
        min_time_s=first.min_time_s,
        plant=first.plant,
        peak_gflops_per_process=peaks if len(peaks) == len(processes) else None,
    )


def _row(readings: Sequence[Reading]) -> RunRow:
    series = {m: [reading.summary[m] for reading in readings] for m in readings[0].summary}
    medians = {metric: rounded(statistics.median(values)) for metric, values in series.items()}
    placement = [r.placement_pct for r in readings if r.placement_pct is not None]
    return RunRow(
        **medians,  # type: ignore[arg-type]
        bytes=readings[0].bytes,
        placement_pct=rounded(statistics.median(placement)) if placement else None,
        unchecked=any(reading.unchecked for reading in readings),
        verified=all(reading.verified for reading in readings),
        per_process={m: [*map(rounded, series[m])] for m in series if m in DECISIVE},
    )


def _check_alike(first: Process, other: Process, ragged: bool) -> None:
    """Processes are replicates only if they did the same thing on the same device."""
    prefix = f"{other.source}: not like {first.source}:"
    here, there = first.device.fields, other.device.fields
    for key in sorted({*here, *there}):
        if here.get(key) != there.get(key):
            raise GateError(f"{prefix} device {key} {there.get(key)!r}, not {here.get(key)!r}")
    for key in ("plant", "seed"):
        if getattr(first, key) != getattr(other, key):
            raise GateError(f"{prefix} {key} {getattr(other, key)!r}, not {getattr(first, key)!r}")
    for name in sorted({*first.readings, *other.readings}):
        sides = [process for process in (first, other) if name in process.readings]
        if len(sides) == 1 and ragged:
            continue
        if len(sides) == 1:
            raise GateError(f"{prefix} {name} is in {sides[0].source} only")
        one, two = first.readings[name], other.readings[name]
        if (one.summary.keys(), one.bytes) != (two.summary.keys(), two.bytes):
            raise GateError(f"{prefix} {name} has other counters or another number of bytes")


def check_distinct(paths: Sequence[str], texts: Mapping[str, str]) -> None:
    """GateError where one recording is given twice, by one name or two."""
    seen: dict[str, str] = {}
    for path in paths:
        content = texts[path]
        if content.strip() and content in seen:
            raise GateError(f"{path}: the same recording as {seen[content]}")
        seen[content] = path


def read_sessions(path: str) -> list[Session]:
    text = read_text(path)
    parse_json(text, path, finite=True)
    sessions = validated(list[Session], text, path)
    if not sessions:
        raise GateError(f"{path}: no session in it")
    return sessions


# A summary is written with six digits of the median of numbers written with six digits.
AGREEMENT = 1e-3


class Role(Enum):
    """What a run is read as. It says which disagreement between a summary and its per-process
    values would hide a regression, and so is an error: a baseline that looks slower than its
    evidence, a candidate that looks faster, and either of them in a run to be accepted."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"
    ACCEPTED = "accepted"


def load(path: str | Path, role: Role = Role.CANDIDATE) -> RunFile:
    """Reads and checks a file; GateError says what is wrong with it. Whatever could hide a
    regression is an error that names its place."""
    return parse(read_text(path), str(path), role)


def parse(text: str, path: str, role: Role = Role.CANDIDATE) -> RunFile:
    if is_process(text):
        raise GateError(
            f"{path}: written by a benchmark; `compare --no-baseline` makes a run of it"
        )
    parse_json(text, path, finite=True)
    run = documents.validated(RunFile, text, path)
    warnings = []
    for name, row in run.benchmarks.items():
        for field, hides, text in _disagreements(row, role):
            message = fault(path, ("benchmarks", name, field), text)
            if hides:
                raise message
            warnings.append(printable(f"{message}; judged as written"))
    return run.model_copy(update={"path": path, "warnings": tuple(warnings)})


def _disagreements(row: RunRow, role: Role) -> Iterator[tuple[str, bool, str]]:
    """Summaries that are not the median of their evidence, and the margin of a baseline that is not
    what its evidence gives: the field, whether it would hide a slow-down, and what is wrong. The
    reader cannot know which of the two numbers was edited: the harmless direction is judged as it
    is written, because that can only make the gate stricter."""
    for metric, written in row.summary.items():
        median = statistics.median(row.per_process.get(metric, [written]))
        if abs(written - median) > AGREEMENT * median:
            faster = written > median
            hides = role is Role.ACCEPTED or faster == (role is Role.CANDIDATE)
            than = f"{'faster' if faster else 'slower'} than the median of its per_process values"
            yield metric, hides, f"{written:.6g} is {than}, {median:.6g}"
    known = delta_of(row.per_process[row.decisive])
    if role is Role.BASELINE and row.delta and abs(row.delta - known) > AGREEMENT * known:
        wider = row.delta > known
        than = f"{'wider' if wider else 'narrower'} than what its per_process values give"
        yield "delta", wider, f"{row.delta:.6g} is {than}, {known:.6g}"
