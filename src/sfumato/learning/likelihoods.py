r"""Log-likelihoods of held-out values given the class, one column at a time, from counts by fold.

References
----------
.. [JL95] John, Langley: Estimating Continuous Distributions in Bayesian Classifiers. UAI 1995, 338-345.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.discretization import description_length_cuts
from sfumato.learning.performance import HeldOut
from sfumato.learning.tree import TreeColumn

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
