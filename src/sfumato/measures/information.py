"""Entropy and mutual information, in bits, of counts."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]
_MANY = 30.0
"""Rows expected of a value in a class from which on the expansion for large counts is used."""
_DEVIATIONS = 12.0
"""Counts further from their mean than so many standard deviations have no part in it."""


def entropies_bits(counts: ArrayLike) -> Numbers:
    r"""Entropy of each distribution that counts along the last axis describe, in bits.

    :math:`H = -\sum_i p_i \log_2 p_i` (Shannon 1948) with :math:`p_i` the counts over their sum. Between 0 (one value)
    and the logarithm of the number of values. A count of 0 adds nothing; no counts at all give 0.

    Examples
    --------
    >>> entropies_bits([[2, 1, 1], [3, 0, 0], [0, 0, 0]]).tolist()
    [1.5, 0.0, 0.0]
    """
    there = np.asarray(counts, dtype=np.float64)
    sizes = there.sum(axis=-1, keepdims=True)
    shares = there / np.where(sizes > 0, sizes, 1.0)
    return np.asarray(np.maximum(-np.vecdot(shares, np.log2(np.where(shares > 0, shares, 1.0))), 0.0))


def entropy_bits(counts: ArrayLike) -> float:
    """Entropy of the one distribution that counts describe, in bits; all dimensions of an array are taken together.

    As :func:`entropies_bits`.

    Examples
    --------
    >>> entropy_bits([2, 1, 1])
    1.5
    """
    flat = np.asarray(counts, dtype=np.float64).ravel()
    return float(entropies_bits(flat[flat > 0]))


def total_entropies_bits(counts: ArrayLike) -> Numbers:
    r"""Entropy in bits times the rows, of each distribution that counts along the last axis describe.

    :math:`n H = n \log_2 n - \sum_i n_i \log_2 n_i`: what it takes to tell the values of all rows. Additive over groups
    of rows, so that the information gain of dividing a group is its own less that of its parts.

    Examples
    --------
    >>> total_entropies_bits([[2, 2], [4, 0]]).tolist()
    [4.0, 0.0]
    """
    there = np.asarray(counts, dtype=np.float64)
    return np.asarray(x_log_x(there.sum(axis=-1)) - x_log_x(there).sum(axis=-1))


def x_log_x(counts: ArrayLike) -> Numbers:
    """Multiply counts by their logarithm to base 2; 0 for 0."""
    there = np.asarray(counts, dtype=np.float64)
    return np.asarray(there * np.log2(np.maximum(there, np.finfo(np.float64).tiny)))


def most_entropy_bits(n_values: Iterable[int]) -> float:
    r"""Largest entropy in bits of a table with columns of so many values, :math:`M_D = \sum_j \log_2|A_j|` of [PUFS]_.

    Examples
    --------
    >>> most_entropy_bits([2, 8, 1])
    4.0
    """
    return math.fsum(math.log2(n) for n in n_values)


def conditional_entropy_bits(contingency: ArrayLike) -> float:
    r"""Entropy of the class that is left when the value is known, in bits.

    :math:`H(C|A) = H(A, C) - H(A)` for counts of shape (values of A, classes C). Between 0 (the value tells the class)
    and :math:`H(C)` (it tells nothing). An empty table gives 0.

    Examples
    --------
    >>> conditional_entropy_bits([[1, 1], [2, 0]])
    0.5
    """
    counts = np.asarray(contingency, dtype=np.float64)
    return max(0.0, entropy_bits(counts) - entropy_bits(counts.sum(axis=1)))


def mutual_information_bits(contingency: ArrayLike) -> float:
    r"""Mutual information (information gain) of value and class, in bits.

    :math:`I(A; C) = H(C) - H(C|A)` for counts of shape (values of A, classes C); symmetric in the two. Higher tells
    more; 0 when they are independent (up to the last bit of a logarithm, never below), in an empty table, and when
    either has one value only.

    Notes
    -----
    [FBA19]_ Equation 3 and [PUFS]_ Equation 5 print something else; the text of both means this.

    Examples
    --------
    >>> mutual_information_bits([[2, 0], [0, 2]])
    1.0
    """
    counts = np.asarray(contingency, dtype=np.float64)
    return max(0.0, entropy_bits(counts.sum(axis=0)) - conditional_entropy_bits(counts))


def expected_information_bits(contingency: ArrayLike) -> float:
    r"""Mean mutual information, in bits, of independent value and class with the counts of a table's margins.

    What :func:`mutual_information_bits` gives on average when the classes are dealt to the rows at random: the larger,
    the more values there are. For :math:`a_i` rows with value i and :math:`b_j` of class j among n, the count of both
    is hypergeometric, and :math:`E = \sum_{ij} E[\frac{n_{ij}}{n} \log_2 \frac{n \, n_{ij}}{a_i b_j}]`
    (Vinh, Epps, Bailey: JMLR 11, 2010). Where every row has a value of its own it is the entropy of the class.

    Notes
    -----
    Summed over the counts that can occur where :math:`a_i b_j / n` is below 30; else by the first term of the expansion
    for large counts, :math:`(1 - a_i/n)(1 - b_j/n) / (2 n \ln 2)` (Miller, Madow), which is then right to a
    percent.

    Examples
    --------
    >>> round(expected_information_bits([[1, 0], [1, 0], [0, 1], [0, 1]]), 9)
    1.0
    >>> round(expected_information_bits([[2, 0], [0, 2]]), 4)
    0.3333
    """
    counts = np.asarray(contingency, dtype=np.float64)
    n_rows = counts.sum()
    if not n_rows:
        return 0.0
    of_values, of_classes = counts.sum(axis=1), counts.sum(axis=0)
    of_classes = of_classes[of_classes > 0]
    sizes, n_values = np.unique(of_values[of_values > 0], return_counts=True)
    a, b = (part.ravel() for part in np.meshgrid(sizes, of_classes, indexing="ij"))
    is_many = a * b >= _MANY * n_rows
    bits = np.zeros(len(a))
    bits[is_many] = ((1 - a / n_rows) * (1 - b / n_rows))[is_many] / (2 * n_rows * np.log(2))
    bits[~is_many] = _expected_cell_bits(a[~is_many], b[~is_many], float(n_rows))
    return float(np.maximum(bits.reshape(len(sizes), -1).sum(axis=1) @ n_values, 0.0))


def _expected_cell_bits(a: Numbers, b: Numbers, n: float) -> Numbers:
    """Mean of (m / n) log2(n m / (a b)) over hypergeometric counts m of a value with a rows in a class with b."""
    from scipy.special import xlogy

    mean = a * b / n
    spread = _DEVIATIONS * np.sqrt(mean) + _DEVIATIONS**2
    low = np.maximum(np.maximum(np.floor(mean - spread), a + b - n), 1.0)
    high = np.minimum(np.ceil(mean + spread), np.minimum(a, b))
    lengths = np.maximum(high - low + 1, 0).astype(np.intp)
    cell = np.repeat(np.arange(len(a)), lengths)
    m = low[cell] + (np.arange(len(cell)) - np.repeat(np.cumsum(lengths) - lengths, lengths))
    a_of, b_of = a[cell], b[cell]
    ways = _log_ways(b_of, m) + _log_ways(n - b_of, a_of - m) - _log_ways(np.full(len(cell), n), a_of)
    bits = np.exp(ways) * (xlogy(m, m) + m * np.log(n / (a_of * b_of))) / (n * np.log(2))
    return np.bincount(cell, weights=bits, minlength=len(a)).astype(np.float64)


def _log_ways(n: Numbers, m: Numbers) -> Numbers:
    """Logarithm of the number of ways to choose m of n."""
    from scipy.special import gammaln

    return np.asarray(gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1))
