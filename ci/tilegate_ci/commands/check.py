"""ci/gate check: compares committed tables with what is computed now, exactly, or updates them."""

import argparse
import sys
from pathlib import Path

from tilegate_ci.checks.accuracy import Accuracy
from tilegate_ci.checks.committed import Committed, Report
from tilegate_ci.checks.counters import Counters
from tilegate_ci.checks.pages.tables import Plots, Tables
from tilegate_ci.checks.passport import Passports
from tilegate_ci.checks.profile import Profiles
from tilegate_ci.checks.resources.table import Resources
from tilegate_ci.core.files import GateError, check_outputs, message, write_text
from tilegate_ci.model import REPOSITORY, worst

_CLASSES = (Resources, Counters, Passports, Tables, Plots, Profiles, Accuracy)
TABLES: dict[str, Committed] = {each.name: each() for each in _CLASSES}

DEFAULTS = {"repository": REPOSITORY}


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
