"""Times the configurations that lead for some problems, as far as the rows at hand do not know."""

import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilegate_ci.checks.tuning.rows import STAGE, Timing
from tilegate_ci.core import child
from tilegate_ci.core.files import GateError
from tilegate_ci.core.names import canonical_name
from tilegate_ci.core.progress import Steps, message
from tilegate_ci.lab.tuning.code import code_of, is_current
from tilegate_ci.measure.launcher import Launcher
from tilegate_ci.model import Process

PROBLEMS_PER_PROCESS = 10


@dataclass(frozen=True)
class Leading:
    """A configuration among those that the cost models rank first for a problem."""

    problem: str
    configuration: str
    rank: int

    @property
    def name(self) -> str:
        return f"{STAGE}@{self.configuration}/{self.problem}"


@dataclass(frozen=True)
class Tuner:
    binary: Path
    launcher: Launcher  # with the number of configurations
    processes: int
    commit: str
    kernels: dict[str, str]

    def lead(self, problems: Sequence[str]) -> list[Leading]:
        """As bench lists them, the quickest of each problem first."""
        command = [
            str(self.binary),
            "--benchmark_list_tests",
            f"--shapes={','.join(problems)}",
            f"--configurations={self.launcher.configurations}",
            f"--benchmark_filter=^{STAGE}@",
        ]
        found: list[Leading] = []
        for line in _output(command).splitlines():
            stage, _, problem = canonical_name(line).partition("/")
            rank = 1 + sum(1 for leading in found if leading.problem == problem)
            found.append(Leading(problem, stage.partition("@")[2], rank))
        return found

    def classes(self, problems: Sequence[str]) -> dict[str, str]:
        """The class of each problem, as `plan` beside bench says."""
        cases = [f"{STAGE}/{problem}" for problem in problems]
        found = _output([str(self.binary.with_name("plan")), *cases])
        classes = re.findall(r"^  class ([^\s:]+)", found, flags=re.MULTILINE)
        if len(classes) != len(problems):
            raise GateError(f"{self.binary.with_name('plan')}: it does not say the classes")
        return dict(zip(problems, classes, strict=True))

    def gpu(self) -> str:
        """Its name, by a process that measures next to nothing."""
        quick = replace(self.launcher, min_time_s=1e-3)
        return quick.run(self.binary, [f"{STAGE}/64x64x64"]).device.name

    def tune(
        self,
        problems: Sequence[str],
        rows: Sequence[Timing],
        save: Callable[[Sequence[Timing]], None],
        time_limit_s: float | None,
    ) -> int:
        """Adds to `rows` what they lack, saved after each part of the work; rows of problems or
        configurations that lead no more, and those of other machine code, are dropped. How many
        problems are left by the time limit."""
        gpu, leading, classes = self.gpu(), self.lead(problems), self.classes(problems)
        known = {row.name: row for row in rows if row.gpu == gpu and self._is_current(row)}
        others = [row for row in rows if row.gpu != gpu]
        found = [
            replace(known[each.name], rank=each.rank, problem_class=classes[each.problem])
            for each in leading
            if each.name in known
        ]
        missing = [each for each in leading if each.name not in known]
        message(f"{gpu}: {len(found)} of {len(leading)} timings are there")
        save([*others, *found])
        parts = _parts(missing)
        start = time.monotonic()
        with Steps() as steps:
            for number, part in enumerate(parts):
                spent = time.monotonic() - start
                if number and time_limit_s and spent * (number + 1.2) / number > time_limit_s:
                    return len({each.problem for rest in parts[number:] for each in rest})
                measured = self._measure(part)
                found += [self._timing(each, classes, measured) for each in part]
                save([*others, *found])
                took, left = time.monotonic() - start - spent, len(parts) - number - 1
                left_s = (time.monotonic() - start) / (number + 1) * left
                steps.done(f"{part[0].problem} and others", took, left, left_s)
        return 0

    def _is_current(self, row: Timing) -> bool:
        return is_current(row.code, self.kernels)

    def _measure(self, part: Sequence[Leading]) -> list[Process]:
        names = [each.name for each in part]
        return [self.launcher.run(self.binary, names) for _ in range(self.processes)]

    def _timing(
        self, leading: Leading, classes: dict[str, str], processes: Sequence[Process]
    ) -> Timing:
        readings = [process.readings[leading.name] for process in processes]
        ratios = [reading.ratio_to_cublas or 0.0 for reading in readings]
        if not all(ratios):
            raise GateError(f"{leading.name}: no time of cuBLAS; tuning needs a GPU")
        seconds = statistics.median(statistics.median(reading.rung_s) for reading in readings)
        return Timing(
            problem_class=classes[leading.problem],
            problem=leading.problem,
            configuration=leading.configuration,
            rank=leading.rank,
            code=code_of(readings[0].kernels.split(), self.kernels, leading.name),
            gpu=processes[0].device.name,
            microseconds=1e6 * seconds,
            of_cublas=statistics.median(ratios),
            spread=max(ratios) / min(ratios) - 1,
            commit=self.commit,
        )


def _parts(missing: Sequence[Leading]) -> list[list[Leading]]:
    problems = list(dict.fromkeys(each.problem for each in missing))
    parts = []
    for first in range(0, len(problems), PROBLEMS_PER_PROCESS):
        chosen = {*problems[first : first + PROBLEMS_PER_PROCESS]}
        parts.append([each for each in missing if each.problem in chosen])
    return parts


def _output(command: Sequence[str]) -> str:
    try:
        done = child.run(command, capture_output=True)
    except OSError as problem:
        raise GateError(f"{command[0]}: cannot be run: {problem.strerror}") from problem
    if done.returncode:
        raise GateError(f"{command[0]}: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout
