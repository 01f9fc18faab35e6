"""What the counters say, as text: changes of the table, traffic and limits of a rung."""

from collections.abc import Iterator, Mapping, Sequence

from tilegate_ci.checks.committed import Report
from tilegate_ci.checks.counters.count import (
    SECTOR_BYTES,
    Counted,
    CountedCase,
    SourceLine,
    Sources,
    by_key,
    excess_of,
    kinds_of,
    total,
    unit_of,
)

_CHANGED_LINES = 4


def judge(
    baseline: Mapping[str, CountedCase], cases: Mapping[str, Counted], sources: Sources
) -> Report:
    """`baseline` holds what the run was asked for, no more."""
    sections: list[str] = []
    not_taken = [case for case in cases.values() if case.not_applicable]
    sections += [f"NOT APPLICABLE {case.name}: {case.not_applicable}" for case in not_taken]
    cases = {name: case for name, case in cases.items() if not case.not_applicable}
    hazards = [case for case in cases.values() if case.error]
    changed = []
    for name, counted in cases.items():
        if counted.error:
            sections.append(f"HAZARD {name}\n  {counted.error}")
        elif name in baseline and baseline[name].counters != dict(counted.counters):
            changed.append(name)
            sections.append("\n".join(_changes(baseline[name], counted, sources)))
    missing = sorted(set(baseline) - set(cases))
    sections += [f"MISSING {name}: in the baseline, not in this build" for name in missing]
    new = sorted(set(cases) - set(baseline))
    same = len(cases) - len(hazards) - len(changed) - len(set(new) - {c.name for c in hazards})
    counts = {"changed": len(changed), "with a hazard": len(hazards), "new": len(new)}
    counts |= {"missing": len(missing), "not applicable": len(not_taken)}
    parts = [f"{number} {word}" for word, number in counts.items() if number]
    summary = ", ".join([f"{same} cases as the baseline says", *parts])
    if changed:
        summary += (
            "\nIf that is intended: ci/gate check counters --update, and commit the table with it"
        )
    code = 2 if missing else 1 if changed or hazards else 0
    return Report(code, "\n\n".join([*sections, summary]) + "\n")


def _changes(old: CountedCase, counted: Counted, sources: Sources) -> Iterator[str]:
    yield f"CHANGED {counted.name}"
    kinds = []
    for key in sorted({*old.counters, *counted.counters}):
        before, after = old.counters.get(key, 0), counted.counters.get(key, 0)
        if before == after:
            continue
        kinds.append(key.split(".")[0])
        share = f" ({100 * (after - before) / before:+.1f} %)" if before else ""
        yield f"  {key}: {before} -> {after}{share}"
    yield from _changed_lines(old.lines, counted, sources, set(kinds))


def _changed_lines(
    before: Mapping[str, Sequence[int]], counted: Counted, sources: Sources, kinds: set[str]
) -> Iterator[str]:
    after = by_key(counted, sources)
    nothing = (0, 0, 0)

    def growth(key: str) -> int:
        old, new = before.get(key, nothing), after.get(key, nothing)
        return (new[1] - old[1]) + (new[0] - old[0])

    moved = [
        key
        for key in {*before, *after}
        if key.split(":")[0] in kinds and before.get(key, nothing) != after.get(key, nothing)
    ]
    moved.sort(key=lambda key: (-abs(growth(key)), key))
    drawn = False
    for key in moved[:_CHANGED_LINES]:
        kind = key.split(":")[0]
        yield f"  {_line_change(kind, before.get(key), after.get(key))}"
        found = [line for line in counted.lines if line.key(sources) == key]
        if not found:
            yield f"    was: {key}"
            continue
        line = max(found, key=lambda candidate: candidate.excess)
        yield from places(line, sources)
        if not drawn:
            yield from picture(line)
            drawn = True
    if len(moved) > _CHANGED_LINES:
        yield f"  and {len(moved) - _CHANGED_LINES} lines more"


def _line_change(kind: str, before: Sequence[int] | None, after: Sequence[int] | None) -> str:
    names = ("requests", unit_of(kind), excess_of(kind))
    old, new = before or (0, 0, 0), after or (0, 0, 0)
    parts = [
        f"{name} {a} -> {b}" if a != b else f"{name} {b}" for name, a, b in zip(names, old, new)
    ]
    state = "" if before and after else " (gone)" if before else " (new)"
    return f"{kind.replace('_', ' ')}{state}: {', '.join(parts)}"


def places(line: SourceLine, sources: Sources) -> Iterator[str]:
    """The line itself, then who called it."""
    for index, frame in enumerate(line.frames):
        calls = "called from " if index else ""
        yield f"    {calls}{frame.place}: {sources.text(frame)}"


def picture(line: SourceLine) -> Iterator[str]:
    if all(address is None for address in line.worst):  # not of lanes
        return
    cost = f"{line.worst_units} {unit_of(line.kind)}, {line.worst_ideal} would do"
    if line.kind == "shared_copy":  # its words may share banks where they come from, too
        cost += "; drawn: where it writes"
    yield f"    its worst access: {cost}; {LEGEND}"
    yield from (f"      {row}" for row in draw(line.kind, line.width, line.worst))


_LANES = "0123456789abcdefghijklmnopqrstuv"
_WORD = 4
_WORDS_PER_ROW = 32  # banks, or words of a line of global memory
_MOST_ROWS = 8

LEGEND = "lanes are 0-9, a-v; * is a word of several lanes"


def draw(kind: str, width: int, addresses: Sequence[int | None]) -> list[str]:
    """A row of text per 128 bytes that the access touches; `addresses` in bytes, None: idle."""
    if not kind.startswith("shared"):
        active = [lane for lane, address in enumerate(addresses) if address is not None]
        rows = _rows(active, width, addresses, "|")
        return ["by sector of 32 bytes, a line of memory per row:", *rows]
    lanes, which = _worst_phase(width, addresses)
    counts = _counts(lanes, width, addresses)
    shown = "".join("." if n == 0 else str(n) if n < 10 else "+" for n in counts)
    return [
        f"{which}, by bank:",
        "       0       8       16      24      ",
        *_rows(lanes, width, addresses, ""),
        f" words {shown}  most {max(counts)}",
    ]


def _words(lane: int, width: int, addresses: Sequence[int | None]) -> range:
    first = (addresses[lane] or 0) // _WORD
    return range(first, first + width // _WORD)


def _rows(
    lanes: Sequence[int], width: int, addresses: Sequence[int | None], separator: str
) -> list[str]:
    grid: dict[int, list[str]] = {}
    for lane in lanes:
        for word in _words(lane, width, addresses):
            row = grid.setdefault(word // _WORDS_PER_ROW, ["."] * _WORDS_PER_ROW)
            cell = word % _WORDS_PER_ROW
            row[cell] = _LANES[lane] if row[cell] == "." else "*"
    drawn = []
    for number in sorted(grid)[:_MOST_ROWS]:
        cells = grid[number]
        sectors = ("".join(cells[start : start + 8]) for start in range(0, _WORDS_PER_ROW, 8))
        drawn.append(f"{128 * number:6d} {separator.join(sectors)}")
    if len(grid) > _MOST_ROWS:
        drawn.append(f"       and {len(grid) - _MOST_ROWS} rows more")
    return drawn


def _worst_phase(width: int, addresses: Sequence[int | None]) -> tuple[list[int], str]:
    """The lanes that are served together and cost the most passes."""
    step = 32 * _WORD // width
    phases = [
        [lane for lane in range(start, start + step) if addresses[lane] is not None]
        for start in range(0, 32, step)
    ]
    worst = max(phases, key=lambda lanes: max(_counts(lanes, width, addresses)))
    start = phases.index(worst) * step
    return worst, "the warp" if step == 32 else f"lanes {start} to {start + step - 1}"


def _counts(lanes: Sequence[int], width: int, addresses: Sequence[int | None]) -> list[int]:
    """Different words in each bank."""
    banks: list[set[int]] = [set() for _ in range(_WORDS_PER_ROW)]
    for lane in lanes:
        for word in _words(lane, width, addresses):
            banks[word % _WORDS_PER_ROW].add(word)
    return [len(bank) for bank in banks]


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
