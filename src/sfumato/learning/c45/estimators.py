r"""C4.5 trees as scikit-learn estimators.

References
----------
.. [Q93] Quinlan: C4.5: Programs for Machine Learning. Morgan Kaufmann 1993.
.. [Q96] Quinlan: Improved Use of Continuous Attributes in C4.5. JAIR 4 (1996) 77-90.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, get_args

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from sfumato.errors import InvalidParameterError
from sfumato.learning.c45.criteria import Criterion, Entropy, Several, Variance
from sfumato.learning.c45.descent import shares_of_leaves
from sfumato.learning.c45.grow import grow
from sfumato.learning.c45.pruning import collapse, prune
from sfumato.learning.c45.splits import SMALL, SplitWays
from sfumato.learning.c45.tree import (
    EVERY_VALUE,
    LEAF,
    Categorical,
    Tree,
    TreeColumn,
    cells_by_name,
    learn_codings,
    refuse_repeated_names,
)

# A tree as indented text, in the manner of Weka's J48.


INDENT = "|   "


def draw(tree: Tree, names: Sequence[str], categories: Sequence[Sequence[str] | None], leaves: Sequence[str]) -> str:
    """Write one line a branch, the branches of a node one step further in, and the counts below.

    Parameters
    ----------
    names : sequence of str
        Names of the columns.
    categories : sequence
        The values of each categorical column in the order of its codes, ``None`` for a numeric one.
    leaves : sequence of str
        What to say of each node if it is a leaf.
    """
    lines = [f": {leaves[0]}"] if tree.n_nodes == 1 else []
    waiting = [(child, 0) for child in tree.children(0)[::-1].tolist()]
    while waiting:
        node, depth = waiting.pop()
        parent = int(tree.parent[node])
        is_leaf = tree.attribute[node] == LEAF
        test = _test(tree, parent, node - int(tree.first_child[parent]), names, categories)
        lines.append(INDENT * depth + test + (f": {leaves[node]}" if is_leaf else ""))
        waiting += [(child, depth + 1) for child in tree.children(node)[::-1].tolist()]
    return "\n".join([*lines, "", f"Number of leaves: {tree.n_leaves:,}", f"Size of the tree: {tree.n_nodes:,}"])


def _test(tree: Tree, node: int, branch: int, names: Sequence[str], categories: Sequence[Sequence[str] | None]) -> str:
    attribute = int(tree.attribute[node])
    values = categories[attribute]
    if values is not None:
        split_off = int(tree.split_off(np.array([node]))[0])
        if split_off == EVERY_VALUE:
            return f"{names[attribute]} = {values[branch]}"
        return f"{names[attribute]} {'!=' if branch else '='} {values[split_off]}"
    return f"{names[attribute]} {'>' if branch else '<='} {np.format_float_positional(tree.threshold[node], trim='-')}"


# What the tree estimators share: the way from a DataFrame to coded columns, and questions about the tree.


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

    def _grown(self, columns: list[TreeColumn], statistics: Numbers, criterion: Criterion) -> Tree:
        least, most = self.min_samples_leaf, self.max_depth
        return grow(columns, statistics, criterion, min_leaf=least, max_depth=most, splits=self.splits)

    def _check_growth(self) -> None:
        least, most, listed = self.min_samples_leaf, self.max_depth, self.categorical_features
        if self.splits not in get_args(SplitWays):
            raise InvalidParameterError("splits", f"got {self.splits!r}", allowed="'multiway' or 'binary'")
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


class C45Classifier(ClassifierMixin, TreeEstimator):  # type: ignore[misc]  # no types upstream
    """Decision tree C4.5 ([Q93]_, [Q96]_), node for node as Weka 3.6's J48 grows and prunes it.

    Parameters
    ----------
    min_samples_leaf : float, default=2
        Rows that at least two branches of a split must have.
    confidence : float, default=0.25
        Confidence of the pessimistic errors: above 0, at most 0.5; smaller prunes more.
    pruned : bool, default=True
        Whether to prune. An unpruned tree is collapsed all the same, as J48's is: branches that do not lower the
        training error become leaves.
    subtree_raising : bool, default=True
        Whether the largest branch of a node may take the node's place.
    max_depth : int or None, default=None
        Greatest number of splits above a leaf.
    categorical_features : "from_dtype", list or None, default="from_dtype"
        Columns that are split by their values: those of a DataFrame that hold text, truth values or categories
        (``"from_dtype"``), those listed by name, position or a truth value each, or none.
    splits : {"multiway", "binary"}, default="multiway"
        Whether such a column is split into all its values, or into one value and the rest, as by J48's option ``-B``.

    Attributes
    ----------
    tree_ : Tree
    classes_ : ndarray
    n_nodes_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only after fitting a DataFrame.

    Notes
    -----
    A missing value (None, not-a-number) goes down all branches with the shares of the known ones, in training and in
    prediction; so does a category that the training rows did not have. Of classes that are equally frequent but for
    rounding (1e-6) the first is predicted.

    **Deviations** from J48: numbers closer than 1e-5 are told apart if the whole column lies within less than 1 (J48
    never splits between them), and a chain of cuts whose gains differ by less than 1e-6 may end at another of them.
    Weka's evaluation lets rounding decide between classes that are equally frequent.

    Examples
    --------
    >>> X = np.array([["sunny", 85], ["sunny", 70], ["rain", 70], ["rain", 96], ["rain", 80]], dtype=object)
    >>> tree = C45Classifier(min_samples_leaf=1, pruned=False).fit(X, ["no", "yes", "yes", "yes", "yes"])
    >>> print(tree.describe())
    x0 = rain: yes (3.0)
    x0 = sunny
    |   x1 <= 70: yes (1.0)
    |   x1 > 70: no (1.0)
    <BLANKLINE>
    Number of leaves: 3
    Size of the tree: 5
    """

    def __init__(
        self,
        min_samples_leaf: float = 2,
        confidence: float = 0.25,
        pruned: bool = True,
        subtree_raising: bool = True,
        max_depth: int | None = None,
        categorical_features: Categorical = "from_dtype",
        splits: SplitWays = "multiway",
    ) -> None:
        self.min_samples_leaf = min_samples_leaf
        self.confidence = confidence
        self.pruned = pruned
        self.subtree_raising = subtree_raising
        self.max_depth = max_depth
        self.categorical_features = categorical_features
        self.splits = splits

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the tree and prune it; a row of weight 2 counts as two rows."""
        self._check_growth()
        self._check_pruning()
        cells, labels = self._checked(X, y)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        columns, weights, has_weight = self._learn(cells, sample_weight, len(labels))
        criterion = Entropy(len(self.classes_))
        statistics = criterion.statistics(codes[has_weight]) * weights[:, None]
        tree = collapse(self._grown(columns, statistics, criterion), criterion)
        self.tree_ = prune(tree, columns, statistics, self.confidence, self.subtree_raising) if self.pruned else tree
        return self

    def predict_proba(self, X: Any) -> Numbers:
        """Return the share of each class in the leaves that a row reaches."""
        check_is_fitted(self)
        counts = of_nodes_with_rows(self.tree_)
        return self._leaf_means(X, counts / counts.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most frequent class of the leaves that a row reaches."""
        places = first_of_most(self.predict_proba(X))
        return np.asarray(self.classes_[places])

    def _check_pruning(self) -> None:
        if not is_number(self.confidence) or not 0 < self.confidence <= 0.5:
            problem = f"got {self.confidence!r}"
            raise InvalidParameterError("confidence", problem, allowed="above 0 and at most 0.5")
        for name in ("pruned", "subtree_raising"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise InvalidParameterError(name, f"got {getattr(self, name)!r}", allowed="true or false")

    def _leaf_texts(self) -> list[str]:
        predicted = self.classes_[first_of_most(of_nodes_with_rows(self.tree_))]
        wrong = Entropy(len(self.classes_)).error(self.tree_.statistics)
        return [
            f"{label} ({rounded(n)}/{rounded(e)})" if e > SMALL else f"{label} ({rounded(n)})"
            for label, n, e in zip(predicted.tolist(), self.tree_.weights.tolist(), wrong.tolist(), strict=True)
        ]


class C45Regressor(RegressorMixin, TreeEstimator):  # type: ignore[misc]  # no types upstream
    """Regression tree with the splits of C4.5: multiway or binary on categories, missing values in shares.

    Every split is the one that lowers the sum of squared deviations most; it goes on while it does and leaves are large
    enough. With several targets the squares are added up, each as a share of its target's in the whole table.

    Parameters
    ----------
    min_samples_leaf : float, default=2
        Rows that both sides of a cut, or at least two branches of a split into categories, must have.
    max_depth : int or None, default=None
        Greatest number of splits above a leaf.
    categorical_features : "from_dtype", list or None, default="from_dtype"
        As in :class:`C45Classifier`.
    splits : {"multiway", "binary"}, default="multiway"
        As in :class:`C45Classifier`.

    Attributes
    ----------
    tree_ : Tree
    n_nodes_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only after fitting a DataFrame.

    Examples
    --------
    >>> tree = C45Regressor().fit([[1], [2], [8], [9]], [0.0, 1.0, 5.0, 7.0])
    >>> tree.predict([[0], [10], [np.nan]]).tolist()
    [0.5, 6.0, 3.25]
    """

    def __init__(
        self,
        min_samples_leaf: float = 2,
        max_depth: int | None = None,
        categorical_features: Categorical = "from_dtype",
        splits: SplitWays = "multiway",
    ) -> None:
        self.min_samples_leaf = min_samples_leaf
        self.max_depth = max_depth
        self.categorical_features = categorical_features
        self.splits = splits

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the tree; a row of weight 2 counts as two rows, and two-dimensional ``y`` holds several targets."""
        self._check_growth()
        cells, targets = self._checked(X, y, multi_output=True, y_numeric=True)
        columns, weights, has_weight = self._learn(cells, sample_weight, len(targets))
        kept = np.asarray(targets, dtype=np.float64)[has_weight]
        self._has_one_target = kept.ndim == 1
        kept = kept.reshape(len(kept), -1)
        self._centre = kept.mean(axis=0)
        parts = tuple(Variance() for _ in self._centre)
        statistics = np.hstack([part.statistics(t) for part, t in zip(parts, kept.T, strict=True)]) * weights[:, None]
        criterion = parts[0] if self._has_one_target else _shares_of(parts, statistics)
        self.tree_ = self._grown(columns, statistics, criterion)
        return self

    def predict(self, X: Any) -> Numbers:
        """Return the mean of the training rows in the leaves that a row reaches."""
        check_is_fitted(self)
        means = self._leaf_means(X, self._node_means())
        return means[:, 0] if self._has_one_target else means

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _node_means(self) -> Numbers:
        sums = of_nodes_with_rows(self.tree_)
        return np.asarray(self._centre + sums[:, 1::3] / sums[:, ::3])

    def _leaf_texts(self) -> list[str]:
        means = [", ".join(f"{mean:.6g}" for mean in of_node) for of_node in self._node_means().tolist()]
        return [f"{mean} ({rounded(n)})" for mean, n in zip(means, self.tree_.weights.tolist(), strict=True)]


def _shares_of(parts: tuple[Criterion, ...], statistics: Numbers) -> Several:
    totals = np.split(statistics.sum(axis=0), len(parts))
    impurities = tuple(float(part.impurity(total)) for part, total in zip(parts, totals, strict=True))
    return Several(parts, impurities, impurities)
