"""Hierarchies of codes, dates and ordered values: masked characters, months and years, groups of neighbours.

Builders take a column's distinct values as texts, never rows. The highest level is ``*`` always, and a level that would
join nothing is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from itertools import islice

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.recoding.hierarchy import ROOT, Hierarchy
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
    """Dates by day (where some have a time), month and year: ``2024-02-29``, ``2024-02``, ``2024``, ``*``.

    Raises
    ------
    SchemaError
        If some values are no ISO 8601 dates.

    Examples
    --------
    >>> calendar_levels(["2024-02-28", "2024-02-29", "2024-03-01", "2023-12-24"]).labels[1:]
    (('2024-02', '2024-03', '2023-12'), ('2024', '2023'), ('*',))
    """
    _check_some(values)
    wrong = sum(not is_date(value) for value in values)
    if wrong:
        problem = f"{wrong:,} of {len(values):,} values are no dates"
        raise SchemaError(problem, hint="dates are written 2024-02-29; take another method for other texts")
    has_times = any(len(value) > _DAY for value in values)
    lengths = (_DAY, _MONTH, _YEAR) if has_times else (_MONTH, _YEAR)
    return _below_root(values, [[value[:length] for value in values] for length in lengths])


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
        levels.append([_range(group) for group in groups for _ in group])
    return _below_root(order, levels)


def range_of_levels(values: Sequence[str], counts: Sequence[int]) -> str:
    """Write the label of levels in their order: the range from the first to the last of them."""
    return write_range(values[0], values[-1])


def _range(group: list[str]) -> str:
    return group[0] if len(group) == 1 else write_range(group[0], group[-1])


def _joined(groups: list[list[str]], size: int | Sequence[int]) -> list[list[str]]:
    each = [size] * -(-len(groups) // max(1, size)) if isinstance(size, int) else list(size)
    if any(n < 1 for n in each) or (not isinstance(size, int) and sum(each) != len(groups)) or not each:
        problem = f"got others for {len(groups)} groups"
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
