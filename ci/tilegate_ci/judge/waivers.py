"""Waivers: slow-downs that somebody accepted, up to a ceiling and until a day."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from tilegate_ci.core.files import GateError, Node, read_json
from tilegate_ci.core.model import REPOSITORY
from tilegate_ci.core.schemas import check_schema
from tilegate_ci.core.verdicts import SEVERITY, Verdict
from tilegate_ci.judge.compare import Comparison, Row

WAIVERS = REPOSITORY / "bench" / "waivers.json"
SCHEMA = 1


@dataclass(frozen=True)
class Waiver:
    """Of the benchmarks in whose name `benchmarks` is found. `ceiling` is a slow-down: 0.05 is
    5 %."""

    id: str
    benchmarks: re.Pattern[str]
    ceiling: float
    expires: date
    reason: str


def load(path: Path, today: date) -> list[Waiver]:
    """[] where nobody has written the default file yet. One that is named must be there."""
    if path == WAIVERS and not path.exists():
        return []
    root = read_json(str(path))
    check_schema(root, "waivers")
    root.check_version(SCHEMA)
    waivers = [_parse(node) for node in root.require("waivers").elements()]
    check(waivers, today, str(path))
    return waivers


def check(waivers: Sequence[Any], today: date, path: str) -> None:
    """An expired waiver, of whatever table, is an error, whether anything needs it or not: a debt
    that nobody looks at again is how gates rot."""
    for waiver in waivers:
        if sum(waiver.id == other.id for other in waivers) > 1:
            raise GateError(f"{path}: waiver {waiver.id} is there twice")
        if waiver.expires < today:
            raise GateError(
                f"{path}: waiver {waiver.id} expired on {waiver.expires}: {waiver.reason}; remove "
                "it with what it excuses, or give it a new day"
            )


def _parse(node: Node) -> Waiver:
    pattern, expires, ceiling = (node.require(k) for k in ("benchmarks", "expires", "ceiling"))
    try:
        found = re.compile(pattern.text())
    except re.error as problem:
        raise pattern.error(f"not a regular expression: {problem}") from problem
    try:
        day = date.fromisoformat(expires.text())
    except ValueError as problem:
        raise expires.error(f"not a day such as 2026-06-30: {expires.value!r}") from problem
    if not ceiling.positive() < 1:
        raise ceiling.error(f"must be below 1, which is 100 %, not {ceiling.value!r}")
    return Waiver(
        node.require("id").text(), found, ceiling.positive(), day, node.require("reason").text()
    )


def apply(comparison: Comparison, waivers: Sequence[Waiver]) -> Comparison:
    """Regressions at or below the ceiling of their waiver pass, with a note that says why."""
    rows = [_waived(row, waivers) for row in comparison.rows]
    rows.sort(key=lambda row: SEVERITY[row.verdict])
    return replace(comparison, rows=tuple(rows))


def _waived(row: Row, waivers: Sequence[Waiver]) -> Row:
    if row.verdict is not Verdict.REGRESSED or row.slowdown is None:
        return row
    found = [waiver for waiver in waivers if waiver.benchmarks.search(row.name)]
    if not found:
        return row
    waiver = max(found, key=lambda waiver: waiver.ceiling)
    told = f"waiver {waiver.id}: up to {100 * waiver.ceiling:g} % until {waiver.expires}"
    if row.slowdown > waiver.ceiling:
        return replace(row, note=_joined(row.note, f"above {told}"))
    note = _joined(row.note, f"{told}, {waiver.reason}")
    return replace(row, verdict=Verdict.PASS, note=note)


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
