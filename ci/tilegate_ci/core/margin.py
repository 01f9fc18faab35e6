"""The margin of a benchmark: the slow-down that passes, by how far the processes of its baseline
lie apart. Values are the logarithms of what they measured, in the order of the processes."""

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise

MIN_DELTA = 0.01
WANDERS = 0.6  # steps from process to process are so much less than the whole scatter


def delta_of(per_process: Sequence[float]) -> float:
    """max(1 %, 3 x the sample standard deviation of the logs); the values themselves are given."""
    return _margin(_spread([math.log(value) for value in per_process]))


def drifts(logs: Sequence[float]) -> bool:
    """Whether they scatter beyond the least margin, and that because they wander from process to
    process: such a baseline says little about the next session."""
    return len(logs) > 2 and _margin(_step(logs)) < WANDERS * _margin(_spread(logs))


def steady_delta(logs: Sequence[float]) -> float:
    """The margin of what drifts: by its scatter around a straight line, or from process to process.
    Pairs of processes stand next to each other, so that a drift widens their differences little."""
    times = range(len(logs))
    line = statistics.linear_regression(times, logs)
    rest = sum((v - line.intercept - line.slope * t) ** 2 for t, v in zip(times, logs))
    return _margin(min(math.sqrt(rest / (len(logs) - 2)), _step(logs)))


def _margin(scatter: float) -> float:
    return max(MIN_DELTA, 3 * scatter)


def _spread(logs: Sequence[float]) -> float:
    return statistics.stdev(logs) if len(logs) > 1 else 0.0


def _step(logs: Sequence[float]) -> float:
    """As the standard deviation, of what has no trend."""
    return math.sqrt(statistics.fmean((b - a) ** 2 for a, b in pairwise(logs)) / 2)
