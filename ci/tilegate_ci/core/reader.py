"""Reads a run. Whatever could hide a regression is an error that names its file and place."""

from __future__ import annotations

import re
import statistics
from enum import Enum

from tilegate_ci.core.files import GateError, Node, check_finite, read_json
from tilegate_ci.core.model import GFLOPS, KINDS, METRICS, RATIO, SCHEMA, Benchmark, Device, Run
from tilegate_ci.core.names import canonical_name
from tilegate_ci.core.schemas import check_schema

# A summary is written with six digits of the median of numbers written with six digits.
AGREEMENT = 1e-3

_COMMIT = re.compile(r"[0-9a-f]{40}(-dirty)?")


class Role(Enum):
    """What a run is read as. It says which disagreement between a summary and its per-process
    values would hide a regression, and so is an error: a baseline that looks slower than its
    evidence, a candidate that looks faster, and either of them in a run to be accepted."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"
    ACCEPTED = "accepted"


def load(path: str, role: Role = Role.CANDIDATE) -> Run:
    """Reads and checks a file; GateError says what is wrong with it."""
    return parse(read_json(path), role)


def parse(root: Node, role: Role) -> Run:
    if root.get("schema") is None and root.get("context") is not None:
        raise root.error("Google Benchmark's own output; `ci/gate collect` makes a run of it")
    root.check_version(SCHEMA)
    check_finite(root)
    commit = root.require("commit")
    parse_commit(commit)
    device = parse_device(root.require("device"))
    _check_protocol(root.require("protocol"))
    for session in root.require("sessions").elements():
        session.object()  # what is in it is free

    rows = root.require("benchmarks")
    benchmarks: dict[str, Benchmark] = {}
    warnings: list[str] = []
    for written, node in rows.items():
        name = parse_name(written, node)
        if name in benchmarks:
            raise node.error(f"duplicate benchmark: {name} is there twice")
        benchmarks[name] = _parse_row(name, node)
        warnings += _disagreements(benchmarks[name], node, role)
    if not benchmarks:
        raise rows.error("no benchmark in it")
    check_schema(root, "run")  # last: the checks above say more plainly what is wrong
    return Run(root.source, commit.value, device, benchmarks, root.value, tuple(warnings))


def parse_commit(node: Node) -> str:
    if not _COMMIT.fullmatch(node.text()):
        raise node.error(f"must be 40 hex digits, then perhaps -dirty, not {node.value!r}")
    return node.text()


def parse_name(written: str, node: Node) -> str:
    try:
        return canonical_name(written)
    except ValueError as problem:
        raise node.error(str(problem)) from problem


def parse_device(node: Node) -> Device:
    kind = node.require("kind")
    if kind.value not in KINDS:
        raise kind.error(f"must be one of {', '.join(KINDS)}, not {kind.value!r}")
    for key in ("compute_capability", "multiprocessors"):
        number = node.get(key)
        if number is not None:
            number.count()
    # Without a cuBLAS version nobody could tell whether two runs are comparable.
    cublas = node.require("cublas").text() if kind.value == "cuda" else None
    return Device(kind.value, node.require("name").text(), cublas, node.value)


def _check_protocol(node: Node) -> None:
    node.require("processes").count()
    min_time = node.get("min_time_s")
    if min_time is not None:
        min_time.positive()
    peaks = node.get("peak_gflops_per_process")
    for peak in peaks.elements() if peaks is not None else []:
        peak.positive()


def _parse_row(name: str, node: Node) -> Benchmark:
    summary = {}
    for metric in METRICS:
        value = node.require(metric) if metric == GFLOPS else node.get(metric)
        if value is not None:
            summary[metric] = value.positive()
    number = node.get("bytes")
    if number is not None:
        number.count()
    commit = node.get("commit")
    if commit is not None:
        parse_commit(commit)
    key = node.get("key")
    verified = node.get("verified")
    return Benchmark(
        name=name,
        summary=summary,
        per_process=_parse_per_process(node.require("per_process"), summary),
        delta=_parse_delta(node.get("delta")),
        key=key is not None and key.boolean(),
        verified=verified is not None and verified.value is True,
        fields=node.value,
    )


def _parse_delta(node: Node | None) -> float | None:
    if node is None:
        return None
    if node.positive() >= 1:
        raise node.error(f"must be below 1, which is 100 %, not {node.value!r}")
    return node.positive()


def _parse_per_process(node: Node, summary: dict[str, float]) -> dict[str, tuple[float, ...]]:
    values: dict[str, tuple[float, ...]] = {}
    for metric, series in node.items():
        values[metric] = tuple(element.positive() for element in series.elements())
        if not values[metric]:
            raise series.error("must not be empty")
    for metric in (GFLOPS, RATIO):
        if metric in summary and metric not in values:
            raise node.error(f'"{metric}" is missing, the evidence for the summary')
        if metric in values and metric not in summary:
            raise node.error(f'"{metric}" has no summary beside it')
    lengths = {metric: len(series) for metric, series in values.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{metric} has {count}" for metric, count in sorted(lengths.items()))
        raise node.error(f"differing numbers of processes: {told}")
    return values


def _disagreements(row: Benchmark, node: Node, role: Role) -> list[str]:
    """Warnings about summaries that are not the median of their evidence; an error for a lie that
    hides a slow-down. The reader cannot know which of the two numbers was edited: the harmless
    direction is judged as it is written, because that can only make the gate stricter."""
    warnings = []
    for metric, written in row.summary.items():
        if metric not in row.per_process:
            continue
        median = statistics.median(row.per_process[metric])
        if abs(written - median) <= AGREEMENT * median:
            continue
        faster = written > median
        told: GateError = node.require(metric).error(
            f"{written:.6g} is {'faster' if faster else 'slower'} than the median of its "
            f"per_process values, {median:.6g}"
        )
        if role is Role.ACCEPTED or faster == (role is Role.CANDIDATE):
            raise told
        warnings.append(f"{told}; judged as written")
    return warnings
