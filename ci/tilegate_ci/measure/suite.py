"""The gated suite: default benchmarks of every rung, as modified by bench/gate.csv."""

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from tilegate_ci.core.files import GateError, read_text
from tilegate_ci.core.names import canonical_name, rung_of, shape_of
from tilegate_ci.formats.stages import FILE, Stage, read_stages
from tilegate_ci.model import REPOSITORY

SUITE = REPOSITORY / "bench" / "gate.csv"
# cuBLAS against itself, measured beside the benchmarks of one rung: no change moves these.
CANARIES = ("Cublas/1024x1024x1024", "Cublas/2048x2048x2048")
SQUARES = (1024, 2048, 4096)  # they fill a GPU and have little noise
EDGE = 2048  # about the size of the problem off the multiples of a rung's tiles
_HEADER = "benchmark"
# The header of bench/shapes.csv, and of gate.csv in older commits, where it holds the whole suite.
_TABLE = "set,m,n,k,lda,ldb,ldc,pointer_offset_bytes"


def squares(rung: str) -> list[str]:
    return [f"{rung}/{size}x{size}x{size}" for size in SQUARES]


def defaults(stage: Stage) -> list[str]:
    """What is gated of a rung of which the file says nothing: squares, and, if it takes such, a
    problem whose extents are just off the multiples of its largest tile: its edge cases."""
    if stage.yardstick:
        return squares(stage.name)
    if stage.multiple_of != [1, 1, 1]:
        unit = math.lcm(*stage.multiple_of)
        return [name for name, size in zip(squares(stage.name), SQUARES) if size % unit == 0]
    tile = max(stage.tile_sizes, default=1)
    edge = -(-EDGE // tile) * tile
    return [*squares(stage.name), f"{stage.name}/{edge - 1}x{edge + 1}x{edge + 3}"]


def stages_of(build: Path) -> list[Stage]:
    """The stages that a build lists; [] where it is too old to, or has not been made yet."""
    return read_stages(build) if (build / FILE).exists() else []


def read_suite(stages: Sequence[Stage], path: Path = SUITE) -> list[str]:
    """The names of the benchmarks, the defaults first."""
    return parse_suite(read_text(path), str(path), stages)


def parse_suite(text: str, path: str, stages: Sequence[Stage]) -> list[str]:
    """As read_suite; `path` is where the text came from. What is to be taken away from a rung that
    is not among the stages is left unchecked, and so may be all of it."""
    lines = text.splitlines()
    whole = lines[:1] == [_TABLE]
    if not whole and lines[:1] != [_HEADER]:
        raise GateError(f"{path}:1: the first line must be {_HEADER}")
    names = [] if whole else [name for stage in stages for name in defaults(stage)]
    rungs = {stage.name for stage in stages}
    for number, line in enumerate(lines[1:], start=2):
        where = f"{path}:{number}"
        name = name_of(line, where) if whole and line else _name(line.removeprefix("-"), where)
        if not line.startswith("-"):
            if name in names:
                raise GateError(f"{where}: {name} is there twice, or gated without this line")
            names.append(name)
        elif name in names:
            names.remove(name)
        elif rung_of(name) in rungs:
            raise GateError(f"{where}: {name} is not gated, so there is nothing to take away")
    if not names and whole:
        raise GateError(f"{path}: no benchmark in it")
    return names


def keys(names: Iterable[str]) -> frozenset[str]:
    """Benchmarks that must not stay undecided: of each rung the largest square that is gated."""
    largest: dict[str, tuple[int, str]] = {}
    for name in names:
        rung, size = rung_of(name), shape_of(name)[0]
        if name == f"{rung}/{size}x{size}x{size}":  # of operands without padding
            largest[rung] = max(largest.get(rung, (0, "")), (size, name))
    return frozenset(name for _, name in largest.values())


def _name(text: str, where: str) -> str:
    try:
        return canonical_name(text)
    except ValueError as problem:
        raise GateError(f"{where}: {problem}") from problem


def name_of(line: str, where: str = "") -> str:
    """The benchmark that a line of a table of shapes stands for; `where` it is, for errors."""
    cells = line.split(",")
    try:
        m, n, k, lda, ldb, ldc, offset = (int(cell) for cell in cells[1:])
        padding = "" if (lda, ldb, ldc) == (k, n, n) else f"/ld{lda}x{ldb}x{ldc}"
        return canonical_name(f"{cells[0]}/{m}x{n}x{k}{padding}" + f"/off{offset}" * bool(offset))
    except ValueError as problem:
        raise GateError(f"{where}: {line!r}: {problem}") from problem


def shapes_of(names: Iterable[str]) -> str:
    """A --shapes that has what these benchmarks need."""
    return ",".join(dict.fromkeys(name.split("/", 1)[1] for name in names))


def filter_of(names: Iterable[str]) -> str:
    """A --benchmark_filter that matches these benchmarks and no other, a rung named once."""
    shapes: dict[str, list[str]] = {}
    for name in names:
        rung, shape = name.split("/", 1)
        shapes.setdefault(re.escape(rung), []).append(shape)
    rungs = [f"{rung}/({'|'.join(found)})" for rung, found in shapes.items()]
    return f"^({'|'.join(rungs)})(/manual_time)?$"
