"""How large the classes of equal rows are: k, the rows at risk, and what large classes cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameterError


def anonymity_level(sizes: ArrayLike) -> int:
    """Largest k for which a table is k-anonymous: the size of its smallest equivalence class.

    k-anonymity of Sweeney (2002), Definition 3. Higher is safer. With no quasi-identifiers all rows are one class, so
    the level is the number of rows; an empty table has level 0.

    Examples
    --------
    >>> anonymity_level([3, 2, 7])
    2
    """
    counts = _as_sizes(sizes)
    return int(counts.min()) if counts.size else 0


def sample_unique_fraction(sizes: ArrayLike) -> float:
    """Fraction of rows that are alone in their equivalence class.

    Lower is safer. An empty table gives 0. Unique in the table does not mean unique in the population behind it.

    Examples
    --------
    >>> sample_unique_fraction([1, 1, 2])
    0.5
    """
    return at_risk_fraction(sizes, 2)


def at_risk_fraction(sizes: ArrayLike, k: int) -> float:
    """Fraction of rows in equivalence classes of fewer than k rows.

    Lower is safer; 0 exactly when the table is k-anonymous. An empty table gives 0.

    Examples
    --------
    >>> at_risk_fraction([1, 4, 5], 5)
    0.5
    """
    _check_k(k)
    counts = _as_sizes(sizes)
    return int(counts[counts < k].sum()) / int(counts.sum()) if counts.size else 0.0


def discernibility(sizes: ArrayLike, n_suppressed: int = 0) -> int:
    r"""Discernibility metric: every row pays the number of rows that it cannot be distinguished from.

    :math:`\sum_E |E|^2 + n_{suppressed} \cdot n` of Bayardo and Agrawal (2005), with n all rows of the
    original table, suppressed ones included. Lower is better; the least is the number of rows.

    Parameters
    ----------
    sizes : array_like of int
        Sizes of the classes that are released.
    n_suppressed : int
        Rows that are suppressed and in none of the classes.

    Examples
    --------
    >>> discernibility([2, 3], n_suppressed=1)
    19
    """
    counts = _as_sizes(sizes)
    n_rows = int(counts.sum()) + n_suppressed
    return int(counts @ counts) + n_suppressed * n_rows


def average_class_size(sizes: ArrayLike, k: int, n_suppressed: int = 0) -> float:
    r"""Average size of the equivalence classes, in multiples of k: how much larger than needed they are.

    Normalized average class size :math:`C_{AVG} = n / (n_{classes} \cdot k)` of LeFevre et al. (2006), with n all rows
    of the original table, suppressed ones included. Lower is better; 1 when every class has exactly k rows. An empty
    table gives 0, and suppressed rows without a class count as one.

    Examples
    --------
    >>> average_class_size([5, 15], k=5)
    2.0
    """
    _check_k(k)
    counts = _as_sizes(sizes)
    return (int(counts.sum()) + n_suppressed) / (max(counts.size, 1) * k)


def _as_sizes(sizes: ArrayLike) -> NDArray[np.int64]:
    return np.asarray(sizes, dtype=np.int64)


def _check_k(k: int) -> None:
    if k < 1:
        raise InvalidParameterError(name="k", problem=f"got {k}", allowed="at least 1")
