"""A model of gate runs, fed with the variance components of recordings: many more runs than
can be recorded. It is a model, and every figure of it is labelled as simulated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilegate_ci.judge import paired
from tilegate_ci.lab.proof.runs import BASELINE, SCREEN, Sitting, upper_bound
from tilegate_ci.measure.launcher import PLACES
from tilegate_ci.model import MIN_DELTA, Verdict, margins

Array = NDArray[np.float64]
RUNS = 2000
MEDIAN_EFFICIENCY = 1.2533  # the standard error of a median over that of a mean


@dataclass(frozen=True)
class Components:
    """Of the log ratio, a standard deviation per benchmark. What happens between processes includes
    what a median inside a process leaves of `within`. `residuals` are the processes themselves,
    off their sitting's mean, a row each: drawn whole, they keep tails and what moves together."""

    names: tuple[str, ...]
    within: Array  # of the rung's time alone: its samples are kept, those of cuBLAS are not
    between_processes: Array
    between_sittings: Array
    residuals: Array
    baseline_processes: int


def components(everything: Sequence[Sitting]) -> Components:
    shared = set.intersection(*(set(sitting.names) for sitting in everything))
    names = tuple(name for name in everything[0].names if name in shared)
    tables = [
        np.array([[p.readings[name].log_ratio for name in names] for p in sitting.suite])
        for sitting in everything
    ]
    off = [table - table.mean(axis=0) for table in tables]
    # A deviation from the mean of n is too small by (n - 1) / n of its variance.
    residuals = [each * np.sqrt(len(each) / (len(each) - 1)) for each in off]
    squares = sum((each**2).sum(axis=0) for each in off)
    freedom = sum(len(table) - 1 for table in tables)
    means = np.array([table.mean(axis=0) for table in tables])
    # Not less what processes contribute to it: that errs on the side of more drift.
    drift = means.std(axis=0, ddof=1) if len(tables) > 1 else np.zeros(len(names))
    return Components(
        names,
        np.array([_within(everything, name) for name in names]),
        np.sqrt(squares / freedom),
        drift,
        np.concatenate(residuals),
        min(BASELINE, *(len(table) for table in tables)),
    )


def _within(everything: Sequence[Sitting], name: str) -> float:
    samples = [p.readings[name].rung_s for sitting in everything for p in sitting.suite]
    errors = [
        MEDIAN_EFFICIENCY * np.std(values, ddof=1) / np.median(values) / np.sqrt(len(values))
        for values in samples
        if len(values) > 1
    ]
    return float(np.sqrt(np.mean(np.square(errors)))) if errors else 0.0


@dataclass(frozen=True)
class Scenario:
    """What happens beside the recorded noise. Where a benchmark has two speeds, each place in
    memory draws one, half of them the slower, and the process has that of the best place. A drift
    is linear over the processes of a recording or a gate run; a walk is a step per process."""

    name: str
    two_speeds: float = 0.0  # by how much the slower one is slower
    benchmarks: int | None = None  # that have two speeds; None: all
    places: int = PLACES
    drift: float = 0.0
    walk: float = 0.0


RECORDED = Scenario("recorded noise")
SCENARIOS = (
    RECORDED,
    Scenario("five benchmarks with two speeds, 1.5 % apart", 0.015, 5),
    Scenario("all benchmarks with two speeds, 1.5 % apart", 0.015),
    Scenario("all benchmarks with two speeds, 3 % apart", 0.03),
    Scenario("a walk of 0.3 % from process to process", walk=0.003),
    Scenario("a drift of 3 % within the baseline, and within the gate run", drift=0.03),
    Scenario("for comparison: all benchmarks, 1.5 % apart, at one place", 0.015, places=1),
)


@dataclass(frozen=True)
class Simulation:
    components: Components
    scenario: Scenario
    runs: int
    false_blocks: int  # whole runs
    detected: Mapping[float, tuple[int, int]]  # blocked, planted; where delta is 1 %
    detected_anywhere: Mapping[float, int]  # blocked of as many as there are runs, at any delta
    inconclusive: float  # of all benchmarks of all runs
    pairs: Mapping[float, float]  # that a run took, the median, by what was planted; 0 is nothing
    screened: float  # processes of the whole suite that the screen of an unchanged branch took

    @property
    def false_block_bound(self) -> float:
        return upper_bound(self.false_blocks, self.runs)

    @property
    def narrow_share(self) -> float:
        """Of the planted 2 %: what was blocked, where the margin is 1 %."""
        blocked, planted = self.detected[2.0]
        return blocked / planted if planted else 0.0


def simulate(
    found: Components,
    sizes: Sequence[float],
    seed: int,
    runs: int = RUNS,
    scenario: Scenario = RECORDED,
) -> Simulation:
    draw = np.random.default_rng(seed)
    count = len(found.names)

    def processes(number: int) -> Array:
        chosen = found.residuals[draw.integers(0, len(found.residuals), (runs, number))]
        drift = draw.normal(0.0, 1.0, (runs, count)) * found.between_sittings
        return chosen + drift[:, None] - _slower(draw, scenario, chosen.shape)

    stored = processes(found.baseline_processes)
    delta, wanders = margins(np.moveaxis(stored, 1, -1))
    fresh = processes(SCREEN + 2 * paired.PAIRS)
    screens = np.median(stored, axis=1)[:, None] - fresh[:, :SCREEN]
    pairs = fresh[:, SCREEN::2] - fresh[:, SCREEN + 1 :: 2]
    pairs *= draw.choice((-1.0, 1.0), (runs, paired.PAIRS, 1))  # which of the two was the base
    planted = draw.integers(0, count, runs)  # the benchmark, where one is slowed down

    def judged(percent: float) -> Judged:
        added = np.zeros((runs, 1, count))
        added[np.arange(runs), 0, planted] = np.log1p(percent / 100)
        return _judge(screens + added, pairs + added, delta, wanders)

    clean = judged(0.0)
    detected, anywhere, used = {}, {}, {0.0: float(np.median(clean.pairs))}
    for percent in sizes:
        found_slow = judged(percent)
        hits = found_slow.blocked[np.arange(runs), planted]
        used[percent] = float(np.median(found_slow.pairs))
        known = delta[np.arange(runs), planted] <= MIN_DELTA
        detected[percent] = (int((hits & known).sum()), int(known.sum()))
        anywhere[percent] = int(hits.sum())
    return Simulation(
        found,
        scenario,
        runs,
        int(clean.blocked.any(axis=1).sum()),
        detected,
        anywhere,
        float(clean.undecided.mean()),
        used,
        float(np.mean(clean.screened)),
    )


def _slower(draw: np.random.Generator, scenario: Scenario, shape: tuple[int, ...]) -> Array:
    """What a scenario makes processes slower by: runs x processes x benchmarks."""
    slower = np.zeros(shape)
    if scenario.two_speeds:
        some = slice(scenario.benchmarks)
        unlucky = draw.random(slower[..., some].shape) < 0.5**scenario.places
        slower[..., some] += scenario.two_speeds * unlucky
    if scenario.drift:
        sign = draw.choice((-1.0, 1.0), (shape[0], 1, shape[2]))
        slower += scenario.drift * sign * np.linspace(0, 1, shape[1])[:, None]
    if scenario.walk:
        slower += draw.normal(0.0, scenario.walk, shape).cumsum(axis=1)
    return slower


@dataclass(frozen=True)
class Judged:
    """Which benchmarks of which runs are blocked, which stay undecided, how many pairs each run
    took, and how many processes the screen took of each benchmark."""

    blocked: Any
    undecided: Any
    pairs: Any
    screened: Any


def _judge(screens: Array, pairs: Array, delta: Array, wanders: Any) -> Judged:
    """`screens` and `pairs` are slow-downs: runs x processes, or pairs, x benchmarks. What
    `wanders` in the baseline is confirmed whatever the screen says."""
    settled = paired.settled(screens[:, 0], delta)
    flagged = wanders | (~settled & (np.abs(np.median(screens, axis=1)) > delta))
    verdicts = np.full(flagged.shape, Verdict.PASS, dtype=object)
    verdicts[flagged] = Verdict.INCONCLUSIVE
    used = np.zeros(len(screens))
    for count, share in paired.looks(paired.PAIRS).items():
        open_runs = np.flatnonzero((verdicts == Verdict.INCONCLUSIVE).any(axis=1))
        measured = np.moveaxis(pairs[open_runs, :count], 1, -1)
        estimates = paired.estimate(measured, delta[open_runs], share)
        used[open_runs] = count
        for row, run in enumerate(open_runs):
            known = {n: verdicts[run, n] for n in np.flatnonzero(flagged[run]).tolist()}
            before = {n: each for n, each in known.items() if each is not Verdict.INCONCLUSIVE}
            found = {n: estimates.at(row, n) for n in known if n not in before}
            deltas = dict(enumerate(delta[run].tolist()))
            for name, verdict in paired.judge(found, deltas, share, before).items():
                verdicts[run, name] = verdict
    third = ~settled & ~paired.agree(screens[:, 0], screens[:, 1], delta)
    blocked, undecided = (verdicts == each for each in (Verdict.REGRESSED, Verdict.INCONCLUSIVE))
    return Judged(blocked, undecided, used, 1 + ~settled + third)
