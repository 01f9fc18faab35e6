"""The text that is a command's help and its options."""

import argparse

import pytest

from tilegate_ci.cli import Parser
from tilegate_ci.commands.arguments import add_arguments

TEXT = """  FILE...            the first, and
                     more
  [RUNG]             or none
  --base REV|DIR     required
  --arch 75|90a...   only this
  --time SECONDS     5 % of it
  --diff A B         two
  --dry-run          a flag
  --secret N         hidden
of shards:
  --shard I/N        one
  | --merge SHARDS   all"""


@pytest.fixture
def parser():
    made = Parser(prog="made")
    add_arguments(made, TEXT, {"shard": str.upper}, {"time": 2.0, "shard": "1/1"})
    return made


def test_each_form(parser):
    least = parser.parse_args(["a", "--base", "x"])
    assert (least.files, least.rung, least.time, least.shard) == (["a"], None, 2.0, "1/1")
    assert (least.arch, least.diff, least.dry_run) == (None, None, False)
    words = "a b --base x --arch 75 --arch 90a --time 3 --diff c d --dry-run --secret 7 --shard i/n"
    every = parser.parse_args(words.split())
    assert (every.arch, every.time, every.diff) == (["75", "90a"], 3.0, ["c", "d"])
    assert (every.dry_run, every.secret, every.shard) == (True, 7, "I/N")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--base x", "the following arguments are required: FILE"),
        ("a", "the following arguments are required: --base"),
        ("a --base x --arch 80", "invalid choice: '80'"),
        ("a --base x --time -1", "a finite number above zero, not -1"),
        ("a --base x --secret 0", "a whole number from 1 to 1000"),
        ("a --base x --shard 1/2 --merge 2", "not allowed with argument --shard"),
    ],
)
def test_what_is_wrong_is_said(parser, words, message, capsys):
    with pytest.raises(SystemExit):
        parser.parse_args(words.split())
    assert message in capsys.readouterr().err


def test_help_shows_the_text(parser):
    shown = " ".join(parser.format_help().split())
    for text in (
        "FILE the first, and more",
        "of shards:",
        "only this; may be repeated",
        "5 % of it",
    ):
        assert text in shown
    assert "--secret" not in shown
    assert isinstance(parser, argparse.ArgumentParser)
