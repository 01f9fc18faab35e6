"""Options of the command line, in a line each."""

import argparse
from typing import Any

Options = argparse._ActionsContainer  # a command, or a group of its options


def option(options: Options, name: str, metavar: str, text: str | None, **more: Any) -> None:
    """An option or an argument with a value; `text` is its help, `more` as argparse takes it."""
    options.add_argument(name, metavar=metavar, help=text, **more)


def flag(options: Options, name: str, text: str) -> None:
    options.add_argument(name, action="store_true", help=text)
