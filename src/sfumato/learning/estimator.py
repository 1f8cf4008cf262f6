"""What the tree estimators share: the way from a DataFrame to coded columns, and questions about the tree."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from sfumato.errors import InvalidParameterError
from sfumato.learning.columns import cells_by_name, learn_codings, refuse_repeated_names
from sfumato.learning.descent import shares_of_leaves
from sfumato.learning.drawing import draw
from sfumato.learning.splits import SMALL
from sfumato.learning.tree import Tree, TreeColumn

Numbers = NDArray[np.float64]


class TreeEstimator(BaseEstimator):  # type: ignore[misc]  # no types upstream
    """What classifier and regressor share: the way from a DataFrame to coded columns, and questions about the tree."""

    tree_: Tree

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        check_is_fitted(self)
        return self.tree_.n_leaves

    def get_depth(self) -> int:
        """Return the largest number of splits above a leaf."""
        check_is_fitted(self)
        return self.tree_.depth

    def describe(self) -> str:
        """Draw the tree as text, one line a branch; the values of categories in it are the data's."""
        check_is_fitted(self)
        names = [coding.name for coding in self._codings]
        categories = [
            None if c.values is None else [str(value) for value in c.values.to_pylist()] for c in self._codings
        ]
        return draw(self.tree_, names, categories, self._leaf_texts())

    @property
    def n_nodes_(self) -> int:
        """Number of nodes, leaves included."""
        return self.tree_.n_nodes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _checked(self, X: Any, y: Any, **y_checks: bool) -> tuple[dict[str, pa.Array], NDArray[Any]]:
        refuse_repeated_names(X)
        if _is_frame(X):
            validate_data(self, X, y, skip_check_array=True)
            cells = cells_by_name(X)
            _, y = check_X_y(np.zeros((len(X), len(cells))), y, estimator=self, **y_checks)
            return cells, y
        X, y = validate_data(self, X, y, dtype=None, ensure_all_finite="allow-nan", **y_checks)
        return cells_by_name(X), y

    def _learn(
        self, cells: dict[str, pa.Array], sample_weight: ArrayLike | None, n_rows: int
    ) -> tuple[list[TreeColumn], Numbers, NDArray[np.bool_]]:
        """Return the columns and weights of the rows that have weight, and which these are."""
        weights = _checked_weights(sample_weight, n_rows)
        has_weight = weights > 0
        if not has_weight.all():
            cells = {name: given.filter(pa.array(has_weight)) for name, given in cells.items()}
        self._codings = learn_codings(cells, self.categorical_features)
        return [coding.encode(cells[coding.name]) for coding in self._codings], weights[has_weight], has_weight

    def _encode(self, X: Any) -> list[TreeColumn]:
        check_is_fitted(self)
        if _is_frame(X):
            validate_data(self, X, reset=False, skip_check_array=True)
        else:
            X = validate_data(self, X, reset=False, dtype=None, ensure_all_finite="allow-nan")
        given = cells_by_name(X).values()
        return [coding.encode(cells) for coding, cells in zip(self._codings, given, strict=True)]

    def _leaf_means(self, X: Any, of_node: Numbers) -> Numbers:
        """Average what nodes answer over the leaves of each row, by the shares in which it reaches them."""
        columns = self._encode(X)
        reached = shares_of_leaves(self.tree_, columns)
        n_rows = len(columns[0].codes)
        weighted = of_node[reached.nodes] * reached.shares[:, None]
        means = np.stack([np.bincount(reached.rows, weights=part, minlength=n_rows) for part in weighted.T], axis=1)
        return np.asarray(means / np.bincount(reached.rows, weights=reached.shares, minlength=n_rows)[:, None])

    def _check_growth(self) -> None:
        least, most, listed = self.min_samples_leaf, self.max_depth, self.categorical_features
        if not is_number(least) or not least > 0:
            raise InvalidParameterError("min_samples_leaf", f"got {least!r}", allowed="above 0")
        if most is not None and (not is_number(most) or isinstance(most, float) or most < 0):
            raise InvalidParameterError("max_depth", f"got {most!r}", allowed="0 or more, or None")
        if not (listed is None or isinstance(listed, str) or np.ndim(listed) == 1):
            allowed = "'from_dtype', None, or names, positions or truth values of columns"
            raise InvalidParameterError("categorical_features", f"got {listed!r}", allowed=allowed)


def _checked_weights(sample_weight: ArrayLike | None, n_rows: int) -> Numbers:
    if sample_weight is None:
        return np.ones(n_rows)
    weights = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weights.shape != (n_rows,):
        problem = f"got the shape {weights.shape}"
        raise InvalidParameterError("sample_weight", problem, allowed=f"one number for each of {n_rows:,} rows")
    if weights.min() < 0 or not weights.any():
        problem = "some are negative" if weights.min() < 0 else "all are zero"
        raise InvalidParameterError("sample_weight", problem, allowed="zero or more, and more for some row")
    return np.asarray(weights)


def of_nodes_with_rows(tree: Tree) -> Numbers:
    """Statistics of each node, or of its parent where no training row reached it."""
    is_empty = tree.weights < SMALL
    return tree.statistics[np.where(is_empty, tree.parent, np.arange(tree.n_nodes))]


def is_number(given: object) -> bool:
    """Whether a parameter is a number; truth values are none."""
    return isinstance(given, int | float | np.integer | np.floating) and not isinstance(given, bool)


def first_of_most(amounts: Numbers) -> NDArray[np.intp]:
    """Place of the largest amount in each row: the first of those that differ by rounding only.

    As J48 compares: an amount takes the lead when it is larger by more than 1e-6.

    Examples
    --------
    >>> first_of_most(np.array([[0.3, 0.1 + 0.2], [0.2, 0.8]])).tolist()
    [0, 1]
    """
    place, most = np.zeros(len(amounts), dtype=np.intp), amounts[:, 0]
    for number, column in enumerate(amounts.T):
        is_more = column > most + SMALL
        place[is_more] = number
        most = np.where(is_more, column, most)
    return place


def rounded(weight: float) -> str:
    """Write a weight as J48 does."""
    return str(round(weight, 2))


def _is_frame(X: Any) -> bool:
    return isinstance(nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame)
