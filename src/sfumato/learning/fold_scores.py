"""Scores of sets of columns in cross-validation: the folds, and what every way to compute the scores offers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from joblib.externals.loky import get_reusable_executor  # type: ignore[import-untyped]  # no types upstream
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.parallel import Parallel, delayed

from sfumato.child_processes import interruptions_held_back
from sfumato.contract import Progress
from sfumato.errors import InvalidParameterError
from sfumato.learning.performance import checked_codes

Numbers = NDArray[np.float64]
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
    >>> from sfumato.learning.tree import TreeColumn
    >>> from sfumato.learning.tree_scores import TreeScores
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


def folds(target: ArrayLike, n_folds: int = 10, seed: int = 0) -> NDArray[np.intp]:
    """Fold of every row, stratified: folds, and the rows of a class in them, differ in number by one at most.

    The rows of each class are shuffled and dealt out in turn, a class going on where the one before it ended.

    Parameters
    ----------
    target : array_like of int
        Class of each row, from 0.
    n_folds : int
        At least 2, at most the number of rows.
    seed : int
        The same seed gives the same folds.

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
    shuffled = np.random.default_rng(seed).permutation(len(codes))
    dealt = shuffled[np.argsort(codes[shuffled], kind="stable")]
    fold_of_row = np.empty(len(codes), dtype=np.intp)
    fold_of_row[dealt] = np.arange(len(codes)) % n_folds
    return fold_of_row


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
