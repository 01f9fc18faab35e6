"""Recordings: what every process of a sitting measured, kept as the proof of the gate.

A process is the unit: for each benchmark the logarithms of the median seconds of the rung and of
cuBLAS and of the median of their ratio, and a sample of the replays behind them, which only the
rules of other tools need."""

from __future__ import annotations

import gzip
import json
import math
import statistics
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilegate_ci.core.files import GateError, Node, parse_json, write_bytes
from tilegate_ci.core.schemas import check_schema

SCHEMA = 1
KEPT_SAMPLES = 24


@dataclass(frozen=True)
class Row:
    """One benchmark in one process. Natural logarithms; seconds a launch."""

    log_rung: float
    log_cublas: float
    log_ratio: float  # of cuBLAS over the rung: what the gate compares
    planted_percent: float | None  # by how much a planted delay slowed it down, by the clock
    samples: tuple[int, ...]  # replays of the rung: parts per million off its median


@dataclass(frozen=True)
class Process:
    """`rung` is the one whose benchmarks alone were run, None for the whole suite."""

    round: int
    rung: str | None
    plant_percent: float | None
    build: str | None
    rows: Mapping[str, Row]
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Recording:
    path: str
    sitting: str
    device: Mapping[str, Any]
    processes: tuple[Process, ...]
    fields: Mapping[str, Any]


def make_row(
    rung_s: Sequence[float], cublas_s: Sequence[float], planted: float | None
) -> dict[str, Any]:
    """The row of a benchmark as the file has it, from its replays."""
    median = statistics.median(rung_s)
    ratio = statistics.median(c / r for r, c in zip(rung_s, cublas_s))
    step = max(1, math.ceil(len(rung_s) / KEPT_SAMPLES))
    row: dict[str, Any] = {
        "log": [
            round(math.log(value), 7) for value in (median, statistics.median(cublas_s), ratio)
        ],
        "samples_ppm": [round(1e6 * (value / median - 1)) for value in rung_s[::step]],
    }
    if planted is not None:
        row["planted_percent"] = round(planted, 4)
    return row


def load(path: str) -> Recording:
    """Reads and checks a recording; GateError says what is wrong with it."""
    try:
        data = gzip.decompress(Path(path).read_bytes())
    except FileNotFoundError as problem:
        raise GateError(f"{path}: cannot be read: {problem.strerror}") from problem
    except (OSError, EOFError, zlib.error) as problem:
        raise GateError(f"{path}: not a whole gzip file: {problem}") from problem
    return parse(parse_json(data, path))


def parse(root: Node) -> Recording:
    check_schema(root, "recording")
    processes = [_parse_process(node) for node in root.require("processes").elements()]
    seen = set()
    like: dict[str | None, Process] = {}
    for process in processes:
        key = (process.round, process.rung, process.plant_percent, process.build)
        if key in seen:
            raise root.error(f"processes: {key} is there twice")
        seen.add(key)
        first = like.setdefault(process.rung, process)
        differing = sorted(first.rows.keys() ^ process.rows.keys())
        if differing:
            raise root.error(f"processes: {key}: {differing[0]} is not in all of its kind")
    return Recording(
        root.source,
        root.require("sitting").text(),
        root.require("device").object(),
        tuple(processes),
        root.value,
    )


def _parse_process(node: Node) -> Process:
    fields = node.object()
    rows = {}
    for name, row in node.require("rows").items():
        values = [number.finite() for number in row.require("log").elements()]
        samples = tuple(row.value["samples_ppm"])
        rows[name] = Row(*values, row.value.get("planted_percent"), samples)  # type: ignore[arg-type]
    return Process(
        fields["round"],
        fields.get("rung"),
        fields.get("plant_percent"),
        fields.get("build"),
        rows,
        fields,
    )


def save(path: Path, document: Mapping[str, Any]) -> None:
    """One line a process, and no time of day in the gzip header, so that equal content is an equal
    file."""
    check_schema(Node(document, str(path)), "recording")
    head = {key: value for key, value in document.items() if key != "processes"}
    lines = [json.dumps(process, sort_keys=True) for process in document["processes"]]
    text = json.dumps(head, sort_keys=True)[:-1] + ', "processes": [\n' + ",\n".join(lines) + "\n]}"
    json.loads(text)
    write_bytes(path, gzip.compress(text.encode(), mtime=0))
