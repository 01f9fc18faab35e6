"""One mutant: compiled, linked and run in a folder of its own, until a test is red."""

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tilegate_ci.core.files import GateError
from tilegate_ci.lab.mutants.ninja import Build, CTest, in_tree
from tilegate_ci.lab.mutants.reach import TrialStep
from tilegate_ci.lab.mutants.rules import Mutant, apply

_COMPILE_S = 600.0
_running: set[int] = set()  # process groups
_TELLING = re.compile(
    r"fails the check|HAZARD|additions|is no sum|[Ff]ailure|FAILED|error|Error|->"
)


@dataclass(frozen=True)
class TrialOutcome:
    """`by` is the test that was red, `why` the first line that says so."""

    outcome: str  # killed, survived, same code, does not compile
    by: str = ""
    why: str = ""


@dataclass
class Baselines:
    """How long each test takes without a mutant; GateError where it is red then."""

    seconds: dict[str, float] = field(default_factory=dict)
    alone: threading.Lock = field(default_factory=threading.Lock)  # of tests that use much memory
    _locks: dict[str, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))

    def limit(self, test: CTest) -> float:
        with self._locks[test.name]:
            if test.name not in self.seconds:
                began = time.monotonic()
                status, output = execute(test.command, 900, test)
                if status not in (0, 77):
                    tail = "\n".join(output.splitlines()[-5:])
                    raise GateError(f"{test.name} is red without any mutant:\n{tail}")
                self.seconds[test.name] = time.monotonic() - began
            return 20 + 8 * self.seconds[test.name]


class Trial:
    """A scratch copy of the sources; one mutant is in it at a time."""

    def __init__(self, build: Build, folder: Path, baselines: Baselines) -> None:
        self._build, self._folder, self._baselines = build, folder, baselines
        self._tree = folder / "tree"
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("kernels", "tests"):
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(build.repository / name, self._tree / name, ignore=ignore)

    def run(self, mutant: Mutant, steps: Sequence[TrialStep]) -> TrialOutcome:
        path = self._tree / mutant.file
        shutil.rmtree(self._folder / "made", ignore_errors=True)
        (self._folder / "made").mkdir()
        apply(self._tree, mutant)
        try:
            return self._outcome(steps)
        finally:
            shutil.copy2(self._build.repository / mutant.file, path)

    def _outcome(self, steps: Sequence[TrialStep]) -> TrialOutcome:
        differs = not steps
        compiled: dict[str, Path] = {}
        for step in steps:
            for name in step.objects:
                if name not in compiled and not self._compile(name, compiled):
                    return TrialOutcome("does not compile")
            changed = [name for name in step.objects if not self._is_same(name, compiled[name])]
            if not changed:
                continue
            differs = True
            outcome = self._run_tests(step, {name: compiled[name] for name in changed})
            if outcome is not None:
                return outcome
        return TrialOutcome("survived" if differs else "same code")

    def _compile(self, name: str, compiled: dict[str, Path]) -> bool:
        base = self._folder / "made" / f"{len(compiled)}"
        command = in_tree(self._build.command(name), self._build.repository, self._tree)
        command = command.partition(" && /usr/bin/cmake -E cmake_transform_depfile")[0]
        stem = re.escape(name.removesuffix(".o"))
        command = re.sub(
            rf"(?:{re.escape(str(self._build.folder))}/)?{stem}(?=\.)", str(base), command
        )
        status, _ = execute(["sh", "-c", f"{command} -w" if " && " not in command else command],
                            _COMPILE_S, folder=self._build.folder)  # fmt: skip
        compiled[name] = base.with_suffix(".o")
        return status == 0

    def _is_same(self, name: str, made: Path) -> bool:
        return fingerprint(self._build.folder / name) == fingerprint(made)

    def _run_tests(self, step: TrialStep, changed: dict[str, Path]) -> TrialOutcome | None:
        program = self._folder / "made" / Path(step.program).name
        words, objects = [], [str(path) for path in changed.values()]
        for word in shlex.split(self._build.command(step.program)):
            if word in changed:  # an object of the program itself
                word = str(changed[word])
                objects.remove(word)
            words.append(str(program) if word == step.program else word)
        at = words.index("-o")
        # First come, first linked: the archives' own objects are then left out.
        command = shlex.join([*words[:at], *objects, *words[at:]]).replace("'&&'", "&&")
        status, output = execute(["sh", "-c", command], _COMPILE_S, folder=self._build.folder)
        if status:
            return TrialOutcome("does not compile", why=_telling(output))
        original = str(self._build.folder / step.program)
        for test in step.tests:
            alone = self._baselines.alone if test.locks else contextlib.nullcontext()
            words = [str(program) if word == original else word for word in test.command]
            if "--gtest_brief=1" in words:
                words.append("--gtest_fail_fast")
            with alone:
                limit = self._baselines.limit(test)
                status, output = execute(words, limit, test)
            if status is None:
                return TrialOutcome("killed", test.name, f"not done after {limit:.0f} s")
            if status not in (0, 77):
                return TrialOutcome("killed", test.name, _telling(output) or f"ended with {status}")
        return None


def execute(
    command: Sequence[str], limit: float, test: CTest | None = None, folder: Path | None = None
) -> tuple[int | None, str]:
    """Its status, None where it was not done in time, and what it printed."""
    variables = dict(word.split("=", 1) for word in test.environment) if test else {}
    process = subprocess.Popen(
        command,
        cwd=test.folder if test else folder,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    _running.add(process.pid)
    try:
        output, _ = process.communicate(timeout=limit)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        _kill(process.pid)
        process.wait()
        _running.discard(process.pid)


def kill_running() -> None:
    """What other threads wait for, where the command ends before them."""
    for group in list(_running):
        _kill(group)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def fingerprint(path: Path) -> str:
    """Of the machine code and the data of an object; where it was compiled makes no difference."""
    if b".nvFatBinSegment" in path.read_bytes():
        code = _said("cuobjdump", "-sass", str(path)) + _said("objdump", "-dr", str(path))
        return re.sub(r"tmpxft_\w+|\S+\.o\b", "", code)
    with tempfile.TemporaryDirectory() as folder:
        stripped = Path(folder) / "stripped.o"
        _said("objcopy", "--strip-unneeded", str(path), str(stripped))
        return hashlib.sha256(stripped.read_bytes()).hexdigest()


def _said(*command: str) -> str:
    try:
        status, output = execute(command, 120)
    except OSError as problem:
        raise GateError(f"{command[0]} cannot be run: {problem.strerror}") from problem
    if status:
        raise GateError(f"{' '.join(command)}: {output.strip()}")
    return output


def _telling(output: str) -> str:
    lines = [line.strip() for line in output.splitlines()]
    found = next((line for line in lines if _TELLING.search(line)), "")
    return found[:200]
