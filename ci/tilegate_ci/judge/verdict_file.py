"""The verdict file: what a comparison found, for `ci/gate report` to show in any form."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, model_validator

from tilegate_ci.core import documents
from tilegate_ci.core.documents import Commit, Document, Line, Model, Natural, Text
from tilegate_ci.core.files import GateError, parse_json, printable, read_text, write_text
from tilegate_ci.core.git import repository_url
from tilegate_ci.core.names import canonical_name
from tilegate_ci.formats import run_file
from tilegate_ci.judge.compare import Comparison, Row
from tilegate_ci.judge.fleet import Fleet, Member, merge
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


class MemberPart(Model):
    """A model of a fleet: its verdict as the fleet has it, or why there is none."""

    path: Line
    exit_code: Natural
    alone: Natural  # the exit code of its own verdict
    error: Text = ""
    verdict: VerdictFile | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "MemberPart":
        if (self.verdict is None) is (self.error == ""):
            raise ValueError("must have a verdict, or an error in its place")
        return self


class FleetFile(Document):
    """One verdict over several GPU models."""

    kind: Literal["fleet"]
    exit_code: Natural
    tests: Natural
    models: tuple[MemberPart, ...]


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


def write_fleet(path: Path, fleet: Fleet) -> None:
    models = tuple(
        MemberPart(
            path=member.path,
            exit_code=member.exit_code,
            alone=member.alone,
            error=member.error,
            verdict=document(member.comparison) if member.comparison else None,
        )
        for member in fleet.members
    )
    found = FleetFile(
        schema=1, kind="fleet", exit_code=fleet.exit_code, tests=fleet.tests, models=models
    )
    write_text(path, documents.to_text(found))


def load(path: str) -> Comparison | Fleet | Run | str:
    """The comparison, or that of a fleet; the error that there was instead; or, as reports take
    all, a run without a comparison."""
    return parse(read_text(path), path)


def parse(text: str, path: str) -> Comparison | Fleet | Run | str:
    root = parse_json(text, path)
    if not isinstance(root, dict) or "kind" not in root:
        return run_file.parse(text, path)
    if "error" in root:
        return documents.validated(ErrorFile, text, path).error
    if root["kind"] == "fleet":
        found = documents.validated(FleetFile, text, path)
        return Fleet(tuple(map(_member, found.models)), found.tests)
    return _comparison(documents.validated(VerdictFile, text, path))


def merged(paths: Sequence[str]) -> Fleet:
    """The fleet of these verdict files, of which some may be missing."""
    found: dict[str, Comparison | str | None] = {}
    for path in paths:
        try:
            verdict = load(path) if os.path.lexists(path) else None
        except GateError as problem:
            verdict = printable(str(problem))
        if isinstance(verdict, Run | Fleet):
            verdict = f"{path}: no verdict on one model"
        if path in found:
            raise GateError(f"{path} is given twice")
        found[path] = verdict
    return merge(found)


def _member(part: MemberPart) -> Member:
    found = _comparison(part.verdict) if part.verdict else None
    return Member(part.path, part.alone, found, part.error)


def _comparison(found: VerdictFile) -> Comparison:
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
        path=run.path, commit=run.commit, device=run.device, sessions=run.sessions, measured=rows
    )


def _run(part: VerdictRun) -> Run:
    run = Run(
        commit=part.commit, device=part.device, sessions=part.sessions, benchmarks=part.measured
    )
    run._path = part.path
    return run
