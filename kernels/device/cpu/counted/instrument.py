"""Prepares a kernel's LLVM IR, as text, for counting: `instrument.py IN.ll OUT.ll --module N`.

clang's -fsanitize-coverage=trace-loads,trace-stores has put a call before each access. This pass
gives each such call the number of its source location, embeds the table of these locations, and
counts the multiply-adds of each basic block. It only adds calls: clang's code does not change.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# Calls before accesses: `call void @__sanitizer_cov_load4(i32* %p), !dbg !7`.
_TRACED = re.compile(r"@__sanitizer_cov_(load|store)(\d+)\((.*)\)(?=, !dbg|$)")
# Calls of the portability layer's accessors. Their last argument is the location, 0 in the source.
_ACCESSOR = re.compile(r"(@tilegate_counted_\w+\(.*), i32 noundef 0\)")
_DECLARED = re.compile(r"^declare void @__sanitizer_cov_(load|store)(\d+)\((\S+)\)")
_FMA = re.compile(r"call .*@llvm\.(?:fma|fmuladd)\.(?:f32|v(\d+)f32)\(")
# Copies of structures, which clang does not trace.
_MEMORY = re.compile(
    r"call void @llvm\.mem(?:cpy|move|set)(?:\.inline)?\.[\w.]+\((.*)\)(?=, !dbg|,? #\d+|$)"
)
_LABEL = re.compile(r"^[-\w$.]+:")
_LOCATION_OF = re.compile(r"!dbg (!\d+)")

# Files between an access of the portability layer and the kernel's line that calls it.
_LAYER = (
    "device/cpu/counted_access.hpp",
    "device/cpu/ordered.hpp",
    "device/cpu/plain.hpp",
    "device/cpu/plain_vectors.hpp",
    "device/cpu/device.hpp",
    "cpu/plain/include/cooperative_groups/memcpy_async.h",
    "cpu/plain/include/cuda/barrier",
    "cpu/plain/include/cuda/pipeline",
    "cpu/plain/include/cuda_pipeline.h",
)

_NODE = re.compile(r"^(!\d+) = (?:distinct )?!(DI\w+)\((.*)\)$")
_TO_ESCAPE = re.compile(rb"[^ !#-\[\]-~]")
_FIELD = re.compile(r'(\w+): ("(?:[^"\\]|\\.)*"|[^,]+)')
_ESCAPED = re.compile(rb"\\([0-9A-Fa-f]{2})")


def _text(value: str) -> str:
    """The value of a field; LLVM writes the bytes of a string that are not ASCII as \\C3\\A9."""
    data = _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), value.strip('"').encode())
    return data.decode(errors="replace")


class Locations:
    """The debug locations of a module, each as the chain of calls that leads to it."""

    def __init__(self, lines: list[str], root: Path) -> None:
        self._root = root
        self._nodes: dict[str, tuple[str, dict[str, str]]] = {}
        self._files: dict[str, str] = {}
        for line in lines:
            node = _NODE.match(line) if line.startswith("!") else None
            if node:
                fields = {key: _text(value) for key, value in _FIELD.findall(node[3])}
                self._nodes[node[1]] = (node[2], fields)

    def chain(self, reference: str | None) -> list[tuple[str, int, int, str]]:
        """(file, line, column, function), innermost first."""
        frames = []
        while reference in self._nodes:
            fields = self._nodes[reference][1]
            file, function = self._scope(fields["scope"])
            line, column = int(fields["line"]), int(fields.get("column", 0))
            if not file.endswith(_LAYER) or "inlinedAt" not in fields:
                frames.append((file, line, column, function))
            reference = fields.get("inlinedAt")
        return frames

    def _scope(self, reference: str) -> tuple[str, str]:
        file = ""
        while True:
            kind, fields = self._nodes[reference]
            file = file or self._file(fields.get("file"))
            if kind == "DISubprogram":
                return file, fields.get("name", "")  # an initializer of statics has none
            reference = fields["scope"]

    def _file(self, reference: str | None) -> str:
        if reference is None:
            return ""
        if reference not in self._files:
            self._files[reference] = self._path(reference)
        return self._files[reference]

    def _path(self, reference: str) -> str:
        fields = self._nodes[reference][1]
        path = Path(fields["directory"]) / fields["filename"]
        try:
            return path.resolve().relative_to(self._root).as_posix()
        except ValueError:
            return path.as_posix()


class Instrumenter:
    """Rewrites the lines of one module."""

    def __init__(self, lines: list[str], module: int, root: Path) -> None:
        self._lines = lines
        self._first = module << 16
        self._locations = Locations(lines, root)
        self._count = 0
        self._declared: set[str] = set()
        self._sites: dict[str, list[int]] = {}  # by location: unrolled loops have many of each

    def run(self) -> Iterator[str]:
        fma = self._fma_by_block()
        block = -1
        for line in self._lines:
            if _starts_block(line):
                block += 1
            declared = _DECLARED.match(line) if line.startswith("declare") else None
            if declared:
                kind, size, pointer = declared.groups()
                yield f"declare void @tilegate_counted_{kind}{size}({pointer}, i32)"
                continue
            if fma.get(block) and _fma(line):
                yield f"  call void @tilegate_counted_fma(i32 {fma.pop(block)})"
            traced = _TRACED.search(line) if "@__sanitizer_cov_" in line else None
            if traced and "@" in traced[3]:
                continue  # a variable of the kernel's environment, such as threadIdx
            if traced:
                line = _TRACED.sub(
                    rf"@tilegate_counted_\1\2(\3, i32 {self._site(line)})", line, count=1
                )
            elif (moved := _memory(line)) and "@" not in moved[1]:  # nor of such a variable
                yield self._moved(moved[1], line)
            elif "@tilegate_counted_" in line and _ACCESSOR.search(line):
                line = _ACCESSOR.sub(rf"\1, i32 {self._site(line)})", line, count=1)
            yield line
        yield from self._footer()

    def _fma_by_block(self) -> dict[int, int]:
        """How many multiply-adds each basic block executes; blocks by their order in the file."""
        counts: dict[int, int] = {}
        block = -1
        for line in self._lines:
            if _starts_block(line):
                block += 1
            found = _fma(line)
            if found:
                counts[block] = counts.get(block, 0) + int(found[1] or 1)
        return counts

    def _moved(self, arguments: str, line: str) -> str:
        """The call that checks the memory that `line` copies or sets."""
        parts = re.split(r", (?=\S+ )", arguments)
        place = _LOCATION_OF.search(line)
        location = f", !dbg {place[1]}" if place else ""
        pointers = parts[:1] if parts[1].startswith("i8 ") else parts[:2]
        name = "copy" if len(pointers) == 2 else "set"
        kinds = ", ".join(pointer.split(" ")[0] for pointer in pointers)
        self._declared.add(f"declare void @tilegate_counted_{name}({kinds}, i64, i32)")
        return (
            f"  call void @tilegate_counted_{name}({', '.join(pointers)}, {parts[2]}, "
            f"i32 {self._site(line)}){location}"
        )

    def _site(self, line: str) -> int:
        location = _LOCATION_OF.search(line)
        frames = self._locations.chain(location[1] if location else None)
        text = "\t".join(f"{file}|{row}|{column}|{name}" for file, row, column, name in frames)
        site = self._first + self._count
        self._sites.setdefault(text, []).append(site)
        self._count += 1
        return site

    def _footer(self) -> Iterator[str]:
        table = "".join(
            f"{' '.join(map(str, sites))}\t{text}\n" for text, sites in self._sites.items()
        )
        data = table.encode()
        escaped = _TO_ESCAPE.sub(lambda found: b"\\%02X" % ord(found[0]), data).decode()
        if data:
            yield (
                f"@tilegate_sites_{self._first >> 16} = hidden constant [{len(data)} x i8] "
                f'c"{escaped}", section "tilegate_sites", align 1'
            )
        yield "declare void @tilegate_counted_fma(i32)"
        yield from sorted(self._declared)


def _memory(line: str) -> re.Match[str] | None:
    return _MEMORY.search(line) if "call void @llvm.mem" in line else None


def _fma(line: str) -> re.Match[str] | None:
    return _FMA.search(line) if "@llvm.fm" in line else None


def _starts_block(line: str) -> bool:
    return line.startswith("define ") or bool(_LABEL.match(line))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--module", type=int, required=True, help="unique in a program")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="of the paths in locations")
    arguments = parser.parse_args(argv)
    lines = arguments.source.read_text(encoding="utf-8").splitlines()
    instrumented = Instrumenter(lines, arguments.module, arguments.root.resolve()).run()
    arguments.output.write_text("\n".join(instrumented) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
