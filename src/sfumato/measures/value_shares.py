r"""How the share of single sensitive values in classes differs from that in the whole table: β-likeness, δ-disclosure.

And, for (α,k)-anonymity, how large it is. As in :mod:`sfumato.measures.diversity` counts come in two forms: **dense**,
an array with the values as last axis, one level a row, and **by class**
(:class:`sfumato.counting.classes.ClassValueCounts`). Both give the same levels; **lower is safer**. A level is infinite
where no number would do. With the share q of a value in a class and p in the rows that classes are compared with:

* β-likeness of [CK12]_: :math:`\max (q - p)/p`; enhanced: infinite where one of them is above :math:`-\ln p`;
* δ-disclosure privacy of [BS08]_: :math:`\max |\ln(q/p)|` over all values with p > 0; infinite where a class lacks one;
* (α,k)-anonymity of [WLFW06]_: :math:`\max q`.

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
from numpy.typing import ArrayLike, NDArray

from sfumato.counting.classes import ClassValueCounts
from sfumato.guarantees import ROUNDING

Levels = NDArray[np.float64]


def likeness_levels(counts: ArrayLike, overall: ArrayLike, likeness: Literal["basic", "enhanced"] = "basic") -> Levels:
    """Smallest β for which groups are β-like to the whole table, by the counts along the last axis.

    A group without rows has level 0.

    Examples
    --------
    >>> counts = [[3, 1], [4, 0]]
    >>> likeness_levels(counts, [5, 5]).tolist(), likeness_levels(counts, [5, 5], "enhanced").tolist()
    ([0.5, 1.0], [0.5, inf])
    """
    ratios, before = _ratios(counts, overall)
    gains = np.where(ratios.any(axis=-1, keepdims=True), ratios - 1.0, 0.0)
    return np.asarray(_gains_allowed(gains, before, likeness).max(axis=-1, initial=0.0))


def disclosure_levels(counts: ArrayLike, overall: ArrayLike) -> Levels:
    """Smallest δ for which groups are δ-disclosure-private, by the counts along the last axis.

    A group without rows has level 0.

    Examples
    --------
    >>> disclosure_levels([[2, 2], [4, 0]], [5, 5]).tolist()
    [0.0, inf]
    """
    ratios, _ = _ratios(counts, overall)
    with np.errstate(divide="ignore"):
        logarithms = np.abs(np.log(ratios))
    return np.asarray(np.where(ratios.any(axis=-1), logarithms.max(axis=-1, initial=0.0), 0.0))


def largest_shares(counts: ArrayLike) -> Levels:
    """Largest share of a value in each group, by the counts along the last axis; 0 for a group without rows.

    Examples
    --------
    >>> largest_shares([[3, 1], [4, 0], [0, 0]]).tolist()
    [0.75, 1.0, 0.0]
    """
    there = np.asarray(counts)
    return np.asarray(there.max(axis=-1, initial=0) / np.maximum(there.sum(axis=-1), 1))


def likeness_levels_by_class(counts: ClassValueCounts, likeness: Literal["basic", "enhanced"] = "basic") -> Levels:
    """:func:`likeness_levels` of each class.

    As with distances, a class that has a value which the rows that it is compared with have not may get any level.
    """
    ratios, before = _ratios_by_class(counts)
    allowed = _gains_allowed(ratios - 1.0, before, likeness)
    return np.asarray(np.maximum(np.maximum.reduceat(allowed, counts.class_starts), 0.0))


def disclosure_levels_by_class(counts: ClassValueCounts) -> Levels:
    """:func:`disclosure_levels` of each class, with the same exception as :func:`likeness_levels_by_class`."""
    ratios, _ = _ratios_by_class(counts)
    largest = np.maximum.reduceat(np.abs(np.log(ratios)), counts.class_starts)
    lacks_none = counts.n_distinct >= np.count_nonzero(counts.value_totals)
    return np.asarray(np.where(lacks_none, largest, np.inf))


def largest_shares_by_class(counts: ClassValueCounts) -> Levels:
    """:func:`largest_shares` of each class."""
    return np.asarray(np.maximum.reduceat(counts.shares, counts.class_starts))


def _gains_allowed(gains: Levels, before: Levels, likeness: Literal["basic", "enhanced"]) -> Levels:
    """Gains of values, infinite where they are above what is allowed whatever β is."""
    if likeness == "basic":
        return gains
    return np.asarray(np.where(gains > -np.log(before) + ROUNDING, np.inf, gains))


def _ratios(counts: ArrayLike, overall: ArrayLike) -> tuple[Levels, Levels]:
    """q/p of the values that occur in the table, and their p."""
    there, whole = np.asarray(counts), np.asarray(overall)
    occurs = whole > 0
    before = whole[occurs] / whole.sum()
    shares = there[..., occurs] / np.maximum(there.sum(axis=-1, keepdims=True), 1)
    return np.asarray(shares / before), np.asarray(before)


def _ratios_by_class(counts: ClassValueCounts) -> tuple[Levels, Levels]:
    """q/p and p of the pairs of class and value that occur.

    A p of 0 is taken as that of one row: its class is not among those that are compared. Weights of persons may be
    below 1.
    """
    totals = counts.value_totals
    compared = np.where(totals > 0, totals, 1) / (totals.sum() or 1)
    before = compared[counts.value_code]
    return np.asarray(counts.shares / before), before
