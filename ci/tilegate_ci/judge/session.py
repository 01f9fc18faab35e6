"""Whether what was measured may be judged: heat and power brakes, canaries, controls."""

from collections.abc import Mapping

from tilegate_ci.core.names import YARDSTICK, rung_of
from tilegate_ci.judge.paired import Estimate
from tilegate_ci.model import Conditions, relative

# A software power cap is how a GPU at its limit runs all the time; these come and go.
EVENTS = frozenset(
    {
        "hardware slowdown",
        "software thermal slowdown",
        "hardware thermal slowdown",
        "hardware power brake",
    }
)


def void_reason(conditions: Conditions) -> str | None:
    """Why a process between these conditions does not count, in words; None when it does."""
    before, after = conditions.before, conditions.after
    for side in (before, after):
        events = EVENTS.intersection(side.get("throttle_reasons", ()))
        if events:
            return ", ".join(sorted(events))
    key = "thermal_violation_ms"
    if key in before and key in after and after[key] > before[key]:
        return f"{after[key] - before[key]:.0f} ms slowed down by heat"
    return None


def is_canary(name: str) -> bool:
    """cuBLAS against itself, which no change of a kernel moves."""
    return rung_of(name) == YARDSTICK


def moved(estimates: Mapping[str, Estimate], deltas: Mapping[str, float]) -> list[str]:
    """The canaries and controls whose slow-down or speed-up is beyond their margin for certain,
    one phrase each."""
    return [
        f"{name} changed in time by {100 * relative(found.mean):+.2f} %, its code is the same"
        for name, found in estimates.items()
        if found.lower > deltas[name] or found.upper < -deltas[name]
    ]
