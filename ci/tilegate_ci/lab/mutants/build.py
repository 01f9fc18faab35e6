"""Which objects and tests a mutant of a file reaches, by what the build tree of Ninja says."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from tilegate_ci.core.files import GateError
from tilegate_ci.formats.stages import Stage

# A header that many rungs share is tried with so many of them, the first and the last included.
_RUNGS_OF_SHARED = 3


@dataclass(frozen=True)
class Group:
    """Files of one kind. `tests` are regular expressions of names in ctest, those that see most
    faults in the least time first; RUNG stands for each rung in turn, and `name@RUNG` is the test
    with `--rung RUNG` after its command. Of plans and host code all mutants are tried."""

    title: str
    files: tuple[str, ...]
    tests: tuple[str, ...]
    programs: tuple[str, ...]
    of_rungs: bool = False
    all_mutants: bool = False


_SHARED = "kernels/common/include/tilegate/common"
_SHARED_PLANS = ("cost_model.hpp", "split_plan.hpp", "gpu_model.hpp", "grid.cuh", "*/plan.cuh")
_EXECUTOR = "kernels/device/cpu"
_LADDER = ("ladder_test", "api_test", "int8x3_test", "fp16x3_test", "models_test")
_COUNTED = ("watched_test", "tilegate_count")
_OF_RUNG = (
    r"ladder\.RUNG\..*",
    r"(int8x3|fp16x3|models)\..*|api\.Candidates",
    r"watched\.RUNG",
    r"counters\.baseline@RUNG",
)
GROUPS = (
    Group(
        "plans",
        ("kernels/[0-9]*/plan.hpp", *(f"{_SHARED}/{name}" for name in _SHARED_PLANS)),
        (r"api\.(Candidates|Split)", *_OF_RUNG),
        (*_LADDER, *_COUNTED),
        of_rungs=True,
        all_mutants=True,
    ),
    Group(
        "rungs",
        ("kernels/[0-9]*/*.cu*", "kernels/[0-9]*/*.hpp", "kernels/sgemm/*.cu*"),
        _OF_RUNG,
        (*_LADDER, *_COUNTED),
        of_rungs=True,
    ),
    Group(
        "device code that rungs share",
        (f"{_SHARED}/*",),
        _OF_RUNG,
        (*_LADDER, *_COUNTED),
        of_rungs=True,
    ),
    Group(
        "problems and checks",
        ("kernels/core/*.cpp",),
        (
            r"api\..*",
            r"ladder\.(SharedMemory|AsyncCopy|Sgemm)\.(ErrorsAreValues|BlasSemantics)",
            r"ladder\.AsyncCopy\.MemoryContract",
        ),
        ("api_test", "ladder_test"),
        all_mutants=True,
    ),
    Group(
        "C API",
        ("kernels/blas/*.cpp", "kernels/blas/*.hpp"),
        (r"blas\.(Products|Errors)",),
        ("blas_test",),
        all_mutants=True,
    ),
    Group(
        "CUDA's headers on the executor",
        (f"{_EXECUTOR}/plain/include/*",),
        (r"plain\..*", r"plain_watched\..*"),
        ("plain_test", "plain_watched_test"),
    ),
    Group(
        "verifier",
        ("tests/verifier/*.c*", "tests/verifier/*.hpp"),
        (r"verifier\..*", r"ladder_faults\..*"),
        ("verifier_test", "ladder_faults_test", "ladder_test"),
    ),
    Group(
        "counters and hazards",
        (f"{_EXECUTOR}/counted/*pp",),
        (
            r"counters\.(hazards|usage)",
            r"watched_faults\..*",
            r"counters\.baseline@(Warptile|AsyncCopy)",
            r"watched\.(Naive|SplitK|Tma)",
        ),
        ("counters_test", "watched_faults_test", *_COUNTED),
    ),
    Group(
        "executor",
        (
            f"{_EXECUTOR}/executor/*",
            f"{_EXECUTOR}/*.cpp",
            "kernels/device/include/tilegate/device/cpu/*",
        ),
        (
            r"simt\..*",
            r"counters\.hazards",
            r"verifier\..*",
            r"ladder\.(SharedMemory|AsyncCopy)\.(ExactOnIntegers|MemoryContract|Repeatable)",
            r"watched\.Naive",
            r"ladder\.(Tma|Fp16x3|Int8x3)\.ExactOnIntegers",
        ),
        ("simt_test", "async_test", "counters_test", "verifier_test", *_LADDER[:1], *_COUNTED[:1]),
    ),
)
_ON_GPU = (1, 2)  # of GROUPS, with the first two kinds of tests


def groups(preset: str) -> list[Group]:
    if preset == "cpu":
        return [*GROUPS]
    return [replace(GROUPS[i], tests=_OF_RUNG[:2], programs=_LADDER) for i in _ON_GPU]


def group_of(preset: str, file: str) -> Group | None:
    """The first that has the file."""
    return next(
        (each for each in groups(preset) if any(fnmatch(file, glob) for glob in each.files)), None
    )


@dataclass(frozen=True)
class CTest:
    """One entry of ctest. `program` is the built one that it runs, as the command names it."""

    name: str
    command: tuple[str, ...]
    folder: str
    environment: tuple[str, ...] = ()
    locks: tuple[str, ...] = ()  # what no two tests may use at a time
    program: str = ""


@dataclass(frozen=True)
class TrialStep:
    """Tests of one program, and its objects that the mutant changes."""

    program: str
    objects: tuple[str, ...]
    tests: tuple[CTest, ...]


class Build:
    """Names of objects and programs are Ninja's: relative to the build folder. `sources` are, of
    each object, the files of the repository that it is compiled from."""

    def __init__(self, repository: Path, folder: Path) -> None:
        self.repository, self.folder = repository, folder
        self.command: Callable[[str], str] = cache(self._command)
        self.objects: Callable[[str], list[str]] = cache(self._objects)
        self.tests: Callable[[], list[CTest]] = cache(self._tests)
        self.sources: dict[str, set[str]] = {}
        found = set[str]()
        for line in self._run("ninja", "-t", "deps").splitlines():
            if line.startswith(" "):
                found.add(self._source(line.strip()))
            elif ": #deps" in line:
                found = self.sources[self._name(line.partition(": #deps")[0])] = set()
        for path in (folder / "CMakeFiles" / "d").glob("*.d"):  # of custom commands
            target, _, names = path.read_text("utf-8").replace("\\\n", " ").partition(": ")
            self.sources[self._name(target)] = {self._source(name) for name in names.split()}

    def steps(self, stages: Sequence[Stage], group: Group, file: str) -> list[TrialStep]:
        """What to build and run for a mutant of the file, in this order, until one test is red."""
        if not group.of_rungs:
            kernels = {str(each) for stage in stages for each in stage.sources}
            among = {name for name, used in self.sources.items() if not used & kernels}
            return self._steps(group.tests, file, among)
        found = []
        for rung in self._rungs(file, stages):
            own = {
                name
                for name, used in self.sources.items()
                if any(source.startswith(f"{rung.folder}/") for source in used)
            }
            tests = [pattern.replace("RUNG", rung.name) for pattern in group.tests]
            found += self._steps(tests, file, own)
        return found

    def _rungs(self, file: str, stages: Sequence[Stage]) -> list[Stage]:
        """Those that are compiled from the file, in the ladder's order; of many a few."""
        mine = [
            stage
            for stage in stages
            if any(
                file in used and any(str(each) in used for each in stage.sources)
                for used in self.sources.values()
            )
        ]
        if len(mine) > _RUNGS_OF_SHARED:
            last = len(mine) - 1
            mine = [mine[i * last // (_RUNGS_OF_SHARED - 1)] for i in range(_RUNGS_OF_SHARED)]
        return mine

    def _steps(self, patterns: Sequence[str], file: str, among: set[str]) -> list[TrialStep]:
        changed = {name for name in among if file in self.sources[name]}
        found = []
        for pattern in patterns:
            pattern, _, rungs = pattern.partition("@")
            tests = [t for t in self.tests() if t.program and re.fullmatch(pattern, t.name)]
            if rungs:
                tests = [
                    replace(t, name=f"{t.name} of {rung}", command=(*t.command, "--rung", rung))
                    for t in tests
                    for rung in re.findall(r"\w+", rungs)
                ]
            for program in dict.fromkeys(test.program for test in tests):
                objects = tuple(name for name in self.objects(program) if name in changed)
                if objects:
                    mine = tuple(test for test in tests if test.program == program)
                    found.append(TrialStep(program, objects, mine))
        return found

    def _tests(self) -> list[CTest]:
        built = f"{self.folder}/"
        found = []
        for entry in json.loads(self._run("ctest", "--show-only=json-v1"))["tests"]:
            properties = {each["name"]: each["value"] for each in entry.get("properties", ())}
            command = entry.get("command", [])
            programs = [word for word in command if word.startswith(built) and "=" not in word]
            found.append(
                CTest(
                    entry["name"],
                    tuple(command),
                    properties.get("WORKING_DIRECTORY", str(self.folder)),
                    tuple(properties.get("ENVIRONMENT", ())),
                    tuple(properties.get("RESOURCE_LOCK", ())),
                    self._name(programs[0]) if programs else "",
                )
            )
        return found

    def _command(self, target: str) -> str:
        """The command that makes the target, and none of those that it depends on."""
        text = self._run("ninja", "-t", "commands", "-s", target).strip()
        return text.replace("ccache ", "", 1)  # of mutants nothing is worth keeping

    def _objects(self, target: str) -> list[str]:
        """The objects that a program is linked from, those in our libraries included."""
        found = []
        for word in shlex.split(self.command(target)):
            name = self._name(word)
            if name == target or name.startswith("/"):
                continue
            if name.endswith(".o"):
                found.append(name)
            elif name.endswith(".a"):
                found += self.objects(name)
        return list(dict.fromkeys(found))

    def _source(self, name: str) -> str:
        return os.path.relpath(os.path.normpath(self.folder / name), self.repository)

    def _name(self, word: str) -> str:
        return word.removeprefix(f"{self.folder}/")

    def _run(self, *command: str) -> str:
        try:
            done = subprocess.run(
                command, cwd=self.folder, capture_output=True, text=True, check=False
            )
        except OSError as problem:
            raise GateError(f"{command[0]} cannot be run: {problem.strerror}") from problem
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise GateError(f"{self.folder}: {' '.join(command)}: {said}")
        return done.stdout
