"""How other tools decide whether a benchmark got slower, for `ci/gate lab replay` to compare with.

Each looks at one process of either side, at its repetitions, as the tool itself does."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Seconds = NDArray[np.float64]
Blocks = Callable[[Seconds, Seconds], bool]  # of base and head
BOOTSTRAPS = 1000


def other_rules(draw: np.random.Generator) -> dict[str, Blocks]:
    return {
        "compare.py, p < .05": compare_py,
        "NVBench, older compare": nvbench_legacy,
        "NVBench, newer compare": nvbench_newer,
        "asv, factor 1.1": lambda base, head: asv(base, head, 1.1),
        "asv, factor 1.01": lambda base, head: asv(base, head, 1.01),
        "criterion": lambda base, head: criterion(base, head, draw),
        "plain 5 %": plain,
    }


def compare_py(base: Seconds, head: Seconds) -> bool:
    """Google Benchmark (tools/gbench/report.py): the two-sided U test of the repetitions says
    whether they differ, the means next to it which way."""
    if min(len(base), len(head)) < 2:
        return False
    result: Any = stats.mannwhitneyu(base, head, alternative="two-sided")
    return bool(head.mean() > base.mean() and result.pvalue < 0.05)


def nvbench_legacy(base: Seconds, head: Seconds) -> bool:
    """A difference of means beyond the smaller of the two relative standard deviations, whatever
    its sign. NVBench has no noise of fewer than five samples; without any, all is unknown."""
    noise = [values.std(ddof=1) / values.mean() for values in (base, head) if len(values) >= 5]
    return bool(0 < min(noise, default=0) < abs(head.mean() / base.mean() - 1))


def nvbench_newer(base: Seconds, head: Seconds) -> bool:
    """The intervals from fastest sample to third quartile are clear of each other by 0.5 %. The
    quartile is a sample: the nearest rank."""
    quartile = np.sort(base)[(75 * (len(base) - 1) + 50) // 100]
    return bool((head.min() - quartile) / quartile >= 0.005)


def asv(base: Seconds, head: Seconds, factor: float) -> bool:
    """Medians apart by the factor, of samples that differ; of a single one nothing more is known
    (asv/commands/compare.py)."""
    slower = bool(np.median(base) < np.median(head) / factor)
    return slower and (min(len(base), len(head)) == 1 or _asv_differ(base, head))


def _asv_differ(base: Seconds, head: Seconds) -> bool:
    """The U test at 0.002, where the sizes allow so small a p by asv's reckoning, which forgets
    that it has two sides; else whether intervals of the medians are apart (asv/_stats.py)."""
    small, large = sorted((len(base), len(head)))
    if 1 / math.comb(small + large, small) < 0.002:
        # To scipy a tie is half a win. asv counts it against a difference, but ties are rare here.
        result: Any = stats.mannwhitneyu(
            base, head, use_continuity=False, method="asymptotic" if large > 20 else "exact"
        )
        return bool(result.pvalue < 0.002)
    (low, high), (other_low, other_high) = map(_asv_interval, (base, head))
    return high < other_low or other_high < low


def _asv_interval(values: Seconds) -> tuple[float, float]:
    """99 % of the median (asv_runner/statistics.py): order statistics, of eight samples or more.
    Below that the posterior by Laplace's law of errors, whose density at m is S(m) ** -n with S
    the sum of the distances from m; it reaches at least from the first sample to the last."""
    ordered, count = np.sort(values), len(values)
    if count >= 8:
        below = stats.binom.cdf(np.arange(count), count, 0.5)
        return float(ordered[below <= 0.005][-1]), float(ordered[below >= 0.995][0])
    distances = np.abs(ordered[:, None] - ordered).sum(axis=1)
    if not distances.any():
        return float(ordered[0]), float(ordered[0])
    # S is linear between samples and beyond them, and so integrates in closed form.
    tails = distances[[0, -1]] ** (1.0 - count) / (count * (count - 1))
    inner = 0.0
    for k in range(1, count):
        slope, width = 2 * k - count, ordered[k] - ordered[k - 1]
        if slope:
            ends = distances[k - 1 : k + 1] ** (1.0 - count)
            inner += (ends[0] - ends[1]) / ((count - 1) * slope)
        else:
            inner += width * distances[k] ** -float(count)
    tail = 0.005 * (tails.sum() + inner)
    farthest = (tail * count * (count - 1)) ** (-1 / (count - 1))
    beyond = np.maximum(0, farthest - distances[[0, -1]]) / count
    return float(ordered[0] - beyond[0]), float(ordered[-1] + beyond[1])


def criterion(base: Seconds, head: Seconds, draw: np.random.Generator) -> bool:
    """The 95 % interval of the bootstrapped change of the mean lies above the 1 % threshold, and
    Welch's t is beyond 95 % of those of samples drawn from both sides together."""
    means = [
        values[draw.integers(0, len(values), (BOOTSTRAPS, len(values)))].mean(axis=1)
        for values in (base, head)
    ]
    if not np.quantile(means[1] / means[0] - 1, 0.025) > 0.01:
        return False
    both = np.concatenate([base, head])
    drawn = both[draw.integers(0, len(both), (BOOTSTRAPS, len(both)))]
    found = _welch(drawn[:, : len(base)], drawn[:, len(base) :])
    found = found[np.isfinite(found)]
    beyond = np.count_nonzero(found >= _welch(base, head))
    return bool(2 * min(beyond, len(found) - beyond) < 0.05 * len(found))


def _welch(base: Seconds, head: Seconds) -> Any:
    errors = [values.var(axis=-1, ddof=1) / values.shape[-1] for values in (base, head)]
    with np.errstate(divide="ignore", invalid="ignore"):
        return (head.mean(axis=-1) - base.mean(axis=-1)) / np.sqrt(sum(errors))


def plain(base: Seconds, head: Seconds) -> bool:
    return bool(np.median(head) > 1.05 * np.median(base))
