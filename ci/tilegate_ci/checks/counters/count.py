"""Counters of a case, from the program `tilegate_count`, and the committed table of them."""

import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, AliasChoices, AliasPath, Field, TypeAdapter

from tilegate_ci.core import child, documents
from tilegate_ci.core.documents import Document, Model, Natural
from tilegate_ci.core.files import GateError
from tilegate_ci.core.names import rung_of
from tilegate_ci.model import REPOSITORY

TIMEOUT_S = 300

KINDS = {  # of access, in words
    "global_load": "global loads",
    "global_store": "global stores",
    "shared_load": "shared loads",
    "shared_store": "shared stores",
    # Counted only where a kernel does it.
    "shared_copy": "stores of asynchronous copies",
    "bulk_load": "loads of the copy engine",
    "bulk_store": "stores of the copy engine",
    "shared_multiply": "shared loads of tensor cores",
    "global_atomic": "global atomics",
    "shared_atomic": "shared atomics",
}
SECTOR_BYTES = 32


@dataclass(frozen=True)
class Frame:
    file: Annotated[str, AfterValidator(lambda file: file.removeprefix(f"{REPOSITORY}/"))]
    line: int
    function: Annotated[str, AfterValidator(lambda name: name.split("<")[0])]

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class SourceLine:
    """The accesses of one kind that one place in the source makes; `frames` innermost first."""

    kind: str
    requests: int
    units: Annotated[int, Field(validation_alias=AliasChoices("sectors", "wavefronts"))]
    # More than the least for as many bytes; of shared memory: bank conflicts.
    excess: Annotated[int, Field(validation_alias=AliasChoices("excess_sectors", "conflicts"))]
    width: int  # bytes of a lane
    # Byte addresses of the lanes of the costliest access.
    worst: Annotated[
        tuple[int | None, ...], Field(validation_alias=AliasPath("worst", "addresses"))
    ]
    worst_units: Annotated[int, Field(validation_alias=AliasPath("worst", "units"))]
    worst_ideal: Annotated[int, Field(validation_alias=AliasPath("worst", "ideal"))]
    frames: tuple[Frame, ...]

    def key(self, sources: "Sources") -> str:
        """Names the place in words that stay when lines are added above it."""
        files = [f"{Path(frame.file).name} {frame.function}".rstrip() for frame in self.frames]
        text = sources.text(self.frames[0]) if self.frames else "?"
        return f"{self.kind}: {text} < " + " < ".join(files)


_LINES = TypeAdapter(tuple[SourceLine, ...])


@dataclass(frozen=True)
class Counted:
    """One case. `error` is a hazard, `not_applicable` why the rung does not take the problem; then
    nothing is counted."""

    name: str
    counters: Mapping[str, int]
    lines: tuple[SourceLine, ...] = ()
    error: str = ""
    not_applicable: str = ""


class Sources:
    """The text of source lines."""

    def __init__(self, root: Path = REPOSITORY) -> None:
        self._root = root
        self._lines = cache(self._read)

    def text(self, frame: Frame) -> str:
        lines = self._lines(frame.file)
        return lines[frame.line - 1].strip() if 0 < frame.line <= len(lines) else "?"

    def _read(self, file: str) -> list[str]:
        path = self._root / file
        return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


def list_rungs(program: Path) -> list[str]:
    return _run(program, ["--list"]).split()


def count(program: Path, names: Sequence[str]) -> dict[str, Counted]:
    """One process per case, as many at a time as this machine has cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outputs = list(pool.map(lambda name: _run(program, [name]), names))
    return {name: _parsed(program, output) for name, output in zip(names, outputs)}


def unit_of(kind: str) -> str:
    return "wavefronts" if kind.startswith("shared") else "sectors"


def kinds_of(counters: Mapping[str, int]) -> list[str]:
    return [kind for kind in KINDS if f"{kind}.requests" in counters]


def total(counters: Mapping[str, int], unit: str) -> int:
    """All "sectors" or "wavefronts" of a case."""
    return sum(counters[f"{kind}.{unit}"] for kind in kinds_of(counters) if unit_of(kind) == unit)


def excess_of(kind: str) -> str:
    return "conflicts" if kind.startswith("shared") else "excess_sectors"


def by_key(counted: Counted, sources: Sources) -> dict[str, tuple[int, int, int]]:
    """Requests, units and excess of each line; lines that look the same are one."""
    result: dict[str, tuple[int, int, int]] = {}
    for line in counted.lines:
        key = line.key(sources)
        requests, units, excess = result.get(key, (0, 0, 0))
        result[key] = (requests + line.requests, units + line.units, excess + line.excess)
    return result


def _run(program: Path, arguments: Sequence[str]) -> str:
    if not program.exists():
        raise GateError(
            f"{program}: not built; cmake --preset cpu && "
            "cmake --build --preset cpu --target tilegate_count"
        )
    return child.output([str(program), *arguments], TIMEOUT_S)


def _parsed(program: Path, output: str) -> Counted:
    try:
        entry = json.loads(output)[0]
        error, refused = entry.get("error", ""), entry.get("not_applicable", "")
        if error or refused:
            return Counted(entry["case"], {}, (), error, refused)
        counters = {"barriers": entry["barriers"], "fma": entry["fma"]}
        for kind in KINDS:
            counters |= {f"{kind}.{key}": value for key, value in entry.get(kind, {}).items()}
        return Counted(entry["case"], counters, _LINES.validate_python(entry["lines"]))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as problem:
        raise GateError(f"{program}: prints no counters, but: {output[:80]!r}") from problem


BASELINE = Path("bench") / "baselines" / "counters.json"

# Every rung is counted on whole tiles and on ragged edges, a new rung also on enough tiles for all
# multiprocessors, since it may choose its configuration by their number.
SHAPES = ("256x256x256/beta0.5", "129x65x17/beta0.5")
LARGE_SHAPES = ("1024x1024x32", "2048x2048x32")


class CountedCase(Model):
    counters: dict[str, Natural]
    lines: dict[str, tuple[Natural, Natural, Natural]]  # requests, units, excess


class CountersFile(Document):
    cases: dict[str, CountedCase]


def load(path: Path) -> dict[str, CountedCase]:
    return documents.load(CountersFile, path).cases


def cases_of(rungs: Sequence[str], table: Mapping[str, CountedCase]) -> list[str]:
    """The names of the cases that are to be counted of these rungs."""
    names: list[str] = []
    for rung in rungs:
        committed = [name for name in table if rung_of(name) == rung]
        shapes = (*SHAPES, *(() if committed else LARGE_SHAPES))
        names += dict.fromkeys([*(f"{rung}/{shape}" for shape in shapes), *committed])
    return names


def to_text(cases: Mapping[str, Counted], sources: Sources) -> str:
    return documents.to_text(
        CountersFile(
            schema=1, cases={name: table_row(case, sources) for name, case in cases.items()}
        )
    )


def table_row(case: Counted, sources: Sources) -> CountedCase:
    return CountedCase(counters=dict(case.counters), lines=by_key(case, sources))
