"""Which labels of a hierarchy tell by themselves what they stand for; the others are listed in the manifest.

A label that is an interval (``[17, 25[``, ``≥ 58``), a mask (``0213*``) or the beginning of a date (``2024-03``) needs
no list, provided that it stands for just the values that the hierarchy gives it and is not itself a value, which it
would be read as. A list names values of released rows only: one that occurs in no row, or in rows that are left out
only, is not in it. Missing is the empty text there, however the hierarchy writes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.recoding.axes import positions_of
from sfumato.recoding.covering import Covered
from sfumato.recoding.hierarchy import ROOT, Hierarchy
from sfumato.schema import DEFAULT_MISSING_TOKENS, Column, Kind

MISSING = ""
"""Missing in a list of values."""

_INTERVAL = re.compile(r"([\[\]])([^\[\],]+), ([^\[\],]+)([\[\]])")
_OPEN = re.compile(r"([<≤≥>]) ([^\[\],]+)")
_MASK = re.compile(r"[^*]*\*+")
_DATE_PREFIX = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")

Test = Callable[[Sequence[str]], Sequence[bool]]


@dataclass(frozen=True)
class Interval:
    """Ends of an interval as a label names them, ``None`` where it is open, and whether they belong to it."""

    low: str | None
    high: str | None
    has_low: bool = True
    has_high: bool = True

    def holds(self, place: Any, low: Any, high: Any) -> bool:
        """Whether a place lies between those of the ends; that of an open end is ``None``."""
        above = low is None or low < place or (self.has_low and low == place)
        return bool(above and (high is None or place < high or (self.has_high and high == place)))


def read_interval(label: str) -> Interval | None:
    """Read a label that is an interval: ``[17, 24]``, ``[17, 25[``, ``]17, 25]``, ``< 17``, ``≤ 17``, ``≥ 5``, ``> 5``.

    Examples
    --------
    >>> read_interval("[17, 25[")
    Interval(low='17', high='25', has_low=True, has_high=False)
    >>> read_interval("≥ 58").low, read_interval("≥ 58").high
    ('58', None)
    """
    both = _INTERVAL.fullmatch(label)
    if both:
        return Interval(both[2], both[3], both[1] == "[", both[4] == "]")
    one = _OPEN.fullmatch(label)
    if one is None:
        return None
    is_there = one[1] in "≤≥"
    return Interval(None, one[2], True, is_there) if one[1] in "<≤" else Interval(one[2], None, is_there, True)


def listed_labels(
    hierarchy: Hierarchy,
    used: Mapping[str, set[int]],
    described: Column,
    fitted: Covered,
    is_shown: NDArray[np.bool_],
    missing: Sequence[str] = DEFAULT_MISSING_TOKENS,
) -> dict[str, list[str]]:
    """Values of the labels that do not tell them, by label, in the order of the hierarchy.

    Parameters
    ----------
    used : mapping of str to set of int
        Labels that are released and the levels that they are released from; level 0 and ``*`` need no list.
    fitted : Covered
        The hierarchy fitted to the column: how the column spells its values, which a mask is read by.
    is_shown : ndarray of bool
        Which values of the hierarchy released rows have.
    missing : sequence of str
        Texts by which the hierarchy may name missing.

    Examples
    --------
    >>> from sfumato.recoding.covering import covered
    >>> from sfumato.table.coding import CodedColumn
    >>> ages = Hierarchy.from_rows([("17", "[17, 25[", "young", "*"), ("24", "[17, 25[", "young", "*")])
    >>> fitted = covered(ages, CodedColumn.encode(pa.array(["24", "17"])), "age", Kind.NUMERIC)
    >>> used, shown = {"[17, 25[": {1}, "young": {2}, "*": {3}}, np.array([True, True])
    >>> listed_labels(ages, used, Column("age", kind=Kind.NUMERIC), fitted, shown)
    {'young': ['17', '24']}
    """
    every = [MISSING if value.strip() in missing else value.strip() for value in hierarchy.values]
    values = tuple(value for value, shown in zip(every, is_shown, strict=True) if shown)
    codes = hierarchy.codes[:, is_shown]
    reading = _Reading(described, values, _spells_as(values, fitted))
    listed = {}
    for label, levels in sorted(used.items()):
        higher = sorted(level for level in levels if level > 0)
        if label == ROOT or not higher:
            continue
        is_member = np.zeros(len(values), dtype=np.bool_)
        for level in higher:
            is_member |= codes[level] == hierarchy.labels[level].index(label)
        if 0 in levels and label in values:
            is_member[values.index(label)] = True
        members = [value for value, member in zip(values, is_member, strict=True) if member]
        if 0 in levels and label not in members:
            members.append(label)
        if members != [label] and not reading.tells(label, is_member):
            listed[label] = members
    return listed


def _spells_as(values: Sequence[str], fitted: Covered) -> bool:
    """Whether a column writes each of its values in one way, that of the hierarchy."""
    written = fitted.labels[0]
    return len(written) == fitted.level_codes.shape[1] and set(written) - {None} <= set(values)


@dataclass(frozen=True)
class _Reading:
    """How the labels of a column are read by their text alone, with the values that its hierarchy has."""

    described: Column
    values: tuple[str, ...]
    is_spelled_so: bool

    def tells(self, label: str, is_member: NDArray[np.bool_]) -> bool:
        """Whether a label is read as just the values that are its members."""
        if label in self.values or label in (self.described.domain or ()):
            return False
        test = self._test_of(label)
        known = np.array([value != MISSING for value in self.values])
        if test is None or is_member[~known].any():
            return False
        read = test([value for value in self.values if value != MISSING])
        return bool(list(read) == is_member[known].tolist())

    def _test_of(self, label: str) -> Test | None:
        kind = self.described.kind
        interval = read_interval(label)
        if interval and kind is not Kind.CATEGORICAL:
            return self._between(interval)
        if _MASK.fullmatch(label) and (self.is_spelled_so or kind is not Kind.NUMERIC):
            begins = label.rstrip("*")
            return lambda values: [len(value) == len(label) and value.startswith(begins) for value in values]
        if kind is Kind.DATE and _DATE_PREFIX.fullmatch(label):
            return lambda values: [value.startswith(label) for value in values]
        return None

    def _between(self, interval: Interval) -> Test | None:
        named = [end for end in (interval.low, interval.high) if end is not None]
        found = _places(named, self.described)
        if found is None:
            return None
        place_of = dict(zip(named, found, strict=True))
        low, high = (None if end is None else place_of[end] for end in (interval.low, interval.high))
        return lambda values: [interval.holds(p, low, high) for p in _places(values, self.described) or ()]


def _places(values: Sequence[str], described: Column) -> list[Any] | None:
    """Where values lie in the order of a column, numbers exactly; ``None`` where one has no place."""
    try:
        positions = positions_of(described, pa.array(list(values), pa.string()))
        if described.kind is Kind.NUMERIC:
            return [Decimal(value) for value in values]
    except (ValueError, InvalidOperation):
        return None
    return None if positions is None else list(positions.tolist())
