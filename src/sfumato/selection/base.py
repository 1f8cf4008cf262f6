"""What all feature selectors under a containment promise share: the scikit-learn contract and the way to a release."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.contract import Progress, Release
from sfumato.counting.bitsets import distinct_rows, ones_by_class
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.guarantees import Containment
from sfumato.manifest import AnyTable, draft_manifest
from sfumato.measures.anonymity import anonymity_level, sample_unique_fraction
from sfumato.measures.containment import containment_level
from sfumato.measures.separation import distinguished_pairs, hamming_separation
from sfumato.table.binarize import BinarizePlan, binarize
from sfumato.table.binary import as_binary_matrix
from sfumato.table.coding import Table


@dataclass(frozen=True)
class Labelled:
    """A canonical binary matrix with its classes as codes: what a search works on."""

    matrix: sp.csc_matrix
    classes: NDArray[np.int32]
    n_classes: int


@dataclass(frozen=True)
class Step:
    """One feature that a search looked at: its gain as a share of the pairs of different classes, and the verdict."""

    feature: int
    gain: float
    accepted: bool


class ContainmentSelector(SelectorMixin, BaseEstimator, metaclass=ABCMeta):  # type: ignore[misc]  # no types upstream
    """Base of selectors whose projection must stay k-anonymous by containment.

    A subclass supplies ``_search``. ``fit`` follows scikit-learn; ``release`` turns a table into a
    :class:`~sfumato.contract.Release`.
    """

    mechanism_name: ClassVar[str]
    k: int
    binarize: BinarizePlan | Mapping[str, Any] | None

    @abstractmethod
    def _search(self, data: Labelled, progress: Progress | None) -> list[Step]:
        """Look at features in turn; the accepted ones are the selection."""

    def _check_parameters(self, n_rows: int) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int | np.integer) or self.k < 1:
            raise InvalidParameterError("k", f"got {self.k!r}", allowed="a whole number of at least 1")
        if self.k > n_rows:
            raise PrivacyNotAchievableError(
                f"containment with k = {self.k} on {n_rows:,} rows",
                best_level=n_rows,
                hint="k is at most the row count",
            )

    def fit(self, X: Any, y: Any) -> Self:
        """Choose the features of a 0/1 matrix (dense, sparse or a data frame) for the classes ``y``."""
        X, y = validate_data(self, X, y, accept_sparse="csc", dtype="numeric", ensure_min_samples=1)
        check_classification_targets(y)
        matrix = as_binary_matrix(X, getattr(self, "feature_names_in_", None))
        self.classes_, classes = np.unique(y, return_inverse=True)
        self._fit(Labelled(matrix, classes.astype(np.int32), len(self.classes_)), None)
        return self

    def _fit(self, data: Labelled, progress: Progress | None) -> None:
        self._check_parameters(data.matrix.shape[0])
        if data.n_classes < 2:
            problem = "the target has one class only; a selection for classification needs at least two"
            raise SchemaError(problem, hint="choose another target column")
        self.n_features_in_ = data.matrix.shape[1]
        self.trace_ = self._search(data, progress)
        self.selected_columns_ = np.array(sorted(s.feature for s in self.trace_ if s.accepted), dtype=np.intp)
        self.containment_level_ = containment_level(data.matrix[:, self.selected_columns_])

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "selected_columns_")
        mask = np.zeros(self.n_features_in_, dtype=np.bool_)
        mask[self.selected_columns_] = True
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def release(self, table: AnyTable, *, progress: Progress | None = None) -> Release:
        """Select the binary features of a table and describe the result.

        Raises
        ------
        PrivacyNotAchievableError
            If no feature can be released at this k.
        """
        binary = binarize(table, self._plan()) if isinstance(table, Table) else table
        target = binary.target()
        data = Labelled(binary.matrix, target.codes, target.n_distinct)
        self._fit(data, progress)
        if not len(self.selected_columns_):
            best = int(np.diff(binary.matrix.indptr).max(initial=0))
            raise PrivacyNotAchievableError(
                f"a release of at least one of {len(binary.features):,} features at k = {self.k}",
                best_level=best,
                hint="lower k, or binarize into broader bands",
            )
        released = binary.select(self.selected_columns_)
        return Release(
            released,
            draft_manifest(
                table,
                released,
                mechanism=self.mechanism_name,
                parameters=self._parameters(),
                guarantees=[Containment(int(self.k), released.feature_names)],
                evidence=_evidence(data, self.selected_columns_, self.containment_level_),
            ),
        )

    def _plan(self) -> BinarizePlan | None:
        plan = self.binarize
        return plan if plan is None or isinstance(plan, BinarizePlan) else BinarizePlan.from_dict(plan)

    def _parameters(self) -> dict[str, Any]:
        plan = self._plan()
        parameters: dict[str, Any] = self.get_params(deep=False)
        return parameters | {"binarize": plan.to_dict() if plan else None}


def _evidence(data: Labelled, chosen: NDArray[np.intp], level: int) -> dict[str, Any]:
    """Compute the utility kept (beside what all features have) and the risk left."""
    sizes = np.bincount(data.classes, minlength=data.n_classes).astype(np.int64)
    ones = ones_by_class(data.matrix, data.classes, data.n_classes)
    everything = distinct_rows(data.matrix)
    kept = distinct_rows(data.matrix[:, chosen])
    return {
        "utility": {
            "n_features_offered": data.matrix.shape[1],
            "n_features_released": len(chosen),
            "hamming_separation": hamming_separation(ones[:, chosen], sizes),
            "hamming_separation_of_all_features": hamming_separation(ones, sizes),
            "distinguished_pairs_fraction": distinguished_pairs(_group_classes(kept.inverse, data)),
            "distinguished_pairs_fraction_of_all_features": distinguished_pairs(
                _group_classes(everything.inverse, data)
            ),
        },
        "risk": {
            "containment_level": level,
            "anonymity_level": anonymity_level(kept.counts),
            "unique_pattern_fraction": sample_unique_fraction(kept.counts),
            "unique_pattern_fraction_of_all_features": sample_unique_fraction(everything.counts),
        },
    }


def _group_classes(groups: NDArray[np.intp], data: Labelled) -> NDArray[np.int64]:
    n_groups = int(groups.max(initial=-1)) + 1
    cells = np.bincount(groups * data.n_classes + data.classes, minlength=n_groups * data.n_classes)
    return cells.reshape(n_groups, data.n_classes)
