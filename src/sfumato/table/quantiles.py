"""Short cut points near the quantiles of a column."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def quantile_cuts(numbers: NDArray[np.float64], counts: NDArray[np.int64], bands: int) -> tuple[float, ...]:
    """Cut points that split the rows into about ``bands`` equal parts.

    Each is the shortest decimal that moves at most 2 % of the rows to the other side.

    Parameters
    ----------
    numbers, counts : arrays
        Distinct values in any order (not-a-number is left out) and how many rows hold them.

    Returns
    -------
    tuple of float
        Strictly increasing; no band is empty, so heavy ties give fewer cuts than ``bands - 1``.
    """
    finite = np.isfinite(numbers)
    distinct, inverse = np.unique(numbers[finite], return_inverse=True)
    if len(distinct) < 2:
        return ()
    reached = np.cumsum(np.bincount(inverse, weights=counts[finite])) / counts[finite].sum()
    last = len(distinct) - 2  # a cut at the largest value would leave nothing above it
    by_split: dict[int, float] = {}
    for band in range(1, bands):
        low, middle, high = (
            min(int(np.searchsorted(reached, band / bands + shift - 1e-12)), last) for shift in (-0.02, 0.0, 0.02)
        )
        cut = shortest_decimal(float(distinct[low]), float(distinct[middle]), float(distinct[high + 1]))
        by_split.setdefault(int(np.searchsorted(distinct, cut, side="right")), cut)
    return tuple(sorted(by_split.values()))


def shortest_decimal(low: float, middle: float, high: float) -> float:
    """Return the number in [low, high) with the fewest digits; of several, the nearest to ``middle``."""
    largest = max(abs(low), abs(high))
    if largest > 1e300:  # rounding upwards would overflow
        return middle
    first = -math.floor(math.log10(largest)) - 1 if largest > 0 else 0
    for digits in range(first, first + 17):
        step = 10.0**-digits
        near = (round(middle, digits), round(middle - step / 2, digits), round(middle + step / 2, digits))
        inside = [number for number in near if low <= number < high]
        if inside:
            return min(inside, key=lambda number: (abs(number - middle), number)) + 0.0
    return middle
