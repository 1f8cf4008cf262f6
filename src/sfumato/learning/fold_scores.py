"""Scores of sets of columns in cross-validation: the folds, and what every way to compute the scores offers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, get_args

import numpy as np
from joblib.externals.loky import get_reusable_executor  # type: ignore[import-untyped]  # no types upstream
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.stats import rankdata
from sklearn.utils.parallel import Parallel, delayed

from sfumato.errors import InvalidParameterError
from sfumato.learning.c45.estimators import first_of_most
from sfumato.processes import interruptions_held_back
from sfumato.progress import Progress

# How well held-out rows are predicted, fold by fold: accuracy, balanced accuracy or area under the ROC curve.


Metric = Literal["accuracy", "balanced_accuracy", "auc"]
Places = NDArray[np.intp]
Numbers = NDArray[np.float64]


class HeldOut:
    """Target of every row, the fold that holds it out, and what to measure.

    Parameters
    ----------
    target : array_like of int
        Class of each row, from 0; a missing one must be a class of its own or the row left out.
    fold_of_row : array_like of int
        Fold of each row, from 0; no fold may be empty.
    metric : {"accuracy", "balanced_accuracy", "auc"}
        Share of rows predicted right; its mean over the classes that a fold holds; or the area under the ROC curve.

    Notes
    -----
    With more than two classes the area is the mean of those of each class against the rest, by the classes' shares in
    the fold, as Weka's weighted area. A fold of one class has the area 0.5.

    Examples
    --------
    >>> HeldOut([0, 1, 0, 1], [0, 0, 1, 1]).of_predictions(np.array([0, 0, 0, 1])).tolist()
    [0.5, 1.0]
    """

    def __init__(self, target: ArrayLike, fold_of_row: ArrayLike, metric: Metric = "accuracy") -> None:
        if metric not in get_args(Metric):
            allowed = "'accuracy', 'balanced_accuracy' or 'auc'"
            raise InvalidParameterError("metric", f"got {metric!r}", allowed=allowed)
        self.target = checked_codes("target", target)
        self.fold_of_row = checked_codes("fold_of_row", fold_of_row)
        self.metric = metric
        if len(self.target) != len(self.fold_of_row):
            problem = f"got {len(self.fold_of_row):,} of them"
            raise InvalidParameterError("fold_of_row", problem, allowed=f"one fold for each of {self.n_rows:,} rows")
        sizes = np.bincount(self.fold_of_row)
        if len(sizes) < 2 or not sizes.all():
            problem = f"{np.count_nonzero(sizes)} of {len(sizes)} folds have rows"
            raise InvalidParameterError("fold_of_row", problem, allowed="two or more folds, none of them empty")
        self.n_folds = len(sizes)
        self.n_classes = int(self.target.max()) + 1
        self.class_counts = self.sums(np.ones(self.n_rows))

    @property
    def n_rows(self) -> int:
        """Number of rows, each held out once."""
        return len(self.target)

    def rows(self, fold: int) -> tuple[Places, Places]:
        """Rows to train on and rows held out."""
        is_held_out = self.fold_of_row == fold
        return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)

    def sums(self, of_rows: Numbers) -> Numbers:
        """Sum what rows have by fold and class."""
        keys = self.fold_of_row * self.n_classes + self.target
        added = np.bincount(keys, weights=of_rows, minlength=self.n_folds * self.n_classes)
        return np.asarray(added.reshape(self.n_folds, self.n_classes), dtype=np.float64)

    def of_predictions(self, predicted: Places) -> Numbers:
        """Accuracy, plain or balanced, of the class predicted for each row."""
        right = self.sums((predicted == self.target).astype(np.float64))
        if self.metric == "balanced_accuracy":
            is_there = self.class_counts > 0
            recall = np.where(is_there, right / np.maximum(self.class_counts, 1), 0.0)
            return np.asarray(recall.sum(axis=1) / is_there.sum(axis=1))
        return np.asarray(right.sum(axis=1) / self.class_counts.sum(axis=1))

    def of_evidence(self, evidence: Numbers) -> Numbers:
        """Area under the ROC curve of the evidence for each class, ``n_rows`` × ``n_classes``, larger for likelier."""
        held_out = [np.flatnonzero(self.fold_of_row == fold) for fold in range(self.n_folds)]
        return np.array([self._area(evidence[rows], self.target[rows]) for rows in held_out])

    def _area(self, evidence: Numbers, target: Places) -> float:
        counts = np.bincount(target, minlength=self.n_classes)
        if np.count_nonzero(counts) < 2:
            return 0.5
        if self.n_classes == 2:
            return area_under_curve(evidence[:, 1] - evidence[:, 0], target == 1)
        there = np.flatnonzero(counts)
        areas = [area_under_curve(evidence[:, number], target == number) for number in there.tolist()]
        return float(np.average(areas, weights=counts[there]))


def area_under_curve(evidence: Numbers, is_positive: NDArray[np.bool_]) -> float:
    """Share of pairs of a positive and a negative row whose evidence is in the right order; ties count half.

    Examples
    --------
    >>> area_under_curve(np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, False, True, True]))
    0.875
    """
    n_positive = int(is_positive.sum())
    n_negative = len(is_positive) - n_positive
    above = float(rankdata(evidence)[is_positive].sum()) - n_positive * (n_positive + 1) / 2
    return above / (n_positive * n_negative)


def majority(target: Places, n_classes: int) -> int:
    """Most frequent class, the first of several."""
    return int(first_of_most(np.bincount(target, minlength=n_classes)[None].astype(np.float64))[0])


def checked_codes(name: str, given: ArrayLike) -> Places:
    """Return codes as an array, or say that they are none."""
    codes = np.asarray(given)
    if codes.ndim != 1 or not len(codes) or codes.dtype.kind not in "iu" or codes.min() < 0:
        problem = f"got {codes.dtype.name} of the shape {codes.shape}"
        raise InvalidParameterError(name, problem, allowed="whole numbers from 0, one for each row")
    return codes.astype(np.intp)


Task = tuple[tuple[int, ...], int]
"""Set of columns and fold."""
Found = TypeVar("Found")


class SubsetScores(Protocol):
    """Cross-validated performance of a classifier on any set of the columns; higher is better."""

    @property
    def n_columns(self) -> int:
        """Number of columns to choose from."""
        ...

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        ...

    def scores(self, columns: Sequence[int]) -> Numbers:
        """Return the performance in each fold with these columns only; without any, that of the majority class."""
        ...

    def without_each(self, columns: Sequence[int]) -> Numbers:
        """Scores of the set without its first column, without its second, ...: one row each."""
        ...


class StrongestScores:
    """Strongest of several attackers: for every set of columns the one with the best mean over the folds.

    Of equal means the first counts. All must be measured alike, on the same folds.

    Examples
    --------
    >>> from sfumato.learning.naive_bayes import NaiveBayesScores
    >>> from sfumato.learning.c45.tree import TreeColumn
    >>> from sfumato.learning.trained_scores import TreeScores
    >>> target = np.array([0, 0, 0, 1, 1, 1] * 4)
    >>> columns = [TreeColumn(target.astype(np.int32), 2)]
    >>> fold_of_row = folds(target, 4)
    >>> attackers = [kind(columns, target, fold_of_row) for kind in (NaiveBayesScores, TreeScores)]
    >>> StrongestScores(attackers).scores([0]).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    def __init__(self, attackers: Sequence[SubsetScores]) -> None:
        shapes = {(attacker.n_columns, attacker.n_folds) for attacker in attackers}
        if len(shapes) != 1:
            problem = f"got {len(attackers)} with {len(shapes)} different numbers of columns and folds"
            raise InvalidParameterError("attackers", problem, allowed="one or more, with the same columns and folds")
        self.attackers = tuple(attackers)
        ((self.n_columns, self.n_folds),) = shapes

    def strongest(self, columns: Sequence[int]) -> int:
        """Place of the attacker that is the best with these columns."""
        return _best([attacker.scores(columns) for attacker in self.attackers])

    def scores(self, columns: Sequence[int]) -> Numbers:
        """Return the performance of the strongest in each fold."""
        found = [attacker.scores(columns) for attacker in self.attackers]
        return found[_best(found)]

    def without_each(self, columns: Sequence[int]) -> Numbers:
        """Return the performance of the strongest without each column; not always the same one."""
        found = [attacker.without_each(columns) for attacker in self.attackers]
        chosen = [of_all[_best(of_all)] for of_all in zip(*found, strict=True)]
        return np.array(chosen).reshape(len(columns), self.n_folds)


def _best(scores: Sequence[Numbers]) -> int:
    return int(np.argmax([of_one.mean() for of_one in scores]))


def folds(
    target: ArrayLike, n_folds: int = 10, seed: int = 0, persons: NDArray[np.integer] | None = None
) -> NDArray[np.intp]:
    """Fold of every row, stratified: folds, and the rows of a class in them, differ in number by one at most.

    The rows of each class are shuffled and dealt out in turn, a class going on where the one before it ended.
    With ``persons`` these are dealt out, by the class that most of a person's rows have, each with all rows: nobody is
    tested on a person whom a model was trained on.

    Parameters
    ----------
    target : array_like of int
        Class of each row, from 0.
    n_folds : int
        At least 2, at most the number of rows.
    seed : int
        The same seed gives the same folds.
    persons : array of int or None
        Person of each row, where some have several.

    Examples
    --------
    >>> fold_of_row = folds([0, 0, 0, 0, 1, 1], n_folds=2)
    >>> np.bincount(fold_of_row).tolist(), np.bincount(fold_of_row[:4]).tolist()
    ([3, 3], [2, 2])
    """
    codes = checked_codes("target", target)
    if isinstance(n_folds, bool) or not isinstance(n_folds, int | np.integer) or not 2 <= n_folds <= len(codes):
        allowed = f"a whole number of at least 2 and at most {len(codes):,}, the number of rows"
        raise InvalidParameterError("n_folds", f"got {n_folds!r}", allowed=allowed)
    if persons is not None:
        numbers, of_row = np.unique(persons, return_inverse=True)
        if n_folds > len(numbers):
            allowed = f"at most {len(numbers):,}, the number of persons"
            raise InvalidParameterError("n_folds", f"got {n_folds!r}", allowed=allowed)
        of_person = folds(_most_frequent(of_row.reshape(-1), codes), n_folds, seed)
        return np.asarray(of_person[of_row.reshape(-1)], dtype=np.intp)
    shuffled = np.random.default_rng(seed).permutation(len(codes))
    dealt = shuffled[np.argsort(codes[shuffled], kind="stable")]
    fold_of_row = np.empty(len(codes), dtype=np.intp)
    fold_of_row[dealt] = np.arange(len(codes)) % n_folds
    return fold_of_row


def _most_frequent(groups: NDArray[np.intp], codes: NDArray[np.integer]) -> NDArray[np.intp]:
    """Code that most rows of each group have; of several the lowest."""
    n_codes = int(codes.max(initial=0)) + 1
    pairs, counts = np.unique(groups * n_codes + codes, return_counts=True)
    group, code = np.divmod(pairs, n_codes)
    order = np.lexsort((code, -counts, group))
    return np.asarray(code[order][np.unique(group[order], return_index=True)[1]], dtype=np.intp)


def checked_set(columns: Sequence[int], n_columns: int) -> tuple[int, ...]:
    """Return a set of columns in ascending order, or say that it is none."""
    chosen = tuple(sorted({int(column) for column in columns}))
    if len(chosen) != len(columns) or (chosen and not 0 <= chosen[0] <= chosen[-1] < n_columns):
        problem = f"got {list(columns)}"
        raise InvalidParameterError("columns", problem, allowed=f"different positions from 0 to {n_columns - 1}")
    return chosen


def sets_without_each(columns: Sequence[int], n_columns: int) -> list[tuple[int, ...]]:
    """Return the set without its first column, without its second, ..."""
    whole = checked_set(columns, n_columns)
    return [tuple(other for other in whole if other != column) for column in columns]


def checked_workers(n_workers: object) -> int:
    """Return a number of processes, or say that it is none."""
    if isinstance(n_workers, bool) or not isinstance(n_workers, int | np.integer) or n_workers < 1:
        raise InvalidParameterError("n_workers", f"got {n_workers!r}", allowed="a whole number of at least 1")
    return int(n_workers)


def trained_on_each(
    train: Callable[..., Found],
    data: Any,
    tasks: Sequence[Task],
    n_workers: int,
    progress: Progress | None,
    what: str,
) -> list[Found]:
    """Call ``train(data, columns, fold)`` for every task, in processes where there are several; results in order.

    Workers end with the call that is interrupted, and so do the files in which they share the data.
    """
    found, coming = [], _as_they_come(train, data, tasks, n_workers)
    try:
        for number, one in enumerate(coming, start=1):
            found.append(one)
            if progress is not None:
                progress(number, len(tasks), what)
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # after an interruption, that results are given up
            coming.close()
    return found


def _as_they_come(
    train: Callable[..., Found], data: Any, tasks: Sequence[Task], n_workers: int
) -> Generator[Found, None, None]:
    if n_workers == 1 or len(tasks) < 2:
        yield from (train(data, *task) for task in tasks)
    else:
        workers = Parallel(n_jobs=n_workers, backend="loky", return_as="generator")
        with interruptions_held_back():
            coming = workers(delayed(train)(data, *task) for task in tasks)
        yield from coming


def end_workers() -> None:
    """End processes that wait for more work: a program that leaves would wait for them, up to five minutes."""
    get_reusable_executor(reuse=True).shutdown(wait=True)


# Whether two learners differ over the folds of one cross-validation: the paired t-test, plain and corrected.


FoldTest = Literal["corrected", "paired"]
FOLD_TESTS: tuple[str, ...] = get_args(FoldTest)

_ROUNDING = 1e-12  # less than this is no difference and no spread


@dataclass(frozen=True)
class FoldComparison:
    """Outcome of a paired test over folds.

    Parameters
    ----------
    difference : float
        Mean score less mean score of the baseline; above 0 is better.
    standard_error : float
        Of the difference, with the test's correction.
    p_value : float
        Two-sided. Without any spread over the folds it is 1 where the means agree and 0 where they do not.
    test : {"corrected", "paired"}
        Which test it was.
    """

    difference: float
    standard_error: float
    p_value: float
    test: FoldTest


def compare_folds(
    scores: ArrayLike, baseline: ArrayLike, *, test: FoldTest = "corrected", test_train_ratio: float | None = None
) -> FoldComparison:
    """Test whether scores of the same folds have different means.

    The training parts of a cross-validation overlap, so the plain paired t-test, the one of [PBI17]_, takes too many
    differences for real. The corrected resampled test of [NB03]_ (its Section 3) multiplies the variance of the
    differences by 1 / n_folds + test rows / training rows instead of 1 / n_folds. Both have n_folds - 1 degrees of
    freedom.

    Parameters
    ----------
    scores, baseline : array_like of shape (n_folds,)
        Scores fold by fold, in the same order.
    test : {"corrected", "paired"}
        Nadeau and Bengio's, or the paper's.
    test_train_ratio : float or None
        Rows tested over rows trained on, for the correction. None is 1 / (n_folds - 1), right for one
        cross-validation; for repeated k-fold cross-validation give 1 / (k - 1).

    Notes
    -----
    Not significantly different does not mean equal: the corrected test finds fewer differences, so a search that puts
    a column back only where the loss is significant drops more columns under it. Where the
    differences vary much over few folds, a loss of several points may pass.

    References
    ----------
    .. [PBI17] Jafer, Matwin, Sokolova: A Multi-dimensional Privacy-aware Evaluation Function in Automatic Feature
       Selection. Transactions on Data Privacy 10 (2017).
    .. [NB03] Nadeau, Bengio: Inference for the Generalization Error. Machine Learning 52 (2003) 239-281.

    Examples
    --------
    >>> ours, theirs = [0.8, 0.7, 0.9, 0.8], [0.7, 0.6, 0.9, 0.7]
    >>> round(compare_folds(ours, theirs, test="paired").p_value, 3)
    0.058
    >>> round(compare_folds(ours, theirs).p_value, 3)
    0.144
    """
    ours, theirs = np.asarray(scores, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    _check(ours, theirs, test)
    n_folds = len(ours)
    differences = ours - theirs
    difference, variance = float(differences.mean()), float(differences.var(ddof=1))
    share = 1 / n_folds
    if test == "corrected":
        share += 1 / (n_folds - 1) if test_train_ratio is None else _checked_ratio(test_train_ratio)
    standard_error = float(np.sqrt(share * variance))
    if standard_error <= _ROUNDING:
        p_value = 1.0 if abs(difference) <= _ROUNDING else 0.0
    else:
        p_value = float(2 * stats.t.sf(abs(difference) / standard_error, n_folds - 1))
    return FoldComparison(difference, standard_error, p_value, test)


def _checked_ratio(ratio: float) -> float:
    if not 0 < ratio < np.inf:
        raise InvalidParameterError("test_train_ratio", f"got {ratio!r}", allowed="a number above 0")
    return ratio


def _check(ours: np.ndarray, theirs: np.ndarray, test: str) -> None:
    if test not in FOLD_TESTS:
        raise InvalidParameterError("test", f"got {test!r}", allowed=" or ".join(FOLD_TESTS))
    if ours.ndim != 1 or ours.shape != theirs.shape:
        problem = f"got shapes {ours.shape} and {theirs.shape}"
        raise InvalidParameterError("scores", problem, allowed="one number for each fold of the baseline")
    if len(ours) < 2:
        raise InvalidParameterError("scores", f"got {len(ours)}", allowed="of at least 2 folds")
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        raise InvalidParameterError("scores", "some are not", allowed="finite numbers")
