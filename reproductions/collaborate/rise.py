r"""Which ρ may have given Table II: the relative rise of what remains, compared with the text's over random splits.

The printed formula is that of a rise. With :math:`h(D) = H(D)/M_D`, the entropy of a table's columns over the largest
that they could have, :math:`\rho(D, D') = h(D')/h(D) - 1`, missing cells left out of their column. **It is no measure
of privacy**: dropping a column of little entropy raises it, dropping the most revealing one lowers it. It is computed
here to find out what was printed, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.measures.information import entropy_bits

Codes = NDArray[np.intp]
Numbers = NDArray[np.float64]

MISSING = -1


@dataclass(frozen=True)
class Fit:
    """How well splits agree with the nine printed steps.

    Parameters
    ----------
    chi_squared : float
        Sum of squared differences of the printed steps from the mean over the splits, over their variances.
    chi_squared_together : float
        The same with the covariances of the steps: steps of one split hang together.
    share_content : float
        Splits in which the threshold is reached by every party after the last step.
    """

    chi_squared: float
    chi_squared_together: float
    share_content: float


def _shares(rows: Codes, n_values: Sequence[int]) -> tuple[Numbers, Numbers]:
    """Entropy of each column without missing cells, and the largest that it could have."""
    columns = [column[column != MISSING] for column in rows.T]
    counts = [np.bincount(column, minlength=size) for column, size in zip(columns, n_values, strict=True)]
    return np.array([entropy_bits(of_values) for of_values in counts]), np.log2(n_values)


def rises(rows: Codes, n_values: Sequence[int], removed: Sequence[int]) -> list[float]:
    """Relative rise of what remains after each removal.

    Examples
    --------
    >>> even, fixed = [0, 1, 0, 1], [0, 0, 0, 0]
    >>> rises(np.array([even, fixed]).T, [2, 2], [1]), rises(np.array([even, fixed, even]).T, [2, 2, 2], [0])
    ([1.0], [-0.25])
    """
    entropies, most = _shares(rows, n_values)
    whole = entropies.sum() / most.sum()
    found = []
    for n in range(1, len(removed) + 1):
        kept = np.setdiff1d(np.arange(len(n_values)), removed[:n])
        found.append(float(entropies[kept].sum() / most[kept].sum() / whole - 1))
    return found


def text_gains(rows: Codes, n_values: Sequence[int], removed: Sequence[int]) -> list[float]:
    """Gain by the text's ρ after each removal, missing cells left out."""
    entropies, most = _shares(rows, n_values)
    return [float(gain) for gain in np.cumsum(entropies[list(removed)]) / most.sum()]


def fit(splits: Numbers, printed: Numbers, threshold: float) -> Fit:
    """Compare gains of many splits, of shape (splits, parties, removals), with the printed ones."""
    steps, wanted = _steps(splits).reshape(len(splits), -1), _steps(printed).ravel()
    away = wanted - steps.mean(axis=0)
    together = float(away @ np.linalg.solve(np.cov(steps.T), away))
    content = float((splits[:, :, -1].min(axis=1) >= threshold).mean())
    return Fit(float((away**2 / steps.var(axis=0, ddof=1)).sum()), together, content)


def _steps(gains: Numbers) -> Numbers:
    return np.diff(gains, axis=-1, prepend=0.0)
