"""Feature selection by maximal itemsets: Algorithm 1 of [kAC17]_."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.counting.bitsets import distinct_rows
from sfumato.errors import InvalidParameterError
from sfumato.measures.separation import distinguished_pairs, pairs_of_different_classes
from sfumato.mechanisms.base import Compared, MechanismInfo
from sfumato.mechanisms.containment.base import (
    BINARIZE,
    ContainmentSelector,
    K,
    Labelled,
    Selection,
    check_choices,
    group_classes,
    weights_in_separation,
)
from sfumato.mechanisms.containment.itemsets import FoundItemsets, heaviest_itemsets, largest_itemsets
from sfumato.mechanisms.time_limit import TIME_BUDGET
from sfumato.parameters import ParameterSpec
from sfumato.progress import Progress
from sfumato.table.binarize import BinarizePlan

Search = Literal["top-r", "best"]
Criterion = Literal["hamming_separation", "distinguished_pairs"]


class MaximalContainmentSelector(ContainmentSelector):
    """Keep the best of the maximal sets of features that at least k rows have in common.

    Parameters
    ----------
    k : int, default=5
        Whatever ones of a row an attacker knows, at least k rows have them all.
    search : {"top-r", "best"}, default="top-r"
        Take the best of the r largest sets, as in the paper, or the best of all of them, which separates the classes
        at least as well and is usually found sooner.
    r : int, default=20
        How many of the largest sets are compared; ``"best"`` does not use it.
    criterion : {"hamming_separation", "distinguished_pairs"}, default="hamming_separation"
        What the best is: the largest mean Hamming distance between rows of different classes (HamDist), or the largest
        share of such pairs that differ at all (DistCnt; for ``"top-r"`` only).
    time_budget : float, default=30.0
        Seconds after which the best found so far is taken.
    binarize : BinarizePlan, mapping or None
        How ``release`` turns a mixed table into binary features; ``fit`` does not use it.

    Attributes
    ----------
    selected_columns_ : array of int
        Positions of the chosen features, ascending.
    containment_level_ : int
        Largest k that holds on the chosen features.
    search_ : dict
        How the search ended. ``proven``: it came to its end. ``bound``: no set of features that k rows have in common
        is larger (``"top-r"``) or has a larger HamDist (``"best"``). ``gap``: by how much the bound exceeds the
        largest set found, or the HamDist of the one chosen; 0 if proven. ``n_candidates``: sets compared by the
        criterion.

    Notes
    -----
    Listing all maximal itemsets is out of the question on many tables, so they are looked for by branch and bound (see
    :mod:`sfumato.mechanisms.containment.itemsets`). A proven answer does not depend on the order of the rows.

    **Deviations.** The paper takes the sets of features that k rows have in common, the frequent itemsets, for all
    feasible ones; but its Lemma 3 holds in one direction only. On its Table 1 with k = 2, {x1, x3, x4, x5} is feasible
    and in no frequent itemset. This selection is the paper's; it always keeps k and may miss better sets. The paper
    does not say which of equally large sets are among the r largest: here those with the larger HamDist are, then
    those met first in a search that depends on the set of rows alone. More than two classes are allowed: pairs of
    rows of different classes take the place of the paper's pairs.

    References
    ----------
    .. [kAC17] Zhang, Mohammed, Dave, Al Hasan: Feature Selection for Classification under Anonymity Constraint.
       Transactions on Data Privacy 10 (2017) 1-25.

    Examples
    --------
    >>> from sfumato.datasets.papers import toy_containment_table
    >>> toy = toy_containment_table()
    >>> selector = MaximalContainmentSelector(k=2).fit(toy.matrix, toy.target().codes)
    >>> selector.get_support(indices=True)
    array([0, 1, 4])
    >>> selector.search_["proven"], selector.search_["n_candidates"]  # M_2 has three sets
    (True, 3)
    """

    mechanism_name: ClassVar[str] = "maximal-containment"
    parameter_specs: ClassVar[Mapping[str, ParameterSpec]] = {
        "k": K,
        "search": ParameterSpec("compare the r largest sets, or take the best of all"),
        "r": ParameterSpec("how many of the largest sets are compared", at_least=1),
        "criterion": ParameterSpec("what the best set is"),
        "time_budget": replace(TIME_BUDGET, help="seconds after which the best found so far is taken"),
        "binarize": BINARIZE,
    }

    def __init__(
        self,
        k: int = 5,
        search: Search = "top-r",
        r: int = 20,
        criterion: Criterion = "hamming_separation",
        time_budget: float = 30.0,
        binarize: BinarizePlan | Mapping[str, Any] | None = None,
    ) -> None:
        self.k = k
        self.search = search
        self.r = r
        self.criterion = criterion
        self.time_budget = time_budget
        self.binarize = binarize

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choices(self, "search", "criterion")
        self.check_parameters("time_budget", "r")
        if self.search == "best" and self.criterion != "hamming_separation":
            raise InvalidParameterError(
                "criterion",
                f"got '{self.criterion}'",
                allowed="'hamming_separation' when search is 'best'",
                hint="the best of all sets is found by adding up what each feature separates; search='top-r' compares "
                "the largest sets by either criterion",
            )

    def _search(self, data: Labelled, progress: Progress | None) -> Selection:
        separated = weights_in_separation(data)
        matrix, k, seconds = data.matrix, int(self.k), float(self.time_budget)
        if self.search == "best":
            found = heaviest_itemsets(matrix, separated, k, 1, seconds, progress, data.row_counts, data.persons)
            unit: float = int(pairs_of_different_classes(data.class_sizes))
        else:
            r = int(self.r)
            found = largest_itemsets(matrix, separated, k, r, seconds, progress, data.row_counts, data.persons)
            unit = 1
        return Selection(self._best(found, data, separated), ending=self._ending(found, unit))

    def _best(self, found: FoundItemsets, data: Labelled, separated: NDArray[np.int64]) -> tuple[int, ...]:
        """Choose by the criterion; ties go to the first, that is to the larger set."""
        if self.criterion == "hamming_separation":
            return max(found.itemsets, key=lambda features: int(separated[list(features)].sum()), default=())
        by_row = sp.csr_matrix(data.matrix)

        def share(features: tuple[int, ...]) -> float:  # DistCnt
            return distinguished_pairs(group_classes(distinct_rows(by_row[:, list(features)]).inverse, data))

        return max(found.itemsets, key=share, default=())

    def _ending(self, found: FoundItemsets, unit: float) -> dict[str, Any]:
        first = found.worths[0] if found.worths else 0
        return {
            "search": self.search,
            "proven": found.proven,
            "n_candidates": len(found.itemsets),
            "bound_on": "hamming_separation" if self.search == "best" else "size",
            "bound": found.bound / unit if self.search == "best" else found.bound,
            "gap": (found.bound - first) / unit if self.search == "best" else found.bound - first,
        }


DECLARATION = MechanismInfo(
    MaximalContainmentSelector,
    why="keeps the largest or best set of binary features that k rows share, proven or with a bound",
    promises="k-anonymity by containment",
    compared=Compared(({"k": 5},), time_limit="time_budget"),
    guarantee="containment",
    needs_target=True,
    cost=8.0,
)
