"""The commands of ci/gate that run the bench binary, or replay what it recorded."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from tilegate_ci import run_cli
from tilegate_ci.core.arguments import count, seconds
from tilegate_ci.core.files import GateError
from tilegate_ci.core.git import checkout_commit
from tilegate_ci.core.model import REPOSITORY
from tilegate_ci.judge import bisect
from tilegate_ci.measure.launcher import MIN_TIME_S, Launcher
from tilegate_ci.measure.sitting import Arm, Header, plan, record
from tilegate_ci.measure.suite import SUITE, matching, read_suite, rung_of
from tilegate_ci.proof import command as replay_cli

Add = Callable[[str, str, str], argparse.ArgumentParser]
BENCH = REPOSITORY / "build" / "gpu" / "bench" / "bench"
UNFINISHED = 3

_RECORD_EXAMPLES = """examples:
  ci/gate record --sitting h200-1 --processes 20 --out bench/recordings/h200-1.json.gz
  ci/gate record --sitting h200-1 --processes 20 --out bench/recordings/h200-1.json.gz \\
    --rounds 8 --plant Warptile=0.5 --plant Warptile=3
  ci/gate record --sitting h200-2 --processes 20 --out bench/recordings/h200-2.json.gz \\
    --rounds 8 --mutation Vectorized:no_padding=mutants/no_padding/bench

Run again after an interruption, the same command goes on where it stopped.
"""


def add_commands(add: Add) -> None:
    command = add("record", "record processes as proof of the gate", _RECORD_EXAMPLES)
    command.set_defaults(command=_record)
    command.add_argument("--sitting", metavar="NAME", required=True)
    command.add_argument("--out", metavar="FILE.json.gz", required=True)
    command.add_argument("--processes", metavar="N", type=count, required=True)
    command.add_argument("--commit", metavar="SHA", help="default: what git says")
    command.add_argument("--rounds", metavar="N", type=count, default=8, help=_ROUNDS_HELP)
    command.add_argument(
        "--plant", metavar="RUNG=PERCENT", action="append", default=[], help="slow RUNG down"
    )
    command.add_argument(
        "--mutation",
        metavar="RUNG:NAME=BENCH",
        action="append",
        default=[],
        help="another binary, in which RUNG was made slower",
    )
    command.add_argument("--time-limit", metavar="SECONDS", type=seconds, help=_LIMIT_HELP)
    _add_launch_options(command)

    replay_cli.add_command(add)
    run_cli.add_commands(add)
    bisect.add_command(add)


_ROUNDS_HELP = "processes of each plant and mutation, and of its rung as it is (default: 8)"
_LIMIT_HELP = f"stop in time, with exit code {UNFINISHED} when processes are left to run"


def _add_launch_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--bench", metavar="BINARY", default=str(BENCH))
    command.add_argument("--suite", metavar="FILE.csv", default=str(SUITE))
    command.add_argument("--filter", metavar="REGEX", help="only some benchmarks of the suite")
    command.add_argument("--min-time", metavar="SECONDS", type=seconds, default=MIN_TIME_S)
    command.add_argument("--seed", metavar="N", type=int, default=1)


def _record(arguments: argparse.Namespace) -> int:
    suite = matching(read_suite(Path(arguments.suite)), arguments.filter)
    rungs = sorted({rung_of(name) for name in suite})
    binary = Path(arguments.bench)
    arms = [_planted(text, rungs, binary) for text in arguments.plant]
    arms += [_mutated(text, rungs) for text in arguments.mutation]
    for arm in arms:
        if sum(arm.key == other.key for other in arms) > 1:
            raise GateError(f"{arm.title}: given twice")
    changed = sorted({str(arm.rung) for arm in arms})
    arms = [Arm(binary, rung) for rung in changed] + arms
    steps = plan(arguments.sitting, Arm(binary), arguments.processes, arms, arguments.rounds)
    launcher = Launcher(arguments.min_time, arguments.seed, Path(arguments.suite))
    header = Header(arguments.sitting, _commit(arguments.commit), suite, launcher)
    _end_on_signals()
    try:
        left = record(header, steps, Path(arguments.out), _tell, arguments.time_limit)
    except KeyboardInterrupt:
        _tell(
            f"{arguments.out}: interrupted; it holds every process that ended, run again to go on"
        )
        return 2
    if left:
        _tell(f"{arguments.out}: {left} processes left by the time limit; run again to go on")
        return UNFINISHED
    _tell(f"{arguments.out}: complete, {len(steps)} processes")
    return 0


def _planted(text: str, rungs: list[str], binary: Path) -> Arm:
    rung, _, percent = text.partition("=")
    try:
        value = float(percent)
    except ValueError:
        value = 0.0
    if rung not in rungs or not 0 < value <= 100:
        raise GateError(f"--plant {text!r}: not RUNG=PERCENT with a rung of the suite")
    return Arm(binary, rung, plant_percent=value)


def _mutated(text: str, rungs: list[str]) -> Arm:
    left, _, binary = text.partition("=")
    rung, _, name = left.partition(":")
    if rung not in rungs or not name or not binary:
        raise GateError(f"--mutation {text!r}: not RUNG:NAME=BENCH with a rung of the suite")
    return Arm(Path(binary), rung, build=name)


def _commit(given: str | None) -> str:
    return given or os.environ.get("TILEGATE_COMMIT") or checkout_commit(REPOSITORY)


def _end_on_signals() -> None:
    """A termination ends like Ctrl-C, so that what ran is told."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
