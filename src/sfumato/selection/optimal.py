"""The selection with provably largest HamDist under k-anonymity by containment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from sfumato.contract import Compared, MechanismInfo, ParameterSpec, Progress
from sfumato.measures.separation import pairs_of_different_classes
from sfumato.selection.base import ContainmentSelector, Labelled, Selection, weights_in_separation
from sfumato.selection.branching import Outcome, heaviest_feasible
from sfumato.selection.budget import TIME_BUDGET, TimeBudget
from sfumato.selection.containment import GreedyContainmentSelector
from sfumato.selection.feasibility import LATTICE_COLUMNS, Lattice, columns_of
from sfumato.selection.improvement import good_start
from sfumato.selection.reduction import Counts, Reduced, reduce_table
from sfumato.table.binarize import BinarizePlan

_START_SHARE = 0.2  # of the time budget, for a good set to begin with


class OptimalContainmentSelector(ContainmentSelector):
    """Choose the features with the largest HamDist of all sets that are k-anonymous by containment.

    Parameters
    ----------
    k : int, default=5
        Whatever ones of a row an attacker knows, at least k rows have them all.
    time_budget : float, default=60.0
        Seconds after which the best set found so far is taken; ``search_`` then tells the bound that was reached. The
        greedy selection that the search begins with is always made, and with up to 24 columns to decide about nothing
        is cut short.
    binarize : BinarizePlan, mapping or None
        How ``release`` turns a mixed table into binary features; ``fit`` does not use it.

    Attributes
    ----------
    selected_columns_ : array of int
        Positions of the chosen features, ascending.
    containment_level_ : int
        Largest k that holds on the chosen features.
    search_ : dict
        ``method``; ``proven``, whether no feasible set has a larger HamDist; ``bound``, which the HamDist of no
        feasible set exceeds; ``gap``, by how much the chosen one falls short of it, and ``gap_fraction``, the same as
        a share of the bound. ``separated_pairs`` and ``separated_pairs_bound`` are HamDist and bound times the pairs
        of rows of different classes: whole numbers, so that proven is exact. ``n_nodes`` of the search.

    Notes
    -----
    HamDist is a sum over features (Theorem 1 of [kAC17]_), so the best set is the heaviest one that holds no itemset
    that 1 to k - 1 rows have. With up to 24 columns all sets are compared; else by branch and bound. The result is
    maximal. A larger HamDist need not make a better classifier: see :class:`ExactContainmentSelector`.

    Of equally good sets one is taken that depends on the order of the columns, not of the rows. When time is cut
    short the result depends on the speed of the machine.

    Examples
    --------
    >>> from sfumato.datasets.papers import toy_containment_table
    >>> toy = toy_containment_table()
    >>> selector = OptimalContainmentSelector(k=2).fit(toy.matrix, toy.target().codes)
    >>> selector.get_support(indices=True), selector.search_["proven"]
    (array([0, 2, 3, 4]), True)
    """

    mechanism_name: ClassVar[str] = "optimal-containment"
    parameter_specs: ClassVar[Mapping[str, ParameterSpec]] = {
        "k": ParameterSpec("at least k rows have all the ones that an attacker knows of a row", at_least=2),
        "time_budget": replace(TIME_BUDGET, help="seconds after which the best set found so far is taken"),
        "binarize": ParameterSpec("how mixed columns become binary features ([binarize] in the project)"),
    }

    def __init__(
        self,
        k: int = 5,
        time_budget: float = 60.0,
        binarize: BinarizePlan | Mapping[str, Any] | None = None,
    ) -> None:
        self.k = k
        self.time_budget = time_budget
        self.binarize = binarize

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self.check_parameters("time_budget")

    def _search(self, data: Labelled, progress: Progress | None) -> Selection:
        budget, k = TimeBudget(self.time_budget), int(self.k)
        reduced = reduce_table(data.matrix, k, data.row_counts)
        weights = reduced.weights(weights_in_separation(data))
        if reduced.n_columns <= LATTICE_COLUMNS:
            method, found = "all sets compared", heaviest_of_all(reduced, weights, k)
        else:
            greedy = GreedyContainmentSelector(k, on_infeasible="skip")._search(data, None)
            start = good_start(reduced, weights, k, greedy.features, budget.share(_START_SHARE))
            found = heaviest_feasible(reduced, weights, k, start, budget, progress)
            method = "branch and bound" if found.n_nodes else "greedy and exchanges"
        ending = {"method": method} | _ending(found, int(pairs_of_different_classes(data.class_sizes)))
        return Selection(reduced.features(found.columns), ending=ending)


def _ending(found: Outcome, n_pairs: int) -> dict[str, Any]:
    short_of = found.upper_bound - found.weight
    return {
        "proven": found.is_proven,
        "bound_on": "hamming_separation",
        "bound": found.upper_bound / n_pairs,
        "gap": short_of / n_pairs,
        "gap_fraction": short_of / max(found.upper_bound, 1),
        "separated_pairs": found.weight,
        "separated_pairs_bound": found.upper_bound,
        "n_nodes": found.n_nodes,
    }


def heaviest_of_all(reduced: Reduced, weights: Counts, k: int) -> Outcome:
    """Compare all maximal sets of up to 24 columns; of equally heavy ones the one with the earlier columns wins."""
    lattice = Lattice(reduced, k)
    masks = lattice.maximal()
    weighed = lattice.weigh(masks, weights)
    best = int(np.argmax(weighed))
    weight = int(weighed[best])
    return Outcome(columns_of(int(masks[best]), reduced.n_columns), weight, weight, 0)


DECLARATION = MechanismInfo(
    OptimalContainmentSelector,
    why="finds the binary features that separate the classes most, and proves it or says how far the bound is",
    promises="k-anonymity by containment",
    compared=Compared(({"k": 5},), time_limit="time_budget"),
    guarantee="containment",
)
