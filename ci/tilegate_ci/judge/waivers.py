"""Waivers: accepted slow-downs, up to a ceiling and until a day."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import Field

from tilegate_ci.core import documents
from tilegate_ci.core.documents import Document, Line, Model, Positive
from tilegate_ci.core.files import GateError
from tilegate_ci.core.names import search
from tilegate_ci.judge.compare import Comparison, Row
from tilegate_ci.model import REPOSITORY, Verdict

WAIVERS = REPOSITORY / "bench" / "waivers.json"


class Debt(Model):
    """What a waiver of any table says."""

    id: Line
    expires: date
    reason: Line


class Waiver(Debt):
    """Of the benchmarks in whose name `benchmarks` is found."""

    benchmarks: re.Pattern[str]
    ceiling: Annotated[Positive, Field(lt=1)]  # the slow-down that passes: 0.05 is 5 %


class WaiversFile(Document):
    waivers: list[Waiver]


def load(path: Path, today: date) -> list[Waiver]:
    """[] where the default file does not exist yet. One that is named must be there."""
    if path == WAIVERS and not path.exists():
        return []
    waivers = documents.load(WaiversFile, path).waivers
    check(waivers, today, str(path))
    return waivers


def check(waivers: Sequence[Debt], today: date, path: str) -> None:
    """An expired waiver of any table is an error, even where no row needs it any more, so that
    none is forgotten."""
    for waiver in waivers:
        if sum(waiver.id == other.id for other in waivers) > 1:
            raise GateError(f"{path}: waiver {waiver.id} is there twice")
        if waiver.expires < today:
            raise GateError(
                f"{path}: waiver {waiver.id} expired on {waiver.expires}: {waiver.reason}; remove "
                "it with what it excuses, or give it a new day"
            )


def apply(comparison: Comparison, waivers: Sequence[Waiver]) -> Comparison:
    """Regressions at or below the ceiling of their waiver pass, with a note that says why."""
    return replace(comparison, rows=tuple(_waived(row, waivers) for row in comparison.rows))


def _waived(row: Row, waivers: Sequence[Waiver]) -> Row:
    found = [waiver for waiver in waivers if search(waiver.benchmarks, [row.name])]
    if row.verdict is not Verdict.REGRESSED or row.slowdown is None or not found:
        return row
    waiver = max(found, key=lambda waiver: waiver.ceiling)
    limit = f"waiver {waiver.id}: up to {100 * waiver.ceiling:g} % until {waiver.expires}"
    above = row.slowdown > waiver.ceiling
    note = f"above {limit}" if above else f"{limit}, {waiver.reason}"
    note = f"{row.note}; {note}" if row.note else note
    return replace(row, verdict=row.verdict if above else Verdict.PASS, note=note)
