"""ci/gate confirm: measures base and head in turn, without a screen."""

import argparse

from tilegate_ci.commands import run as gate_run_command
from tilegate_ci.commands.run import EXIT_CODES, INTERRUPTED, add_arguments

__all__ = ["EXAMPLES", "EXIT_CODES", "INTERRUPTED", "add_arguments", "run"]

EXAMPLES = """examples:
  ci/gate confirm --base origin/main --filter '^Warptile/'
  ci/gate confirm --base ../before --head ../after --pairs 20

Measures base and head in turn, in pairs of processes, without a screen.
Run again after an interruption, the same command goes on where it stopped.
"""


def run(arguments: argparse.Namespace) -> int:
    return gate_run_command.run(arguments, screened=False)
