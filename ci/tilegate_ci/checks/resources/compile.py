"""Resource usage of a rung's kernels, from nvcc, and how the rung launches them. Needs no GPU. What
was compiled is kept in the build folder."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from tilegate_ci.checks.resources.rows import (
    ARCHITECTURES,
    Architecture,
    KernelRow,
    Launch,
    Usage,
    compute_capability,
    kernel_row,
)
from tilegate_ci.core import child, documents
from tilegate_ci.core.child import find_cuda_tool
from tilegate_ci.core.documents import Model
from tilegate_ci.core.files import GateError, make_folder, read_text, write_text
from tilegate_ci.formats.stages import Stage
from tilegate_ci.model import REPOSITORY

INCLUDES = ("kernels/include", "kernels/common/include", "kernels/device/include")
_EXECUTOR = "kernels/device/include/tilegate/device/cpu"  # which nvcc does not read
_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def source_files(repository: Path, stage: Stage) -> list[Path]:
    """The rung's sources and every header of the repository or of the rung that they include for
    CUDA, directly or not, under whatever condition."""
    folders = [repository / folder for folder in INCLUDES]
    executor = (repository / _EXECUTOR).resolve()
    found: set[Path] = set()
    waiting = [repository / source for source in stage.sources]
    while waiting:
        path = waiting.pop().resolve()
        if path in found or path.is_relative_to(executor):
            continue
        found.add(path)
        for name in _INCLUDE.findall(read_text(path)):
            places = (folder / name for folder in (path.parent, *folders))
            waiting += [place for place in places if place.is_file()][:1]
    return sorted(found)


def sources_digest(repository: Path, stage: Stage) -> str:
    """Changes with any byte of the files, and with which files they are."""
    names = hashlib.sha256()
    root = repository.resolve()
    for path in source_files(repository, stage):
        place = path.relative_to(root) if path.is_relative_to(root) else Path(path.name)
        names.update(
            f"{place.as_posix()} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode()
        )
    return names.hexdigest()


CORE = ("kernels/core/problem.cpp", "kernels/core/stage.cpp")  # what launches.cpp calls
FLAGS = ("-DNDEBUG", "-std=c++20")
HOST_OF_KERNELS = "-O1"  # at -O0 it names unused symbols
FETCHED = REPOSITORY / "build" / "nvcc" / "nvidia" / "cu13" / "bin"  # by ci/nvcc
NO_CHOICES = """#pragma once
#include <span>
#include <tilegate/stage.hpp>
namespace tilegate::{word} {{
inline constexpr std::span<const Stage* const> kChoices;
}}
"""
NOTHING_TUNED = """#pragma once
#include <array>
#include <string_view>
namespace tilegate::{word} {{
struct TunedCell {{
  std::string_view gpu, problem_class, family;
}};
inline constexpr std::array<TunedCell, 0> kTuned;
}}
"""
LAUNCHES = Path(__file__).with_name("launches.cpp")


@dataclass(frozen=True)
class Toolkit:
    nvcc: str
    release: str  # "13.0.88"
    full: str  # all that --version prints


class KernelRows(Model):
    """A rung on one architecture, by demangled kernel name."""

    rows: dict[str, KernelRow]


def find_toolkit() -> Toolkit:
    nvcc = find_cuda_tool("nvcc", str(FETCHED))
    if nvcc is None:
        raise GateError(
            "no nvcc in PATH, $CUDA_HOME/bin or /usr/local/cuda/bin: install the CUDA toolkit, "
            "or run ci/nvcc, which puts it into build/nvcc"
        )
    said = _run([nvcc, "--version"]).stdout
    release = re.search(r"\bV(\d+(?:\.\d+)+)", said)
    if release is None:
        raise GateError(f"{nvcc} --version names no release")
    return Toolkit(nvcc, release.group(1), said)


def compile_rung(
    toolkit: Toolkit, repository: Path, stage: Stage, architectures: Sequence[Architecture]
) -> dict[Architecture, KernelRows]:
    """Compiles one rung for all `architectures` at once and reads the compiler's report. A kernel
    that no shape launches has no launch."""
    names = {a: target_of(stage.compute_capability, a) for a in architectures}
    targets = [f"-gencode=arch=compute_{t},code=sm_{t}" for t in names.values()]
    said, objects = "", []
    variants = any(source.name == "variants.cu" for source in stage.sources)
    with tempfile.TemporaryDirectory(prefix="tilegate-") as folder:
        private_headers(Path(folder), stage)
        for source in stage.sources:
            made = str(Path(folder, f"{source.stem}.o"))
            compiling = [*targets, HOST_OF_KERNELS, "-Xptxas", "-v", f"-I{folder}"]
            done = run_nvcc(
                toolkit, repository, [*compiling, "-c", str(repository / source), "-o", made]
            )
            said += done.stdout + done.stderr
            objects.append(made)
        program = Path(folder, "launches")
        defines = [f"-DTILEGATE_RUNG={stage.word}", f"-DTILEGATE_HAS_VARIANTS={int(variants)}"]
        # In the same unit as what calls it, as reading the headers takes most of the time.
        core = [f"-include={repository / source}" for source in CORE]
        linking = [*defines, "-cudart", "none", str(LAUNCHES), *core, *objects]
        run_nvcc(toolkit, repository, [*linking, "-o", str(program)])
        found = {a: _launches(program, a) for a in architectures}
    usages = parse_ptxas(said)
    kernels = demangle({name for usage in usages.values() for name in usage}, stage.word)
    return {
        architecture: KernelRows(
            rows={
                kernels[name]: kernel_row(architecture, usage, found[architecture].get(name))
                for name, usage in usages.get(target, {}).items()
            }
        )
        for architecture, target in names.items()
    }


def private_headers(folder: Path, stage: Stage) -> None:
    """A stage that chooses among others is compiled without them: they have their own rows."""
    for kind, header in (("choices", NO_CHOICES), ("tuned", NOTHING_TUNED)):
        path = folder / "tilegate" / kind / f"{stage.word}.hpp"
        path.parent.mkdir(parents=True)
        path.write_text(header.format(word=stage.word), encoding="utf-8")


def target_of(capability: int, architecture: Architecture) -> str:
    """What nvcc builds for: as kernels/CMakeLists.txt, rungs that need 9.0 with the features of
    later architectures' families."""
    later = capability >= 90 and compute_capability(architecture) > 90
    return f"{architecture}f" if later else architecture


_ENTRY = re.compile(r"Compiling entry function '([^']+)' for 'sm_(\w+)'")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?")


def parse_ptxas(text: str) -> dict[str, dict[str, Usage]]:
    """The output of `nvcc -Xptxas -v`, by architecture and mangled name. What is said of functions
    that a kernel calls counts as the kernel's."""
    found: dict[str, dict[str, Usage]] = {}
    usage = Usage()
    for line in text.splitlines():
        if entry := _ENTRY.search(line):
            usage = found.setdefault(entry[2], {}).setdefault(entry[1], Usage())
        elif frame := _FRAME.search(line):
            stack, stores, loads = map(int, frame.groups())
            usage.stack = max(usage.stack, stack)
            usage.spill_stores += stores
            usage.spill_loads += loads
        elif used := _USED.search(line):
            usage.registers, usage.static_shared = int(used[1]), int(used[2] or 0)
    return found


def parse_launches(text: str) -> dict[str, Launch]:
    """What launches.cpp prints, by kernel."""
    rung = ""
    launches: dict[str, Launch] = {}
    for cells in (line.split("\t") for line in text.splitlines()):
        if cells[0] == "requires":
            rung = cells[2]
            continue
        _, name, threads, shared, launched_by = cells
        old = launches.get(name, Launch(0, 0, False))
        launches[name] = Launch(
            max(old.threads, int(threads)),
            max(old.dynamic_shared, int(shared)),
            old.default or launched_by == rung,
        )
    return launches


def demangle(mangled: Iterable[str], word: str) -> dict[str, str]:
    """Names as people write them, without what all kernels of a rung share: parameters and
    namespaces. Overloads, which would then be alike, keep their parameters."""
    names = sorted(mangled)
    whole, short = _demangled(names), _demangled(names, "--no-params")
    short = [re.sub(rf"tilegate::(?:{word}::)?", "", text).replace("> >", ">>") for text in short]
    return {
        name: text if short.count(text) == 1 else long
        for name, text, long in zip(names, short, whole)
    }


def _demangled(names: Sequence[str], *options: str) -> list[str]:
    tool = shutil.which("c++filt")
    if tool is None:
        raise GateError("no c++filt in PATH: install binutils")
    text = "".join(f"{name}\n" for name in names)
    return child.output([tool, *options], input=text).splitlines()


def _launches(program: Path, architecture: Architecture) -> dict[str, Launch]:
    """On a small and on a large device: launches can depend on the number of multiprocessors."""
    capability = str(compute_capability(architecture))
    text = ""
    for multiprocessors in ARCHITECTURES[architecture].count:
        done = _run([str(program), capability, str(multiprocessors)])
        if done.returncode != 0:
            why = (done.stderr or f"exit code {done.returncode}").strip()
            raise GateError(f"the launches of this rung cannot be listed: {why}")
        text += done.stdout
    return parse_launches(text)


def run_nvcc(
    toolkit: Toolkit, repository: Path, arguments: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    includes = [f"-I{repository / folder}" for folder in INCLUDES]
    done = _run([toolkit.nvcc, *FLAGS, *includes, *arguments])
    if done.returncode != 0:
        said = (done.stderr + done.stdout).splitlines()
        errors = [line.strip() for line in said if re.search(r"error|undefined|fatal", line, re.I)]
        raise GateError("nvcc fails: " + "; ".join((errors or said[-3:])[:5]))
    return done


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    # nvcc takes flags from these too; the table must not depend on the environment.
    hidden = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    return child.finished(command, env=environment, capture_output=True)


M = TypeVar("M", bound=Model)


class Cache(Generic[M]):
    """What a toolkit and this package made of a rung's sources for an architecture, a file each."""

    def __init__(self, folder: Path, model: type[M], toolkit: Toolkit) -> None:
        self._folder, self._model = folder, model
        package = sorted(path for path in Path(__file__).parent.iterdir() if path.is_file())
        self._made_by = toolkit.full.encode() + b"".join(path.read_bytes() for path in package)

    def load(self, stage: Stage, architecture: str, sources: str) -> M | None:
        try:
            return documents.load(self._model, self._path(stage, architecture, sources))
        except GateError:
            return None  # none yet, or not one that this gate wrote

    def store(self, stage: Stage, architecture: str, sources: str, made: M) -> None:
        make_folder(self._folder)
        write_text(self._path(stage, architecture, sources), documents.to_text(made))

    def _path(self, stage: Stage, architecture: str, sources: str) -> Path:
        digest = hashlib.sha256(self._made_by + sources.encode()).hexdigest()[:16]
        return self._folder / f"{stage.word}-{architecture}-{digest}.json"
