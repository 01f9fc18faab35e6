"""The table of choices made from measurements, and how good it is on other problems."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilegate_ci.checks.tuning.rows import Timing, read_rows
from tilegate_ci.core.files import write_text

TABLE = Path("kernels/sgemm/table.csv")
LEAST_GAIN = 0.01  # of a cell over the cost models' choice
_COLUMNS = ["gpu", "class", "family", "gain", "code"]


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
    extents = [int(text) for text in head.split("x")]
    found = []
    for axis in range(3):
        for step in (-1, 1):
            near = [value + step * (axis == index) for index, value in enumerate(extents)]
            found.append("x".join(map(str, near)) + f"/{rest}")
    return found


def load(path: Path) -> list[Cell]:
    return read_rows(path, Cell, _COLUMNS)


def save(table: Iterable[Cell], path: Path) -> None:
    lines = [f"{c.gpu},{c.problem_class},{c.family},{c.gain:g},{c.code}" for c in table]
    write_text(path, "\n".join([",".join(_COLUMNS), *lines]) + "\n")


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
