r"""How the share of single sensitive values in classes differs from that in the whole table: β-likeness, δ-disclosure.

And, for (α,k)-anonymity, how large it is. As in :mod:`sfumato.measures.diversity` each definition is here once, for
counts in either form and of any unit; **lower is safer**. A level is infinite where no number would do. With the share
q of a value in a class and p in the rows that classes are compared with:

* β-likeness of [CK12]_: :math:`\max (q - p)/p`; enhanced: infinite where one of them is above :math:`-\ln p`;
* δ-disclosure privacy of [BS08]_: :math:`\max |\ln(q/p)|` over all values with p > 0; infinite where a class lacks one;
* (α,k)-anonymity of [WLFW06]_: :math:`\max q`.

A class that has a value which the rows that it is compared with have not may get any level, a group without rows has 0.

References
----------
.. [CK12] Cao, Karras: Publishing Microdata with a Robust Privacy Guarantee. PVLDB 5(11) (2012).
.. [BS08] Brickell, Shmatikov: The Cost of Privacy: Destruction of Data-Mining Utility in Anonymized Data Publishing.
   KDD (2008).
.. [WLFW06] Wong, Li, Fu, Wang: (α, k)-Anonymity: An Enhanced k-Anonymity Model for Privacy Preserving Data Publishing.
   KDD (2006).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from sfumato.counting import ROUNDING
from sfumato.counting.counts import AnyCounts, Levels


def likeness_levels(counts: AnyCounts, likeness: Literal["basic", "enhanced"] = "basic") -> Levels:
    """Smallest β for which classes are β-like to the whole table.

    Examples
    --------
    >>> from sfumato.counting.counts import DenseCounts
    >>> counts = DenseCounts(np.array([[3, 1], [4, 0]]), np.array([5, 5]))
    >>> likeness_levels(counts).tolist(), likeness_levels(counts, "enhanced").tolist()
    ([0.5, 1.0], [0.5, inf])
    """
    weights = counts.weights
    gains = weights.shares / weights.table_shares - 1.0
    if likeness == "enhanced":
        gains = np.where(gains > -np.log(weights.table_shares) + ROUNDING, np.inf, gains)
    return np.maximum(weights.maxima(gains), 0.0)


def disclosure_levels(counts: AnyCounts) -> Levels:
    """Smallest δ for which classes are δ-disclosure-private.

    Examples
    --------
    >>> from sfumato.counting.counts import DenseCounts
    >>> disclosure_levels(DenseCounts(np.array([[2, 2], [4, 0]]), np.array([5, 5]))).tolist()
    [0.0, inf]
    """
    weights = counts.weights
    ratios = weights.shares / weights.table_shares
    largest = weights.maxima(np.abs(np.log(np.where(ratios > 0, ratios, 1.0))))
    lacks_none = weights.n_distinct >= np.count_nonzero(weights.value_totals)
    return np.where(weights.has_rows, np.where(lacks_none, largest, np.inf), 0.0)


def largest_shares(counts: AnyCounts) -> Levels:
    """Largest share of a value in each class.

    Examples
    --------
    >>> from sfumato.counting.counts import DenseCounts
    >>> largest_shares(DenseCounts.alone(np.array([[3, 1], [4, 0], [0, 0]]))).tolist()
    [0.75, 1.0, 0.0]
    """
    weights = counts.weights
    return np.maximum(weights.maxima(weights.shares), 0.0)
