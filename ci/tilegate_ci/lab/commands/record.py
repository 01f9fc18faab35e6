"""ci/gate lab record: records benchmark processes as evidence for the gate's error rates."""

import argparse
import hashlib
import random
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tilegate_ci.commands.arguments import commit_of
from tilegate_ci.core.files import GateError, check_outputs, message, read_bytes
from tilegate_ci.core.names import matching, rung_of
from tilegate_ci.formats.stages import stages_of
from tilegate_ci.lab.proof import recording
from tilegate_ci.lab.proof.recording import (
    Arm,
    RecordedProcess,
    RecordedProtocol,
    RecordedReading,
    RecordingFile,
    Step,
)
from tilegate_ci.lab.sweeps import work_off
from tilegate_ci.measure.launcher import (
    CANARIES,
    MIN_TIME_S,
    PLACES,
    SUITE,
    Launcher,
    read_suite,
)
from tilegate_ci.model import REPOSITORY

BENCH = REPOSITORY / "build" / "gpu" / "bench" / "bench"
UNFINISHED = 3

INTERRUPTED = "the recording holds every process that ended, run again to go on"

DEFAULTS = {
    "rounds": 8,
    "plant": [],
    "mutation": [],
    "bench": str(BENCH),
    "suite": str(SUITE),
    "min_time": MIN_TIME_S,
    "seed": 1,
}


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
    header = {
        "schema": 1,
        "sitting": arguments.sitting,
        "commit": commit_of(arguments),
        "protocol": RecordedProtocol(min_time_s=arguments.min_time, seed=arguments.seed),
        "benchmarks": suite,
    }
    steps = plan(arguments.sitting, arguments.processes, arms, arguments.rounds)
    binaries = {**dict.fromkeys([Arm(), *arms], Path(arguments.bench)), **dict(mutated)}
    launcher = Launcher(arguments.min_time, arguments.seed, placements=PLACES, replays=True)
    left = record(header, steps, binaries, launcher, Path(arguments.out), arguments.time_limit)
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


def title(arm: Arm) -> str:
    what = f"{arm.rung} alone" if arm.rung else "the suite"
    if arm.plant_percent:
        what = f"{arm.rung}, {arm.plant_percent:g} % planted"
    return f"{what}, {arm.build}" if arm.build else what


def names_of(arm: Arm, suite: Sequence[str]) -> list[str]:
    if arm.rung is None:
        return list(suite)
    return [name for name in suite if rung_of(name) == arm.rung or name in CANARIES]


def plan(sitting: str, processes: int, arms: Sequence[Arm], rounds: int) -> list[Step]:
    """`processes` of the suite, and `rounds` of each arm, one per round beside a suite process; the
    order within a round is random, seeded with the sitting's name."""
    steps = []
    for number in range(max(processes, rounds)):
        here = [Step(number, arm) for arm in arms] if number < rounds else []
        if number < processes:
            here.append(Step(number, Arm()))
        random.Random(f"{sitting}:{number}").shuffle(here)
        steps += here
    return steps


def record(
    header: Mapping[str, Any],
    steps: Sequence[Step],
    binaries: Mapping[Arm, Path],
    launcher: Launcher,
    out: Path,
    time_limit_s: float | None,
) -> int:
    """Runs the steps that `out` does not hold yet, and writes it after each; how many are left by
    the time limit. `header` is what the file says of all processes but for their device."""
    file = recording.load(str(out)) if out.exists() else None
    known = {each.step for each in file.processes} if file else ()
    left = [step for step in steps if step not in known]
    if file:
        _check_goes_on(header, steps, binaries, file)
        message(f"{out}: {len(known)} processes are there, {len(left)} to go")

    def do(step: Step) -> None:
        nonlocal file
        arm, binary = step.arm, binaries[step.arm]
        plant = f"{arm.rung}:{arm.plant_percent:g}" if arm.plant_percent else None
        process = launcher.run(binary, names_of(arm, header["benchmarks"]), plant)
        if process.plant != plant:
            raise GateError(f"{binary}: planted {process.plant}, not {plant}")
        if file and process.device != file.device:
            raise GateError(f"{out}: another device: {process.device.fields}")
        recorded = RecordedProcess(
            round=step.round,
            **arm._asdict(),
            binary=_digest(binary),
            started=process.started or "",
            wall_s=process.wall_s,
            conditions=process.conditions,
            rows={name: RecordedReading.of(row) for name, row in process.readings.items()},
        )
        processes = [*(file.processes if file else ()), recorded]
        file = RecordingFile(**header, device=process.device, processes=processes)
        recording.save(out, file)

    return len(
        work_off(left, do, lambda step: title(step.arm), time_limit_s, lambda step: step.arm)
    )


def _check_goes_on(
    header: Mapping[str, Any],
    steps: Sequence[Step],
    binaries: Mapping[Arm, Path],
    old: RecordingFile,
) -> None:
    """GateError where the file is of another sitting, or of other binaries. Older recordings do not
    say which binary it was."""
    there = {**dict(old), "schema": old.schema_version}
    for key, value in header.items():
        if there[key] != value:
            where = f"{key} is {there[key]} there, {value} now"
            raise GateError(f"{old.path}: {where}; give another --out")
    digest = cache(_digest)
    for each in old.processes:
        binary = binaries.get(each.step.arm)
        if binary and each.binary and each.step in steps and each.binary != digest(binary):
            raise GateError(
                f"{old.path}: {title(each.step.arm)}: recorded with another binary than {binary} "
                "is now; give another --out"
            )


def _digest(binary: Path) -> str:
    return hashlib.sha256(read_bytes(binary)).hexdigest()
