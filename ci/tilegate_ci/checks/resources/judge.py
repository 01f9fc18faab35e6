"""The verdict on a table of resources: no change, no spill. As text and as Markdown."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tilegate_ci.checks.resources.table import (
    VARIANT,
    Change,
    KernelRow,
    Place,
    SpillWaiver,
    Table,
    changes,
)
from tilegate_ci.core.markdown import table
from tilegate_ci.model import Verdict, exit_code
from tilegate_ci.report.templates import escaped

MEANINGS = {
    0: "as committed",
    1: "changed: the committed table says otherwise",
    2: "error: a spill that nobody waived, or a rung that could not be judged",
    4: "incomparable: the committed table is of another nvcc release",
}


@dataclass(frozen=True)
class Spill:
    """`waiver` covers it; `fault` says why it fails nevertheless."""

    place: Place
    row: KernelRow
    waiver: SpillWaiver | None
    fault: str | None


@dataclass(frozen=True)
class Judgement:
    """`incomparable`, where not None, says why the tables were not compared; `changes` is then
    empty. `new` rungs are not in the committed table yet, and those from `outside` the repository
    never are, which fails nothing."""

    table: Table
    changes: list[Change]
    new: list[str]
    outside: list[str]
    spills: list[Spill]
    incomparable: str | None
    warnings: list[str]
    errors: list[str]  # rungs that could not be compiled

    @property
    def exit_code(self) -> int:
        failed = self.errors or any(spill.fault for spill in self.spills)
        verdicts = [Verdict.ERROR] if failed else []
        if self.changes:
            verdicts.append(Verdict.REGRESSED)
        if self.incomparable:
            verdicts.append(Verdict.INCOMPARABLE)
        return exit_code(verdicts)


def judge(
    committed: Table,
    found: Table,
    rungs: Collection[str],
    architectures: Collection[str],
    errors: list[str],
    external: Collection[str] = (),
) -> Judgement:
    """`rungs`: those that `found` should hold; what `committed` says of others is left alone.
    `external` ones are from outside the repository."""
    incomparable = None
    if committed.nvcc != found.nvcc:
        incomparable = (
            f"the committed table is of nvcc {committed.nvcc}, this is nvcc {found.nvcc}; "
            "`ci/nvcc` fetches the one of this commit, `ci/gate check resources --update` makes a "
            "new table"
        )
    spills = [
        _spill(place, row, committed.waivers)
        for place, row in found.rows()
        if row.spilled and place.architecture in architectures
    ]
    used = {spill.waiver.id for spill in spills if spill.waiver}
    idle = [
        waiver
        for waiver in committed.waivers
        if waiver.id not in used
        and waiver.rung in rungs
        and architectures
        and set(waiver.architectures) <= set(architectures)
    ]
    new = [name for name in found.rungs if name not in committed.rungs]
    known = {*rungs} - {*new}
    return Judgement(
        table=found,
        changes=[] if incomparable else changes(committed, found, known, architectures),
        new=[] if incomparable else [name for name in new if name not in external],
        outside=[name for name in new if name in external],
        spills=spills,
        incomparable=incomparable,
        warnings=[f"waiver {waiver.id}: nothing spills there; remove it" for waiver in idle],
        errors=errors,
    )


def _spill(place: Place, row: KernelRow, waivers: list[SpillWaiver]) -> Spill:
    waiver = next((one for one in waivers if one.covers(place)), None)
    if waiver is None:
        return Spill(place, row, None, None if row.path == VARIANT else "not waived")
    fault = None
    if row.spilled > waiver.ceiling:
        fault = f"above the {waiver.ceiling} bytes of waiver {waiver.id}"
    return Spill(place, row, waiver, fault)


UPDATE = "ci/gate check resources --update"
OUTSIDE = "from outside the repository, whose table leaves it out; only its spills are judged"


def console(judgement: Judgement) -> str:
    """What fails; the Markdown has the rest."""
    lines = [f"error: {error}" for error in judgement.errors]
    at_fault = [spill for spill in judgement.spills if spill.fault]
    lines += [_spill_line(spill) for spill in _worst_first(at_fault)]
    if judgement.incomparable:
        lines.append(f"incomparable: {judgement.incomparable}")
    lines += [
        f"changed: {rung}: {kernel}: {column}: {old} -> {new} ({architectures})"
        for rung, kernel, column, old, new, architectures in _grouped(judgement.changes)
    ]
    lines += [f"new: {name}: not in the committed table yet; {UPDATE}" for name in judgement.new]
    lines += [f"outside: {name}: {OUTSIDE}" for name in judgement.outside]
    if judgement.changes:
        lines.append(f"If that is intended: {UPDATE}, and commit the table")
    return "\n".join([*lines, summary(judgement)]) + "\n"


def markdown(judgement: Judgement) -> str:
    lines = [f"### Resources: {MEANINGS[judgement.exit_code].split(':')[0]}", ""]
    lines += [summary(judgement), ""]
    lines += [f"- error: {escaped(error)}" for error in judgement.errors]
    if judgement.incomparable:
        lines.append(f"- incomparable: {escaped(judgement.incomparable)}")
    lines += [
        f"- new: {name}: not in the committed table yet; `{UPDATE}`" for name in judgement.new
    ]
    lines += [f"- outside: {name}: {OUTSIDE}" for name in judgement.outside]
    lines += [f"- warning: {escaped(warning)}" for warning in judgement.warnings]
    if judgement.spills:
        header = ("verdict", "rung", "kernel", "architecture", "stores", "loads", "reason")
        lines += ["", "Spills, in bytes per thread:", ""]
        lines += _table(header, map(_spill_cells, _worst_first(judgement.spills)))
    if judgement.changes:
        columns = ("rung", "kernel", "what", "committed", "now", "architectures")
        lines += ["", "Changes against the committed table:", ""]
        lines += _table(columns, _grouped(judgement.changes))
        lines += ["", f"If that is intended: `{UPDATE}`, and commit the table."]
    rows = list(judgement.table.rows())
    lines += ["", f"<details><summary>All {len(rows)} rows</summary>", ""]
    cells = (
        (*place, *("-" if value is None else str(value) for value in row)) for place, row in rows
    )
    lines += _table(("rung", "kernel", "architecture", *KernelRow._fields), cells)
    return "\n".join([*lines, "", "</details>"]) + "\n"


def summary(judgement: Judgement) -> str:
    rows = list(judgement.table.rows())
    kernels = {(place.rung, place.kernel) for place, _ in rows}
    code = judgement.exit_code
    spills = Counter(_verdict(spill) for spill in judgement.spills)
    parts = [
        f"{len(judgement.table.rungs)} rungs, {len(kernels)} kernels, {len(rows)} rows",
        f"nvcc {judgement.table.nvcc}",
        f"{len(judgement.changes)} changes",
        f"{spills['error']} spills at fault, {spills['waived']} waived, {spills['noted']} noted",
    ]
    return f"{', '.join(parts)}. Exit {code}, {MEANINGS[code]}"


def _worst_first(spills: Iterable[Spill]) -> list[Spill]:
    return sorted(spills, key=lambda spill: (spill.fault is None, -spill.row.spilled))


def _verdict(spill: Spill) -> str:
    return "error" if spill.fault else "waived" if spill.waiver else "noted"


def _reason(spill: Spill) -> str:
    if spill.fault:
        return spill.fault
    if spill.waiver:
        return f"{spill.waiver.id}: {spill.waiver.reason}"
    return "a variant for comparison"


def _spill_cells(spill: Spill) -> tuple[str, ...]:
    place, row = spill.place, spill.row
    counts = (str(row.spill_stores), str(row.spill_loads))
    return (_verdict(spill), place.rung, place.kernel, place.architecture, *counts, _reason(spill))


def _spill_line(spill: Spill) -> str:
    verdict, rung, kernel, architecture, stores, loads, reason = _spill_cells(spill)
    bytes_ = f"{stores} bytes of spill stores, {loads} of loads"
    return f"{verdict}: {rung}: {kernel}: {bytes_} on {architecture}: {reason}"


def _grouped(changes: Sequence[Change]) -> list[tuple[str, ...]]:
    """Architectures on which the same changed stand in one row."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for change in changes:
        key = (change.place.rung, change.place.kernel, change.column, change.old, change.new)
        groups.setdefault(key, []).append(change.place.architecture)
    return [(*key, ", ".join(architectures)) for key, architectures in groups.items()]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return table(heads, (map(escaped, row) for row in rows), left=len(heads))
