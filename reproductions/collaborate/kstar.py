r"""K*, an instance-based classifier with an entropic distance, for features with listed values.

A value stays what it is with probability s and else becomes any of the m values, so that value a becomes b with
:math:`P(b|a) = s\,[a = b] + (1 - s)/m`; of a row it is the product over the features. A row's class is the one whose
training rows have the largest sum of probabilities. For each feature and value, s is chosen such that the effective
number of training rows :math:`(\sum p)^2 / \sum p^2` lies the *blend* of the way from the rows with that value to all
rows [CT95]_. As in Weka, it is searched for by halving, from 1 - blend on, to a hundredth of a row.

References
----------
.. [CT95] Cleary, Trigg: K*: An Instance-based Learner Using an Entropic Distance Measure. ICML 1995, 108-114.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.integer]
Numbers = NDArray[np.float64]

BLEND = 0.2
_LEAST_STAY, _MOST_STAY = 0.005, 0.995
_ACCURACY, _MOST_STEPS = 0.01, 40


def effective_rows(counts: Codes, value: int, stay: float) -> float:
    """Effective number of rows of these counts that a value becomes, if it stays with this probability.

    Examples
    --------
    >>> effective_rows(np.array([6, 4]), 0, 0.0), effective_rows(np.array([6, 4]), 0, 1.0)
    (10.0, 6.0)
    """
    probabilities = np.full(len(counts), (1 - stay) / len(counts))
    probabilities[value] += stay
    squares = float(counts @ probabilities**2)
    return float(counts @ probabilities) ** 2 / squares if squares else 0.0


def stay_probability(counts: Codes, value: int, blend: float = BLEND) -> float:
    """Probability with which a value stays what it is, given how many training rows have each value."""
    aim = counts[value] + (counts.sum() - counts[value]) * blend
    if effective_rows(counts, value, _MOST_STAY) > aim:
        return _MOST_STAY
    low, high, stay = _LEAST_STAY, _MOST_STAY, 1 - blend
    for _ in range(_MOST_STEPS):
        beyond = effective_rows(counts, value, stay) - aim
        if abs(beyond) <= _ACCURACY:
            break
        low, high = (stay, high) if beyond > 0 else (low, stay)
        stay = (low + high) / 2
    return stay


def kstar_classes(
    codes: Codes, n_values: Sequence[int], target: Codes, train: NDArray[np.bool_], blend: float = BLEND
) -> Codes:
    """Classify the rows outside ``train`` by those in it; of equally likely classes the first.

    Parameters
    ----------
    codes : array of shape (n_rows, n_features)
    n_values : sequence of int
        Declared values of each feature, whether they occur or not.
    """
    test = codes[~train]
    probabilities: Numbers = np.ones((len(test), int(train.sum())))
    for feature, size in enumerate(n_values):
        known = codes[train, feature]
        counts = np.bincount(known, minlength=size)
        becomes = np.empty((size, size))
        for value in range(size):
            stay = stay_probability(counts, value, blend)
            becomes[value] = (1 - stay) / size
            becomes[value, value] += stay
        probabilities *= becomes[test[:, feature]][:, known]
    by_class = np.zeros((len(test), int(target.max()) + 1))
    for place, label in enumerate(target[train].tolist()):
        by_class[:, label] += probabilities[:, place]
    return np.asarray(by_class.argmax(axis=1))
