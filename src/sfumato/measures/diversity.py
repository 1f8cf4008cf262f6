r"""How a sensitive column is spread within the classes of equal rows: l-diversity and t-closeness.

Each definition is here once, for counts in either form (:mod:`sfumato.counting.counts`) and of any unit: where persons
are counted, values are matched with persons, or weighed by them. One level a class; a table's level is that of its
worst class. A group without rows has level 0.

Values are different when they are different values, not spellings: see :mod:`sfumato.counting.same_values`.

References
----------
.. [MKGV07] Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam: l-Diversity: Privacy Beyond k-Anonymity.
   ACM TKDD 1 (2007).
.. [LLV07] Li, Li, Venkatasubramanian: t-Closeness: Privacy Beyond k-Anonymity and l-Diversity. ICDE (2007).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import numpy as np

from sfumato.counting import ROUNDING
from sfumato.counting.counts import AnyCounts, Counts, Levels
from sfumato.errors import InvalidParameterError

_FINEST = 1_000_000
"""Largest denominator of the fraction that c is taken as."""


def distinct_diversity(counts: AnyCounts) -> Levels:
    """Largest l for which classes are distinct l-diverse: their different values, of as many different units.

    Distinct l-diversity of [MKGV07]_. Higher is safer.

    Examples
    --------
    >>> distinct_diversity(Counts.from_contingency([[3, 4], [1, 0]])).tolist()
    [2.0, 1.0]
    """
    return counts.matched()


def entropy_diversity(counts: AnyCounts) -> Levels:
    r"""Largest l for which classes are entropy l-diverse: :math:`2^H` of their values.

    Entropy l-diversity of [MKGV07]_: :math:`-\sum_s p(s) \log p(s) \ge \log l`, so the level is how many equally
    frequent values would be as diverse. Higher is safer; 1 for one value, never more than the number of values.

    Examples
    --------
    >>> entropy_diversity(Counts.from_contingency([[3, 4], [3, 0]])).tolist()
    [2.0, 1.0]
    """
    weights = counts.weights
    bits = -weights.sums(weights.shares * np.log2(weights.positive_shares))
    return np.asarray(2.0 ** np.maximum(bits, 0.0) * weights.has_rows)


def recursive_diversity(counts: AnyCounts, c: float) -> Levels:
    r"""Largest l for which classes are recursive (c, l)-diverse; 0 if there is none.

    Recursive (c, l)-diversity of [MKGV07]_: with the counts of a class's values descending,
    :math:`r_1 < c\,(r_l + r_{l+1} + \dots + r_m)`. Higher is safer.

    Parameters
    ----------
    c : float
        Above 0. Taken as the decimal number that it is written as (the nearest fraction with a denominator up to a
        million), so that 0.1 is one tenth and the strict inequality is decided in whole numbers. Weights instead of
        counts must be below by more than a rounding error.

    Notes
    -----
    The paper agrees that 1-diversity is always satisfied. Here a level of 1 means that the inequality holds for l = 1,
    which a c of at most 1 can refuse.

    Examples
    --------
    >>> recursive_diversity(Counts.from_contingency([[4, 8], [3, 3], [1, 1]]), c=2).tolist()
    [2.0, 1.0]
    """
    weights = counts.weights
    largest, tails, sizes = weights.tails()
    # tails fall with l, so the number of l that hold is the largest l that holds
    if np.issubdtype(tails.dtype, np.floating):
        return weights.sums((largest + ROUNDING * sizes < c * tails).astype(np.int64))
    ratio = _as_fraction(c, int(sizes.max(initial=0)))
    return weights.sums((largest * ratio.denominator < tails * ratio.numerator).astype(np.int64))


def distances(counts: AnyCounts, distance: Literal["equal", "ordered"] = "equal") -> Levels:
    r"""Distance of the sensitive column's distribution in each class (p) from that in the whole table (q).

    The earth mover's distance of [LLV07]_. From 0 to 1; **lower is safer**. 0 where fewer than two values occur. The
    whole table is what ``counts.value_totals`` counts; a class that has a value which it has not may get any distance.

    Parameters
    ----------
    distance : {"equal", "ordered"}
        ``equal``: all values are equally far apart, :math:`\frac12 \sum_i |p_i - q_i|`.
        ``ordered``: by rank among the m values that occur,
        :math:`\frac{1}{m-1} \sum_i |\sum_{j \le i} (p_j - q_j)|`, in the order of the codes.

    Examples
    --------
    >>> counts = Counts.from_contingency([[1, 0], [1, 0], [0, 2]])
    >>> distances(counts).tolist(), distances(counts, "ordered").tolist()
    ([0.5, 0.5], [0.375, 0.375])
    """
    if distance not in ("equal", "ordered"):
        raise InvalidParameterError(name="distance", problem=f"got {distance!r}", allowed="'equal' or 'ordered'")
    weights = counts.weights
    if np.count_nonzero(weights.value_totals) < 2:
        return np.zeros(len(weights.class_sizes))
    if distance == "ordered":
        return weights.ordered_distances()
    # half the sum of absolute differences is the sum of the positive ones: those of values that occur
    return weights.sums(np.maximum(weights.shares - weights.table_shares, 0.0))


def t_closeness(counts: Counts, distance: Literal["equal", "ordered"] = "equal") -> float:
    """Smallest t for which a table is t-close: the largest of :func:`distances`.

    An empty table, one class, and one value give 0. Where values have several spellings (``counts.spelled``) these are
    compared as values of their own as well, and the larger distance counts: merging values can hide a distance.

    Examples
    --------
    >>> counts = Counts.from_contingency([[1, 0], [1, 0], [0, 2]])
    >>> t_closeness(counts), t_closeness(counts, "ordered")
    (0.5, 0.375)
    """
    by_spelling = t_closeness(counts.spelled, distance) if counts.spelled is not None else 0.0
    return min(1.0, max(0.0, float(distances(counts, distance).max(initial=0.0)), by_spelling))


def _as_fraction(c: float, n_rows: int) -> Fraction:
    """Take c as the decimal number that it is written as; beyond all rows it is as good as infinite."""
    if not c > 0:
        raise InvalidParameterError(name="c", problem=f"got {c!r}", allowed="above 0")
    return Fraction(str(min(c, n_rows + 1))).limit_denominator(_FINEST)
