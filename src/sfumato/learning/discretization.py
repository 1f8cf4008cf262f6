r"""Supervised discretization of numbers by entropy and minimum description length.

References
----------
.. [FI93] Fayyad, Irani: Multi-Interval Discretization of Continuous-Valued Attributes for Classification Learning.
   IJCAI 1993, 1022-1027.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.c45.criteria import Entropy

Numbers = NDArray[np.float64]

EQUAL_BITS = 1e-9


def description_length_cuts(numbers: Numbers, class_counts: Numbers) -> Numbers:
    """Cuts of a column where the classes change enough to pay for describing the cut.

    Each part is cut where the entropy of the classes left is least (of equal cuts at the first), as long as the gain
    exceeds ``(log2(N - 1) + log2(3**c - 2) - c E + c1 E1 + c2 E2) / N`` ([FI93]_, the MDLP criterion): N rows and c
    classes of entropy E in the part, c1, c2, E1 and E2 those of its sides.

    Parameters
    ----------
    numbers : ndarray of float64
        Distinct numbers, ascending.
    class_counts : ndarray of float64, shape (n_numbers, n_classes)
        Rows of each class with each number; numbers without rows do not count.

    Returns
    -------
    ndarray of float64
        Ascending, half way between two numbers that have rows; a number equal to a cut belongs below it.

    Examples
    --------
    >>> counts = np.array([[5, 0], [5, 0], [0, 5], [0, 5]])
    >>> description_length_cuts(np.array([1.0, 2.0, 4.0, 5.0]), counts).tolist()
    [3.0]
    """
    has_rows = class_counts.sum(axis=1) > 0
    there, counts = numbers[has_rows], class_counts[has_rows].astype(np.float64)
    cuts: list[int] = []
    parts = [(0, len(there))]
    while parts:
        start, end = parts.pop()
        cut = _best_cut(counts[start:end])
        if cut is not None:
            cuts.append(start + cut)
            parts += [(start, start + cut), (start + cut, end)]
    places = np.array(sorted(cuts), dtype=np.intp)
    return np.asarray(there[places - 1] + (there[places] - there[places - 1]) / 2)


def _best_cut(counts: Numbers) -> int | None:
    """Numbers below the best cut of a part; None where no cut pays."""
    if len(counts) < 2:
        return None
    entropy = Entropy(counts.shape[1])
    whole = counts.sum(axis=0)
    below = np.cumsum(counts[:-1], axis=0)
    bits = entropy.impurity(below) + entropy.impurity(whole - below)
    place = int(np.flatnonzero(bits <= bits.min() + EQUAL_BITS)[0])
    sides = np.stack([below[place], whole - below[place]])
    n_rows, n_classes = whole.sum(), np.count_nonzero(whole)
    side_bits = (np.count_nonzero(sides, axis=1) * entropy.impurity(sides) / sides.sum(axis=1)).sum()
    gain = float(entropy.impurity(whole) - bits[place])
    labels = n_classes * np.log2(3) + np.log2(1 - 2 * 3.0**-n_classes)
    delta = labels - n_classes * entropy.impurity(whole) / n_rows + side_bits
    return place + 1 if gain > np.log2(n_rows - 1) + delta + EQUAL_BITS else None
