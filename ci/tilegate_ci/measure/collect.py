"""Turns Google Benchmark's JSON, one file a process, into the file format of the gate."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tilegate_ci.core.files import GateError, Node, check_finite, read_json, rounded
from tilegate_ci.core.model import GFLOPS, METRICS, RATIO, SCHEMA
from tilegate_ci.core.reader import Role, parse, parse_commit, parse_device, parse_name

# Counters of the bench binary, by what the gate calls them. On simt only GFLOPS mean anything.
_COUNTERS = {GFLOPS: "GFLOPS", RATIO: "ratio_to_cublas", "pct_peak": "pct_peak"}
_MIN_TIME = re.compile(r"/min_time:([0-9]+(?:\.[0-9]+)?)")


@dataclass(frozen=True)
class Reading:
    """One benchmark in one process: medians over its repetitions."""

    values: Mapping[str, float]
    bytes: int | None
    verified: bool
    planted_percent: float | None = None


@dataclass(frozen=True)
class Process:
    path: str
    device: Mapping[str, Any]
    seed: int | None
    min_time_s: float | None
    peak_gflops: float | None
    started: str | None
    readings: Mapping[str, Reading]
    plant: str | None = None


def read_process(path: str) -> Process:
    """Reads one --benchmark_out file; GateError when a benchmark in it failed."""
    root = read_json(path)
    context = root.require("context")
    device = _device(context)
    rows: dict[str, list[Node]] = {}
    min_time = _optional_number(context.get("min_time_s"))
    for node in root.require("benchmarks").elements():
        _check_ran(node)
        if node.object().get("run_type") == "aggregate" or "aggregate_name" in node.object():
            continue
        written = node.require("name").text()
        rows.setdefault(parse_name(written, node), []).append(node)
        setting = _MIN_TIME.search(written)
        if min_time is None and setting:
            min_time = float(setting.group(1))
    if not rows:
        raise root.error("benchmarks: no benchmark in it; aggregates alone are not enough")
    seed, date = context.get("seed"), context.get("date")
    plant = context.get("plant")
    return Process(
        path=path,
        device=device,
        seed=None if seed is None else int(_number(seed)),
        min_time_s=min_time,
        peak_gflops=_optional_number(context.get("peak_gflops")),
        started=_utc(date.value) if date is not None else None,
        readings={name: _reading(nodes, device["kind"]) for name, nodes in rows.items()},
        plant=None if plant is None else plant.text(),
    )


def _check_ran(node: Node) -> None:
    """Google Benchmark up to 1.7 and after: an error; since 1.8 also a skip with a message."""
    for flag, message in (("error_occurred", "error_message"), ("skipped", "skip_message")):
        if node.object().get(flag):
            name = node.object().get("name", "a benchmark")
            told = node.object().get(message) or "without a message"
            raise node.error(f"{name}: {flag.split('_')[0]}: {told}")


def _device(context: Node) -> dict[str, Any]:
    if context.get("device_kind") is None:
        raise context.error('"device_kind" is missing; was this written by the bench binary?')
    device: dict[str, Any] = {
        "kind": context.require("device_kind").value,
        "name": context.require("device_name").value,
    }
    if device["kind"] == "cuda":
        for key in ("driver", "cuda", "cublas"):
            if context.get(key) is not None:
                device[key] = context.require(key).text()
        for key in ("compute_capability", "multiprocessors"):
            if context.get(key) is not None:
                device[key] = int(_number(context.require(key)))
    parse_device(Node(device, context.source, context.place))
    return device


def _number(node: Node) -> float:
    """A number that the context holds as text."""
    try:
        number = float(node.value)
    except (TypeError, ValueError) as problem:
        raise node.error(f"must be a number, not {node.value!r}") from problem
    if not (math.isfinite(number) and number >= 0):
        raise node.error(f"must be a finite number, not below zero, not {node.value!r}")
    return number


def _optional_number(node: Node | None) -> float | None:
    """None for a number that is absent, empty or zero, as on a device that has no such figure."""
    if node is None or node.value == "":
        return None
    return _number(node) or None


def _utc(date: Any) -> str | None:
    try:
        return datetime.fromisoformat(date).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (TypeError, ValueError):
        return None


def _reading(repetitions: Sequence[Node], device_kind: str) -> Reading:
    metrics = METRICS if device_kind == "cuda" else (GFLOPS,)
    values = {}
    for metric in metrics:
        counter = _COUNTERS[metric]
        if metric == GFLOPS or any(node.get(counter) is not None for node in repetitions):
            values[metric] = statistics.median(
                node.require(counter).positive() for node in repetitions
            )
    sizes = [node.require("bytes").count() for node in repetitions if node.get("bytes") is not None]
    planted = [node.require("planted_pct") for node in repetitions if node.get("planted_pct")]
    return Reading(
        planted_percent=statistics.median(node.finite() for node in planted) if planted else None,
        values=values,
        bytes=max(sizes, default=None),
        verified=all(node.object().get("verified") == 1 for node in repetitions),
    )


def collect(
    processes: Sequence[Process], commit: str, sessions: list[Any] | None = None
) -> dict[str, Any]:
    """The run that these processes make; GateError when they are not of one kind."""
    parse_commit(Node(commit, "--commit"))
    first = processes[0]
    for process in processes[1:]:
        _check_alike(first, process)
    session: dict[str, Any] = {"processes": len(processes), "conditions": {}}
    if first.started is not None:
        session["started"] = first.started
    document = {
        "schema": SCHEMA,
        "commit": commit,
        "device": dict(first.device),
        "protocol": _protocol(processes),
        "sessions": [session] if sessions is None else sessions,
        "benchmarks": {
            name: _row([process.readings[name] for process in processes]) for name in first.readings
        },
    }
    parse(Node(document, "collect"), Role.ACCEPTED)
    return document


def _protocol(processes: Sequence[Process]) -> dict[str, Any]:
    peaks = [rounded(p.peak_gflops) for p in processes if p.peak_gflops is not None]
    optional = {
        "seed": processes[0].seed,
        "min_time_s": processes[0].min_time_s,
        "plant": processes[0].plant,
        "peak_gflops_per_process": peaks if len(peaks) == len(processes) else None,
    }
    told = {key: value for key, value in optional.items() if value is not None}
    return {"processes": len(processes), **told}


def _row(readings: Sequence[Reading]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "key": False,
        "verified": all(reading.verified for reading in readings),
        "per_process": {
            metric: [rounded(reading.values[metric]) for reading in readings]
            for metric in (GFLOPS, RATIO)
            if metric in readings[0].values
        },
    }
    for metric in readings[0].values:
        row[metric] = rounded(statistics.median(reading.values[metric] for reading in readings))
    if readings[0].bytes is not None:
        row["bytes"] = readings[0].bytes
    return row


def _check_alike(first: Process, other: Process) -> None:
    """Processes are replicates only if they did the same thing on the same device."""
    prefix = f"{other.path}: not like {first.path}:"
    for key in sorted({*first.device, *other.device}):
        if first.device.get(key) != other.device.get(key):
            raise GateError(
                f"{prefix} device {key} {other.device.get(key)!r}, not {first.device.get(key)!r}"
            )
    if first.plant != other.plant:
        raise GateError(f"{prefix} plant {other.plant!r}, not {first.plant!r}")
    if first.seed != other.seed:
        raise GateError(f"{prefix} seed {other.seed!r}, not {first.seed!r}")
    for name in sorted({*first.readings, *other.readings}):
        for absent_in, present_in in ((first, other), (other, first)):
            if name not in absent_in.readings:
                raise GateError(f"{prefix} {name} is in {present_in.path} only")
        ours, theirs = first.readings[name], other.readings[name]
        if (ours.values.keys(), ours.bytes) != (theirs.values.keys(), theirs.bytes):
            raise GateError(f"{prefix} {name} has other counters or another number of bytes")


def check_distinct(paths: Sequence[str]) -> None:
    """A recording given twice would count as two independent processes."""
    seen: dict[bytes, str] = {}
    for path in paths:
        try:
            content = Path(path).read_bytes()
        except OSError:
            continue  # read_process tells it better
        if content.strip() and content in seen:
            raise GateError(f"{path}: the same recording as {seen[content]}")
        seen[content] = path


def read_sessions(path: str) -> list[Any]:
    root = read_json(path)
    check_finite(root)
    for session in root.elements():
        session.object()
    if not root.value:
        raise root.error("no session in it")
    return list(root.value)
