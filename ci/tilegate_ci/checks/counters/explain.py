"""Memory traffic, bank conflicts and limits of a rung, as text."""

from collections.abc import Iterator, Sequence

from tilegate_ci.checks.counters.count import (
    SECTOR_BYTES,
    Counted,
    SourceLine,
    Sources,
    excess_of,
    kinds_of,
    total,
    unit_of,
)
from tilegate_ci.checks.counters.judge import picture, places

WAVEFRONT_BYTES = 128
# Per multiprocessor and clock: the FMA of four warps, and one wavefront.
WAVEFRONTS_PER_WARP_FMA = 0.25
_SHOWN_LINES = 3


def describe(case: Counted, idea: str, sources: Sources) -> Iterator[str]:
    yield f"{case.name}{': ' + idea if idea else ''}"
    yield ""
    if case.error:
        yield f"Hazard: {case.error}"
        return
    yield f"{'':16}{'requests':>12}{'sectors or':>14}{'per':>10}{'beyond the':>12}"
    yield f"{'':16}{'':>12}{'wavefronts':>14}{'request':>10}{'least':>12}"
    for kind in kinds_of(case.counters):
        requests = case.counters[f"{kind}.requests"]
        units = case.counters[f"{kind}.{unit_of(kind)}"]
        excess = case.counters[f"{kind}.{excess_of(kind)}"]
        share = f"{units / requests:.2f}" if requests else "-"
        yield f"{kind.replace('_', ' '):16}{requests:12}{units:14}{share:>10}{excess:12}"
    yield f"{'barriers':16}{case.counters['barriers']:12}"
    yield f"{'FMA':16}{case.counters['fma']:12}"
    yield ""
    for name, value in _intensities(case).items():
        yield f"{name:46}{value}"
    yield ""
    yield "Hazards: none (races, unwritten reads, async copies, barriers, bounds, alignment)"
    for title, unit in (
        ("Bank conflicts", "wavefronts"),
        ("Sectors fetched for nothing", "sectors"),
    ):
        lines = [line for line in case.lines if unit_of(line.kind) == unit and line.excess]
        yield from _worst_lines(title, lines, sources)


def _intensities(case: Counted) -> dict[str, str]:
    counters, flops = case.counters, 2 * case.counters["fma"]
    sectors, wavefronts = total(counters, "sectors"), total(counters, "wavefronts")
    register_bytes = counters["shared_load.bytes"] or counters["global_load.bytes"]

    def per(amount: float, of: float, unit: str) -> str:
        return f"{amount / of:10.2f} {unit}" if of else "         -"

    warp_fma = counters["fma"] / 32
    bound = "" if not wavefronts else f" (below {WAVEFRONTS_PER_WARP_FMA} FMA can be the limit)"
    return {
        "counted intensity": per(flops, SECTOR_BYTES * sectors, "FLOP per byte of global sectors"),
        "shared memory": per(flops, WAVEFRONT_BYTES * wavefronts, "FLOP per byte of wavefronts"),
        "thread intensity": per(flops, register_bytes, "FLOP per byte that threads load"),
        "limit: shared wavefronts per warp FMA": per(wavefronts, warp_fma, "") + bound,
        "limit: bytes of global memory per FLOP": per(SECTOR_BYTES * sectors, flops, ""),
    }


def _worst_lines(title: str, lines: Sequence[SourceLine], sources: Sources) -> Iterator[str]:
    if not lines:
        yield f"{title}: none"
        return
    costly = sorted(lines, key=lambda line: -line.excess)
    yield f"{title}:"
    for line in costly[:_SHOWN_LINES]:
        kind = line.kind.replace("_", " ")
        yield f"  {line.excess} beyond the least in {line.requests} {kind}s"
        yield from places(line, sources)
        yield from picture(line)
    if len(costly) > _SHOWN_LINES:
        rest = sum(line.excess for line in costly[_SHOWN_LINES:])
        yield f"  and {rest} in {len(costly) - _SHOWN_LINES} lines more"


def next_rung(case: Counted, after: Counted, idea: str) -> Iterator[str]:
    """What the rung after this one changes."""
    yield ""
    yield f"Next, {after.name.split('/')[0]}: {idea}"
    for key in _keys(case, after):
        before, now = case.counters.get(key, 0), after.counters.get(key, 0)
        if before != now:
            yield f"  {key:30}{before:>14} -> {now:<14}{_factor(before, now)}"


def compare(a: Counted, b: Counted) -> Iterator[str]:
    yield f"{'':46}{a.name.split('/')[0]:>16}{b.name.split('/')[0]:>16}"
    for case in (a, b):
        if case.error:
            yield f"Hazard: {case.error}"
    if a.error or b.error:
        return
    for key in _keys(a, b):
        before, now = a.counters.get(key, 0), b.counters.get(key, 0)
        yield f"{key:46}{before:>16}{now:>16}  {_factor(before, now)}"
    first, second = _intensities(a), _intensities(b)
    for name in first:
        yield f"{name:46}{first[name].split()[0]:>16}{second[name].split()[0]:>16}"


def _keys(a: Counted, b: Counted) -> list[str]:
    return [key for key in sorted({*a.counters, *b.counters}) if not key.endswith(".bytes")]


def _factor(before: int, now: int) -> str:
    if before == now:
        return ""
    return f"x{now / before:.2f}" if before else "new" if now else ""
