"""Hierarchies of codes, dates and ordered values: masked characters, months and years, groups of neighbours.

Builders take a column's distinct values as texts, never rows. The highest level is ``*`` always, and a level that would
join nothing is left out.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_FLOOR, Decimal, InvalidOperation, localcontext
from itertools import accumulate, islice, pairwise
from operator import mul

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.mechanisms.hierarchies.hierarchy import ROOT, Hierarchy
from sfumato.table.binarize import quantile_cuts
from sfumato.table.generalized import write_range

MASK = "*"

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")
_YEAR, _MONTH, _DAY = 4, 7, 10


def masked_characters(values: Sequence[str], *, step: int = 1) -> Hierarchy:
    """Codes whose last characters are masked, ``step`` more on each level: ``02139``, ``0213*``, ``021**``, …, ``*``.

    A mask tells how long the code is, so codes of different lengths are joined by the highest level only.

    Examples
    --------
    >>> masked_characters(["101", "102", "113", "231"]).labels[1:]
    (('10*', '11*', '23*'), ('1**', '2**'), ('*',))
    """
    _check_some(values)
    if step < 1:
        raise InvalidParameterError("step", f"got {step}", allowed="a whole number above 0")
    longest = max(len(value) for value in values)
    levels = [[_masked(value, n_masked) for value in values] for n_masked in range(step, longest + step, step)]
    return _below_root(values, levels)


def _masked(value: str, n_masked: int) -> str:
    kept = max(0, len(value) - n_masked)
    return value[:kept] + MASK * (len(value) - kept)


def calendar_levels(values: Sequence[str]) -> Hierarchy:
    """Dates by day (where some have a time), month, quarter, year and decade: ``2024-02``, ``2024-Q1``, ``2024``, ….

    Raises
    ------
    SchemaError
        If some values are no ISO 8601 dates.

    Examples
    --------
    >>> calendar_levels(["2024-02-28", "2024-02-29", "2024-03-01", "2023-12-24", "1999-12-31"]).labels[1:4]
    (('2024-02', '2024-03', '2023-12', '1999-12'), ('2024-Q1', '2023-Q4', '1999-Q4'), ('2020s', '1990s'))
    >>> calendar_levels(["2024-02-28", "2023-12-24", "1999-12-31"]).labels[1:]
    (('2020s', '1990s'), ('*',))
    """
    _check_some(values)
    wrong = sum(not is_date(value) for value in values)
    if wrong:
        problem = f"{wrong:,} of {len(values):,} values are not dates"
        raise SchemaError(problem, hint="dates are written 2024-02-29; take another method for other texts")
    has_times = any(len(value) > _DAY for value in values)
    days = [[value[:_DAY] for value in values]] if has_times else []
    months = [value[:_MONTH] for value in values]
    quarters = [_quarter(value) for value in values]
    years, decades = (
        [f"{value[:length]}{end}" for value in values] for length, end in ((_YEAR, ""), (_YEAR - 1, "0s"))
    )
    return _below_root(values, [*days, months, quarters, years, decades])


def _quarter(value: str) -> str:
    return f"{value[:_YEAR]}-Q{(int(value[_YEAR + 1 : _MONTH]) + 2) // 3}"


def is_in_calendar(value: str, label: str) -> bool:
    """Whether a date lies in a day, a month, a quarter, a year or a decade, as :func:`calendar_levels` writes them.

    Examples
    --------
    >>> is_in_calendar("2024-02-29", "2024-Q1"), is_in_calendar("2024-02-29", "2020s"), is_in_calendar("2024", "2023")
    (True, True, False)
    """
    if "-Q" in label:
        return is_date(value) and _quarter(value) == label
    return value.startswith(label.removesuffix("0s") if label.endswith("0s") else label)


def is_date(value: str) -> bool:
    """Whether a text is an ISO 8601 date, with or without a time."""
    try:
        date.fromisoformat(value[:_DAY])
    except ValueError:
        return False
    return _DATE.fullmatch(value) is not None


def ordered_groups(order: Sequence[str], sizes: Sequence[int | Sequence[int]] | None = None) -> Hierarchy:
    """Neighbours in a declared order joined into groups, written as ranges: ``[primary, secondary]``.

    Parameters
    ----------
    order : sequence of str
        Values from lowest to highest.
    sizes : sequence of (int or sequence of int) or None
        For each level, how many groups of the level below each group joins: one number for all (the last group may
        be smaller), or one number a group. ``None`` joins two until one group is left.

    Examples
    --------
    >>> ordered_groups(["none", "primary", "secondary", "higher"], [(1, 2, 1), 2]).labels[1:]
    (('none', '[primary, secondary]', 'higher'), ('[none, secondary]', 'higher'), ('*',))
    """
    _check_some(order)
    groups = [[value] for value in order]
    levels: list[list[str]] = []
    for size in [2] * len(order) if sizes is None else sizes:
        if sizes is None and len(groups) <= 2:
            break
        groups = _joined(groups, size)
        levels.append([write_range(group[0], group[-1]) for group in groups for _ in group])
    return _below_root(order, levels)


def range_of_levels(values: Sequence[str], counts: Sequence[int]) -> str:
    """Write the label of levels in their order: the range from the first to the last of them."""
    return write_range(values[0], values[-1])


def _joined(groups: list[list[str]], size: int | Sequence[int]) -> list[list[str]]:
    each = [size] * -(-len(groups) // max(1, size)) if isinstance(size, int) else list(size)
    if any(n < 1 for n in each) or (not isinstance(size, int) and sum(each) != len(groups)) or not each:
        problem = f"got {size!r} for {len(groups)} groups"
        raise InvalidParameterError("sizes", problem, allowed="above 0, and those of one level as many as the groups")
    rest = iter(groups)
    return [[value for group in islice(rest, n) for value in group] for n in each]


def _check_some(values: Sequence[str]) -> None:
    if not values:
        problem = "a column without values has no hierarchy"
        raise SchemaError(problem)


def _below_root(values: Sequence[str], levels: list[list[str]]) -> Hierarchy:
    """Put ``*`` in place of all levels that have one label only, and leave out those that join nothing."""
    return Hierarchy.from_rows(list(zip(values, *levels, [ROOT] * len(values), strict=True))).joining_levels()


# Hierarchies of numbers: intervals of equal width, at quantiles or at chosen cuts, joined to ever wider ones.
#
# Where all numbers and cuts have at most four decimals, an interval names its first and its last number, as other
# ranges do: ``[17, 24]`` is followed by ``[25, 34]``. Finer numbers have no last one before the next interval, so
# there the second bracket is turned: ``[0.5, 1.5[`` goes up to 1.5 without it. Neighbours never share a number. Where
# no cut says where the first interval begins or the last one ends, they are open (``< 18``, ``≥ 65``): the smallest
# and the largest value of a column are somebody's, and may be those of people who are left out of a release. An
# interval of one number is that number. So a label always stands for the same numbers, on whatever level.


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
        raise InvalidParameterError("width", f"got {width}", allowed="a number above 0")
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
        raise InvalidParameterError("cuts", f"got {list(map(str, cuts))}", allowed="numbers in ascending order")
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
    distinct = np.unique(numbers)
    # a quantile's cut belongs to the values below it: where it is one of them, the next interval begins at the next
    above = np.searchsorted(distinct, np.asarray(cuts), side="right")
    beginnings = [
        cut if cut > distinct[place - 1] else float(distinct[place]) for cut, place in zip(cuts, above, strict=True)
    ]
    return intervals_at(values, beginnings or [numbers.min()], merge=merge)


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
    if merge is not None and any(factor < 2 for factor in merge):
        raise InvalidParameterError("merge", "got a smaller one", allowed="whole numbers above 1")
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


def _decimal(number: Number, name: str) -> Decimal:
    exact = Decimal(str(number))
    if not exact.is_finite():
        raise InvalidParameterError(name, f"got {number}", allowed="finite numbers")
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
        problem = f"{wrong:,} of {len(values):,} values are not finite numbers"
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
