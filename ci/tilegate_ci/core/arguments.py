"""Numbers on the command line, with what argparse says of others."""

from __future__ import annotations

import argparse
import math


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
