"""ci/gate tune: times the configurations that Sgemm's cost models rank first, and makes the table
of those that are quicker than the models think."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tilegate_ci.checks.tuning import choose, rows
from tilegate_ci.commands.arguments import add_commit, commit_of, count, seconds, seed, whole
from tilegate_ci.core.files import make_folder, read_text
from tilegate_ci.core.outputs import locked
from tilegate_ci.core.progress import message
from tilegate_ci.lab.random_problems import random_problems
from tilegate_ci.lab.tuning.code import is_current, kernels_in
from tilegate_ci.lab.tuning.measure import Tuner
from tilegate_ci.measure.launcher import Launcher
from tilegate_ci.measure.suite import name_of
from tilegate_ci.model import REPOSITORY

BUILD = REPOSITORY / "build" / "gpu"
SHAPES = REPOSITORY / "bench" / "shapes.csv"
UNFINISHED = 3

EXIT_CODES = {
    0: "complete; with --check, no cell of the table is stale",
    1: "with --check: cells are stale",
    2: "error",
    UNFINISHED: "problems are left by the time limit",
}
INTERRUPTED = "the file holds what was measured, run again to go on"
EXAMPLES = """examples:
  ci/gate tune                                     # what is in bench/tuning/grid.csv
  ci/gate tune --problems 640x640x640,100x3000x50  # and these, from now on
  ci/gate tune --outside                           # random problems, by which the table is judged
  ci/gate tune --check                             # is any of the table stale?

Without a grid it begins with the shapes of bench/shapes.csv. It uses build/gpu as it is. What is
measured already is not measured again, unless the machine code of its kernels has changed. Nothing
but bench/tuning and kernels/sgemm/table.csv is written.
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--problems", metavar="PROBLEM,...", help="added to the grid")
    command.add_argument(
        "--outside", action="store_true", help="random problems that do not go into the table"
    )
    command.add_argument("--check", action="store_true", help="measure nothing, write nothing")
    command.add_argument(
        "--best", type=whole(1, 64), default=8, help="configurations of each; default: %(default)s"
    )
    command.add_argument("--processes", type=count, default=2, help="default: %(default)s")
    command.add_argument("--min-time", type=seconds, default=0.02, help="default: %(default)s")
    command.add_argument("--seed", type=seed, default=1)
    command.add_argument("--time-limit", metavar="SECONDS", type=seconds)
    command.add_argument("--build", type=Path, default=BUILD, help=argparse.SUPPRESS)
    add_commit(command)


def run(arguments: argparse.Namespace) -> int:
    kernels = kernels_in(arguments.build)
    if arguments.check:
        return _check(kernels)
    path = REPOSITORY / (rows.OUTSIDE if arguments.outside else rows.GRID)
    table_path = REPOSITORY / choose.TABLE
    make_folder(path.parent)
    with locked(path.parent):
        known = rows.load(path)
        problems = _problems(arguments, known)
        launcher = Launcher(arguments.min_time, arguments.seed, arguments.best, replays=True)
        binary = arguments.build / "bench" / "bench"
        tuner = Tuner(binary, launcher, arguments.processes, commit_of(arguments), kernels)
        limit = arguments.time_limit
        left = tuner.tune(problems, known, lambda found: rows.save(path, found), limit)
        if left:
            message(f"{path}: {left} problems left by the time limit; run again to go on")
            return UNFINISHED
        if not arguments.outside:
            table = choose.cells(rows.load(path))
            choose.save(table, table_path)
            message(f"{table_path}: {len(table)} cells; build again to use it")
    outside = rows.load(REPOSITORY / rows.OUTSIDE)
    table = choose.load(table_path)
    sys.stdout.write("\n".join(statement(outside, table)) + "\n")
    return 0


def statement(outside: Sequence[rows.Timing], table: Sequence[choose.Cell]) -> list[str]:
    """How good the choice is where nothing was tuned."""
    if not outside:
        return ["no problems outside the grid were timed yet: ci/gate tune --outside"]
    by = {"the table": choose.kept(outside, table), "the bare model": choose.kept(outside, [])}
    return [
        f"{name} keeps {100 * of.mean:.1f} %, least {100 * of.least:.1f} % at {of.at}"
        for name, of in by.items()
    ]


def _problems(arguments: argparse.Namespace, known: Sequence[rows.Timing]) -> list[str]:
    if arguments.outside:
        return random_problems(200, 20261121)
    more = arguments.problems.split(",") if arguments.problems else []
    chosen = [*(row.problem for row in known), *more] or shapes()
    return list(dict.fromkeys(chosen))


def shapes() -> list[str]:
    """Those of bench/shapes.csv, as problems."""
    lines = [line.split(",", 1)[1] for line in read_text(SHAPES).splitlines()[1:] if line]
    return [name_of(f"{rows.STAGE},{line}").partition("/")[2] for line in lines]


def _check(kernels: dict[str, str]) -> int:
    table = choose.load(REPOSITORY / choose.TABLE)
    stale = [cell for cell in table if not is_current(cell.code, kernels)]
    for cell in stale:
        message(f"{cell.gpu}, {cell.problem_class}: {cell.family} has other machine code now")
    if stale:
        message("measure these anew: ci/gate tune")
        return 1
    sys.stdout.write(f"{len(table)} cells, none of them stale\n")
    return 0
