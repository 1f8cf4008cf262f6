"""Selection among the sets that are truly maximal under k-anonymity by containment."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from sfumato.counting.bitsets import distinct_rows
from sfumato.errors import InvalidParameterError
from sfumato.measures.separation import n_distinguished_pairs
from sfumato.mechanisms.base import SEEDS, Compared, MechanismInfo
from sfumato.mechanisms.containment.base import (
    BINARIZE,
    ContainmentSelector,
    K,
    Labelled,
    Selection,
    check_choices,
    weights_in_separation,
)
from sfumato.mechanisms.containment.feasibility import Reduced, maximal_sets_of, reduce_table
from sfumato.mechanisms.containment.greedy import GreedyContainmentSelector
from sfumato.mechanisms.containment.improvement import improved_columns, shared_by_rows
from sfumato.mechanisms.containment.support import Counts
from sfumato.mechanisms.time_limit import TIME_BUDGET, TimeBudget
from sfumato.parameters import ParameterSpec
from sfumato.progress import Progress
from sfumato.table.binarize import Binarization, BinarizePlan
from sfumato.table.coding import Table

# What sets of features are worth to a recipient, computed from the counts of different rows only.


RowCounts = NDArray[np.int64]

_FOLDS = 5


class PatternCounts:
    """Different rows of a binary table, and how many rows of each class and fold are equal to each of them.

    Rows with the same features are interchangeable, so a linear model fitted on the few different rows with their
    counts as weights is the one fitted on all rows.

    Parameters
    ----------
    matrix : csc_matrix
        Rows × features, canonical 0/1.
    classes : array of int
        Class of each row, 0 .. n_classes - 1.
    random_state : int
        Decides which rows form a fold; the order of the rows does not.
    row_counts : array of int or None
        How many rows each row of the matrix stands for, which are then not dealt out into folds; None: one.
    """

    def __init__(
        self,
        matrix: sp.csc_matrix,
        classes: NDArray[np.int32],
        n_classes: int,
        random_state: int = 0,
        row_counts: RowCounts | None = None,
    ) -> None:
        distinct = distinct_rows(matrix)
        self.patterns = sp.csr_matrix(matrix)[distinct.representatives]
        smallest_class = int(np.bincount(classes, minlength=n_classes).min())
        self.n_folds = min(_FOLDS, smallest_class) if row_counts is None else 0
        folds = _folds(self.patterns, distinct.inverse, classes, self.n_folds, random_state)
        self.counts = np.zeros((max(self.n_folds, 1), n_classes, len(distinct.counts)), dtype=np.int64)
        np.add.at(self.counts, (folds, classes, distinct.inverse), 1 if row_counts is None else row_counts)

    def separated_pairs(self, features: Sequence[int]) -> int:
        """Count the pairs of rows of different classes that differ in one of these features (DistCnt)."""
        _, counts = self._grouped(features)
        within = counts.sum(axis=0).T
        return n_distinguished_pairs(within)

    def cross_validated_auc(self, features: Sequence[int]) -> float:
        """Mean area under the ROC curve, over the folds, of a linear SVM fitted on the others.

        The SVM has a squared hinge loss and C = 1, as in the paper's experiments. With more than two classes the areas
        of each class against the rest are averaged with the classes' sizes as weights.
        """
        patterns, counts = self._grouped(features)
        if not patterns.shape[1] or patterns.shape[0] < 2:
            return 0.5
        total = counts.sum(axis=0)
        return float(np.mean([_auc_of_fold(patterns, total - held_out, held_out) for held_out in counts]))

    def _grouped(self, features: Sequence[int]) -> tuple[sp.csr_matrix, RowCounts]:
        """Different rows on some features, and their counts by fold and class."""
        projected = self.patterns[:, list(features)]
        groups = distinct_rows(projected)
        n_patterns, n_groups = len(groups.inverse), len(groups.counts)
        members = (np.ones(n_patterns, dtype=np.int64), (np.arange(n_patterns), groups.inverse))
        counts = self.counts.reshape(-1, n_patterns) @ sp.csr_matrix(members, shape=(n_patterns, n_groups))
        return projected[groups.representatives], counts.reshape(*self.counts.shape[:2], n_groups)


def _folds(
    patterns: sp.csr_matrix, pattern_of_row: NDArray[np.intp], classes: NDArray[np.int32], n_folds: int, seed: int
) -> NDArray[np.intp]:
    """Fold of every row, stratified by class; rows are dealt out in an order that depends on their content alone."""
    folds = np.zeros(len(classes), dtype=np.intp)
    if n_folds < 2:
        return folds
    patterns.sort_indices()
    bounds = patterns.indptr.tolist()
    keys = [patterns.indices[a:b].astype(">i4").tobytes() for a, b in pairwise(bounds)]
    rank = np.empty(len(keys), dtype=np.intp)
    rank[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    order = np.lexsort((classes, rank[pattern_of_row]))
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    for fold, (_, held_out) in enumerate(splitter.split(order, classes[order])):
        folds[order[held_out]] = fold
    return folds


def _auc_of_fold(patterns: sp.csr_matrix, fitted_on: RowCounts, held_out: RowCounts) -> float:
    """Area under the curve on held-out rows; both counts are classes × patterns."""
    classes, rows = np.nonzero(fitted_on)
    model = LinearSVC(dual=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(patterns[rows], classes, sample_weight=fitted_on[classes, rows])
    scores = model.decision_function(patterns)
    if scores.ndim == 1:
        return area_under_curve(scores, held_out[1], held_out[0])
    sizes = held_out.sum(axis=1)
    areas = [area_under_curve(scores[:, c], held_out[c], held_out.sum(axis=0) - held_out[c]) for c in range(len(sizes))]
    return float(np.average(areas, weights=sizes))


def area_under_curve(scores: NDArray[np.float64], positives: RowCounts, negatives: RowCounts) -> float:
    """Chance that a positive row scores higher than a negative one, ties counted half; rows are given as counts.

    Examples
    --------
    >>> area_under_curve(np.array([0.1, 0.7]), np.array([1, 3]), np.array([2, 2]))  # 6 of 16 pairs, 8 ties
    0.625
    """
    _, place = np.unique(scores, return_inverse=True)
    positive = np.bincount(place, positives)
    negative = np.bincount(place, negatives)
    below = np.cumsum(negative) - negative
    return float((positive * (below + negative / 2)).sum() / (positive.sum() * negative.sum()))


Features = tuple[int, ...]
SetCriterion = Literal["hamming_separation", "distinguished_pairs"]
Choice = Literal["criterion", "cross_validation"]

_MOST_SETS = {"criterion": 5_000, "cross_validation": 1_000}  # more maximal sets than this are not few
_LISTING_SHARE = 0.1  # of the time budget, for listing them
_ROW_STARTS, _RANDOM_STARTS = 3, 16
_NOISE = 0.5


class ExactContainmentSelector(ContainmentSelector):
    """Choose among the maximal feasible sets: all of them where they are few, good ones where they are many.

    Parameters
    ----------
    k : int, default=5
        Whatever ones of a row an attacker knows, at least k rows have them all.
    criterion : {"hamming_separation", "distinguished_pairs"}, default="hamming_separation"
        What a set is worth: the mean number of its features in which two rows of different classes differ (HamDist),
        or the share of such pairs of rows that differ in any (DistCnt).
    choose : {"criterion", "cross_validation"}, default="criterion"
        Take the set that is worth most, or the one on which a linear SVM has the largest area under the ROC curve in
        five-fold cross-validation; this one costs more and serves a recipient who will classify best.
    time_budget : float, default=30.0
        Seconds for listing, improving and comparing sets; the greedy selection is made in any case.
    random_state : int, default=0
        Seed of the folds and of random starts.
    binarize : BinarizePlan, mapping or None
        How ``release`` turns a mixed table into binary features; ``fit`` does not use it.

    Attributes
    ----------
    selected_columns_ : array of int
        Positions of the chosen features, ascending.
    containment_level_ : int
        Largest k that holds on the chosen features.
    search_ : dict
        ``method``; ``n_maximal_sets``, or None if they are too many to list; ``n_candidates``, sets that were compared;
        ``proven``, whether these were all; ``chosen_by``; and the chosen set's ``cross_validated_auc``, if compared so.

    Notes
    -----
    A set is feasible when it holds no itemset that 1 to k - 1 rows have. The sets that have support k themselves, the
    paper's candidates (Lemma 3 of [kAC17]_), are among these but are not all. Where maximal sets are too many to list,
    the search starts from greedy selections, from what k rows share and from random weights, and exchanges features
    until the set is maximal and no exchange is better (or the time is spent).

    With cross-validation, equally good sets are told apart by the criterion, then by the order of the columns.

    Examples
    --------
    >>> from sfumato.datasets.papers import toy_containment_table
    >>> toy = toy_containment_table()
    >>> selector = ExactContainmentSelector(k=2).fit(toy.matrix, toy.target().codes)
    >>> selector.get_support(indices=True), selector.search_["n_maximal_sets"]
    (array([0, 2, 3, 4]), 2)
    """

    mechanism_name: ClassVar[str] = "exact-containment"
    parameter_specs: ClassVar[Mapping[str, ParameterSpec]] = {
        "k": K,
        "criterion": ParameterSpec("what a set is worth"),
        "choose": ParameterSpec("by worth, or by cross-validated AUC"),
        "time_budget": replace(TIME_BUDGET, help="seconds for listing, improving and comparing sets"),
        "random_state": ParameterSpec(
            "seed of the folds and of random starts",
            at_least=0,
            below=SEEDS,
            allowed="a whole number from 0 to 2**32 - 1",
        ),
        "binarize": BINARIZE,
    }

    def __init__(
        self,
        k: int = 5,
        criterion: SetCriterion = "hamming_separation",
        choose: Choice = "criterion",
        time_budget: float = 30.0,
        random_state: int = 0,
        binarize: BinarizePlan | Mapping[str, Any] | None = None,
    ) -> None:
        self.k = k
        self.criterion = criterion
        self.choose = choose
        self.time_budget = time_budget
        self.random_state = random_state
        self.binarize = binarize

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choices(self, "criterion", "choose")
        self.check_parameters("time_budget", "random_state")

    def why_rows_count(self) -> str:
        """Say that cross-validation deals out rows, whose persons would be in several folds."""
        return "with choose='cross_validation' deals rows out to folds, not persons" if self._validates else ""

    def binarization(self, outline: Table) -> Binarization:
        """Refuse cross-validation, which needs the rows one by one; else as the other selectors."""
        if self._validates:
            problem = "got 'cross_validation', which needs all rows in memory"
            raise InvalidParameterError("choose", problem, allowed="'criterion' for tables larger than memory")
        return super().binarization(outline)

    def _search(self, data: Labelled, progress: Progress | None) -> Selection:
        budget, k = TimeBudget(self.time_budget), int(self.k)
        reduced = reduce_table(data.matrix, k, data.row_counts, data.persons)
        search = _Candidates(data, reduced, k, self.criterion, int(self.random_state))
        listed = maximal_sets_of(reduced, k, _MOST_SETS[self.choose], budget.share(_LISTING_SHARE))
        sets = listed.sets if listed.complete else search.improved(budget.share(0.5 if self._validates else 1.0))
        ranked = sorted(sets, key=lambda features: (-search.worth(features), features))
        ending: dict[str, Any] = {
            "method": "all maximal sets compared" if listed.complete else "greedy selections and exchanges",
            "n_maximal_sets": len(sets) if listed.complete else None,
            "n_candidates": len(sets),
            "proven": listed.complete,
            "chosen_by": "criterion",
        }
        if self._validates and search.patterns.n_folds > 1:
            areas = _areas(search.patterns, ranked, budget, progress)
            ranked.sort(key=lambda features: -areas.get(features, -1.0))
            ending |= {
                "n_candidates": len(areas),
                "proven": listed.complete and len(areas) == len(sets),
                "chosen_by": "cross_validation",
                "cross_validated_auc": areas[ranked[0]],
            }
        return Selection(ranked[0], ending=ending)

    @property
    def _validates(self) -> bool:
        return self.choose == "cross_validation"


def _areas(
    patterns: PatternCounts, ranked: Sequence[Features], budget: TimeBudget, progress: Progress | None
) -> dict[Features, float]:
    """Cross-validated areas of the sets, in this order until the budget is spent; at least of one."""
    areas: dict[Features, float] = {}
    for features in ranked:
        if areas and budget.is_spent():
            break
        areas[features] = patterns.cross_validated_auc(features)
        if progress and len(areas) % 16 == 0:
            progress(len(areas), len(ranked), "sets compared")
    return areas


class _Candidates:
    """Good maximal sets of a table that has too many, and what sets are worth."""

    def __init__(self, data: Labelled, reduced: Reduced, k: int, criterion: str, seed: int) -> None:
        self.data = data
        self.reduced = reduced
        self.k = k
        self.weight_of_feature = weights_in_separation(data)
        self.weights = reduced.weights(self.weight_of_feature)
        self.criterion = criterion
        self.is_modular = criterion == "hamming_separation"
        self.seed = seed

    @cached_property
    def patterns(self) -> PatternCounts:
        """Different rows with their counts."""
        data = self.data
        return PatternCounts(data.matrix, data.classes, data.n_classes, self.seed, data.row_counts)

    def worth(self, features: Sequence[int]) -> int:
        """Count the pairs of rows of different classes that a set separates, by the criterion."""
        if self.is_modular:
            return int(self.weight_of_feature[list(features)].sum())
        return self.patterns.separated_pairs(features)

    def improved(self, budget: TimeBudget) -> list[Features]:
        """Exchange columns of several sets; if time is short, take what there is, at least the greedy selection."""
        worth: Callable[[Sequence[int]], int] | None = None
        if not self.is_modular:

            def worth(columns: Sequence[int]) -> int:
                return self.worth(self.reduced.features(columns))

        starts = self._starts(budget)
        found: set[Features] = set()
        for place, (columns, weights) in enumerate(starts):
            if found and budget.is_spent():
                break
            share = budget.share(1 / (len(starts) - place))
            better = improved_columns(self.reduced, self.k, columns, (weights, self.weights), share, worth)
            found.add(self.reduced.features(better))
        return sorted(found)

    def _starts(self, budget: TimeBudget) -> list[tuple[Sequence[int], Counts]]:
        """Columns to begin with, and the weights by which to fill up the set before exchanges."""
        starts: list[tuple[Sequence[int], Counts]] = []
        for criterion in sorted(get_args(SetCriterion), key=lambda name: name != self.criterion):
            if starts and budget.is_spent():
                return starts
            greedy = GreedyContainmentSelector(self.k, criterion, "skip")._search(self.data, None)
            starts.append((self.reduced.columns(greedy.features), self.weights))
        shared = shared_by_rows(self.reduced, self.weights, self.k, budget)[:_ROW_STARTS]
        starts.extend((columns, self.weights) for columns in shared)
        rng = np.random.default_rng(self.seed)
        for _ in range(_RANDOM_STARTS):
            noise = 1 + _NOISE * (2 * rng.random(len(self.weights)) - 1)
            starts.append(((), (self.weights * noise).astype(np.int64)))
        return starts


DECLARATION = MechanismInfo(
    ExactContainmentSelector,
    why="compares all maximal sets of binary features, on request by the AUC of a classifier",
    promises="k-anonymity by containment",
    compared=Compared(({"k": 5},), time_limit="time_budget"),
    guarantee="containment",
    needs_target=True,
    cost=8.0,
)
