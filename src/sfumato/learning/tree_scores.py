"""C4.5 in cross-validation on any set of columns, folds and sets in parallel processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.contract import Progress
from sfumato.errors import InvalidParameterError
from sfumato.learning.criteria import Entropy
from sfumato.learning.descent import shares_of_leaves
from sfumato.learning.estimator import first_of_most, of_nodes_with_rows
from sfumato.learning.grow import grow
from sfumato.learning.performance import HeldOut, Metric, majority
from sfumato.learning.pruning import collapse, prune
from sfumato.learning.trained_scores import TrainedScores
from sfumato.learning.tree import MISSING, Tree, TreeColumn

Numbers = NDArray[np.float64]
Places = NDArray[np.intp]


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
        See :class:`sfumato.learning.performance.HeldOut`.
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
            _Data.of(columns, held_out),
            len(columns),
            held_out,
            predicted=first_of_most,
            models="trees",
            n_workers=n_workers,
            progress=progress,
        )


@dataclass(frozen=True, eq=False, repr=False)
class _Data:
    """What trees are trained on, codes in one array that worker processes share."""

    codes: NDArray[np.int32]
    n_values: tuple[int, ...]
    numbers: tuple[Numbers | None, ...]
    target: Places
    fold_of_row: Places
    n_classes: int

    @classmethod
    def of(cls, columns: Sequence[TreeColumn], held_out: HeldOut) -> _Data:
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


def held_out_shares(data: _Data, chosen: Sequence[int], fold: int) -> Numbers:
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
