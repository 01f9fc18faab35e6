"""A profile as Markdown tables."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path

from tilegate_ci.checks.committed import GeneratedFiles
from tilegate_ci.checks.profile.ncu import TOP_STALLS, function_name
from tilegate_ci.core import documents
from tilegate_ci.core.markdown import table
from tilegate_ci.formats.profile import (
    COUNT,
    FIELDS,
    TEXT,
    ProfiledKernel,
    ProfiledRung,
    ProfileField,
    ProfileFile,
)


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
    for title in dict.fromkeys(each.table for each in FIELDS if each.table):
        columns = [each for each in FIELDS if each.table == title]
        rows = [[label, *(_cell(each, kernel) for each in columns)] for label, kernel in kernels]
        lines += ["", f"## {title}", "", *table(["rung", *(e.heading for e in columns)], rows)]
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


def _cell(field: ProfileField, kernel: ProfiledKernel) -> str:
    if field.digits == TEXT:
        return _IN_WORDS[field.field](kernel)
    value = attrgetter(field.field)(kernel)
    return _short(value) if field.digits == COUNT else _fixed(value, int(field.digits))


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


def _stall(place: int, kernel: ProfiledKernel) -> str:
    if place >= len(kernel.stalls):
        return "-"
    stall = kernel.stalls[place]
    return f"{stall.reason} {_fixed(stall.pct, 1)} %"


_IN_WORDS: Mapping[str, Callable[[ProfiledKernel], str]] = {
    "grid": lambda kernel: _extents(kernel.grid),
    "block": lambda kernel: _extents(kernel.block),
    "shared_memory": _shared_memory,
    "blocks_per_sm": _limit,
    **{f"stalls.{place}": partial(_stall, place) for place in range(TOP_STALLS)},
}
