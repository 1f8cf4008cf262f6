"""Entropy and mutual information, in bits, of counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def entropy_bits(counts: ArrayLike) -> float:
    r"""Entropy of the distribution that counts describe, in bits.

    :math:`H = -\sum_i p_i \log_2 p_i` (Shannon 1948) with :math:`p_i` the counts over their sum; all dimensions of an
    array are taken together. Between 0 (one value) and the logarithm of the number of values. A count of 0 adds
    nothing; no counts at all give 0.

    Examples
    --------
    >>> entropy_bits([2, 1, 1])
    1.5
    """
    flat = np.asarray(counts, dtype=np.float64).ravel()
    flat = flat[flat > 0]
    shares = flat / flat.sum()
    return max(0.0, float(-(shares @ np.log2(shares))))


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
