"""How other tools decide whether a benchmark got slower, for `ci/gate replay` to put beside ours.

Each looks at one process of either side, at its repetitions, as the tool itself does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Seconds = NDArray[np.float64]
Blocks = Callable[[Seconds, Seconds], bool]
BOOTSTRAPS = 1000


@dataclass(frozen=True)
class Rule:
    """`blocks(base, head)` of one benchmark; `note` says what is not plain from the name."""

    name: str
    blocks: Blocks
    note: str = ""


def other_rules(draw: np.random.Generator) -> tuple[Rule, ...]:
    return (
        Rule("compare.py, p < .05", compare_py, "its exit code is 0 all the same"),
        Rule("NVBench, older compare", nvbench_legacy, "fails on speed-ups too"),
        Rule(
            "NVBench, newer compare",
            nvbench_newer,
            "shortened to quartile ranges 0.5 % apart or more; its exit code is 0 all the same",
        ),
        Rule("asv, factor 1.1", lambda base, head: asv(base, head, 1.1), "its default factor"),
        Rule("asv, factor 1.01", lambda base, head: asv(base, head, 1.01)),
        Rule("criterion", lambda base, head: criterion(base, head, draw)),
        Rule("plain 5 %", plain),
    )


def _mann_whitney(base: Seconds, head: Seconds) -> float:
    result: Any = stats.mannwhitneyu(base, head, alternative="two-sided", method="asymptotic")
    return float(result.pvalue)


def compare_py(base: Seconds, head: Seconds) -> bool:
    """Google Benchmark: the U test of the repetitions, read as people read its red lines."""
    return bool(head.mean() > base.mean()) and _mann_whitney(base, head) < 0.05


def nvbench_legacy(base: Seconds, head: Seconds) -> bool:
    """A difference of means beyond the smaller of the two relative standard deviations. The exit
    code is the number of such benchmarks, whatever the sign."""
    noise = min(values.std(ddof=1) / values.mean() for values in (base, head))
    return bool(abs(head.mean() / base.mean() - 1) > noise)


def nvbench_newer(base: Seconds, head: Seconds) -> bool:
    """In short: the quartile intervals are clear of each other by 0.5 %."""
    return bool(np.quantile(head, 0.25) / np.quantile(base, 0.75) - 1 > 0.005)


def asv(base: Seconds, head: Seconds, factor: float) -> bool:
    """Medians apart by the factor, and the U test at its threshold of 0.002."""
    slower = bool(np.median(head) > factor * np.median(base))
    return slower and _mann_whitney(base, head) < 0.002


def criterion(base: Seconds, head: Seconds, draw: np.random.Generator) -> bool:
    """The 95 % interval of the bootstrapped change of the mean lies above the 1 % threshold."""
    means = [
        values[draw.integers(0, len(values), (BOOTSTRAPS, len(values)))].mean(axis=1)
        for values in (base, head)
    ]
    return bool(np.quantile(means[1] / means[0] - 1, 0.025) > 0.01)


def plain(base: Seconds, head: Seconds) -> bool:
    return bool(np.median(head) > 1.05 * np.median(base))
