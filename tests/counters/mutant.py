"""Rungs with a change in their source, built as the counted kernels are."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilegate_ci.model import REPOSITORY


@dataclass(frozen=True)
class Toolchain:
    """What CMake wrote for us: how the counted kernels are compiled and linked."""

    clang: str
    flags: tuple[str, ...]
    linker: str
    program: Path
    objects: tuple[str, ...]
    libraries: tuple[str, ...]
    watched_objects: tuple[str, ...]  # of watched_test
    watched_libraries: tuple[str, ...]
    filters: dict[str, str]  # of the ctest entries watched.<Rung>


def read_toolchain() -> Toolchain:
    path = os.environ.get("TILEGATE_COUNTED", REPOSITORY / "build/cpu/tests/counted.json")
    found = json.loads(Path(path).read_text(encoding="utf-8"))
    return Toolchain(
        found["clang"],
        tuple(found["flags"].split(";")),
        found["linker"],
        Path(found["program"]),
        tuple(found["objects"].split(";")),
        tuple(found["libraries"]),
        tuple(found["watched_objects"].split(";")),
        tuple(found["watched_libraries"]),
        found["filters"],
    )


class Mutant:
    """A copy of the kernels, to be edited and built."""

    def __init__(self, toolchain: Toolchain, folder: Path) -> None:
        self.root = folder / "tree"
        self._tools = toolchain
        self._folder = folder
        shutil.copytree(REPOSITORY / "kernels", self.root / "kernels")

    def replace(self, file: str, pattern: str, replacement: str, occurrence: int = 0) -> int:
        """Rewrites one match of the pattern and gives the number of its line."""
        path = self.root / "kernels" / file
        text = path.read_text(encoding="utf-8")
        match = list(re.finditer(pattern, text, re.DOTALL))[occurrence]
        changed = text[: match.start()] + match.expand(replacement) + text[match.end() :]
        path.write_text(changed, encoding="utf-8")
        return text.count("\n", 0, match.start()) + 1

    def rewrite(self, file: str, change: Callable[[str, str], str]) -> None:
        path = self.root / "kernels" / file
        path.write_text(change(file, path.read_text(encoding="utf-8")), encoding="utf-8")

    def build(self, source: str) -> Path:
        """The counting program with this rung in place of its own."""
        compiled = self.compile(source)
        objects = self._tools.objects
        return self.link("tilegate_count", [*objects, compiled, *self._tools.libraries])

    def compile(self, source: str, module: int = 2000, *options: object) -> Path:
        """The counted object of a rung; in a program no two are of the same module."""
        kernels = self.root / "kernels"
        base = self._folder / str(module)
        folders = ("include", "common/include", "device/include", "catalogue/include")
        build = self._tools.program.parents[1]  # has the headers that CMake writes
        includes = [f"-I{kernels / folder}" for folder in folders] + [f"-I{build}/kernels/private"]
        self.run(
            self._tools.clang, *self._tools.flags, *includes, *options, "-S", "-emit-llvm",
            "-x", "c++", kernels / source, "-o", f"{base}.ll",
        )  # fmt: skip
        self.run(
            sys.executable, kernels / "device/cpu/counted/instrument.py", f"{base}.ll",
            f"{base}.counted.ll", "--module", module, "--root", self.root,
        )  # fmt: skip
        self.run(
            self._tools.clang, "-O0", "-fPIC", "-Xclang", "-disable-llvm-passes", "-c",
            f"{base}.counted.ll", "-o", f"{base}.o",
        )  # fmt: skip
        return Path(f"{base}.o")

    def link(self, name: str, inputs: Sequence[object]) -> Path:
        """First come, first linked: the archives' own objects of rungs are left out."""
        program = self._folder / name
        self.run(self._tools.linker, "-o", program, *inputs)
        return program

    @staticmethod
    def run(*command: object) -> None:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
