"""Records one sitting: which processes it takes, in which order, and the file that they fill."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilegate_ci.core.files import GateError
from tilegate_ci.measure.launcher import Launcher, Measured
from tilegate_ci.measure.suite import rung_of
from tilegate_ci.proof import recording

# Beside the benchmarks of a rung that is run alone: cuBLAS against itself, which no change moves.
CANARIES = ("Cublas/1024x1024x1024", "Cublas/2048x2048x2048")


@dataclass(frozen=True)
class Arm:
    """A kind of process. `rung` alone is run, or the whole suite where it is None. `build` names
    the binary where it is not the commit's own: a mutation, a base to compare with."""

    binary: Path
    rung: str | None = None
    plant_percent: float | None = None
    build: str | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.rung, self.plant_percent, self.build)

    @property
    def title(self) -> str:
        what = f"{self.rung} alone" if self.rung else "the suite"
        if self.plant_percent:
            what = f"{self.rung}, {self.plant_percent:g} % planted"
        return f"{what}, {self.build}" if self.build else what

    def names(self, suite: Sequence[str]) -> list[str]:
        if self.rung is None:
            return list(suite)
        return [name for name in suite if rung_of(name) == self.rung or name in CANARIES]


@dataclass(frozen=True)
class Step:
    round: int
    arm: Arm

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.round, *self.arm.key)


def plan(
    sitting: str, suite_arm: Arm, processes: int, arms: Sequence[Arm], rounds: int
) -> list[Step]:
    """`processes` of the suite, and `rounds` of each arm, one a round beside a suite process; the
    order within a round is drawn anew each time, by the sitting's name."""
    steps = []
    for number in range(max(processes, rounds)):
        here = [Step(number, arm) for arm in arms] if number < rounds else []
        if number < processes:
            here.append(Step(number, suite_arm))
        random.Random(f"{sitting}:{number}").shuffle(here)
        steps += here
    return steps


@dataclass(frozen=True)
class Header:
    """What every process of a sitting shares."""

    sitting: str
    commit: str
    suite: Sequence[str]
    launcher: Launcher

    def document(self, device: Any) -> dict[str, Any]:
        return {
            "schema": recording.SCHEMA,
            "sitting": self.sitting,
            "commit": self.commit,
            "device": dict(device),
            "protocol": {"min_time_s": self.launcher.min_time_s, "seed": self.launcher.seed},
            "benchmarks": list(self.suite),
            "processes": [],
        }


def record(
    header: Header,
    steps: Sequence[Step],
    out: Path,
    tell: Callable[[str], None],
    time_limit_s: float | None = None,
) -> int:
    """Runs the steps that `out` does not hold yet, and writes it after each; how many are left,
    because the next one might not end within the time limit."""
    document = _resumed(header, out)
    done = {_key(process): process for process in document["processes"]} if document else {}
    _check_binaries(steps, done, out)
    left = [step for step in steps if step.key not in done]
    if done:
        tell(f"{out}: {len(done)} processes are there, {len(left)} to go")
    start, slowest = time.monotonic(), 0.0
    longest: dict[tuple[Any, ...], float] = {}
    for number, step in enumerate(left):
        spent = time.monotonic() - start
        likely = longest.get(step.arm.key, slowest)
        if number and time_limit_s is not None and spent + 1.2 * likely > time_limit_s:
            return len(left) - number
        measured = _measure(header, step.arm)
        if document is None:
            document = header.document(measured.report.device)
        if dict(measured.report.device) != document["device"]:
            raise GateError(f"{out}: another device: {measured.report.device}")
        document["processes"].append(_process(step, measured))
        recording.save(out, document)
        longest[step.arm.key] = max(longest.get(step.arm.key, 0.0), measured.wall_s)
        slowest = max(slowest, measured.wall_s)
        rest = sum(longest.get(later.arm.key, slowest) for later in left[number + 1 :])
        tell(
            f"{number + 1} of {len(left)}: {step.arm.title}, {measured.wall_s:.1f} s; "
            f"about {rest / 60:.1f} min left"
        )
    return 0


def _resumed(header: Header, out: Path) -> dict[str, Any] | None:
    if not out.exists():
        return None
    old = dict(recording.load(str(out)).fields)
    for key, value in header.document(old["device"]).items():
        if key != "processes" and old[key] != value:
            raise GateError(
                f"{out}: {key} is {old[key]!r} there, {value!r} now; give another --out"
            )
    return {**old, "processes": list(old["processes"])}


def _check_binaries(
    steps: Sequence[Step], done: Mapping[tuple[Any, ...], Mapping[str, Any]], out: Path
) -> None:
    """Older recordings do not say which binary it was."""
    known = [
        (step.arm, done[step.key]["binary"]) for step in steps if "binary" in done.get(step.key, ())
    ]
    now = {path: _digest(path) for path in {arm.binary for arm, _ in known}}
    for arm, was in known:
        if was != now[arm.binary]:
            raise GateError(
                f"{out}: {arm.title}: recorded with another binary than {arm.binary} is now; "
                "give another --out"
            )


def _digest(binary: Path) -> str:
    try:
        return hashlib.sha256(binary.read_bytes()).hexdigest()
    except OSError as problem:
        raise GateError(f"{binary}: cannot be read: {problem.strerror or problem}") from problem


def _key(process: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(process.get(key) for key in ("round", "rung", "plant_percent", "build"))


def _measure(header: Header, arm: Arm) -> Measured:
    plant = f"{arm.rung}:{arm.plant_percent:g}" if arm.plant_percent else None
    measured = header.launcher.run(arm.binary, arm.names(header.suite), plant)
    if measured.report.plant != plant:
        raise GateError(f"{arm.binary}: planted {measured.report.plant}, not {plant}")
    return measured


def _process(step: Step, measured: Measured) -> dict[str, Any]:
    rows = {}
    for name, (rung_s, cublas_s) in measured.replays.items():
        if not all(seconds > 0 for seconds in cublas_s):
            raise GateError(f"{step.arm.binary}: {name}: no time of cuBLAS; recordings need a GPU")
        planted = measured.report.readings[name].planted_percent
        rows[name] = recording.make_row(rung_s, cublas_s, planted)
    return {
        "round": step.round,
        "rung": step.arm.rung,
        "plant_percent": step.arm.plant_percent,
        "build": step.arm.build,
        "binary": _digest(step.arm.binary),
        "started": measured.started,
        "wall_s": measured.wall_s,
        "conditions": {"before": dict(measured.before), "after": dict(measured.after)},
        "rows": rows,
    }
