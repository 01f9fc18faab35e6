"""bench/baselines/resources.json: its rows, reading and writing them, and what changed."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, astuple, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from tilegate_ci.core.files import GateError, Node, check_finite, dumps, read_json
from tilegate_ci.resources.compile import Compiled, Launch, Usage
from tilegate_ci.resources.occupancy import ARCHITECTURES, blocks_per_sm, occupancy

SCHEMA = 1
DEFAULT, VARIANT, UNUSED = "default", "variant", "unused"


@dataclass(frozen=True)
class Row:
    """One kernel on one architecture. Sizes in bytes; threads, dynamic shared memory and what
    follows from them are None for a kernel that nothing launches there."""

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    static_shared: int
    dynamic_shared: int | None = None
    threads: int | None = None
    blocks_per_sm: int | None = None
    occupancy: float | None = None  # resident warps as a share of the most
    path: str = UNUSED  # who launches it: the rung itself, a variant for comparison, or nothing

    @property
    def spilled(self) -> int:
        return self.spill_stores + self.spill_loads


COLUMNS = tuple(column.name for column in fields(Row))
_NULLABLE = ("dynamic_shared", "threads", "blocks_per_sm", "occupancy")


@dataclass(frozen=True)
class Place:
    """Where a row stands in the table, and in reports."""

    rung: str
    kernel: str
    architecture: str


@dataclass
class Rung:
    """`not_on`: architectures without rows, and why. Reasons that people wrote are kept."""

    kernels: dict[str, dict[str, Row]] = field(default_factory=dict)
    not_on: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Waiver:
    """Lets a kernel spill up to `ceiling` bytes, loads and stores together, until `expires`."""

    id: str
    rung: str
    kernel: str
    architectures: tuple[str, ...]
    ceiling: int
    expires: datetime.date
    reason: str

    def covers(self, place: Place) -> bool:
        return (self.rung, self.kernel) == (
            place.rung,
            place.kernel,
        ) and place.architecture in self.architectures


@dataclass
class Table:
    nvcc: str
    rungs: dict[str, Rung]
    waivers: list[Waiver] = field(default_factory=list)

    def rows(self) -> Iterator[tuple[Place, Row]]:
        for rung, entry in self.rungs.items():
            for kernel, by_architecture in entry.kernels.items():
                for architecture, row in by_architecture.items():
                    yield Place(rung, kernel, architecture), row


@dataclass(frozen=True)
class Change:
    place: Place
    column: str
    old: str
    new: str


def rung_rows(compiled: Mapping[str, Compiled]) -> dict[str, dict[str, Row]]:
    """The rows of a rung, by kernel and architecture."""
    kernels: dict[str, dict[str, Row]] = {}
    for architecture, found in compiled.items():
        for kernel, usage in found.usage.items():
            row = _row(architecture, usage, found.launches.get(kernel))
            kernels.setdefault(kernel, {})[architecture] = row
    return kernels


def _row(architecture: str, usage: Usage, launch: Launch | None) -> Row:
    row = Row(**asdict(usage))
    if launch is None:
        return row
    limits = ARCHITECTURES[architecture]
    shared = usage.static_shared + launch.dynamic_shared
    blocks = blocks_per_sm(limits, launch.threads, usage.registers, shared)
    return replace(
        row,
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

    def chosen(table: Table) -> dict[Place, Row]:
        return {
            p: r for p, r in table.rows() if p.rung in rungs and p.architecture in architectures
        }

    before, after = chosen(old), chosen(new)
    found = []
    for place in sorted({*before, *after}, key=astuple):
        if place not in after:
            found.append(Change(place, "kernel", "there", "gone"))
        elif place not in before:
            found.append(Change(place, "kernel", "-", _brief(after[place])))
        else:
            found += [
                Change(place, column, _told(left), _told(right))
                for column, left, right in zip(
                    COLUMNS, astuple(before[place]), astuple(after[place])
                )
                if left != right
            ]
    return found


def load(path: Path) -> Table:
    if not path.exists():
        raise GateError(f"{path}: there is no table yet; `ci/gate resources --update` writes one")
    root = read_json(str(path))
    check_finite(root)
    root.check_version(SCHEMA)
    columns = root.require("columns")
    if columns.value != list(COLUMNS):
        raise columns.error(
            "not the columns of this gate; `ci/gate resources --update` renews them"
        )
    waivers = root.get("waivers")
    return Table(
        root.require("nvcc").text(),
        {name: _read_rung(node) for name, node in root.require("rungs").items()},
        [_read_waiver(node) for node in waivers.elements()] if waivers else [],
    )


def to_text(table: Table) -> str:
    document = {
        "schema": SCHEMA,
        "nvcc": table.nvcc,
        "columns": list(COLUMNS),
        "rungs": {name: _rung_fields(rung) for name, rung in table.rungs.items()},
        "waivers": [_waiver_fields(waiver) for waiver in table.waivers],
    }
    return dumps(document) + "\n"


def _rung_fields(rung: Rung) -> dict[str, Any]:
    kernels = {
        kernel: {architecture: list(astuple(row)) for architecture, row in rows.items()}
        for kernel, rows in rung.kernels.items()
    }
    return {"kernels": kernels, **({"not_on": rung.not_on} if rung.not_on else {})}


def _waiver_fields(waiver: Waiver) -> dict[str, Any]:
    return {
        **{column.name: getattr(waiver, column.name) for column in fields(Waiver)},
        "architectures": list(waiver.architectures),
        "expires": waiver.expires.isoformat(),
    }


def _read_rung(node: Node) -> Rung:
    not_on = node.get("not_on")
    return Rung(
        {
            kernel: {_architecture(key, row): _read_row(row) for key, row in rows.items()}
            for kernel, rows in node.require("kernels").items()
        },
        {_architecture(key, why): why.text() for key, why in not_on.items()} if not_on else {},
    )


def _architecture(key: str, node: Node) -> str:
    if key not in ARCHITECTURES:
        raise node.error(f"{key!r} is none of the architectures {', '.join(ARCHITECTURES)}")
    return key


def _read_row(node: Node) -> Row:
    cells = node.elements()
    if len(cells) != len(COLUMNS):
        raise node.error(f"must have {len(COLUMNS)} values, not {len(cells)}")
    values: dict[str, Any] = {}
    for column, cell in zip(COLUMNS, cells):
        if column == "path":
            values[column] = cell.text()
        elif cell.value is None and column in _NULLABLE:
            values[column] = None
        else:
            if cell.finite() < 0:
                raise cell.error(f"{column} must not be negative")
            values[column] = cell.value
    return Row(**values)


def _read_waiver(node: Node) -> Waiver:
    expires = node.require("expires")
    try:
        date = datetime.date.fromisoformat(expires.text())
    except ValueError as problem:
        raise expires.error("must be a date, as in 2030-12-31") from problem
    return Waiver(
        id=node.require("id").text(),
        rung=node.require("rung").text(),
        kernel=node.require("kernel").text(),
        architectures=tuple(
            _architecture(one.text(), one) for one in node.require("architectures").elements()
        ),
        ceiling=node.require("ceiling").count(),
        expires=date,
        reason=node.require("reason").text(),
    )


def _brief(row: Row) -> str:
    return f"new: {row.registers} registers, {row.spilled} bytes spilled"


def _told(value: object) -> str:
    return "none" if value is None else str(value)
