"""Information, in bits, that somebody without background knowledge needs to find a person of a group."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameterError

Bits = NDArray[np.float64]


def background_information_granularity(domain_shares: ArrayLike) -> Bits:
    r"""Information needed to learn which background a group has: its background information granularity (BIG).

    :math:`BIG(t) = -\sum_j \log_2 P_j(t)`, Definition 1 of [ERP19]_, over the last axis. From 0 (the group spans the
    whole domain of every column, so there is nothing to learn) upward; a small value is risky. No columns give 0, and
    a share of 0 gives infinity: no background leads to the group.

    Parameters
    ----------
    domain_shares : array_like, shape (..., n_columns)
        :math:`P_j(t)`: size of the domain of each column in the group over its size in the data, from 0 to 1. For a
        numeric column sizes are lengths of ranges, for a categorical one numbers of values.

    Notes
    -----
    Adding up over columns takes them to be independent; the paper does so to compare groups, not to estimate chances.

    References
    ----------
    .. [ERP19] Yang, Wang, Hu, Li: A Decision Tree Approach for Assessing and Mitigating Background and Identity
       Disclosure Risks. ICIS 2019.

    Examples
    --------
    >>> background_information_granularity([[1 / 2, 1 / 4], [1, 1]]).tolist()
    [3.0, 0.0]
    """
    shares = np.asarray(domain_shares, dtype=np.float64)
    if not ((shares >= 0) & (shares <= 1)).all():
        raise InvalidParameterError("domain_shares", "some are not", allowed="between 0 and 1")
    with np.errstate(divide="ignore"):
        return np.asarray(0.0 - np.log2(shares).sum(axis=-1))


def information_for_reidentification(n_rows: ArrayLike) -> Bits:
    r"""Information needed to tell a row from the others of its group: that for conditional re-identification (ICR).

    :math:`ICR(t) = \log_2 n_t`, Definition 2 of [ERP19]_. From 0 (a single row) upward; a small value is risky. A
    group without rows discloses nobody and gives infinity.

    Examples
    --------
    >>> information_for_reidentification([1, 8, 0]).tolist()
    [0.0, 3.0, inf]
    """
    sizes = np.asarray(n_rows, dtype=np.float64)
    if not (sizes >= 0).all():
        raise InvalidParameterError("n_rows", "some are not", allowed="at least 0")
    return np.where(sizes > 0, np.log2(np.where(sizes > 0, sizes, 1.0)), np.inf)


def total_information(granularity: ArrayLike, n_rows: ArrayLike) -> Bits:
    r"""Total information for disclosing an individual of a group (TIDI): its background, then the row.

    :math:`R(t) = BIG(t) + ICR(t)`, Definition 3 of [ERP19]_. From 0 (one row, whole domains) upward; a small value is
    risky. A group without rows gives infinity.

    Parameters
    ----------
    granularity : array_like, shape (...)
        :func:`background_information_granularity` of each group.
    n_rows : array_like, shape (...)
        Rows of each group.

    Examples
    --------
    >>> granularity = background_information_granularity([[0.5], [0.25]])
    >>> total_information(granularity, [5, 5]).round(3).tolist()  # nodes 2 and 6 of Figure 1
    [3.322, 4.322]
    """
    return np.asarray(np.asarray(granularity) + information_for_reidentification(n_rows))
