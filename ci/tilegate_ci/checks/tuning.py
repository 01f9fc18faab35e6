"""bench/tuning: measured times of Sgemm's configurations; the table of choices made from them."""

import csv
import io
import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
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


TABLE = Path("kernels/sgemm/table.csv")
LEAST_GAIN = 0.01  # of a cell over the cost models' choice


@dataclass(frozen=True)
class Cell:
    """The family of configurations that is quickest for a class of problems on a GPU; `gain` is
    the model's time over its own, less 1."""

    gpu: str
    problem_class: str
    family: str
    gain: float
    code: str


@dataclass(frozen=True)
class _Class:
    """Of one class: each family's speed, of the model's choice's, and by how much that is unsure;
    families that were timed on some of its problems only are left out."""

    speeds: Mapping[str, float]
    noise: float
    code: Mapping[str, str]


def cells(rows: Sequence[Timing]) -> list[Cell]:
    """Of a class where one family is quicker than what the models choose, by more than noise.
    Where several families are as quick as the quickest, what most neighbours take."""
    found = []
    for gpu in sorted({row.gpu for row in rows}):
        classes = _classes([row for row in rows if row.gpu == gpu])
        quickest = {
            name: max(of.speeds, key=lambda f: of.speeds[f]) for name, of in classes.items()
        }
        for name, of in sorted(classes.items()):
            best = of.speeds[quickest[name]]
            if best <= 1 + max(LEAST_GAIN, of.noise):
                continue
            tied = [f for f, speed in of.speeds.items() if speed >= best / (1 + of.noise)]
            near = Counter(quickest[other] for other in _neighbours(name) if other in quickest)
            family = max(tied, key=lambda f: (near[f], of.speeds[f]))
            gain = of.speeds[family] - 1
            if gain > max(LEAST_GAIN, of.noise):
                found.append(Cell(gpu, name, family, round(gain, 4), of.code[family]))
    return found


def _classes(rows: Iterable[Timing]) -> dict[str, _Class]:
    by_class: dict[str, dict[str, list[Timing]]] = {}
    for row in rows:
        by_class.setdefault(row.problem_class, {}).setdefault(row.problem, []).append(row)
    found = {name: _class(list(problems.values())) for name, problems in by_class.items()}
    return {name: of for name, of in found.items() if of.speeds}


def _class(problems: Sequence[Sequence[Timing]]) -> _Class:
    logs: dict[str, list[float]] = {}
    code, noise = {}, 0.0
    for rows in problems:
        model = min(rows, key=lambda row: row.rank)
        for family, row in first_of_families(rows).items():
            logs.setdefault(family, []).append(math.log(row.of_cublas / model.of_cublas))
            code[family] = row.code
            noise = max(noise, row.spread) if row.of_cublas >= model.of_cublas else noise
    speeds = {
        family: math.exp(statistics.fmean(of))
        for family, of in logs.items()
        if len(of) == len(problems)
    }
    return _Class(speeds, noise, code)


def first_of_families(rows: Iterable[Timing]) -> dict[str, Timing]:
    """Of one problem: what each family would take, which is what the models like best of it."""
    found: dict[str, Timing] = {}
    for row in sorted(rows, key=lambda row: row.rank):
        found.setdefault(row.family, row)
    return found


def _neighbours(name: str) -> list[str]:
    """Classes with one extent half or twice as large."""
    head, _, rest = name.partition("/")
    m, n, k = map(int, head.split("x"))
    found = []
    for step in (-1, 1):
        found += [f"{m + step}x{n}x{k}", f"{m}x{n + step}x{k}", f"{m}x{n}x{k + step}"]
    return [f"{extents}/{rest}" for extents in found]


# Of each kind of rows, their head.
_COLUMNS: dict[type[Any], list[str]] = {
    Timing: [field.name for field in fields(Timing)],
    Cell: ["gpu", "class", "family", "gain", "code"],
}


def load(path: Path, kind: type[T]) -> list[T]:
    """The rows of the file, in the order of the columns; [] without it."""
    if not path.exists():
        return []
    lines, columns = list(csv.reader(io.StringIO(read_text(path)))), _COLUMNS[kind]
    if lines[:1] != [columns]:
        raise GateError(f"{path}:1: the first line must be {','.join(columns)}")
    types: list[Any] = [field.type for field in fields(kind)]  # type: ignore[arg-type]
    rows = []
    for number, cells in enumerate(lines[1:], start=2):
        try:
            rows.append(kind(*(made(cell) for made, cell in zip(types, cells, strict=True))))
        except ValueError as wrong:
            raise GateError(f"{path}:{number}: malformed: {wrong}") from wrong
    return rows


def save(path: Path, kind: type[T], rows: Iterable[T]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS[kind])
    for row in rows:
        cells = (getattr(row, field.name) for field in fields(kind))  # type: ignore[arg-type]
        writer.writerow([rounded(cell) if isinstance(cell, float) else cell for cell in cells])
    write_text(path, text.getvalue())


def save_timings(path: Path, rows: Iterable[Timing]) -> None:
    save(path, Timing, sorted(rows, key=lambda r: (r.gpu, r.problem_class, r.problem, r.rank)))


@dataclass(frozen=True)
class Kept:
    """The share of the quickest configuration's speed that a way to choose keeps."""

    mean: float
    least: float
    at: str


def chosen(timed: Sequence[Timing], cells: Iterable[Cell]) -> Timing:
    """Of one problem: what the table says, the models where it has no cell or is empty."""
    families = {(cell.gpu, cell.problem_class): cell.family for cell in cells}
    family = families.get((timed[0].gpu, timed[0].problem_class), "")
    return first_of_families(timed).get(family) or min(timed, key=lambda row: row.rank)


def kept(rows: Sequence[Timing], cells: Sequence[Cell]) -> Kept:
    """By the table and the models; by the models alone if there are no cells."""
    problems: dict[tuple[str, str], list[Timing]] = {}
    for row in rows:
        problems.setdefault((row.gpu, row.problem), []).append(row)
    shares = {
        problem: chosen(of, cells).of_cublas / max(row.of_cublas for row in of)
        for (_, problem), of in problems.items()
    }
    worst = min(shares, key=lambda problem: shares[problem])
    return Kept(statistics.geometric_mean(shares.values()), shares[worst], worst)
