"""ci/gate lab tune: times the configurations that Sgemm's cost models rank first, and makes the
table of the ones that are quicker than the models predict."""

import argparse
import hashlib
import re
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tilegate_ci.checks import tuning
from tilegate_ci.checks.pages.tables import shape_sets
from tilegate_ci.checks.tuning import STAGE, Timing
from tilegate_ci.commands.arguments import commit_of, whole
from tilegate_ci.core import child
from tilegate_ci.core.files import GateError, locked, make_folder, message
from tilegate_ci.core.names import canonical_name
from tilegate_ci.lab.commands.problems import random_problems
from tilegate_ci.lab.sweeps import Shard, check_whole, paths_of, shard, work_off
from tilegate_ci.measure.identity import find_cuobjdump
from tilegate_ci.measure.launcher import Launcher
from tilegate_ci.model import RATIO, REPOSITORY, Process

BUILD = REPOSITORY / "build" / "gpu"
UNFINISHED = 3
PROBLEMS_PER_PROCESS = 10
DIGITS = 12  # of a digest of machine code

INTERRUPTED = "the file holds what was measured, run again to go on"

TYPES = {"best": whole(1, 64), "shard": shard}
DEFAULTS = {
    "best": 8,
    "processes": 2,
    "min_time": 0.02,
    "seed": 1,
    "shard": Shard(),
    "build": BUILD,
}


def run(arguments: argparse.Namespace) -> int:
    kernels = kernels_in(arguments.build)
    if arguments.check:
        return _check(kernels)
    path = REPOSITORY / (tuning.OUTSIDE if arguments.outside else tuning.GRID)
    table_path = REPOSITORY / tuning.TABLE
    launcher = Launcher(arguments.min_time, arguments.seed, arguments.best, replays=True)
    binary = arguments.build / "bench" / "bench"
    tuner = Tuner(binary, launcher, arguments.processes, commit_of(arguments), kernels)
    of_shards, limit = REPOSITORY / "build" / path.name, arguments.time_limit
    if arguments.shard.count > 1:
        known = tuning.load(path, tuning.Timing)
        own = {*arguments.shard.of(_problems(arguments, known))}
        path = arguments.shard.path(of_shards)
        known = [row for row in (*known, *tuning.load(path, tuning.Timing)) if row.problem in own]
        return tuner.tune(sorted(own), known, path, limit)
    make_folder(path.parent)
    with locked(path.parent):
        known = tuning.load(path, tuning.Timing)
        problems = _problems(arguments, known)
        if arguments.merge:
            tuning.save_timings(
                path, _merged(tuner, problems, paths_of(of_shards, arguments.merge))
            )
        elif code := tuner.tune(problems, known, path, limit):
            return code
        if not arguments.outside:
            table = tuning.cells(tuning.load(path, tuning.Timing))
            tuning.save(table_path, tuning.Cell, table)
            message(f"{table_path}: {len(table)} cells; build again to use it")
    outside = tuning.load(REPOSITORY / tuning.OUTSIDE, tuning.Timing)
    table = tuning.load(table_path, tuning.Cell)
    sys.stdout.write("\n".join(statement(outside, table)) + "\n")
    return 0


def _merged(tuner: "Tuner", problems: Sequence[str], paths: Sequence[Path]) -> list[Timing]:
    found = {path: tuning.load(path, tuning.Timing) for path in paths}
    check_whole(problems, {path: {row.problem for row in of} for path, of in found.items()})
    names = {*tuner.lead(problems)}
    check_whole(names, {path: names & {row.name for row in of} for path, of in found.items()})
    return [row for of in found.values() for row in of]


def statement(outside: Sequence[Timing], table: Sequence[tuning.Cell]) -> list[str]:
    """How good the choice is where nothing was tuned."""
    if not outside:
        return ["no problems outside the grid were timed yet: ci/gate lab tune --outside"]
    by = {"the table": tuning.kept(outside, table), "the bare model": tuning.kept(outside, [])}
    return [
        f"{name} keeps {100 * of.mean:.1f} %, least {100 * of.least:.1f} % at {of.at}"
        for name, of in by.items()
    ]


def _problems(arguments: argparse.Namespace, known: Sequence[Timing]) -> list[str]:
    if arguments.outside:
        return random_problems(200, 20261121)
    more = arguments.problems.split(",") if arguments.problems else []
    chosen = [*(row.problem for row in known), *more] or shapes()
    return list(dict.fromkeys(chosen))


def shapes() -> list[str]:
    return [*shape_sets(REPOSITORY / "bench" / "shapes.csv")]


def _check(kernels: dict[str, str]) -> int:
    table = tuning.load(REPOSITORY / tuning.TABLE, tuning.Cell)
    stale = [cell for cell in table if not is_current(cell.code, kernels)]
    for cell in stale:
        message(f"{cell.gpu}, {cell.problem_class}: {cell.family} has other machine code now")
    if stale:
        message("measure these again: ci/gate lab tune")
        return 1
    sys.stdout.write(f"{len(table)} cells, none of them stale\n")
    return 0


@dataclass(frozen=True)
class Tuner:
    binary: Path
    launcher: Launcher  # with the number of configurations
    processes: int
    commit: str
    kernels: dict[str, str]

    def lead(self, problems: Sequence[str]) -> dict[str, int]:
        """The configurations that the cost models rank first for each problem, as bench names them:
        their ranks."""
        command = [
            str(self.binary),
            "--benchmark_list_tests",
            f"--shapes={','.join(problems)}",
            f"--configurations={self.launcher.configurations}",
            f"--benchmark_filter=^{STAGE}@",
        ]
        ranks, last = dict[str, int](), Counter[str]()
        for name in map(canonical_name, child.output(command).splitlines()):
            last[_problem(name)] += 1  # the quickest of each problem comes first
            ranks[name] = last[_problem(name)]
        return ranks

    def classes(self, problems: Sequence[str]) -> dict[str, str]:
        """The class of each problem, as `plan` beside bench says."""
        cases = [f"{STAGE}/{problem}" for problem in problems]
        found = child.output([str(self.binary.with_name("plan")), *cases])
        classes = re.findall(r"^  class ([^\s:]+)", found, flags=re.MULTILINE)
        if len(classes) != len(problems):
            raise GateError(f"{self.binary.with_name('plan')}: it does not say the classes")
        return dict(zip(problems, classes, strict=True))

    def tune(
        self,
        problems: Sequence[str],
        rows: Sequence[Timing],
        path: Path,
        limit_s: float | None,
    ) -> int:
        """Adds to `rows` what they lack, saved after each part of the work; rows of problems or
        configurations that lead no more, and those of other machine code, are dropped. The exit
        code."""
        quick = replace(self.launcher, min_time_s=1e-3)
        gpu = quick.run(self.binary, [f"{STAGE}/64x64x64"]).device.name
        ranks, classes = self.lead(problems), self.classes(problems)
        known = {
            row.name: row for row in rows if row.gpu == gpu and is_current(row.code, self.kernels)
        }
        others = [row for row in rows if row.gpu != gpu]
        found = [
            replace(known[name], rank=rank, problem_class=classes[_problem(name)])
            for name, rank in ranks.items()
            if name in known
        ]
        missing = [name for name in ranks if name not in known]
        message(f"{gpu}: {len(found)} of {len(ranks)} timings are there")
        tuning.save_timings(path, [*others, *found])

        def time_part(part: list[str]) -> None:
            timed = [self.launcher.run(self.binary, part) for _ in range(self.processes)]
            for name in part:
                found.append(self._timing(name, ranks[name], classes[_problem(name)], timed))
            tuning.save_timings(path, [*others, *found])

        parts = work_off(
            _parts(missing), time_part, lambda part: f"{_problem(part[0])} and others", limit_s
        )
        left = {_problem(name) for part in parts for name in part}
        if left:
            message(f"{path}: {len(left)} problems left by the time limit; run again to go on")
        return UNFINISHED if left else 0

    def _timing(
        self, name: str, rank: int, problem_class: str, processes: Sequence[Process]
    ) -> Timing:
        readings = [process.readings[name] for process in processes]
        ratios = [reading.summary[RATIO] for reading in readings]
        seconds = statistics.median(statistics.median(reading.rung_s) for reading in readings)
        return Timing(
            problem_class=problem_class,
            problem=_problem(name),
            configuration=name.partition("/")[0].partition("@")[2],
            rank=rank,
            code=code_of(readings[0].kernels.split(), self.kernels, name),
            gpu=processes[0].device.name,
            microseconds=1e6 * seconds,
            of_cublas=statistics.median(ratios),
            spread=max(ratios) / min(ratios) - 1,
            commit=self.commit,
        )


def _problem(name: str) -> str:
    return name.partition("/")[2]


def _parts(missing: Sequence[str]) -> list[list[str]]:
    problems = list(dict.fromkeys(map(_problem, missing)))
    firsts = range(0, len(problems), PROBLEMS_PER_PROCESS)
    chosen = [{*problems[first : first + PROBLEMS_PER_PROCESS]} for first in firsts]
    return [[name for name in missing if _problem(name) in some] for some in chosen]


def kernels_in(build: Path) -> dict[str, str]:
    """The digest of each kernel of the rungs in a build, by its symbol."""
    tool = find_cuobjdump()
    if tool is None:
        raise GateError(
            "cuobjdump is missing, without which machine code cannot be told apart: "
            "install the CUDA toolkit and put its bin folder on PATH."
        )
    libraries = sorted((build / "kernels").glob("libtilegate_*.a"))
    libraries = [path for path in libraries if not path.stem.endswith("_variants")]
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(lambda path: _disassembled(tool, path), libraries)]
    return {symbol: digest for text in found for symbol, digest in digests(text).items()}


def digests(sass: str) -> dict[str, str]:
    """Of what `cuobjdump -sass` printed."""
    parts = re.split(r"^\s*Function : (\S+)$", sass, flags=re.MULTILINE)
    bodies = zip(parts[1::2], parts[2::2], strict=True)
    return {symbol: hashlib.sha256(body.encode()).hexdigest()[:DIGITS] for symbol, body in bodies}


def code_of(symbols: Iterable[str], kernels: dict[str, str], name: str) -> str:
    """What a row keeps of the kernels that a configuration launches."""
    unknown = sorted({*symbols} - {*kernels})
    if unknown or not symbols:
        raise GateError(f"{name}: its kernels are not in the build: {' '.join(unknown) or 'none'}")
    return "+".join(sorted({kernels[symbol] for symbol in symbols}))


def is_current(code: str, kernels: dict[str, str]) -> bool:
    """Whether all of it is in the build."""
    return {*code.split("+")} <= {*kernels.values()}


def _disassembled(tool: str, library: Path) -> str:
    done = child.finished([tool, "-sass", str(library)], capture_output=True)
    # A library without device code is no failure of the tool's.
    if done.returncode and "does not contain device code" not in done.stderr:
        raise GateError(f"{tool} -sass {library}: {done.stderr.strip()}")
    return done.stdout
