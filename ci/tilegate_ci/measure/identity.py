"""Whether a rung's machine code and launches are the same in two builds.

Of each object file: the SASS (by cuobjdump, else the embedded fat binary), and what of the host
side the launches depend on: its instructions and constants, with the names that they refer to.
Strings, debug information and unwinding tables are left out: paths are in them."""

import hashlib
import io
import os
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import Section

from tilegate_ci.core.child import find_cuda_tool
from tilegate_ci.core.files import message
from tilegate_ci.formats.stages import FILE, Stage, stages_of

_DEVICE = ".nv_fatbin"
_LEFT_OUT = (_DEVICE, "__nv_module_id", ".eh_frame", ".gcc_except_table", ".nvFatBinSegment")


def fingerprints(build: Path) -> dict[str, str]:
    """By library, as tilegate_split_k. {} where the objects are not there, as in a build of an
    unknown kind; then nothing counts as identical."""
    libraries: dict[str, list[str]] = {}
    shared: list[str] = []
    paths = _objects(build)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:  # they wait for cuobjdump
        hashed = list(pool.map(_fingerprint, paths))
    for path, (host, device) in zip(paths, hashed):
        place = path.relative_to(build).as_posix()
        if "/tilegate_" in place and path.name.endswith(".cu.o") and device:
            library = "tilegate_" + place.split("/tilegate_", 1)[1].split(".dir/")[0]
            libraries.setdefault(library, []).append(f"{path.name} {host} {device}")
        else:  # shared host code, which launches and times every rung
            shared.append(f"{place} {host} {device}")
    return {name: _digest("\n".join([*own, *shared])) for name, own in libraries.items()}


def _objects(build: Path) -> list[Path]:
    """What bench is linked from: a build folder may have objects of other targets, too. All where
    Ninja does not tell, as before 1.11."""
    command = ["ninja", "-C", str(build), "-t", "inputs", "bench/bench"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        linked = [line for line in done.stdout.splitlines() if line.endswith(".o")]
    except FileNotFoundError:
        linked = []
    if linked:
        return sorted(build / line for line in linked)
    return sorted((build / "kernels").rglob("*.o")) + sorted((build / "bench").rglob("*.o"))


def same_rungs(base: Path, head: Path, rungs: Iterable[str]) -> set[str]:
    """Those of `rungs`, as benchmarks are called, that two build folders have in common."""
    before = fingerprints(base)
    after = before if base == head else fingerprints(head)
    same = {name for name, digest in before.items() if after.get(name) == digest}
    stages = {stage.name: stage for stage in stages_of(head)}
    if not stages:
        message(f"{head}: no {FILE}, so that no machine code counts as the same")
    by_library = {stage.library: stage for stage in stages.values()}

    def launched(stage: Stage) -> set[str]:
        """The libraries whose kernels it launches beside its own."""
        if stage.chooses_from is None:
            return {*before, *after}
        chosen = [launched(by_library[library]) for library in stage.chooses_from]
        return {*stage.chooses_from}.union(*chosen)

    def is_same(rung: str) -> bool:
        name, _, variant = rung.partition(".")
        stage, suffix = stages.get(name), "_variants" if variant else ""
        return stage is not None and {stage.library + suffix, *launched(stage)} <= same

    return {*filter(is_same, rungs)}


def _fingerprint(path: Path) -> tuple[str, str]:
    """Hashes of the host's half and of the device's; the latter is empty where there is none."""
    sections = _sections(path)
    if not sections:
        return _digest(path.read_bytes()), ""
    parts = [f"{s.name} {_digest(s.data())}" for s in sections if _counts(s)]
    for section in sections:
        if isinstance(section, RelocationSection) and _counts(sections[section["sh_info"]]):
            parts.append(f"{section.name} {_digest(_references(section, sections))}")
    embedded = b"".join(s.data() for s in sections if s.name == _DEVICE)
    return _digest("\n".join(sorted(parts))), _device(path, embedded) if embedded else ""


def loaded(path: Path) -> str:
    """A digest of what a program is when it runs: of another file, of its bytes."""
    parts = [
        f"{section.name} {_digest(section.data())}"
        for section in _sections(path)
        if section["sh_flags"] & SH_FLAGS.SHF_ALLOC and section.name != ".note.gnu.build-id"
    ]
    return _digest("\n".join(parts) if parts else path.read_bytes())


def _sections(path: Path) -> list[Section]:
    """[] of what is no object file of this platform."""
    try:
        return list(ELFFile(io.BytesIO(path.read_bytes())).iter_sections())
    except ELFError:
        return []


def _counts(section: Section) -> bool:
    flags = section["sh_flags"]
    loaded = section["sh_type"] == "SHT_PROGBITS" and flags & SH_FLAGS.SHF_ALLOC
    return (
        bool(loaded) and not flags & SH_FLAGS.SHF_STRINGS and not section.name.startswith(_LEFT_OUT)
    )


def _references(section: RelocationSection, sections: list[Section]) -> str:
    symbols = sections[section["sh_link"]]
    lines = []
    for relocation in section.iter_relocations():
        symbol = symbols.get_symbol(relocation["r_info_sym"])
        index, addend = symbol["st_shndx"], relocation["r_addend"]
        # A symbol of a section has no name of its own.
        name = symbol.name or (sections[index].name if isinstance(index, int) else "")
        # Offsets into strings shift with the length of a path before them.
        if ".str" in name or name.startswith(".LC"):
            addend = 0
        lines.append(f"{relocation['r_offset']} {relocation['r_info_type']} {name} {addend}")
    return "\n".join(lines)


def _device(path: Path, embedded: bytes) -> str:
    tool = find_cuobjdump()
    if tool is not None:
        done = subprocess.run([tool, "-sass", str(path)], capture_output=True, check=False)
        if done.returncode == 0 and b"Function :" in done.stdout:
            return _digest(done.stdout)
    return _digest(embedded)


def find_cuobjdump() -> str | None:
    return find_cuda_tool("cuobjdump")


def _digest(content: bytes | str) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()
