"""Other rankings than E(S) of sets of columns: TOPSIS and the lexicographic order, from the field of many criteria."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError
from sfumato.mechanisms.breach.tradeoff import Factor

Numbers = NDArray[np.float64]

_DECIMALS = 12  # numbers that agree to so many decimals are ties


@dataclass(frozen=True, eq=False)
class Rankings:
    """Two rankings of the same sets; place 1 is the best, and equal ones share the better place.

    Parameters
    ----------
    closeness : array of float
        Of TOPSIS, from 0 (nearest to the worst) to 1 (nearest to the best).
    topsis_places, lexicographic_places : array of int
    """

    closeness: Numbers
    topsis_places: NDArray[np.int64]
    lexicographic_places: NDArray[np.int64]


def rankings(criteria: Mapping[str, Factor]) -> Rankings:
    """Rank sets by TOPSIS and by the lexicographic order.

    E(S) adds up ranks, so how far apart two sets are does not count; TOPSIS counts it, and in the lexicographic order
    the criterion with the highest weight decides alone unless it is tied.

    Examples
    --------
    >>> found = rankings({"performance": Factor([3, 4], 0.5), "size": Factor([4, 3], 0.5, False)})
    >>> found.closeness.tolist(), found.topsis_places.tolist()
    ([0.0, 1.0], [2, 1])
    """
    _check(criteria)
    closeness = topsis(criteria)
    by_closeness = [(value,) for value in (-closeness).round(_DECIMALS).tolist()]
    return Rankings(closeness, _places(by_closeness), _places(lexicographic_keys(criteria)))


def topsis(criteria: Mapping[str, Factor]) -> Numbers:
    """Relative closeness of sets to the best of all criteria (TOPSIS, [HY81]_).

    Every criterion is divided by the root of its sum of squares and multiplied by its weight. A set's closeness is its
    distance from the worst values over the sum of its distances from the worst and from the best ones. Where all sets
    are equal in what counts, every one has 0.5.

    References
    ----------
    .. [HY81] Hwang, Yoon: Multiple Attribute Decision Making. Springer (1981), Chapter 3.
    """
    scaled = []
    for criterion in criteria.values():
        values = np.asarray(criterion.values, dtype=np.float64)
        length = float(np.sqrt((values**2).sum()))
        better_when_high = values if criterion.higher_is_better else -values
        scaled.append(criterion.weight * better_when_high / (length or 1.0))
    weighted = np.column_stack(scaled).round(_DECIMALS)
    from_best = np.sqrt(((weighted - weighted.max(axis=0)) ** 2).sum(axis=1))
    from_worst = np.sqrt(((weighted - weighted.min(axis=0)) ** 2).sum(axis=1))
    both = from_best + from_worst
    return np.asarray(np.divide(from_worst, both, out=np.full(len(both), 0.5), where=both > 0))


def lexicographic_keys(criteria: Mapping[str, Factor]) -> list[tuple[float, ...]]:
    """Keys by which sets are sorted, the best first: by the criterion with the highest weight, then the next.

    Of equal weights the criterion given first counts more; those with the weight 0 do not count.
    """
    counted = sorted((one for one in criteria.values() if one.weight > 0), key=lambda one: -one.weight)
    columns = [
        (np.asarray(one.values, dtype=np.float64) * (-1 if one.higher_is_better else 1)).round(_DECIMALS)
        for one in counted
    ]
    return [tuple(key) for key in np.column_stack(columns).tolist()]


def _places(keys: Sequence[tuple[float, ...]]) -> NDArray[np.int64]:
    in_order = sorted(keys)
    first = {key: place for place, key in reversed(list(enumerate(in_order, start=1)))}
    return np.array([first[key] for key in keys], dtype=np.int64)


def _check(criteria: Mapping[str, Factor]) -> None:
    lengths = {len(one.values) for one in criteria.values()}
    if len(lengths) != 1 or 0 in lengths:
        problem = f"got {len(lengths)} different numbers of sets"
        raise InvalidParameterError("criteria", problem, allowed="one number for every set, of one set at least")
    weights = [one.weight for one in criteria.values()]
    if any(not 0 <= weight < np.inf for weight in weights) or not any(weights):
        raise InvalidParameterError("criteria", "some weights are not", allowed="weighed from 0, and not all by 0")
    if not all(np.isfinite(one.values).all() for one in criteria.values()):
        raise InvalidParameterError("criteria", "some are not", allowed="finite numbers")
