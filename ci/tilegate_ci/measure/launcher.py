"""The gated suite, and one process of the bench binary that measures some of it."""

import math
import re
import shlex
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tilegate_ci.core import child
from tilegate_ci.core.files import GateError, read_text
from tilegate_ci.core.names import canonical_name, rung_of, shape_of
from tilegate_ci.formats.bench import read_process, with_replays
from tilegate_ci.formats.stages import Stage
from tilegate_ci.measure import conditions
from tilegate_ci.model import REPOSITORY, Conditions, Process

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
    sizes = {name: shape_of(name)[0] for name in names}
    # Of operands without padding.
    plain = [name for name, m in sizes.items() if name == f"{rung_of(name)}/{m}x{m}x{m}"]
    largest = {rung_of(name): name for name in sorted(plain, key=sizes.__getitem__)}
    return frozenset(largest.values())


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


def options_of(names: Sequence[str]) -> list[str]:
    """The options of bench that select these benchmarks."""
    shapes = ",".join(dict.fromkeys(name.split("/", 1)[1] for name in names))
    options = [f"--shapes={shapes}", f"--benchmark_filter={filter_of(names)}"]
    return [*options, *["--variants"] * any("." in rung_of(name) for name in names)]


def filter_of(names: Iterable[str]) -> str:
    """A --benchmark_filter that matches these benchmarks and no other, a rung named once."""
    shapes: dict[str, list[str]] = {}
    for name in names:
        rung, shape = name.split("/", 1)
        shapes.setdefault(re.escape(rung), []).append(shape)
    rungs = [f"{rung}/({'|'.join(found)})" for rung, found in shapes.items()]
    return f"^({'|'.join(rungs)})(/manual_time)?$"


TIMEOUT_S = 300.0
PLACES = 8  # addresses at which pairs time a benchmark; the time depends on the address
MIN_TIME_S = 0.02  # per benchmark, unless the command line says otherwise


def bracketed(measure: Callable[[], Process]) -> Process:
    """The process, with when it ran, how long, and the GPU's conditions around it."""
    before, start = conditions.read(), time.monotonic()
    started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    process, wall_s = measure(), time.monotonic() - start
    around = Conditions(before=before, after=conditions.read())
    update = {"started": started, "wall_s": round(wall_s, 3), "conditions": around}
    return process.model_copy(update=update)


@dataclass(frozen=True)
class Launcher:
    """`replays`: each replay's time too, which recordings and tuning need."""

    min_time_s: float = MIN_TIME_S
    seed: int = 1
    configurations: int = 0  # of each stage, to be there beside its own choice
    placements: int = 1
    replays: bool = False

    def command(self, binary: Path, names: Sequence[str], plant: str | None = None) -> list[str]:
        command = [str(binary), *options_of(names), f"--benchmark_min_time={self.min_time_s:g}"]
        command += [f"--seed={self.seed}", f"--placements={self.placements}"]
        command += [f"--configurations={self.configurations}"] * bool(self.configurations)
        return [*command, f"--plant={plant}"] if plant else command

    def run(self, binary: Path, names: Sequence[str], plant: str | None = None) -> Process:
        process = launch(self.command(binary, names, plant), self.replays)
        check_complete(process, names)
        return process


IN_PAIRS = Launcher(placements=PLACES)


def launch(
    command: Sequence[str], replays: bool = False, timeout_s: float | None = TIMEOUT_S
) -> Process:
    """One process of bench, by this command."""
    with tempfile.TemporaryDirectory(prefix="tilegate-") as folder:
        report, samples = Path(folder) / "report.json", Path(folder) / "replays.csv"
        files = [f"--benchmark_out={report}", "--benchmark_out_format=json"]
        files += [f"--samples={samples}"] * replays

        def process() -> Process:
            _run([*command, *files], timeout_s)
            return read_process(read_text(report), str(report))

        found = bracketed(process)
        found = with_replays(found, samples) if replays else found
    return found.model_copy(update={"source": command[0]})


def _run(command: Sequence[str], timeout_s: float | None) -> None:
    done = child.finished(command, timeout_s, capture_output=True)
    if done.returncode:
        errors = [line for line in done.stdout.splitlines() if "ERROR OCCURRED" in line]
        reasons = "\n".join([*errors, *done.stderr.strip().splitlines()[-3:]])
        raise GateError(f"{reasons}\nexit code {done.returncode} of `{shlex.join(command)}`")


def check_complete(process: Process, names: Sequence[str]) -> None:
    """GateError unless exactly these benchmarks ran beside cuBLAS, and were verified."""
    wanted, found, source = set(names), set(process.readings), process.source
    if wanted != found:
        lacking = sorted(wanted - found)
        message = f"lacks {', '.join(lacking)}" if lacking else "ran more than it was asked for"
        raise GateError(f"{source}: {message}")
    unverified = sorted(name for name, row in process.readings.items() if not row.verified)
    if unverified:
        raise GateError(f"{source}: not verified: {', '.join(unverified)}")
    if any(row.ratio_to_cublas is None for row in process.readings.values()):
        raise GateError(f"{source}: no time of cuBLAS; this needs a GPU")
