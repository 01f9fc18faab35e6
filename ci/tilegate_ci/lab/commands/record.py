"""ci/gate record: records a sitting of processes as proof of the gate."""

import argparse
from pathlib import Path

from tilegate_ci.commands.arguments import add_commit, commit_of, count, regex, seconds, seed
from tilegate_ci.core.files import GateError
from tilegate_ci.core.names import matching, rung_of
from tilegate_ci.core.outputs import check_outputs
from tilegate_ci.core.progress import message
from tilegate_ci.lab.proof.recording import Arm
from tilegate_ci.lab.proof.sitting import Header, plan, record, title
from tilegate_ci.measure.launcher import MIN_TIME_S, PLACES, Launcher
from tilegate_ci.measure.suite import SUITE, read_suite, stages_of
from tilegate_ci.model import REPOSITORY

BENCH = REPOSITORY / "build" / "gpu" / "bench" / "bench"
UNFINISHED = 3

EXIT_CODES = {0: "complete", 2: "error", UNFINISHED: "processes are left by the time limit"}
INTERRUPTED = "the recording holds every process that ended, run again to go on"
EXAMPLES = """examples:
  ci/gate record --sitting h200-1 --processes 20 --out bench/recordings/h200-1.json.gz
  ci/gate record --sitting h200-1 --processes 20 --out bench/recordings/h200-1.json.gz \\
    --rounds 8 --plant Warptile=0.5 --plant Warptile=3
  ci/gate record --sitting h200-2 --processes 20 --out bench/recordings/h200-2.json.gz \\
    --rounds 8 --mutation Vectorized:no_padding=mutants/no_padding/bench

Run again after an interruption, the same command goes on where it stopped.
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--sitting", metavar="NAME", required=True)
    command.add_argument("--out", metavar="FILE.json.gz", required=True)
    command.add_argument("--processes", metavar="N", type=count, required=True)
    add_commit(command)
    command.add_argument(
        "--rounds",
        metavar="N",
        type=count,
        default=8,
        help="processes of each plant and mutation, and of its rung as it is (default: 8)",
    )
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
    command.add_argument(
        "--time-limit",
        metavar="SECONDS",
        type=seconds,
        help=f"stop in time, with exit code {UNFINISHED} when processes are left to run",
    )
    command.add_argument("--bench", metavar="BINARY", default=str(BENCH))
    command.add_argument("--suite", metavar="FILE.csv", default=str(SUITE))
    command.add_argument(
        "--filter", metavar="REGEX", type=regex, help="only some benchmarks of the suite"
    )
    command.add_argument("--min-time", metavar="SECONDS", type=seconds, default=MIN_TIME_S)
    command.add_argument("--seed", metavar="N", type=seed, default=1)


def run(arguments: argparse.Namespace) -> int:
    check_outputs([arguments.bench, arguments.suite], {"--out": arguments.out})
    bench = Path(arguments.bench)
    # build/gpu/bench/bench, and beside it the list of its rungs; or a copy of both in one folder.
    stages = stages_of(bench.parent) or stages_of(bench.parent.parent)
    suite = matching(read_suite(stages, Path(arguments.suite)), arguments.filter)
    rungs = {rung_of(name) for name in suite}
    planted = [_planted(text, rungs) for text in arguments.plant]
    mutated = [_mutated(text, rungs) for text in arguments.mutation]
    arms = [*planted, *(arm for arm, _ in mutated)]
    for arm in arms:
        if arms.count(arm) > 1:
            raise GateError(f"{title(arm)}: given twice")
    arms = [Arm(rung) for rung in sorted({str(arm.rung) for arm in arms})] + arms
    steps = plan(arguments.sitting, arguments.processes, arms, arguments.rounds)
    header = Header(
        arguments.sitting,
        commit_of(arguments),
        suite,
        Launcher(arguments.min_time, arguments.seed, placements=PLACES, replays=True),
        bench,
        dict(mutated),
    )
    left = record(header, steps, Path(arguments.out), arguments.time_limit)
    if left:
        message(f"{arguments.out}: {left} processes left by the time limit; run again to go on")
        return UNFINISHED
    message(f"{arguments.out}: complete, {len(steps)} processes")
    return 0


def _planted(text: str, rungs: set[str]) -> Arm:
    rung, _, percent = text.partition("=")
    try:
        value = float(percent)
    except ValueError:
        value = 0.0
    if rung not in rungs or not 0 < value <= 100:
        raise GateError(f"--plant {text!r}: not RUNG=PERCENT with a rung of the suite")
    return Arm(rung, plant_percent=value)


def _mutated(text: str, rungs: set[str]) -> tuple[Arm, Path]:
    left, _, binary = text.partition("=")
    rung, _, name = left.partition(":")
    if rung not in rungs or not name or not binary:
        raise GateError(f"--mutation {text!r}: not RUNG:NAME=BENCH with a rung of the suite")
    return Arm(rung, build=name), Path(binary)
