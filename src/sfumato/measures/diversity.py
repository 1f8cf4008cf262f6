"""How a sensitive column is spread within the classes of equal rows: l-diversity and t-closeness.

Values are different when they are different values, not spellings: see :mod:`sfumato.counting.same_values`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.classes import ClassValueCounts
from sfumato.errors import InvalidParameterError


def distinct_diversity_level(counts: ClassValueCounts) -> int:
    """Largest l for which a table is distinct l-diverse: the fewest different sensitive values in any class.

    Distinct l-diversity of Machanavajjhala et al. (2007). Higher is safer. A missing value is a value. An empty table
    has level 0.

    Examples
    --------
    >>> distinct_diversity_level(ClassValueCounts.from_contingency([[2, 1], [0, 3]]))
    1
    """
    return int(counts.n_distinct.min()) if counts.n_classes else 0


def entropy_diversity_level(counts: ClassValueCounts) -> float:
    r"""Largest l for which a table is entropy l-diverse: :math:`2^H` of the class with the least entropy.

    Entropy l-diversity of Machanavajjhala et al. (2007): :math:`-\sum_s p(s) \log p(s) \ge \log l` in every class.
    Higher is safer; 1 when some class has one value only, never more than the distinct level. An empty table has 0.

    Examples
    --------
    >>> entropy_diversity_level(ClassValueCounts.from_contingency([[2, 1], [2, 1]]))
    2.0
    """
    if not counts.n_classes:
        return 0.0
    shares = _shares(counts)
    entropies = -np.add.reduceat(shares * np.log2(shares), counts.class_starts)
    return float(2.0 ** max(0.0, float(entropies.min())))


def recursive_diversity_level(counts: ClassValueCounts, c: float) -> int:
    r"""Largest l for which every class is recursive (c, l)-diverse; 0 if there is none.

    Recursive (c, l)-diversity of Machanavajjhala et al. (2007): with the counts of a class's values descending,
    :math:`r_1 < c\,(r_l + r_{l+1} + \dots + r_m)`. Higher is safer. An empty table has level 0.

    Parameters
    ----------
    counts : ClassValueCounts
    c : float
        Above 0. Taken as the nearest fraction with a denominator up to a million, so that 0.1 is one tenth and the
        strict inequality is decided in whole numbers.

    Notes
    -----
    The paper agrees that 1-diversity is always satisfied. Here a level of 1 means that the inequality holds for l = 1,
    which a c of at most 1 can refuse.

    Examples
    --------
    >>> counts = ClassValueCounts.from_contingency([[4, 2], [3, 2], [1, 2]])
    >>> recursive_diversity_level(counts, c=2), recursive_diversity_level(counts, c=5)
    (2, 3)
    """
    if not c > 0:
        raise InvalidParameterError(name="c", problem=f"got {c!r}", allowed="above 0")
    if not counts.n_classes:
        return 0
    ratio = Fraction(min(c, counts.n_rows + 1)).limit_denominator(1_000_000)
    order = np.lexsort((-counts.count, counts.class_index))
    descending = counts.count[order]
    starts = counts.class_starts
    before = np.cumsum(descending) - descending
    ends = before[starts] + counts.class_sizes
    tails = ends[counts.class_index] - before
    largest = descending[starts][counts.class_index]
    # tails fall with l, so the number of l that hold is the largest l that holds
    holds = largest * ratio.denominator < ratio.numerator * tails
    return int(np.add.reduceat(holds.astype(np.int64), starts).min())


def t_closeness(counts: ClassValueCounts, distance: Literal["equal", "ordered"] = "equal") -> float:
    r"""Smallest t for which a table is t-close: the largest distance of a class from the whole table.

    Li et al. (2007), with the earth mover's distance between the sensitive column's distribution in a class (p) and in
    the whole table (q). Between 0 and 1; **lower is safer**. A missing value is a value. An empty table, one class, and
    one value give 0. Where values have several spellings (``counts.spelled``) these are compared as values of their own
    as well, and the larger distance counts: merging values can hide a distance.

    Parameters
    ----------
    counts : ClassValueCounts
    distance : {"equal", "ordered"}
        ``equal``: all values are equally far apart, :math:`\frac12 \sum_i |p_i - q_i|`.
        ``ordered``: by rank among the m values that occur,
        :math:`\frac{1}{m-1} \sum_i |\sum_{j \le i} (p_j - q_j)|`, in the order
        of the codes.

    Notes
    -----
    Time O(n log m) for n pairs of class and value that occur; classes are never spread out over all values.

    Examples
    --------
    >>> counts = ClassValueCounts.from_contingency([[1, 0], [1, 0], [0, 2]])
    >>> t_closeness(counts), t_closeness(counts, "ordered")
    (0.5, 0.375)
    """
    if distance not in ("equal", "ordered"):
        raise InvalidParameterError(name="distance", problem=f"got {distance!r}", allowed="'equal' or 'ordered'")
    by_spelling = t_closeness(counts.spelled, distance) if counts.spelled is not None else 0.0
    if not counts.n_classes or counts.n_values < 2:
        return by_spelling
    distances = _equal_distances(counts) if distance == "equal" else _ordered_distances(counts)
    return min(1.0, max(0.0, float(distances.max()), by_spelling))


def _shares(counts: ClassValueCounts) -> NDArray[np.float64]:
    return np.asarray(counts.count / counts.class_sizes[counts.class_index], dtype=np.float64)


def _equal_distances(counts: ClassValueCounts) -> NDArray[np.float64]:
    """Half the sum of absolute differences, which is the sum of the positive ones: those of values that occur."""
    overall = counts.value_totals / counts.n_rows
    excess = np.maximum(_shares(counts) - overall[counts.value_code], 0.0)
    return np.asarray(np.add.reduceat(excess, counts.class_starts))


def _ordered_distances(counts: ClassValueCounts) -> NDArray[np.float64]:
    """Area between the cumulative distributions of class and table, added up stretch by stretch.

    Between two neighbouring values of a class its cumulative share P is constant while the table's, Q, rises; a stretch
    [a, b) therefore crosses Q once, at s, and its area follows from the sums of Q.
    """
    starts, index, last = counts.class_starts, counts.class_index, counts.n_values - 1
    code, count = counts.value_code, counts.count
    overall = np.cumsum(counts.value_totals)[:last] / counts.n_rows
    sums = np.concatenate([[0.0], np.cumsum(overall)])
    running = np.cumsum(count)
    running -= (running[starts] - count[starts])[index]
    share = running / counts.class_sizes[index]
    begin = np.minimum(code, last)
    end = np.full_like(begin, last)
    end[:-1] = np.where(index[1:] == index[:-1], begin[1:], last)
    crossing = np.clip(np.searchsorted(overall, share), begin, end)
    area = share * (2 * crossing - begin - end) + sums[begin] + sums[end] - 2 * sums[crossing]
    ahead = sums[begin[starts]]  # before a class's first value its share is 0
    return np.asarray((np.add.reduceat(area, starts) + ahead) / last)
