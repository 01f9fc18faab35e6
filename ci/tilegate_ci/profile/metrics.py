"""What ci/profile asks of Nsight Compute, and what its CSV says about each kernel."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

BYTES_PER_SECTOR = 32
WARP_SIZE = 32
TOP_STALLS = 3

_STALL = re.compile(r"smsp__warp_issue_stalled_(\w+)_per_warp_active\.pct")
# What a warp that did issue was counted as.
_ISSUED = "selected"
_STALL_REASONS = (
    "barrier",
    "branch_resolving",
    "dispatch_stall",
    "drain",
    "gmma",
    "imc_miss",
    "lg_throttle",
    "long_scoreboard",
    "math_pipe_throttle",
    "membar",
    "mio_throttle",
    "misc",
    "no_instruction",
    "not_selected",
    "selected",
    "short_scoreboard",
    "sleeping",
    "tex_throttle",
    "wait",
)


class ProfileError(Exception):
    """What keeps one rung, or all, from being profiled; its text is one line for the user."""


@dataclass(frozen=True)
class Metric:
    """One number of a kernel. `whole` makes it an integer. `units` are Nsight Compute's words for
    the unit that `scale` converts from; empty where a count needs none."""

    name: str
    whole: bool = False
    scale: float = 1.0
    units: tuple[str, ...] = ()


def _count(name: str) -> Metric:
    return Metric(name, whole=True)


def _percent(name: str) -> Metric:
    return Metric(name, units=("%",))


def _global(op: str) -> dict[str, Metric]:
    return {
        "requests": _count(f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum"),
        "sectors": _count(f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum"),
    }


def _shared(op: str) -> dict[str, Metric]:
    return {
        "instructions": _count(f"smsp__inst_executed_op_shared_{op}.sum"),
        # What the addresses need: counted at each instruction, the same in every run.
        "wavefronts": _count(f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum"),
    }


# Field of a kernel's record to its metric; a name that this GPU does not have gives null.
MEASURED: dict[str, Metric | dict[str, Metric]] = {
    "duration_us": Metric("gpu__time_duration.sum", scale=1e-3, units=("ns", "nsecond")),
    "sm_clock_mhz": Metric(
        "sm__cycles_elapsed.avg.per_second", scale=1e-6, units=("hz", "cycle/second")
    ),
    "registers": _count("launch__registers_per_thread"),
    "shared_memory": {
        "static_bytes": Metric(
            "launch__shared_mem_per_block_static", whole=True, units=("byte/block",)
        ),
        "dynamic_bytes": Metric(
            "launch__shared_mem_per_block_dynamic", whole=True, units=("byte/block",)
        ),
    },
    "blocks_per_sm": {
        "registers": _count("launch__occupancy_limit_registers"),
        "shared_memory": _count("launch__occupancy_limit_shared_mem"),
        "warps": _count("launch__occupancy_limit_warps"),
        "blocks": _count("launch__occupancy_limit_blocks"),
    },
    "waves": Metric("launch__waves_per_multiprocessor"),
    "occupancy": {
        "theoretical_pct": _percent("sm__maximum_warps_per_active_cycle_pct"),
        "achieved_pct": _percent("sm__warps_active.avg.pct_of_peak_sustained_active"),
    },
    "sm": {
        "busy_pct": _percent("sm__instruction_throughput.avg.pct_of_peak_sustained_active"),
        "throughput_pct": _percent("sm__throughput.avg.pct_of_peak_sustained_elapsed"),
        "issue_slots_pct": _percent("smsp__issue_active.avg.pct_of_peak_sustained_active"),
        "fma_pipe_pct": _percent("sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active"),
        "tensor_pipe_pct": _percent(
            "sm__pipe_tensor_op_hmma_type_hmma_hgmma_qgmma_cycles_active"
            ".avg.pct_of_peak_sustained_active"  # not HFMA2.MMA, which loads constants
        ),
    },
    "dram": {
        "bytes": Metric("dram__bytes.sum", whole=True, units=("byte",)),
        "gb_per_s": Metric(
            "dram__bytes.sum.per_second", scale=1e-9, units=("byte/s", "byte/second")
        ),
        "peak_pct": _percent("dram__throughput.avg.pct_of_peak_sustained_elapsed"),
    },
    # Between the L1 caches and L2; what L2 moves to and from memory is DRAM's.
    "l2": {
        "bytes": Metric("lts__t_sectors_srcunit_tex.sum", whole=True, scale=BYTES_PER_SECTOR),
        "gb_per_s": Metric(
            "lts__t_sectors_srcunit_tex.sum.per_second",
            scale=BYTES_PER_SECTOR * 1e-9,
            units=("sector/s", "sector/second"),
        ),
    },
    "l1": {"hit_pct": _percent("l1tex__t_sector_hit_rate.pct")},
    "global_load": _global("ld"),  # cp.async included, TMA not
    "global_store": _global("st"),
    "shared_load": _shared("ld"),
    "shared_store": _shared("st"),
    "async_copy": {
        "instructions": _count("smsp__inst_executed_op_ldgsts.sum"),
        "bank_conflicts": _count(
            "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum"
        ),
        "tma_sectors": _count("l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum"),
    },
    "instructions": {"executed": _count("smsp__inst_executed.sum")},
}

# Executed by threads, so that an instruction with lanes switched off counts for what it did.
_FFMA = _count("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum")
_FADD = _count("smsp__sass_thread_inst_executed_op_fadd_pred_on.sum")
_FMUL = _count("smsp__sass_thread_inst_executed_op_fmul_pred_on.sum")
_TENSOR_OPS = tuple(
    _count(f"sm__ops_path_tensor_src_{source}.sum")
    for source in ("bf16_dst_fp32", "fp16", "tf32_dst_fp32")
)

_L2_HITS = _count("lts__t_sectors_srcunit_tex_lookup_hit.sum")
_L2_MISSES = _count("lts__t_sectors_srcunit_tex_lookup_miss.sum")
# Of the hardware, which counts a wavefront that had to wait for other traffic as a conflict.
_BUSY_WAVEFRONTS = {
    op: _count(f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum") for op in ("ld", "st")
}
_BUSY_CONFLICTS = {
    op: _count(f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum") for op in ("ld", "st")
}


def metric_names() -> list[str]:
    """All that Nsight Compute is asked for."""
    names = []
    for entry in MEASURED.values():
        metrics = entry.values() if isinstance(entry, dict) else (entry,)
        names += [metric.name for metric in metrics]
    names += [metric.name for metric in (_FFMA, _FADD, _FMUL, *_TENSOR_OPS, _L2_HITS, _L2_MISSES)]
    names += [metric.name for metric in _BUSY_WAVEFRONTS.values()]
    names += [metric.name for metric in _BUSY_CONFLICTS.values()]
    names += [f"smsp__warp_issue_stalled_{reason}_per_warp_active.pct" for reason in _STALL_REASONS]
    return names


@dataclass(frozen=True)
class Row:
    """One kernel of the CSV: each column's text and unit."""

    values: Mapping[str, str]
    units: Mapping[str, str]

    def text(self, column: str) -> str:
        try:
            return self.values[column]
        except KeyError:
            raise ProfileError(f'no column "{column}" in the output of ncu') from None

    def number(self, metric: Metric) -> float | int | None:
        """None where this GPU, or this ncu, does not have the metric."""
        text = self.values.get(metric.name, "").replace(",", "")
        try:
            value = float(text) * metric.scale
        except ValueError:  # absent, or "n/a" and the like
            return None
        unit = self.units[metric.name]
        if metric.units and unit not in metric.units:
            raise ProfileError(f"{metric.name} is in {unit!r}, not {metric.units[0]!r}")
        return round(value) if metric.whole else _rounded(value)


def parse_csv(text: str) -> list[Row]:
    """The rows of `ncu --csv --page raw`, among whatever else ncu and the program printed."""
    lines = text.splitlines()
    header = next((i for i, line in enumerate(lines) if line.startswith('"ID",')), None)
    if header is None:
        raise ProfileError("no table in the output of ncu")
    columns, *rows = csv.reader(line for line in lines[header:] if line.startswith('"'))
    if not rows or any(len(row) != len(columns) for row in rows):
        raise ProfileError("a truncated table in the output of ncu")
    units = dict(zip(columns, rows[0]))
    return [Row(dict(zip(columns, row)), units) for row in rows[1:]]


def kernel_record(row: Row) -> dict[str, Any]:
    """What the JSON says about a kernel."""
    record: dict[str, Any] = {
        "name": kernel_name(row.text("Kernel Name")),
        "grid": _extents(row.text("Grid Size")),
        "block": _extents(row.text("Block Size")),
        "stalls": _stalls(row),
    }
    for field, entry in MEASURED.items():
        if isinstance(entry, dict):
            record[field] = {key: row.number(metric) for key, metric in entry.items()}
        else:
            record[field] = row.number(entry)
    for access in ("global_load", "global_store"):
        counts = record[access]
        counts["sectors_per_request"] = _ratio(counts["sectors"], counts["requests"])
    for access, op in (("shared_load", "ld"), ("shared_store", "st")):
        counts = record[access]
        counts.update(_conflicts(row, op, counts["wavefronts"]))
        counts["wavefronts_per_instruction"] = _ratio(counts["wavefronts"], counts["instructions"])
    record["l2"]["hit_pct"] = _l2_hit_pct(row)
    record["instructions"].update(_ffma(row, record["instructions"]["executed"]))
    record["flop"] = _flop(row)
    record["dram"]["flop_per_byte"] = _ratio(record["flop"], record["dram"]["bytes"])
    record["l2"]["flop_per_byte"] = _ratio(record["flop"], record["l2"]["bytes"])
    return record


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


def _stalls(row: Row) -> list[dict[str, Any]]:
    """Why warps that were resident did not issue, in per cent of the cycles that they were."""
    shares = []
    for column in row.values:
        match = _STALL.fullmatch(column)
        share = row.number(_percent(column)) if match else None
        if match and share and match.group(1) != _ISSUED:
            shares.append({"reason": match.group(1).replace("_", " "), "pct": share})
    return sorted(shares, key=lambda stall: (-stall["pct"], stall["reason"]))[:TOP_STALLS]


def _conflicts(row: Row, op: str, wavefronts: int | None) -> dict[str, int | None]:
    """Bank conflicts, and apart from them the wavefronts that waited for other traffic: the
    hardware's counter of conflicts is the sum of the two, and differs between runs."""
    conflicts = row.number(_BUSY_CONFLICTS[op])
    busy = row.number(_BUSY_WAVEFRONTS[op])
    if conflicts is None or busy is None or wavefronts is None:
        return {"bank_conflicts": conflicts, "contention": None}
    contention = max(0, busy - wavefronts)
    return {"bank_conflicts": max(0, conflicts - contention), "contention": contention}


def _l2_hit_pct(row: Row) -> float | None:
    hits, misses = row.number(_L2_HITS), row.number(_L2_MISSES)
    share = _ratio(hits, None if hits is None or misses is None else hits + misses)
    return None if share is None else _rounded(100 * share)


def _ffma(row: Row, executed: float | None) -> dict[str, Any]:
    threads = row.number(_FFMA)
    warps = None if threads is None else round(threads / WARP_SIZE)
    share = _ratio(warps, executed)
    return {"ffma": warps, "ffma_pct": None if share is None else _rounded(100 * share)}


def _flop(row: Row) -> int | None:
    """Operations that ran, in FP32 and in tensor cores; an FFMA is two."""
    ffma = row.number(_FFMA)
    if ffma is None:
        return None
    others = sum(row.number(metric) or 0 for metric in (_FADD, _FMUL, *_TENSOR_OPS))
    return round(2 * ffma + others)


def _ratio(numerator: float | None, denominator: float | None) -> float | None:
    if numerator is None or not denominator:
        return None
    return _rounded(numerator / denominator)


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
