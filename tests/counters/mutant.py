"""Rungs with a change in their source, built as the counted kernels are."""

import json
import os
import re
import shutil
import subprocess
import sys
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

    def build(self, source: str) -> Path:
        """The counting program with this rung in place of its own."""
        kernels = self.root / "kernels"
        base = self._folder / Path(source).stem
        folders = ("include", "common/include", "device/include", "catalogue/include")
        includes = [f"-I{kernels / folder}" for folder in folders]
        self._run(
            self._tools.clang, *self._tools.flags, *includes, "-S", "-emit-llvm", "-x", "c++",
            kernels / source, "-o", f"{base}.ll",
        )  # fmt: skip
        self._run(
            sys.executable, kernels / "device/cpu/counted/instrument.py", f"{base}.ll",
            f"{base}.counted.ll", "--module", "2000", "--root", self.root,
        )  # fmt: skip
        self._run(
            self._tools.clang, "-O0", "-fPIC", "-Xclang", "-disable-llvm-passes", "-c",
            f"{base}.counted.ll", "-o", f"{base}.o",
        )  # fmt: skip
        program = self._folder / "tilegate_count"
        # First come, first linked: the archive's own object of the rung is left out.
        self._run(
            self._tools.linker, "-o", program, *self._tools.objects, f"{base}.o",
            *self._tools.libraries,
        )  # fmt: skip
        return program

    @staticmethod
    def _run(*command: object) -> None:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
