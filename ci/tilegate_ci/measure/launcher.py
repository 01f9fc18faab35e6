"""Runs the bench binary, one process at a time, and reads what it measured."""

import shlex
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tilegate_ci.core import child
from tilegate_ci.core.files import GateError, read_text
from tilegate_ci.formats.bench import read_process, with_replays
from tilegate_ci.measure import conditions
from tilegate_ci.measure.suite import filter_of, shapes_of
from tilegate_ci.model import Conditions, Process

TIMEOUT_S = 300.0
PLACES = 8  # addresses at which pairs time a benchmark; the time depends on the address
MIN_TIME_S = 0.02  # per benchmark, unless the command line says otherwise


def bracketed(measure: Callable[[], Process]) -> Process:
    """The process, with when it ran, how long, and the GPU's conditions around it."""
    before, start = conditions.read(), time.monotonic()
    started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    process, wall_s = measure(), time.monotonic() - start
    around = Conditions(before=before, after=conditions.read())
    update = {"started": started, "wall_s": round(wall_s, 3), "conditions": around}
    return process.model_copy(update=update)


@dataclass(frozen=True)
class Launcher:
    """`replays`: each replay's time too, which recordings and tuning need."""

    min_time_s: float = MIN_TIME_S
    seed: int = 1
    configurations: int = 0  # of each stage, to be there beside its own choice
    placements: int = 1
    replays: bool = False

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
        process = launch(self.command(binary, names, plant), self.replays)
        _check_complete(process, names, str(binary))
        return process


def launch(
    command: Sequence[str], replays: bool = False, timeout_s: float | None = TIMEOUT_S
) -> Process:
    """One process of bench, by this command."""
    with tempfile.TemporaryDirectory(prefix="tilegate-") as folder:
        report, samples = Path(folder) / "report.json", Path(folder) / "replays.csv"
        files = [f"--benchmark_out={report}", "--benchmark_out_format=json"]
        files += [f"--samples={samples}"] * replays

        def process() -> Process:
            _run([*command, *files], timeout_s)
            return read_process(read_text(report), str(report))

        found = bracketed(process)
        found = with_replays(found, samples) if replays else found
    return found.model_copy(update={"source": command[0]})


def _run(command: Sequence[str], timeout_s: float | None) -> None:
    done = child.finished(command, timeout_s, capture_output=True)
    if done.returncode:
        errors = [line for line in done.stdout.splitlines() if "ERROR OCCURRED" in line]
        reasons = "\n".join([*errors, *done.stderr.strip().splitlines()[-3:]])
        raise GateError(f"{reasons}\nexit code {done.returncode} of `{shlex.join(command)}`")


def _check_complete(process: Process, names: Sequence[str], source: str) -> None:
    wanted, found = set(names), set(process.readings)
    if wanted != found:
        lacking = sorted(wanted - found)
        message = f"lacks {', '.join(lacking)}" if lacking else "ran more than it was asked for"
        raise GateError(f"{source}: {message}")
    unverified = sorted(name for name, row in process.readings.items() if not row.verified)
    if unverified:
        raise GateError(f"{source}: not verified: {', '.join(unverified)}")
