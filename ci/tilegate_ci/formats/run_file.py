"""A recorded run, read: what baseline and candidate files hold, checked."""

import statistics
from enum import Enum
from pathlib import Path

from tilegate_ci.core import documents
from tilegate_ci.core.files import GateError, check_finite, fault, parse_json, read_text
from tilegate_ci.formats.reading import is_process
from tilegate_ci.model import OTHER, OtherRunFile, RunFile, RunRow, delta_of

# A summary is written with six digits of the median of numbers written with six digits.
AGREEMENT = 1e-3


class Role(Enum):
    """What a run is read as. It says which disagreement between a summary and its per-process
    values would hide a regression, and so is an error: a baseline that looks slower than its
    evidence, a candidate that looks faster, and either of them in a run to be accepted."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"
    ACCEPTED = "accepted"


def load(path: str | Path, role: Role = Role.CANDIDATE) -> RunFile:
    """Reads and checks a file; GateError says what is wrong with it. Whatever could hide a
    regression is an error that names its place."""
    return parse(read_text(path), str(path), role)


def parse(text: str, path: str, role: Role = Role.CANDIDATE) -> RunFile:
    if is_process(text):
        raise GateError(
            f"{path}: written by a benchmark; `compare --no-baseline` makes a run of it"
        )
    root = parse_json(text, path)
    check_finite(root, path)
    device = root.get("device") if isinstance(root, dict) else None
    other = isinstance(device, dict) and device.get("kind") == OTHER
    run = documents.validated(OtherRunFile if other else RunFile, text, path)
    run._path = path
    for name, row in run.benchmarks.items():
        run._warnings += tuple(_disagreements(name, row, path, role))
        if role is Role.BASELINE:
            run._warnings += tuple(_margin(name, row, path))
    return run


def _margin(name: str, row: RunRow, path: str) -> list[str]:
    """A warning about a margin that is narrower than its evidence gives, which can only make the
    gate stricter; an error for a wider one, which would hide slow-downs."""
    known = delta_of(row.per_process[row.decisive])
    if row.delta is None or abs(row.delta - known) <= AGREEMENT * known:
        return []
    word = "wider" if row.delta > known else "narrower"
    message = fault(
        path,
        ("benchmarks", name, "delta"),
        f"{row.delta:.6g} is {word} than what its per_process values give, {known:.6g}",
    )
    if row.delta > known:
        raise message
    return [f"{message}; judged as written"]


def _disagreements(name: str, row: RunRow, path: str, role: Role) -> list[str]:
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
        message = fault(
            path,
            ("benchmarks", name, metric),
            f"{written:.6g} is {'faster' if faster else 'slower'} than the median of its "
            f"per_process values, {median:.6g}",
        )
        if role is Role.ACCEPTED or faster == (role is Role.CANDIDATE):
            raise message
        warnings.append(f"{message}; judged as written")
    return warnings
