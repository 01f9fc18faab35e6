"""ci/gate tables: see tilegate_ci.report.tables."""

import argparse

from tilegate_ci.commands.arguments import add_repository
from tilegate_ci.report import tables

EXIT_CODES = {0: "up to date", 1: "--check: a file is not up to date", 2: "error"}
EXAMPLES = """examples:
  ci/gate tables
  ci/gate tables --check
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 when a file is not up to date"
    )
    add_repository(command)


def run(arguments: argparse.Namespace) -> int:
    check = ["--check"] * arguments.check
    return tables.main([*check, "--repository", str(arguments.repository)])
