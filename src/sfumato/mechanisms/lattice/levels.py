"""A table taken to levels of hierarchies: which rows are released, at which levels, and as which labels."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.counting.cells import CellTable
from sfumato.mechanisms.axes import cell_of_values, positions_of
from sfumato.mechanisms.hierarchies.builders import is_in_calendar
from sfumato.mechanisms.hierarchies.hierarchy import ROOT, Covered, Hierarchy, covered
from sfumato.schema import DEFAULT_MISSING_TOKENS, Column, Kind
from sfumato.table.cells import as_text
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.generalized import write_value
from sfumato.table.weighted import WeightedColumn

# Which labels of a hierarchy tell by themselves what they stand for; the others are listed in the manifest.
#
# A label that is an interval (``[17, 25[``, ``≥ 58``), a mask (``0213*``) or the beginning of a date (``2024-03``)
# needs no list, provided that it stands for just the values that the hierarchy gives it and is not itself a value,
# which it would be read as. A list names values of released rows only: one that occurs in no row, or in rows that are
# left out only, is not in it. Missing is the empty text there, however the hierarchy writes it.


MISSING = ""
"""Missing in a list of values."""

_INTERVAL = re.compile(r"([\[\]])([^\[\],]+), ([^\[\],]+)([\[\]])")
_OPEN = re.compile(r"([<≤≥>]) ([^\[\],]+)")
_MASK = re.compile(r"[^*]*\*+")
_CALENDAR = re.compile(r"\d{4}(-\d{2}(-\d{2})?|-Q[1-4])?|\d{3}0s")

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
    escaped: Mapping[str, str] = MappingProxyType({}),
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
    escaped : mapping of str to str
        Labels of level 0 that are not the value itself, with their value.

    Examples
    --------
    >>> from sfumato.mechanisms.hierarchies.hierarchy import covered
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
    # whether the column writes each of its values in one way, that of the hierarchy
    written = fitted.labels[0]
    is_spelled_so = len(written) == fitted.level_codes.shape[1] and set(written) - {None} <= set(values)
    reading = _Reading(described, values, is_spelled_so)
    listed = {}
    for label, levels in sorted(used.items()):
        higher, own = sorted(level for level in levels if level > 0), escaped.get(label, label)
        if label == ROOT or not (higher or own != label):
            continue
        is_member = np.zeros(len(values), dtype=np.bool_)
        for level in higher:
            is_member |= codes[level] == hierarchy.labels[level].index(label)
        if 0 in levels and own in values:
            is_member[values.index(own)] = True
        members = [value for value, member in zip(values, is_member, strict=True) if member]
        if 0 in levels and own not in members:
            members.append(own)
        if members != [label] and not reading.tells(label, is_member):
            listed[label] = members
    return listed


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
        if kind is Kind.DATE and _CALENDAR.fullmatch(label):
            return lambda values: [is_in_calendar(value, label) for value in values]
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


SUPPRESSED = -1
HIERARCHY = "hierarchy"
"""Rule of a recoding whose cells are labels of a hierarchy."""


@dataclass(frozen=True, eq=False, repr=False)
class LevelRecoding:
    """Released labels of a table's quasi-identifiers.

    Parameters
    ----------
    described : tuple of Column
        The quasi-identifiers.
    hierarchies : tuple of Hierarchy
    fitted : tuple of Covered
        The hierarchies fitted to the table's columns.
    levels : int array of shape (n_settings, n_columns)
        Level combinations that rows are released at; the first is that of most rows and of new ones.
    setting_of_row : int array
        Which combination each row is released at, -1 where it is suppressed.
    certainty_penalty : float
        Mean over rows and columns of the share of a hierarchy's values that a cell leaves open; 0 for a cell of one
        value, 1 for a suppressed one.
    counts_of_values : tuple of int64 array
        Released rows of each value of each hierarchy.
    row_counts : int64 array or None
        Rows that each row stands for, where the table holds distinct rows; ``None``: one each.
    """

    described: tuple[Column, ...]
    hierarchies: tuple[Hierarchy, ...]
    fitted: tuple[Covered, ...]
    levels: NDArray[np.intp]
    setting_of_row: NDArray[np.intp]
    certainty_penalty: float
    counts_of_values: tuple[NDArray[np.int64], ...]
    row_counts: NDArray[np.int64] | None = None

    def __repr__(self) -> str:
        return f"LevelRecoding({len(self.setting_of_row):,} rows, {self.n_suppressed:,} suppressed)"

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that are recoded."""
        return tuple(column.name for column in self.described)

    @cached_property
    def shown(self) -> tuple[Hierarchy, ...]:
        """Hierarchies as they are released: built labels name values of released rows only."""
        return tuple(h.showing(n) for h, n in zip(self.hierarchies, self.counts_of_values, strict=True))

    @cached_property
    def covered(self) -> tuple[Covered, ...]:
        """Labels as they are released, fitted to the table's columns."""
        return tuple(self._as_released(j, fitted) for j, fitted in enumerate(self.fitted))

    def _as_released(self, j: int, fitted: Covered) -> Covered:
        """Name built groups by released values, and escape single values where labels may be sets or ranges of them."""
        renamed = fitted.renamed(self.hierarchies[j], self.shown[j])
        if self.hierarchies[j].write is None or not (self.levels[:, j] > 0).any():
            return renamed
        values = tuple(None if value is None else write_value(value) for value in renamed.labels[0])
        return replace(renamed, labels=(values, *renamed.labels[1:]))

    def _escaped(self, j: int) -> dict[str, str]:
        """Labels of level 0 that are not the value itself, with their value."""
        written = zip(self.covered[j].labels[0], self.fitted[j].labels[0], strict=True)
        return {label: value for label, value in written if label is not None and value is not None and label != value}

    @property
    def n_suppressed(self) -> int:
        """Rows that are not released."""
        is_suppressed = self.setting_of_row == SUPPRESSED
        return int(is_suppressed.sum() if self.row_counts is None else self.row_counts[is_suppressed].sum())

    @property
    def is_released(self) -> NDArray[np.bool_]:
        """Which rows are released."""
        return np.asarray(self.setting_of_row != SUPPRESSED)

    def recoded(self, table: Table) -> Table:
        """Put the labels into the table that was recoded; a suppressed row is ``*`` in every quasi-identifier."""
        labels = []
        for j, name in enumerate(self.names):
            places = range(table[name].n_distinct)
            labels.append(self._labels(j, table[name], self.covered[j], places, self.setting_of_row))
        return _with_labels(table, self.names, labels)

    def generalized(self, table: Table) -> Table:
        """Take the rows of another table to the level combination that :meth:`settings_of_new` gives them.

        Values are looked up in the hierarchies. A number (a date, a level) that a hierarchy does not list goes with the
        neighbour whose interval holds it, else with the lower one (the lowest if there is none); all else becomes
        ``*``.
        """
        found = []
        for j, name in enumerate(self.names):
            missing = table.schema.missing_tokens(name)
            fitted, places = _fitted_to(table[name], self.hierarchies[j], self.fitted[j], self.described[j], missing)
            found.append((self._as_released(j, fitted), places))
        settings = self.settings_of_new(table, tuple(found))
        labels = [
            self._labels(j, table[name], fitted, places, settings)
            for j, (name, (fitted, places)) in enumerate(zip(self.names, found, strict=True))
        ]
        return _with_labels(table, self.names, labels)

    def unknown(self, table: Table) -> dict[str, NDArray[np.bool_]]:
        """Say by column which rows of another table have a value that this recoding knows nothing of.

        That is one that the hierarchy does not list, unless it is a number (a date, a level) between listed ones or in
        an interval of the hierarchy; and missing, where neither the recoded table nor the hierarchy has it.
        """
        return {
            name: self._unknown(j, table[name], table.schema.missing_tokens(name)) for j, name in enumerate(self.names)
        }

    def _unknown(self, j: int, column: CodedColumn, missing: Sequence[str]) -> NDArray[np.bool_]:
        hierarchy, written = self.shown[j], self.fitted[j].labels[0]
        texts = [None if text is None else text.strip() for text in as_text(column.values).to_pylist()]
        listed = [value.strip() for value in hierarchy.values]
        row_of = {value: row for row, value in enumerate(listed) if value not in missing}
        known = {*written, *row_of, *([None] if any(value in missing for value in listed) else [])}
        new = [text for text in texts if text is not None and text not in known]
        scale = _Scale(hierarchy, self.described[j], row_of, new)
        return np.array([text not in known and (text is None or not scale.has(text)) for text in texts])[column.codes]

    def settings_of_new(
        self, table: Table, fitted: tuple[tuple[Covered, Sequence[int | None]], ...]
    ) -> NDArray[np.intp]:
        """Level combination of each row of another table: the first one.

        Parameters
        ----------
        fitted : tuple of Covered and sequence of int or None
            For each column its labels for the table's values, and the place of each distinct value among them.
        """
        return np.zeros(table.n_rows, dtype=np.intp)

    def as_cells(self, table: Table) -> Table:
        """Write labels as cells of the values that they represent, those of released rows; ``*`` is any value."""
        columns = dict(table.columns)
        for j, name in enumerate(self.names):
            values_of = self._values_of_labels(j, table.schema.missing_tokens(name))
            texts = [
                text if text is None or text == ROOT else cell_of_values(self.described[j], values_of.get(text, [text]))
                for text in columns[name].values.to_pylist()
            ]
            columns[name] = columns[name].recode(pa.array(texts, pa.string()))
        return replace(table, columns=columns)

    def encodable(self) -> dict[str, Column]:
        """Describe the recoded columns for an encoder, by the kind of their original values."""
        return {column.name: column for column in self.described}

    def _values_of_labels(self, j: int, missing: Sequence[str]) -> dict[str, list[str | None]]:
        """Values of each label of the higher levels that rows are released at; all where no released row has one."""
        hierarchy, levels, escaped = self.shown[j], {int(level) for level in self.levels[:, j]}, self._escaped(j)
        texts = [value.strip() for value in hierarchy.values]
        values = [None if text in missing else text for text in texts]
        found: dict[str, list[str | None]] = {
            label: [escaped.get(label, label)] for label in self._labels_of(j, 0) if label and 0 in levels
        }
        for level in sorted(levels - {0}):
            is_shown = self.counts_of_values[j] > 0
            members: dict[int, list[int]] = {}
            for row, code in enumerate(hierarchy.codes[level].tolist()):
                members.setdefault(code, []).append(row)
            for code, rows in members.items():
                shown = [row for row in rows if is_shown[row]] or rows
                found.setdefault(hierarchy.labels[level][code], []).extend(values[row] for row in shown)
        return found

    def recodings(self, released: Table) -> list[dict[str, Any]]:
        """Entries of the manifest: how each column's labels are to be read."""
        return [self._entry(j, released) for j in range(len(self.names))]

    def _entry(self, j: int, released: Table) -> dict[str, Any]:
        used = self._used(j, released)
        described = self.described[j].restricted_to(self._values_below_root(j, used))
        kind = described.kind if described.domain or not described.is_order_recognised else Kind.CATEGORICAL
        entry: dict[str, Any] = {
            "name": described.name,
            "column": described.name,
            "rule": HIERARCHY,
            "kind": str(kind),
            "levels": sorted({int(level) for level in self.levels[:, j]}),
            "labels": listed_labels(
                self.shown[j],
                used,
                described,
                self.covered[j],
                self.counts_of_values[j] > 0,
                released.schema.missing_tokens(described.name),
                self._escaped(j),
            ),
        }
        return entry | ({"domain": list(described.domain)} if described.domain else {})

    def _values_below_root(self, j: int, used: Mapping[str, set[int]]) -> set[str]:
        """Values of released rows that some label other than ``*`` represents: all that an order may name."""
        hierarchy, is_shown = self.shown[j], self.counts_of_values[j] > 0
        escaped = self._escaped(j)
        named = {escaped.get(label, label) for label, levels in used.items() if 0 in levels}
        for level in {level for label, levels in used.items() if label != ROOT for level in levels if level > 0}:
            labels = [hierarchy.labels[level][code] for code in hierarchy.codes[level].tolist()]
            rows = zip(hierarchy.values, labels, is_shown, strict=True)
            named |= {value.strip() for value, label, shown in rows if shown and label != ROOT and label in used}
        return named

    def fully_suppressed(self, released: Table) -> set[str]:
        """Columns of which a release shows nothing: every cell is ``*``."""
        return {name for name in self.names if set(released[name].values.to_pylist()) <= {ROOT}}

    def _used(self, j: int, released: Table) -> dict[str, set[int]]:
        """Released labels of a column and the levels on which they stand."""
        found = {text for text in released[self.names[j]].values.to_pylist() if text is not None}
        levels = {int(level) for level in self.levels[np.unique(self.setting_of_row[self.is_released]), j]}
        return {label: {level for level in levels if label in self._labels_of(j, level)} for label in found}

    def _labels_of(self, j: int, level: int) -> set[str | None]:
        return set(self.covered[j].labels[level])

    def _labels(
        self, j: int, column: CodedColumn, fitted: Covered, places: Sequence[int | None], setting: NDArray[np.intp]
    ) -> CodedColumn:
        """Label of each row of a column, given the place of each distinct value among those that were fitted."""
        texts: dict[str | None, int] = {}
        table = np.empty((len(self.levels) + 1, column.n_distinct), dtype=np.int32)
        for row, level in enumerate([*self.levels[:, j].tolist(), None]):
            labels = [_label(fitted, level, place) for place in places]
            table[row] = [texts.setdefault(label, len(texts)) for label in labels]
        codes = table[setting, column.codes]  # the last row is that of suppressed rows
        values = pa.array(list(texts), pa.string())
        return CodedColumn(codes, values).recode(values)


def released_rows_of_values(column: CodedColumn, is_released: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Released rows of each distinct value of a column."""
    weights = column.weights[is_released] if isinstance(column, WeightedColumn) else None
    return np.bincount(column.codes[is_released], weights, minlength=column.n_distinct).astype(np.int64)


def counts_of_values(hierarchy: Hierarchy, fitted: Covered, rows_of_values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Released rows of each value of a hierarchy, given those of each distinct value of the column."""
    counted = np.bincount(fitted.rows, rows_of_values, minlength=hierarchy.n_values)
    return counted[: hierarchy.n_values].astype(np.int64)


def penalty_of(
    cells: CellTable, covered: Sequence[Covered], levels: NDArray[np.intp], setting_of_cell: NDArray[np.intp]
) -> float:
    """Certainty penalty of cells released at level combinations, see :class:`LevelRecoding`."""
    means = []
    for j, fitted in enumerate(covered):
        of_value = np.ones((len(levels) + 1, fitted.level_codes.shape[1]))
        for setting, level in enumerate(levels[:, j].tolist()):
            n_values = np.rint(fitted.shares[level] * fitted.n_rows)[fitted.level_codes[level]]
            of_value[setting] = np.where(n_values > 1, n_values / fitted.n_rows, 0.0)
        codes = cells.codes[:, cells.columns.index(fitted.name)]
        means.append(np.average(of_value[setting_of_cell, codes], weights=cells.counts))
    return float(np.mean(means)) if means else 0.0


def _fitted_to(
    column: CodedColumn, hierarchy: Hierarchy, trained: Covered, described: Column, missing: Sequence[str]
) -> tuple[Covered, list[int | None]]:
    """Fit a hierarchy to a column other than the one it was first fitted to, whose spellings of values are kept.

    Gives the place of each distinct value of the column as well; ``None`` for one that the hierarchy does not cover.
    """
    own = [text for text in trained.labels[0] if text is not None and text not in missing]
    texts = [None if text is None else text.strip() for text in as_text(column.values).to_pylist()]
    known = {value.strip(): row for row, value in enumerate(hierarchy.values) if value.strip() not in missing}
    listed = {None, *own, *known}
    scale = _Scale(hierarchy, described, known, [text for text in texts if text is not None and text not in listed])
    stand_ins = [text if text is None or text in listed else scale.nearest(text) for text in texts]
    values = pa.array([*own, *stand_ins], pa.string())
    places = np.arange(len(values), dtype=np.int32)
    fitted = covered(hierarchy, CodedColumn(places, values), described.name, described.kind, missing=missing)
    is_covered = [text is None or stand_in is not None for text, stand_in in zip(texts, stand_ins, strict=True)]
    return fitted, [len(own) + i if is_one else None for i, is_one in enumerate(is_covered)]


class _Scale:
    """Values of a hierarchy, and new ones that it does not list, in their order, if their column has one."""

    def __init__(self, hierarchy: Hierarchy, described: Column, row_of: Mapping[str, int], new: Sequence[str]) -> None:
        self._hierarchy = hierarchy
        self._described = described
        self._row_of = row_of
        self._positions: dict[str, float | None] = {**_positions([*row_of, *new], described)} if new else {}

    @cached_property
    def _placed(self) -> list[tuple[float, str]]:
        found = [(self._position(text), text) for text in self._row_of]
        return sorted((position, text) for position, text in found if position is not None)

    def nearest(self, text: str) -> str | None:
        """Value that a value between two others goes with; ``None`` if it has no place in an order.

        That is the one whose interval (month, year) holds it on the lowest level where one does, else the lower one.
        """
        position = self._position(text)
        if position is None or not self._placed:
            return None
        above = bisect_right(self._placed, position, key=itemgetter(0))
        neighbours = self._placed[max(above - 1, 0) : above + 1]
        if neighbours[0][0] == position:
            return neighbours[0][1]
        held_with = self._held_with(text, position, neighbours)
        return neighbours[0][1] if held_with is None else held_with

    def has(self, text: str) -> bool:
        """Whether a value lies between two others, or in an interval of the outermost one."""
        position = self._position(text)
        if position is None or not self._placed:
            return False
        lowest, highest = self._placed[0], self._placed[-1]
        if lowest[0] <= position <= highest[0]:
            return True
        return self._held_with(text, position, [lowest if position < lowest[0] else highest]) is not None

    def _held_with(self, text: str, position: float, neighbours: Sequence[tuple[float, str]]) -> str | None:
        for level in range(1, self._hierarchy.n_levels):
            for _, value in neighbours:
                code = self._hierarchy.codes[level, self._row_of[value]]
                if self._holds(self._hierarchy.labels[level][code], text, position):
                    return value
        return None

    def _holds(self, label: str, text: str, position: float) -> bool:
        """Whether a label is an interval, closed or open at its end, or the beginning of a date, that holds a value."""
        if self._described.kind is Kind.DATE and is_in_calendar(text, label):
            return True
        interval = read_interval(label)
        if interval is None:
            return False
        ends = (interval.low, interval.high)
        low, high = (None if end is None else self._position(end) for end in ends)
        if any(end is not None and place is None for end, place in zip(ends, (low, high), strict=True)):
            return False
        return interval.holds(position, low, high)

    def _position(self, text: str) -> float | None:
        if text not in self._positions:
            self._positions[text] = _positions([text], self._described).get(text)
        return self._positions[text]


def _positions(texts: Sequence[str], described: Column) -> dict[str, float]:
    """Place texts in the order of their column; those that have no place in it are left out."""
    try:
        found = positions_of(described, pa.array(texts, pa.string()))
    except ValueError:
        found = None
    if found is not None:
        return dict(zip(texts, found.tolist(), strict=True))
    if len(texts) < 2 or described.kind is Kind.CATEGORICAL:
        return {}
    middle = len(texts) // 2
    return _positions(texts[:middle], described) | _positions(texts[middle:], described)


def _label(fitted: Covered, level: int | None, place: int | None) -> str | None:
    if level is None or place is None:
        return ROOT
    return fitted.labels[level][int(fitted.level_codes[level][place])]


def _with_labels(table: Table, names: Sequence[str], labels: Sequence[CodedColumn]) -> Table:
    columns, schema = dict(table.columns), dict(table.schema.columns)
    for name, column in zip(names, labels, strict=True):
        columns[name] = column
        schema[name] = replace(schema[name], kind=Kind.CATEGORICAL, domain=None, hierarchy=None)
    return replace(table, schema=replace(table.schema, columns=schema), columns=columns)
