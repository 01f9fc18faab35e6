"""What a build tree of Ninja says of itself: how each object and program is made, and of what."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tilegate_ci.core.files import GateError


@dataclass(frozen=True)
class CTest:
    """One entry of ctest. `program` is the built one that it runs, as the command names it."""

    name: str
    command: tuple[str, ...]
    folder: str
    environment: tuple[str, ...] = ()
    locks: tuple[str, ...] = ()  # what no two tests may use at a time
    program: str = ""


class Build:
    """Names of objects and programs are Ninja's: relative to the build folder. `sources` are, of
    each object, the files of the repository that it is compiled from."""

    def __init__(self, repository: Path, folder: Path) -> None:
        self.repository, self.folder = repository, folder
        self.command: Callable[[str], str] = cache(self._command)
        self.objects: Callable[[str], list[str]] = cache(self._objects)
        self.sources: dict[str, set[str]] = {}
        found = set[str]()
        for line in self._ninja("-t", "deps").splitlines():
            if line.startswith(" "):
                found.add(self._source(line.strip()))
            elif ": #deps" in line:
                found = self.sources[self._name(line.partition(": #deps")[0])] = set()
        for path in (folder / "CMakeFiles" / "d").glob("*.d"):  # of custom commands
            target, _, names = path.read_text("utf-8").replace("\\\n", " ").partition(": ")
            self.sources[self._name(target)] = {self._source(name) for name in names.split()}

    def tests(self) -> list[CTest]:
        text = self._run("ctest", "--show-only=json-v1")
        built = f"{self.folder}/"
        found = []
        for entry in json.loads(text)["tests"]:
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
        text = self._ninja("-t", "commands", "-s", target).strip()
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

    def _ninja(self, *arguments: str) -> str:
        return self._run("ninja", *arguments)

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


def in_tree(command: str, repository: Path, tree: Path) -> str:
    """The command for the sources of another tree, with messages and records of lines as if they
    were the repository's."""
    moved = re.sub(rf"{re.escape(str(repository))}/(?=kernels\b|tests\b)", f"{tree}/", command)
    return re.sub(
        r"(?<= )((?:\S*/)?(?:c\+\+|g\+\+|clang\+\+)(?:-\d+)?) ",
        rf"\1 -ffile-prefix-map={tree}={repository} ",
        f" {moved}",
    )[1:]
