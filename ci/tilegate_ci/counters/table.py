"""What the counted kernels do, case by case: told by `tilegate_count`, kept by the baseline."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilegate_ci.core.files import GateError, Node, dumps, read_json
from tilegate_ci.core.ladder import read_rungs
from tilegate_ci.core.model import REPOSITORY

PROGRAM = REPOSITORY / "build" / "cpu" / "bench" / "tilegate_count"
BASELINE = Path("bench") / "baselines" / "counters.json"
SCHEMA = 1
TIMEOUT_S = 300

# What every rung is counted on: whole tiles; ragged edges. Rungs that choose a configuration by the
# number of multiprocessors also on enough tiles for all of them.
SHAPES = ("256x256x256/beta0.5", "129x65x17/beta0.5")
LARGE_SHAPES = ("1024x1024x32", "2048x2048x32")
_CHOOSES_BY_DEVICE = "properties().multiprocessors"

KINDS = ("global_load", "global_store", "shared_load", "shared_store")


@dataclass(frozen=True)
class Frame:
    file: str
    line: int
    function: str

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Line:
    """The accesses of one kind that one place in the source makes; `frames` innermost first."""

    kind: str
    requests: int
    units: int  # sectors or wavefronts
    excess: int  # more than the least for as many bytes; of shared memory: bank conflicts
    width: int  # bytes of a lane
    worst: tuple[int | None, ...]  # byte addresses of the lanes of the costliest access
    worst_units: int
    worst_ideal: int
    frames: tuple[Frame, ...]

    def key(self, sources: Sources) -> str:
        """Names the place in words that stay when lines are added above it."""
        files = [f"{Path(frame.file).name} {frame.function}" for frame in self.frames]
        text = sources.text(self.frames[0]) if self.frames else "?"
        return f"{self.kind}: {text} < " + " < ".join(files)


@dataclass(frozen=True)
class Counted:
    """One case. `error` is a hazard; then nothing is counted."""

    name: str
    counters: Mapping[str, int]
    lines: tuple[Line, ...] = ()
    error: str = ""

    @property
    def rung(self) -> str:
        return self.name.split("/")[0]


class Sources:
    """The text of source lines."""

    def __init__(self, root: Path = REPOSITORY) -> None:
        self._root = root
        self._files: dict[str, list[str]] = {}

    def text(self, frame: Frame) -> str:
        if frame.file not in self._files:
            try:
                lines = (self._root / frame.file).read_text(encoding="utf-8").splitlines()
            except OSError:
                lines = []
            self._files[frame.file] = lines
        lines = self._files[frame.file]
        return lines[frame.line - 1].strip() if 0 < frame.line <= len(lines) else "?"


def list_rungs(program: Path) -> list[str]:
    return _run(program, ["--list"]).split()


def cases_of(rungs: Sequence[str], repository: Path = REPOSITORY) -> list[str]:
    """The names of the cases that the baseline has of these rungs."""
    folders = {rung.name: rung.folder for rung in read_rungs(repository)}
    names = []
    for rung in rungs:
        if rung not in folders:
            raise GateError(f"{rung!r} is no rung of kernels/CMakeLists.txt")
        sources = (repository / "kernels" / folders[rung]).glob("*.cu*")
        chooses = any(_CHOOSES_BY_DEVICE in source.read_text("utf-8") for source in sources)
        names += [f"{rung}/{shape}" for shape in (*SHAPES, *(LARGE_SHAPES if chooses else ()))]
    return names


def count(program: Path, names: Sequence[str]) -> dict[str, Counted]:
    """One process a case, as many at a time as this machine has cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outputs = list(pool.map(lambda name: _run(program, [name]), names))
    return {name: _read(json.loads(output)[0]) for name, output in zip(names, outputs)}


def unit_of(kind: str) -> str:
    return "wavefronts" if kind.startswith("shared") else "sectors"


def excess_of(kind: str) -> str:
    return "conflicts" if kind.startswith("shared") else "excess_sectors"


def load_baseline(path: Path) -> dict[str, tuple[dict[str, int], dict[str, list[int]]]]:
    """By case: its counters, and by line of source [requests, units, excess]."""
    root = read_json(str(path))
    root.check_version(SCHEMA)
    table = {}
    for name, case in root.require("cases").items():
        counters = {key: _whole(node) for key, node in case.require("counters").items()}
        lines = {
            key: [_whole(value) for value in node.elements()]
            for key, node in case.require("lines").items()
        }
        table[name] = (counters, lines)
    return table


def by_key(counted: Counted, sources: Sources) -> dict[str, list[int]]:
    """[requests, units, excess] of each line; lines that look the same are one."""
    result: dict[str, list[int]] = {}
    for line in counted.lines:
        sums = result.setdefault(line.key(sources), [0, 0, 0])
        for index, value in enumerate((line.requests, line.units, line.excess)):
            sums[index] += value
    return result


def to_text(cases: Mapping[str, Counted], sources: Sources) -> str:
    table: dict[str, Any] = {
        name: {"counters": dict(counted.counters), "lines": by_key(counted, sources)}
        for name, counted in cases.items()
    }
    return dumps({"schema": SCHEMA, "cases": table}) + "\n"


def _whole(node: Node) -> int:
    if isinstance(node.value, bool) or not isinstance(node.value, int) or node.value < 0:
        raise node.error("must be a whole number, zero or more")
    return node.value


def _run(program: Path, arguments: Sequence[str]) -> str:
    if not program.exists():
        raise GateError(
            f"{program}: not built; cmake --preset cpu && "
            "cmake --build --preset cpu --target tilegate_count"
        )
    try:
        done = subprocess.run(
            [str(program), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
    except OSError as problem:
        raise GateError(f"{program}: cannot be run: {problem.strerror}") from problem
    except subprocess.TimeoutExpired as problem:
        raise GateError(f"{program}: not finished after {TIMEOUT_S} s") from problem
    if done.returncode:
        raise GateError(f"{program}: exit code {done.returncode}: {done.stderr.strip()[:400]}")
    return done.stdout


def _read(entry: Mapping[str, Any]) -> Counted:
    if "error" in entry:
        return Counted(entry["case"], {}, (), entry["error"])
    counters = {"barriers": entry["barriers"], "fma": entry["fma"]}
    for kind in KINDS:
        counters |= {f"{kind}.{key}": value for key, value in entry[kind].items()}
    return Counted(entry["case"], counters, tuple(_line(line) for line in entry["lines"]))


def _line(line: Mapping[str, Any]) -> Line:
    kind, worst = line["kind"], line["worst"]
    frames = tuple(
        Frame(frame["file"], frame["line"], frame["function"].split("<")[0])
        for frame in line["frames"]
    )
    return Line(
        kind,
        line["requests"],
        line[unit_of(kind)],
        line[excess_of(kind)],
        line["width"],
        tuple(worst["addresses"]),
        worst["units"],
        worst["ideal"],
        frames,
    )
