"""Performance against breach against size: E(S), the regions of the PBI-Perf plane and the Pareto front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from sfumato.errors import InvalidParameterError, SchemaError

Numbers = NDArray[np.float64]
Ranks = NDArray[np.int64]

_DECIMALS = 12  # numbers that agree to so many decimals are ties
_SCORE_DECIMALS = 9
_WEIGHT_ROUNDING = 0.0015  # three weights printed to three decimals, as in Table 6: their sum is 1 within this


class EvaluationWeights(NamedTuple):
    """What counts how much in E(S): w1, w2 and w3 of [PBI17]_."""

    performance: float = 1 / 3
    privacy: float = 1 / 3
    size: float = 1 / 3


@dataclass(frozen=True)
class Factor:
    """What subsets are compared by: a number for every one, its weight, and whether more is better.

    A further factor of E(S) has its weight in addition to those of the three.
    """

    values: Sequence[float]
    weight: float
    higher_is_better: bool = True


@dataclass(frozen=True, eq=False)
class Evaluation:
    """E(S) of subsets.

    Parameters
    ----------
    scores : array of float
        E(S) of every subset; higher is better.
    ranks : mapping of str to array of int
        Of every factor the rank of every subset: 1 is the worst, equal ones share the lowest.
    order : tuple of int
        All subsets, best first; equal scores by fewest columns, then as given.
    weights : mapping of str to float
        Weights as used.
    note : str
        What was done to the weights; empty if nothing.
    """

    scores: Numbers
    ranks: Mapping[str, Ranks]
    order: tuple[int, ...]
    weights: Mapping[str, float]
    note: str = ""

    @property
    def best(self) -> int:
        """Subset with the highest E(S)."""
        return self.order[0]


def evaluation_scores(
    performance: ArrayLike,
    breach: ArrayLike,
    size: ArrayLike,
    weights: Sequence[float] = EvaluationWeights(),
    *,
    extra: Mapping[str, Factor] | None = None,
) -> Evaluation:
    """Evaluate subsets by the weighted sum of their ranks: E(S) = w1·prf + w2·prv + w3·num.

    Equations 4 and 5 of [PBI17]_. Ranks are taken among all given subsets, so the baseline belongs among them, and
    E(S) of one subset changes with the others.

    Parameters
    ----------
    performance : array_like of shape (n_subsets,)
        Perf(S); higher is better.
    breach : array_like of shape (n_subsets,)
        PBI(S); lower is better.
    size : array_like of shape (n_subsets,)
        Number of columns; lower is better.
    weights : sequence of 3 float
        Of performance, privacy and size, none negative. If all weights do not sum to 1 they are divided by their sum
        and ``note`` says so; a sum within 0.0015 of 1 is taken as rounded, and left.
    extra : mapping of str to Factor or None
        Further factors by name.

    References
    ----------
    .. [PBI17] Jafer, Matwin, Sokolova: A Multi-dimensional Privacy-aware Evaluation Function in Automatic Feature
       Selection. Transactions on Data Privacy 10 (2017).

    Examples
    --------
    >>> found = evaluation_scores([73.8, 74.9, 73.0], [0.0, 1.4, -1.1], [8, 7, 1], weights=(0.5, 0.25, 0.25))
    >>> found.scores.tolist(), found.order
    ([1.75, 2.25, 2.0], (1, 2, 0))
    """
    if not isinstance(weights, Sequence | np.ndarray) or isinstance(weights, str) or len(weights) != 3:
        got = (
            f"got {len(weights)}"
            if isinstance(weights, tuple | list)
            else f"got an object of type {type(weights).__name__}"
        )
        raise InvalidParameterError("weights", got, allowed="three: performance, privacy, size")
    better_when_high = {
        "performance": _numbers("performance", performance),
        "privacy": -_numbers("breach", breach),
        "size": -_numbers("size", size),
    }
    given = {name: _weight(name, one) for name, one in zip(better_when_high, weights, strict=True)}
    for name, factor in (extra or {}).items():
        if name in given:
            raise InvalidParameterError(
                "extra", f"'{name}' is there already", allowed="factors with names of their own"
            )
        values = _numbers(name, factor.values)
        better_when_high[name] = values if factor.higher_is_better else -values
        given[name] = _weight(name, factor.weight)
    _check_lengths(better_when_high)
    used, note = weights_that_sum_to_one(given)
    ranks = {name: rankdata(values, method="min").astype(np.int64) for name, values in better_when_high.items()}
    scores = np.sum([used[name] * ranks[name] for name in ranks], axis=0)
    order = np.lexsort((-better_when_high["size"], -scores.round(_SCORE_DECIMALS)))
    return Evaluation(scores, ranks, tuple(order.tolist()), used, note)


def breach_increase_percent(attacker_score: float, baseline_score: float) -> float:
    """Privacy breach increase (PBI): by how many percent an attacker does better than with the baseline columns.

    Definition 1 of [PBI17]_, and Definition 2 where the sensitive column is the target. Lower is safer; with the share
    of the most frequent sensitive value (DistP) for the attacker's score it is the floor of what a release can reach.

    Examples
    --------
    >>> round(breach_increase_percent(74.875, 73.835), 3)
    1.409
    """
    if not 0 < baseline_score < np.inf:
        allowed = "above 0: a learner that is right at least now and then"
        raise InvalidParameterError("the attacker's score on all columns", f"got {baseline_score:g}", allowed=allowed)
    return 100 * (attacker_score / baseline_score - 1)


def majority_fraction(sensitive: ArrayLike, name: str) -> float:
    """Share of the most frequent value of a sensitive column: DistP of [PBI17]_.

    Raises
    ------
    SchemaError
        If the column has fewer than two values: nobody has anything to predict.
    """
    _, counts = np.unique(np.asarray(sensitive), return_counts=True)
    if len(counts) < 2:
        problem = f"the sensitive column has {len(counts)} different values, so there is nothing to predict"
        raise SchemaError(problem, column=name, hint="choose a column with at least two")
    return float(counts.max() / counts.sum())


class Region(StrEnum):
    """Quarter of the PBI-Perf plane around the baseline (Section 3.3 of [PBI17]_)."""

    WORSE_AND_RISKIER = "I"
    BETTER_BUT_RISKIER = "II"
    WORSE_BUT_SAFER = "III"
    BETTER_AND_SAFER = "IV"


def regions(performance: ArrayLike, breach: ArrayLike, *, baseline_performance: float) -> tuple[Region, ...]:
    """Place subsets in the regions of the PBI-Perf plane.

    **Deviations.** [PBI17]_ leaves the borders open: as good as the baseline counts as better, as risky as safer, so
    the baseline itself is in region IV.

    Examples
    --------
    >>> [str(found) for found in regions([74.9, 73.0], [1.4, -1.1], baseline_performance=73.8)]
    ['II', 'III']
    """
    gains = _numbers("performance", performance, less=baseline_performance)
    increases = _numbers("breach", breach)
    _check_lengths({"performance": gains, "breach": increases})
    names = tuple(Region)
    return tuple(names[2 * (increase <= 0) + (gain >= 0)] for gain, increase in zip(gains, increases, strict=True))


def pareto_front(performance: ArrayLike, breach: ArrayLike, size: ArrayLike) -> NDArray[np.bool_]:
    """Mark the subsets that no other one beats: none is as good in all three and better in one.

    Higher performance, lower breach and fewer columns are better. Subsets equal in all three are on the front
    together or not at all.

    Notes
    -----
    Time O(n log n + n × front), the second part over whole arrays.

    Examples
    --------
    >>> pareto_front([0.9, 0.8, 0.8], [1.0, -2.0, 0.0], [3, 2, 2]).tolist()
    [True, True, False]
    """
    costs = {
        "performance": -_numbers("performance", performance),
        "breach": _numbers("breach", breach),
        "size": _numbers("size", size),
    }
    _check_lengths(costs)
    points, of_subset = np.unique(np.column_stack(list(costs.values())), axis=0, return_inverse=True)
    front = np.empty_like(points)
    n_front = 0
    on_front = np.zeros(len(points), dtype=np.bool_)
    for place, point in enumerate(points):  # sorted: whatever beats a point comes before it
        if not (front[:n_front] <= point).all(axis=1).any():
            front[n_front] = point
            n_front += 1
            on_front[place] = True
    return on_front[of_subset.reshape(-1)]


def _weight(name: str, given: object) -> float:
    if not isinstance(given, int | float | np.number):
        problem = f"got an object of type {type(given).__name__} for {name}"
        raise InvalidParameterError("weights", problem, allowed="numbers from 0")
    return float(given)


def _numbers(name: str, values: ArrayLike, *, less: float = 0.0) -> Numbers:
    try:
        found = np.asarray(values, dtype=np.float64) - less
    except (TypeError, ValueError):
        raise InvalidParameterError(name, "some are not", allowed="finite numbers, one for every subset") from None
    if found.ndim != 1 or not len(found):
        raise InvalidParameterError(name, f"got shape {found.shape}", allowed="one number for every subset")
    if not np.isfinite(found).all():
        raise InvalidParameterError(name, "some are not", allowed="finite numbers")
    return np.asarray(found.round(_DECIMALS) + 0.0)


def _check_lengths(factors: Mapping[str, Numbers]) -> None:
    lengths = {len(values) for values in factors.values()}
    if len(lengths) > 1:
        shown = ", ".join(f"{name} {len(values):,}" for name, values in factors.items())
        raise InvalidParameterError("the factors", f"got {shown}", allowed="of the same number of subsets")


def weights_that_sum_to_one(given: Mapping[str, float]) -> tuple[dict[str, float], str]:
    """Divide weights by their sum unless that is 1 but for rounding, and say what was done; refuse what cannot be."""
    for name, weight in given.items():
        if not 0 <= weight < np.inf:
            raise InvalidParameterError("weights", f"got {weight!r} for {name}", allowed="numbers from 0")
    total = sum(given.values())
    if total <= 0:
        raise InvalidParameterError("weights", "all are 0", allowed="above 0 for at least one factor")
    if abs(total - 1) <= _WEIGHT_ROUNDING:
        return dict(given), ""
    used = {name: weight / total for name, weight in given.items()}
    return used, f"the weights summed to {total:g} and were divided by it"
