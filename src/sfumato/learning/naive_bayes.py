r"""Naive Bayes in cross-validation on any set of columns, without ever training again.

References
----------
.. [JL95] John, Langley: Estimating Continuous Distributions in Bayesian Classifiers. UAI 1995, 338-345.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameterError
from sfumato.learning.c45.tree import TreeColumn
from sfumato.learning.discretization import description_length_cuts
from sfumato.learning.fold_scores import HeldOut, Metric, checked_set

# Log-likelihoods of held-out values given the class, one column at a time, from counts by fold.
#
# References ---------- .. [JL95] John, Langley: Estimating Continuous Distributions in Bayesian Classifiers. UAI 1995,
# 338-345.


Numeric = Literal["gaussian", "discretized"]
Numbers = NDArray[np.float64]
Places = NDArray[np.intp]

LEAST_LOG = float(np.log(1e-75))
"""No value is less likely, as in Weka: one outlier does not overrule all other columns."""
DEVIATIONS_IN_PRECISION = 6
"""Standard deviations are at least a sixth of the mean distance between neighbouring numbers, as in Weka."""


def log_likelihoods(column: TreeColumn, held_out: HeldOut, numeric: Numeric, folds: Places, codes: Places) -> Numbers:
    """Log-likelihood of values under the model of those rows that a fold does not hold out.

    Up to a term that is the same for all classes. A missing value (code -1) has the likelihood 1.

    Parameters
    ----------
    column : TreeColumn
    held_out : HeldOut
    numeric : {"gaussian", "discretized"}
        How numeric columns are modelled.
    folds, codes : ndarray of int
        Values to evaluate: a fold and a code each.

    Returns
    -------
    ndarray of float64, shape (n_values, n_classes)
        At least that of 1e-75.

    Notes
    -----
    Categories: ``(count + 1) / (rows of the class + categories)``, categories of the whole column. Gaussian: mean and
    (population) variance of each class [JL95]_, with a floor for the standard deviation; a class without any number
    gets those of all classes. The density is that of an interval as wide as the mean distance between neighbouring
    numbers. Discretized: cuts of the training rows, then as categories.
    """
    if not len(codes):
        return np.zeros((0, held_out.n_classes))
    if column.numbers is None:
        found = _of_categories(_counts(column, held_out))[folds, codes]
    elif not len(column.numbers):
        found = np.zeros((len(codes), held_out.n_classes))
    elif numeric == "gaussian":
        found = _Gaussians(column.numbers, column, held_out).log_densities(folds, codes)
    else:
        found = _of_intervals(column.numbers, _counts(column, held_out))[folds, codes]
    return np.where((codes < 0)[:, None], 0.0, np.maximum(found, LEAST_LOG))


def _counts(column: TreeColumn, held_out: HeldOut) -> Numbers:
    """Rows with a known value by fold, code and class; at least one code."""
    n_folds, n_classes, n_codes = held_out.n_folds, held_out.n_classes, max(column.n_values, 1)
    known = np.flatnonzero(column.codes >= 0)
    keys = (held_out.fold_of_row[known] * n_codes + column.codes[known]) * n_classes + held_out.target[known]
    counts = np.bincount(keys, minlength=n_folds * n_codes * n_classes)
    return counts.reshape(n_folds, n_codes, n_classes).astype(np.float64)


def _of_categories(counts: Numbers) -> Numbers:
    training = counts.sum(axis=0) - counts
    return np.asarray(np.log((training + 1) / (training.sum(axis=1, keepdims=True) + counts.shape[1])))


def _of_intervals(numbers: Numbers, counts: Numbers) -> Numbers:
    training = counts.sum(axis=0) - counts
    found = np.empty(training.shape)
    for fold, of_codes in enumerate(training):
        interval = np.searchsorted(description_length_cuts(numbers, of_codes), numbers)
        in_interval = np.zeros((int(interval[-1]) + 1, counts.shape[2]))
        np.add.at(in_interval, interval, of_codes)
        found[fold] = np.log((in_interval + 1) / (of_codes.sum(axis=0) + len(in_interval)))[interval]
    return found


class _Gaussians:
    """Normal distribution of each class, for each fold of the rows that it does not hold out."""

    def __init__(self, numbers: Numbers, column: TreeColumn, held_out: HeldOut) -> None:
        self._numbers = np.ldexp(numbers, -int(np.frexp(np.abs(numbers).max())[1]))  # so that no square overflows
        self._precision = _precisions(self._numbers, column, held_out)
        by_fold = _moments(self._numbers, column, held_out)
        others = [[np.delete(part, fold, axis=0) for part in by_fold] for fold in range(held_out.n_folds)]
        trained = [self._fitted(*parts) for parts in others]
        self._mean = np.array([mean for mean, _ in trained])
        deviation = np.array([deviation for _, deviation in trained])
        self._deviation = np.maximum(deviation, self._precision[:, None] / DEVIATIONS_IN_PRECISION)

    @staticmethod
    def _fitted(n: Numbers, mean: Numbers, squares: Numbers) -> tuple[Numbers, Numbers]:
        of_classes = _merged(n, mean, squares)
        of_all = _merged(*of_classes)
        n, mean, squares = (
            np.where(of_classes[0] > 0, own, pooled) for own, pooled in zip(of_classes, of_all, strict=True)
        )
        return mean, np.sqrt(squares / np.maximum(n, 1))

    def log_densities(self, folds: Places, codes: Places) -> Numbers:
        """Log-density of numbers; 0 where the rows of the model hold fewer than two different ones."""
        usable = self._precision > 0
        precision = np.where(usable, self._precision, 1.0)[folds, None]
        deviation = np.where(usable[:, None], self._deviation, 1.0)[folds]
        with np.errstate(over="ignore"):
            squares = ((self._numbers[codes][:, None] - self._mean[folds]) / deviation) ** 2
        found = np.log(precision / deviation) - (squares + np.log(2 * np.pi)) / 2
        return np.where(usable[folds, None], found, 0.0)


def _precisions(numbers: Numbers, column: TreeColumn, held_out: HeldOut) -> Numbers:
    """Mean distance between neighbouring numbers of the rows that a fold does not hold out, 0 where there is none."""
    known = np.flatnonzero(column.codes >= 0)
    keys = held_out.fold_of_row[known] * column.n_values + column.codes[known]
    by_fold = np.bincount(keys, minlength=held_out.n_folds * column.n_values).reshape(held_out.n_folds, -1)
    is_there = by_fold.sum(axis=0) > by_fold
    lowest = numbers[is_there.argmax(axis=1)]
    highest = numbers[column.n_values - 1 - is_there[:, ::-1].argmax(axis=1)]
    n_gaps = is_there.sum(axis=1) - 1
    return np.where(n_gaps > 0, (highest - lowest) / np.maximum(n_gaps, 1), 0.0)


def _moments(numbers: Numbers, column: TreeColumn, held_out: HeldOut) -> tuple[Numbers, Numbers, Numbers]:
    """Count of known numbers, mean and sum of squared deviations by fold and class."""
    is_known = column.codes >= 0
    of_rows = np.where(is_known, numbers[column.codes], 0.0)
    n = held_out.sums(is_known.astype(np.float64))
    mean = held_out.sums(of_rows) / np.maximum(n, 1)
    deviation = np.where(is_known, of_rows - mean[held_out.fold_of_row, held_out.target], 0.0)
    return n, mean, held_out.sums(deviation**2)


def _merged(n: Numbers, mean: Numbers, squares: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Count, mean and squared deviations of groups put together (along the first axis)."""
    total = n.sum(axis=0)
    centre = (n * mean).sum(axis=0) / np.maximum(total, 1)
    return total, centre, (squares + n * (mean - centre) ** 2).sum(axis=0)


FixedPoint = NDArray[np.int64]

ONE = 2**32
"""Logarithms are kept as whole multiples of 1 / ONE, so that a sum is the same in any order and after subtractions."""
TIE = round(1e-6 * ONE)
DECIMALS_OF_EVIDENCE = 6


class NaiveBayesScores:
    """Cross-validated performance of naive Bayes [JL95]_ on any set of columns.

    Every column's log-likelihoods of the held-out rows, under the model of their fold, are computed once from counts by
    fold. The log posterior of a set of columns is their sum; a column less is a subtraction.

    Parameters
    ----------
    columns : sequence of TreeColumn
        A missing value contributes nothing, in training and in prediction.
    target : array_like of int
        Class of each row, from 0.
    fold_of_row : array_like of int
        Fold that holds each row out, from 0 (see :func:`sfumato.learning.fold_scores.folds`).
    metric : {"accuracy", "balanced_accuracy", "auc"}
        See :class:`sfumato.learning.fold_scores.HeldOut`.
    numeric : {"gaussian", "discretized"}
        Numeric columns: a normal distribution for each class, or intervals cut by entropy and description length.

    Notes
    -----
    Classes have the prior ``(rows + 1) / (all rows + classes)``, as in Weka. Of classes whose log posteriors differ by
    less than 1e-6 the first is predicted. Memory: 8 bytes a cell, and 8 for every class of each different value in
    each fold. Time of a set: one addition of ``n_rows`` × ``n_classes`` for every column in which it differs from the
    set asked for before.

    **Deviations** from Weka: normal densities instead of integrals over intervals, of numbers that are not rounded.

    Examples
    --------
    >>> target = np.array([0, 0, 0, 1, 1, 1, 1])
    >>> same, constant = (TreeColumn(codes.astype(np.int32), 2) for codes in (target, 0 * target))
    >>> bayes = NaiveBayesScores([same, constant], target, [0, 1, 2, 0, 1, 2, 0])
    >>> bayes.scores([0, 1]).tolist()
    [1.0, 1.0, 1.0]
    >>> bayes.without_each([0, 1]).round(3).tolist()
    [[0.333, 0.5, 0.5], [1.0, 1.0, 1.0]]
    """

    def __init__(
        self,
        columns: Sequence[TreeColumn],
        target: ArrayLike,
        fold_of_row: ArrayLike,
        metric: Metric = "accuracy",
        numeric: Numeric = "gaussian",
    ) -> None:
        if numeric not in get_args(Numeric):
            raise InvalidParameterError("numeric", f"got {numeric!r}", allowed="'gaussian' or 'discretized'")
        self._held_out = HeldOut(target, fold_of_row, metric)
        if any(len(column.codes) != self._held_out.n_rows for column in columns):
            raise InvalidParameterError("columns", "some differ in length", allowed="one code for every row of target")
        self.n_columns = len(columns)
        self.n_folds = self._held_out.n_folds
        self._terms = [_Term(column, self._held_out, numeric) for column in columns]
        self._current: frozenset[int] = frozenset()
        self._totals = _log_priors(self._held_out)

    def scores(self, columns: Sequence[int]) -> Numbers:
        """Return the performance in each fold with these columns only; without any, that of the majority class."""
        return self._performance(self._moved_to(columns))

    def without_each(self, columns: Sequence[int]) -> Numbers:
        """Scores of the set without its first column, without its second, ...: one row each."""
        totals = self._moved_to(columns)
        rest = np.empty_like(totals)
        found = np.empty((len(columns), self.n_folds))
        for number, column in enumerate(columns):
            np.subtract(totals, self._terms[column].of_rows(), out=rest)
            found[number] = self._performance(rest)
        return found

    def log_posteriors(self, columns: Sequence[int]) -> Numbers:
        """Log of the probability of each class, ``n_rows`` × ``n_classes``, for held-out rows."""
        totals = self._moved_to(columns).T / ONE
        shifted = totals - totals.max(axis=1, keepdims=True)
        return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))

    def _moved_to(self, columns: Sequence[int]) -> FixedPoint:
        """Log posteriors of a set, from those of the last one."""
        wanted = frozenset(checked_set(columns, self.n_columns))
        if len(self._current ^ wanted) > len(wanted):
            self._totals = _log_priors(self._held_out)
            self._current = frozenset()
        for column in wanted - self._current:
            self._totals += self._terms[column].of_rows()
        for column in self._current - wanted:
            self._totals -= self._terms[column].of_rows()
        self._current = wanted
        return self._totals

    def _performance(self, totals: FixedPoint) -> Numbers:
        if self._held_out.metric == "auc":
            return self._held_out.of_evidence(_log_odds(totals).round(DECIMALS_OF_EVIDENCE))
        return self._held_out.of_predictions(_first_of_most(totals))


class _Term:
    """Log-likelihoods of one column: a table of the different values in each fold, and the place of every row in it."""

    def __init__(self, column: TreeColumn, held_out: HeldOut, numeric: Numeric) -> None:
        n_codes = column.n_values + 1
        keys = held_out.fold_of_row * n_codes + column.codes + 1
        counts = np.bincount(keys)
        there = np.flatnonzero(counts)
        self._place = (np.cumsum(counts > 0) - 1)[keys]
        found = log_likelihoods(column, held_out, numeric, there // n_codes, there % n_codes - 1)
        self._table = np.ascontiguousarray(_fixed_point(found).T)

    def of_rows(self) -> FixedPoint:
        """Log-likelihoods, ``n_classes`` × ``n_rows``."""
        return np.asarray(np.take(self._table, self._place, axis=1))


def _fixed_point(logarithms: Numbers) -> FixedPoint:
    return np.asarray(np.rint(logarithms * ONE), dtype=np.int64)


def _log_priors(held_out: HeldOut) -> FixedPoint:
    training = held_out.class_counts.sum(axis=0) - held_out.class_counts
    priors = (training + 1) / (training.sum(axis=1, keepdims=True) + held_out.n_classes)
    return np.asarray(_fixed_point(np.log(priors)).T[:, held_out.fold_of_row])


def _first_of_most(totals: FixedPoint) -> NDArray[np.intp]:
    place, most = np.zeros(totals.shape[1], dtype=np.intp), totals[0].copy()
    for number, of_class in enumerate(totals[1:], start=1):
        is_more = of_class > most + TIE
        place[is_more] = number
        np.copyto(most, of_class, where=is_more)
    return place


def _log_odds(totals: FixedPoint) -> Numbers:
    """Log of the odds of each class against all others, exact where a probability is nearly 1."""
    most = totals.argmax(axis=0)
    rows = np.arange(totals.shape[1])
    behind = (totals - totals[most, rows]) / ONE
    shares = np.exp(behind)
    shares[most, rows] = 0.0
    others = shares.sum(axis=0)
    odds = behind - np.log1p(others - shares)
    odds[most, rows] = -np.log(np.maximum(others, np.finfo(np.float64).tiny))
    return np.asarray(odds.T)
