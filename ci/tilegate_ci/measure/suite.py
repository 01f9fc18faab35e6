"""The gated suite: bench/gate.csv, a table of shapes whose set is the rung to time on them."""

import re
from collections.abc import Iterable
from pathlib import Path

from tilegate_ci.core.files import GateError, read_text
from tilegate_ci.core.model import REPOSITORY
from tilegate_ci.core.names import canonical_name

SUITE = REPOSITORY / "bench" / "gate.csv"
# Beside the benchmarks of a rung that is run alone: cuBLAS against itself, which no change moves.
CANARIES = ("Cublas/1024x1024x1024", "Cublas/2048x2048x2048")
_HEADER = "set,m,n,k,lda,ldb,ldc,pointer_offset_bytes"


def read_suite(path: Path = SUITE) -> list[str]:
    """The names of the benchmarks, in the order of the file."""
    return parse_suite(read_text(path), str(path))


def parse_suite(text: str, path: str) -> list[str]:
    """As read_suite; `path` is where the text came from."""
    lines = text.splitlines()
    if not lines or lines[0] != _HEADER:
        raise GateError(f"{path}:1: the columns must be {_HEADER}")
    names: list[str] = []
    for number, line in enumerate(lines[1:], start=2):
        if line:
            name = name_of(line, f"{path}:{number}")
            if name in names:
                raise GateError(f"{path}:{number}: {name} is there twice")
            names.append(name)
    if not names:
        raise GateError(f"{path}: no benchmark in it")
    return names


def name_of(line: str, where: str = "") -> str:
    """The benchmark that a line stands for; `where` it is, for errors."""
    cells = line.split(",")
    try:
        m, n, k, lda, ldb, ldc, offset = (int(cell) for cell in cells[1:])
        return canonical_name(f"{cells[0]}/{m}x{n}x{k}/ld{lda}x{ldb}x{ldc}/off{offset}")
    except ValueError as problem:
        raise GateError(f"{where}: {line!r}: {problem}") from problem


def filter_of(names: Iterable[str]) -> str:
    """A --benchmark_filter that matches these benchmarks and no other, a rung named once."""
    shapes: dict[str, list[str]] = {}
    for name in names:
        rung, shape = name.split("/", 1)
        shapes.setdefault(re.escape(rung), []).append(shape)
    rungs = [f"{rung}/({'|'.join(found)})" for rung, found in shapes.items()]
    return f"^({'|'.join(rungs)})(/manual_time)?$"
