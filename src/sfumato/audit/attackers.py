"""Attackers of the audit's own, made with scikit-learn: how well columns predict another one, fold by fold.

Apart from the level that needs them, because no other check loads scikit-learn: half a second.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # comes with scikit-learn

from sfumato.guarantees.estimated import attackers_in
from sfumato.table.coding import CodedColumn

Places = NDArray[np.int64]
Numbers = NDArray[np.float64]
Attacker = Callable[[Numbers, NDArray[np.bool_], Places, NDArray[np.bool_]], tuple[Places, Numbers]]
"""Gives classes and the evidence for each in held-out rows, by cells, which are numbers, the target and these rows."""

N_FOLDS = 10
_SEED = 20_170_402
_LEAST_VARIANCE = 0.01  # of a column's own: without it, a rare value with equal numbers is predicted for everybody
_LEAVES = 100
_INTERVALS = 16
_STEPS = 1000


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
    persons : array of int or None
        Person of each of these rows, where some have several: no fold has rows of a person in another one.
    """

    def __init__(
        self,
        columns: Sequence[CodedColumn],
        is_numeric: Sequence[bool],
        rows: NDArray[np.intp],
        sensitive: Places,
        metric: str,
        persons: Places | None = None,
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
        self._fold_of_row = _folds(sensitive) if persons is None else _folds_of_persons(sensitive, persons)

    def scores(self, places: Sequence[int], attacker: str) -> Numbers:
        """Measure fold by fold the performance of an attacker who knows some of the columns."""
        found = [self._scores(list(places), kind) for kind in attackers_in(attacker)]
        return max(found, key=lambda scores: float(scores.mean()))

    def _scores(self, places: list[int], kind: str) -> Numbers:
        n_folds = int(self._fold_of_row.max()) + 1
        return np.array([self._score(places, kind, self._fold_of_row == fold) for fold in range(n_folds)])

    def _score(self, places: list[int], kind: str, is_held_out: NDArray[np.bool_]) -> float:
        cells, is_numeric = self._cells[:, places], self._is_numeric[places]
        target = self._sensitive[~is_held_out]
        classes, found = _ATTACKERS[kind](cells, is_numeric, target, is_held_out)
        if self._metric == "auc" and kind in _SAY_JOINT_PROBABILITIES:
            found = log_odds(found)
        unlikely = float(found.min()) - 1  # for a value that is not in the training rows
        evidence = np.full((int(is_held_out.sum()), self._n_classes), unlikely)
        evidence[:, classes] = found
        return _performance(self._metric, self._sensitive[is_held_out], evidence)


def _naive_bayes(
    cells: Numbers, is_numeric: NDArray[np.bool_], target: Places, is_held_out: NDArray[np.bool_]
) -> tuple[Places, Numbers]:
    """Log of the joint probability of each class and the cells: sums over categories and numbers, the prior once."""
    classes, counts = np.unique(target, return_counts=True)
    log_prior = np.log(counts / len(target))
    joint = np.tile(log_prior, (int(is_held_out.sum()), 1))
    varies = np.ptp(cells[~is_held_out], axis=0) > 0  # a number that does not has no density
    numbers, categories = cells[:, is_numeric & varies], cells[:, ~is_numeric].astype(np.int64)
    if numbers.shape[1]:
        normal = GaussianNB(var_smoothing=_LEAST_VARIANCE).fit(numbers[~is_held_out], target)
        joint += normal.predict_joint_log_proba(numbers[is_held_out]) - log_prior
    if categories.shape[1]:
        counting = CategoricalNB(min_categories=categories.max(axis=0) + 1).fit(categories[~is_held_out], target)
        joint += counting.predict_joint_log_proba(categories[is_held_out]) - log_prior
    return classes, joint


def log_odds(joint: Numbers) -> Numbers:
    """Log odds of every class against all others, from logs of joint probabilities: comparable from row to row.

    Of the likeliest class the others are summed up without it; 1 less its probability would be rounded to nothing.

    Examples
    --------
    >>> log_odds(np.log([[0.3, 0.1, 0.1]])).round(3).tolist()
    [[0.405, -1.386, -1.386]]
    """
    if joint.shape[1] == 1:
        return joint
    likeliest = np.arange(len(joint)), joint.argmax(axis=1)
    others = joint.copy()
    others[likeliest] = -np.inf
    log_shares = joint - logsumexp(joint, axis=1, keepdims=True)
    shares = np.exp(log_shares)
    shares[likeliest] = 0
    odds = log_shares - np.log1p(-shares)
    odds[likeliest] = joint[likeliest] - logsumexp(others, axis=1)
    return np.asarray(odds)


def _naive_bayes_of_intervals(
    cells: Numbers, is_numeric: NDArray[np.bool_], target: Places, is_held_out: NDArray[np.bool_]
) -> tuple[Places, Numbers]:
    """Naive Bayes with numbers in intervals, the leaves of a small tree for each column."""
    divided = cells.copy()
    for place in np.flatnonzero(is_numeric).tolist():
        column = cells[:, [place]]
        cuts = _small_tree(len(target), max_leaf_nodes=_INTERVALS).fit(column[~is_held_out], target)
        divided[:, place] = cuts.apply(column)
    return _naive_bayes(divided, np.zeros_like(is_numeric), target, is_held_out)


def _small_tree(n_rows: int, **limits: int) -> Any:
    fewest = max(5, n_rows // _LEAVES)
    return DecisionTreeClassifier(criterion="entropy", min_samples_leaf=fewest, random_state=0, **limits)


def _by(model: Callable[[int], Any]) -> Attacker:
    """Attack by a model for so many rows, which takes categories in their order: more splits make up for that."""

    def attack(
        cells: Numbers, is_numeric: NDArray[np.bool_], target: Places, is_held_out: NDArray[np.bool_]
    ) -> tuple[Places, Numbers]:
        return _trained(model(len(target)), cells, target, is_held_out)

    return attack


def _logistic(
    cells: Numbers, is_numeric: NDArray[np.bool_], target: Places, is_held_out: NDArray[np.bool_]
) -> tuple[Places, Numbers]:
    """Linear in the numbers and in a 0/1 feature for every category."""
    features = sp.csr_array(cells[:, is_numeric])
    if not is_numeric.all():
        categories = OneHotEncoder().fit_transform(cells[:, ~is_numeric])
        features = sp.hstack([features, categories], format="csr")
    return _trained(LogisticRegression(max_iter=_STEPS), features, target, is_held_out)


def _trained(model: Any, features: Any, target: Places, is_held_out: NDArray[np.bool_]) -> tuple[Places, Numbers]:
    if target.min() == target.max():
        return target[:1], np.zeros((int(is_held_out.sum()), 1))
    with warnings.catch_warnings(), _threads().limit(limits=1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # the attacker is then as good as so many steps make it
        model.fit(features[~is_held_out], target)
        return model.classes_, model.predict_proba(features[is_held_out])


@cache
def _threads() -> Any:
    """Thread pools of this process; more than one thread is slow on a busy machine, and may round otherwise."""
    return ThreadpoolController()


_ATTACKERS: Mapping[str, Attacker] = {
    "naive-bayes": _naive_bayes,
    "naive-bayes-discretized": _naive_bayes_of_intervals,
    "c45": _by(_small_tree),
    "logistic-regression": _logistic,
    "random-forest": _by(lambda _: RandomForestClassifier(random_state=0)),
    "gradient-boosting": _by(lambda _: HistGradientBoostingClassifier(early_stopping=False, random_state=0)),
}
_SAY_JOINT_PROBABILITIES = ("naive-bayes", "naive-bayes-discretized")


def _folds(sensitive: Places) -> Places:
    """Deal the rows out to folds, value by value of the sensitive column."""
    shuffled = np.random.default_rng(_SEED).permutation(len(sensitive))
    dealt = shuffled[np.argsort(sensitive[shuffled], kind="stable")]
    fold_of_row = np.empty(len(sensitive), dtype=np.int64)
    fold_of_row[dealt] = np.arange(len(sensitive)) % min(N_FOLDS, len(sensitive))
    return fold_of_row


def _folds_of_persons(sensitive: Places, persons: Places) -> Places:
    """Deal persons out to folds with all their rows, by the sensitive value of their first row."""
    _, first, of_row = np.unique(persons, return_index=True, return_inverse=True)
    return np.asarray(_folds(sensitive[first])[of_row.reshape(-1)])


def _performance(metric: str, truth: Places, evidence: Numbers) -> float:
    there, counts = np.unique(truth, return_counts=True)
    if metric == "auc":
        if len(there) < 2:
            return 0.5
        areas = [roc_auc_score(truth == value, evidence[:, value]) for value in there]
        return float(np.average(areas, weights=counts))
    is_right = evidence.argmax(axis=1) == truth
    if metric == "balanced_accuracy":
        n_right = np.bincount(truth, weights=is_right)[there]
        return float(np.mean(n_right / counts))
    return float(is_right.mean())
