"""Which objects and tests a mutant of a file reaches, by what the build tree of Ninja says."""

import json
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from tilegate_ci.core import child
from tilegate_ci.core.files import read_text
from tilegate_ci.formats.stages import Stage
from tilegate_ci.model import REPOSITORY

GROUPS = Path("tests/mutants/groups.toml")

# A header that many rungs share is tried with so many of them, the first and the last included.
_RUNGS_OF_SHARED = 3


@dataclass(frozen=True)
class Group:
    """Of tests/mutants/groups.toml, which says what each field is."""

    title: str
    files: Sequence[str]
    tests: Sequence[str]
    programs: Sequence[str]
    of_rungs: bool = False
    all_mutants: bool = False
    gpu: Sequence[str] = ()


@cache
def groups(preset: str) -> tuple[Group, ...]:
    found = tomllib.loads(read_text(REPOSITORY / GROUPS))["group"]
    every = [Group(**fields) for fields in found]
    if preset == "gpu":
        every = [replace(each, tests=each.gpu) for each in every if each.gpu]
    return tuple(every)


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
    environment: Mapping[str, str] = field(default_factory=dict)
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
        for line in child.output(["ninja", "-t", "deps"], cwd=self.folder).splitlines():
            if line.startswith(" "):
                found.add(self._source(line.strip()))
            elif ": #deps" in line:
                found = self.sources[self._name(line.partition(": #deps")[0])] = set()
        for path in (folder / "CMakeFiles" / "d").glob("*.d"):  # of custom commands
            target, _, names = path.read_text("utf-8").replace("\\\n", " ").partition(": ")
            self.sources[self._name(target)] = {self._source(name) for name in names.split()}

    def steps(self, stages: Sequence[Stage], group: Group, file: str) -> list[TrialStep]:
        """What to build and run for a mutant of the file, in this order, until one test is red. Of
        a file of many rungs a few of them are tried."""
        changed = self._compiled_from({file})
        kernels = [self._compiled_from({*map(str, stage.sources)}) for stage in stages]
        others = changed.difference(*kernels)
        if not group.of_rungs:
            return self._steps(group.tests, others)
        rungs = [stage for stage, objects in zip(stages, kernels) if objects & changed]
        if len(rungs) > _RUNGS_OF_SHARED:
            last = len(rungs) - 1
            rungs = [rungs[i * last // (_RUNGS_OF_SHARED - 1)] for i in range(_RUNGS_OF_SHARED)]
        found = []
        for rung in rungs:
            own = {
                name
                for name in changed
                if any(source.startswith(f"{rung.folder}/") for source in self.sources[name])
            }
            tests = [pattern.replace("RUNG", rung.name) for pattern in group.tests]
            found += self._steps(tests, own | others)
        return found

    def _compiled_from(self, files: set[str]) -> set[str]:
        return {name for name, used in self.sources.items() if used & files}

    def _steps(self, patterns: Sequence[str], changed: set[str]) -> list[TrialStep]:
        found = []
        for pattern in patterns:
            pattern, _, rung = pattern.partition("@")
            tests = [t for t in self.tests() if t.program and re.fullmatch(pattern, t.name)]
            if rung:
                tests = [
                    replace(t, name=f"{t.name} of {rung}", command=(*t.command, "--rung", rung))
                    for t in tests
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
        listed = child.output(["ctest", "--show-only=json-v1"], cwd=self.folder)
        for entry in json.loads(listed)["tests"]:
            properties = {each["name"]: each["value"] for each in entry.get("properties", ())}
            command = entry.get("command", [])
            programs = [word for word in command if word.startswith(built) and "=" not in word]
            found.append(
                CTest(
                    entry["name"],
                    tuple(command),
                    properties.get("WORKING_DIRECTORY", str(self.folder)),
                    dict(word.split("=", 1) for word in properties.get("ENVIRONMENT", ())),
                    tuple(properties.get("RESOURCE_LOCK", ())),
                    self._name(programs[0]) if programs else "",
                )
            )
        return found

    def _command(self, target: str) -> str:
        """The command that makes the target, without its dependencies'."""
        text = child.output(["ninja", "-t", "commands", "-s", target], cwd=self.folder).strip()
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
