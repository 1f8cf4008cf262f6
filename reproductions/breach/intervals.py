"""Means over seeds with their intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

LEVEL = 0.95


def half_width(values: Sequence[float]) -> float:
    """Half of the interval of the mean of independent values, by the t distribution."""
    n_values = len(values)
    spread = float(np.std(values, ddof=1)) / n_values**0.5
    return float(stats.t.ppf((1 + LEVEL) / 2, n_values - 1) * spread)


def half_width_over_folds(scores: Sequence[float]) -> float:
    """Half of the interval of a mean over the folds of one cross-validation, corrected for their common rows."""
    n_folds = len(scores)
    variance = float(np.var(scores, ddof=1)) * (1 / n_folds + 1 / (n_folds - 1))
    return float(stats.t.ppf((1 + LEVEL) / 2, n_folds - 1) * variance**0.5)


def mean_with_interval(values: Sequence[float]) -> str:
    """Mean ± half of its interval; of one value that value."""
    mean = float(np.mean(values))
    return f"{mean:.2f}" if len(values) == 1 else f"{mean:.2f} ± {half_width(values):.2f}"
