"""The confirmation: paired log ratios of base and head, judged benchmark by benchmark.

A value is log(time of cuBLAS / time of the rung) in one process, a pair is one process of each
side, and what is tested is its slow-down: base less head, above zero where the head is slower."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilegate_ci.core.verdicts import Verdict

SCREEN, PAIRS = 3, 12  # processes of the head alone, then pairs, of a gate run
MIN_PAIRS = 4  # below that, a t quantile for many benchmarks says nothing
ALPHA = 0.01  # of one false block among all the flagged, by Holm
UPPER = 0.95  # one-sided confidence of the bound that makes a pass


@dataclass(frozen=True)
class Estimate:
    """Of a log slow-down: its mean, a one-sided bound on either side, and the p-value of `it is
    no more than delta`."""

    mean: float
    lower: float
    upper: float
    p: float
    pairs: int


def estimate(slowdowns: Sequence[float], delta: float) -> Estimate:
    count = len(slowdowns)
    if count < 2:
        raise ValueError("one pair has no spread")
    from scipy import stats  # takes most of a second to import, and most runs flag nothing

    mean = statistics.fmean(slowdowns)
    error = statistics.stdev(slowdowns, mean) / math.sqrt(count)
    reach = float(stats.t.ppf(UPPER, count - 1)) * error
    # Without any spread there is nothing to test: the sign decides.
    p = float(stats.t.sf((mean - delta) / error, count - 1)) if error > 0 else float(mean <= delta)
    return Estimate(mean, mean - reach, mean + reach, p, count)


def holm(p_values: Sequence[float], alpha: float = ALPHA) -> list[bool]:
    """Which hypotheses fall, with a chance of at most alpha that a true one is among them."""
    rejected = [False] * len(p_values)
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    for rank, index in enumerate(order):
        if p_values[index] > alpha / (len(p_values) - rank):
            break
        rejected[index] = True
    return rejected


def judge(
    estimates: Mapping[str, Estimate], deltas: Mapping[str, float], alpha: float = ALPHA
) -> dict[str, Verdict]:
    """Regressed: slower by more than delta, beyond doubt. Pass: the upper bound is below delta."""
    names = list(estimates)
    slower = holm([estimates[name].p for name in names], alpha)
    return {
        name: Verdict.REGRESSED if fallen else _not_regressed(estimates[name], deltas[name])
        for name, fallen in zip(names, slower)
    }


def _not_regressed(found: Estimate, delta: float) -> Verdict:
    if found.upper < -delta:
        return Verdict.IMPROVED
    return Verdict.PASS if found.upper < delta else Verdict.INCONCLUSIVE
