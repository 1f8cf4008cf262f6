"""k-anonymity by containment of a binary table."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.counting.bitsets import all_included, distinct_rows, including_rows, packed_patterns, persons_at
from sfumato.errors import InvalidParameterError


def containment_counts(matrix: sp.spmatrix, row_counts: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Rows whose set of ones includes that of each row, the row itself counted.

    :math:`AC(e)` of [kAC17]_, Definitions 3 and 4: the largest k for which row e is k-anonymous by containment. The
    smallest of all is :func:`containment_level`. ``row_counts``: how many rows each row of the matrix stands for.

    Notes
    -----
    Time O(d² · features / 64) for d distinct rows, in pieces of 16 MiB; the level alone is found faster.

    Examples
    --------
    >>> from sfumato.datasets.papers import toy_containment_table
    >>> containment_counts(toy_containment_table().matrix).tolist()  # Table 1 of [kAC17]_: AC(e1) = 4, AC(e6) = 1
    [4, 4, 2, 4, 1, 1]
    """
    if matrix.shape[0] == 0:
        return np.zeros(0, dtype=np.int64)
    distinct = distinct_rows(matrix, row_counts)
    words = packed_patterns(matrix, distinct.representatives)
    return np.asarray(including_rows(words, distinct.counts)[distinct.inverse], dtype=np.int64)


def containment_group(matrix: sp.spmatrix, row: int) -> NDArray[np.intp]:
    """Row numbers, ascending, of the rows whose set of ones includes that of a given row, which is among them.

    The group of row e in [kAC17]_, Definition 5: those whom an attacker who knows ones of e cannot rule out. It has
    :math:`AC(e)` rows.

    Raises
    ------
    InvalidParameterError
        If there is no such row.

    Examples
    --------
    >>> from sfumato.datasets.papers import toy_containment_table
    >>> containment_group(toy_containment_table().matrix, 0).tolist()  # e1, e2, e4 and e5
    [0, 1, 3, 4]
    """
    n_rows = matrix.shape[0]
    if not 0 <= row < n_rows:
        raise InvalidParameterError("row", f"got {row}", allowed=f"a row number from 0 to {n_rows - 1}")
    columns = sp.csc_matrix(matrix)
    ones = sp.csr_matrix(columns[[row]]).indices
    return np.flatnonzero(np.asarray(columns[:, ones].sum(axis=1)).ravel() == len(ones))


def containment_level(
    matrix: sp.spmatrix, row_counts: NDArray[np.int64] | None = None, persons: NDArray[np.int32] | None = None
) -> int:
    """Largest k for which every row is k-anonymous by containment.

    :math:`AC(D)` of [kAC17]_, Definitions 4-6: each row's set of ones must be included in that of at least k - 1
    other rows. Higher is safer. No columns give the number of rows, no rows give 0. ``row_counts``: how many rows each
    row of the matrix stands for. ``persons``: person of each row, if k different persons must have such a row.

    Notes
    -----
    Never falls when columns are dropped (Lemma 2). It says nothing about zeros. It is how often the rarest distinct
    row occurs that no other row includes; a level holds iff each row that occurs less often is included in one that
    occurs at least so often, and the levels are searched by halving. By persons a row occurs as often as it has
    persons: those of a row that no other row includes are the persons who have just this row.

    Examples
    --------
    >>> from sfumato.datasets.papers import toy_containment_table
    >>> containment_level(toy_containment_table().matrix)  # Table 1 of [kAC17]_
    1
    """
    if matrix.shape[0] == 0:
        return 0
    distinct = distinct_rows(matrix, row_counts)
    words = packed_patterns(matrix, distinct.representatives)
    counts = distinct.counts if persons is None else persons_at(distinct.inverse, persons, len(distinct.counts))
    levels = np.unique(counts).tolist()

    def holds(level: int) -> bool:
        return all_included(words[counts < level], words[counts >= level])

    return int(levels[bisect_left(levels, True, lo=1, key=lambda level: not holds(level)) - 1])
