"""ci/gate run: judges a change on a GPU."""

import argparse
import sys
from datetime import date
from pathlib import Path

from tilegate_ci.commands import project_options as project
from tilegate_ci.commands.arguments import add_cmake, regex, seconds, seed, whole
from tilegate_ci.commands.compare import add_verdict_options, check_verdict_options, show
from tilegate_ci.core.files import make_folder
from tilegate_ci.core.outputs import locked
from tilegate_ci.judge import waivers
from tilegate_ci.judge.compare import Comparison
from tilegate_ci.judge.paired import MIN_PAIRS, PAIRS
from tilegate_ci.measure import gate_run
from tilegate_ci.measure.job import Job, Options
from tilegate_ci.measure.job import prepare as prepare_job
from tilegate_ci.measure.launcher import MIN_TIME_S
from tilegate_ci.measure.project.gate_run import ProjectJob
from tilegate_ci.measure.project.gate_run import judged as of_project
from tilegate_ci.model import EXIT_MEANINGS, REPOSITORY

WORK = REPOSITORY / "build" / "gate-run"

EXIT_CODES = EXIT_MEANINGS
INTERRUPTED = "every process that ended is kept, run again to go on"
EXAMPLES = """examples:
  ci/gate run --base origin/main                       # the working tree against main
  ci/gate run --base origin/main --markdown summary.md --json verdict.json
  ci/gate run --base ../before --head ../after         # folders, where there is no git history
  ci/gate run --base origin/main --dry-run

of another project, from its own folder:
  gate run --base main --build 'make BUILD={build}' --run '{build}/bench --benchmark_out={out}'
  gate run --base main --run './bench.sh {out}' --yardstick 'Reference/*' --verified correct

The base is the merge base. Screens against the baseline committed there, then measures base and
head in turn for whatever looks slower. Without a baseline for this GPU everything is measured in
turn. Run again after an interruption, the same command goes on where it stopped.
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--base", metavar="REV|DIR", required=True)
    command.add_argument("--head", metavar="REV|DIR", help="default: the working tree")
    command.add_argument(
        "--filter", metavar="REGEX", type=regex, help="only some benchmarks of the suite"
    )
    command.add_argument(
        "--pairs", metavar="N", type=whole(MIN_PAIRS, 1000), default=PAIRS, help=f"default: {PAIRS}"
    )
    command.add_argument(
        "--out", metavar="FOLDER", help="of the processes; default: build/gate-run/…"
    )
    command.add_argument("--work", metavar="FOLDER", help="to build in")
    add_cmake(command)
    command.add_argument("--min-time", metavar="SECONDS", type=seconds, default=MIN_TIME_S)
    command.add_argument("--seed", metavar="N", type=seed, default=1)
    command.add_argument(
        "--no-identity", action="store_true", help="judge what has the same machine code too"
    )
    command.add_argument("--dry-run", action="store_true", help="say what would be run")
    project.add_project_options(command)
    add_verdict_options(command)


def run(arguments: argparse.Namespace, screened: bool = True) -> int:
    # It makes the folder .gate, where the reports may go.
    other = project.prepare(arguments) if project.is_project(arguments) else None
    check_verdict_options(arguments)
    # The default file of waivers holds this repository's own.
    none = other is not None and arguments.waivers == str(waivers.WAIVERS)
    accepted = [] if none else waivers.load(Path(arguments.waivers), date.today())
    job = other or prepare(arguments, screened)
    if arguments.dry_run:
        sys.stdout.write(job.plan())
        return 0
    return show(waivers.apply(judged(job), accepted), arguments.markdown, arguments.json)


def judged(job: Job | ProjectJob) -> Comparison:
    """One command of a build folder measures at a time, or both would disturb each other."""
    build = job.work if isinstance(job, ProjectJob) else job.work.parent
    make_folder(build)
    with locked(build):
        return of_project(job) if isinstance(job, ProjectJob) else gate_run.judged(job)


def prepare(arguments: argparse.Namespace, screened: bool) -> Job:
    options = Options(
        arguments.filter or "", arguments.pairs, arguments.min_time, arguments.seed, screened,
        not arguments.no_identity, tuple(arguments.cmake),
    )  # fmt: skip
    work = Path(arguments.work or WORK).resolve()
    out = Path(arguments.out).resolve() if arguments.out else None
    head = arguments.head or str(REPOSITORY)
    return prepare_job(arguments.base, head, work, out, options)
