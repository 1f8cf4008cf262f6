r"""C4.5 trees as scikit-learn estimators.

References
----------
.. [Q93] Quinlan: C4.5: Programs for Machine Learning. Morgan Kaufmann 1993.
.. [Q96] Quinlan: Improved Use of Continuous Attributes in C4.5. JAIR 4 (1996) 77-90.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import InvalidParameterError
from sfumato.learning.columns import Categorical
from sfumato.learning.criteria import Criterion, Entropy, Several, Variance
from sfumato.learning.estimator import TreeEstimator, first_of_most, is_number, of_nodes_with_rows, rounded
from sfumato.learning.grow import grow
from sfumato.learning.pruning import collapse, prune
from sfumato.learning.splits import SMALL

Numbers = NDArray[np.float64]


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
        Columns that are split into all their values: those of a DataFrame that hold text, truth values or categories
        (``"from_dtype"``), those listed by name, position or a truth value each, or none.

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
    ) -> None:
        self.min_samples_leaf = min_samples_leaf
        self.confidence = confidence
        self.pruned = pruned
        self.subtree_raising = subtree_raising
        self.max_depth = max_depth
        self.categorical_features = categorical_features

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
        tree = grow(columns, statistics, criterion, min_leaf=self.min_samples_leaf, max_depth=self.max_depth)
        tree = collapse(tree, criterion)
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
    """Regression tree with the splits of C4.5: multiway on categories, missing values in shares.

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
    ) -> None:
        self.min_samples_leaf = min_samples_leaf
        self.max_depth = max_depth
        self.categorical_features = categorical_features

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
        self.tree_ = grow(columns, statistics, criterion, min_leaf=self.min_samples_leaf, max_depth=self.max_depth)
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
