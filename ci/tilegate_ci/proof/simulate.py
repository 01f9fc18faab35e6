"""A model of gate runs, fed with the variance components of recordings: many more runs than
anybody records. It is a model, and every figure of it is labelled as simulated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from tilegate_ci.core.model import MIN_DELTA
from tilegate_ci.judge import paired
from tilegate_ci.proof.data import Sitting, seconds

Array = NDArray[np.float64]
RUNS = 2000
SCREEN = paired.SCREEN
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
    # A deviation from the mean of n is too small by (n - 1) / n of its variance.
    residuals = [
        (table - table.mean(axis=0)) * np.sqrt(len(table) / (len(table) - 1)) for table in tables
    ]
    spread = np.sqrt(
        sum(((t - t.mean(axis=0)) ** 2).sum(axis=0) for t in tables)
        / sum(len(t) - 1 for t in tables)
    )
    means = np.array([table.mean(axis=0) for table in tables])
    # Not less what processes contribute to it: that errs on the side of more drift.
    drift = means.std(axis=0, ddof=1) if len(tables) > 1 else np.zeros(len(names))
    return Components(
        names,
        np.array([_within(everything, name) for name in names]),
        spread,
        drift,
        np.concatenate(residuals),
        min(len(table) for table in tables),
    )


def _within(everything: Sequence[Sitting], name: str) -> float:
    samples = [seconds(process, name) for sitting in everything for process in sitting.suite]
    errors = [
        MEDIAN_EFFICIENCY * np.std(values, ddof=1) / np.median(values) / np.sqrt(len(values))
        for values in samples
        if len(values) > 1
    ]
    return float(np.sqrt(np.mean(np.square(errors)))) if errors else 0.0


@dataclass(frozen=True)
class Simulation:
    components: Components
    runs: int
    false_blocks: int  # whole runs
    detected: Mapping[float, tuple[int, int]]  # blocked, planted; where delta is 1 %
    inconclusive: float  # of all benchmarks of all runs
    pairs: Mapping[float, float]  # that a run took, the median, by what was planted; 0 is nothing

    @property
    def false_block_bound(self) -> float:
        return upper_bound(self.false_blocks, self.runs)


def upper_bound(hits: int, total: int) -> float:
    """One-sided, 95 %, by Clopper and Pearson."""
    return float(stats.beta.ppf(0.95, hits + 1, total - hits)) if hits < total else 1.0


def simulate(found: Components, sizes: Sequence[float], seed: int, runs: int = RUNS) -> Simulation:
    draw = np.random.default_rng(seed)
    count = len(found.names)

    def processes(number: int) -> Array:
        chosen = draw.integers(0, len(found.residuals), (runs, number))
        return found.residuals[chosen]  # runs x processes x benchmarks

    def drift() -> Array:
        return draw.normal(0.0, 1.0, (runs, count)) * found.between_sittings

    stored = processes(found.baseline_processes) + drift()[:, None]
    delta = np.maximum(MIN_DELTA, 3 * stored.std(axis=1, ddof=1))
    screen = np.median(stored, axis=1) - np.median(processes(SCREEN), axis=1) - drift()
    pairs = processes(paired.PAIRS) - processes(paired.PAIRS)
    planted = draw.integers(0, count, runs)  # the benchmark, where one is slowed down

    def judged(percent: float) -> Judged:
        added = np.zeros((runs, count))
        added[np.arange(runs), planted] = np.log1p(percent / 100)
        return _judge(screen + added, pairs + added[:, None], delta)

    clean = judged(0.0)
    detected, used = {}, {0.0: float(np.median(clean.pairs))}
    for percent in sizes:
        found_slow = judged(percent)
        hits = found_slow.blocked[np.arange(runs), planted]
        used[percent] = float(np.median(found_slow.pairs))
        known = delta[np.arange(runs), planted] <= MIN_DELTA
        detected[percent] = (int((hits & known).sum()), int(known.sum()))
    return Simulation(
        found,
        runs,
        int(clean.blocked.any(axis=1).sum()),
        detected,
        float(clean.undecided.mean()),
        used,
    )


@dataclass(frozen=True)
class Judged:
    """Which benchmarks of which runs are blocked, which stay undecided, and how many pairs each run
    took."""

    blocked: Any
    undecided: Any
    pairs: Any


def _judge(screen: Array, pairs: Array, delta: Array) -> Judged:
    flagged = np.abs(screen) > delta
    blocked, undecided = np.zeros_like(flagged), np.zeros_like(flagged)
    used = np.zeros(len(screen))
    for count, share in paired.looks(paired.PAIRS).items():
        alpha, confidence = share * paired.ALPHA, 1 - share * (1 - paired.UPPER)
        mean = pairs[:, :count].mean(axis=1)
        error = np.maximum(pairs[:, :count].std(axis=1, ddof=1) / np.sqrt(count), 1e-12)
        slower, faster = (
            special.stdtr(count - 1, (delta - sign * mean) / error) for sign in (1, -1)
        )
        passed = mean + special.stdtrit(count - 1, confidence) * error < delta
        for run in np.flatnonzero(flagged.any(axis=1) & (used == 0)):
            names = np.flatnonzero(flagged[run])
            hit = np.array(paired.holm(list(slower[run, names]), alpha))
            decided = hit | paired.holm(list(faster[run, names]), alpha) | passed[run, names]
            if count == paired.PAIRS or decided.all():
                blocked[run, names], undecided[run, names], used[run] = hit, ~decided, count
    return Judged(blocked, undecided, used)
