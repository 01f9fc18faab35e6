"""The screen of a gate run: the whole suite once, and what that leaves open up to twice more."""

from collections.abc import Container, Sequence
from dataclasses import replace
from pathlib import Path

from tilegate_ci.core.files import dumps, write_text
from tilegate_ci.core.progress import message
from tilegate_ci.formats.run_file import Role, load
from tilegate_ci.judge.compare import Comparison, worst_first
from tilegate_ci.judge.paired import undecided
from tilegate_ci.judge.session import is_canary, void_reason
from tilegate_ci.measure.launcher import PLACES
from tilegate_ci.measure.pairs import SPARES, Bench
from tilegate_ci.model import Process, RunFile, Verdict, log_slowdown


def places_of(baselines: Path) -> int:
    """At how many places in memory the GPUs' baselines in this folder were measured."""
    runs = [load(path, Role.BASELINE) for path in sorted(baselines.glob("nvidia-*.json"))]
    rows = [row for run in runs for row in run.benchmarks.values()]
    return PLACES if any(row.placement_pct is not None for row in rows) else 1


def screen(bench: Bench, head: Path, names: Sequence[str], step: str) -> Process | None:
    """A process of the head alone, one that heat or a power brake voids replaced a few times."""
    for number in range(1, SPARES + 2):
        process = bench.process(f"{step}-{number}", head, names, 0)
        reason = void_reason(process.conditions)
        if not reason:
            return process
        message(f"{step}-{number} is void: {reason}")
    return None


def unsettled(screening: Comparison, candidate: RunFile, canaries: Sequence[str]) -> list[str]:
    """What the candidate's processes leave open, with the canaries; [] where they leave nothing."""
    names = []
    for row in screening.rows:
        if row.metric is not None and row.baseline is not None and row.delta is not None:
            values = candidate.benchmarks[row.name].per_process[row.metric]
            if undecided([log_slowdown(row.baseline, value) for value in values], row.delta):
                names.append(row.name)
    return sorted({*names, *canaries}) if names else []


def with_more(candidate: RunFile, more: RunFile) -> RunFile:
    """The candidate, in its file too, with the rows of `more` in place of its own."""
    rows = {**candidate.benchmarks, **more.benchmarks}
    run = candidate.model_copy(update={"benchmarks": rows, "sessions": more.sessions})
    write_text(Path(candidate.path), dumps(run.fields) + "\n")
    return run


def flagged_by(screening: Comparison, stored: RunFile, base: Container[str]) -> list[str]:
    """What looks slower or faster, what the baseline lacks although `base` can run it, and what it
    says little of, because it drifted."""
    flagged = []
    for verdict, reason in (
        (Verdict.REGRESSED, "look slower"),
        (Verdict.IMPROVED, "look faster"),
        (Verdict.NEW, "are not in the baseline"),
    ):
        names = [row.name for row in screening.rows if row.verdict is verdict]
        if verdict is Verdict.NEW:  # of those in head's suite only there is nothing to compare
            names = [name for name in names if name in base]
        if names:
            message(f"{len(names)} {reason}: {', '.join(names)}")
        flagged += names
    passed = {row.name for row in screening.rows if row.verdict is Verdict.PASS}
    drifted = [
        name
        for name, row in stored.benchmarks.items()
        if name in passed and not is_canary(name) and row.drifts(row.decisive)
    ]
    if drifted:
        message(f"{len(drifted)} drifted when the baseline was recorded: {', '.join(drifted)}")
    return flagged + drifted


def only(names: Sequence[str], measured: Sequence[Process]) -> list[Process]:
    """The processes, as if they had run these benchmarks alone."""
    return [
        process.model_copy(update={"readings": {name: process.readings[name] for name in names}})
        for process in measured
    ]


def incomparable(screening: Comparison, reasons: Sequence[str]) -> Comparison:
    """The screening of a session that cannot be judged: nothing in it is red."""
    flagged = (Verdict.REGRESSED, Verdict.IMPROVED)
    rows = [
        replace(row, verdict=Verdict.INCOMPARABLE) if row.verdict in flagged else row
        for row in screening.rows
    ]
    return replace(
        screening,
        rows=tuple(sorted(rows, key=worst_first)),
        differences=(*screening.differences, *reasons),
    )
