"""How well binary columns separate the classes, from counts: [kAC17]_ Definitions 8 and 9.

Both measures are shares of the pairs of rows that belong to different classes. With two classes these are the paper's
:math:`|E_1||E_2|` pairs; with more, all pairs of rows whose classes differ.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


def pairs_of_different_classes(class_counts: Counts) -> Counts:
    """Count the pairs of rows whose classes differ; the classes are the last axis.

    Examples
    --------
    >>> int(pairs_of_different_classes(np.array([3, 3])))
    9
    """
    total = class_counts.sum(axis=-1)
    return cast(Counts, (total * total - (class_counts * class_counts).sum(axis=-1)) // 2)


def separated_pairs(with_one: Counts, with_zero: Counts) -> Counts:
    """Count the pairs of different classes in which one row has the column and the other has not.

    The classes are the last axis. For two classes this is :math:`p_1(n_2-p_2) + (n_1-p_1)p_2`.
    """
    across = with_one.sum(axis=-1) * with_zero.sum(axis=-1)
    return cast(Counts, across - (with_one * with_zero).sum(axis=-1))


def pairs_separated_by_each(ones_by_class: Counts, class_sizes: Counts) -> Counts:
    """Count, for every column, the pairs of different classes that it separates: its whole-number weight in HamDist.

    ``ones_by_class`` is classes × columns, as for :func:`hamming_separation`.
    """
    return separated_pairs(ones_by_class.T, class_sizes - ones_by_class.T)


def hamming_separation(ones_by_class: Counts, class_sizes: Counts) -> float:
    """Mean Hamming distance between rows of different classes: HamDist, Equation 3 of [kAC17]_.

    Parameters
    ----------
    ones_by_class : array, classes × columns
        Number of ones of every column in every class.
    class_sizes : array
        Number of rows of every class.

    Returns
    -------
    float
        Between 0 and the number of columns; higher separates better. 0 when there are fewer than two classes.

    Notes
    -----
    Modular (Theorem 1): a sum of one term a column.

    Examples
    --------
    >>> hamming_separation(np.array([[3, 0, 3], [3, 2, 3]]), np.array([3, 3])) == 6 / 9  # {x1, x2, x5}
    True
    """
    pairs = int(pairs_of_different_classes(class_sizes))
    return int(pairs_separated_by_each(ones_by_class, class_sizes).sum()) / pairs if pairs else 0.0


def distinguished_pairs(group_class_counts: Counts) -> float:
    """Share of the pairs of different classes that differ in some column: DistCnt, Equation 4 of [kAC17]_.

    Parameters
    ----------
    group_class_counts : array, groups × classes
        Class counts within every group of equal rows.

    Notes
    -----
    Monotone and submodular in the set of columns (Theorem 2). Between 0 and 1; higher is better.
    """
    pairs = int(pairs_of_different_classes(group_class_counts.sum(axis=0)))
    return 1 - _alike_pairs(group_class_counts) / pairs if pairs else 0.0


def n_distinguished_pairs(group_class_counts: Counts) -> int:
    """Count the pairs of different classes that differ in some column: DistCnt times all such pairs.

    Takes what :func:`distinguished_pairs` does. A whole number, so that sets of columns are compared exactly.
    """
    pairs = int(pairs_of_different_classes(group_class_counts.sum(axis=0)))
    return pairs - _alike_pairs(group_class_counts)


def _alike_pairs(group_class_counts: Counts) -> int:
    return int(pairs_of_different_classes(group_class_counts).sum())
