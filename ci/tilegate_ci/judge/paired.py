"""The confirmation: paired log ratios of base and head, judged benchmark by benchmark.

A value is log(time of cuBLAS / time of the rung) in one process, a pair is one process of each
side, and what is tested is its slow-down: base less head, above zero where the head is slower."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, TypeVar

from tilegate_ci.model import Verdict

T = TypeVar("T")  # what names a benchmark

# Processes of the head alone, then pairs, of a gate run: at most.
SCREEN, PAIRS = 3, 12
MOST_PAIRS = 1000
MIN_PAIRS = 4  # below that, a t quantile for many benchmarks says nothing
# The evidence is looked at before all pairs are there. So many are the fewest that may block: fewer
# would do for noise, but where a benchmark has two speeds, one drawn by each process, 6 pairs that
# all fell the same way have been seen in simulation.
EARLY = 8
ALPHA = 0.01  # of one false block among all the flagged at any look, by Holm
UPPER = 0.95  # one-sided confidence, over all looks, of the bound that makes a pass


@dataclass(frozen=True)
class Share:
    """What a look may use of the errors allowed: of false alarms (ALPHA), and of false
    passes (1 - UPPER)."""

    block: float
    let_pass: float


WHOLE = Share(1.0, 1.0)


@dataclass(frozen=True)
class Estimate:
    """Of log slow-downs, a value for each pair: their mean, a one-sided bound on either side, and
    the p-values of `it is no more than delta` and of `the speed-up is no more than delta`."""

    mean: Any
    lower: Any
    upper: Any
    p: Any
    p_faster: Any
    pairs: Any

    def at(self, *index: int) -> "Estimate":
        """One of several estimates that were made at once."""
        return Estimate(*(getattr(self, field.name)[index] for field in fields(self)))


def settled(slower: Any, delta: Any) -> Any:
    """Whether one process of the screen is enough: a log slow-down that is far from its margin.
    Numbers, or arrays of them."""
    return abs(slower) <= delta / 2


def agree(one: Any, other: Any, delta: Any) -> Any:
    """Whether two processes of the screen are enough: both within the margin, or both beyond it on
    the same side, and so is the median, whatever a third one says. Numbers, or arrays of them."""
    return ((one > delta) == (other > delta)) & ((one < -delta) == (other < -delta))


def undecided(slower: Sequence[float], delta: float) -> bool:
    """Whether one more process can change what these, the first ones, say of a benchmark."""
    if len(slower) == 1:
        return not settled(slower[0], delta)
    return len(slower) < SCREEN and not agree(slower[0], slower[1], delta)


def looks(wanted: int) -> dict[int, Share]:
    """At how many pairs the measurement may end, of `wanted` at most, each with its share of the
    errors allowed: together they make no more than a single look would. The first blocks nothing.
    """
    if wanted <= EARLY:
        return {wanted: WHOLE}
    first = {MIN_PAIRS: Share(0.0, 0.1), EARLY: Share(0.1, 0.1)}
    if wanted <= PAIRS:
        return {**first, wanted: Share(0.9, 0.8)}
    return {**first, PAIRS: Share(0.4, 0.3), wanted: Share(0.5, 0.5)}


def estimate(slowdowns: Any, delta: Any, share: Share = WHOLE) -> Estimate:
    """`share` is this look's part of the errors allowed. The pairs are the last axis: of many
    benchmarks and runs at once the fields are arrays."""
    import numpy as np
    from scipy import special  # scipy.stats takes twice as long to import; most runs flag nothing

    values = np.asarray(slowdowns)
    count = values.shape[-1]
    if count < 2:
        raise ValueError("one pair has no spread")
    mean = values.mean(axis=-1)
    error = values.std(axis=-1, ddof=1) / math.sqrt(count)
    reach = float(special.stdtrit(count - 1, 1 - share.let_pass * (1 - UPPER))) * error

    def p_value(slower: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            p = special.stdtr(count - 1, (delta - slower) / error)
        return np.where(error > 0, p, slower <= delta)[()]  # without spread, nothing to test

    return Estimate(mean, mean - reach, mean + reach, p_value(mean), p_value(-mean), values)


def pairs_needed(slowdowns: Sequence[float], delta: float) -> int:
    """About how many pairs would decide, if their mean and scatter stay as they are."""
    distance = abs(statistics.fmean(slowdowns) - delta)
    scatter = statistics.stdev(slowdowns)
    if distance * 1e3 <= scatter:
        return MOST_PAIRS
    reach = 2.0 * scatter / distance  # t of a few dozen pairs, at UPPER with the last look's share
    return min(MOST_PAIRS, max(len(slowdowns) + 1, math.ceil(reach**2)))


def holm(p_values: Sequence[float], alpha: float = ALPHA) -> list[bool]:
    """Which hypotheses fall, with a chance of at most alpha that a true one is among them."""
    rejected = [False] * len(p_values)
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    for rank, index in enumerate(order):
        if p_values[index] >= alpha / (len(p_values) - rank):
            break
        rejected[index] = True
    return rejected


def judge(
    estimates: Mapping[T, Estimate],
    deltas: Mapping[T, float],
    share: Share = WHOLE,
    before: Mapping[T, Verdict] = MappingProxyType({}),
) -> dict[T, Verdict]:
    """Regressed or improved: slower or faster by more than delta, beyond doubt. Pass: the upper
    bound is below delta. `before` are the verdicts of other benchmarks at earlier looks, which
    stand: what has not fallen there counts in Holm's method."""
    alpha = share.block * ALPHA
    slower, faster = (
        holm([*p_values, *(1.0 for other in before.values() if other is not verdict)], alpha)
        for verdict, p_values in (
            (Verdict.REGRESSED, [found.p for found in estimates.values()]),
            (Verdict.IMPROVED, [found.p_faster for found in estimates.values()]),
        )
    )
    verdicts = {}
    for name, is_slower, is_faster in zip(estimates, slower, faster):
        passed = estimates[name].upper < deltas[name]
        verdicts[name] = Verdict.PASS if passed else Verdict.INCONCLUSIVE
        if is_slower or is_faster:
            verdicts[name] = Verdict.REGRESSED if is_slower else Verdict.IMPROVED
    return verdicts
