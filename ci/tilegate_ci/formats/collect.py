"""From Google Benchmark's JSON, one file per process, to the file format of the gate."""

import json
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field

from tilegate_ci.core import documents
from tilegate_ci.core.documents import Finite, Given, Open, Positive, commit_digits, validated
from tilegate_ci.core.files import (
    GateError,
    check_finite,
    dumps,
    fault,
    parse_json,
    read_text,
    rounded,
)
from tilegate_ci.core.names import canonical_name
from tilegate_ci.formats import run_file
from tilegate_ci.formats.run_file import Role
from tilegate_ci.model import DECISIVE, METRICS, Device, Process, Reading, RunFile, Session

_MIN_TIME = re.compile(r"/min_time:([0-9]+(?:\.[0-9]+)?)")


class BenchmarkReport(Open):
    """What Google Benchmark writes. Its rows are looked at one by one: those that failed have
    none of the counters."""

    context: dict[str, Any]
    benchmarks: list[dict[str, Any]]


class Repetition(Open):
    """One row: the counters of bench, by their names there."""

    gflops: Positive = Field(alias="GFLOPS")
    ratio_to_cublas: Given[Positive] = None
    pct_peak: Given[Positive] = None
    bytes: Given[Positive] = None
    planted_pct: Given[Finite] = None
    placement_pct: Given[Annotated[Finite, Field(ge=0)]] = None
    verified: Any = None
    label: str = ""


def read_process(path: str) -> Process:
    """Reads one --benchmark_out file; GateError when a benchmark in it failed."""
    return parse_process(read_text(path), path)


def is_report(text: str) -> bool:
    """Whether it looks like what Google Benchmark writes, which begins with the context, or like
    NVBench's."""
    return text.lstrip("{ \n").startswith(('"context"', '"meta"', '"devices"'))


def parse_process(text: str, path: str) -> Process:
    """As read_process; `path` is where the text came from."""
    report = documents.parse(BenchmarkReport, text, path)
    context = report.context
    device = _device(context, path)
    repetitions: dict[str, list[Repetition]] = {}
    min_time = _number(context, "min_time_s", path)
    for index, row in enumerate(report.benchmarks):
        place, written = ("benchmarks", index), str(row.get("name", "a benchmark"))
        _check_ran(written, row, path, place)
        if row.get("run_type") == "aggregate" or "aggregate_name" in row:
            continue
        try:
            name = canonical_name(written)
        except ValueError as problem:
            raise fault(path, place, str(problem)) from problem
        if device.kind == "simt":  # where only GFLOPS mean anything
            row = {key: value for key, value in row.items() if key not in METRICS}
        found = validated(Repetition, json.dumps(row), path, place)
        repetitions.setdefault(name, []).append(found)
        setting = _MIN_TIME.search(written)
        if not min_time and setting:
            min_time = float(setting.group(1))
    if not repetitions:
        raise fault(path, ("benchmarks",), "no benchmark in it; aggregates alone are not enough")
    return Process(
        device=device,
        seed=int(_number(context, "seed", path)) if "seed" in context else None,
        min_time_s=min_time or None,
        plant=context.get("plant"),
        peak_gflops=_number(context, "peak_gflops", path) or None,
        started=utc(context.get("date")),
        readings={name: _reading(name, rows, path) for name, rows in repetitions.items()},
        source=path,
    )


def _check_ran(name: str, row: Mapping[str, Any], path: str, place: tuple[str, int]) -> None:
    """Google Benchmark up to 1.7 and after: an error; since 1.8 also a skip with a message."""
    for flag, message in (("error_occurred", "error_message"), ("skipped", "skip_message")):
        if row.get(flag):
            reason = row.get(message) or "without a message"
            raise fault(path, place, f"{name}: {flag.split('_')[0]}: {reason}")


def _device(context: Mapping[str, Any], path: str) -> Device:
    if "device_kind" not in context:
        message = '"device_kind" is missing; was this written by the bench binary?'
        raise fault(path, ("context",), message)
    found = {"kind": context["device_kind"], "name": context.get("device_name")}
    if found["kind"] == "cuda":
        found |= {key: context[key] for key in ("driver", "cuda", "cublas") if key in context}
        for key in ("compute_capability", "multiprocessors"):
            if key in context:
                found[key] = int(_number(context, key, path))
    return validated(Device, json.dumps(found), path, ("context",))


def _number(context: Mapping[str, Any], key: str, path: str) -> float:
    """A number that the context holds as text; 0 where it is absent or empty, as on a device that
    has no such figure."""
    text = context.get(key) or "0"
    try:
        number = float(text)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise fault(path, ("context", key), f"must be a finite number from 0 on, not {text!r}")
    return number


def utc(date: Any) -> str | None:
    """The date as reports show it; None where it is none."""
    try:
        return datetime.fromisoformat(date).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (TypeError, ValueError):
        return None


def _reading(name: str, rows: Sequence[Repetition], path: str) -> Reading:
    metrics = {}
    for metric in METRICS:
        values = [v for v in (getattr(row, metric) for row in rows) if v is not None]
        if len(values) not in (0, len(rows)):
            raise GateError(f"{path}: {name}: {metric} is missing in some of its repetitions")
        if values:
            metrics[metric] = statistics.median(values)
    planted = [row.planted_pct for row in rows if row.planted_pct is not None]
    placement = [row.placement_pct for row in rows if row.placement_pct is not None]
    return Reading(
        **metrics,
        bytes=int(max(row.bytes or 0 for row in rows)) or None,
        verified=all(row.verified == 1 for row in rows),
        placement_pct=statistics.median(placement) if placement else None,
        planted_percent=statistics.median(planted) if planted else None,
        kernels=rows[0].label,
    )


def collect(
    processes: Sequence[Process],
    commit: str,
    sessions: Sequence[Session] | None = None,
    path: str = "collect",
) -> RunFile:
    """The run that these processes make; GateError when they are not of one kind. `path` is where
    it is to be written."""
    try:
        commit_digits(commit)
    except ValueError as problem:
        raise GateError(f"--commit: {problem}") from problem
    first = processes[0]
    for process in processes[1:]:
        _check_alike(first, process)
    if sessions is None:
        sessions = [Session(started=first.started, processes=len(processes), conditions={})]
    document = {
        "schema": 1,
        "commit": commit,
        "device": first.device.fields,
        "protocol": _protocol(processes),
        "sessions": [session.model_dump(mode="json") for session in sessions],
        "benchmarks": {
            name: _row([process.readings[name] for process in processes]) for name in first.readings
        },
    }
    return run_file.parse(dumps(document), path, Role.ACCEPTED)


def _protocol(processes: Sequence[Process]) -> dict[str, Any]:
    first = processes[0]
    peaks = [rounded(p.peak_gflops) for p in processes if p.peak_gflops is not None]
    optional = {
        "seed": first.seed,
        "min_time_s": first.min_time_s,
        "plant": first.plant,
        "peak_gflops_per_process": peaks if len(peaks) == len(processes) else None,
    }
    known = {key: value for key, value in optional.items() if value is not None}
    return {"processes": len(processes), **known}


def _row(readings: Sequence[Reading]) -> dict[str, Any]:
    series = {
        metric: [rounded(reading.summary[metric]) for reading in readings]
        for metric in readings[0].summary
    }
    medians = {
        metric: rounded(statistics.median(reading.summary[metric] for reading in readings))
        for metric in series
    }
    size, unchecked = readings[0].bytes, any(reading.unchecked for reading in readings)
    placement = [r.placement_pct for r in readings if r.placement_pct is not None]
    return {
        **medians,
        **({} if size is None else {"bytes": size}),
        **({"placement_pct": rounded(statistics.median(placement))} if placement else {}),
        **({"unchecked": True} if unchecked else {}),
        "key": False,
        "verified": all(reading.verified for reading in readings),
        "per_process": {m: values for m, values in series.items() if m in DECISIVE},
    }


def _check_alike(first: Process, other: Process) -> None:
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
        for absent_in, present_in in ((first, other), (other, first)):
            if name not in absent_in.readings:
                raise GateError(f"{prefix} {name} is in {present_in.source} only")
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
    check_finite(parse_json(text, path), path)
    sessions = validated(list[Session], text, path)
    if not sessions:
        raise GateError(f"{path}: no session in it")
    return sessions
