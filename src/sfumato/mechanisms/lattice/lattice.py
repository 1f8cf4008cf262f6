"""Lattice of hierarchy levels: every column of a table is taken to one of its levels, and each way is a node.

A node is above another one when it is at least as high on every column; its classes are made up of whole classes of the
other one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError
from sfumato.mechanisms.hierarchies.hierarchy import ROOT, Covered
from sfumato.mechanisms.lattice.conditions import Condition, Flags
from sfumato.mechanisms.population import PopulationPromises, different_people
from sfumato.table.coding import Table

Codes = NDArray[np.integer]
Ints = NDArray[np.int64]
Places = NDArray[np.intp]
Levels = tuple[int, ...]


@dataclass(frozen=True, repr=False, eq=False)
class LatticeProblem:
    """Cells of a table, the levels its quasi-identifiers may be taken to, and what the result must satisfy.

    Parameters
    ----------
    codes : int array of shape (n_cells, n_columns)
        Value number of each quasi-identifier. Cells are distinct over quasi-identifiers, sensitive columns and target.
    counts : int64 array of shape (n_cells,)
        Rows that each cell stands for, at least 1.
    level_maps : for each column, for each level, an int array
        Label number of each value; level 0 is the identity, and levels are nested.
    shares : for each column, for each level, a float array
        Share of the hierarchy's values that each label stands for.
    k : int
        Rows that a class needs.
    max_suppressed_fraction : float
        Largest share of the rows, in [0, 1], whose classes may be left out. One row at least stays, even with 1.
    conditions : tuple of Condition
        What every class must satisfy besides its size.
    loss : str
        Name in :data:`sfumato.mechanisms.lattice.losses.LOSSES`.
    weights : sequence of float or None
        Weight of each column in the loss; equal ones if left out.
    sensitive : tuple of int arrays of shape (n_cells,)
        Value number of each sensitive column.
    target : int array of shape (n_cells,) or None
        Class number of each cell, for losses that ask for it.
    base : tuple of int or None
        Level of each column's hierarchy that level 0 of the problem is, where cells were not counted at finer ones;
        ``None``: 0 of every column.
    least_shares : tuple of float or None
        Share of each hierarchy's values that a single value is; ``None``: the least at level 0.
    limits_persons : bool
        Whether the largest share of rows that may be left out is that of persons who may lose a row as well, where a
        condition tells persons apart.
    people : LatticePeople or None
        A population, of whose people every class must fit enough; ``None``: nothing is asked about one.
    """

    codes: Codes
    counts: Ints
    level_maps: tuple[tuple[Codes, ...], ...]
    shares: tuple[tuple[NDArray[np.float64], ...], ...]
    k: int = 1
    max_suppressed_fraction: float = 0.0
    conditions: tuple[Condition, ...] = ()
    loss: str = "loss"
    weights: Sequence[float] | None = None
    sensitive: tuple[Codes, ...] = ()
    target: Codes | None = None
    base: Levels | None = None
    least_shares: tuple[float, ...] | None = None
    limits_persons: bool = False
    people: LatticePeople | None = None

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InvalidParameterError("k", f"got {self.k}", allowed="at least 1")
        check_suppression_limit(self.max_suppressed_fraction)
        wrong = [m for m in self.conditions if not 0 <= m.column < len(self.sensitive)]
        if wrong:
            allowed = f"the place of one of the {len(self.sensitive)} sensitive columns"
            raise InvalidParameterError("column", f"a condition has {wrong[0].column}", allowed=allowed)
        if len(self.counts) == 0 or self.counts.min() < 1:
            problem = "got none" if len(self.counts) == 0 else "some are less"
            raise InvalidParameterError("counts", problem, allowed="at least 1 for each of one or more cells")
        if self.codes.shape[1] == 0:
            raise InvalidParameterError("codes", "got no column", allowed="of at least one column")
        if len(self.level_maps) != self.codes.shape[1] or len(self.shares) != self.codes.shape[1]:
            problem = f"got {len(self.level_maps)} and {len(self.shares)}"
            raise InvalidParameterError("level_maps and shares", problem, allowed="given for every column of the codes")

    def __repr__(self) -> str:
        return f"LatticeProblem({len(self.counts):,} cells, {self.n_nodes:,} nodes, k={self.k}, loss={self.loss!r})"

    @cached_property
    def n_rows(self) -> int:
        """Rows that the cells represent."""
        return int(self.counts.sum())

    @cached_property
    def max_suppressed(self) -> int:
        """Most rows that may be left out, never all."""
        return min(self.largest_part(self.n_rows), self.n_rows - 1)

    def largest_part(self, n: int) -> int:
        """Most of so many that may be left out; the fraction is taken as the decimal number it is written as."""
        return math.floor(Fraction(str(float(self.max_suppressed_fraction))) * n)

    @property
    def n_columns(self) -> int:
        """Number of quasi-identifiers."""
        return int(self.codes.shape[1])

    @cached_property
    def shape(self) -> Levels:
        """Number of levels of each column."""
        return tuple(len(maps) for maps in self.level_maps)

    @cached_property
    def n_nodes(self) -> int:
        """Number of level combinations."""
        total = 1
        for n_levels in self.shape:
            total *= n_levels
        return total

    @cached_property
    def top(self) -> Levels:
        """Highest level of every column."""
        return tuple(n - 1 for n in self.shape)

    @property
    def is_from_finest(self) -> bool:
        """Whether level 0 of every column is that of its hierarchy: there is no finer node."""
        return not any(self.base or ())

    def in_hierarchies(self, levels: Levels) -> Levels:
        """Levels of the columns' hierarchies that a node takes them to."""
        return levels if self.base is None else tuple(a + b for a, b in zip(levels, self.base, strict=True))

    def least_share(self, column: int) -> float:
        """Share of its hierarchy's values that a single value of a column is; some may not occur."""
        return float(self.shares[column][0].min()) if self.least_shares is None else self.least_shares[column]

    def value_counts(self, column: int) -> Ints:
        """Rows that have each value of a quasi-identifier."""
        n_values = len(self.level_maps[column][0])
        return bincount(self.codes[:, column], self.counts, n_values)


def bincount(codes: NDArray[np.integer], counts: Ints, n: int) -> Ints:
    """Add up the counts of each code, in whole numbers."""
    return np.asarray(np.bincount(codes, weights=counts, minlength=n)).astype(np.int64)


def check_suppression_limit(fraction: float) -> None:
    """Refuse a share of rows that is none."""
    if not 0 <= fraction <= 1:
        hint = "it is a fraction, not a percentage; 1.5 % is 0.015"
        raise InvalidParameterError("max_suppressed_fraction", f"got {fraction!r}", allowed="from 0 to 1", hint=hint)


# Class tables of the nodes of a lattice of hierarchy levels.
#
# Cells are counted once; the classes of a node are rolled up from the table of a node below it, never from the rows.


LabelsOfEntries = Callable[[int, Places], Codes]

_MAX_KEY = 2**62
_MAX_DENSE = 2**22
_SMALL_SPAN = 2**16
_TABLE_BUDGET = 16_000_000
"""Most labels that kept tables hold."""
_MAX_TABLES = 1000
_SMALL_TABLE = 1000
"""Entries of a table that others are quickly rolled up from."""


class ClassTable:
    """Classes of a node; where there are sensitive columns or a target, their combinations within each class.

    An entry is a class, or a class and such a combination. Entries of one class are neighbours, and both classes and
    combinations ascend.

    Parameters
    ----------
    levels : tuple of int
    counts : int64 array
        Rows of each entry.
    extra : int array or None
        Combination of sensitive values and target of each entry.
    starts : int array or None
        First entry of each class; ``None`` where every entry is a class.
    labels : callable of a column and entries
        Labels of entries.
    """

    def __init__(
        self, levels: Levels, counts: Ints, extra: Codes | None, starts: Places | None, labels: LabelsOfEntries
    ) -> None:
        self.levels = levels
        self.counts = counts
        self.extra = extra
        self.starts = starts
        self.labels = labels

    @property
    def n_entries(self) -> int:
        """Number of entries."""
        return len(self.counts)

    @cached_property
    def sizes(self) -> Ints:
        """Rows of each class."""
        return self.counts if self.starts is None else np.add.reduceat(self.counts, self.starts)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.n_entries if self.starts is None else len(self.starts)

    @cached_property
    def entry_classes(self) -> Places:
        """Class of each entry."""
        if self.starts is None:
            return np.arange(self.n_entries)
        marks = np.zeros(self.n_entries, dtype=np.intp)
        marks[self.starts[1:]] = 1
        return np.cumsum(marks)

    def class_labels(self, column: int, classes: Places) -> Codes:
        """Labels of classes."""
        return self.labels(column, classes if self.starts is None else self.starts[classes])


class RollUp:
    """Class tables of nodes, each rolled up from the smallest kept table of a node below.

    A table is kept when it is half as large as the one that it was rolled up from, or smaller.

    Parameters
    ----------
    problem : LatticeProblem
    with_target : bool
        Tell the rows of a class apart by target, if there is one.

    Examples
    --------
    >>> maps = ((np.array([0, 1, 2]), np.array([0, 0, 1]), np.array([0, 0, 0])),)
    >>> shares = ((np.full(3, 1 / 3), np.array([2, 1]) / 3, np.ones(1)),)
    >>> problem = LatticeProblem(np.array([[0], [1], [2]]), np.array([4, 1, 2]), maps, shares)
    >>> RollUp(problem).table((1,)).sizes.tolist()
    [5, 2]
    """

    def __init__(self, problem: LatticeProblem, with_target: bool = True) -> None:
        self.problem = problem
        self.combinations = Combinations.of(problem, with_target)
        columns = [np.ascontiguousarray(column, dtype=np.int64) for column in problem.codes.T]
        self._n_labels = [[int(m.max()) + 1 for m in maps] for maps in problem.level_maps]
        self._steps: dict[tuple[int, int, int], Codes] = {}
        bottom = (0,) * problem.n_columns
        self._kept: dict[Levels, _Kept] = {}
        self._kept_entries = 0
        self._sorted_kept: tuple[list[_Kept], Ints] | None = None
        self._bottom = _Kept(bottom, columns, self.combinations.of_cells, problem.counts)

    def table(self, levels: Levels) -> ClassTable:
        """Classes of a node."""
        if self._sorted_kept is None:
            smallest_first = sorted(self._kept.values(), key=lambda table: len(table.counts))
            nodes = np.array([table.levels for table in smallest_first], dtype=np.int64)
            self._sorted_kept = smallest_first, nodes.reshape(-1, self.problem.n_columns)
        kept, nodes = self._sorted_kept
        below = np.flatnonzero((nodes <= np.array(levels)).all(axis=1))
        source = kept[int(below[0])] if len(below) else self._bottom
        table = self._group(source, levels)
        if 2 * table.n_entries <= len(source.counts) and len(source.counts) > _SMALL_TABLE and levels not in self._kept:
            self._keep(table)
        return table

    def classes_of_cells(self, levels: Levels) -> Places:
        """Class number of each cell in :meth:`table` of a node."""
        key, _ = self._class_keys(self._bottom, levels)
        return np.asarray(np.unique(key, return_inverse=True)[1].reshape(-1), dtype=np.intp)

    def _keep(self, table: ClassTable) -> None:
        entries = np.arange(table.n_entries)
        labels = [table.labels(j, entries) for j in range(self.problem.n_columns)]
        self._kept[table.levels] = _Kept(table.levels, labels, table.extra, table.counts)
        self._kept_entries += len(table.counts)
        self._sorted_kept = None
        most = max(_TABLE_BUDGET // self.problem.n_columns, 2 * len(self.problem.counts))
        while len(self._kept) > 1 and (self._kept_entries > most or len(self._kept) > _MAX_TABLES):
            oldest = next(iter(self._kept))
            self._kept_entries -= len(self._kept.pop(oldest).counts)

    def _step(self, column: int, low: int, high: int) -> Codes:
        """Label on a higher level of each label of a lower one."""
        if (column, low, high) not in self._steps:
            maps = self.problem.level_maps[column]
            step = np.zeros(self._n_labels[column][low], dtype=np.int64)
            step[maps[low]] = maps[high]
            self._steps[column, low, high] = step
        return self._steps[column, low, high]

    def _labels(self, source: _Kept, column: int, level: int, entries: Places | slice) -> Codes:
        codes, low = source.labels[column][entries], source.levels[column]
        return codes if low == level else self._step(column, low, level)[codes]

    def _class_keys(self, source: _Kept, levels: Levels) -> tuple[Ints, int]:
        """Keys that tell the classes of a node apart, for the entries of a finer table, and how many there can be."""
        key, span = np.zeros(len(source.counts), dtype=np.int64), 1
        for column, level in enumerate(levels):
            radix = self._n_labels[column][level]
            if radix == 1:
                continue
            if span * radix > _MAX_KEY // max(self.combinations.n, 1):
                present, key = np.unique(key, return_inverse=True)
                span = len(present)
            if span > 1:
                key *= radix
                key += self._labels(source, column, level, slice(None))
            else:
                key = self._labels(source, column, level, slice(None)).astype(np.int64)
            span *= radix
        return key, span

    def _group(self, source: _Kept, levels: Levels) -> ClassTable:
        key, span = self._class_keys(source, levels)
        n_extra = self.combinations.n
        if source.extra is not None:
            key = key * n_extra + source.extra
            span *= n_extra
        present, counts, picked = _grouped(key, span, source.counts)

        def labels(column: int, entries: Places) -> Codes:
            return self._labels(source, column, levels[column], picked()[entries])

        if source.extra is None:
            return ClassTable(levels, counts, None, None, labels)
        classes, extra = np.divmod(present, n_extra)
        starts = np.concatenate([[0], np.flatnonzero(np.diff(classes)) + 1])
        return ClassTable(levels, counts, extra, starts, labels)


@dataclass(frozen=True, eq=False)
class _Kept:
    """A table that others are rolled up from, column by column."""

    levels: Levels
    labels: Sequence[Codes]
    extra: Codes | None
    counts: Ints


@dataclass(frozen=True, eq=False)
class Combinations:
    """Combinations of sensitive values and target that occur, numbered.

    Parameters
    ----------
    n : int
        How many there are; 1 without sensitive columns and target.
    of_cells : int array or None
        Combination of each cell; ``None`` without sensitive columns and target.
    sensitive : tuple of int arrays
        For each sensitive column its value in each combination.
    target : int array or None
        Target of each combination.
    """

    n: int
    of_cells: Codes | None
    sensitive: tuple[Ints, ...]
    target: Ints | None

    @classmethod
    def of(cls, problem: LatticeProblem, with_target: bool = True) -> Combinations:
        """Find the combinations of a problem's cells; columns that nothing asks for are left out."""
        sensitive = problem.sensitive if problem.conditions else ()
        columns = [*sensitive] if problem.target is None or not with_target else [*sensitive, problem.target]
        if not columns:
            return cls(1, None, (), None)
        rows, of_cells = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        values = tuple(np.ascontiguousarray(rows[:, i], dtype=np.int64) for i in range(rows.shape[1]))
        target = values[-1] if len(values) > len(sensitive) else None
        return cls(len(rows), of_cells.reshape(-1).astype(np.int64), values[: len(sensitive)], target)


def sums_by_key(key: Places, span: int, counts: Ints) -> tuple[Ints, Ints]:
    """Distinct keys, ascending, and the counts of each added up."""
    present, sums, _ = _grouped(key, span, counts)
    return present, sums


def _grouped(key: Places, span: int, counts: Ints) -> tuple[Ints, Ints, Callable[[], Places]]:
    """Distinct keys, their counts added up, and, when asked for, the place of one occurrence of each."""
    if span <= min(_MAX_DENSE, max(_SMALL_SPAN, 8 * len(key))):
        sums = np.bincount(key, weights=counts, minlength=span)
        present = np.flatnonzero(sums)

        @cache
        def picked() -> Places:
            place = np.empty(span, dtype=np.intp)
            place[key] = np.arange(len(key))
            return place[present]

        return present, sums[present].astype(np.int64), picked
    order = np.argsort(key)
    ordered = key[order]
    first = np.concatenate([[0], np.flatnonzero(np.diff(ordered)) + 1])
    picked_places = order[first]
    return ordered[first], np.add.reduceat(counts[order], first), lambda: picked_places


# People of a population table who fit the classes of a node.
#
# A class of a node above holds whole classes of the node, and so do the people who fit it. Hence k-map is monotone with
# suppression: a class satisfies it as soon as one of the classes that make it up does. A share of rows among people in
# a joined class is a mean of those in its parts, weighted by people, with share 0 where no row is; so both limits of
# δ-presence are monotone where nothing is suppressed, and not otherwise, see :mod:`.conditions`.


@dataclass(frozen=True, repr=False, eq=False)
class LatticePeople:
    """People by their values on the quasi-identifiers, and what every class must satisfy.

    Parameters
    ----------
    codes : int array of shape (n_different, n_columns)
        Value numbers as in the codes of a problem; a value that nobody in the table has is the number after the last.
    counts : int64 array
        How many people are alike.
    has_star : tuple of bool
        Of each column whether its highest level is ``*``, which means values that nobody in the table has too. On other
        levels a label may mean them, or not: people with such values fit no row there, as far as is counted.
    """

    codes: Codes
    counts: Ints
    has_star: tuple[bool, ...]
    k_map: int = 1
    delta_max: float = math.inf
    delta_min: float = 0.0

    @classmethod
    def of(
        cls, table: Table, names: Sequence[str], fitted: Sequence[Covered], promised: PopulationPromises
    ) -> LatticePeople | None:
        """Put the people of a population beside the values of a table; ``None`` where nothing is promised of them."""
        if not promised.about or promised.population is None:
            return None
        codes = []
        for own, column in zip(fitted, promised.population.beside(table, names), strict=True):
            code_at = np.full(column.missing + 2, -1, dtype=np.int64)
            code_at[column.of_values[::-1]] = np.arange(len(column.of_values))[::-1]
            found = code_at[column.of_people]
            codes.append(np.where(found < 0, len(own.labels[0]), own.level_codes[0][found]))
        stars = tuple(own.labels[-1] == (ROOT,) for own in fitted)
        different, counts = different_people(codes)
        k_map = 1 if promised.k_map is None else promised.k_map.k_map
        if promised.presence is None:
            return cls(different, counts, stars, k_map)
        return cls(different, counts, stars, k_map, promised.presence.delta_max, promised.presence.delta_min)


class PeopleOfNodes:
    """People who fit the classes of nodes, rolled up as the rows are."""

    def __init__(self, people: LatticePeople, problem: LatticeProblem) -> None:
        self._people = people
        own = []
        for maps, has_star in zip(problem.level_maps, people.has_star, strict=True):
            # a value that the table lacks has a label of its own on every level, but for ``*`` on the highest
            foreign = [int(labels.max()) + 1 for labels in maps]
            foreign[-1] = 0 if has_star else foreign[-1]
            own.append(tuple(np.append(labels, label) for labels, label in zip(maps, foreign, strict=True)))
        self._n_labels = [[int(labels.max()) + 1 for labels in maps] for maps in own]
        self._roll_up = RollUp(LatticeProblem(people.codes, people.counts, tuple(own), problem.shares))

    @property
    def asks_for_shares(self) -> bool:
        """Whether something is asked of the share of rows among people, which is not monotone with suppression."""
        return self._people.delta_max < math.inf or self._people.delta_min > 0

    def fits_enough(self, table: ClassTable) -> Flags:
        """Whether classes fit as many people as they must, which is monotone with suppression."""
        return np.asarray(self._of_classes(table) >= self._people.k_map)

    def has_right_shares(self, table: ClassTable) -> Flags:
        """Whether the rows of classes are neither too large nor too small a share of the people who fit them."""
        own, people = self._people, self._of_classes(table)
        is_somebody_left = int(people.sum()) < int(own.counts.sum())
        if own.delta_min > 0 and is_somebody_left:  # who fits no class is in the release with probability 0
            return np.zeros(table.n_classes, dtype=np.bool_)
        return np.asarray((table.sizes <= own.delta_max * people) & (table.sizes >= own.delta_min * people))

    def worst(self, table: ClassTable) -> list[tuple[str, float, bool]]:
        """Name what is asked for, the level of the worst class, and whether it is enough."""
        people = self._of_classes(table)
        least = int(people.min())
        found = [(f"{self._people.k_map}-map", float(least), least >= self._people.k_map)]
        if self.asks_for_shares:
            largest = float((table.sizes / np.maximum(people, 1)).max())
            asked = f"presence from {self._people.delta_min:g} to {self._people.delta_max:g}"
            found.append((asked, largest, bool(self.has_right_shares(table).all())))
        return found

    def _of_classes(self, table: ClassTable) -> Ints:
        """People who fit each class."""
        people = self._roll_up.table(table.levels)
        n_classes, every, each = table.n_classes, np.arange(table.n_classes), np.arange(people.n_classes)
        key, span = np.zeros(n_classes + people.n_classes, dtype=np.int64), 1
        for column, level in enumerate(table.levels):
            radix = self._n_labels[column][level]
            if span > _MAX_KEY // radix:
                present, key = np.unique(key, return_inverse=True)
                span = len(present)
            labels = [table.class_labels(column, every), people.class_labels(column, each)]
            key = key.reshape(-1) * radix + np.concatenate(labels)
            span *= radix
        order = np.argsort(key[n_classes:])
        ordered = key[n_classes:][order]
        at = np.minimum(np.searchsorted(ordered, key[:n_classes]), len(ordered) - 1)
        return np.where(ordered[at] == key[:n_classes], people.sizes[order][at], 0)
