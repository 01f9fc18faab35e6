"""The options of ci/gate run and collect for other projects' benchmarks."""

import argparse
from pathlib import Path

from tilegate_ci.core.files import GateError
from tilegate_ci.formats.reading import Declared
from tilegate_ci.measure.launcher import MIN_TIME_S
from tilegate_ci.measure.project import gate_run
from tilegate_ci.measure.project.sides import Commands, repository_at
from tilegate_ci.model import MIN_DELTA

_DECLARED = ("time", "yardstick", "verified")
WORK = ".gate"


def add_project_options(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("another project's benchmarks")
    group.add_argument("--build", metavar="CMD", help="builds a side, in the folder {build}")
    group.add_argument(
        "--run", metavar="CMD", help="runs one process, which writes its JSON to the file {out}"
    )
    group.add_argument(
        "--margin",
        metavar="PERCENT",
        type=_percent,
        help=f"the slow-down that passes; default: {100 * MIN_DELTA:g}",
    )
    add_declared(group)


def add_declared(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--time",
        metavar="NAME",
        default="",
        help="real_time (default) or cpu_time of Google Benchmark; a summary's tag of NVBench, "
        "default nv/cold/time/gpu/mean",
    )
    group.add_argument(
        "--yardstick",
        metavar="PATTERN",
        default="",
        help="judge the time relative to this benchmark's, as Reference/*: * stands for the same "
        "part of a name between slashes, at the end for the rest",
    )
    group.add_argument(
        "--verified",
        metavar="NAME",
        default="",
        help="the counter, or the summary, that is 1 where the result was checked and right",
    )


def declared_in(arguments: argparse.Namespace) -> Declared:
    pattern = getattr(arguments, "filter", None) or ""
    return Declared(arguments.time, arguments.yardstick, arguments.verified, pattern)


def is_project(arguments: argparse.Namespace) -> bool:
    """GateError where options of another project's benchmarks are given without --run."""
    if arguments.run is not None:
        if "{out}" not in arguments.run:
            raise GateError(
                "--run: the command must name the file that it writes its JSON to: {out}, as in "
                "--run '{build}/bench --benchmark_out={out}'"
            )
        own = ("no_identity", False), ("min_time", MIN_TIME_S)
        if arguments.cmake or any(getattr(arguments, n, usual) != usual for n, usual in own):
            raise GateError(
                "--cmake, --min-time and --no-identity are for this repository's own benchmarks; "
                "with --run, say it in --build and --run"
            )
        return True
    given = [name for name in (*_DECLARED, "build", "margin") if getattr(arguments, name)]
    if given:
        raise GateError(f"--{given[0]} is for another project's benchmarks: give --run CMD too")
    return False


def options_of(arguments: argparse.Namespace) -> list[str]:
    """The same options again, as another command line has them."""
    names = ("build", "run", *_DECLARED)
    words = [f"--{name}={getattr(arguments, name)}" for name in names if getattr(arguments, name)]
    return words + ([f"--margin={100 * arguments.margin:g}"] if arguments.margin else [])


def prepare(arguments: argparse.Namespace) -> gate_run.ProjectJob:
    repository = repository_at(Path.cwd())
    options = gate_run.ProjectOptions(
        arguments.pairs,
        arguments.seed,
        arguments.margin or MIN_DELTA,
        declared_in(arguments),
        Commands(arguments.build or "", arguments.run),
    )
    work = Path(arguments.work).resolve() if arguments.work else repository / WORK
    out = Path(arguments.out).resolve() if arguments.out else None
    return gate_run.prepare(arguments.base, arguments.head, repository, work, out, options)


def _percent(text: str) -> float:
    number = float(text)
    if not 0 < number < 100:
        raise argparse.ArgumentTypeError(f"between 0 and 100, not {text}")
    return number / 100
