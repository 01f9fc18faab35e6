"""The verdict file: what a comparison found, for `ci/gate report` to show in any form."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, model_validator

from tilegate_ci.core import documents
from tilegate_ci.core.documents import Commit, Document, Line, Model, Natural
from tilegate_ci.core.files import parse_json, read_text, write_text
from tilegate_ci.core.git import repository_url
from tilegate_ci.core.names import canonical_name
from tilegate_ci.core.progress import printable
from tilegate_ci.formats import run_file
from tilegate_ci.judge.compare import Comparison, Row
from tilegate_ci.model import OTHER, REPOSITORY, Benchmark, Device, Run, Session


def _https(address: str) -> str:
    """It becomes a link, so nothing else."""
    if not address.startswith("https://"):
        raise ValueError(f"must begin with https://, not {address!r}")
    return address


# Fields of a comparison that its file has as they are.
_SHARED = ("rows", "differences", "left_out", "warnings", "base_commit", "repository")


class VerdictRun(Model):
    """One of the runs; older gates left its sessions and evidence out."""

    path: Line
    commit: Commit
    device: Device
    sessions: list[Session] = []
    measured: dict[Line, Benchmark]


class VerdictFile(Document):
    kind: Literal["verdict"]  # a run's file has no kind
    baseline: VerdictRun
    candidate: VerdictRun
    differences: tuple[Line, ...]
    warnings: tuple[Line, ...]
    left_out: Natural
    exit_code: int
    base_commit: Commit | None = None
    repository: Annotated[Line, AfterValidator(_https)] | None = None
    rows: tuple[Row, ...]

    @model_validator(mode="after")
    def _names_are_canonical(self) -> "VerdictFile":
        """Of our own benchmarks; another project's are called whatever they like."""
        if self.candidate.device.kind != OTHER:
            for name in (*self.candidate.measured, *(row.name for row in self.rows)):
                canonical_name(name)
        return self


class ErrorFile(Document):
    """In place of a comparison that could not be made."""

    kind: Literal["verdict"]
    error: Line


def write(path: Path, comparison: Comparison) -> None:
    if comparison.repository is None and comparison.candidate.device.kind != OTHER:
        comparison = replace(comparison, repository=repository_url(REPOSITORY))
    write_text(path, documents.to_text(document(comparison)))


def write_error(path: Path, message: str) -> None:
    """What has several lines becomes one."""
    error = printable(" ".join(message.split()))
    write_text(path, documents.to_text(ErrorFile(schema=1, kind="verdict", error=error)))


def document(comparison: Comparison) -> VerdictFile:
    return VerdictFile(
        schema=1,
        kind="verdict",
        baseline=_part(comparison.baseline),
        candidate=_part(comparison.candidate),
        exit_code=comparison.exit_code,
        **{name: getattr(comparison, name) for name in _SHARED},
    )


def load(path: str) -> Comparison | Run | str:
    """The comparison; the error that there was instead; or, as reports take both, a run that
    nobody compared."""
    return parse(read_text(path), path)


def parse(text: str, path: str) -> Comparison | Run | str:
    root = parse_json(text, path)
    if not isinstance(root, dict) or "kind" not in root:
        return run_file.parse(text, path)
    if "error" in root:
        return documents.validated(ErrorFile, text, path).error
    found = documents.validated(VerdictFile, text, path)
    return Comparison(
        baseline=_run(found.baseline),
        candidate=_run(found.candidate),
        **{name: getattr(found, name) for name in _SHARED},
    )


def _part(run: Run) -> VerdictRun:
    """What reports need: of each benchmark its summaries and evidence, nothing that judges it."""
    names = {*Benchmark.model_fields}
    rows = {n: Benchmark(**row.model_dump(include=names)) for n, row in run.benchmarks.items()}
    return VerdictRun(
        path=run.path,
        commit=run.commit,
        device=run.device,
        sessions=run.sessions,
        measured=rows,
    )


def _run(part: VerdictRun) -> Run:
    run = Run(
        commit=part.commit, device=part.device, sessions=part.sessions, benchmarks=part.measured
    )
    run._path = part.path
    return run
