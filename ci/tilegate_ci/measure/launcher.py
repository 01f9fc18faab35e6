"""Runs the bench binary, one process at a time, and reads what it measured."""

from __future__ import annotations

import csv
import shlex
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tilegate_ci.core.files import GateError, Node
from tilegate_ci.core.reader import parse_name
from tilegate_ci.measure import conditions
from tilegate_ci.measure.collect import Process, read_process
from tilegate_ci.measure.suite import SUITE, filter_of

TIMEOUT_S = 300.0
MIN_TIME_S = 0.05  # a benchmark, unless told otherwise


@dataclass(frozen=True)
class Measured:
    """One process: Google Benchmark's own report, every replay, and how the GPU was around it.
    A replay's seconds of cuBLAS are 0 where there is none."""

    report: Process
    replays: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    started: str
    wall_s: float
    before: Mapping[str, Any]
    after: Mapping[str, Any]


@dataclass(frozen=True)
class Launcher:
    """`suite` is the table of shapes, as --shapes reads it."""

    min_time_s: float
    seed: int = 1
    suite: Path = SUITE

    def command(self, binary: Path, names: Sequence[str], plant: str | None = None) -> list[str]:
        command = [
            str(binary),
            f"--shapes=@{self.suite}",
            f"--benchmark_filter={filter_of(names)}",
            f"--benchmark_min_time={self.min_time_s:g}",
            f"--seed={self.seed}",
        ]
        return [*command, f"--plant={plant}"] if plant else command

    def run(self, binary: Path, names: Sequence[str], plant: str | None = None) -> Measured:
        """GateError unless exactly the benchmarks `names` ran and were verified."""
        command = self.command(binary, names, plant)
        with tempfile.TemporaryDirectory(prefix="tilegate-") as folder:
            report, replays = Path(folder) / "report.json", Path(folder) / "replays.csv"
            before = conditions.read()
            started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            start = time.monotonic()
            _run(
                [
                    *command,
                    f"--samples={replays}",
                    f"--benchmark_out={report}",
                    "--benchmark_out_format=json",
                ]
            )
            wall_s = time.monotonic() - start
            after = conditions.read()
            measured = Measured(
                read_process(str(report)),
                read_replays(replays),
                started,
                round(wall_s, 3),
                before,
                after,
            )
        check_complete(measured, names, str(binary))
        return measured


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        )
    except OSError as problem:
        raise GateError(f"{command[0]}: cannot be run: {problem.strerror}") from problem
    except subprocess.TimeoutExpired as problem:
        raise GateError(f"{command[0]}: not finished after {TIMEOUT_S:g} s") from problem
    if done.returncode:
        errors = [line for line in done.stdout.splitlines() if "ERROR OCCURRED" in line]
        told = "\n".join([*errors, *done.stderr.strip().splitlines()[-3:]])
        raise GateError(f"{told}\nexit code {done.returncode} of `{shlex.join(command)}`")


def read_replays(path: Path) -> dict[str, tuple[list[float], list[float]]]:
    """By benchmark, the seconds of the rung and of cuBLAS of each replay."""
    replays: dict[str, tuple[list[float], list[float]]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.reader(stream))
        if not rows or rows[0] != ["benchmark", "rung_s", "cublas_s"]:
            raise GateError(f"{path}: not written by bench --samples")
        for number, (name, rung, cublas) in enumerate(rows[1:], start=2):
            node = Node(float(rung), str(path), f"line {number}")
            yardstick = Node(float(cublas), str(path), f"line {number}").finite()
            series = replays.setdefault(parse_name(name, node), ([], []))
            series[0].append(node.positive())
            series[1].append(yardstick)
    except (OSError, ValueError) as problem:
        raise GateError(f"{path}: truncated or malformed: {problem}") from problem
    return replays


def check_complete(measured: Measured, names: Sequence[str], source: str) -> None:
    wanted, found = set(names), set(measured.report.readings)
    if wanted != found or wanted != set(measured.replays):
        lacking = sorted(wanted - (found & set(measured.replays)))
        told = f"lacks {', '.join(lacking)}" if lacking else "ran more than it was asked for"
        raise GateError(f"{source}: {told}")
    unverified = sorted(n for n, r in measured.report.readings.items() if not r.verified)
    if unverified:
        raise GateError(f"{source}: not verified: {', '.join(unverified)}")
