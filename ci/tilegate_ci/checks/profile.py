"""Nsight Compute's counters of each rung: its CSV read, and a profile as Markdown tables."""

import csv
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from tilegate_ci.checks.committed import Committed
from tilegate_ci.core import documents
from tilegate_ci.core.files import GateError, rounded
from tilegate_ci.formats.profile import (
    COUNT,
    FIELDS,
    TEXT,
    ProfiledKernel,
    ProfiledRung,
    ProfileField,
    ProfileFile,
    Stall,
)
from tilegate_ci.report import templates

WARP_SIZE = 32
TOP_STALLS = 3

_ISSUED = "selected"  # the state of a warp that did issue
_STATES = """
barrier branch_resolving dispatch_stall drain gmma imc_miss lg_throttle long_scoreboard
math_pipe_throttle membar mio_throttle misc no_instruction not_selected selected short_scoreboard
sleeping tex_throttle wait
"""
_STALLS = {s: f"smsp__warp_issue_stalled_{s}_per_warp_active.pct" for s in _STATES.split()}

# Executed by threads, so that an instruction with lanes switched off counts for what it did.
_FFMA, _FADD, _FMUL = (
    f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum" for op in ("ffma", "fadd", "fmul")
)
_TENSOR_OPS = tuple(
    f"sm__ops_path_tensor_src_{source}.sum" for source in ("bf16_dst_fp32", "fp16", "tf32_dst_fp32")
)
_L2_HITS = "lts__t_sectors_srcunit_tex_lookup_hit.sum"
_L2_MISSES = "lts__t_sectors_srcunit_tex_lookup_miss.sum"
# Of the hardware, which counts a wavefront that had to wait for other traffic as a conflict.
_BUSY_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
_BUSY_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"


def metric_names() -> list[str]:
    measured = [each.metric for each in FIELDS if each.metric]
    busy = [name.format(op) for name in (_BUSY_WAVEFRONTS, _BUSY_CONFLICTS) for op in ("ld", "st")]
    derived = [_FFMA, _FADD, _FMUL, *_TENSOR_OPS, _L2_HITS, _L2_MISSES, *busy]
    return [*measured, *derived, *_STALLS.values()]


@dataclass(frozen=True)
class CsvRow:
    """One kernel of the CSV: each column's text and unit."""

    values: Mapping[str, str]
    units: Mapping[str, str]

    def text(self, column: str) -> str:
        if column not in self.values:
            raise GateError(f'no column "{column}" in the output of ncu')
        return self.values[column]

    def number(self, name: str, scale: float = 1.0, units: tuple[str, ...] = ()) -> float | None:
        """None where this GPU, or this ncu, does not have the metric."""
        try:
            value = float(self.values.get(name, "").replace(",", "")) * scale
        except ValueError:  # absent, or "n/a" and the like
            return None
        if units and self.units[name] not in units:
            raise GateError(f"{name} is in {self.units[name]!r}, not {units[0]!r}")
        return value if math.isfinite(value) else None

    def count(self, name: str) -> int | None:
        value = self.number(name)
        return None if value is None else round(value)


def parse_csv(text: str) -> list[CsvRow]:
    """The rows of `ncu --csv --page raw`, among whatever else ncu and the program printed."""
    lines = text.splitlines()
    header = next((i for i, line in enumerate(lines) if line.startswith('"ID",')), None)
    if header is None:
        raise GateError("no table in the output of ncu")
    columns, *rows = csv.reader(line for line in lines[header:] if line.startswith('"'))
    if not rows or any(len(row) != len(columns) for row in rows):
        raise GateError("a truncated table in the output of ncu")
    units = dict(zip(columns, rows[0]))
    return [CsvRow(dict(zip(columns, row)), units) for row in rows[1:]]


def read_kernel(row: CsvRow) -> ProfiledKernel:
    record: dict[str, Any] = {
        "name": kernel_name(row.text("Kernel Name")),
        "grid": _extents(row.text("Grid Size")),
        "block": _extents(row.text("Block Size")),
        "stalls": _stalls(row),
        "flop": _flop(row),
    }
    for each in FIELDS:
        if each.metric:
            value = row.number(each.metric, each.scale, each.units)
            if value is not None:
                value = round(value) if each.digits == COUNT else rounded(value)
            group, _, name = each.field.rpartition(".")
            (record.setdefault(group, {}) if group else record)[name] = value
    for access in ("global_load", "global_store"):
        counts = record[access]
        counts["sectors_per_request"] = _ratio(counts["sectors"], counts["requests"])
    for access, op in (("shared_load", "ld"), ("shared_store", "st")):
        counts = record[access]
        counts.update(_conflicts(row, op, counts["wavefronts"]))
        counts["wavefronts_per_instruction"] = _ratio(counts["wavefronts"], counts["instructions"])
    hits, misses, threads = row.count(_L2_HITS), row.count(_L2_MISSES), row.count(_FFMA)
    looked_up = None if hits is None or misses is None else hits + misses
    record["l2"]["hit_pct"] = _ratio(hits, looked_up, 100)
    ffma = None if threads is None else round(threads / WARP_SIZE)
    share = _ratio(ffma, record["instructions"]["executed"], 100)
    record["instructions"].update(ffma=ffma, ffma_pct=share)
    for memory in ("dram", "l2"):
        record[memory]["flop_per_byte"] = _ratio(record["flop"], record[memory]["bytes"])
    return ProfiledKernel(**record)


def kernel_name(demangled: str) -> str:
    """Without the return type and the parameters: "void f<g(1)>(int)" is "f<g(1)>"."""
    text = demangled.removeprefix("void ").replace("(anonymous namespace)::", "")
    depth = 0
    for position, character in enumerate(text):
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "(" and depth == 0 and position:
            return text[:position]
    return text


def function_name(name: str) -> str:
    """The last word of a kernel's name: "split_k::reduce<1>" is "reduce"."""
    return name.split("<")[0].split("::")[-1]


def _extents(text: str) -> list[int]:
    """ "(512, 1, 1)" as numbers."""
    return [int(number) for number in re.findall(r"\d+", text)]


def _stalls(row: CsvRow) -> list[Stall]:
    """Why warps that were resident did not issue, in per cent of the cycles that they were."""
    shares = []
    for state, metric in _STALLS.items():
        share = row.number(metric, units=("%",))
        if share and state != _ISSUED:
            shares.append(Stall(reason=state.replace("_", " "), pct=rounded(share)))
    return sorted(shares, key=lambda stall: (-stall.pct, stall.reason))[:TOP_STALLS]


def _conflicts(row: CsvRow, op: str, wavefronts: int | None) -> dict[str, int | None]:
    """Bank conflicts, and apart from them the wavefronts that waited for other traffic: the
    hardware's counter of conflicts is the sum of the two, and differs between runs."""
    conflicts = row.count(_BUSY_CONFLICTS.format(op))
    busy = row.count(_BUSY_WAVEFRONTS.format(op))
    if conflicts is None or busy is None or wavefronts is None:
        return {"bank_conflicts": conflicts, "contention": None}
    contention = max(0, busy - wavefronts)
    return {"bank_conflicts": max(0, conflicts - contention), "contention": contention}


def _flop(row: CsvRow) -> int | None:
    """Operations that ran, in FP32 and in tensor cores; an FFMA is two."""
    ffma = row.count(_FFMA)
    if ffma is None:
        return None
    return 2 * ffma + sum(row.count(name) or 0 for name in (_FADD, _FMUL, *_TENSOR_OPS))


def _ratio(part: float | None, whole: float | None, factor: float = 1) -> float | None:
    return None if part is None or not whole else rounded(factor * rounded(part / whole))


class Profiles(Committed):
    """The pages of bench/profile; `ci/gate profile` measures what they show."""

    name = "profile"

    def files(self, repository: Path) -> dict[Path, str]:
        files = sorted((repository / "bench" / "profile").glob("*.json"))
        return {f.with_suffix(".md"): markdown(documents.load(ProfileFile, f)) for f in files}


def markdown(profile: ProfileFile) -> str:
    kernels = [each for rung in profile.rungs for each in _labelled_kernels(rung)]
    tables = []
    for title in dict.fromkeys(each.table for each in FIELDS if each.table):
        columns = [each for each in FIELDS if each.table == title]
        rows = [(label, [_cell(each, kernel) for each in columns]) for label, kernel in kernels]
        tables.append((title, columns, rows))
    return templates.text("profile.md", profile=profile, tables=tables)


def _labelled_kernels(rung: ProfiledRung) -> list[tuple[str, ProfiledKernel]]:
    """Warptile; SplitK: sgemm, SplitK: reduce."""
    if len(rung.kernels) == 1:
        return [(rung.name, rung.kernels[0])]
    return [(f"{rung.name}: {function_name(kernel.name)}", kernel) for kernel in rung.kernels]


def _cell(field: ProfileField, kernel: ProfiledKernel) -> str:
    if field.digits == TEXT:
        return _IN_WORDS[field.field](kernel)
    value = attrgetter(field.field)(kernel)
    if value is None:
        return "-"
    return _short(value) if field.digits == COUNT else f"{value:.{field.digits}f}"


def _short(value: int) -> str:
    """Three digits: 4.29 G; small counts in full."""
    for least, factor, letter in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if value >= least:
            return f"{value / factor:.3g} {letter}"
    return str(value)


def _shown_extents(extents: Sequence[int]) -> str:
    """[512, 1, 1] as 512, [8, 16, 1] as 8x16."""
    return re.sub(r"(x1)+$", "", "x".join(map(str, extents)))


def _shared_memory(kernel: ProfiledKernel) -> str:
    parts = (kernel.shared_memory.static_bytes, kernel.shared_memory.dynamic_bytes)
    return " + ".join("-" if value is None else str(value) for value in parts)


def _limit(kernel: ProfiledKernel) -> str:
    """How many blocks an SM holds, and what keeps it from more."""
    limits = {key: value for key, value in kernel.blocks_per_sm if value is not None}
    if not limits:
        return "-"
    least = min(limits.values())
    named = " and ".join(key.replace("_", " ") for key in sorted(limits) if limits[key] == least)
    return f"{least}: {named}"


def _stall(place: int, kernel: ProfiledKernel) -> str:
    if place >= len(kernel.stalls):
        return "-"
    stall = kernel.stalls[place]
    return f"{stall.reason} {stall.pct:.1f} %"


_IN_WORDS: Mapping[str, Callable[[ProfiledKernel], str]] = {
    "grid": lambda kernel: _shown_extents(kernel.grid),
    "block": lambda kernel: _shown_extents(kernel.block),
    "shared_memory": _shared_memory,
    "blocks_per_sm": _limit,
    **{f"stalls.{place}": partial(_stall, place) for place in range(TOP_STALLS)},
}
