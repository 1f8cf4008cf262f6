"""What sets of features are worth to a recipient, computed from the counts of different rows only."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from sfumato.counting.bitsets import distinct_rows
from sfumato.measures.separation import n_distinguished_pairs

Counts = NDArray[np.int64]

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
        row_counts: Counts | None = None,
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

    def _grouped(self, features: Sequence[int]) -> tuple[sp.csr_matrix, Counts]:
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


def _auc_of_fold(patterns: sp.csr_matrix, fitted_on: Counts, held_out: Counts) -> float:
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


def area_under_curve(scores: NDArray[np.float64], positives: Counts, negatives: Counts) -> float:
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
