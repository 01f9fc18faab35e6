"""What every report says in the same words: times, commits, conditions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilegate_ci.judge.compare import Comparison
from tilegate_ci.model import GFLOPS, OWN_RATIO, PER_SECOND, RATIO, Metric, Run

# What a value of each metric is, in words.
METRIC_NAMES: Mapping[Metric | None, str] = {
    RATIO: "of cuBLAS",
    OWN_RATIO: "of the yardstick",
    PER_SECOND: "time",
    GFLOPS: "GFLOPS",
    None: "GFLOPS, not gated",
}


def duration(seconds: float) -> str:
    """In the unit that leaves one to three digits before the point."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:#.4g} {unit}"
    return f"{seconds / 1e-9:#.4g} ns"


def signed(slowdown: float) -> str:
    """A slow-down in per cent."""
    return f"{100 * slowdown:+.2f}".replace("-0.00", "+0.00")


def short(commit: str) -> str:
    return commit[:12] + commit[40:]


def commit_link(comparison: Comparison, commit: str) -> str | None:
    """The page of the commit; of one with changes after it, of that commit."""
    return f"{comparison.repository}/commit/{commit[:40]}" if comparison.repository else None


@dataclass(frozen=True)
class RunConditions:
    """When a run was measured, and what NVML said of the GPU after each session; words."""

    started: str
    facts: tuple[str, ...]


def conditions(run: Run) -> RunConditions:
    """What is in a session's conditions is free, so whatever is not of our form is left out."""
    days = sorted(session.started for session in run.sessions if session.started)
    after = [session.conditions.get("after") for session in run.sessions if session.conditions]
    known = [side for side in after if isinstance(side, Mapping)]
    facts = [
        f"{words} {_range(values)} {unit}"
        for key, words, unit in (
            ("clock_sm_mhz", "SM clock", "MHz"),
            ("clock_mem_mhz", "memory clock", "MHz"),
            ("power_w", "power", "W"),
            ("temperature_c", "temperature", "°C"),
        )
        if (values := [v for side in known if isinstance(v := side.get(key), (int, float))])
    ]
    reasons = {str(r) for side in known for r in side.get("throttle_reasons") or ()}
    facts += [f"throttled by {', '.join(sorted(reasons))}"] * bool(reasons)
    return RunConditions(days[0] if days else "", tuple(facts))


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return low if low == high else f"{low} to {high}"
