"""Where labels stand: beside what they name and never on each other, in pixels."""

import math
from collections.abc import Sequence
from itertools import pairwise

LINE, LETTER = 14, 6.2  # of text of 11 pixels
Box = tuple[float, float, float, float]  # left, top, right, bottom
_PLACES = [
    (reach, angle) for reach in range(10, 160, 6) for angle in (0, 180, 45, 315, 135, 225, 90, 270)
]


def apart(values: Sequence[float], gap: float, high: float) -> list[float]:
    """The values moved up, and down again below `high`, until no two are closer than `gap`."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    places = list(values)
    for one, other in pairwise(order):
        places[other] = max(places[other], places[one] + gap)
    limit = high
    for index in reversed(order):
        places[index] = min(places[index], limit)
        limit = places[index] - gap
    return places


def beside(
    dots: Sequence[tuple[float, float, str]], taken: Sequence[Box], width: float
) -> list[tuple[Box, tuple[float, float]]]:
    """A box for each dot's label, in pixels, as near to it as there is room beside the other
    labels, the dots and what else is taken; and the end of a line to it, clear of other dots."""
    full = [*taken, *(_around(x, y, 7) for x, y, _ in dots)]
    found = []
    for x, y, label in dots:
        long = 4 + LETTER * len(label)
        others = [_around(u, v, 3) for u, v, _ in dots if math.hypot(u - x, v - y) > 10]
        for reach, angle in _PLACES:
            turn = math.radians(angle)
            left = x + reach * math.cos(turn) - long * (1 - math.cos(turn)) / 2
            top = y - reach * math.sin(turn) - LINE / 2
            box = (left, top, left + long, top + LINE)
            end = (min(max(x, left), left + long), min(max(y, top), top + LINE))
            inside = left >= 0 and left + long <= width
            if inside and not (hit([box], full) or hit(along([(x, y), end]), others)):
                break
        full.append(box)
        found.append((box, end))
    return found


def along(corners: Sequence[tuple[float, float]]) -> list[Box]:
    """Small boxes that cover a line."""
    return [
        _around(x0 + (x1 - x0) * part / 50, y0 + (y1 - y0) * part / 50, 3)
        for (x0, y0), (x1, y1) in pairwise(corners)
        for part in range(51)
    ]


def hit(some: Sequence[Box], others: Sequence[Box]) -> bool:
    return any(
        one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
        for one in some
        for other in others
    )


def _around(x: float, y: float, reach: float) -> Box:
    return x - reach, y - reach, x + reach, y + reach


def round_values(low: float, high: float) -> list[float]:
    """1, 2 and 5 times the powers of ten between the two: the ticks of a log scale."""
    ticks = [digit * 10.0**power for power in range(-9, 7) for digit in (1, 2, 5)]
    return [tick for tick in ticks if low <= tick <= high]
