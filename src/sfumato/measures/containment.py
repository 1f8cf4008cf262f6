"""k-anonymity by containment of a binary table."""

from __future__ import annotations

import scipy.sparse as sp

from sfumato.counting.bitsets import containment_counts


def containment_level(matrix: sp.spmatrix) -> int:
    """Largest k for which every row is k-anonymous by containment.

    :math:`AC(D)` of [kAC17]_, Definitions 4-6: each row's set of ones must be included in that of at least k - 1
    other rows. Higher is safer. No columns give the number of rows, no rows give 0.

    Notes
    -----
    Never falls when columns are dropped (Lemma 2). It says nothing about zeros.

    Examples
    --------
    >>> from sfumato.datasets.papers import toy_containment_table
    >>> containment_level(toy_containment_table().matrix)  # Table 1 of [kAC17]_
    1
    """
    if matrix.shape[0] == 0:
        return 0
    return int(containment_counts(matrix).min())
