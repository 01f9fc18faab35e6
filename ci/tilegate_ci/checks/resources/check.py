"""The table of resources: registers, spills, shared memory and occupancy of each kernel."""

import argparse
import datetime
import os
from dataclasses import dataclass, replace
from pathlib import Path

from tilegate_ci.checks.committed import CommittedTable, Report, chosen
from tilegate_ci.checks.resources import render
from tilegate_ci.checks.resources.compile import Toolkit, find_toolkit
from tilegate_ci.checks.resources.judge import MEANINGS, judge
from tilegate_ci.checks.resources.measure import changed, measure, merged
from tilegate_ci.checks.resources.occupancy import ARCHITECTURES, Architecture
from tilegate_ci.checks.resources.table import Table, load
from tilegate_ci.core import documents
from tilegate_ci.core.files import GateError, write_text
from tilegate_ci.core.progress import message
from tilegate_ci.formats.stages import Stage, find_stages
from tilegate_ci.judge import waivers

TABLE = Path("bench") / "baselines" / "resources.json"


@dataclass(frozen=True)
class Compilation:
    """Of the rungs `stages` of all that there are, `every`; `errors` say which do not compile."""

    every: list[Stage]
    stages: list[Stage]
    architectures: list[Architecture]
    committed: Table
    found: Table
    errors: list[str]


class Resources(CommittedTable[Compilation]):
    name = "resources"
    holds = "registers, spills, shared memory and occupancy of each kernel; needs nvcc"
    exit_codes = MEANINGS
    options = ("arch", "changed")
    partial = ()

    def ready(self) -> None:
        find_toolkit()

    def add_arguments(self, group: argparse._ArgumentGroup) -> None:
        group.add_argument(
            "--arch",
            metavar="ARCH",
            action="append",
            choices=[*ARCHITECTURES],
            help=f"resources: only this one of {', '.join(ARCHITECTURES)}; may be repeated",
        )
        group.add_argument(
            "--changed",
            action="store_true",
            help="resources: only rungs with a source or header that has changed since the table "
            "was made",
        )

    def compute(self, asked: argparse.Namespace) -> Compilation:
        toolkit, repository = find_toolkit(), asked.repository
        # The yardstick has no kernels of its own; the table has this repository's rungs.
        every = [stage for stage in find_stages(repository) if not stage.yardstick]
        if asked.update:
            every = [stage for stage in every if not stage.external]
        names = chosen(asked.rung, [stage.name for stage in every])
        stages = [stage for stage in every if stage.name in names]
        architectures = asked.arch or [*ARCHITECTURES]
        committed = self._committed(asked, toolkit)
        if asked.changed and committed.nvcc == toolkit.release:
            stages = changed(repository, stages, committed)
        some = Compilation(every, stages, architectures, committed, committed, [])
        if asked.update and _partial(some) and committed.nvcc != toolkit.release:
            raise GateError(
                f"{repository / TABLE}: of nvcc {committed.nvcc}, and this is {toolkit.release}: "
                "--update then needs every rung and architecture"
            )
        found, errors = measure(toolkit, repository, stages, architectures, committed)
        return replace(some, found=found, errors=errors)

    def _committed(self, asked: argparse.Namespace, toolkit: Toolkit) -> Table:
        path = asked.repository / TABLE
        if asked.update and not path.exists():
            return Table(schema=1, nvcc=toolkit.release)
        found = load(path)
        waivers.check(found.waivers, datetime.date.today(), str(path))
        return found

    def write(self, asked: argparse.Namespace, found: Compilation) -> Report:
        """Spills are errors all the same."""
        if found.errors:
            return self.compare(asked, found)
        path, partial = asked.repository / TABLE, _partial(found)
        table = merged(found.committed, found.found, found.every, found.architectures, partial)
        write_text(path, documents.to_text(table))
        judged = self.compare(asked, replace(found, committed=table))
        return replace(judged, text=f"{os.path.relpath(path)}: written\n{judged.text}")

    def compare(self, asked: argparse.Namespace, found: Compilation) -> Report:
        # What has left the ladder is compared only where the whole ladder was asked for.
        gone = {*found.committed.rungs} - {stage.name for stage in found.every}
        names = {rung.name for rung in found.stages} | (set() if asked.rung else gone)
        external = {stage.name for stage in found.stages if stage.external}
        judgement = judge(
            found.committed, found.found, names, found.architectures, found.errors, external
        )
        for warning in judgement.warnings:
            message(f"warning: {warning}")
        return Report(judgement.exit_code, render.console(judgement), render.markdown(judgement))


def _partial(found: Compilation) -> bool:
    some = len(found.stages) < len(found.every)
    return some or len(found.architectures) < len(ARCHITECTURES)
