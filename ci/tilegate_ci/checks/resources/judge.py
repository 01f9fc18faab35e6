"""The verdict on a table of resources: exact against the committed one, and no spills."""

from collections.abc import Collection
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
from tilegate_ci.model import Verdict, exit_code

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
