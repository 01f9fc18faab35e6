"""Verdict files; one verdict over several GPU models, with one budget of false alarms."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, computed_field, model_validator
from pydantic.dataclasses import dataclass

from tilegate_ci.core import documents
from tilegate_ci.core.documents import Document, Line, Natural, Schema, Text
from tilegate_ci.core.files import GateError, parse_json, printable, read_text, write_text
from tilegate_ci.core.git import repository_url
from tilegate_ci.formats import run_file
from tilegate_ci.judge.compare import Comparison, Row
from tilegate_ci.judge.paired import holm
from tilegate_ci.model import OTHER, REPOSITORY, Run, Verdict, worst

MISSING = "not judged: the file is not there"
NOTE = "regressed by its own model's error budget, not by that of all models"

Test = tuple[str, str]  # file, benchmark


@dataclass(frozen=True, config=ConfigDict(strict=True))
class Member:
    """A model: its verdict by the budget of all, or why there is none. `alone` is the exit code of
    its own verdict."""

    path: Line
    alone: Natural
    verdict: Comparison | None = None
    error: Text = ""

    @model_validator(mode="after")
    def _one_of_both(self) -> "Member":
        if (self.verdict is None) is (self.error == ""):
            raise ValueError("must have a verdict, or an error in its place")
        return self

    @property
    def name(self) -> str:
        return self.verdict.candidate.device.name if self.verdict else self.path

    @property
    def commit(self) -> str:
        return self.verdict.candidate.commit if self.verdict else ""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def exit_code(self) -> int:
        return self.verdict.exit_code if self.verdict else self.alone

    @property
    def changed(self) -> list[str]:
        """The benchmarks whose verdict the budget of all changed."""
        return [row.name for row in self.rows if row.note == NOTE]

    @property
    def rows(self) -> Sequence[Row]:
        return self.verdict.rows if self.verdict else ()


@dataclass(frozen=True, config=ConfigDict(strict=True))
class Fleet:
    """The file of a merged verdict."""

    models: tuple[Member, ...]
    tests: Natural  # that share the budget
    kind: Literal["fleet"] = "fleet"
    schema: Schema = 1

    @computed_field  # type: ignore[prop-decorator]
    @property
    def exit_code(self) -> int:
        return worst(member.exit_code for member in self.models)


def merge(verdicts: Mapping[str, Comparison | str | None]) -> Fleet:
    """Of verdicts by file; in place of one an error, or None where there is no file.

    A test that used a share of the errors allowed counts with its p divided by that share, so that
    Holm's method over all of them is right however many looks there were at each."""
    members = [_member(path, found) for path, found in verdicts.items()]
    _check_alike(members)
    tests = {
        (member.path, row.name): min(1.0, row.p / row.share) if row.share else 1.0
        for member in members
        for row in member.rows
        if row.p is not None and row.share is not None
    }
    certain = dict(zip(tests, holm([*tests.values()])))
    return Fleet(tuple(_judged(member, certain) for member in members), len(tests))


def _member(path: str, found: Comparison | str | None) -> Member:
    if found is None:
        return Member(path, 4, error=MISSING)
    if isinstance(found, str):
        return Member(path, 2, error=found)
    red = [row for row in found.rows if row.verdict is Verdict.REGRESSED]
    if any(row.pairs and row.share is None for row in red):
        return Member(path, 2, error="written by an older gate, without shares: judge again")
    return Member(path, found.exit_code, found)


def _check_alike(members: Sequence[Member]) -> None:
    """GateError where a model is there twice, or not all are of one commit."""
    known = [member for member in members if member.verdict]
    for member in known:
        first = known[0]
        if member.commit != first.commit:
            raise GateError(
                f"{member.path}: commit {member.commit}, but {first.path} is of {first.commit}"
            )
        twins = [other.path for other in known if other.name == member.name]
        if twins[1:] and any(row.metric for row in member.rows):
            raise GateError(f"{' and '.join(twins)}: both are verdicts on {member.name}")


def _judged(member: Member, certain: Mapping[Test, bool]) -> Member:
    if member.verdict is None:
        return member
    rows = [
        replace(row, verdict=Verdict.INCONCLUSIVE, note=NOTE)
        if row.verdict is Verdict.REGRESSED and not certain.get((member.path, row.name), True)
        else row
        for row in member.rows
    ]
    return replace(member, verdict=replace(member.verdict, rows=tuple(rows)))


class ErrorFile(Document):
    """In place of a comparison that could not be made."""

    kind: Literal["verdict"]
    error: Line


def write(path: Path, comparison: Comparison) -> None:
    if comparison.repository is None and comparison.candidate.device.kind != OTHER:
        comparison = replace(comparison, repository=repository_url(REPOSITORY))
    write_text(path, documents.to_text(comparison))


def write_error(path: Path, message: str) -> None:
    """What has several lines becomes one."""
    error = printable(" ".join(message.split()))
    write_text(path, documents.to_text(ErrorFile(schema=1, kind="verdict", error=error)))


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
        return documents.validated(Fleet, text, path)
    return documents.validated(Comparison, text, path)


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
