"""ci/gate lab kernels: compares the kernels' code with another checkout's, symbols ignored: moving
and renaming must not change it. Needs nvcc and no GPU."""

import argparse
import hashlib
import io
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import sched_getaffinity
from pathlib import Path

from elftools.elf.elffile import ELFFile

from tilegate_ci.checks.committed import chosen
from tilegate_ci.checks.resources.compile import (
    ARCHITECTURES,
    Architecture,
    Cache,
    Toolkit,
    compute_capability,
    demangle,
    find_toolkit,
    private_headers,
    run_nvcc,
    sources_digest,
    target_of,
)
from tilegate_ci.checks.resources.table import TABLE, RungResources, load
from tilegate_ci.core.documents import Model
from tilegate_ci.core.files import GateError, read_text
from tilegate_ci.formats.stages import Stage, find_stages
from tilegate_ci.model import REPOSITORY

# A word of a symbol that ptxas knows: it keeps the order of the source in such a kernel
# (kernels/11_instruction_order/README.md). So it is a part of the code.
ORDERING_WORD = "cutlass"

_KERNEL = re.compile(r"^(?=\.(?:visible|weak) \.entry ([\w$]+)\()", re.MULTILINE)
_COMMENT = re.compile(r"^\s*//.*\n", re.MULTILINE)
_DECLARATION = re.compile(
    r"^\.(?:extern|visible|weak|global|const)\b(?! \.entry).*;\n", re.MULTILINE
)


@dataclass(frozen=True)
class Body:
    """One kernel: its symbol, and the digest of its code."""

    name: str
    code: str

    @property
    def key(self) -> tuple[str, bool]:
        return self.code, ORDERING_WORD in self.name


def ptx_bodies(text: str) -> list[Body]:
    """Of what `nvcc -ptx` writes. Comments, symbols and the numbers that labels take from the
    kernel's place in the file are left out."""
    declarations = sorted(_DECLARATION.findall(text))
    text = _COMMENT.sub("", _DECLARATION.sub("", text))
    _, *parts = _KERNEL.split(text)
    bodies = []
    for name, code in zip(parts[::2], parts[1::2]):
        code = code.strip().replace(name, "kernel")
        code = re.sub(r"(\$L__BB|__local_depot)\d+", r"\1", code)
        bodies.append(_body(name, code + "".join(declarations)))
    return bodies


def cubin_bodies(data: bytes) -> list[Body]:
    """Of the ELF file that `nvcc -cubin` writes: each kernel's instructions, registers, and bytes
    of shared and constant memory."""
    sections = {section.name: section for section in ELFFile(io.BytesIO(data)).iter_sections()}
    bodies = []
    for name, section in sections.items():
        if name.startswith(".text."):
            kernel = name.removeprefix(".text.")
            others = (f".nv.shared.{kernel}", f".nv.constant0.{kernel}")
            sizes = [sections[each]["sh_size"] if each in sections else 0 for each in others]
            registers = section["sh_info"] >> 24
            bodies.append(_body(kernel, f"{registers} {sizes} {section.data().hex()}"))
    return bodies


def _body(name: str, code: str) -> Body:
    return Body(name, hashlib.sha256(code.encode()).hexdigest())


class Bodies(Model):
    bodies: list[Body]


def bodies_of(
    root: Path, toolkit: Toolkit, machine_code: bool, pairs: Sequence[tuple[Stage, Architecture]]
) -> list[list[Body]]:
    """The kernels of a checkout, for each pair of rung and architecture: PTX, or machine code."""
    form = "cubin" if machine_code else "ptx"
    cache = Cache(root / "build" / "kernel-bodies" / form, Bodies, toolkit)

    def bodies(pair: tuple[Stage, Architecture]) -> list[Body]:
        stage, architecture = pair
        sources = sources_digest(root, stage)
        found = cache.load(stage, architecture, sources)
        if found is None:
            found = Bodies(bodies=[])
            target = target_of(stage.compute_capability, architecture)
            with tempfile.TemporaryDirectory(prefix="tilegate-") as folder:
                private_headers(Path(folder), stage)
                options = [f"-{form}", f"-arch=sm_{target}", f"-I{folder}"]
                made = Path(folder, "made")
                for source in stage.sources:
                    run_nvcc(toolkit, root, [*options, str(root / source), "-o", str(made)])
                    found.bodies.extend(
                        cubin_bodies(made.read_bytes()) if machine_code
                        else ptx_bodies(read_text(made))
                    )  # fmt: skip
            cache.store(stage, architecture, sources, found)
        return found.bodies

    with ThreadPoolExecutor(max_workers=len(sched_getaffinity(0))) as pool:
        return list(pool.map(bodies, pairs))


def differences(base: Sequence[Body], head: Sequence[Body], word: str) -> list[str]:
    """Of one rung and architecture, what has no equal on the other side: '- ' is the base's, '+ '
    the head's."""
    lines = []
    for sign, one, other in (("-", base, head), ("+", head, base)):
        left = Counter(body.key for body in other)
        alone = []
        for body in one:
            if left[body.key] > 0:
                left[body.key] -= 1
            else:
                alone.append(body.name)
        shown = demangle(alone, word)
        lines += [f"{sign} {shown[name]}" for name in alone]
    return lines


def run(arguments: argparse.Namespace) -> int:
    toolkit = find_toolkit()
    architectures = arguments.arch or [*ARCHITECTURES]
    every = [stage for stage in find_stages() if not stage.yardstick and not stage.external]
    names = chosen(arguments.rung, [each.name for each in every])
    rungs = load(REPOSITORY / TABLE).rungs
    pairs = [
        (stage, architecture)
        for stage in every
        for architecture in architectures
        if stage.name in names
        and compute_capability(architecture) >= stage.compute_capability
        and architecture not in rungs.get(stage.name, RungResources()).not_on
    ]
    if not pairs:
        raise GateError("these rungs are not compiled for these architectures")
    base, head = (
        bodies_of(root.resolve(), toolkit, arguments.machine_code, pairs)
        for root in (arguments.tree, REPOSITORY)
    )
    different = 0
    for (stage, architecture), before, after in zip(pairs, base, head):
        lines = differences(before, after, stage.word)
        different += bool(lines)
        sys.stdout.writelines(f"{stage.name} {architecture}: {line}\n" for line in lines)
    kernels = sum(map(len, head))
    said = f"{different} differ" if different else "the same code"
    sys.stdout.write(f"{kernels} kernels of {len(pairs)} pairs of rung and architecture: {said}\n")
    return 1 if different else 0
