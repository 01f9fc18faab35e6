"""What `ci/gate lab replay` writes, by report/text/proof.md."""

import statistics
from functools import partial

import numpy as np

from tilegate_ci.judge.paired import MIN_PAIRS, PAIRS
from tilegate_ci.lab.proof.recording import KEPT_SAMPLES
from tilegate_ci.lab.proof.replay import SIZES, Mutation, Replay, figures
from tilegate_ci.lab.proof.runs import SCREEN, SEED, Rate, pairs_of, percent, screen_of
from tilegate_ci.report import templates


def markdown(replay: Replay) -> str:
    gate, parts = replay.rules[0], replay.simulation.components
    arms = [(arm, len(rounds)) for s in replay.sittings for arm, rounds in s.arms.items()]
    planted = sorted({rounds for arm, rounds in arms if arm.plant_percent})
    pairs = sorted({pairs_of(len(sitting.suite)) for sitting in replay.sittings})
    spreads = {
        "left of a process' own replays in its median (rung's time)": parts.within,
        "between processes of a sitting": parts.between_processes,
        "between sittings": parts.between_sittings,
    }
    return templates.text(
        "proof",
        replay=replay,
        sizes=SIZES,
        kept=KEPT_SAMPLES,
        screen=SCREEN,
        pairs=PAIRS,
        least=MIN_PAIRS,
        percent=percent,
        rate=partial(_rate, np.random.default_rng(SEED)),
        planted_sittings=sum(bool(count.total) for count in gate.detected[SIZES[0]].counts),
        confirming=[count for count in pairs if MIN_PAIRS <= count < PAIRS],
        planted_rounds=[
            (count, screened, min(PAIRS, count - screened))
            for count in planted
            if (screened := screen_of(count))
        ],
        some_do_both=any(rounds and not screen_of(rounds) for _, rounds in arms),
        moved=gate.incomparable if gate.incomparable and gate.incomparable.hits else None,
        figures=figures(replay),
        mutations=[(mutation, _slower(mutation)) for mutation in replay.mutations],
        components=[
            (name, *map(float, np.quantile(each, (0.5, 0.9)))) for name, each in spreads.items()
        ],
    ).rstrip("\n")


def _slower(mutation: Mutation) -> str:
    slower = sorted(100 * np.expm1(value) for value in mutation.slowdowns.values())
    if not slower:
        return "-"
    return f"{statistics.median(slower):+.1f} % ({slower[0]:+.1f} to {slower[-1]:+.1f})"


def _rate(draw: np.random.Generator, rate: Rate, bounds: bool = True) -> str:
    if rate.share is None:
        return "-"
    interval = rate.interval(draw) if bounds else None
    around = f" [{100 * interval[0]:.3g}, {100 * interval[1]:.3g}]" if interval else ""
    return percent(rate.share) + around
