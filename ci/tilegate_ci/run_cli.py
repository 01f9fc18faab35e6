"""ci/gate run and ci/gate confirm."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

from tilegate_ci.core.arguments import seconds
from tilegate_ci.core.files import GateError, write_text
from tilegate_ci.core.model import REPOSITORY
from tilegate_ci.core.verdicts import EXIT_MEANINGS
from tilegate_ci.judge import verdict_file, waivers
from tilegate_ci.measure.launcher import MIN_TIME_S
from tilegate_ci.report import render

PAIRS = 12  # as paired.PAIRS, which needs numpy
WORK = REPOSITORY / "build" / "gate-run"

_RUN_EXAMPLES = """examples:
  ci/gate run --base origin/main                       # the working tree against main
  ci/gate run --base origin/main --markdown summary.md --json verdict.json
  ci/gate run --base ../before --head ../after         # folders, where there is no git history
  ci/gate run --base origin/main --dry-run

The base is the commit where head left it. Screens against the baseline committed there, then
measures base and head in turn for whatever looks slower. Without a baseline for this GPU
everything is measured in turn.
Run again after an interruption, the same command goes on where it stopped.

"""
_CONFIRM_EXAMPLES = """examples:
  ci/gate confirm --base origin/main --filter '^Warptile/'
  ci/gate confirm --base ../before --head ../after --pairs 20

Measures base and head in turn, in pairs of processes, without a screen.
Run again after an interruption, the same command goes on where it stopped.

"""


def add_commands(add: Callable[[str, str, str], argparse.ArgumentParser]) -> None:
    codes = "exit codes:\n" + "".join(f"  {c}  {m}\n" for c, m in EXIT_MEANINGS.items())
    run = add("run", "judge a change on a GPU: screen, then confirm", _RUN_EXAMPLES + codes)
    run.set_defaults(command=lambda arguments: _command(arguments, screened=True))
    confirm = add("confirm", "measure base and head in turn", _CONFIRM_EXAMPLES + codes)
    confirm.set_defaults(command=lambda arguments: _command(arguments, screened=False))
    for command in (run, confirm):
        command.add_argument("--base", metavar="REV|DIR", required=True)
        command.add_argument(
            "--head", metavar="REV|DIR", default=str(REPOSITORY), help="default: the working tree"
        )
        command.add_argument("--filter", metavar="REGEX", help="only some benchmarks of the suite")
        command.add_argument(
            "--pairs", metavar="N", type=_pairs, default=PAIRS, help=f"default: {PAIRS}"
        )
        command.add_argument("--markdown", metavar="FILE", help="write the report there too")
        command.add_argument("--json", metavar="FILE", help="write the verdicts, for `report`")
        command.add_argument(
            "--out", metavar="FOLDER", help="of the processes; default: build/gate-run/…"
        )
        command.add_argument("--work", metavar="FOLDER", default=str(WORK), help="to build in")
        command.add_argument(
            "--cmake", metavar="ARGUMENT", action="append", default=[], help="may be repeated"
        )
        command.add_argument("--min-time", metavar="SECONDS", type=seconds, default=MIN_TIME_S)
        command.add_argument("--seed", metavar="N", type=int, default=1)
        command.add_argument("--waivers", metavar="FILE", default=str(waivers.WAIVERS))
        command.add_argument(
            "--no-identity", action="store_true", help="judge what has the same machine code too"
        )
        command.add_argument("--dry-run", action="store_true", help="say what would be run")


def _command(arguments: argparse.Namespace, screened: bool) -> int:
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return _run(arguments, screened)
    except KeyboardInterrupt as stop:
        told = "interrupted; every process that ended is kept, run again to go on"
        raise GateError(told) from stop


def _run(arguments: argparse.Namespace, screened: bool) -> int:
    try:
        from tilegate_ci.measure import run_job
    except ImportError as problem:
        raise GateError(
            f"{problem.name} is not installed; pip install -r ci/requirements.txt"
        ) from problem
    accepted = waivers.load(Path(arguments.waivers), date.today())
    options = run_job.Options(
        arguments.filter or "", arguments.pairs, arguments.min_time, arguments.seed, screened,
        not arguments.no_identity, tuple(arguments.cmake),
    )  # fmt: skip
    work = Path(arguments.work).resolve()
    out = Path(arguments.out).resolve() if arguments.out else None
    job = run_job.prepare(arguments.base, arguments.head, work, out, options)
    if arguments.dry_run:
        sys.stdout.write(job.plan())
        return 0
    found = waivers.apply(run_job.judged(job, _tell), accepted)
    if arguments.markdown:
        write_text(Path(arguments.markdown), render.markdown(found))
    if arguments.json:
        verdict_file.write(Path(arguments.json), found)
    for warning in found.warnings:
        _tell(f"warning: {warning}")
    sys.stdout.write(render.console(found))
    return found.exit_code


def _pairs(text: str) -> int:
    number = int(text)
    if number < 4:
        raise argparse.ArgumentTypeError("at least 4")
    return number


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _tell(text: str) -> None:
    print(f"gate: {text}", file=sys.stderr, flush=True)
