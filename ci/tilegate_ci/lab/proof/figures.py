"""The figures that the gate has to reach, and whether it does."""

from dataclasses import dataclass

from tilegate_ci.judge.paired import PAIRS
from tilegate_ci.lab.proof.data import Rate
from tilegate_ci.lab.proof.replay import Replay, RuleResult
from tilegate_ci.lab.proof.simulate import Simulation


@dataclass(frozen=True)
class Figure:
    """A figure that the gate has to reach. `reached` is None where nothing was recorded for it."""

    name: str
    goal: str
    found: str
    reached: bool | None


def figures(replay: Replay) -> list[Figure]:
    gate, model, alone = replay.rules[0], replay.simulation, replay.independent
    false = gate.false_blocks
    found = [
        Figure(
            "false blocks of a whole gate run on identical code",
            "0",
            f"{false.hits} of {false.total} runs",
            false.hits == 0 if false.total else None,
        ),
        Figure(
            "the same, by independent runs alone: 95 % upper bound",
            "< 5 %",
            f"{percent(alone.bound)} ({alone.false_blocks} of {alone.runs} runs)",
            alone.bound < 0.05,
        ),
        Figure(
            "the same, simulated with the recorded variance components: 95 % upper bound",
            "≤ 1 %",
            f"{percent(model.false_block_bound)} ({model.false_blocks} of {model.runs} runs)",
            model.false_block_bound <= 0.01,
        ),
    ]
    hard = min((s for s in replay.scenarios if s.scenario.places > 1), key=found_narrow)
    found.append(
        Figure(
            "planted 2 % blocked, simulated, in the hardest scenario",
            "≥ 90 %",
            f"{percent(found_narrow(hard))}: {hard.scenario.name}",
            found_narrow(hard) >= 0.90,
        )
    )
    found.append(
        Figure(
            f"pairs that decide about a planted 2 %, of {PAIRS}, simulated, median",
            "≤ 8",
            f"{model.pairs[2.0]:g}",
            model.pairs[2.0] <= 8,
        )
    )
    for size, least in ((2.0, 0.90), (3.0, 0.99), (5.0, 1.0)):
        found.append(_planted(gate, size, least=least))
    assert gate.inconclusive is not None
    return [
        *found,
        _planted(gate, 0.5, most=0.01),
        _share("share of the suite whose delta is 1 %", replay.delta_share, least=0.90),
        _share("inconclusive", gate.inconclusive, most=0.02),
        Figure(
            "one process over the gated suite, the slowest",
            "≤ 15 s",
            f"{replay.process_s:.1f} s",
            replay.process_s <= 15,
        ),
        Figure(
            "GPU time of a gate run that confirms the whole suite",
            "≤ 10 min",
            f"{replay.gate_s / 60:.1f} min",
            replay.gate_s <= 600,
        ),
    ]


def _planted(gate: RuleResult, size: float, least: float = 0.0, most: float = 1.0) -> Figure:
    rate = gate.detected[size]
    return _share(f"planted {size:g} % blocked", rate, least, most, f", {rate.independent} cells")


def _share(name: str, rate: Rate, least: float = 0.0, most: float = 1.0, cells: str = "") -> Figure:
    goal = f"≤ {100 * most:g} %" if most < 1 else f"≥ {100 * least:g} %" if least < 1 else "100 %"
    if rate.share is None:
        return Figure(name, goal, "not recorded", None)
    found = f"{percent(rate.share)} ({rate.hits} of {rate.total}{cells})"
    return Figure(name, goal, found, least <= rate.share <= most)


def found_narrow(model: Simulation) -> float:
    """The share of planted 2 % that was blocked, where the margin is 1 %."""
    blocked, planted = model.detected[2.0]
    return blocked / planted if planted else 0.0


def percent(share: float, digits: int = 2) -> str:
    return f"{100 * share:.{digits}f} %" if 0 < share < 0.1 else f"{100 * share:.3g} %"
