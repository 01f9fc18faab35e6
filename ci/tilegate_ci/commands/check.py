"""ci/gate check: compares committed tables with what is computed now, exactly, or updates them."""

import argparse
import sys
from pathlib import Path

from tilegate_ci.checks.accuracy import Accuracy
from tilegate_ci.checks.committed import Committed, Report
from tilegate_ci.checks.counters.check import Counters, add_program
from tilegate_ci.checks.pages.tables import Plots, Tables
from tilegate_ci.checks.passport import Passports
from tilegate_ci.checks.profile import Profiles
from tilegate_ci.checks.resources.check import Resources
from tilegate_ci.commands.arguments import add_commit, add_repository
from tilegate_ci.core.files import GateError, check_outputs, message, write_text
from tilegate_ci.core.options import flag, option
from tilegate_ci.model import worst

_CLASSES: tuple[type[Committed], ...] = (
    Resources,
    Counters,
    Passports,
    Tables,
    Plots,
    Profiles,
    Accuracy,
)
TABLES: dict[str, Committed] = {each.name: each() for each in _CLASSES}

EXIT_CODES = {
    0: "as committed",
    1: "a table, or a page that quotes one, is not as committed; a hazard",
    2: "error: no compiler, no GPU, a spill without a waiver, a missing case, ...",
    4: "resources: the committed table is of another nvcc release",
}
EXAMPLES = (
    "tables:\n"
    + "".join(f"  {name:10} {table.holds}\n" for name, table in TABLES.items())
    + """
examples:
  ci/gate check                                  # all that this machine can compute
  ci/gate check resources --rung Warptile --arch 90a
  ci/gate check resources --changed --arch 90a   # rungs whose sources the table does not know
  ci/gate check counters --update && git diff    # after an intended change
  ci/gate check tables plot --update             # the READMEs, after a new baseline
  ci/gate check accuracy --rung Int8x3 --update  # on a GPU
  ci/gate check passport --preset gpu --recorded rungs.json --yardstick cublas.json --update
"""
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    option(command, "tables", "TABLE", ", ".join(TABLES), nargs="*")
    flag(command, "--update", "write the tables and their pages")
    option(command, "--rung", "NAME", "only this; may be repeated", action="append")
    option(command, "--markdown", "FILE", "write the report there too")
    command.add_argument("--check", action="store_true", help=argparse.SUPPRESS)  # of old commands
    add_repository(command)
    group = command.add_argument_group("of single tables")
    for table in TABLES.values():
        table.add_arguments(group)
    add_program(group, "what counts, or make_passport")
    add_commit(group)


def run(arguments: argparse.Namespace) -> int:
    check_outputs([], {"--markdown": arguments.markdown})
    arguments.repository = arguments.repository.resolve()
    arguments.update &= not arguments.check
    tables = _chosen(arguments)
    reports = [_report(table, arguments, alone=len(tables) == 1) for table in tables]
    if arguments.markdown:
        shown = (each.markdown or f"```text\n{each.text}```\n" for each in reports)
        write_text(Path(arguments.markdown), "\n".join(shown))
    return worst(each.exit_code for each in reports)


def _chosen(arguments: argparse.Namespace) -> list[Committed]:
    """GateError where a word names neither a table nor a rung, or an option no chosen table."""
    names = [word for word in arguments.tables if word in TABLES]
    others = [word for word in arguments.tables if word not in TABLES]
    if others and (not names or not others[0][:1].isupper()):
        raise GateError(f"no table {', '.join(others)}; there are {', '.join(TABLES)}")
    arguments.rung = [*(arguments.rung or ()), *others] or None
    taken = {each for name in names or TABLES for each in TABLES[name].options}
    for other in {each for table in TABLES.values() for each in table.options} - taken:
        if getattr(arguments, other):
            raise GateError(f"--{other.replace('_', '-')} is not an option of {', '.join(names)}")
    if names:
        return [TABLES[name] for name in names]
    able = []
    for table in TABLES.values():
        try:
            table.ready()
            able.append(table)
        except GateError as problem:
            message(f"{table.name} is left out: {problem}")
    return able


def _report(table: Committed, arguments: argparse.Namespace, alone: bool) -> Report:
    """Of several tables one that cannot be computed does not stop the others."""
    try:
        found = table.report(arguments)
    except GateError as problem:
        if alone:
            raise
        found = Report(2, f"error: {problem}\n")
    title = "" if alone else f"{table.name}:\n"
    sys.stdout.write(title + found.text)
    return found
