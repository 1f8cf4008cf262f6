"""What coarsening and suppressing cost: certainty penalties and suppressed rows."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameterError


def normalized_certainty_penalty_of_ranges(
    low: ArrayLike, high: ArrayLike, domain_low: float, domain_high: float
) -> NDArray[np.float64]:
    """Width of numeric ranges over that of the whole column: their normalized certainty penalty (NCP).

    Xu et al. (2006); Equation 11 of [ERP19]_. From 0 (a single number) to 1 (the whole column); lower is better.
    A column of one number only costs 0.

    Examples
    --------
    >>> normalized_certainty_penalty_of_ranges([29, 57], [42, 57], 22, 80).round(3).tolist()
    [0.224, 0.0]
    """
    width = np.asarray(high, dtype=np.float64) - np.asarray(low, dtype=np.float64)
    domain = domain_high - domain_low
    if width.size and (width.min() < 0 or width.max() > domain):
        allowed = "at least low, and in the column's range"
        raise InvalidParameterError(name="high", problem="some are not", allowed=allowed)
    return np.asarray(width / domain if domain > 0 else np.zeros_like(width))


def normalized_certainty_penalty_of_sets(n_values: ArrayLike, n_domain: int) -> NDArray[np.float64]:
    """Share of a column's values that sets cover, 0 for one value: their normalized certainty penalty (NCP).

    Xu et al. (2006); Equation 11 of [ERP19]_. From 0 to 1 (every value of the column); lower is better.

    Parameters
    ----------
    n_values : array_like of int
        Number of values each generalized value stands for, at least 1.
    n_domain : int
        Number of values of the column.

    Examples
    --------
    >>> normalized_certainty_penalty_of_sets([1, 2, 4], 4).tolist()
    [0.0, 0.5, 1.0]
    """
    covered = np.asarray(n_values, dtype=np.float64)
    if covered.size and (covered.min() < 1 or covered.max() > n_domain):
        allowed = f"between 1 and the {n_domain} values of the column"
        raise InvalidParameterError(name="n_values", problem="some are not", allowed=allowed)
    return np.asarray(np.where(covered == 1, 0.0, covered / max(n_domain, 1)))


def generalized_certainty_penalty(penalties: ArrayLike, counts: ArrayLike | None = None) -> float:
    """Global certainty penalty (GCP): the mean penalty of all cells of a release.

    Ghinita et al. (2007); Equation 12 of [ERP19]_. From 0 (nothing coarsened) to 1 (nothing left); lower is better.
    A release without cells gives 0.

    Parameters
    ----------
    penalties : array_like of shape (n_rows, n_columns)
        Normalized certainty penalties; a suppressed cell has 1.
    counts : array_like of shape (n_rows,) or None
        How many rows each row of ``penalties`` stands for; one if left out.

    Examples
    --------
    >>> generalized_certainty_penalty([[0.0, 0.5], [1.0, 1.0]], counts=[3, 1])
    0.4375
    """
    cells = np.asarray(penalties, dtype=np.float64)
    if cells.size == 0:
        return 0.0
    weights = np.ones(len(cells)) if counts is None else np.asarray(counts, dtype=np.float64)
    each = weights * cells.mean(axis=1)
    return math.fsum(each.tolist()) / math.fsum(weights.tolist())  # exactly rounded: the same on every processor


def generalization_height(heights: ArrayLike, counts: ArrayLike | None = None) -> int:
    """Sum of the levels of all cells of a release: how many generalization steps were taken.

    Equation 4 of [FBA19]_, the sum of h_ij over quasi-identifiers i and records j. Lower is better; 0 if no cell was
    coarsened. The paper does not say what a suppressed record counts: give its cells the highest level.

    Parameters
    ----------
    heights : array_like of int, shape (n_rows, n_columns)
        Level of each cell in its column's hierarchy, 0 for a value itself.
    counts : array_like of shape (n_rows,) or None
        How many rows each row of ``heights`` stands for; one if left out.

    References
    ----------
    .. [FBA19] Gachanga, Kimwele, Nderu: Feature Based Data Anonymization for High Dimensional Data. JIEA 9(2), 2019.

    Examples
    --------
    >>> generalization_height([[0, 2], [1, 3]], counts=[3, 1])
    10
    """
    levels = np.asarray(heights, dtype=np.int64)
    if levels.size == 0:
        return 0
    weights = np.ones(len(levels), dtype=np.int64) if counts is None else np.asarray(counts, dtype=np.int64)
    return int(weights @ levels.sum(axis=1))


def suppressed_fraction(n_suppressed: int, n_rows: int) -> float:
    """Fraction of a table's rows that a release leaves out; an empty table gives 0.

    Examples
    --------
    >>> suppressed_fraction(3, 200)
    0.015
    """
    return n_suppressed / n_rows if n_rows else 0.0
