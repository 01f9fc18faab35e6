"""The table of counters: what each kernel does to memory, counted by the SIMT executor."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from tilegate_ci.checks.committed import Committed, Report, chosen
from tilegate_ci.checks.counters.count import (
    BASELINE,
    KINDS,
    LARGE_SHAPES,
    SECTOR_BYTES,
    SHAPES,
    Sources,
    cases_of,
    count,
    excess_of,
    kinds_of,
    list_rungs,
    load,
    to_text,
    total,
    unit_of,
)
from tilegate_ci.checks.counters.explain import judge
from tilegate_ci.core import markdown
from tilegate_ci.core.files import GateError, write_text
from tilegate_ci.core.markdown import Block, has_block
from tilegate_ci.core.names import rung_of
from tilegate_ci.formats.stages import find_ladder, find_stages
from tilegate_ci.measure.projects import build_preset


def program_of(given: str | None) -> Path:
    """Built first, so that the sources as they are now are counted."""
    return (
        Path(given) if given else build_preset("cpu", "tilegate_count") / "bench" / "tilegate_count"
    )


class Counters(Committed):
    name = "counters"
    options = ("quick", "program")
    partial = ("rung", "quick")

    def numbers(self, asked: argparse.Namespace) -> Report:
        program, path = program_of(asked.program), asked.repository / BASELINE
        names, sources = chosen(asked.rung, list_rungs(program)), Sources(asked.repository)
        table = load(path) if path.exists() or not asked.update else {}
        if asked.quick:
            table = {name: row for name, row in table.items() if not name.endswith(LARGE_SHAPES)}
        found = count(program, cases_of(names, table))
        if not asked.update:
            if asked.rung:
                table = {name: row for name, row in table.items() if rung_of(name) in asked.rung}
            return judge(table, found, sources)
        hazards = [f"{name}: {case.error}" for name, case in found.items() if case.error]
        if hazards:
            raise GateError("not written, because of hazards:\n  " + "\n  ".join(hazards))
        outside = {stage.name for stage in find_stages(asked.repository) if stage.external}
        kept = {
            name: case
            for name, case in found.items()
            if rung_of(name) not in outside and not case.not_applicable
        }
        write_text(path, to_text(kept, sources))
        return Report(0, f"{path}: {len(kept)} cases\n")

    def blocks(self, repository: Path) -> list[Block]:
        table = load(repository / BASELINE)
        found = []
        for stage in find_ladder(repository):
            page = repository / stage.folder / "README.md"
            case = table.get(f"{stage.name}/{SHAPES[0]}")
            if case is not None and has_block(page, "counters"):
                found.append(Block(page, "counters", _block(stage.name, case.counters)))
        return found


def _block(rung: str, counters: Mapping[str, int]) -> str:
    heads = ("", "requests", "sectors, wavefronts", "beyond the least")
    rows = [
        [KINDS[kind], *(f"{counters[f'{kind}.{what}']:,}" for what in columns)]
        for kind in kinds_of(counters)
        if counters[f"{kind}.requests"]
        for columns in [("requests", unit_of(kind), excess_of(kind))]
    ]
    wavefronts = total(counters, "wavefronts")
    intensity = 2 * counters["fma"] / (SECTOR_BYTES * total(counters, "sectors"))
    totals = [
        f"{counters['barriers']:,} barriers, each counted once per block",
        f"{counters['fma']:,} FMA",
        f"counted intensity {intensity:.2f} FLOP per byte",
    ]
    if wavefronts:
        totals.append(f"{32 * wavefronts / counters['fma']:.3f} shared wavefronts per warp FMA")
    command = f"`ci/explain {rung} {SHAPES[0]}` shows the lines."
    return "\n".join([*markdown.table(heads, rows), "", f"{'; '.join(totals)}. {command}"])
