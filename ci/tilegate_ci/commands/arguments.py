"""Options shared by several commands."""

import argparse
import math
import re
from collections.abc import Callable
from pathlib import Path

from tilegate_ci.core.git import named_commit
from tilegate_ci.core.options import option
from tilegate_ci.formats.reading import Declared
from tilegate_ci.judge.compare import Margin
from tilegate_ci.model import MIN_DELTA, REPOSITORY

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
    """1% or 1."""
    number = float(text.removesuffix("%"))
    if not 0 < number < 100:
        raise argparse.ArgumentTypeError(f"between 0 and 100, not {text}")
    return number / 100


def duration(text: str) -> float:
    """Seconds of 2us, 150ns, 0.1ms or 1s."""
    units = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
    unit = next((unit for unit in units if text.endswith(unit)), None)
    number = float(text.removesuffix(unit)) if unit else 0.0
    if unit is None or not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(
            f"a time above zero with its unit, such as 2us, not {text}"
        )
    return number * units[unit]


def add_margins(group: argparse._ActionsContainer) -> None:
    """A slow-down must exceed both."""
    option(
        group,
        "--margin",
        "PERCENT",
        f"the slow-down that passes, such as 3%%; default: {100 * MIN_DELTA:g}%%",
        type=percent,
    )
    option(
        group,
        "--margin-abs",
        "TIME",
        "and the increase in time that passes, such as 2us: what is slower must exceed both",
        type=duration,
        default=0.0,
    )


def margin_in(arguments: argparse.Namespace, least: float = MIN_DELTA) -> Margin:
    return Margin(arguments.margin or least, arguments.margin_abs)


def regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as problem:
        raise argparse.ArgumentTypeError(f"not a regular expression: {problem}") from problem
    return text


def add_commit(command: argparse._ActionsContainer) -> None:
    how = "where git cannot say it; default: $TILEGATE_COMMIT"
    option(command, "--commit", "SHA", how)


def commit_of(arguments: argparse.Namespace) -> str:
    return named_commit(arguments.commit, REPOSITORY)


def add_cmake(command: argparse.ArgumentParser) -> None:
    option(command, "--cmake", "ARGUMENT", _AGAIN, action="append", default=[])


def add_declared(group: argparse._ActionsContainer) -> None:
    """What the owner of another project's benchmarks says of them."""
    option(
        group,
        "--time",
        "NAME",
        "real_time (default) or cpu_time of Google Benchmark; a summary's tag of NVBench, "
        "default nv/cold/time/gpu/mean; a statistic of pytest-benchmark, default median; a column "
        "of asv, default result, or of lines, default seconds",
        default="",
    )
    option(
        group,
        "--yardstick",
        "PATTERN",
        "judge the time relative to this benchmark's, as Reference/*: * stands for the same "
        "part of a name between slashes, at the end for the rest",
        default="",
    )
    option(
        group,
        "--verified",
        "NAME",
        "the counter, summary, extra_info or column that is 1 where the result was checked "
        "and right",
        default="",
    )


def declared_in(arguments: argparse.Namespace, pattern: str = "") -> Declared:
    return Declared(arguments.time, arguments.yardstick, arguments.verified, pattern)


def add_repository(command: argparse.ArgumentParser) -> None:
    command.add_argument("--repository", type=Path, default=REPOSITORY, help=argparse.SUPPRESS)
