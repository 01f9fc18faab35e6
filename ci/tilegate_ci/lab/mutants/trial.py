"""The mutants of one file: compiled, linked and run in a folder of their own, until a test is red.

Those with a switch are compiled together, once: a test runs once to see which of them it reaches,
and then once for each of these. The others are compiled one by one."""

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tilegate_ci.core import child
from tilegate_ci.core.files import GateError, message
from tilegate_ci.lab.mutants.build import Build, CTest, TrialStep
from tilegate_ci.lab.mutants.rules import Mutant, plant, plant_switches

_COMPILE_S = 1200.0
_MOST_SWITCHES = 1000  # of a file: removals.cpp has room for so many
_SKIPPED = 77
_TELLING = re.compile(
    r"fails the check|HAZARD|additions|is no sum|[Ff]ailure|FAILED|error|Error|->"
)


@dataclass(frozen=True)
class Outcome:
    """`by` is the test that was red, `why` the first line that says so."""

    outcome: str  # killed, survived, same code, does not compile
    by: str = ""
    why: str = ""


class Runner:
    """Runs tests; those that use much memory one at a time."""

    def __init__(self) -> None:
        self._alone = threading.Lock()
        self._limits: dict[str, float] = {}
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)

    def run(
        self, test: CTest, command: Sequence[str], limit_s: float, **environment: str
    ) -> tuple[int | None, str]:
        with self._alone if test.locks else contextlib.nullcontext():
            return execute(command, limit_s, test.folder, {**test.environment, **environment})

    def limit(self, test: CTest) -> float:
        """Seconds that the test may take with a mutant."""
        with self._locks[test.name]:
            if test.name not in self._limits:
                self._limits[test.name] = self.limit_of(test, test.command)
            return self._limits[test.name]

    def limit_of(self, test: CTest, command: Sequence[str], **environment: str) -> float:
        """As limit, by how long it takes without a mutant; GateError where it is red then."""
        began = time.monotonic()
        status, output = self.run(test, command, 900, **environment)
        if status not in (0, _SKIPPED):
            tail = "\n".join(output.splitlines()[-5:])
            raise GateError(f"{test.name} is red without any mutant:\n{tail}")
        return 20 + 8 * (time.monotonic() - began)


class Trial:
    """A scratch copy of the sources, and what is compiled from it."""

    def __init__(self, build: Build, folder: Path, runner: Runner) -> None:
        self._build, self._runner = build, runner
        self._tree, self._made = folder / "tree", folder / "made"
        shutil.rmtree(folder, ignore_errors=True)
        ignore = shutil.ignore_patterns("__pycache__")
        for name in ("kernels", "tests"):
            shutil.copytree(build.repository / name, self._tree / name, ignore=ignore)
        self._removals = folder / "removals.o"
        self._compiled: dict[str, Path] = {}  # of the mutants of now, by the name of the object

    def together(
        self, mutants: Sequence[Mutant], steps: Sequence[TrialStep]
    ) -> Iterator[tuple[Mutant, Outcome]]:
        """Of mutants with switches in one file; of those only that a test reaches: the others may
        be in a constant expression."""
        left = set(mutants)
        while left:
            round_of = _apart(left)
            left -= {*round_of}
            yield from self._together(round_of, steps)

    def _together(
        self, mutants: Sequence[Mutant], steps: Sequence[TrialStep]
    ) -> Iterator[tuple[Mutant, Outcome]]:
        left = dict(enumerate(mutants))
        reached_by_any = set[int]()
        with self._changed(mutants[0].file):
            for step in steps:
                if not left or not self._compile_switches(left, step.objects):
                    break
                program, said = self._link(step, step.objects, [self._removals_object()])
                if program is None:
                    raise GateError(f"{step.program} with switches cannot be linked: {said}")
                for test in step.tests:
                    if not left:
                        return
                    command = self._command(step, test, program)
                    reached, limit = self._reached(test, command)
                    reached_by_any |= reached
                    for number in sorted(reached & left.keys()):
                        removed = {"TILEGATE_REMOVED": str(number)}
                        outcome = self._outcome(test, command, limit, **removed)
                        if outcome is not None:
                            yield left.pop(number), outcome
        for number in sorted(reached_by_any & left.keys()):
            yield left[number], self.alone(left[number], steps, only_code=True)

    def alone(self, mutant: Mutant, steps: Sequence[TrialStep], only_code: bool = False) -> Outcome:
        """`only_code`: no test sees it, is its code that of the original?"""
        differs = not steps
        with self._changed(mutant.file):
            plant(self._tree, mutant)
            for step in steps:
                if self._compile(step.objects) is not None:
                    return Outcome("does not compile")
                changed = [
                    name
                    for name in step.objects
                    if fingerprint(self._build.folder / name) != fingerprint(self._compiled[name])
                ]
                if not changed:
                    continue
                differs = True
                if only_code:
                    break
                program, said = self._link(step, changed)
                if program is None:
                    return Outcome("does not compile", why=_telling(said))
                for test in step.tests:
                    command, limit = self._command(step, test, program), self._runner.limit(test)
                    outcome = self._outcome(test, command, limit)
                    if outcome is not None:
                        return outcome
        return Outcome("survived" if differs else "same code")

    @contextlib.contextmanager
    def _changed(self, file: str) -> Iterator[None]:
        """Within it the copy of the file, and what is compiled from it, may be changed."""
        shutil.rmtree(self._made, ignore_errors=True)
        self._made.mkdir()
        self._compiled.clear()
        try:
            yield
        finally:
            shutil.copy2(self._build.repository / file, self._tree / file)

    def _compile_switches(self, left: dict[int, Mutant], names: Sequence[str]) -> bool:
        """Compiles what is missing of the objects. Where switches do not compile, as of an
        expression that is no number, their mutants are dropped from `left` and all is compiled
        again; False when that leaves none."""
        file = next(iter(left.values())).file
        header = self._tree / "tests/mutants/planted.hpp"
        while left:
            if not self._compiled:
                shutil.copy2(self._build.repository / file, self._tree / file)
                plant_switches(self._tree, file, left.items())
            said = self._compile(names, header)
            if said is None:
                return True
            lines = {int(n) for n in re.findall(rf"{re.escape(file)}:(\d+)", said)}
            wrong = [n for n, mutant in left.items() if mutant.line in lines]
            self._compiled.clear()
            for number in wrong or [*left]:
                del left[number]
        return False

    def _compile(self, names: Sequence[str], header: Path | None = None) -> str | None:
        """What is missing of the objects. What the compiler said where one does not compile."""
        folder = self._build.folder
        for name in names:
            if name in self._compiled:
                continue
            base = self._made / f"{len(self._compiled)}"
            command = in_tree(self._build.command(name), self._build.repository, self._tree, header)
            command = command.partition(" && /usr/bin/cmake -E cmake_transform_depfile")[0]
            stem = re.escape(name.removesuffix(".o"))
            command = re.sub(rf"(?:{re.escape(str(folder))}/)?{stem}(?=\.)", str(base), command)
            command = command if " && " in command else f"{command} -w"
            self._compiled[name] = base.with_suffix(".o")
            status, said = execute(["sh", "-c", command], _COMPILE_S, folder)
            if status != 0:
                return said
        return None

    def _removals_object(self) -> Path:
        if not self._removals.exists():
            source = self._tree / "tests/counters/removals.cpp"
            command = ["c++", "-std=c++20", "-O1", "-fPIC", "-c", source, "-o", self._removals]
            child.output([*map(str, command)])
        return self._removals

    def _link(
        self, step: TrialStep, changed: Sequence[str], more: Sequence[Path] = ()
    ) -> tuple[Path | None, str]:
        """The program; None and what the linker said where there is none."""
        program = self._made / Path(step.program).name
        words, objects = [], [str(self._compiled[name]) for name in changed] + [*map(str, more)]
        for word in shlex.split(self._build.command(step.program)):
            if word in changed:  # an object of the program itself
                word = str(self._compiled[word])
                objects.remove(word)
            words.append(str(program) if word == step.program else word)
        at = words.index("-o")
        # First come, first linked: the archives' own objects are then left out.
        command = shlex.join([*words[:at], *objects, *words[at:]]).replace("'&&'", "&&")
        status, said = execute(["sh", "-c", command], _COMPILE_S, self._build.folder)
        return (None if status else program), said

    def _command(self, step: TrialStep, test: CTest, program: Path) -> list[str]:
        original = str(self._build.folder / step.program)
        words = [str(program) if word == original else word for word in test.command]
        return [*words, "--gtest_fail_fast"] if "--gtest_brief=1" in words else words

    def _reached(self, test: CTest, command: Sequence[str]) -> tuple[set[int], float]:
        """The numbers of the switches that a test reaches, and how long it may take. A test that
        the switches themselves turn red, as one that counts accesses, is left out."""
        path = self._made / "reached"
        path.write_text("")
        try:
            limit = self._runner.limit_of(test, command, TILEGATE_REACHED=str(path))
        except GateError as problem:
            message(f"left out with switches: {problem}")
            return set(), 0.0
        return {int(number) for number in path.read_text().split()}, limit

    def _outcome(
        self, test: CTest, command: Sequence[str], limit: float, **environment: str
    ) -> Outcome | None:
        """None where the test does not see the mutant."""
        status, output = self._runner.run(test, command, limit, **environment)
        if status is None:
            return Outcome("killed", test.name, f"not done after {limit:.0f} s")
        if status in (0, _SKIPPED):
            return None
        return Outcome("killed", test.name, _telling(output) or f"ended with {status}")


def _apart(mutants: set[Mutant]) -> list[Mutant]:
    """Mutants that can be switches in one source: no two change the same part of a line, and none
    overlaps another but by holding it."""
    found: list[Mutant] = []
    for mutant in sorted(mutants, key=lambda each: (each.line, each.begin, -each.end)):
        span = mutant.begin, mutant.end
        here = [(each.begin, each.end) for each in found if each.line == mutant.line]
        if len(found) < _MOST_SWITCHES and all(
            end <= span[0] or (begin <= span[0] and span[1] <= end and (begin, end) != span)
            for begin, end in here
        ):
            found.append(mutant)
    return found


def in_tree(command: str, repository: Path, tree: Path, header: Path | None = None) -> str:
    """The command for the sources of another tree, with messages and records of lines as if they
    were the repository's; `header` is included before the source."""
    moved = re.sub(rf"{re.escape(str(repository))}/(?=kernels\b|tests\b)", f"{tree}/", command)
    compiler = r"(?<!\S)((?:\S*/)?(?:c\+\+|g\+\+|clang\+\+)(?:-\d+)?) "
    moved = re.sub(compiler, rf"\1 -ffile-prefix-map={tree}={repository} ", moved)
    if header is None:
        return moved
    return moved.replace(" -ffile-prefix-map", f" -include {header} -ffile-prefix-map", 1)


def execute(
    command: Sequence[str],
    limit: float,
    folder: str | Path = ".",
    environment: Mapping[str, str] = MappingProxyType({}),
) -> tuple[int | None, str]:
    """Its status, None where it was not done in time, and what it printed."""
    try:
        done = child.run(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            errors="replace",
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout


def fingerprint(path: Path) -> str:
    """Of the machine code and the data of an object; where it was compiled makes no difference."""
    if b".nvFatBinSegment" in path.read_bytes():
        code = child.output(["cuobjdump", "-sass", str(path)])
        code += child.output(["objdump", "-dr", str(path)])
        return re.sub(r"tmpxft_\w+|\S+\.o\b", "", code)
    with tempfile.TemporaryDirectory() as folder:
        stripped = Path(folder) / "stripped.o"
        child.output(["objcopy", "--strip-unneeded", str(path), str(stripped)])
        return hashlib.sha256(stripped.read_bytes()).hexdigest()


def _telling(output: str) -> str:
    lines = [line.strip() for line in output.splitlines()]
    return next((line for line in lines if _TELLING.search(line)), "")[:200]
