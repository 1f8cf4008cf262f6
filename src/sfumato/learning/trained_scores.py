"""Scores of sets of columns by training a model for every set and fold; what such ways to score share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from sfumato.errors import InvalidParameterError
from sfumato.learning.c45.criteria import Entropy
from sfumato.learning.c45.descent import shares_of_leaves
from sfumato.learning.c45.estimators import first_of_most, of_nodes_with_rows
from sfumato.learning.c45.grow import grow
from sfumato.learning.c45.pruning import collapse, prune
from sfumato.learning.c45.tree import MISSING, Tree, TreeColumn
from sfumato.learning.fold_scores import (
    HeldOut,
    Metric,
    checked_set,
    checked_workers,
    majority,
    sets_without_each,
    trained_on_each,
)
from sfumato.learning.threads import one_thread
from sfumato.progress import Progress

Numbers = NDArray[np.float64]


class TrainedScores:
    """Trains for each pair of a set and a fold, in worker processes on request; a set is trained for once only.

    Parameters
    ----------
    train : callable
        Trains a model on ``data`` with a set of columns, leaving out a fold, and gives its evidence for each class of
        the rows held out. A function of a module, which workers can find.
    data : object
        Shared with the workers.
    n_columns : int
    held_out : HeldOut
    predicted : callable
        Classes from evidence.
    models : str
        What is trained, for ``progress``.
    n_workers : int
        Processes; 1 stays in this one. The scores do not depend on it.
    progress : callable or None
        Called after every model with those trained and those to train for the sets asked for.
    """

    def __init__(
        self,
        train: Callable[[Any, Sequence[int], int], Numbers],
        data: Any,
        n_columns: int,
        held_out: HeldOut,
        *,
        predicted: Callable[[Numbers], Any],
        models: str,
        n_workers: int,
        progress: Progress | None,
    ) -> None:
        self._train = train
        self._data = data
        self._held_out = held_out
        self._predicted = predicted
        self._models = models
        self._n_workers = checked_workers(n_workers)
        self._progress = progress
        self._known: dict[tuple[int, ...], Numbers] = {}
        self.n_columns = n_columns
        self.n_folds = held_out.n_folds

    def scores(self, columns: Sequence[int]) -> Numbers:
        """Return the performance in each fold with these columns only; without any, that of the majority class."""
        (found,) = self._of_sets([checked_set(columns, self.n_columns)])
        return np.asarray(found)

    def without_each(self, columns: Sequence[int]) -> Numbers:
        """Scores of the set without its first column, without its second, ...: one row each."""
        return self._of_sets(sets_without_each(columns, self.n_columns))

    def _of_sets(self, sets: Sequence[tuple[int, ...]]) -> Numbers:
        new = [chosen for chosen in sets if chosen not in self._known]
        tasks = [(chosen, fold) for chosen in new for fold in range(self.n_folds)]
        found = trained_on_each(self._train, self._data, tasks, self._n_workers, self._progress, self._models)
        for number, chosen in enumerate(new):
            of_set = found[number * self.n_folds : (number + 1) * self.n_folds]
            self._known[chosen] = self._performance(of_set)
        return np.array([self._known[chosen] for chosen in sets]).reshape(len(sets), self.n_folds)

    def _performance(self, of_folds: Sequence[Numbers]) -> Numbers:
        evidence = np.empty((self._held_out.n_rows, self._held_out.n_classes))
        for fold, of_rows in enumerate(of_folds):
            evidence[self._held_out.fold_of_row == fold] = of_rows
        if self._held_out.metric == "auc":
            return self._held_out.of_evidence(evidence)
        return self._held_out.of_predictions(self._predicted(evidence))


# Any scikit-learn classifier in cross-validation on any set of columns.


Places = NDArray[np.intp]


class ClassifierScores(TrainedScores):
    """Cross-validated performance of a scikit-learn classifier on any set of columns, trained again for each.

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
        See :class:`sfumato.learning.fold_scores.HeldOut`.
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
    with one_thread():
        model = clone(data.classifier).fit(data.X[np.ix_(train, features)], target)
        tested = data.X[np.ix_(test, features)]
        if held_out.metric == "auc":
            return _evidence(model, tested, n_classes)
        return np.asarray(np.eye(n_classes)[model.predict(tested)])


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


# C4.5 in cross-validation on any set of columns, folds and sets in parallel processes.


class TreeScores(TrainedScores):
    """Cross-validated performance of C4.5 on any set of columns: that of ``C45Classifier`` trained on each fold.

    The columns are coded once for all trees. The order in which columns are given makes no difference, and neither
    does the number of workers. Scores are kept: a set that was asked for before costs nothing.

    Parameters
    ----------
    columns : sequence of TreeColumn
    target : array_like of int
        Class of each row, from 0.
    fold_of_row : array_like of int
        Fold that holds each row out, from 0 (see :func:`sfumato.learning.fold_scores.folds`).
    metric : {"accuracy", "balanced_accuracy", "auc"}
        See :class:`sfumato.learning.fold_scores.HeldOut`.
    n_workers : int
        Processes to train trees in, one for each pair of a set and a fold; 1 stays in this process.
    progress : callable or None
        Called after every tree with those trained and those to train for the sets asked for.

    Examples
    --------
    >>> target = np.array([0, 1] * 10)
    >>> same, constant = (TreeColumn(codes.astype(np.int32), 2) for codes in (target, 0 * target))
    >>> TreeScores([same, constant], target, np.arange(20) // 10).without_each([0, 1]).tolist()
    [[0.5, 0.5], [1.0, 1.0]]
    """

    def __init__(
        self,
        columns: Sequence[TreeColumn],
        target: ArrayLike,
        fold_of_row: ArrayLike,
        metric: Metric = "accuracy",
        n_workers: int = 1,
        progress: Progress | None = None,
    ) -> None:
        held_out = HeldOut(target, fold_of_row, metric)
        super().__init__(
            held_out_shares,
            _TreeData.of(columns, held_out),
            len(columns),
            held_out,
            predicted=first_of_most,
            models="trees",
            n_workers=n_workers,
            progress=progress,
        )


@dataclass(frozen=True, eq=False, repr=False)
class _TreeData:
    """What trees are trained on, codes in one array that worker processes share."""

    codes: NDArray[np.int32]
    n_values: tuple[int, ...]
    numbers: tuple[Numbers | None, ...]
    target: Places
    fold_of_row: Places
    n_classes: int

    @classmethod
    def of(cls, columns: Sequence[TreeColumn], held_out: HeldOut) -> _TreeData:
        if any(len(column.codes) != held_out.n_rows for column in columns):
            raise InvalidParameterError("columns", "some differ in length", allowed="one code for every row of target")
        codes = np.array([column.codes for column in columns], dtype=np.int32).reshape(len(columns), held_out.n_rows)
        n_values = tuple(column.n_values for column in columns)
        numbers = tuple(column.numbers for column in columns)
        return cls(codes, n_values, numbers, held_out.target, held_out.fold_of_row, held_out.n_classes)

    def split(self, column: int, train: Places, test: Places) -> tuple[TreeColumn, TreeColumn]:
        """Column of the training rows with the values that these have, and that of the held-out rows coded alike."""
        codes, numbers, n_values = self.codes[column], self.numbers[column], self.n_values[column]
        seen = codes[train]
        is_seen = np.bincount(seen[seen >= 0], minlength=n_values) > 0
        recode = np.append(np.where(is_seen, np.cumsum(is_seen) - 1, MISSING), MISSING).astype(np.int32)
        n_seen = int(is_seen.sum())
        if numbers is None:
            return TreeColumn(recode[seen], n_seen), TreeColumn(recode[codes[test]], n_seen)
        return TreeColumn(recode[seen], n_seen, numbers[is_seen]), TreeColumn(codes[test], n_values, numbers)


def held_out_shares(data: _TreeData, chosen: Sequence[int], fold: int) -> Numbers:
    """Share of each class in the leaves that the held-out rows of a fold reach."""
    is_held_out = data.fold_of_row == fold
    train, test = np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)
    if not chosen:
        return np.tile(np.eye(data.n_classes)[majority(data.target[train], data.n_classes)], (len(test), 1))
    trained, tested = zip(*(data.split(column, train, test) for column in chosen), strict=True)
    tree = _trained(trained, data.target[train], data.n_classes)
    counts = of_nodes_with_rows(tree)
    reached = shares_of_leaves(tree, tested)
    weighted = (counts / counts.sum(axis=1, keepdims=True))[reached.nodes] * reached.shares[:, None]
    sums = [np.bincount(reached.rows, weights=of_class, minlength=len(test)) for of_class in weighted.T]
    return np.stack(sums, axis=1) / np.bincount(reached.rows, weights=reached.shares, minlength=len(test))[:, None]


def _trained(columns: Sequence[TreeColumn], target: Places, n_classes: int) -> Tree:
    """Train as ``C45Classifier`` does by default."""
    criterion = Entropy(n_classes)
    statistics = criterion.statistics(target)
    tree = collapse(grow(columns, statistics, criterion), criterion)
    return prune(tree, columns, statistics)
