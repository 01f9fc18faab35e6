"""ci/gate lab record: records benchmark processes as evidence for the gate's error rates."""

import argparse
import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
from tilegate_ci.model import REPOSITORY, Device, Process

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


@dataclass(frozen=True)
class Header:
    """What every process of a sitting shares. `mutants` are the binaries of the arms that do not
    run the commit's own."""

    sitting: str
    commit: str
    suite: Sequence[str]
    launcher: Launcher
    binary: Path
    mutants: Mapping[Arm, Path]

    def binary_of(self, arm: Arm) -> Path:
        return self.mutants.get(arm, self.binary)

    def file(self, device: Device) -> RecordingFile:
        """Without processes."""
        return RecordingFile(
            schema=1,
            sitting=self.sitting,
            commit=self.commit,
            device=device,
            protocol=RecordedProtocol(min_time_s=self.launcher.min_time_s, seed=self.launcher.seed),
            benchmarks=list(self.suite),
            processes=[],
        )


def record(
    header: Header, steps: Sequence[Step], out: Path, time_limit_s: float | None = None
) -> int:
    """Runs the steps that `out` does not hold yet, and writes it after each; how many are left by
    the time limit."""
    old = recording.load(str(out)) if out.exists() else None
    left = [step for step in steps if old is None or step not in old.processes]
    if old:
        _check_goes_on(header, steps, old)
        message(f"{out}: {len(old.processes)} processes are there, {len(left)} to go")
    file = old.file if old else None

    def do(step: Step) -> None:
        nonlocal file
        process = _measured(header, step.arm)
        file = file or header.file(process.device)
        if process.device != file.device:
            raise GateError(f"{out}: another device: {process.device.fields}")
        processes = [*file.processes, _recorded(header, step, process)]
        file = file.model_copy(update={"processes": processes})
        recording.save(out, file)

    left = work_off(left, do, lambda step: title(step.arm), time_limit_s, lambda step: step.arm)
    return len(left)


def _check_goes_on(header: Header, steps: Sequence[Step], old: recording.Recording) -> None:
    """GateError where the file is of another sitting, or of other binaries. Older recordings do
    not say which binary it was."""
    for key, value in header.file(old.file.device):
        there = getattr(old.file, key)
        if key != "processes" and there != value:
            raise GateError(f"{old.path}: {key} is {there} there, {value} now; give another --out")
    wanted = {*steps}
    known = [p for p in old.file.processes if p.binary and Step(p.round, p.arm) in wanted]
    now = {path: _digest(path) for path in {header.binary_of(process.arm) for process in known}}
    for process in known:
        binary = header.binary_of(process.arm)
        if process.binary != now[binary]:
            raise GateError(
                f"{old.path}: {title(process.arm)}: recorded with another binary than {binary} is "
                "now; give another --out"
            )


def _digest(binary: Path) -> str:
    return hashlib.sha256(read_bytes(binary)).hexdigest()


def _measured(header: Header, arm: Arm) -> Process:
    binary = header.binary_of(arm)
    plant = f"{arm.rung}:{arm.plant_percent:g}" if arm.plant_percent else None
    process = header.launcher.run(binary, names_of(arm, header.suite), plant)
    if process.plant != plant:
        raise GateError(f"{binary}: planted {process.plant}, not {plant}")
    for name, reading in process.readings.items():
        if not all(seconds > 0 for seconds in reading.cublas_s):
            raise GateError(f"{binary}: {name}: no time of cuBLAS; recordings need a GPU")
    return process


def _recorded(header: Header, step: Step, process: Process) -> RecordedProcess:
    return RecordedProcess(
        round=step.round,
        **step.arm._asdict(),
        binary=_digest(header.binary_of(step.arm)),
        started=process.started or "",
        wall_s=process.wall_s,
        conditions=process.conditions,
        rows={name: RecordedReading.of(reading) for name, reading in process.readings.items()},
    )
