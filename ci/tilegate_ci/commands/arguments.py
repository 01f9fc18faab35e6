"""Options shared by several commands."""

import argparse
import math
import re
from collections.abc import Callable
from pathlib import Path

from tilegate_ci.core.git import named_commit
from tilegate_ci.formats.reading import Declared
from tilegate_ci.model import REPOSITORY

_AGAIN = "may be repeated"


def whole(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:  # argparse says its name where int() fails
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"a whole number from {least} to {most}")
        return value

    return number


count = whole(1, 1000)  # of processes
seed = whole(0, 2**63 - 1)


def seconds(text: str) -> float:
    number = float(text)
    if not (math.isfinite(number) and number > 0):
        raise argparse.ArgumentTypeError(f"a finite number above zero, not {text}")
    return number


def percent(text: str) -> float:
    number = float(text)
    if not 0 < number < 100:
        raise argparse.ArgumentTypeError(f"between 0 and 100, not {text}")
    return number / 100


def regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as problem:
        raise argparse.ArgumentTypeError(f"not a regular expression: {problem}") from problem
    return text


def add_commit(command: argparse._ActionsContainer) -> None:
    how = "where git cannot say it; default: $TILEGATE_COMMIT"
    command.add_argument("--commit", metavar="SHA", help=how)


def commit_of(arguments: argparse.Namespace) -> str:
    return named_commit(arguments.commit, REPOSITORY)


def add_cmake(command: argparse.ArgumentParser) -> None:
    command.add_argument("--cmake", metavar="ARGUMENT", action="append", default=[], help=_AGAIN)


def add_declared(group: argparse._ActionsContainer) -> None:
    """What the owner of another project's benchmarks says of them."""
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


def declared_in(arguments: argparse.Namespace, pattern: str = "") -> Declared:
    return Declared(arguments.time, arguments.yardstick, arguments.verified, pattern)


def add_repository(command: argparse.ArgumentParser) -> None:
    command.add_argument("--repository", type=Path, default=REPOSITORY, help=argparse.SUPPRESS)
