"""The screen of a gate run: the whole suite once, and what that leaves open twice more."""

import math
from collections.abc import Container, Sequence
from pathlib import Path

from tilegate_ci.core.files import dumps, write_text
from tilegate_ci.core.model import Role, RunFile, load
from tilegate_ci.core.process import Process
from tilegate_ci.core.progress import message
from tilegate_ci.core.verdicts import Verdict
from tilegate_ci.judge.compare import Comparison
from tilegate_ci.judge.paired import settled
from tilegate_ci.judge.session import is_canary, void_reason
from tilegate_ci.measure.launcher import PLACES
from tilegate_ci.measure.pairs import SPARES, Bench


def places_of(baselines: Path) -> int:
    """At how many places in memory the GPUs' baselines in this folder were measured."""
    runs = [load(path, Role.BASELINE) for path in sorted(baselines.glob("nvidia-*.json"))]
    rows = [row for run in runs for row in run.benchmarks.values()]
    return PLACES if any(row.placement_pct is not None for row in rows) else 1


def screen(
    bench: Bench, head: Path, names: Sequence[str], wanted: int, step: str = "screen"
) -> list[Process]:
    """Processes of the head alone, those that heat or a power brake voids replaced."""
    sound: list[Process] = []
    for number in range(1, wanted + SPARES + 1):
        process = bench.process(f"{step}-{number}", head, names, max(0, wanted - number))
        reason = void_reason(process.conditions)
        if reason:
            message(f"{step}-{number} is void: {reason}")
        else:
            sound.append(process)
        if len(sound) == wanted:
            break
    return sound


def unsettled(screening: Comparison, canaries: Sequence[str]) -> list[str]:
    """What one process leaves open, with the canaries; [] where it leaves nothing."""
    names = [
        row.name
        for row in screening.rows
        if row.slowdown is not None and row.delta is not None
        and not settled(math.log1p(row.slowdown), row.delta)
    ]  # fmt: skip
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
