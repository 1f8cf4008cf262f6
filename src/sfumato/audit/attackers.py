"""Attackers of the audit's own, made with scikit-learn: how well columns predict another one, fold by fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.tree import DecisionTreeClassifier

from sfumato.table.coding import CodedColumn

Places = NDArray[np.int64]
Numbers = NDArray[np.float64]

N_FOLDS = 10
_SEED = 20_170_402
_LEAST_VARIANCE = 0.01  # of a column's own: without it, a rare value with equal numbers is predicted for everybody
_LEAVES = 100
_KINDS = {"naive-bayes": ("naive-bayes",), "c45": ("tree",), "strongest": ("naive-bayes", "tree")}


def codes_of_values(column: CodedColumn) -> Places:
    """Code the cells in an order that depends on the values only, by number where all are numbers; missing ones are 0.

    The kind that somebody declared is not asked, because an original may be audited without its description.
    """
    places = np.zeros(len(column.values), dtype=np.int64)
    is_there = column.values.is_valid().to_numpy(zero_copy_only=False)
    try:
        known: NDArray[Any] = column.numbers()[is_there]
    except ValueError:
        known = np.array([str(value) for value in column.values.to_pylist() if value is not None])
    places[is_there] = np.unique(known, return_inverse=True)[1] + 1
    return places[column.codes]


def numbers_of(column: CodedColumn) -> Numbers:
    """Read cells as numbers with mean 0 and variance 1, missing ones as the median.

    Raises
    ------
    ValueError
        If a value is no number.
    """
    cells = column.numbers()[column.codes]
    is_there = ~np.isnan(cells)
    if not is_there.any():
        return np.zeros(len(cells))
    cells = np.where(is_there, cells, np.median(cells[is_there]))
    spread = float(cells.std())
    return np.asarray((cells - cells.mean()) / (spread if spread > 0 else 1.0))


class Attack:
    """What attackers train on, and the folds.

    Parameters
    ----------
    columns : sequence of CodedColumn
    is_numeric : sequence of bool
        Which of them are taken as numbers, normally distributed for naive Bayes.
    rows : array of int
        Rows of the columns that count.
    sensitive : array of int
        Class of each of these rows, from 0.
    metric : {"accuracy", "balanced_accuracy", "auc"}
    """

    def __init__(
        self,
        columns: Sequence[CodedColumn],
        is_numeric: Sequence[bool],
        rows: NDArray[np.intp],
        sensitive: Places,
        metric: str,
    ) -> None:
        cells = [
            numbers_of(column) if flag else codes_of_values(column).astype(np.float64)
            for column, flag in zip(columns, is_numeric, strict=True)
        ]
        self._cells = np.column_stack(cells)[rows]
        self._is_numeric = np.array(is_numeric, dtype=np.bool_)
        self._sensitive = sensitive
        self._metric = metric
        self._n_classes = int(sensitive.max()) + 1
        self._fold_of_row = _folds(sensitive)

    def scores(self, places: Sequence[int], attacker: str) -> Numbers:
        """Measure fold by fold the performance of an attacker who knows some of the columns."""
        found = [self._scores(list(places), kind) for kind in _KINDS[attacker]]
        return max(found, key=lambda scores: float(scores.mean()))

    def _scores(self, places: list[int], kind: str) -> Numbers:
        n_folds = int(self._fold_of_row.max()) + 1
        return np.array([self._score(places, kind, self._fold_of_row == fold) for fold in range(n_folds)])

    def _score(self, places: list[int], kind: str, is_held_out: NDArray[np.bool_]) -> float:
        cells, is_numeric = self._cells[:, places], self._is_numeric[places]
        target = self._sensitive[~is_held_out]
        attacker = _naive_bayes if kind == "naive-bayes" else _tree
        classes, found = attacker(cells, is_numeric, target, is_held_out)
        evidence = np.full((int(is_held_out.sum()), self._n_classes), -np.inf)
        evidence[:, classes] = found
        return _performance(self._metric, self._sensitive[is_held_out], evidence)


def _naive_bayes(
    cells: Numbers, is_numeric: NDArray[np.bool_], target: Places, is_held_out: NDArray[np.bool_]
) -> tuple[Places, Numbers]:
    """Log odds of every class against the others: sums over categories and numbers, the prior once."""
    classes, counts = np.unique(target, return_counts=True)
    log_prior = np.log(counts / len(target))
    joint = np.tile(log_prior, (int(is_held_out.sum()), 1))
    numbers, categories = cells[:, is_numeric], cells[:, ~is_numeric].astype(np.int64)
    if numbers.shape[1]:
        normal = GaussianNB(var_smoothing=_LEAST_VARIANCE).fit(numbers[~is_held_out], target)
        joint += normal.predict_joint_log_proba(numbers[is_held_out]) - log_prior
    if categories.shape[1]:
        counting = CategoricalNB(min_categories=categories.max(axis=0) + 1).fit(categories[~is_held_out], target)
        joint += counting.predict_joint_log_proba(categories[is_held_out]) - log_prior
    if len(classes) == 1:
        return classes, joint
    odds = [joint[:, place] - logsumexp(np.delete(joint, place, axis=1), axis=1) for place in range(len(classes))]
    return classes, np.column_stack(odds)


def _tree(
    cells: Numbers, is_numeric: NDArray[np.bool_], target: Places, is_held_out: NDArray[np.bool_]
) -> tuple[Places, Numbers]:
    """Probability of every class; categories are split in their order, which more splits make up for."""
    fewest = max(5, len(target) // _LEAVES)
    tree = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=fewest, random_state=0)
    tree.fit(cells[~is_held_out], target)
    return tree.classes_, tree.predict_proba(cells[is_held_out])


def _folds(sensitive: Places) -> Places:
    """Deal the rows out to folds, value by value of the sensitive column."""
    shuffled = np.random.default_rng(_SEED).permutation(len(sensitive))
    dealt = shuffled[np.argsort(sensitive[shuffled], kind="stable")]
    fold_of_row = np.empty(len(sensitive), dtype=np.int64)
    fold_of_row[dealt] = np.arange(len(sensitive)) % min(N_FOLDS, len(sensitive))
    return fold_of_row


def _performance(metric: str, truth: Places, evidence: Numbers) -> float:
    there, counts = np.unique(truth, return_counts=True)
    if metric == "auc":
        if len(there) < 2:
            return 0.5
        areas = [roc_auc_score(truth == value, evidence[:, value]) for value in there]
        return float(np.average(areas, weights=counts))
    is_right = evidence.argmax(axis=1) == truth
    if metric == "balanced_accuracy":
        return float(np.mean([is_right[truth == value].mean() for value in there]))
    return float(is_right.mean())
