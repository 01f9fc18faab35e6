"""ci/gate compare: the screen alone, file against file."""

import argparse
import sys
from datetime import date
from pathlib import Path

from tilegate_ci.core.files import write_text
from tilegate_ci.core.outputs import check_outputs
from tilegate_ci.core.progress import message
from tilegate_ci.formats.run_file import Role, load
from tilegate_ci.judge import verdict_file, waivers
from tilegate_ci.judge.compare import Comparison, compare
from tilegate_ci.model import EXIT_MEANINGS
from tilegate_ci.report import render

EXIT_CODES = EXIT_MEANINGS
EXAMPLES = """examples:
  ci/gate compare bench/baselines/nvidia-h200.json run.json
  ci/gate compare bench/baselines/nvidia-h200.json run.json --filter '^Warptile/'
  ci/gate compare bench/baselines/nvidia-h200.json run.json --markdown summary.md
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("baseline", metavar="BASELINE")
    command.add_argument("candidate", metavar="CANDIDATE")
    command.add_argument(
        "--filter", metavar="REGEX", help="judge only benchmarks whose name contains a match"
    )
    add_verdict_options(command)


def add_verdict_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--waivers",
        metavar="FILE",
        default=str(waivers.WAIVERS),
        help="default: bench/waivers.json",
    )
    command.add_argument(
        "--markdown", metavar="FILE", help="write the report there too (overwrites the file)"
    )
    command.add_argument(
        "--json", metavar="FILE", help="write the verdicts there, for `ci/gate report`"
    )


def check_verdict_options(arguments: argparse.Namespace, *inputs: str) -> None:
    outputs = {"--markdown": arguments.markdown, "--json": arguments.json}
    check_outputs([*inputs, arguments.waivers], outputs)


def run(arguments: argparse.Namespace) -> int:
    check_verdict_options(arguments, arguments.baseline, arguments.candidate)
    accepted = waivers.load(Path(arguments.waivers), date.today())
    found = compare(
        load(arguments.baseline, Role.BASELINE), load(arguments.candidate), arguments.filter
    )
    return show(waivers.apply(found, accepted), arguments.markdown, arguments.json)


def show(found: Comparison, markdown: str | None, json: str | Path | None) -> int:
    """Writes the reports and returns the exit code."""
    if markdown:
        write_text(Path(markdown), render.markdown(found))
    if json:
        verdict_file.write(Path(json), found)
    for warning in found.warnings:
        message(f"warning: {warning}")
    sys.stdout.write(render.console(found))
    return found.exit_code
