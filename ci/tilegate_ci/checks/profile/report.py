"""A profile as Markdown tables."""

import re
from collections.abc import Callable, Collection, Sequence
from operator import attrgetter
from pathlib import Path

from tilegate_ci.checks.committed import GeneratedFiles
from tilegate_ci.checks.profile.ncu import function_name
from tilegate_ci.core import documents
from tilegate_ci.core.markdown import table
from tilegate_ci.formats.profile import ProfiledKernel, ProfiledRung, ProfileFile

Column = tuple[str, Callable[[ProfiledKernel], str]]


class Profiles(GeneratedFiles):
    """The pages of bench/profile; `ci/gate profile` measures what they show."""

    name = "profile"
    holds = "the pages of bench/profile, from the committed profiles"

    def make(self, repository: Path) -> tuple[dict[Path, str], Collection[Path]]:
        files = sorted((repository / "bench" / "profile").glob("*.json"))
        pages = {f.with_suffix(".md"): markdown(documents.load(ProfileFile, f)) for f in files}
        return pages, ()


def markdown(profile: ProfileFile) -> str:
    device = profile.device
    later = [f"{rung.name} {rung.commit}" for rung in profile.rungs if rung.commit]
    but = f" ({', '.join(later)})" if later else ""
    lines = [
        f"# Profile: {device.name}, {profile.shape}",
        "",
        f"Commit {profile.commit}{but}, driver {device.driver}, CUDA {device.cuda}, "
        f"cuBLAS {device.cublas}, Nsight Compute {profile.ncu}.",
        "Written by `ci/gate profile` from the JSON file of the same name; bench/README.md says",
        "what the columns mean. Times are those of single launches with cold caches; to compare",
        "rungs, take those of bench/baselines.",
    ]
    kernels = [
        (label, kernel) for rung in profile.rungs for label, kernel in _labelled_kernels(rung)
    ]
    for title, columns in _TABLES:
        rows = [[label, *(cell(kernel) for _, cell in columns)] for label, kernel in kernels]
        lines += ["", f"## {title}", "", *table(["rung", *(head for head, _ in columns)], rows)]
    failed = [rung for rung in profile.rungs if rung.error is not None]
    if failed:
        lines += ["", "## Not profiled", ""]
        lines += [f"- {rung.name}: {rung.error}" for rung in failed]
    return "\n".join(lines) + "\n"


def _labelled_kernels(rung: ProfiledRung) -> list[tuple[str, ProfiledKernel]]:
    """Warptile; SplitK: sgemm, SplitK: reduce."""
    if len(rung.kernels) == 1:
        return [(rung.name, rung.kernels[0])]
    return [(f"{rung.name}: {function_name(kernel.name)}", kernel) for kernel in rung.kernels]


def _number(heading: str, path: str, digits: int = 1) -> Column:
    return heading, lambda kernel: _fixed(attrgetter(path)(kernel), digits)


def _count(heading: str, path: str) -> Column:
    return heading, lambda kernel: _short(attrgetter(path)(kernel))


def _fixed(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _short(value: int | None) -> str:
    """Three digits: 4.29 G; small counts in full."""
    if value is None:
        return "-"
    for least, factor, letter in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if value >= least:
            return f"{value / factor:.3g} {letter}"
    return str(value)


def _extents(extents: Sequence[int]) -> str:
    """[512, 1, 1] as 512, [8, 16, 1] as 8x16."""
    return re.sub(r"(x1)+$", "", "x".join(map(str, extents)))


def _shared_memory(kernel: ProfiledKernel) -> str:
    """Static and dynamic bytes."""
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


def _stall(place: int) -> Column:
    def cell(kernel: ProfiledKernel) -> str:
        if place >= len(kernel.stalls):
            return "-"
        stall = kernel.stalls[place]
        return f"{stall.reason} {_fixed(stall.pct, 1)} %"

    return ("first", "second", "third")[place] + " stall", cell


_TABLES: tuple[tuple[str, tuple[Column, ...]], ...] = (
    (
        "Time and utilisation",
        (
            _number("time, µs", "duration_us"),
            _number("SM clock, MHz", "sm_clock_mhz", 0),
            _number("SM busy, %", "sm.busy_pct"),
            _number("issue slots, %", "sm.issue_slots_pct"),
            _number("FMA pipe, %", "sm.fma_pipe_pct"),
            _number("tensor pipe, %", "sm.tensor_pipe_pct"),
            _number("SM throughput, %", "sm.throughput_pct"),
        ),
    ),
    (
        "Occupancy",
        (
            ("grid", lambda kernel: _extents(kernel.grid)),
            ("block", lambda kernel: _extents(kernel.block)),
            _number("waves", "waves", 2),
            _number("registers per thread", "registers", 0),
            ("shared memory per block, static + dynamic bytes", _shared_memory),
            ("blocks per SM, limited by", _limit),
            _number("theoretical, %", "occupancy.theoretical_pct"),
            _number("achieved, %", "occupancy.achieved_pct"),
        ),
    ),
    (
        "DRAM and caches",
        (
            _number("DRAM, GB/s", "dram.gb_per_s"),
            _number("DRAM, % of peak", "dram.peak_pct"),
            _number("L2, GB/s", "l2.gb_per_s"),
            _number("L1 hits, %", "l1.hit_pct"),
            _number("L2 hits, %", "l2.hit_pct"),
            _number("FLOP per byte of DRAM", "dram.flop_per_byte"),
            _number("FLOP per byte of L2", "l2.flop_per_byte"),
        ),
    ),
    (
        "Global memory",
        (
            _count("load requests", "global_load.requests"),
            _count("sectors", "global_load.sectors"),
            _number("sectors per request", "global_load.sectors_per_request", 2),
            _count("TMA sectors", "async_copy.tma_sectors"),
            _count("store requests", "global_store.requests"),
            _count("sectors", "global_store.sectors"),
            _number("sectors per request", "global_store.sectors_per_request", 2),
        ),
    ),
    (
        "Shared memory",
        (
            _count("load requests", "shared_load.instructions"),
            _count("wavefronts", "shared_load.wavefronts"),
            _number("wavefronts per request", "shared_load.wavefronts_per_instruction", 2),
            _count("bank conflicts", "shared_load.bank_conflicts"),
            _count("store requests", "shared_store.instructions"),
            _count("wavefronts", "shared_store.wavefronts"),
            _number("wavefronts per request", "shared_store.wavefronts_per_instruction", 2),
            _count("bank conflicts", "shared_store.bank_conflicts"),
            _count("cp.async", "async_copy.instructions"),
            _count("bank conflicts", "async_copy.bank_conflicts"),
        ),
    ),
    (
        "Instructions and stalls",
        (
            _count("instructions", "instructions.executed"),
            _count("FFMA", "instructions.ffma"),
            _number("FFMA, %", "instructions.ffma_pct"),
            _stall(0),
            _stall(1),
            _stall(2),
        ),
    ),
)
