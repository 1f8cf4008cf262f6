r"""Risks by the sizes of classes alone: prosecutor, journalist and marketer, as far as released rows show them.

Definitions in :mod:`sfumato.attack.reidentification`.

References
----------
.. [BF98] Benedetti, Franconi: Statistical and technological solutions for controlled data dissemination. NTTS 1998.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import hyp2f1

from sfumato.errors import InvalidParameterError

Ids = NDArray[np.int64]
Risks = NDArray[np.float64]

CLASS_SIZES = ((1, 1), (2, 4), (5, 9), (10, 19), (20, 49), (50, None))
"""From and to, for the distribution of class sizes."""

_DECIMALS = 12
_FEW = 50  # with larger parameters the library's function gives up, and so many terms of the series are exact


def class_size_distribution(sizes: ArrayLike) -> list[dict[str, int | None]]:
    """Count the rows and classes by the size of the class.

    Examples
    --------
    >>> class_size_distribution([1, 3, 4])[:2]
    [{'from': 1, 'to': 1, 'n_rows': 1, 'n_classes': 1}, {'from': 2, 'to': 4, 'n_rows': 7, 'n_classes': 2}]
    """
    counts = np.asarray(sizes, dtype=np.int64)
    found: list[dict[str, int | None]] = []
    for low, high in CLASS_SIZES:
        inside = counts[(counts >= low) & (counts <= (high if high is not None else counts.max(initial=low)))]
        found.append({"from": low, "to": high, "n_rows": int(inside.sum()), "n_classes": len(inside)})
    return found


def risks_of_classes(sizes: ArrayLike, *, sample_fraction: float | None = None) -> dict[str, Any]:
    r"""Risks by the sizes of classes alone.

    Parameters
    ----------
    sizes : array_like of int
        Released rows of each class, :math:`f_j`.
    sample_fraction : float or None
        Share of the population that was released; ``None`` takes the release for the population. The people of the
        population in each class, :math:`F_j \ge f_j`, are then unknown, and
        :math:`E[1/F_j \mid f_j]` takes the place of :math:`1/F_j`, see :func:`expected_inverse_population_size`.

    Returns
    -------
    dict
        ``prosecutor`` and ``journalist`` with ``highest`` and ``mean`` (over released rows), and ``marketer``: the
        share of rows expected to be named rightly when each is given one of the population's people in its class.

    Examples
    --------
    >>> found = risks_of_classes([1, 3])
    >>> found["prosecutor"], found["marketer"]
    ({'highest': 1.0, 'mean': 0.5}, 0.5)
    """
    released = np.asarray(sizes, dtype=np.int64)
    if (released < 1).any():
        raise InvalidParameterError("sizes", "some are not", allowed="at least 1")
    if sample_fraction is not None:
        inverse = expected_inverse_population_size(released, sample_fraction)
    else:
        inverse = 1 / released
    journalist = highest_and_mean(np.repeat(inverse, released))
    return {
        "prosecutor": highest_and_mean(np.repeat(1 / released, released)),
        "journalist": journalist,
        "marketer": journalist["mean"],
    }


def expected_inverse_population_size(sizes: ArrayLike, sample_fraction: float) -> Risks:
    r"""Risk :math:`E[1/F \mid f]` of a row whose class has f rows in a sample of a known fraction p.

    With a negative binomial F, as in [BF98]_ and mu-Argus:
    :math:`\sum_{F \ge f} \binom{F-1}{f-1} p^f (1-p)^{F-f} / F = (p/f)\; {}_2F_1(1, 1; f + 1; 1 - p)`. For p = 1 it is
    1/f. It is above p/f: a class that is small in the sample may be small in the population.

    Raises
    ------
    InvalidParameterError
        If the fraction is not above 0 and at most 1.

    Examples
    --------
    >>> expected_inverse_population_size([1, 2], 0.5).round(3).tolist()
    [0.693, 0.307]
    """
    if isinstance(sample_fraction, bool) or not 0 < sample_fraction <= 1:
        problem = f"got {sample_fraction!r}"
        raise InvalidParameterError("sample_fraction", problem, allowed="a number above 0 and at most 1")
    counts, rest = np.asarray(sizes, dtype=np.float64), 1 - sample_fraction
    few = hyp2f1(1.0, 1.0, np.minimum(counts, _FEW) + 1, rest)
    many, term = np.ones_like(counts), np.ones_like(counts)
    for n in range(_FEW):
        term = term * (n + 1) * rest / (np.maximum(counts, _FEW) + 1 + n)
        many = many + term
    return np.asarray(sample_fraction / counts * np.where(counts <= _FEW, few, many), dtype=np.float64)


def highest_and_mean(risks: Risks) -> dict[str, float]:
    """Highest and mean risk; 0 of nobody."""
    return {"highest": float(risks.max(initial=0.0)), "mean": mean_risk(risks, len(risks))}


def mean_risk(risks: Risks, n_units: int) -> float:
    """Mean risk of so many people or rows; those without a risk of their own are not in the release and run none.

    Written in so many digits that the order of a sum does not show, and never above the highest risk: 1/6 would be
    rounded up.

    Examples
    --------
    >>> mean_risk(np.array([1 / 6, 1 / 6]), 2) <= 1 / 6, mean_risk(np.array([0.5]), 2)
    (True, 0.25)
    """
    return min(round(float(risks.sum()) / max(n_units, 1), _DECIMALS), float(risks.max(initial=0.0)))
