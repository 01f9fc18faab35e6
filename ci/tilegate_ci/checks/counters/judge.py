"""Counters against the committed table: what changed, and which lines of the kernels changed it."""

from collections.abc import Iterator, Mapping, Sequence

from tilegate_ci.checks.committed import Report
from tilegate_ci.checks.counters.count import (
    Counted,
    SourceLine,
    Sources,
    by_key,
    excess_of,
    unit_of,
)
from tilegate_ci.checks.counters.pattern import LEGEND, draw
from tilegate_ci.checks.counters.table import CountedCase

_SHOWN_LINES = 4


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
    summary = f"{same} cases as the baseline says"
    for number, word in ((len(changed), "changed"), (len(hazards), "with a hazard")):
        summary += f", {number} {word}" if number else ""
    summary += f", {len(new)} new" if new else ""
    summary += f", {len(missing)} missing" if missing else ""
    summary += f", {len(not_taken)} not applicable" if not_taken else ""
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
    for key in moved[:_SHOWN_LINES]:
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
    if len(moved) > _SHOWN_LINES:
        yield f"  and {len(moved) - _SHOWN_LINES} lines more"


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
