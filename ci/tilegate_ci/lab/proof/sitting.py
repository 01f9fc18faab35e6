"""Records one sitting: which processes it takes, in which order, and the file that they fill."""

import hashlib
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilegate_ci.core.files import GateError, read_bytes
from tilegate_ci.core.names import rung_of
from tilegate_ci.core.progress import Steps, message
from tilegate_ci.lab.proof import recording
from tilegate_ci.lab.proof.recording import Arm, RecordedProcess, RecordedReading, Step
from tilegate_ci.measure.launcher import Launcher
from tilegate_ci.measure.suite import CANARIES
from tilegate_ci.model import Process

SUITE_ARM = Arm()


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
    order within a round is drawn anew each time, by the sitting's name."""
    steps = []
    for number in range(max(processes, rounds)):
        here = [Step(number, arm) for arm in arms] if number < rounds else []
        if number < processes:
            here.append(Step(number, SUITE_ARM))
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

    def fields(self, device: Any) -> dict[str, Any]:
        return {
            "schema": 1,
            "sitting": self.sitting,
            "commit": self.commit,
            "device": device,
            "protocol": {"min_time_s": self.launcher.min_time_s, "seed": self.launcher.seed},
            "benchmarks": list(self.suite),
            "processes": [],
        }


def record(
    header: Header, steps: Sequence[Step], out: Path, time_limit_s: float | None = None
) -> int:
    """Runs the steps that `out` does not hold yet, and writes it after each; how many are left,
    because the next one might not end within the time limit."""
    old = recording.load(str(out)) if out.exists() else None
    if old:
        _check_goes_on(header, steps, old)
    left = [step for step in steps if old is None or step not in old.processes]
    if old:
        message(f"{out}: {len(old.processes)} processes are there, {len(left)} to go")
    fields = old.fields if old else None
    start, slowest = time.monotonic(), 0.0
    longest: dict[Arm, float] = {}
    with Steps() as progress:
        for number, step in enumerate(left):
            likely, spent = longest.get(step.arm, slowest), time.monotonic() - start
            if number and time_limit_s is not None and spent + 1.2 * likely > time_limit_s:
                return len(left) - number
            process = _measured(header, step.arm)
            fields = fields or header.fields(process.device.fields)
            if process.device.fields != fields["device"]:
                raise GateError(f"{out}: another device: {process.device.fields}")
            fields["processes"].append(_recorded(header, step, process))
            recording.save(out, fields)
            longest[step.arm] = max(longest.get(step.arm, 0.0), process.wall_s)
            slowest = max(slowest, process.wall_s)
            later = left[number + 1 :]
            left_s = sum(longest.get(other.arm, slowest) for other in later)
            progress.done(title(step.arm), process.wall_s, len(later), left_s)
    return 0


def _check_goes_on(header: Header, steps: Sequence[Step], old: recording.Recording) -> None:
    """GateError where the file is of another sitting, or of other binaries. Older recordings do
    not say which binary it was."""
    for key, value in header.fields(old.fields["device"]).items():
        if key != "processes" and old.fields[key] != value:
            raise GateError(
                f"{old.path}: {key} is {old.fields[key]!r} there, {value!r} now; give another --out"
            )
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


def _recorded(header: Header, step: Step, process: Process) -> dict[str, Any]:
    recorded = RecordedProcess(
        round=step.round,
        **step.arm._asdict(),
        binary=_digest(header.binary_of(step.arm)),
        started=process.started or "",
        wall_s=process.wall_s,
        conditions=process.conditions,
        rows={name: RecordedReading.of(reading) for name, reading in process.readings.items()},
    )
    return recorded.model_dump(mode="json")
