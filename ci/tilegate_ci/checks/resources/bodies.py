"""The code of a rung's kernels without symbols, which moving and renaming must not change."""

import hashlib
import io
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import sched_getaffinity
from pathlib import Path

from elftools.elf.elffile import ELFFile

from tilegate_ci.checks.resources.compile import (
    Architecture,
    Toolkit,
    compute_capability,
    demangle,
    private_headers,
    run_nvcc,
    sources_digest,
    target_of,
)
from tilegate_ci.core.files import make_folder, read_text, write_text
from tilegate_ci.formats.stages import Stage

# A word of a symbol that ptxas knows: it keeps the order of the source in such a kernel
# (kernels/11_instruction_order/README.md). So it is a part of the code.
ORDERING_WORD = "cutlass"

_KERNEL = re.compile(r"^\.(?:visible|weak) \.entry ([\w$]+)\(", re.MULTILINE)
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
    heads = [*_KERNEL.finditer(text)]
    ends = [head.start() for head in heads[1:]] + [len(text)]
    bodies = []
    for head, end in zip(heads, ends):
        name = head.group(1)
        code = text[head.start() : end].strip().replace(name, "kernel")
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


class Tree:
    """A checkout whose kernels are compiled; what was compiled is kept in its build folder for as
    long as a rung's sources stay the same."""

    def __init__(self, root: Path, toolkit: Toolkit, machine_code: bool) -> None:
        self.root = root
        self.toolkit = toolkit
        self.machine_code = machine_code

    def bodies(
        self, stages: Sequence[Stage], architectures: Sequence[Architecture]
    ) -> dict[tuple[str, Architecture], list[Body]]:
        """By stage and architecture."""
        wanted = [
            (stage, architecture)
            for stage in stages
            for architecture in architectures
            if compute_capability(architecture) >= stage.compute_capability
        ]
        with ThreadPoolExecutor(max_workers=len(sched_getaffinity(0))) as pool:
            found = pool.map(lambda one: self._bodies(*one), wanted)
            return {(stage.name, arch): bodies for (stage, arch), bodies in zip(wanted, found)}

    def _bodies(self, stage: Stage, architecture: Architecture) -> list[Body]:
        kind = "cubin" if self.machine_code else "ptx"
        made_by = f"{self.toolkit.full} {Path(__file__).read_text(encoding='utf-8')}"
        key = f"{architecture} {kind} {sources_digest(self.root, stage)} {made_by}"
        digest = hashlib.sha256(key.encode()).hexdigest()[:16]
        path = self.root / "build" / "kernel-bodies" / f"{stage.word}-{digest}"
        if path.exists():
            lines = [line.split() for line in read_text(path).splitlines()]
            return [Body(name, code) for name, code in lines]
        bodies = [
            body
            for source in stage.sources
            for body in self._compile(
                stage, source, target_of(stage.compute_capability, architecture)
            )
        ]
        make_folder(path.parent)
        write_text(path, "".join(f"{body.name} {body.code}\n" for body in bodies))
        return bodies

    def _compile(self, stage: Stage, source: Path, target: str) -> list[Body]:
        with tempfile.TemporaryDirectory(prefix="tilegate-") as folder:
            private_headers(Path(folder), stage)
            made = Path(folder, "made")
            form = "-cubin" if self.machine_code else "-ptx"
            arguments = [form, f"-arch=sm_{target}", f"-I{folder}", str(self.root / source)]
            run_nvcc(self.toolkit, self.root, [*arguments, "-o", str(made)])
            return (
                cubin_bodies(made.read_bytes())
                if self.machine_code
                else ptx_bodies(read_text(made))
            )


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
