"""Hierarchies of numbers: intervals of equal width, at quantiles or at chosen cuts, joined to ever wider ones.

Where all numbers and cuts have at most four decimals, an interval names its first and its last number, as other
ranges do: ``[17, 24]`` is followed by ``[25, 34]``. Finer numbers have no last one before the next interval, so there
the second bracket is turned: ``[0.5, 1.5[`` goes up to 1.5 without it. Neighbours never share a number. Where no cut
says where the first interval begins or the last one ends, they are open (``< 18``, ``≥ 65``): the smallest and the
largest value of a column are somebody's, and may be those of people who are left out of a release. An interval of one
number is that number. So a label always stands for the same numbers, on whatever level.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, InvalidOperation, localcontext
from itertools import accumulate, pairwise
from operator import mul

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.recoding.hierarchy import ROOT, Hierarchy
from sfumato.table.generalized import write_range
from sfumato.table.quantiles import quantile_cuts

Number = int | float | Decimal

_MAX_DECIMALS = 4
_MAX_SIZE = Decimal(10) ** 15
_EXACT_DIGITS = 700  # the sum of the largest and the smallest floating-point number has fewer
_PAIRWISE = (2,) * 60


def equal_width_intervals(
    values: Sequence[str], width: Number, *, start: Number = 0, merge: Sequence[int] | None = None
) -> Hierarchy:
    """Intervals of one width, beginning at ``start`` and all numbers that are a multiple of the width away from it.

    Parameters
    ----------
    values : sequence of str
        Distinct values of the column. Of several spellings of one number the first is kept.
    merge : sequence of int or None
        How many neighbours each further level joins; ``None`` joins two until one interval is left. The highest level
        is ``*`` always, and a level that would join nothing is left out.

    Examples
    --------
    >>> equal_width_intervals(["12", "17", "19", "24"], 5).labels[1:]
    (('[10, 14]', '[15, 19]', '[20, 24]'), ('[10, 19]', '[20, 29]'), ('*',))
    """
    step, origin = _decimal(width, "width"), _decimal(start, "start")
    if step <= 0:
        raise InvalidParameterError("width", "got one that is not", allowed="a number above 0")
    numbers = _numbers(values)
    if max(map(abs, numbers)) / step >= _MAX_SIZE:
        raise InvalidParameterError(
            "width", "got one that is too small for them", allowed="in proportion to the numbers"
        )
    with localcontext(prec=_EXACT_DIGITS):
        places = {n: int(((n - origin) / step).to_integral_value(ROUND_FLOOR)) for n in numbers}
        scale = _Scale.of([*numbers, step, origin])
        return _intervals(numbers, places, lambda place: origin + place * step, scale, merge)


def intervals_at(values: Sequence[str], cuts: Sequence[Number], *, merge: Sequence[int] | None = None) -> Hierarchy:
    """Intervals that begin at chosen numbers.

    A cut below all values is where the first interval begins, and one above all is where the last ends; else they
    are open there. See :func:`equal_width_intervals` for the parameters.

    Examples
    --------
    >>> intervals_at(["17", "25", "64", "90"], [0, 18, 65], merge=()).labels
    (('17', '25', '64', '90'), ('[0, 17]', '[18, 64]', '≥ 65'), ('*',))
    """
    chosen = [_decimal(cut, "cuts") for cut in cuts]
    if not chosen or any(low >= high for low, high in pairwise(chosen)):
        raise InvalidParameterError("cuts", "got others", allowed="numbers, each larger than the one before")
    numbers = _numbers(values)
    bounds: list[Decimal | None] = [*([] if chosen[0] <= min(numbers) else [None]), *chosen]
    end = None if chosen[-1] <= max(numbers) else chosen[-1]
    places = {n: bisect_right(chosen, n) + len(bounds) - len(chosen) - 1 for n in numbers}
    with localcontext(prec=_EXACT_DIGITS):
        scale = _Scale.of([*numbers, *chosen])
        return _intervals(numbers, places, lambda place: bounds[place] if place < len(bounds) else end, scale, merge)


def quantile_intervals(
    values: Sequence[str], counts: NDArray[np.int64], n_intervals: int, *, merge: Sequence[int] | None = None
) -> Hierarchy:
    """Intervals that hold about equally many rows each, at short numbers.

    Parameters
    ----------
    counts : ndarray of int64
        How many rows hold each value.
    n_intervals : int
        Of the finest level; heavy ties give fewer. See :func:`equal_width_intervals` for the other parameters.
    """
    if n_intervals < 2:
        raise InvalidParameterError("n_intervals", f"got {n_intervals}", allowed="a whole number above 1")
    numbers = np.array([float(number) for number in _parsed(values)])
    cuts = quantile_cuts(numbers, np.asarray(counts, dtype=np.int64), n_intervals)
    return intervals_at(values, _beginnings(numbers, cuts) or [numbers.min()], merge=merge)


def range_of_numbers(values: Sequence[str], counts: Sequence[int]) -> str:
    """Write the label of numbers, ascending: the range from the first to the last of them.

    Examples
    --------
    >>> range_of_numbers(["17", "18.0", "24"], [1, 1, 1])
    '[17, 24]'
    """
    return write_range(*(_written(number) for number in _parsed([values[0], values[-1]])))


def distinct_numbers(values: Sequence[str]) -> int:
    """Count the numbers among the spellings."""
    return len(_numbers(values))


def are_finite_numbers(values: Sequence[str]) -> bool:
    """Whether intervals can be made of these values."""
    return bool(values) and all(_finite(value) is not None for value in values)


def _beginnings(numbers: NDArray[np.float64], cuts: Sequence[float]) -> list[float]:
    """Where the intervals above the cuts begin: a quantile's cut belongs to the values below it."""
    distinct = np.unique(numbers)
    above = np.searchsorted(distinct, np.asarray(cuts), side="right")
    return [
        cut if cut > distinct[place - 1] else float(distinct[place]) for cut, place in zip(cuts, above, strict=True)
    ]


@dataclass(frozen=True)
class _Scale:
    """How ends of intervals are written: the distance between neighbouring numbers, if they have one."""

    step: Decimal | None

    @classmethod
    def of(cls, numbers: Sequence[Decimal]) -> _Scale:
        decimals = max(0, *(-int(number.normalize().as_tuple().exponent) for number in numbers))
        is_coarse = decimals <= _MAX_DECIMALS and max(map(abs, numbers)) < _MAX_SIZE
        return cls(Decimal(1).scaleb(-decimals) if is_coarse else None)

    def label(self, low: Decimal | None, high: Decimal | None) -> str:
        """Write an interval from ``low`` up to ``high`` without it; ``None`` is an open end."""
        if low is None or high is None:
            return f"< {_written(high)}" if high is not None else ROOT if low is None else f"≥ {_written(low)}"
        if self.step is None:
            return f"[{_written(low)}, {_written(high)}["
        return write_range(_written(low), _written(high - self.step))


def _intervals(
    numbers: dict[Decimal, str],
    places: dict[Decimal, int],
    bound: Callable[[int], Decimal | None],
    scale: _Scale,
    merge: Sequence[int] | None,
) -> Hierarchy:
    """Join intervals, given by their places, level by level."""
    _check_merge(merge)
    levels: list[list[str]] = []
    for joined in accumulate([1, *(_PAIRWISE if merge is None else merge)], mul):
        level = {number: place // joined for number, place in places.items()}
        groups = set(level.values())
        if len(groups) == 1:
            break
        label_of = {place: scale.label(bound(place * joined), bound((place + 1) * joined)) for place in groups}
        levels.append([label_of[place] for place in level.values()])
    rows = zip(numbers.values(), *levels, [ROOT] * len(numbers), strict=True)
    return Hierarchy.from_rows(list(rows)).joining_levels()


def _check_merge(merge: Sequence[int] | None) -> None:
    if merge is not None and any(factor < 2 for factor in merge):
        raise InvalidParameterError("merge", "got a smaller one", allowed="whole numbers above 1")


def _decimal(number: Number, name: str) -> Decimal:
    exact = Decimal(str(number))
    if not exact.is_finite():
        raise InvalidParameterError(name, "got another", allowed="finite numbers")
    return exact


def _numbers(values: Sequence[str]) -> dict[Decimal, str]:
    """Distinct numbers in ascending order with their first spelling."""
    found: dict[Decimal, str] = {}
    for number, value in zip(_parsed(values), values, strict=True):
        found.setdefault(number, value)
    return dict(sorted(found.items()))


def _parsed(values: Sequence[str]) -> list[Decimal]:
    numbers = [_finite(value) for value in values]
    wrong = numbers.count(None)
    if wrong or not values:
        problem = f"{wrong:,} of {len(values):,} values are no finite numbers"
        raise SchemaError(problem, hint="intervals are for numbers; take another method")
    return [number for number in numbers if number is not None]


def _finite(value: str) -> Decimal | None:
    try:
        number = Decimal(value.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() and math.isfinite(float(number)) else None


def _written(number: Decimal) -> str:
    plain = number.normalize() + 0
    return f"{plain:f}" if not plain or 1 / _MAX_SIZE < abs(plain) < _MAX_SIZE else str(plain)
