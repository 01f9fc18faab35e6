"""bench/baselines/resources.json: its rows, reading and writing them, and what changed."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field

from tilegate_ci.checks.resources.compile import Compiled, Launch, Usage
from tilegate_ci.checks.resources.occupancy import (
    ARCHITECTURES,
    Architecture,
    blocks_per_sm,
    occupancy,
)
from tilegate_ci.core import documents
from tilegate_ci.core.documents import Count, Document, Line, Model, Natural
from tilegate_ci.core.files import GateError
from tilegate_ci.judge.waivers import Debt

DEFAULT, VARIANT, UNUSED = "default", "variant", "unused"


class KernelRow(NamedTuple):
    """One kernel on one architecture. Sizes in bytes; threads, dynamic shared memory and what
    follows from them are None for a kernel that nothing launches there."""

    registers: Natural
    spill_stores: Natural
    spill_loads: Natural
    stack: Natural
    static_shared: Natural
    dynamic_shared: Natural | None
    threads: Natural | None
    blocks_per_sm: Natural | None
    occupancy: Annotated[float, Field(ge=0, le=1)] | None  # resident warps as a share of the most
    path: str  # who launches it: the rung itself, a variant for comparison, or nothing

    @property
    def spilled(self) -> int:
        return self.spill_stores + self.spill_loads


class Place(NamedTuple):
    """Where a row stands in the table, and in reports."""

    rung: str
    kernel: str
    architecture: str


class Change(NamedTuple):
    place: Place
    column: str
    old: str
    new: str


Kernels = dict[str, dict[Architecture, KernelRow]]


class RungResources(Model):
    """`sources`: the digest of the files that the rows were compiled from. `not_on`: architectures
    without rows, and why. Reasons that people wrote are kept."""

    sources: str = ""
    kernels: Kernels = {}
    not_on: Annotated[dict[Architecture, Line], Field(exclude_if=lambda reasons: not reasons)] = {}


class SpillWaiver(Debt):
    """Lets a kernel spill up to `ceiling` bytes, loads and stores together."""

    rung: Line
    kernel: Line
    architectures: list[Architecture]
    ceiling: Count

    def covers(self, place: Place) -> bool:
        here = (place.rung, place.kernel) == (self.rung, self.kernel)
        return here and place.architecture in self.architectures


def _columns(columns: list[str]) -> list[str]:
    if columns != list(KernelRow._fields):
        raise ValueError(
            "not the columns of this gate; `ci/gate check resources --update` renews them"
        )
    return columns


class Table(Document):
    nvcc: Line
    columns: Annotated[list[str], AfterValidator(_columns)] = list(KernelRow._fields)
    rungs: dict[str, RungResources] = {}
    waivers: list[SpillWaiver] = []

    def rows(self) -> Iterator[tuple[Place, KernelRow]]:
        for rung, entry in self.rungs.items():
            for kernel, by_architecture in entry.kernels.items():
                for architecture, row in by_architecture.items():
                    yield Place(rung, kernel, architecture), row


def rung_rows(compiled: Mapping[Architecture, Compiled]) -> Kernels:
    """The rows of a rung, by kernel and architecture."""
    kernels: Kernels = {}
    for architecture, found in compiled.items():
        for kernel, usage in found.usage.items():
            row = _row(architecture, usage, found.launches.get(kernel))
            kernels.setdefault(kernel, {})[architecture] = row
    return kernels


def _row(architecture: Architecture, usage: Usage, launch: Launch | None) -> KernelRow:
    taken = (usage.registers, usage.spill_stores, usage.spill_loads, usage.stack)
    row = KernelRow(*taken, usage.static_shared, None, None, None, None, UNUSED)
    if launch is None:
        return row
    limits = ARCHITECTURES[architecture]
    shared = usage.static_shared + launch.dynamic_shared
    blocks = blocks_per_sm(limits, launch.threads, usage.registers, shared)
    return row._replace(
        dynamic_shared=launch.dynamic_shared,
        threads=launch.threads,
        blocks_per_sm=blocks,
        occupancy=round(occupancy(limits, launch.threads, blocks), 4),
        path=DEFAULT if launch.default else VARIANT,
    )


def changes(
    old: Table, new: Table, rungs: Collection[str], architectures: Collection[str]
) -> list[Change]:
    """What differs, exactly. Only `rungs` and `architectures` are looked at, and rungs that the
    ladder no longer has."""

    def chosen(table: Table) -> dict[Place, KernelRow]:
        return {
            p: r for p, r in table.rows() if p.rung in rungs and p.architecture in architectures
        }

    before, after = chosen(old), chosen(new)
    found = []
    for place in sorted({*before, *after}):
        if place not in after:
            found.append(Change(place, "kernel", "there", "gone"))
        elif place not in before:
            row = after[place]
            brief = f"new: {row.registers} registers, {row.spilled} bytes spilled"
            found.append(Change(place, "kernel", "-", brief))
        else:
            found += [
                Change(place, column, *("none" if v is None else str(v) for v in (left, right)))
                for column, left, right in zip(KernelRow._fields, before[place], after[place])
                if left != right
            ]
    return found


def load(path: Path) -> Table:
    if not path.exists():
        raise GateError(
            f"{path}: there is no table yet; `ci/gate check resources --update` writes one"
        )
    return documents.load(Table, path)
