"""The verdict file: what a comparison found, for `ci/gate report` to show in any form."""

from pathlib import Path
from typing import Any, Literal

from tilegate_ci.core import formats, model
from tilegate_ci.core.files import parse_json, read_text, write_text
from tilegate_ci.core.formats import Document, Line, Natural
from tilegate_ci.core.model import Run, RunSummary, Summary
from tilegate_ci.judge.compare import Comparison, Row


class VerdictFile(Document):
    kind: Literal["verdict"]  # a run's file has no kind
    baseline: RunSummary
    candidate: RunSummary
    differences: list[Line]
    warnings: list[Line]
    left_out: Natural
    exit_code: int
    rows: list[Row]


class ErrorFile(Document):
    """In place of a comparison that could not be made."""

    kind: Literal["verdict"]
    error: Line


def write(path: Path, comparison: Comparison) -> None:
    write_text(path, formats.to_text(document(comparison)))


def write_error(path: Path, message: str) -> None:
    """What has several lines becomes one."""
    error = " ".join(message.split())
    write_text(path, formats.to_text(ErrorFile(schema=1, kind="verdict", error=error)))


def document(comparison: Comparison) -> VerdictFile:
    return VerdictFile(
        schema=1,
        kind="verdict",
        baseline=_summary(comparison.baseline),
        candidate=_summary(comparison.candidate),
        differences=list(comparison.differences),
        warnings=list(comparison.warnings),
        left_out=comparison.left_out,
        exit_code=comparison.exit_code,
        rows=list(comparison.rows),
    )


def load(path: str) -> Comparison | Run | str:
    """The comparison, its runs without their evidence; the error that there was instead; or, as
    reports take both, a run that nobody compared."""
    return parse(read_text(path), path)


def parse(text: str, path: str) -> Comparison | Run | str:
    root = parse_json(text, path)
    if not isinstance(root, dict) or "kind" not in root:
        return model.parse(text, path)
    if "error" in root:
        return formats.validated(ErrorFile, text, path).error
    found = formats.validated(VerdictFile, text, path)
    return Comparison(
        baseline=found.baseline,
        candidate=found.candidate,
        rows=tuple(found.rows),
        differences=tuple(found.differences),
        left_out=found.left_out,
        warnings=tuple(found.warnings),
    )


def measured(row: Summary) -> dict[str, Any]:
    """What the curves need of a benchmark: its summaries, bytes, whether it was verified."""
    return row.model_dump(include={*Summary.model_fields})


def _summary(run: Run | RunSummary) -> RunSummary:
    rows = {name: Summary(**measured(row)) for name, row in run.benchmarks.items()}
    return RunSummary(path=run.path, commit=run.commit, device=run.device, measured=rows)
