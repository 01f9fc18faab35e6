"""ci/gate resources: registers, spills, shared memory and occupancy of every rung's kernels,
compared with the committed table. Needs nvcc and no GPU."""

import argparse
import datetime
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tilegate_ci.checks.resources import render
from tilegate_ci.checks.resources.compile import find_toolkit
from tilegate_ci.checks.resources.judge import MEANINGS, judge
from tilegate_ci.checks.resources.measure import changed, measure, merged
from tilegate_ci.checks.resources.occupancy import ARCHITECTURES
from tilegate_ci.checks.resources.table import Table, load
from tilegate_ci.commands.arguments import add_table_options
from tilegate_ci.core import documents
from tilegate_ci.core.files import GateError, write_text
from tilegate_ci.core.outputs import check_outputs
from tilegate_ci.core.progress import message
from tilegate_ci.formats.stages import Stage, find_stages
from tilegate_ci.judge import waivers

TABLE = Path("bench") / "baselines" / "resources.json"

EXIT_CODES = MEANINGS
EXAMPLES = """examples:
  ci/gate resources                           # every rung, every architecture
  ci/gate resources --rung Warptile --arch 90a
  ci/gate resources --changed --arch 90a      # rungs whose files the table does not know
  ci/gate resources --update && git diff bench/baselines/resources.json
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_table_options(command, TABLE)
    command.add_argument(
        "--arch",
        metavar="ARCH",
        action="append",
        choices=[*ARCHITECTURES],
        help=f"only this architecture of {', '.join(ARCHITECTURES)}; may be repeated",
    )
    command.add_argument(
        "--changed",
        action="store_true",
        help="only rungs with a file, or a header that it includes, that has changed since the "
        "table was made",
    )


def run(arguments: argparse.Namespace) -> int:
    check_outputs([], {"--markdown": arguments.markdown})
    repository = arguments.repository.resolve()
    path = repository / TABLE
    toolkit = find_toolkit()
    # The yardstick has no kernels of its own; the table is of this repository's rungs.
    every = [stage for stage in find_stages(repository) if not stage.yardstick]
    if arguments.update:
        every = [stage for stage in every if not stage.external]
    chosen = _chosen(every, arguments.rung)
    architectures = arguments.arch or [*ARCHITECTURES]
    fresh = arguments.update and not path.exists()
    committed = Table(schema=1, nvcc=toolkit.release) if fresh else load(path)
    waivers.check(committed.waivers, datetime.date.today(), str(path))
    if arguments.changed and committed.nvcc == toolkit.release:
        chosen = changed(repository, chosen, committed)
    partial = len(chosen) < len(every) or len(architectures) < len(ARCHITECTURES)
    if arguments.update and partial and committed.nvcc != toolkit.release:
        raise GateError(
            f"{path}: of nvcc {committed.nvcc}, and this is {toolkit.release}: "
            "--update then needs every rung and architecture"
        )
    found, errors = measure(toolkit, repository, chosen, architectures, committed)
    if arguments.update and not errors:
        committed = merged(committed, found, every, architectures, partial)
        write_text(path, documents.to_text(committed))
        sys.stdout.write(f"{os.path.relpath(path)}: written\n")
    # What has left the ladder is compared only where the whole ladder was asked for.
    gone = {*committed.rungs} - {stage.name for stage in every}
    names = {rung.name for rung in chosen} | (set() if arguments.rung else gone)
    external = {stage.name for stage in chosen if stage.external}
    judgement = judge(committed, found, names, architectures, errors, external)
    if arguments.markdown:
        write_text(Path(arguments.markdown), render.markdown(judgement))
    for warning in judgement.warnings:
        message(f"warning: {warning}")
    sys.stdout.write(render.console(judgement))
    return judgement.exit_code


def _chosen(stages: Sequence[Stage], names: Sequence[str] | None) -> list[Stage]:
    if not names:
        return [*stages]
    known = {stage.name for stage in stages}
    for name in names:
        if name not in known:
            raise GateError(f"--rung {name!r}: the rungs are {', '.join(sorted(known))}")
    return [stage for stage in stages if stage.name in names]
