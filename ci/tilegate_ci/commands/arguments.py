"""The command line of each command: NAME.txt beside its module is both its help and its options.

The first line says what the command does. In the second paragraph each line has an argument and its
help, which may go on in deeper lines. `METAVAR...` may be repeated, `[METAVAR]` left out; words in
lower case with bars between them are the values to choose from; `| --option` excludes the option
above it; a line at the margin begins a group. `@name` stands for the lines of shared/name.txt."""

import argparse
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tilegate_ci.core.git import named_commit
from tilegate_ci.model import REPOSITORY

SHARED = Path(__file__).with_name("shared")


def whole(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:  # argparse says its name where int() fails
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"a whole number from {least} to {most}")
        return value

    return number


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


def regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as problem:
        raise argparse.ArgumentTypeError(f"not a regular expression: {problem}") from problem
    return text


def shape(text: str) -> str:
    if not re.fullmatch(r"[1-9]\d*x[1-9]\d*x[1-9]\d*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not MxNxK, each at least 1")
    return text


# By metavar; the TYPES of a command have those of its own, by name.
TYPES: Mapping[str, Callable[[str], Any]] = {
    "N": whole(1, 1000),
    "SEED": whole(0, 2**63 - 1),
    "SECONDS": seconds,
    "PERCENT": percent,
    "TIME": duration,
    "REGEX": regex,
    "MxNxK": shape,
    "SHA": str,
    **dict.fromkeys(("PATH", "DIR", "TREE"), Path),
}
REPEATED = "; may be repeated"


def read_help(path: Path) -> list[str]:
    """What the command does; its arguments; the rest, which help shows as it is."""

    def shared(name: re.Match[str]) -> str:
        return (SHARED / f"{name[1]}.txt").read_text("utf-8")

    text = re.sub(r"^@(\w+)\n", shared, path.read_text("utf-8"), flags=re.MULTILINE)
    return text.split("\n\n", 2)


def add_arguments(
    command: argparse.ArgumentParser,
    text: str,
    types: Mapping[str, Callable[[str], Any]],
    defaults: Mapping[str, Any],
) -> None:
    """The arguments that the text lists, with the types and defaults of some of them by name."""
    group: argparse._ActionsContainer = command
    lines = re.sub(r"\n {4,}", "  ", text).splitlines()
    for line, after in zip(lines, [*lines[1:], ""]):
        if not line.startswith(" "):
            group = command.add_argument_group(line.rstrip(":"))
            continue
        if after.startswith("  |"):
            exclusive = group.add_mutually_exclusive_group()
        alone = not (after.startswith("  |") or line.startswith("  |"))
        form, _, told = (part.strip() for part in line.strip(" |").partition("  "))
        name, more = _parsed(form, re.sub(" +", " ", told))
        dest = name.removeprefix("--").replace("-", "_")
        if "metavar" in more:
            more["type"] = types.get(dest) or TYPES.get(more["metavar"])
        if dest in defaults:
            more["default"] = defaults[dest]
        (group if alone else exclusive).add_argument(name, **more)


def _parsed(form: str, told: str) -> tuple[str, dict[str, Any]]:
    """What argparse is to be told of `--name METAVAR...`, or of `[name=METAVAR...]`."""
    more: dict[str, Any] = {"help": told.replace("%", "%%")}
    optional, form = form.startswith("["), form.strip("[]")
    many, form = form.endswith("..."), form.removesuffix("...")
    if form.startswith("--"):
        name, *metavars = form.split(" ")
        if told.startswith("required"):
            more["required"] = True
        if many:
            more |= {"action": "append", "help": more["help"] + REPEATED}
        if not metavars:
            more["action"] = "store_true"
    else:
        name, _, metavar = form.rpartition("=")
        name, metavars = name or metavar.lower() + "s" * many, [metavar]
        if many or optional:
            more["nargs"] = "+" if not optional else "*" if many else "?"
    if told == "hidden":
        more["help"] = argparse.SUPPRESS
    if metavars[1:]:
        more |= {"nargs": len(metavars), "metavar": tuple(metavars)}
    elif metavars and re.fullmatch(r"[a-z0-9]+(\|[a-z0-9]+)+", metavars[0]):
        more["choices"] = metavars[0].split("|")
    elif metavars:
        more["metavar"] = metavars[0]
    return name, more


def commit_of(arguments: argparse.Namespace) -> str:
    return named_commit(arguments.commit, REPOSITORY)
