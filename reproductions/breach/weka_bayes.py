"""Naive Bayes as Weka's ``NaiveBayes`` has it, with numbers rounded to a precision and integrals over intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from sfumato.learning.c45.tree import TreeColumn
from sfumato.learning.fold_scores import HeldOut, checked_set, sets_without_each

Numbers = NDArray[np.float64]
Places = NDArray[np.intp]

LEAST = 1e-75
LEAST_DEVIATION = 1e-10
DEFAULT_PRECISION = 0.01


class WekaBayesScores:
    """Cross-validated accuracy of Weka's naive Bayes on any set of columns.

    In contrast to :class:`sfumato.learning.naive_bayes.NaiveBayesScores` a number is first rounded to a multiple of
    the mean distance between neighbouring numbers of the training rows, and its likelihood is the integral of the
    normal density over that interval.
    """

    def __init__(self, columns: Sequence[TreeColumn], target: ArrayLike, fold_of_row: ArrayLike) -> None:
        self._held_out = HeldOut(target, fold_of_row)
        self.n_columns, self.n_folds = len(columns), self._held_out.n_folds
        self._terms = [_logarithms(column, self._held_out) for column in columns]
        training = self._held_out.class_counts.sum(axis=0) - self._held_out.class_counts
        priors = np.log((training + 1) / (training.sum(axis=1, keepdims=True) + self._held_out.n_classes))
        self._priors = priors[self._held_out.fold_of_row]

    def scores(self, columns: Sequence[int]) -> Numbers:
        """Return the accuracy in each fold with these columns only."""
        totals = self._priors.copy()
        for column in checked_set(columns, self.n_columns):
            totals += self._terms[column]
        return self._held_out.of_predictions(totals.argmax(axis=1))

    def without_each(self, columns: Sequence[int]) -> Numbers:
        """Scores of the set without its first column, without its second, ...: one row each."""
        return np.array([self.scores(rest) for rest in sets_without_each(columns, self.n_columns)])


def _logarithms(column: TreeColumn, held_out: HeldOut) -> Numbers:
    """Log-likelihoods of every row's value given each class, under the model of the rows that its fold leaves."""
    found = np.zeros((held_out.n_rows, held_out.n_classes))
    for fold in range(held_out.n_folds):
        training, tested = (rows[column.codes[rows] >= 0] for rows in held_out.rows(fold))
        classes = held_out.target[training]
        if column.numbers is None:
            counts = np.ones((column.n_values, held_out.n_classes))
            np.add.at(counts, (column.codes[training], classes), 1)
            likelihoods = (counts / counts.sum(axis=0))[column.codes[tested]]
        else:
            values = column.numbers[column.codes]
            likelihoods = _of_numbers(values[training], classes, values[tested], held_out.n_classes)
        found[tested] = np.log(np.maximum(likelihoods, LEAST))
    return found


def _of_numbers(trained: Numbers, classes: Places, tested: Numbers, n_classes: int) -> Numbers:
    different = np.unique(trained)
    precision = (different[-1] - different[0]) / (len(different) - 1) if len(different) > 1 else DEFAULT_PRECISION
    trained, tested = (np.rint(values / precision) * precision for values in (trained, tested))
    found = np.empty((len(tested), n_classes))
    for place in range(n_classes):
        own = trained[classes == place]
        mean = own.mean() if len(own) else 0.0
        spread = own.std() if len(own) else 0.0
        deviation = max(precision / 6, spread) if spread > LEAST_DEVIATION else precision / 6
        ends = [ndtr((tested - mean + half) / deviation) for half in (-precision / 2, precision / 2)]
        found[:, place] = ends[1] - ends[0]
    return found
