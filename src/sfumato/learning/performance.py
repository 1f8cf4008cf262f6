"""How well held-out rows are predicted, fold by fold: accuracy, balanced accuracy or area under the ROC curve."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from sfumato.errors import InvalidParameterError
from sfumato.learning.estimator import first_of_most

Metric = Literal["accuracy", "balanced_accuracy", "auc"]
Places = NDArray[np.intp]
Numbers = NDArray[np.float64]


class HeldOut:
    """Target of every row, the fold that holds it out, and what to measure.

    Parameters
    ----------
    target : array_like of int
        Class of each row, from 0; a missing one must be a class of its own or the row left out.
    fold_of_row : array_like of int
        Fold of each row, from 0; no fold may be empty.
    metric : {"accuracy", "balanced_accuracy", "auc"}
        Share of rows predicted right; its mean over the classes that a fold holds; or the area under the ROC curve.

    Notes
    -----
    With more than two classes the area is the mean of those of each class against the rest, by the classes' shares in
    the fold, as Weka's weighted area. A fold of one class has the area 0.5.

    Examples
    --------
    >>> HeldOut([0, 1, 0, 1], [0, 0, 1, 1]).of_predictions(np.array([0, 0, 0, 1])).tolist()
    [0.5, 1.0]
    """

    def __init__(self, target: ArrayLike, fold_of_row: ArrayLike, metric: Metric = "accuracy") -> None:
        if metric not in get_args(Metric):
            allowed = "'accuracy', 'balanced_accuracy' or 'auc'"
            raise InvalidParameterError("metric", f"got {metric!r}", allowed=allowed)
        self.target = checked_codes("target", target)
        self.fold_of_row = checked_codes("fold_of_row", fold_of_row)
        self.metric = metric
        if len(self.target) != len(self.fold_of_row):
            problem = f"got {len(self.fold_of_row):,} of them"
            raise InvalidParameterError("fold_of_row", problem, allowed=f"one fold for each of {self.n_rows:,} rows")
        sizes = np.bincount(self.fold_of_row)
        if len(sizes) < 2 or not sizes.all():
            problem = f"{np.count_nonzero(sizes)} of {len(sizes)} folds have rows"
            raise InvalidParameterError("fold_of_row", problem, allowed="two or more folds, none of them empty")
        self.n_folds = len(sizes)
        self.n_classes = int(self.target.max()) + 1
        self.class_counts = self.sums(np.ones(self.n_rows))

    @property
    def n_rows(self) -> int:
        """Number of rows, each held out once."""
        return len(self.target)

    def rows(self, fold: int) -> tuple[Places, Places]:
        """Rows to train on and rows held out."""
        is_held_out = self.fold_of_row == fold
        return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)

    def sums(self, of_rows: Numbers) -> Numbers:
        """Sum what rows have by fold and class."""
        keys = self.fold_of_row * self.n_classes + self.target
        added = np.bincount(keys, weights=of_rows, minlength=self.n_folds * self.n_classes)
        return np.asarray(added.reshape(self.n_folds, self.n_classes), dtype=np.float64)

    def of_predictions(self, predicted: Places) -> Numbers:
        """Accuracy, plain or balanced, of the class predicted for each row."""
        right = self.sums((predicted == self.target).astype(np.float64))
        if self.metric == "balanced_accuracy":
            is_there = self.class_counts > 0
            recall = np.where(is_there, right / np.maximum(self.class_counts, 1), 0.0)
            return np.asarray(recall.sum(axis=1) / is_there.sum(axis=1))
        return np.asarray(right.sum(axis=1) / self.class_counts.sum(axis=1))

    def of_evidence(self, evidence: Numbers) -> Numbers:
        """Area under the ROC curve of the evidence for each class, ``n_rows`` × ``n_classes``, larger for likelier."""
        held_out = [np.flatnonzero(self.fold_of_row == fold) for fold in range(self.n_folds)]
        return np.array([self._area(evidence[rows], self.target[rows]) for rows in held_out])

    def _area(self, evidence: Numbers, target: Places) -> float:
        counts = np.bincount(target, minlength=self.n_classes)
        if np.count_nonzero(counts) < 2:
            return 0.5
        if self.n_classes == 2:
            return area_under_curve(evidence[:, 1] - evidence[:, 0], target == 1)
        there = np.flatnonzero(counts)
        areas = [area_under_curve(evidence[:, number], target == number) for number in there.tolist()]
        return float(np.average(areas, weights=counts[there]))


def area_under_curve(evidence: Numbers, is_positive: NDArray[np.bool_]) -> float:
    """Share of pairs of a positive and a negative row whose evidence is in the right order; ties count half.

    Examples
    --------
    >>> area_under_curve(np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, False, True, True]))
    0.875
    """
    n_positive = int(is_positive.sum())
    n_negative = len(is_positive) - n_positive
    above = float(rankdata(evidence)[is_positive].sum()) - n_positive * (n_positive + 1) / 2
    return above / (n_positive * n_negative)


def majority(target: Places, n_classes: int) -> int:
    """Most frequent class, the first of several."""
    return int(first_of_most(np.bincount(target, minlength=n_classes)[None].astype(np.float64))[0])


def checked_codes(name: str, given: ArrayLike) -> Places:
    """Return codes as an array, or say that they are none."""
    codes = np.asarray(given)
    if codes.ndim != 1 or not len(codes) or codes.dtype.kind not in "iu" or codes.min() < 0:
        problem = f"got {codes.dtype.name} of the shape {codes.shape}"
        raise InvalidParameterError(name, problem, allowed="whole numbers from 0, one for each row")
    return codes.astype(np.intp)
