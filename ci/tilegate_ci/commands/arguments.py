"""What several commands have on their command lines."""

import argparse
import math
import os
import re

from tilegate_ci.core.git import checkout_commit
from tilegate_ci.core.model import REPOSITORY


def count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def seconds(text: str) -> float:
    number = float(text)
    if not (math.isfinite(number) and number > 0):
        raise argparse.ArgumentTypeError(f"a finite number above zero, not {text}")
    return number


def shape(text: str) -> str:
    if not re.fullmatch(r"[1-9]\d*x[1-9]\d*x[1-9]\d*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not MxNxK, each at least 1")
    return text


def regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as problem:
        raise argparse.ArgumentTypeError(f"not a regular expression: {problem}") from problem
    return text


def add_commit(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--commit", metavar="SHA", help="where git cannot tell it; default: $TILEGATE_COMMIT"
    )


def commit_of(arguments: argparse.Namespace) -> str:
    return str(arguments.commit or os.environ.get("TILEGATE_COMMIT") or checkout_commit(REPOSITORY))
