"""Any scikit-learn classifier in cross-validation on any set of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # comes with scikit-learn

from sfumato.contract import Progress
from sfumato.errors import InvalidParameterError
from sfumato.learning.performance import HeldOut, Metric, majority
from sfumato.learning.trained_scores import TrainedScores
from sfumato.learning.tree import TreeColumn

Numbers = NDArray[np.float64]
Places = NDArray[np.intp]


class ClassifierScores(TrainedScores):
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
    n_workers : int
        Processes to train in, one for each pair of a set and a fold; 1 stays in this process.
    progress : callable or None
        Called after every training with those done and those to do for the sets asked for.

    Notes
    -----
    Every training has one thread of the numeric libraries, so that the number of workers makes no difference. Training
    rows of one class only predict that class. The area under the ROC curve needs ``predict_proba`` or
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
        n_workers: int = 1,
        progress: Progress | None = None,
    ) -> None:
        held_out = HeldOut(target, fold_of_row, metric)
        if metric == "auc":
            _check_ranks_rows(classifier)
        matrix = np.asarray(X, dtype=np.float64)
        if matrix.ndim != 2 or len(matrix) != held_out.n_rows:
            problem = f"got the shape {matrix.shape}"
            raise InvalidParameterError("X", problem, allowed=f"a matrix with {held_out.n_rows:,} rows")
        positions = tuple(np.asarray(group, dtype=np.intp) for group in groups)
        listed = np.concatenate([np.empty(0, dtype=np.intp), *positions])
        if len(listed) and not 0 <= listed.min() <= listed.max() < matrix.shape[1]:
            allowed = f"positions from 0 to {matrix.shape[1] - 1}"
            raise InvalidParameterError("groups", "some are not", allowed=allowed)
        data = _Data(matrix, positions, classifier, held_out)
        super().__init__(
            held_out_evidence,
            data,
            len(positions),
            held_out,
            predicted=partial(np.argmax, axis=1),
            models="models",
            n_workers=n_workers,
            progress=progress,
        )


@dataclass(frozen=True, eq=False, repr=False)
class _Data:
    """What classifiers are trained on, a matrix that worker processes share."""

    X: Numbers
    groups: tuple[Places, ...]
    classifier: Any
    held_out: HeldOut


def held_out_evidence(data: _Data, chosen: Sequence[int], fold: int) -> Numbers:
    """Evidence for each class of the held-out rows of a fold; but for the ROC curve, 1 for the class predicted."""
    held_out, n_classes = data.held_out, data.held_out.n_classes
    features = np.concatenate([np.empty(0, dtype=np.intp), *(data.groups[column] for column in chosen)])
    train, test = held_out.rows(fold)
    target = held_out.target[train]
    if not len(features) or target.min() == target.max():
        return np.tile(np.eye(n_classes)[majority(target, n_classes)], (len(test), 1))
    with _threads().limit(limits=1):
        model = clone(data.classifier).fit(data.X[np.ix_(train, features)], target)
        tested = data.X[np.ix_(test, features)]
        if held_out.metric == "auc":
            return _evidence(model, tested, n_classes)
        return np.asarray(np.eye(n_classes)[model.predict(tested)])


@cache
def _threads() -> Any:
    """Thread pools of this process, which take a while to find."""
    return ThreadpoolController()


def _check_ranks_rows(classifier: Any) -> None:
    """Refuse a classifier that says nothing of how likely each class is, or speaks of pairs of classes."""
    if hasattr(classifier, "predict_proba"):
        return
    allowed = "able to say how likely each class is, for the area under the ROC curve"
    if not hasattr(classifier, "decision_function"):
        hint = "it needs predict_proba or decision_function; or use another metric"
        raise InvalidParameterError("the classifier", "it is not", allowed=allowed, hint=hint)
    parameters = classifier.get_params().items()
    if any(name.rpartition("__")[2] == "decision_function_shape" and value == "ovo" for name, value in parameters):
        problem = "it compares classes in pairs"
        hint = "give it decision_function_shape='ovr', or use another metric"
        raise InvalidParameterError("the classifier", problem, allowed=allowed, hint=hint)


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
