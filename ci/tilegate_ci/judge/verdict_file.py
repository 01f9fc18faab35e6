"""The verdict file: what a comparison found, for `ci/gate report` to show in any form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from tilegate_ci.core.files import Node, check_finite, dumps, write_text
from tilegate_ci.core.git import repository_url
from tilegate_ci.core.model import GFLOPS, METRICS, REPOSITORY, Benchmark, Run
from tilegate_ci.core.reader import parse_commit, parse_device, parse_name
from tilegate_ci.core.verdicts import Verdict
from tilegate_ci.judge.compare import Comparison, Row

SCHEMA = 1
KIND = "verdict"  # a run's file has no kind

T = TypeVar("T")


def write(path: Path, comparison: Comparison) -> None:
    comparison = replace(comparison, repository=repository_url(REPOSITORY))
    write_text(path, dumps(document(comparison)) + "\n")


def write_error(path: Path, message: str) -> None:
    """In place of a comparison that could not be made; what has several lines becomes one."""
    error = " ".join(message.split())
    write_text(path, dumps({"schema": SCHEMA, "kind": KIND, "error": error}) + "\n")


def document(comparison: Comparison) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "baseline": _run(comparison.baseline),
        "candidate": _run(comparison.candidate),
        "differences": list(comparison.differences),
        "warnings": list(comparison.warnings),
        "left_out": comparison.left_out,
        "exit_code": comparison.exit_code,
        "base_commit": comparison.base_commit,
        "repository": comparison.repository,
        "rows": [_row(row) for row in comparison.rows],
    }


def parse(root: Node) -> Comparison | str:
    """The comparison, its runs without their evidence; or the error that there was instead."""
    root.check_version(SCHEMA)
    error = root.get("error")
    if error is not None:
        return error.text()
    check_finite(root)
    return Comparison(
        baseline=_parse_run(root.require("baseline")),
        candidate=_parse_run(root.require("candidate")),
        rows=tuple(_parse_row(node) for node in root.require("rows").elements()),
        differences=tuple(node.text() for node in root.require("differences").elements()),
        left_out=int(root.require("left_out").finite()),
        warnings=tuple(node.text() for node in root.require("warnings").elements()),
        base_commit=_optional(root, "base_commit", parse_commit),
        repository=_optional(root, "repository", _parse_address),
    )


def _run(run: Run) -> dict[str, Any]:
    return {
        "path": run.path,
        "commit": run.commit,
        "device": dict(run.device.fields),
        "sessions": run.fields.get("sessions", []),
        "measured": {name: measured(row) for name, row in run.benchmarks.items()},
    }


def measured(row: Benchmark) -> dict[str, Any]:
    """What the charts need of a benchmark: its summaries, the values of each process, bytes,
    whether it was verified."""
    return {
        **row.summary,
        **({"bytes": row.fields["bytes"]} if "bytes" in row.fields else {}),
        "per_process": {metric: list(values) for metric, values in row.per_process.items()},
        "verified": row.verified,
    }


def _row(row: Row) -> dict[str, Any]:
    values = {column.name: getattr(row, column.name) for column in fields(row)}
    return {**values, "verdict": row.verdict.value}


def _parse_run(node: Node) -> Run:
    rows = {
        parse_name(name, value): _parse_measured(name, value)
        for name, value in node.require("measured").items()
    }
    sessions = node.get("sessions")
    for session in sessions.elements() if sessions is not None else []:
        session.object()  # what is in it is free, as in a run
    return Run(
        path=node.require("path").text(),
        commit=parse_commit(node.require("commit")),
        device=parse_device(node.require("device")),
        benchmarks=rows,
        fields=node.value,
        warnings=(),
    )


def _parse_measured(name: str, node: Node) -> Benchmark:
    summary = {metric: node.require(metric).positive() for metric in METRICS if node.get(metric)}
    node.require(GFLOPS)
    evidence = node.get("per_process")
    series = evidence.items() if evidence is not None else ()
    return Benchmark(
        name=name,
        summary=summary,
        per_process={
            metric: tuple(value.positive() for value in values.elements())
            for metric, values in series
        },
        delta=None,
        key=False,
        verified=node.require("verified").boolean(),
        fields=node.value,
    )


def _parse_row(node: Node) -> Row:
    verdict, metric = node.require("verdict"), node.require("metric")
    if verdict.value not in [known.value for known in Verdict]:
        raise verdict.error(f"no such verdict: {verdict.value!r}")
    if metric.value not in (None, *METRICS):
        raise metric.error(f"no such metric: {metric.value!r}")
    name = node.require("name")
    return Row(
        name=parse_name(name.text(), name),
        verdict=Verdict(verdict.value),
        note=_text(node.require("note")),
        rerun=_text(node.require("rerun")),
        key=node.require("key").boolean(),
        metric=metric.value,
        baseline=_number(node.require("baseline")),
        candidate=_number(node.require("candidate")),
        slowdown=_number(node.require("slowdown")),
        delta=_number(node.require("delta")),
        lower=_optional(node, "lower", Node.finite),
        upper=_optional(node, "upper", Node.finite),
        p=_optional(node, "p", Node.finite),
        pairs=_optional(node, "pairs", _parse_pairs) or (),
    )


def _parse_pairs(node: Node) -> tuple[float, ...]:
    return tuple(value.finite() for value in node.elements())


def _parse_address(node: Node) -> str:
    """It becomes a link, so nothing but https."""
    if not node.text().startswith("https://"):
        raise node.error(f"must begin with https://, not {node.value!r}")
    return node.text()


def _optional(node: Node, key: str, read: Callable[[Node], T]) -> T | None:
    """None where a file has no such field, as one of an older gate, or null."""
    child = node.get(key)
    return None if child is None or child.value is None else read(child)


def _text(node: Node) -> str:
    return "" if node.value == "" else node.text()


def _number(node: Node) -> float | None:
    return None if node.value is None else node.finite()
