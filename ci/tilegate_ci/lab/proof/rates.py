"""Counts over sittings, their shares and intervals."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

RESAMPLES = 2000
T = TypeVar("T")


def upper_bound(hits: int, total: int) -> float:
    """Of a share: one-sided, 95 %, by Clopper and Pearson."""
    from scipy import stats

    return float(stats.beta.ppf(0.95, hits + 1, total - hits)) if hits < total else 1.0


@dataclass(frozen=True)
class Count:
    """In one sitting: hits among `total` that are not all independent of each other."""

    hits: int
    total: int
    independent: int = 0


@dataclass(frozen=True)
class Rate:
    counts: tuple[Count, ...]

    @property
    def hits(self) -> int:
        return sum(count.hits for count in self.counts)

    @property
    def total(self) -> int:
        return sum(count.total for count in self.counts)

    @property
    def independent(self) -> int:
        return sum(count.independent for count in self.counts)

    @property
    def share(self) -> float | None:
        return self.hits / self.total if self.total else None

    def interval(self, draw: np.random.Generator) -> tuple[float, float] | None:
        """95 %, bootstrapped over sittings: those are what is independent. None of fewer than
        two."""
        used = [count for count in self.counts if count.total]
        if len(used) < 2:
            return None
        hits = np.array([count.hits for count in used])
        totals = np.array([count.total for count in used])
        chosen = draw.integers(0, len(used), (RESAMPLES, len(used)))
        shares = hits[chosen].sum(axis=1) / totals[chosen].sum(axis=1)
        low, high = np.quantile(shares, (0.025, 0.975))
        return float(low), float(high)


def by_sitting(everything: Iterable[T], count: Callable[[T], tuple[int, int, int]]) -> Rate:
    return Rate(tuple(Count(*count(sitting)) for sitting in everything))


def percent(share: float, digits: int = 2) -> str:
    return f"{100 * share:.{digits}f} %" if 0 < share < 0.1 else f"{100 * share:.3g} %"
