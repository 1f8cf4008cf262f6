r"""Labels of hierarchies, read by the audit's own code: which values of the original a label represents.

========================  =================================================================================
``*``                     any value, missing included
listed in the manifest    the values listed there; an empty text in the list is missing (and the empty text itself)
a value or a level        that value, where its text occurs in the original or in the order of its levels
``[17, 25]``, ``[17, 25[``  numbers (dates, levels) from 17 to 25; an end whose bracket is turned is not in it
``< 17``, ``≥ 58``        numbers (dates, levels) below 17, or from 58 on; with ``≤`` and ``>`` likewise
``0213*``, ``02***``      values of the same length that begin so; a star for each character left out
``2024-03``, ``2024``     dates that begin so
(an empty cell)           missing
anything else             that value
========================  =================================================================================

Numbers of a numeric column are compared exactly, as the decimal numbers that they are written as: ``0.1`` of single
precision is the label ``0.1``, and numbers of twenty digits are apart when their last one differs.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.audit.reading.cells import Containing
from sfumato.audit.reading.values import is_text, meanings_read_as, moments_in, texts_of
from sfumato.schema import Kind

Flags = NDArray[np.bool_]

_ANY, _MISSING = "*", ""
_NOT_A_NUMBER = meanings_read_as(pa.array([float("nan")]), pa.string())[0]
_INTERVAL = re.compile(r"([\[\]])([^\[\],]+), ([^\[\],]+)([\[\]])")
_OPEN = re.compile(r"([<≤>≥]) ([^\[\],]+)")
_MASK = re.compile(r"([^*]*)(\*+)")
_DATE_PREFIX = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")
_QUARTER = re.compile(r"(\d{4})-Q([1-4])")
_DECADE = re.compile(r"(\d{3})0s")


def contained_in_labels(
    released: pa.Array,
    original: pa.Array,
    kind: Kind,
    listed: Mapping[str, Sequence[str]],
    domain: tuple[str, ...] | None = None,
    *,
    n_levels: int | None = None,
    is_built: bool = False,
) -> Containing:
    """Read the distinct labels of a column against the distinct values of its original.

    Parameters
    ----------
    listed : mapping of str to sequence of str
        Values of the labels whose meaning their text does not tell.
    n_levels : int or None
        Levels of the hierarchy that the labels are from: on a level each value has one label. A value in more labels
        than that (``[17, 25]`` and ``[17, 25.5]``) is in none, for the choice would tell rows apart. ``None``: any.
    is_built : bool
        Whether the hierarchy was built of the column: then its intervals end at the column's numbers, in one spelling.

    Examples
    --------
    >>> found = contained_in_labels(pa.array(["[17, 25[", "young", "*"]), pa.array(["17", "25", None]), Kind.NUMERIC,
    ...     {"young": ["17", "18"]})
    >>> [found.holds(np.arange(3), np.full(3, label)).astype(int).tolist() for label in range(3)]
    [[1, 0, 0], [1, 0, 0], [1, 1, 1]]
    """
    labels = (released if is_text(released.type) else pc.cast(released, pa.string())).to_pylist()
    values = _Values(original, kind, domain)
    runs: list[tuple[int, int, int]] = []
    n_unreadable = n_misspelled = 0
    steps = np.zeros(len(original) + 1, dtype=np.int64)
    for i, label in enumerate(labels):
        row = values.standing_for(label, listed)
        n_unreadable += row is None
        n_misspelled += is_built and not values.is_built(label)
        for start, stop in _runs(row) if row is not None else ():
            runs.append((i, start, stop))
            steps[[start, stop]] += (1, -1) if values.is_group(label) else (0, 0)
    if n_levels is not None and (n_labels := np.cumsum(steps)[:-1]).max(initial=0) > n_levels:
        is_sure = n_labels <= n_levels
        own = [(i, start, is_sure[start:stop] | (not values.is_group(labels[i]))) for i, start, stop in runs]
        runs = [(i, start + a, start + b) for i, start, sure in own for a, b in _runs(sure)]
    n_foreign = sum(values.n_foreign(label, members) for label, members in listed.items())
    problems = {"n_unreadable": n_unreadable, "n_foreign": n_foreign, "n_misspelled": n_misspelled}
    cells, starts, stops = np.array(runs, dtype=np.int64).reshape(-1, 3).T
    places = np.arange(len(original), dtype=np.int64)
    return Containing(places, len(original), cells, starts, stops, len(labels), **problems)


def _runs(row: Flags) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(row.astype(np.int8), prepend=0, append=0))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


class _Values:
    """Distinct values of the original column, with every way in which a label may speak of them."""

    def __init__(self, original: pa.Array, kind: Kind, domain: tuple[str, ...] | None) -> None:
        self._original, self._kind, self._domain = original, kind, domain
        self._is_missing: Flags = np.asarray(original.is_null().to_numpy(zero_copy_only=False))
        self._texts = [None if text is None else text.strip() for text in texts_of(original).to_pylist()]
        self._spelled = {*self._texts, *(level.strip() for level in domain or ())}
        self._places: defaultdict[Hashable, list[int]] = defaultdict(list)
        for place, meaning in enumerate(self._read(original)):
            self._places[meaning].append(place)

    def standing_for(self, label: str | None, listed: Mapping[str, Sequence[str]]) -> Flags | None:
        """Which values a label stands for; ``None`` where its text cannot be read."""
        if label is None:
            return self._is_missing
        if label == _ANY:
            return np.ones(len(self._texts), dtype=np.bool_)
        if label in listed:
            found = self._one_of(listed[label])
            return found | self._is_missing if _MISSING in listed[label] else found
        if label.strip() in self._spelled:
            return self._one_of([label])
        interval, side = _INTERVAL.fullmatch(label), _OPEN.fullmatch(label)
        if interval and self._ranked is not None:
            return self._both(interval[1] == "]", interval[2], interval[3], interval[4] == "]")
        if side and self._ranked is not None:
            ends = self._positions(pa.array([side[2]]))
            return None if ends is None or None in ends else self._on_side(side[1], ends[0])
        mask = _MASK.fullmatch(label)
        if mask:
            begins, length = mask[1], len(label)
            return np.array([t is not None and len(t) == length and t.startswith(begins) for t in self._texts])
        if self._kind is Kind.DATE and _DATE_PREFIX.fullmatch(label):
            return np.array([t is not None and t.startswith(label) for t in self._texts])
        begins_of_dates = _begins_of_dates(label) if self._kind is Kind.DATE else ()
        if begins_of_dates:
            return np.array([t is not None and t.startswith(begins_of_dates) for t in self._texts])
        return self._one_of([label])

    def is_group(self, label: str | None) -> bool:
        """Whether a label stands for a group of values by its text or a list: not missing, any value or one of them."""
        return label is not None and label != _ANY and label.strip() not in self._spelled

    def is_built(self, label: str | None) -> bool:
        """Whether an interval of numbers ends at numbers of the column, written without zeros that say nothing."""
        if self._kind is not Kind.NUMERIC or label is None or not self.is_group(label):
            return True
        interval, side = _INTERVAL.fullmatch(label), _OPEN.fullmatch(label)
        ends = [interval[2], interval[3]] if interval else [side[2]] if side else []
        meanings = self._read(pa.array(ends, pa.string()))
        return all(m in self._places and end in _written(end) for m, end in zip(meanings, ends, strict=True))

    def n_foreign(self, label: str, members: Sequence[str]) -> int:
        """Count members of a list that are not values of the original, or come twice."""
        stated = [text for text in members if text.strip() not in (_MISSING, label)]
        meanings = self._read(pa.array(stated, pa.string()))
        n_missing = members.count(_MISSING)
        has_missing = bool(self._is_missing.any()) or _MISSING in self._spelled
        n_strange = sum(meaning not in self._places for meaning in meanings)
        return n_strange + len(meanings) - len(set(meanings)) + max(0, n_missing - has_missing)

    def _one_of(self, values: Sequence[str]) -> Flags:
        found = np.zeros(len(self._texts), dtype=np.bool_)
        for meaning in self._read(pa.array(list(values), pa.string())):
            found[self._places.get(meaning, [])] = True
        return found

    def _both(self, is_above: bool, low: str, high: str, is_upto: bool) -> Flags | None:
        ends = self._positions(pa.array([low, high]))
        if ends is None or None in ends:
            return None
        return self._on_side(">" if is_above else "≥", ends[0]) & self._on_side("≤" if is_upto else "<", ends[1])

    def _on_side(self, sign: str, end: Any) -> Flags:
        """Which values stand in a relation to an end; what has no place in the order stands in none."""
        ascending, ranks = self._ranked or ([], np.zeros(0, dtype=np.int64))
        if sign in ">≥":
            return np.asarray(ranks >= (bisect_left if sign == "≥" else bisect_right)(ascending, end)) & (ranks >= 0)
        return np.asarray(ranks < (bisect_left if sign == "<" else bisect_right)(ascending, end)) & (ranks >= 0)

    def _read(self, values: pa.Array) -> list[Hashable]:
        if self._kind is Kind.NUMERIC:
            return meanings_read_as(pc.utf8_trim_whitespace(texts_of(values)), pa.decimal128(1))
        if is_text(values.type):
            return meanings_read_as(pc.utf8_trim_whitespace(values), self._original.type)
        return meanings_read_as(values, pa.string())

    @cached_property
    def _ranked(self) -> tuple[list[Any], NDArray[np.int64]] | None:
        """Positions that occur, ascending, and the number of each value's among them (-1 for none)."""
        positions = self._positions(self._original)
        if positions is None:
            return None
        ascending = sorted({position for position in positions if position is not None})
        number = {position: i for i, position in enumerate(ascending)}
        return ascending, np.array([number.get(position, -1) for position in positions], dtype=np.int64)

    def _positions(self, values: pa.Array) -> list[Any] | None:
        """Where values lie in the order of the column; ``None`` where one has no place, or there is no order."""
        if self._kind is Kind.NUMERIC:
            meanings = [None if meaning == _NOT_A_NUMBER else meaning for meaning in self._read(values)]
            return meanings if all(meaning is None or _is_number(meaning) for meaning in meanings) else None
        if self._kind is Kind.DATE:
            moments = moments_in(values)
            return None if moments is None else list(moments.to_pylist())
        if self._kind is Kind.ORDERED and self._domain:
            level = {text.strip(): i for i, text in enumerate(self._domain)}
            texts = texts_of(values).to_pylist()
            return [None if text is None else level.get(text.strip()) for text in texts]
        return None


def _begins_of_dates(label: str) -> tuple[str, ...]:
    """How dates begin that lie in a quarter or a decade; nothing for another label."""
    quarter, decade = _QUARTER.fullmatch(label), _DECADE.fullmatch(label)
    if quarter is not None:
        last = 3 * int(quarter[2])
        return tuple(f"{quarter[1]}-{month:02}-" for month in (last - 2, last - 1, last))
    return (decade[1],) if decade is not None else ()


def _written(end: str) -> tuple[str, ...]:
    """Spell a number in the ways that the end of a built interval may have: plain, or with an exponent."""
    try:
        plain = Decimal(end).normalize() + 0
    except InvalidOperation:
        return ()
    return f"{plain:f}", str(plain)


def _is_number(meaning: Hashable) -> bool:
    return isinstance(meaning, int | float | Decimal) and not isinstance(meaning, bool)
