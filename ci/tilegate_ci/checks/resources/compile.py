"""Resource usage of a rung's kernels, from nvcc, and how the rung launches them. Needs no GPU. What
was compiled is kept in the build folder."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Annotated, Generic, Literal, NamedTuple, TypeVar

from pydantic import Field

from tilegate_ci.core import child, documents
from tilegate_ci.core.child import find_cuda_tool
from tilegate_ci.core.documents import Model, Natural
from tilegate_ci.core.files import GateError, digest_of, make_folder, read_text, write_text
from tilegate_ci.formats.stages import Stage
from tilegate_ci.model import REPOSITORY

REGISTERS_PER_SM = 65536
REGISTERS_PER_THREAD = 255
REGISTER_UNIT = 256  # registers of a warp are allocated in multiples of it
PARTITIONS = 4  # of a multiprocessor; a warp lives in one of them
MAX_THREADS = 1024  # of a block
KIB = 1024


@dataclass(frozen=True)
class Multiprocessor:
    """Its limits; bytes of shared memory, at its largest carveout."""

    warps: int
    blocks: int
    shared: int
    count: tuple[int, ...]  # in a small and in a large device
    shared_unit: int = 128
    reserved_per_block: int = KIB  # by the driver, from compute capability 8.0 on

    @property
    def shared_per_block(self) -> int:
        """With opt-in."""
        return self.shared - self.reserved_per_block


Architecture = Literal["75", "80", "86", "89", "90a", "100", "120"]
ARCHITECTURES: dict[Architecture, Multiprocessor] = {
    "75": Multiprocessor(32, 16, 64 * KIB, (14, 72), shared_unit=256, reserved_per_block=0),
    "80": Multiprocessor(64, 32, 164 * KIB, (28, 108)),
    "86": Multiprocessor(48, 16, 100 * KIB, (16, 84)),
    "89": Multiprocessor(48, 24, 100 * KIB, (20, 142)),
    "90a": Multiprocessor(64, 32, 228 * KIB, (78, 132)),
    "100": Multiprocessor(64, 32, 228 * KIB, (74, 148)),
    "120": Multiprocessor(48, 24, 100 * KIB, (20, 188)),
}


def compute_capability(architecture: str) -> int:
    """10 x major + minor: 90 of "90a"."""
    return int(architecture.rstrip("af"))


def blocks_per_sm(sm: Multiprocessor, threads: int, registers: int, shared: int) -> int:
    """0 where not even one block fits. `shared` is static and dynamic, in bytes."""
    warps = _round_up(threads, 32) // 32
    taken = _round_up(shared + sm.reserved_per_block, sm.shared_unit)
    # The driver keeps its part of a block's shared memory beside the block's own limit.
    if threads > MAX_THREADS or shared > sm.shared_per_block:
        return 0
    per_warp = _round_up(registers * 32, REGISTER_UNIT)
    if registers > REGISTERS_PER_THREAD or (
        per_warp * _round_up(warps, PARTITIONS) > REGISTERS_PER_SM
    ):
        return 0
    limits = [sm.blocks, sm.warps // warps]
    if per_warp:
        warps_per_partition = REGISTERS_PER_SM // PARTITIONS // per_warp
        limits.append(warps_per_partition * PARTITIONS // warps)
    if taken:
        limits.append(sm.shared // taken)
    return min(limits)


def occupancy(sm: Multiprocessor, threads: int, blocks: int) -> float:
    """Resident warps as a share of what the multiprocessor can hold."""
    return blocks * _round_up(threads, 32) / (32 * sm.warps)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


@dataclass
class Usage:
    """ptxas's report on one kernel, in registers and bytes: the first columns of its row."""

    registers: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    stack: int = 0
    static_shared: int = 0


@dataclass(frozen=True)
class Launch:
    """`default`: the rung's own path launches it, not only a variant for comparison."""

    threads: int
    dynamic_shared: int
    default: bool


DEFAULT, VARIANT, UNUSED = "default", "variant", "unused"


class KernelRow(NamedTuple):
    """One kernel on one architecture. Sizes in bytes; threads, dynamic shared memory and what
    follows from them are None for a kernel that nothing launches there."""

    registers: Natural
    spill_stores: Natural
    spill_loads: Natural
    stack: Natural
    static_shared: Natural
    dynamic_shared: Natural | None
    threads: Natural | None
    blocks_per_sm: Natural | None
    occupancy: Annotated[float, Field(ge=0, le=1)] | None  # resident warps as a share of the most
    path: str  # who launches it: the rung itself, a variant for comparison, or nothing

    @property
    def spilled(self) -> int:
        return self.spill_stores + self.spill_loads


def kernel_row(architecture: Architecture, usage: Usage, launch: Launch | None) -> KernelRow:
    if launch is None:
        return KernelRow._make([*astuple(usage), *[None] * 4, UNUSED])
    limits = ARCHITECTURES[architecture]
    shared = usage.static_shared + launch.dynamic_shared
    blocks = blocks_per_sm(limits, launch.threads, usage.registers, shared)
    share = round(occupancy(limits, launch.threads, blocks), 4)
    launched = (launch.dynamic_shared, launch.threads, blocks, share)
    return KernelRow._make([*astuple(usage), *launched, DEFAULT if launch.default else VARIANT])


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
    return digest_of(repository.resolve(), source_files(repository, stage))


CORE = ("kernels/core/problem.cpp", "kernels/core/stage.cpp")  # what launches.cpp calls
# Errors: calls of host functions from device code, for which nvcc drops instructions.
FLAGS = ("-DNDEBUG", "-std=c++20", "--diag-error=20011,20012,20013,20014,20015")
HOST_OF_KERNELS = "-O1"  # at -O0 it names unused symbols
FETCHED = REPOSITORY / "build" / "nvcc" / "nvidia" / "cu13" / "bin"  # by ci/nvcc
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
    for kind in ("choices", "tuned"):
        header = read_text(LAUNCHES.with_name(f"{kind}.hpp.in")).replace("@WORD@", stage.word)
        make_folder(folder / "tilegate" / kind)
        write_text(folder / "tilegate" / kind / f"{stage.word}.hpp", header)


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
