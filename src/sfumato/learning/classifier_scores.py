"""Any scikit-learn classifier in cross-validation on any set of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from sfumato.errors import InvalidParameterError
from sfumato.learning.fold_scores import checked_set, sets_without_each
from sfumato.learning.performance import HeldOut, Metric, majority
from sfumato.learning.tree import TreeColumn

Numbers = NDArray[np.float64]
Places = NDArray[np.intp]


class ClassifierScores:
    """Cross-validated performance of a scikit-learn classifier on any set of columns, trained anew for each.

    Parameters
    ----------
    X : array_like of float, shape (n_rows, n_features)
    groups : sequence of sequences of int
        Features of ``X`` that each column became, those of its categories for instance (see :func:`feature_matrix`).
    classifier : scikit-learn classifier
        Cloned for every training. Give it a ``random_state`` where it has one, or scores are drawn anew.
    target, fold_of_row : array_like of int
        Class of each row and fold that holds it out, both from 0.
    metric : {"accuracy", "balanced_accuracy", "auc"}
        See :class:`sfumato.learning.performance.HeldOut`.

    Notes
    -----
    Training rows of one class only predict that class. The area under the ROC curve needs ``predict_proba`` or
    ``decision_function``. Scores are kept: a set that was asked for before costs nothing.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> target = np.array([0, 1] * 10)
    >>> X, groups = feature_matrix([TreeColumn(target.astype(np.int32), 2)])
    >>> ClassifierScores(X, groups, DecisionTreeClassifier(), target, np.arange(20) // 10).scores([0]).tolist()
    [1.0, 1.0]
    """

    def __init__(
        self,
        X: ArrayLike,
        groups: Sequence[Sequence[int]],
        classifier: Any,
        target: ArrayLike,
        fold_of_row: ArrayLike,
        metric: Metric = "accuracy",
    ) -> None:
        self._held_out = HeldOut(target, fold_of_row, metric)
        self._X = np.asarray(X, dtype=np.float64)
        if self._X.ndim != 2 or len(self._X) != self._held_out.n_rows:
            problem = f"got the shape {self._X.shape}"
            raise InvalidParameterError("X", problem, allowed=f"a matrix with {self._held_out.n_rows:,} rows")
        self._groups = [np.asarray(group, dtype=np.intp) for group in groups]
        listed = np.concatenate([np.empty(0, dtype=np.intp), *self._groups])
        if len(listed) and not 0 <= listed.min() <= listed.max() < self._X.shape[1]:
            allowed = f"positions from 0 to {self._X.shape[1] - 1}"
            raise InvalidParameterError("groups", "some are not", allowed=allowed)
        self._classifier = classifier
        self._known: dict[tuple[int, ...], Numbers] = {}
        self.n_columns = len(self._groups)
        self.n_folds = self._held_out.n_folds

    def scores(self, columns: Sequence[int]) -> Numbers:
        """Return the performance in each fold with these columns only; without any, that of the majority class."""
        return self._of_set(checked_set(columns, self.n_columns)).copy()

    def without_each(self, columns: Sequence[int]) -> Numbers:
        """Scores of the set without its first column, without its second, ...: one row each."""
        found = [self._of_set(chosen) for chosen in sets_without_each(columns, self.n_columns)]
        return np.array(found).reshape(len(found), self.n_folds)

    def _of_set(self, chosen: tuple[int, ...]) -> Numbers:
        if chosen not in self._known:
            self._known[chosen] = self._computed(chosen)
        return self._known[chosen]

    def _computed(self, chosen: tuple[int, ...]) -> Numbers:
        features = np.concatenate([np.empty(0, dtype=np.intp), *(self._groups[column] for column in chosen)])
        n_rows, n_classes = self._held_out.n_rows, self._held_out.n_classes
        predicted, evidence = np.empty(n_rows, dtype=np.intp), np.zeros((n_rows, n_classes))
        for fold in range(self.n_folds):
            train, test = self._held_out.rows(fold)
            target = self._held_out.target[train]
            if not len(features) or target.min() == target.max():
                predicted[test] = majority(target, n_classes)
                continue
            model = clone(self._classifier).fit(self._X[np.ix_(train, features)], target)
            if self._held_out.metric == "auc":
                evidence[test] = _evidence(model, self._X[np.ix_(test, features)], n_classes)
            else:
                predicted[test] = model.predict(self._X[np.ix_(test, features)])
        if self._held_out.metric == "auc":
            return self._held_out.of_evidence(evidence)
        return self._held_out.of_predictions(predicted)


def _evidence(model: Any, X: Numbers, n_classes: int) -> Numbers:
    """Return what a model says for each class; minus infinity for one that it does not know."""
    found = model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)
    if found.ndim == 1:
        found = np.stack([-found, found], axis=1)
    evidence = np.full((len(X), n_classes), -np.inf)
    evidence[:, model.classes_] = found
    return evidence


def feature_matrix(columns: Sequence[TreeColumn]) -> tuple[Numbers, list[list[int]]]:
    """Features for classifiers that know numbers only, and the features of each column.

    A category becomes 1 in a feature of its own, a missing one 0 in all. A number stays; a missing one becomes the
    median of the column, and a further feature says where. Numbers are not scaled. Dense: 8 bytes for every row and
    category.

    Examples
    --------
    >>> colour = TreeColumn(np.array([0, 1, -1], dtype=np.int32), 2)
    >>> size = TreeColumn(np.array([0, -1, 1], dtype=np.int32), 2, np.array([3.0, 5.0]))
    >>> X, groups = feature_matrix([colour, size])
    >>> X.tolist(), groups
    ([[1.0, 0.0, 3.0, 0.0], [0.0, 1.0, 4.0, 1.0], [0.0, 0.0, 5.0, 0.0]], [[0, 1], [2, 3]])
    """
    blocks = [_features(column) for column in columns]
    ends = np.cumsum([block.shape[1] for block in blocks]).tolist()
    groups = [list(range(end - block.shape[1], end)) for end, block in zip(ends, blocks, strict=True)]
    n_rows = len(columns[0].codes) if columns else 0
    return np.hstack([np.empty((n_rows, 0)), *blocks]), groups


def _features(column: TreeColumn) -> Numbers:
    is_missing = column.codes < 0
    if column.numbers is None:
        return np.asarray(column.codes[:, None] == np.arange(column.n_values), dtype=np.float64)
    numbers = np.append(column.numbers, np.nan)[column.codes]
    if not is_missing.any():
        return numbers[:, None]
    median = float(np.median(numbers[~is_missing])) if not is_missing.all() else 0.0
    return np.stack([np.where(is_missing, median, numbers), is_missing.astype(np.float64)], axis=1)
