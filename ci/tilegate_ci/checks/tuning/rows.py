"""bench/tuning/*.csv: measured times, one line per configuration and problem."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from tilegate_ci.core.files import GateError, read_text, rounded, write_text

GRID = Path("bench/tuning/grid.csv")  # the problems that make the table
OUTSIDE = GRID.with_name("outside.csv")  # the problems that judge it
STAGE = "Sgemm"
T = TypeVar("T")


@dataclass(frozen=True)
class Timing:
    """`rank` is the place that the cost models give the configuration for the problem, from 1 on.
    `code` are digests of the machine code of its kernels. `of_cublas` is the time of cuBLAS over
    that of the configuration; it is what configurations are compared by. `spread` is how far it
    lay apart in the processes: largest over smallest, less 1."""

    problem_class: str
    problem: str
    configuration: str
    rank: int
    code: str
    gpu: str
    microseconds: float
    of_cublas: float
    spread: float
    commit: str

    @property
    def name(self) -> str:
        """As bench calls it."""
        return f"{STAGE}@{self.configuration}/{self.problem}"

    @property
    def family(self) -> str:
        """The configuration but for the number of parts, which the cost model finds for each
        problem: "StreamK:128x256x8split9" is of "StreamK:128x256x8split*"."""
        return re.sub(r"(split|tail)\d+$", r"\1*", self.configuration)


_COLUMNS = [field.name for field in fields(Timing)]


def load(path: Path) -> list[Timing]:
    return read_rows(path, Timing, _COLUMNS)


def read_rows(path: Path, made: type[T], columns: Sequence[str]) -> list[T]:
    """A dataclass of each line, its fields in the order of the columns; [] without the file."""
    if not path.exists():
        return []
    lines = list(csv.reader(io.StringIO(read_text(path))))
    if lines[:1] != [[*columns]]:
        raise GateError(f"{path}:1: the first line must be {','.join(columns)}")
    types: list[Any] = [field.type for field in fields(made)]  # type: ignore[arg-type]
    rows = []
    for number, cells in enumerate(lines[1:], start=2):
        try:
            rows.append(made(*(kind(cell) for kind, cell in zip(types, cells, strict=True))))
        except ValueError as wrong:
            raise GateError(f"{path}:{number}: malformed: {wrong}") from wrong
    return rows


def save(path: Path, rows: Iterable[Timing]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in sorted(rows, key=lambda row: (row.gpu, row.problem_class, row.problem, row.rank)):
        cells = astuple(row)
        writer.writerow([rounded(cell) if isinstance(cell, float) else cell for cell in cells])
    write_text(path, text.getvalue())
