"""Runs the bench binary, one process at a time, and reads what it measured."""

import csv
import shlex
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tilegate_ci.core import child
from tilegate_ci.core.files import GateError
from tilegate_ci.core.names import canonical_name
from tilegate_ci.formats.collect import read_process
from tilegate_ci.measure import conditions
from tilegate_ci.measure.suite import filter_of, shapes_of
from tilegate_ci.model import Conditions, Process

TIMEOUT_S = 300.0
PLACES = 8  # in memory, at which pairs time a benchmark: one of them alone is a coin toss
MIN_TIME_S = 0.02  # per benchmark, unless the command line says otherwise


@dataclass(frozen=True)
class Launcher:
    min_time_s: float
    seed: int = 1
    configurations: int = 0  # of each stage, to be there beside its own choice
    placements: int = 1

    def command(self, binary: Path, names: Sequence[str], plant: str | None = None) -> list[str]:
        command = [
            str(binary),
            f"--shapes={shapes_of(names)}",
            f"--benchmark_filter={filter_of(names)}",
            f"--benchmark_min_time={self.min_time_s:g}",
            f"--seed={self.seed}",
            f"--placements={self.placements}",
        ]
        if self.configurations:
            command.append(f"--configurations={self.configurations}")
        return [*command, f"--plant={plant}"] if plant else command

    def run(self, binary: Path, names: Sequence[str], plant: str | None = None) -> Process:
        """GateError unless exactly the benchmarks `names` ran and were verified."""
        with tempfile.TemporaryDirectory(prefix="tilegate-") as folder:
            report, replays = Path(folder) / "report.json", Path(folder) / "replays.csv"
            files = [f"--samples={replays}", f"--benchmark_out={report}"]
            before = conditions.read()
            started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            start = time.monotonic()
            _run([*self.command(binary, names, plant), *files, "--benchmark_out_format=json"])
            wall_s = time.monotonic() - start
            after = conditions.read()
            process, seconds = read_process(str(report)), read_replays(replays)
        _check_complete(process, set(seconds), names, str(binary))
        readings = {
            name: reading.model_copy(
                update=dict(zip(("place", "rung_s", "cublas_s"), seconds[name]))
            )
            for name, reading in process.readings.items()
        }
        around = Conditions(before=before, after=after)
        update = {"started": started, "wall_s": round(wall_s, 3), "conditions": around}
        return process.model_copy(update={**update, "readings": readings, "source": str(binary)})


def _run(command: Sequence[str]) -> None:
    try:
        done = child.run(command, capture_output=True, timeout=TIMEOUT_S)
    except OSError as problem:
        raise GateError(f"{command[0]}: cannot be run: {problem.strerror}") from problem
    except subprocess.TimeoutExpired as problem:
        raise GateError(f"{command[0]}: not finished after {TIMEOUT_S:g} s") from problem
    if done.returncode:
        errors = [line for line in done.stdout.splitlines() if "ERROR OCCURRED" in line]
        reasons = "\n".join([*errors, *done.stderr.strip().splitlines()[-3:]])
        raise GateError(f"{reasons}\nexit code {done.returncode} of `{shlex.join(command)}`")


def read_replays(path: Path) -> dict[str, tuple[list[int], list[float], list[float]]]:
    """By benchmark, of each replay its place and the seconds of the rung and of cuBLAS."""
    replays: dict[str, tuple[list[int], list[float], list[float]]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.reader(stream))
        if not rows or rows[0] != ["benchmark", "place", "rung_s", "cublas_s"]:
            raise GateError(f"{path}: not written by bench --samples")
        for number, (name, place, *seconds) in enumerate(rows[1:], start=2):
            rung, cublas = map(float, seconds)
            if not (0 < rung < float("inf") and 0 <= cublas < float("inf")):
                raise ValueError(f"line {number}: no times: {', '.join(seconds)}")
            series = replays.setdefault(canonical_name(name), ([], [], []))
            series[0].append(int(place))
            series[1].append(rung)
            series[2].append(cublas)
    except (OSError, ValueError) as problem:
        raise GateError(f"{path}: truncated or malformed: {problem}") from problem
    return replays


def _check_complete(
    process: Process, replayed: set[str], names: Sequence[str], source: str
) -> None:
    wanted, found = set(names), set(process.readings)
    if wanted != found or wanted != replayed:
        lacking = sorted(wanted - (found & replayed))
        message = f"lacks {', '.join(lacking)}" if lacking else "ran more than it was asked for"
        raise GateError(f"{source}: {message}")
    unverified = sorted(name for name, row in process.readings.items() if not row.verified)
    if unverified:
        raise GateError(f"{source}: not verified: {', '.join(unverified)}")
