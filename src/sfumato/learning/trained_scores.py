"""Scores of sets of columns by training a model for every set and fold; what such ways to score share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.contract import Progress
from sfumato.learning.fold_scores import checked_set, checked_workers, sets_without_each, trained_on_each
from sfumato.learning.performance import HeldOut

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
