"""Classifiers by name, each ready for encoded cells: missing ones filled or understood, scaled where that matters.

Their sizes are chosen for many short runs: good enough to tell one release from another, not to win a contest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from sfumato.errors import InvalidParameterError
from sfumato.learning.c45.estimators import C45Classifier

Flags = NDArray[np.bool_]
MOST_INTERVALS = 10


@dataclass(frozen=True, eq=False)
class Encoded:
    """What encoded columns hold, see :class:`sfumato.evaluation.encoding.GeneralizedEncoder`.

    Parameters
    ----------
    is_share : ndarray of bool
        The share of a value of a column without order.
    is_piece : ndarray of bool
        The share of a range above a cut. These are for linear models; all other classifiers leave them out.
    """

    is_share: Flags
    is_piece: Flags


@dataclass(frozen=True)
class NamedClassifier:
    """A classifier as results name it.

    Parameters
    ----------
    name : str
        In options and plain data.
    title : str
        For people.
    make : callable
        See :meth:`build`.
    """

    name: str
    title: str
    make: Callable[[int, Encoded | None], Any]

    def build(self, seed: int = 0, encoded: Encoded | None = None) -> Any:
        """Make an untrained one for columns that were encoded so; ``None``: all hold plain numbers."""
        return self.make(seed, encoded)


class Intervals(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # no types upstream
    """Truth values instead of numbers: one for each interval of each column, and one for missing where it occurs.

    A column of at most 10 different numbers has an interval for each, any other the tenths of its rows. Exactly one is
    true in every column of a row, or none where a cell is missing and none of the fitted rows was. So the multinomial
    naive Bayes of the result is the categorical one.

    Parameters
    ----------
    is_share : array_like of bool or None
        Columns that hold the share of one value of a column without order; these stay, at the end.

    Examples
    --------
    >>> Intervals([False, True]).fit([[5, 0], [np.nan, 1]]).transform([[7, 0.5], [np.nan, 1]]).toarray().tolist()
    [[1.0, 0.0, 0.5], [0.0, 1.0, 1.0]]
    """

    def __init__(self, is_share: ArrayLike | None = None) -> None:
        self.is_share = is_share

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Find the limits of the intervals."""
        columns, _ = self._parted(X)
        self.limits_ = [_limits(column[~np.isnan(column)]) for column in columns]
        self.has_missing_ = [bool(np.isnan(column).any()) for column in columns]
        return self

    def transform(self, X: ArrayLike) -> sp.csr_matrix:
        """Put every number into its interval."""
        columns, shares = self._parted(X)
        rows, places, width = [np.zeros(0, dtype=np.intp)], [np.zeros(0, dtype=np.intp)], 0
        for column, limits, has_missing in zip(columns, self.limits_, self.has_missing_, strict=True):
            is_missing = np.isnan(column)
            place = np.where(is_missing, len(limits) + 1, np.searchsorted(limits, column))
            known = np.flatnonzero(~is_missing | has_missing)
            rows.append(known)
            places.append(width + place[known])
            width += len(limits) + 1 + int(has_missing)
        at = np.concatenate(rows), np.concatenate(places)
        is_there = sp.csr_matrix((np.ones(len(at[0])), at), shape=(len(shares), width))
        return sp.csr_matrix(sp.hstack([is_there, sp.csr_matrix(shares)]))

    def _parted(self, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Columns of numbers, one a row, and shares."""
        cells = np.asarray(X, dtype=np.float64)
        is_share = np.zeros(cells.shape[1], dtype=np.bool_) if self.is_share is None else np.asarray(self.is_share)
        return cells[:, ~is_share].T, cells[:, is_share]


def _limits(known: NDArray[np.float64]) -> NDArray[np.float64]:
    """Upper ends of all intervals but the last."""
    different = np.unique(known)
    if len(different) <= MOST_INTERVALS:
        lower, upper = different[:-1], different[1:]
        middle = lower / 2 + upper / 2
        return np.where((lower <= middle) & (middle < upper), middle, lower)
    return np.unique(np.quantile(known, np.arange(1, MOST_INTERVALS) / MOST_INTERVALS))


class EmptyAsZero(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # no types upstream
    """Zero in the columns in which no fitted row has a number; some classifiers cannot take an empty column.

    Examples
    --------
    >>> EmptyAsZero().fit([[np.nan, 1], [np.nan, np.nan]]).transform([[3, np.nan]]).tolist()
    [[0.0, nan]]
    """

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Find the empty columns."""
        self.is_empty_ = np.isnan(np.asarray(X, dtype=np.float64)).all(axis=0)
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Replace them."""
        return np.where(self.is_empty_, 0.0, np.asarray(X, dtype=np.float64))


class Weighted(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # no types upstream
    """Pieces made smaller by a factor, so that a penalty on coefficients weighs more on them than on whole columns.

    Parameters
    ----------
    is_piece : array_like of bool or None
        Of the first columns; further ones, such as those that say what is missing, are no pieces.
    factor : float, default=0.3

    Examples
    --------
    >>> Weighted([False, True], 0.5).fit_transform(np.array([[2.0, 2.0, 2.0]])).tolist()
    [[2.0, 1.0, 2.0]]
    """

    def __init__(self, is_piece: ArrayLike | None = None, factor: float = 0.3) -> None:
        self.is_piece = is_piece
        self.factor = factor

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Do nothing: the factor is given."""
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Multiply the pieces."""
        numbers = np.array(X, dtype=np.float64)
        if self.is_piece is not None:
            numbers[:, np.flatnonzero(self.is_piece)] *= self.factor
        return numbers


class WithoutPieces(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # no types upstream
    """All columns but pieces: a tree finds cuts by itself, and naive Bayes would count a column many times.

    Examples
    --------
    >>> WithoutPieces([False, True]).fit_transform(np.array([[2.0, 1.0]])).tolist()
    [[2.0]]
    """

    def __init__(self, is_piece: ArrayLike | None = None) -> None:
        self.is_piece = is_piece

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Do nothing: the columns are given."""
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Leave the pieces out."""
        numbers = np.asarray(X, dtype=np.float64)
        return numbers if self.is_piece is None else numbers[:, ~np.asarray(self.is_piece)]


def _linear(encoded: Encoded | None, classifier: Any) -> Any:
    """Missing numbers become the mean, with a column that says so; all columns get the same spread, pieces a third."""
    imputer = SimpleImputer(strategy="mean", add_indicator=True, keep_empty_features=True)
    return make_pipeline(imputer, StandardScaler(), Weighted(_pieces(encoded)), classifier)


def _of_whole_columns(encoded: Encoded | None, *steps: Any) -> Any:
    return make_pipeline(WithoutPieces(_pieces(encoded)), *steps)


def _pieces(encoded: Encoded | None) -> Flags | None:
    return None if encoded is None else encoded.is_piece


def _logistic_regression(seed: int, encoded: Encoded | None) -> Any:
    return _linear(encoded, LogisticRegression(C=0.03, max_iter=200, random_state=seed))


def _naive_bayes(seed: int, encoded: Encoded | None) -> Any:
    is_share = None if encoded is None else encoded.is_share[~encoded.is_piece]
    return _of_whole_columns(encoded, Intervals(is_share), MultinomialNB())


def _random_forest(seed: int, encoded: Encoded | None) -> Any:
    forest = RandomForestClassifier(50, min_samples_leaf=5, n_jobs=1, random_state=seed)
    return _of_whole_columns(encoded, forest)


def _linear_svm(seed: int, encoded: Encoded | None) -> Any:
    return _linear(encoded, LinearSVC(C=0.01, dual="auto", tol=1e-3, random_state=seed))


def _c45(seed: int, encoded: Encoded | None) -> Any:
    return _of_whole_columns(encoded, C45Classifier(categorical_features=None))


def _gradient_boosting(seed: int, encoded: Encoded | None) -> Any:
    boosting = HistGradientBoostingClassifier(max_iter=60, learning_rate=0.15, early_stopping=False, random_state=seed)
    return _of_whole_columns(encoded, EmptyAsZero(), boosting)


CLASSIFIERS: Mapping[str, NamedClassifier] = {
    classifier.name: classifier
    for classifier in (
        NamedClassifier("logistic-regression", "logistic regression", _logistic_regression),
        NamedClassifier("naive-bayes", "naive Bayes", _naive_bayes),
        NamedClassifier("random-forest", "random forest", _random_forest),
        NamedClassifier("linear-svm", "linear SVM", _linear_svm),
        NamedClassifier("c45", "C4.5", _c45),
        NamedClassifier("gradient-boosting", "gradient boosting", _gradient_boosting),
    )
}
DEFAULT_CLASSIFIERS: tuple[str, ...] = tuple(CLASSIFIERS)


def checked_classifiers(names: Sequence[str]) -> tuple[str, ...]:
    """Refuse anything but one or more different names of known classifiers.

    Examples
    --------
    >>> checked_classifiers(["c45", "naive-bayes"])
    ('c45', 'naive-bayes')
    """
    allowed = f"one or more of {', '.join(CLASSIFIERS)}"
    if isinstance(names, str) or not all(isinstance(name, str) for name in names) or not len(names):
        raise InvalidParameterError("classifiers", f"got {names!r}", allowed=allowed)
    for name in names:
        if name not in CLASSIFIERS:
            raise InvalidParameterError("classifiers", f"got '{name}'", allowed=allowed)
    if len(set(names)) < len(names):
        raise InvalidParameterError("classifiers", "some are named twice", allowed=allowed)
    return tuple(names)
