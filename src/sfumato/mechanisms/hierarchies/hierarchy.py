"""Generalization hierarchies: what the values of a column become, level by level."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SchemaError
from sfumato.schema import DEFAULT_MISSING_TOKENS, Kind
from sfumato.table.cells import as_text
from sfumato.table.coding import CodedColumn
from sfumato.table.generalized import write_value

Codes = NDArray[np.int32]
LabelWriter = Callable[[Sequence[str], Sequence[int]], str]

ROOT = "*"
"""Label of the highest level, which stands for every value."""


@dataclass(frozen=True, eq=False, repr=False)
class Hierarchy:
    """Levels of a column's values, from the values themselves to ever larger groups.

    Parameters
    ----------
    labels : tuple of tuple of str
        Labels of each level in the order in which they first occur; those of level 0 are the values.
    codes : ndarray of int32, shape (n_levels, n_values)
        For each level, which label each value has. Levels are nested: values with one label on a level have one label
        on every higher level.
    write : callable or None
        Writes the label of a group of values, for a hierarchy that was built from the values of a table: given those of
        the group that are released, in the order of the rows, and how many rows have each. ``None``: labels are words
        of somebody who chose them, and stay as they are.
    standard : str
        Name of the ready hierarchy that it is; empty for all others.

    Examples
    --------
    >>> jobs = Hierarchy.from_rows([("nurse", "health", "*"), ("cook", "kitchen", "*"), ("doctor", "health", "*")])
    >>> jobs.n_levels, jobs.labels[1], jobs.codes[1].tolist()
    (3, ('health', 'kitchen'), [0, 1, 0])
    """

    labels: tuple[tuple[str, ...], ...]
    codes: Codes
    write: LabelWriter | None = None
    standard: str = ""

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(level):,}" for level in self.labels)
        return f"Hierarchy({self.n_levels} levels: {sizes} labels)"

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[str]]) -> Hierarchy:
        """Build from one row a value: the value and its label on each higher level.

        Raises
        ------
        SchemaError
            If there is a fault: see :func:`faults_of`. The message gives rows and levels, never a value.
        """
        for fault in faults_of(rows):
            raise SchemaError(fault.in_words("row"), hint=fault.hint)
        return cls(*_coded(rows))

    @property
    def n_levels(self) -> int:
        """Number of levels, level 0 (the values) counted."""
        return len(self.labels)

    @property
    def n_values(self) -> int:
        """Number of values that the hierarchy covers."""
        return int(self.codes.shape[1])

    @property
    def values(self) -> tuple[str, ...]:
        """Values that the hierarchy covers."""
        return self.labels[0]

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Give each value with its label on each higher level, as :meth:`from_rows` takes them."""
        for codes in self.codes.T.tolist():
            yield tuple(level[code] for level, code in zip(self.labels, codes, strict=True))

    def level_of(self, label: str) -> int:
        """Lowest level that has a label.

        Raises
        ------
        KeyError
            If none has; the label is not in the message.
        """
        for level, labels in enumerate(self.labels):
            if label in labels:
                return level
        problem = "no level of the hierarchy has this label"
        raise KeyError(problem)

    @cached_property
    def parents(self) -> tuple[Codes, ...]:
        """For each level but the highest, which label of the next level each label becomes."""
        found = []
        for below, above in zip(self.codes[:-1], self.codes[1:], strict=True):
            parent = np.zeros(int(below.max()) + 1, dtype=np.int32)
            parent[below] = above
            found.append(parent)
        return tuple(found)

    def shares(self, level: int) -> NDArray[np.float64]:
        """Share of the hierarchy's values that each label of a level represents."""
        return np.bincount(self.codes[level], minlength=len(self.labels[level])) / self.n_values

    def with_root(self) -> Hierarchy:
        """Add a level at which every value is ``*``, unless the highest level has one label already."""
        if len(self.labels[-1]) == 1:
            return self
        top = np.zeros((1, self.n_values), dtype=np.int32)
        return replace(self, labels=(*self.labels, (ROOT,)), codes=np.vstack([self.codes, top]))

    def joining_levels(self) -> Hierarchy:
        """Leave out levels that join nothing, and end in one label; for built hierarchies, whose levels nobody named.

        A level joins nothing if it has as many labels as the level below. Of several levels with one label the highest
        stays.

        Examples
        --------
        >>> rows = [("m", "man", "adult"), ("w", "woman", "adult"), ("b", "boy", "minor")]
        >>> Hierarchy.from_rows(rows).joining_levels().labels
        (('m', 'w', 'b'), ('adult', 'minor'), ('*',))
        """
        whole = self.with_root()
        sizes = [len(level) for level in whole.labels]
        kept = [0, *(level for level in range(1, whole.n_levels) if 1 < sizes[level] < sizes[level - 1])]
        if whole.n_levels > 1:
            kept.append(whole.n_levels - 1)
        return replace(whole, labels=tuple(whole.labels[level] for level in kept), codes=whole.codes[kept])

    def showing(self, counts: NDArray[np.int64]) -> Hierarchy:
        """Write built labels again, so that they name nothing but values of released rows.

        Parameters
        ----------
        counts : ndarray of int64
            Released rows of each value. A group without any becomes ``*``: no released row has its label.

        Examples
        --------
        >>> built = Hierarchy.from_rows([("a", "{a|b}", "*"), ("b", "{a|b}", "*"), ("c", "c", "*")])
        >>> replace(built, write=lambda values, counts: "|".join(values)).showing(np.array([4, 0, 0])).labels
        (('a', 'b', 'c'), ('a', '*'), ('*',))
        """
        if self.write is None:
            return self
        labels = [self.labels[0]]
        for level in range(1, self.n_levels):
            members: list[list[int]] = [[] for _ in self.labels[level]]
            for row in np.flatnonzero(counts).tolist():
                members[int(self.codes[level, row])].append(row)
            labels.append(
                tuple(
                    ROOT if label == ROOT or not rows else self._written(rows, counts)
                    for label, rows in zip(self.labels[level], members, strict=True)
                )
            )
        return replace(self, labels=tuple(labels))

    def _written(self, rows: Sequence[int], counts: NDArray[np.int64]) -> str:
        values = [self.values[row] for row in rows]
        if self.write is None or len(values) == 1:
            return values[0] if self.write is None else write_value(values[0])
        return self.write(values, [int(counts[row]) for row in rows])


@dataclass(frozen=True)
class Fault:
    """What keeps rows from being a hierarchy.

    Parameters
    ----------
    rows : tuple of int
        Rows that are at fault, from 0; none if all are.
    problem, hint : str
        What is wrong with them, and what to do.
    """

    rows: tuple[int, ...]
    problem: str
    hint: str

    def in_words(self, unit: str, numbers: Sequence[int] | None = None) -> str:
        """Say which rows (or lines of a file, with their numbers) have the problem."""
        if not self.rows:
            return self.problem
        shown = [f"{row + 1 if numbers is None else numbers[row]:,}" for row in self.rows]
        return f"{unit}{'s' if len(shown) > 1 else ''} {' and '.join(shown)} of a hierarchy {self.problem}"


def faults_of(rows: Sequence[Sequence[str]]) -> Iterator[Fault]:
    """Find what keeps rows (the value and its label on each higher level) from being a hierarchy.

    No rows, rows of different lengths, a value without a label on some level, a value that stands in two rows, and a
    level that splits what a lower one joined. Where rows differ in length, nothing else is looked for.
    """
    if not rows or not len(rows[0]):
        yield Fault((), "a hierarchy without rows or levels", "give one row a value: the value;its group;…;*")
        return
    unequal = [row for row, cells in enumerate(rows) if len(cells) != len(rows[0])]
    for row in unequal:
        problem = f"has {len(rows[row])} levels, the first row {len(rows[0])}"
        yield Fault((row,), problem, "repeat the label where a value has no finer group on a level")
    if unequal:
        return
    for row, cells in enumerate(rows):
        if cells[0] and not all(cells):  # the row of a missing value, which is empty itself, may have empty labels
            yield Fault((row,), f"has no label on level {list(map(bool, cells)).index(False)}", "write one, or *")
    codes = _coded(rows)[1]
    first_of: dict[int, int] = {}
    for row, value in enumerate(codes[0].tolist()):
        if first_of.setdefault(value, row) != row:
            yield Fault((first_of[value], row), "are for the same value", "keep one of them")
    for level, (below, above) in enumerate(pairwise(codes), start=1):
        first = np.unique(below, return_index=True)[1][below]
        for row in np.flatnonzero(above[first] != above).tolist():
            problem = (
                f"have the same label on level {level - 1} and different ones on level {level}: "
                "a level may not split what a lower one joined"
            )
            yield Fault((int(first[row]), row), problem, "give both the same label on the higher level")


def _coded(rows: Sequence[Sequence[str]]) -> tuple[tuple[tuple[str, ...], ...], Codes]:
    columns = list(zip(*rows, strict=True))
    labels = tuple(tuple(dict.fromkeys(column)) for column in columns)
    number = [{label: i for i, label in enumerate(level)} for level in labels]
    codes = [[n[label] for label in column] for n, column in zip(number, columns, strict=True)]
    return labels, np.array(codes, dtype=np.int32)


# A hierarchy fitted to a column: which label each value that occurs has on each level.


_UNCOVERED = -1


@dataclass(frozen=True, eq=False, repr=False)
class Covered:
    """Levels of the values of one column.

    Parameters
    ----------
    name : str
        Of the column.
    labels : tuple of tuple of (str or None)
        For each level the labels that occur, in the order in which they first occur among the column's values; those
        of level 0 are the values as the column writes them. ``None`` is missing.
    level_codes : ndarray of int32, shape (n_levels, n_distinct)
        For each level, which label each distinct value of the column has, in the order of the column's codes. Values
        that are one number (``39`` and ``39.0``) have one label on level 0 too.
    shares : tuple of ndarray of float64
        For each level and label, share of the hierarchy's rows that have this label: ARX's measure of how coarse a
        label is, from 1 / ``n_rows`` to 1.
    n_rows : int
        Rows of the hierarchy, the one added for missing counted.
    rows : ndarray of int
        Row of the hierarchy of each distinct value of the column, in the order of the column's codes.
    """

    name: str
    labels: tuple[tuple[str | None, ...], ...]
    level_codes: Codes
    shares: tuple[NDArray[np.float64], ...]
    n_rows: int
    rows: NDArray[np.intp]

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(level):,}" for level in self.labels)
        return f"Covered('{self.name}', {self.n_levels} levels: {sizes} labels)"

    @property
    def n_levels(self) -> int:
        """Number of levels, level 0 (the values) counted."""
        return len(self.labels)

    def level_maps_from(self, base: int) -> tuple[Codes, ...]:
        """For each level from a base on, which label each label of the base has; the first entry is the identity."""
        first = np.unique(self.level_codes[base], return_index=True)[1]
        return tuple(np.ascontiguousarray(codes[first]) for codes in self.level_codes[base:])

    def merged_at(self, level: int) -> Codes:
        """For each distinct value of the column, in the order of its codes, the first one with the same label."""
        _, first, labels = np.unique(self.level_codes[level], return_index=True, return_inverse=True)
        return np.asarray(first[labels], dtype=np.int32)

    def renamed(self, before: Hierarchy, after: Hierarchy) -> Covered:
        """Write the labels of higher levels as another hierarchy of the same groups does."""
        named = [dict(zip(*level, strict=True)) for level in zip(before.labels, after.labels, strict=True)]
        higher = [
            tuple(None if label is None else names.get(label, label) for label in level)
            for names, level in zip(named[1:], self.labels[1:], strict=True)
        ]
        return replace(self, labels=(self.labels[0], *higher))


def covered(
    hierarchy: Hierarchy,
    column: CodedColumn,
    name: str,
    kind: Kind,
    *,
    missing: Sequence[str] = DEFAULT_MISSING_TOKENS,
) -> Covered:
    """Find the row of each distinct value of a column in a hierarchy.

    Numbers of a numeric column match by size (``39`` is ``39.0``), all else as trimmed text. A hierarchy may list
    missing as a value, written as one of the ``missing`` tokens. Where it does not, missing gets a row of its own:
    missing on every level, and ``*`` with all other values on the highest, if that has one label.

    Raises
    ------
    SchemaError
        If values are not covered, two rows stand for one value, or a label of values reads as missing. The message
        gives numbers of values and rows, never a value.

    Examples
    --------
    >>> import pyarrow as pa
    >>> ages = Hierarchy.from_rows([("29", "under 40", "*"), ("39", "under 40", "*"), ("41", "from 40", "*")])
    >>> found = covered(ages, CodedColumn.encode(pa.array(["39.0", "41", None])), "age", Kind.NUMERIC)
    >>> found.labels
    (('39.0', '41', None), ('under 40', 'from 40', None), ('*',))
    >>> found.shares[1].tolist(), found.n_rows
    ([0.5, 0.25, 0.25], 4)
    """
    texts = [None if text is None else text.strip() for text in as_text(column.values).to_pylist()]
    row_by_key = _row_by_key(hierarchy, name, kind, set(missing))
    rows = np.array([row_by_key.get(_key(text, kind), _UNCOVERED) for text in texts], dtype=np.intp)
    if (uncovered := rows == _UNCOVERED).any():
        n_rows = int(column.counts[uncovered].sum())
        problem = (
            f"its hierarchy does not cover {int(uncovered.sum()):,} of {len(rows):,} values "
            f"({n_rows:,} of {column.n_rows:,} rows)"
        )
        hint = "add a row for each, or build a hierarchy that covers them"
        raise SchemaError(problem, column=name, hint=hint, remedy=("hierarchies",))
    labels, codes = _with_missing(hierarchy, name, set(missing), is_added=bool((rows == hierarchy.n_values).any()))
    shares = [np.bincount(level, minlength=len(names)) / len(level) for names, level in zip(labels, codes, strict=True)]
    found = [_occurring(level[rows]) for level in codes]
    written = [tuple(names[i] for i in kept) for names, (kept, _) in zip(labels, found, strict=True)]
    written[0] = tuple(texts[i] for i in _first_places(found[0][1]))
    return Covered(
        name,
        tuple(written),
        np.vstack([renumbered for _, renumbered in found]).astype(np.int32),
        tuple(share[kept] for share, (kept, _) in zip(shares, found, strict=True)),
        codes.shape[1],
        rows,
    )


def _key(text: str | None, kind: Kind) -> Hashable:
    """By what a value is looked up: its size if it is a number of a numeric column, else its text."""
    if text is None or kind is not Kind.NUMERIC:
        return text
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    return text if number.is_nan() else number


def _row_by_key(hierarchy: Hierarchy, name: str, kind: Kind, missing: set[str]) -> dict[Hashable, int]:
    """Row of each value that the hierarchy lists; the key of missing is ``None``, last row plus one if not listed."""
    found: dict[Hashable, int] = {}
    for row, value in enumerate(hierarchy.values):
        text = value.strip()
        key = None if text in missing else _key(text, kind)
        if key in found:
            problem = f"rows {found[key] + 1:,} and {row + 1:,} of its hierarchy are the same value"
            raise SchemaError(problem, column=name, hint="keep one of them")
        found[key] = row
    found.setdefault(None, hierarchy.n_values)
    return found


def _with_missing(
    hierarchy: Hierarchy, name: str, missing: set[str], *, is_added: bool
) -> tuple[list[tuple[str | None, ...]], Codes]:
    """Write what means missing as ``None``, and add the row of missing if the column has it and no row lists it."""
    labels: list[tuple[str | None, ...]] = [
        tuple(None if label.strip() in missing else label for label in level) for level in hierarchy.labels
    ]
    _check_missing_is_apart(labels, hierarchy.codes, name)
    if not is_added:
        return labels, hierarchy.codes
    own = []
    for level, names in enumerate(labels):
        is_root = level > 0 and level == len(labels) - 1 and len(names) == 1
        labels[level] = (ROOT,) if is_root else (*names, None)
        own.append(0 if is_root else len(names))
    return labels, np.column_stack([hierarchy.codes, np.array(own, dtype=np.int32)])


def _check_missing_is_apart(labels: Sequence[tuple[str | None, ...]], codes: Codes, name: str) -> None:
    """Refuse a level on which values, and not only missing, get a label that a reader takes for missing."""
    is_value = np.array([label is not None for label in labels[0]])[codes[0]]
    for level, names in enumerate(labels):
        reads_missing = np.array([label is None for label in names])[codes[level]]
        wrong = np.flatnonzero(reads_missing & is_value)
        if len(wrong):
            problem = (
                f"level {level} of its hierarchy gives {len(wrong):,} values a label that means missing "
                f"(first: row {int(wrong[0]) + 1:,})"
            )
            raise SchemaError(problem, column=name, hint="choose another label, or other missing tokens")


def _occurring(codes: Codes) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Labels that occur, in the order in which they first do, and the codes numbered by that order."""
    distinct, inverse = np.unique(codes, return_inverse=True)
    order = np.argsort(_first_places(inverse))
    rank = np.empty(len(distinct), dtype=np.intp)
    rank[order] = np.arange(len(distinct))
    return distinct[order].astype(np.intp), rank[inverse]


def _first_places(codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Where each code, from 0 without gaps, first stands."""
    return np.unique(codes, return_index=True)[1]
