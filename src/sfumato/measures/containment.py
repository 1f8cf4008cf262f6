"""k-anonymity by containment of a binary table."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from sfumato.counting.bitsets import Inclusion


def containment_level(matrix: sp.spmatrix) -> int:
    """Largest k for which every row is k-anonymous by containment.

    :math:`AC(D)` of [kAC17]_, Definitions 4-6: each row's set of ones must be included in that of at least k - 1
    other rows. Higher is safer. No columns give the number of rows, no rows give 0.

    Notes
    -----
    Never falls when columns are dropped (Lemma 2). It says nothing about zeros. It is the smallest multiplicity among
    the distinct rows that no other row includes, so the search goes from the rarest on and ends at the first of these.

    Examples
    --------
    >>> from sfumato.datasets.papers import toy_containment_table
    >>> containment_level(toy_containment_table().matrix)  # Table 1 of [kAC17]_
    1
    """
    if matrix.shape[0] == 0:
        return 0
    inclusion = Inclusion(matrix)
    counts = inclusion.distinct.counts
    for row in np.argsort(counts, kind="stable").tolist():
        if len(inclusion.including(row)) == 1:
            return int(counts[row])
    raise AssertionError  # among finitely many distinct sets some are maximal
