"""Which columns a fitted selector keeps, as scikit-learn asks for it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted


class ChosenColumns(SelectorMixin):  # type: ignore[misc]  # no types upstream
    """A selector that holds the places of its columns in ``selected_columns_``."""

    selected_columns_: NDArray[np.intp]
    n_features_in_: int

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "selected_columns_")
        mask = np.zeros(self.n_features_in_, dtype=np.bool_)
        mask[self.selected_columns_] = True
        return mask
