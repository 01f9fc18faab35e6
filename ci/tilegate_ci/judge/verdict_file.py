"""The verdict file: what a comparison found, for `ci/gate report` to show in any form."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from tilegate_ci.core import documents
from tilegate_ci.core.documents import Document, Line
from tilegate_ci.core.files import GateError, parse_json, printable, read_text, write_text
from tilegate_ci.core.git import repository_url
from tilegate_ci.formats import run_file
from tilegate_ci.judge.compare import Comparison
from tilegate_ci.judge.fleet import Fleet, merge
from tilegate_ci.model import OTHER, REPOSITORY, Run


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
