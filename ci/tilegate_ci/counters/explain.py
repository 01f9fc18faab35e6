"""`ci/explain`: what a rung does to memory, where it conflicts, what limits it, what comes next."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tilegate_ci.core.files import GateError
from tilegate_ci.core.ladder import LadderError, Rung, read_rungs
from tilegate_ci.core.model import REPOSITORY
from tilegate_ci.counters.judge import picture
from tilegate_ci.counters.table import (
    KINDS,
    PROGRAM,
    Counted,
    Line,
    Sources,
    count,
    excess_of,
    list_rungs,
    unit_of,
)

DEFAULT_SHAPE = "256x256x256"
SECTOR_BYTES = 32
WAVEFRONT_BYTES = 128
# Of one multiprocessor, a clock: four warps' multiply-adds beside one wavefront.
WAVEFRONTS_PER_WARP_FMA = 0.25
_SHOWN_LINES = 3

_EPILOG = """examples:
  ci/explain Vectorized
  ci/explain Warptile 2048x2048x32
  ci/explain --diff Prefetch Swizzle

Counted by the SIMT executor on this machine's CPU, for a GPU of 132 multiprocessors; a shape may
end in /beta0.5. Exit code: 0, 1 when a rung has a hazard, 2 for usage.
"""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="ci/explain",
        description="Explains a rung of the ladder by exact counts of what it does to memory.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("rung", nargs="?", metavar="RUNG")
    parser.add_argument("shape", nargs="?", metavar="MxNxK", default=DEFAULT_SHAPE)
    parser.add_argument("--diff", nargs=2, metavar=("A", "B"), help="put two rungs side by side")
    parser.add_argument("--program", type=Path, default=PROGRAM, help="default: built for you")
    arguments = parser.parse_args(argv)
    if bool(arguments.rung) == bool(arguments.diff) and not _shape_after_diff(arguments):
        parser.error("name a rung, or two after --diff")
    try:
        text, code = _explain(arguments)
    except (GateError, LadderError) as problem:
        sys.stderr.write(f"explain: error: {problem}\n")
        return 2
    sys.stdout.write(text)
    return code


def _shape_after_diff(arguments: argparse.Namespace) -> bool:
    """`--diff A B MxNxK` leaves the shape where a rung would stand."""
    if arguments.diff and arguments.rung and arguments.rung[0].isdigit():
        arguments.shape = arguments.rung
        return True
    return False


def _explain(arguments: argparse.Namespace) -> tuple[str, int]:
    counted_rungs = list_rungs(arguments.program)
    ladder = [rung for rung in read_rungs(REPOSITORY) if rung.name in counted_rungs]
    names = [rung.name for rung in ladder]
    asked = list(arguments.diff or [arguments.rung])
    for name in asked:
        if name not in counted_rungs:
            raise GateError(f"no rung {name}; there are {', '.join(counted_rungs)}")
    after = None
    if not arguments.diff and asked[0] in names[:-1]:
        after = ladder[names.index(asked[0]) + 1]
        asked.append(after.name)
    cases = count(arguments.program, [f"{name}/{arguments.shape}" for name in asked])
    found = list(cases.values())
    if arguments.diff:
        lines = list(_compare(found[0], found[1]))
    else:
        idea = next((rung.idea for rung in ladder if rung.name == asked[0]), "")
        lines = list(_describe(found[0], idea, Sources()))
        if after is not None and not found[0].error and not found[1].error:
            lines += ["", f"Next, {after.name}: {after.idea}", *_next(found[0], found[1], after)]
    shown = found if arguments.diff else found[:1]
    return "\n".join(lines) + "\n", 1 if any(case.error for case in shown) else 0


def _describe(case: Counted, idea: str, sources: Sources) -> Iterator[str]:
    yield f"{case.name}{': ' + idea if idea else ''}"
    yield ""
    if case.error:
        yield f"Hazard: {case.error}"
        return
    yield f"{'':14}{'requests':>12}{'sectors or':>14}{'per':>10}{'beyond the':>12}"
    yield f"{'':14}{'':>12}{'wavefronts':>14}{'request':>10}{'least':>12}"
    for kind in KINDS:
        requests = case.counters[f"{kind}.requests"]
        units = case.counters[f"{kind}.{unit_of(kind)}"]
        excess = case.counters[f"{kind}.{excess_of(kind)}"]
        share = f"{units / requests:.2f}" if requests else "-"
        yield f"{kind.replace('_', ' '):14}{requests:12}{units:14}{share:>10}{excess:12}"
    yield f"{'barriers':14}{case.counters['barriers']:12}"
    yield f"{'FMA':14}{case.counters['fma']:12}"
    yield ""
    for name, value in _intensities(case).items():
        yield f"{name:46}{value}"
    yield ""
    yield "Hazards: none (races, unwritten reads, async copies, barriers, bounds, alignment)"
    yield from _worst_lines(case, sources)


def _intensities(case: Counted) -> dict[str, str]:
    counters, flops = case.counters, 2 * case.counters["fma"]
    sectors = counters["global_load.sectors"] + counters["global_store.sectors"]
    wavefronts = counters["shared_load.wavefronts"] + counters["shared_store.wavefronts"]
    register_bytes = counters["shared_load.bytes"] or counters["global_load.bytes"]

    def per(amount: float, of: float, unit: str) -> str:
        return f"{amount / of:10.2f} {unit}" if of else "         -"

    warp_fma = counters["fma"] / 32
    bound = "" if not wavefronts else f" (below {WAVEFRONTS_PER_WARP_FMA} FMA can be the limit)"
    return {
        "intensity, global memory": per(flops, SECTOR_BYTES * sectors, "FLOP a byte of sectors"),
        "intensity, shared memory": per(
            flops, WAVEFRONT_BYTES * wavefronts, "FLOP a byte of wavefronts"
        ),
        "intensity, registers": per(flops, register_bytes, "FLOP a byte that threads load"),
        "limit: shared wavefronts a warp's FMA": per(wavefronts, warp_fma, "") + bound,
        "limit: bytes of global memory a FLOP": per(SECTOR_BYTES * sectors, flops, ""),
    }


def _worst_lines(case: Counted, sources: Sources) -> Iterator[str]:
    for title, chosen in (
        ("Bank conflicts", [line for line in case.lines if line.kind.startswith("shared")]),
        (
            "Sectors fetched for nothing",
            [line for line in case.lines if line.kind.startswith("global")],
        ),
    ):
        costly = sorted((line for line in chosen if line.excess), key=lambda line: -line.excess)
        if not costly:
            yield f"{title}: none"
            continue
        yield f"{title}:"
        for line in costly[:_SHOWN_LINES]:
            kind = line.kind.replace("_", " ")
            yield f"  {line.excess} beyond the least in {line.requests} {kind}s"
            yield from _frames(line, sources)
            yield from picture(line)
        if len(costly) > _SHOWN_LINES:
            rest = sum(line.excess for line in costly[_SHOWN_LINES:])
            yield f"  and {rest} in {len(costly) - _SHOWN_LINES} lines more"


def _frames(line: Line, sources: Sources) -> Iterator[str]:
    for index, frame in enumerate(line.frames):
        yield f"    {'called from ' if index else ''}{frame.place}: {sources.text(frame)}"


def _next(case: Counted, after: Counted, rung: Rung) -> Iterator[str]:
    del rung
    for key in _keys(case, after):
        before, now = case.counters.get(key, 0), after.counters.get(key, 0)
        if before != now:
            yield f"  {key:30}{before:>14} -> {now:<14}{_factor(before, now)}"


def _compare(a: Counted, b: Counted) -> Iterator[str]:
    yield f"{'':46}{a.name.split('/')[0]:>16}{b.name.split('/')[0]:>16}"
    for case in (a, b):
        if case.error:
            yield f"Hazard: {case.error}"
    if a.error or b.error:
        return
    for key in _keys(a, b):
        before, now = a.counters.get(key, 0), b.counters.get(key, 0)
        yield f"{key:46}{before:>16}{now:>16}  {_factor(before, now)}"
    ours, theirs = _intensities(a), _intensities(b)
    for name in ours:
        yield f"{name:46}{ours[name].split()[0]:>16}{theirs[name].split()[0]:>16}"


def _keys(a: Counted, b: Counted) -> list[str]:
    return [key for key in sorted({*a.counters, *b.counters}) if not key.endswith(".bytes")]


def _factor(before: int, now: int) -> str:
    if before == now:
        return ""
    return f"x{now / before:.2f}" if before else "new" if now else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
