"""Whether a rung's machine code and launches are the same in two builds.

Of each object file: the SASS (by cuobjdump, else the embedded fat binary), and what of the host
side the launches hang on: its instructions and constants, with the names that they refer to.
Strings, debug information and unwinding tables are left out: paths are in them."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PROGBITS, _RELA = 1, 4
_ALLOC, _STRINGS = 0x2, 0x20
_DEVICE = (".nv_fatbin",)
_LEFT_OUT = ("__nv_module_id", ".eh_frame", ".gcc_except_table", ".nvFatBinSegment")


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    flags: int
    data: bytes
    link: int
    target: int

    @property
    def counts(self) -> bool:
        loaded = self.kind == _PROGBITS and self.flags & _ALLOC and not self.flags & _STRINGS
        return bool(loaded) and not self.name.startswith((*_DEVICE, *_LEFT_OUT))


def fingerprints(build: Path) -> dict[str, str]:
    """By rung, its name in lower case without underscores. {} where the objects are not there,
    as in a build of an unknown kind; then nothing counts as identical."""
    rungs: dict[str, list[str]] = {}
    shared: list[str] = []
    for path in sorted((build / "kernels").rglob("*.o")) + sorted((build / "bench").rglob("*.o")):
        place = path.relative_to(build).as_posix()
        host, device = _host(path), _device(path)
        if "/tilegate_" in place and path.name.endswith(".cu.o") and device:
            word = place.split("/tilegate_", 1)[1].split(".dir/")[0]
            rungs.setdefault(word.replace("_", ""), []).append(f"{path.name} {host} {device}")
        else:  # whatever launches and times every rung
            shared.append(f"{place} {host} {device}")
    return {word: _digest("\n".join([*own, *shared]).encode()) for word, own in rungs.items()}


def same_rungs(base: Path, head: Path, rungs: Iterable[str]) -> set[str]:
    """Those of `rungs`, as benchmarks are called, that two build folders have in common."""
    ours, theirs = fingerprints(base), fingerprints(head) if head != base else None
    theirs = ours if theirs is None else theirs
    words = {rung: rung.split(".")[0].replace("_", "").lower() for rung in rungs}
    return {r for r, word in words.items() if word in ours and ours[word] == theirs.get(word)}


def _device(path: Path) -> str:
    """The hash of its device code; empty where it has none."""
    embedded = b"".join(s.data for s in _sections(path) if s.name in _DEVICE)
    if not embedded:
        return ""
    tool = find_cuobjdump()
    if tool is not None:
        done = subprocess.run([tool, "-sass", str(path)], capture_output=True, check=False)
        if done.returncode == 0 and b"Function :" in done.stdout:
            return _digest(done.stdout)
    return _digest(embedded)


def find_cuobjdump() -> str | None:
    homes = (os.environ.get("CUDA_HOME"), "/usr/local/cuda")
    folders = [os.environ.get("PATH", ""), *(f"{home}/bin" for home in homes if home)]
    return shutil.which("cuobjdump", path=os.pathsep.join(folders))


def _host(path: Path) -> str:
    sections = _sections(path)
    parts = [f"{s.name} {_digest(s.data)}" for s in sections if s.counts]
    for section in sections:
        if section.kind == _RELA and sections[section.target].counts:
            parts.append(f"{section.name} {_digest(_references(section, sections))}")
    return _digest("\n".join(sorted(parts)).encode())


def _references(section: _Section, sections: list[_Section]) -> bytes:
    symbols = sections[section.link]
    names = sections[symbols.link].data
    lines = []
    for offset, info, addend in struct.iter_unpack("<QQq", section.data):
        name, _, _, index, _, _ = struct.unpack_from("<IBBHQQ", symbols.data, 24 * (info >> 32))
        # A symbol of a section has no name of its own.
        told = _text(names, name) or (sections[index].name if index < len(sections) else "")
        # Offsets into strings shift with the length of a path before them.
        if ".str" in told or told.startswith(".LC"):
            addend = 0
        lines.append(f"{offset} {info & 0xFFFFFFFF} {told} {addend}")
    return "\n".join(lines).encode()


def _sections(path: Path) -> list[_Section]:
    data = path.read_bytes()
    if data[:5] != b"\x7fELF\x02":
        return []
    (start,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names_index = struct.unpack_from("<HHH", data, 0x3A)
    headers = [
        struct.unpack_from("<IIQQQQIIQQ", data, start + size * index) for index in range(count)
    ]
    offset, length = headers[names_index][4:6]
    names = data[offset : offset + length]
    return [
        _Section(_text(names, h[0]), h[1], h[2], data[h[4] : h[4] + h[5]], h[6], h[7])
        for h in headers
    ]


def _text(table: bytes, start: int) -> str:
    return table[start : table.index(b"\0", start)].decode(errors="replace")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
