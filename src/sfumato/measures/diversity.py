r"""How a sensitive column is spread within the classes of equal rows: l-diversity and t-closeness.

Each definition is here as a function of whole arrays. Counts come in two forms: **dense**, an array with the values as
last axis, one level a row; and **by class** (:class:`sfumato.counting.classes.ClassValueCounts`), which holds only what
occurs and so has room for millions of classes. Both give the same levels. A table's level is that of its worst class.

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
from numpy.typing import ArrayLike, NDArray

from sfumato.counting.classes import ClassValueCounts
from sfumato.errors import InvalidParameterError
from sfumato.guarantees import ROUNDING
from sfumato.measures.information import entropies_bits

Levels = NDArray[np.float64]
_FINEST = 1_000_000
"""Largest denominator of the fraction that c is taken as."""


def distinct_diversity(counts: ArrayLike) -> Levels:
    """Largest l for which groups are distinct l-diverse: their different values, counted along the last axis.

    Distinct l-diversity of [MKGV07]_. Higher is safer. A group without rows has level 0.

    Examples
    --------
    >>> distinct_diversity([[3, 1], [4, 0]]).tolist()
    [2.0, 1.0]
    """
    return np.asarray((np.asarray(counts) > 0).sum(axis=-1), dtype=np.float64)


def entropy_diversity(counts: ArrayLike) -> Levels:
    r"""Largest l for which groups are entropy l-diverse: :math:`2^H` of the values along the last axis.

    Entropy l-diversity of [MKGV07]_: :math:`-\sum_s p(s) \log p(s) \ge \log l`, so the level is how many equally
    frequent values would be as diverse. Higher is safer; 1 for one value, never more than the distinct level. A group
    without rows has level 0.

    Examples
    --------
    >>> entropy_diversity([[3, 3], [4, 0], [0, 0]]).tolist()
    [2.0, 1.0, 0.0]
    """
    return np.asarray(2.0 ** entropies_bits(counts) * (np.asarray(counts).sum(axis=-1) > 0))


def recursive_diversity(counts: ArrayLike, c: float) -> Levels:
    r"""Largest l for which groups are recursive (c, l)-diverse by the values along the last axis; 0 if there is none.

    Recursive (c, l)-diversity of [MKGV07]_: with the counts of a group's values descending,
    :math:`r_1 < c\,(r_l + r_{l+1} + \dots + r_m)`. Higher is safer. A group without rows has level 0.

    Parameters
    ----------
    c : float
        Above 0. Taken as the decimal number that it is written as (the nearest fraction with a denominator up to a
        million), so that 0.1 is one tenth and the strict inequality is decided in whole numbers. Weights instead of
        counts (:mod:`sfumato.measures.person_weights`) must be below by more than a rounding error.

    Notes
    -----
    The paper agrees that 1-diversity is always satisfied. Here a level of 1 means that the inequality holds for l = 1,
    which a c of at most 1 can refuse.

    Examples
    --------
    >>> recursive_diversity([[4, 3, 1], [8, 3, 1]], c=2).tolist()
    [2.0, 1.0]
    """
    there = np.asarray(counts)
    descending = -np.sort(-there, axis=-1)
    tails = np.cumsum(descending[..., ::-1], axis=-1)[..., ::-1]
    # tails fall with l, so the number of l that hold is the largest l that holds
    holds = _is_below(descending[..., :1], tails, tails[..., :1], c)
    return np.asarray(holds.sum(axis=-1), dtype=np.float64)


def distinct_diversity_by_class(counts: ClassValueCounts) -> Levels:
    """:func:`distinct_diversity` of each class."""
    return counts.n_distinct.astype(np.float64)


def entropy_diversity_by_class(counts: ClassValueCounts) -> Levels:
    """:func:`entropy_diversity` of each class."""
    bits = -np.add.reduceat(counts.shares * np.log2(counts.shares), counts.class_starts)
    return np.asarray(2.0 ** np.maximum(bits, 0.0))


def recursive_diversity_by_class(counts: ClassValueCounts, c: float) -> Levels:
    """:func:`recursive_diversity` of each class."""
    descending = counts.count[np.lexsort((-counts.count, counts.class_index))]
    before = np.cumsum(descending) - descending
    ends = before[counts.class_starts] + counts.class_sizes
    tails = ends[counts.class_index] - before
    largest = descending[counts.class_starts][counts.class_index]
    holds = _is_below(largest, tails, counts.class_sizes[counts.class_index], c)
    return np.add.reduceat(holds.astype(np.float64), counts.class_starts)


def distances_by_class(counts: ClassValueCounts, distance: Literal["equal", "ordered"] = "equal") -> Levels:
    r"""Distance of the sensitive column's distribution in each class (p) from that in the whole table (q).

    The earth mover's distance of [LLV07]_. From 0 to 1; **lower is safer**. 0 where fewer than two values occur. The
    whole table is what ``counts.value_totals`` counts; a class that has a value which it has not may get any distance.

    Parameters
    ----------
    distance : {"equal", "ordered"}
        ``equal``: all values are equally far apart, :math:`\frac12 \sum_i |p_i - q_i|`.
        ``ordered``: by rank among the m values that occur,
        :math:`\frac{1}{m-1} \sum_i |\sum_{j \le i} (p_j - q_j)|`, in the order of the codes.

    Notes
    -----
    Time O(n log m) for n pairs of class and value that occur; classes are never spread out over all values.

    Examples
    --------
    >>> counts = ClassValueCounts.from_contingency([[1, 0], [1, 0], [0, 2]])
    >>> distances_by_class(counts).tolist(), distances_by_class(counts, "ordered").tolist()
    ([0.5, 0.5], [0.375, 0.375])
    """
    if distance not in ("equal", "ordered"):
        raise InvalidParameterError(name="distance", problem=f"got {distance!r}", allowed="'equal' or 'ordered'")
    occurring = np.flatnonzero(counts.value_totals)
    if len(occurring) < 2:
        return np.zeros(counts.n_classes)
    overall = counts.value_totals / counts.value_totals.sum()
    if distance == "equal":
        # half the sum of absolute differences is the sum of the positive ones: those of values that occur
        return np.add.reduceat(np.maximum(counts.shares - overall[counts.value_code], 0.0), counts.class_starts)
    return _ordered_distances(counts, overall[occurring], np.searchsorted(occurring, counts.value_code))


def t_closeness(counts: ClassValueCounts, distance: Literal["equal", "ordered"] = "equal") -> float:
    """Smallest t for which a table is t-close: the largest of :func:`distances_by_class`.

    An empty table, one class, and one value give 0. Where values have several spellings (``counts.spelled``) these are
    compared as values of their own as well, and the larger distance counts: merging values can hide a distance.

    Examples
    --------
    >>> counts = ClassValueCounts.from_contingency([[1, 0], [1, 0], [0, 2]])
    >>> t_closeness(counts), t_closeness(counts, "ordered")
    (0.5, 0.375)
    """
    by_spelling = t_closeness(counts.spelled, distance) if counts.spelled is not None else 0.0
    return min(1.0, max(0.0, float(distances_by_class(counts, distance).max(initial=0.0)), by_spelling))


def _is_below(
    largest: NDArray[np.number], tails: NDArray[np.number], sizes: NDArray[np.number], c: float
) -> NDArray[np.bool_]:
    """Whether the largest count is below c times a tail: counts in whole numbers, weights by more than rounding."""
    if np.issubdtype(tails.dtype, np.floating):
        return np.asarray(largest + ROUNDING * sizes < c * tails)
    ratio = _as_fraction(c, int(sizes.max(initial=0)))
    return np.asarray(largest * ratio.denominator < tails * ratio.numerator)


def _as_fraction(c: float, n_rows: int) -> Fraction:
    """Take c as the decimal number that it is written as; beyond all rows it is as good as infinite."""
    if not c > 0:
        raise InvalidParameterError(name="c", problem=f"got {c!r}", allowed="above 0")
    return Fraction(str(min(c, n_rows + 1))).limit_denominator(_FINEST)


def _ordered_distances(counts: ClassValueCounts, overall: Levels, ranks: NDArray[np.int64]) -> Levels:
    """Area between the cumulative distributions of class and table, over the values that occur.

    Between two neighbouring values of a class its cumulative share is constant while the table's rises: the stretch
    crosses it once, and its area follows from the sums of the table's.
    """
    starts, index, last = counts.class_starts, counts.class_index, len(overall) - 1
    risen = np.cumsum(overall)[:last]
    sums = np.concatenate([[0.0], np.cumsum(risen)])
    running = np.cumsum(counts.count)
    running -= (running[starts] - counts.count[starts])[index]
    share = running / counts.class_sizes[index]
    begin = np.minimum(ranks, last)
    end = np.full_like(begin, last)
    end[:-1] = np.where(index[1:] == index[:-1], begin[1:], last)
    crossing = np.clip(np.searchsorted(risen, share), begin, end)
    area = share * (2 * crossing - begin - end) + sums[begin] + sums[end] - 2 * sums[crossing]
    ahead = sums[begin[starts]]  # before a class's first value its share is 0
    return np.asarray((np.add.reduceat(area, starts) + ahead) / last)
