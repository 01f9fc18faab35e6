"""The command line of ci/gate."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from tilegate_ci.core.files import GateError, WriteError, dumps, write_text
from tilegate_ci.core.model import baseline_path
from tilegate_ci.core.reader import Role, load
from tilegate_ci.core.verdicts import EXIT_MEANINGS
from tilegate_ci.counters import command as counters
from tilegate_ci.counters import judge as counters_judge
from tilegate_ci.judge import verdict_file, waivers
from tilegate_ci.judge.accept import accept, check_acceptable, check_same_device, report
from tilegate_ci.judge.compare import compare
from tilegate_ci.measure.collect import check_distinct, collect, read_process, read_sessions
from tilegate_ci.report import command as reports
from tilegate_ci.report import render
from tilegate_ci.resources import command as resources
from tilegate_ci.resources import judge as resources_judge
from tilegate_ci.times_cli import add_commands

_EXIT_CODES = "exit codes:\n" + "".join(
    f"  {code}  {meaning}\n" for code, meaning in EXIT_MEANINGS.items()
)

_EXAMPLES = """examples:
  ci/gate collect --out run.json --commit "$(git rev-parse HEAD)" process_*.json
  ci/gate compare bench/baselines/nvidia-h200.json run.json
  ci/gate accept run.json

"""

_COMPARE_EXAMPLES = """examples:
  ci/gate compare bench/baselines/nvidia-h200.json run.json
  ci/gate compare bench/baselines/nvidia-h200.json run.json --filter '^Warptile/'
  ci/gate compare bench/baselines/nvidia-h200.json run.json --markdown summary.md

"""

_ACCEPT_EXAMPLES = """examples:
  ci/gate accept run.json                          # bench/baselines/<device>.json
  ci/gate accept run.json --baseline mine.json
  ci/gate accept warptile_only.json --merge        # keep the rows that it does not have
"""

_COLLECT_EXAMPLES = """examples:
  build/gpu/bench/bench --benchmark_out=process_1.json --benchmark_out_format=json
  ci/gate collect --out run.json --commit "$(git rev-parse HEAD)" process_*.json
  ci/gate collect --out run.json --commit "$SHA" --conditions sessions.json process_*.json
"""


def main(argv: Sequence[str]) -> int:
    """Runs one command and returns its exit code; never raises, because an uncaught exception
    would make Python exit with 1, which means `regressed`."""
    arguments = None
    try:
        try:
            arguments = _parser().parse_args(argv)
            code: int = arguments.command(arguments)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 2
        sys.stdout.flush()
    except GateError as problem:
        _tell_error(arguments, problem)
        return 2
    except BrokenPipeError:
        # Whoever read our report has seen enough; without this the interpreter fails at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except Exception:
        traceback.print_exc()
        return 2
    return code


def _tell_error(arguments: argparse.Namespace | None, problem: GateError) -> None:
    """In the reports that the command was to write too, where those of an older run may be."""
    sys.stderr.write(f"gate: error: {problem}\n")
    if isinstance(problem, WriteError):
        return
    try:
        if getattr(arguments, "markdown", None):
            write_text(Path(arguments.markdown), render.markdown_error(str(problem)))
        if getattr(arguments, "json", None):
            verdict_file.write_error(Path(arguments.json), str(problem))
    except GateError as other:
        sys.stderr.write(f"gate: error: {other}\n")


def _compare(arguments: argparse.Namespace) -> int:
    accepted = waivers.load(Path(arguments.waivers), date.today())
    comparison = compare(
        load(arguments.baseline, Role.BASELINE),
        load(arguments.candidate, Role.CANDIDATE),
        arguments.filter,
    )
    comparison = waivers.apply(comparison, accepted)
    if arguments.markdown:
        write_text(Path(arguments.markdown), render.markdown(comparison))
    if arguments.json:
        verdict_file.write(Path(arguments.json), comparison)
    for warning in comparison.warnings:
        sys.stderr.write(f"gate: warning: {warning}\n")
    sys.stdout.write(render.console(comparison))
    return comparison.exit_code


def _accept(arguments: argparse.Namespace) -> int:
    candidate = load(arguments.candidate, Role.ACCEPTED)
    check_acceptable(candidate, arguments.allow_dirty, arguments.allow_few)
    default = os.path.relpath(baseline_path(candidate.device))
    path = Path(arguments.baseline or default)
    old = load(str(path), Role.BASELINE) if path.exists() else None
    accepted = accept(candidate, old, arguments.merge)
    if path.resolve() != baseline_path(candidate.device):
        check_same_device(candidate, old)
    write_text(path, accepted.text)
    sys.stdout.write(report(path, accepted, candidate, old))
    return 0


def _collect(arguments: argparse.Namespace) -> int:
    check_distinct(arguments.processes)
    sessions = read_sessions(arguments.conditions) if arguments.conditions else None
    processes = [read_process(path) for path in arguments.processes]
    document = collect(processes, arguments.commit, sessions)
    write_text(Path(arguments.out), dumps(document) + "\n")
    rows, count = len(document["benchmarks"]), len(processes)
    sys.stdout.write(f"{arguments.out}: {rows} benchmarks, {count} processes\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ci/gate",
        description="Keeps SGEMM kernels from getting slower.",
        epilog=_EXAMPLES + _EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, description: str, epilog: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=description,
            description=description[0].upper() + description[1:] + ".",
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    command = add("compare", "judge a run by a baseline", _COMPARE_EXAMPLES + _EXIT_CODES)
    command.set_defaults(command=_compare)
    command.add_argument("baseline", metavar="BASELINE")
    command.add_argument("candidate", metavar="CANDIDATE")
    command.add_argument(
        "--waivers",
        metavar="FILE",
        default=str(waivers.WAIVERS),
        help="default: bench/waivers.json",
    )
    command.add_argument(
        "--filter", metavar="REGEX", help="judge only benchmarks whose name contains a match"
    )
    command.add_argument(
        "--markdown", metavar="FILE", help="write the report there too (overwrites the file)"
    )
    command.add_argument(
        "--json", metavar="FILE", help="write the verdicts there, for `ci/gate report`"
    )

    command = add("accept", "make a recorded run the baseline", _ACCEPT_EXAMPLES)
    command.set_defaults(command=_accept)
    command.add_argument("candidate", metavar="CANDIDATE")
    command.add_argument(
        "--baseline", metavar="FILE", help="default: bench/baselines/<device name>.json"
    )
    command.add_argument(
        "--merge", action="store_true", help="keep the rows that CANDIDATE does not have"
    )
    command.add_argument(
        "--allow-dirty", action="store_true", help="accept a run of uncommitted changes"
    )
    command.add_argument(
        "--allow-few", action="store_true", help="accept a GPU run of fewer than 3 processes"
    )

    command = add("collect", "make a run of Google Benchmark's JSON files", _COLLECT_EXAMPLES)
    command.set_defaults(command=_collect)
    command.add_argument("processes", metavar="PROCESS.json", nargs="+", help="one a process")
    command.add_argument("--out", metavar="FILE", required=True)
    command.add_argument(
        "--commit", metavar="SHA", required=True, help="40 hex digits, -dirty after them if so"
    )
    command.add_argument(
        "--conditions", metavar="FILE", help="a JSON list of sessions; default: one, unknown"
    )

    add_commands(add)
    reports.add_arguments(add("report", "show verdicts in other forms", reports.EXAMPLES))

    meanings = resources_judge.MEANINGS.items()
    codes = "exit codes:\n" + "".join(f"  {code}  {meaning}\n" for code, meaning in meanings)
    resources.add_arguments(
        add("resources", "compare what the kernels use of the GPU", resources.EXAMPLES + codes)
    )
    meanings = counters_judge.MEANINGS.items()
    codes = "exit codes:\n" + "".join(f"  {code}  {meaning}\n" for code, meaning in meanings)
    counters.add_arguments(
        add("counters", "compare what the kernels do to memory, exactly", counters.EXAMPLES + codes)
    )
    return parser
