"""Groups of rows that a tree makes which was found on a sample, counted and covered by all rows in passes over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError
from sfumato.guarantees import Guarantee
from sfumato.learning.c45.tree import LEAF, MISSING, Ids, Tree, TreeColumn, route
from sfumato.mechanisms.axes import Axis, axes_of
from sfumato.mechanisms.recoder import Cover, Generalized, certainty_penalty_of, generalize, rows_alike, with_cells
from sfumato.mechanisms.tree.error_risk import prune_lowest
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.weighted import CountedTable

Codes = NDArray[np.int32]
Numbers = NDArray[np.float64]
Block = Mapping[str, Any]
"""Codes of some rows, by the names of the columns."""

_MANY_WAITING = 1 << 20
_MOST_FLAGS = 1 << 26


@dataclass(frozen=True, eq=False, repr=False)
class ValueAxes:
    """Quasi-identifiers of a table by their values: how rows that come in blocks become axes.

    Parameters
    ----------
    axes : tuple of Axis
        One entry for each distinct value of the column, in the order of its codes.
    """

    axes: tuple[Axis, ...]

    @classmethod
    def of_table(cls, table: Table, names: Sequence[str]) -> ValueAxes:
        """Describe some columns of a table."""
        values = {n: CodedColumn(np.arange(table[n].n_distinct, dtype=np.int32), table[n].values) for n in names}
        return cls(axes_of(replace(table, schema=table.schema.keep(names), columns=values), names))

    def of(self, block: Block) -> list[Axis]:
        """Axes of the rows of a block."""
        return [replace(axis, codes=axis.codes[np.asarray(block[axis.name])]) for axis in self.axes]


@dataclass(frozen=True, eq=False, repr=False)
class SampledTree:
    """A tree whose cuts were chosen on a sample; any row of the table can be sent down.

    A row whose value the sample lacks goes where most rows of the sample went, as one whose value is missing; where one
    value is split off, to the rest.

    Parameters
    ----------
    tree : Tree
        Its weights are those of the sample: they decide the way of rows.
    values : ValueAxes
    columns_of : callable or None
        Gives the columns that the tree cuts, of rows on these axes; ``None``: the axes as they are.
    """

    tree: Tree
    values: ValueAxes
    columns_of: Callable[[Sequence[Axis]], Sequence[TreeColumn]] | None = None

    def leaves_of(self, block: Block) -> Ids:
        """Leaf of every row of a block."""
        axes = self.values.of(block)
        columns = [axis.as_tree_column() for axis in axes] if self.columns_of is None else self.columns_of(axes)
        return route(self.tree, columns)

    def covered(self, blocks: Iterable[Block], k: int) -> CoveredGroups:
        """Count all rows once more, merge groups that have fewer than k, and find out what each group represents."""
        weights = np.zeros(self.tree.n_nodes)
        held = [_held(axis, self.tree.n_nodes) for axis in self.values.axes]
        for block in blocks:
            leaves = self.leaves_of(block)
            weights += np.bincount(leaves, minlength=len(weights))
            for axis, own in zip(self.values.axes, held, strict=True):
                own.take(leaves, axis.codes[np.asarray(block[axis.name])])
        counted = replace(self.tree, weights=summed_up(self.tree, weights))
        group_of = prune_lowest(counted, k).group_of_leaf
        cells: list[Generalized] = []
        for axis, own in zip(self.values.axes, held, strict=True):
            at, codes = own.finished()
            cells += generalize([replace(axis, codes=codes)], Cover.of_groups(group_of[at]))
        groups = np.unique(group_of[np.flatnonzero(weights)])
        numbered = np.full(self.tree.n_nodes, LEAF, dtype=np.int32)
        numbered[groups] = np.arange(len(groups))
        return CoveredGroups(self, numbered[group_of], counted.weights[groups].astype(np.int64), tuple(cells))


@dataclass(frozen=True, eq=False, repr=False)
class CoveredGroups:
    """Groups of all rows of a table, with their sizes and their cells.

    Parameters
    ----------
    tree : SampledTree
    of_leaf : ndarray of int32
        Group of each leaf that has rows.
    sizes : ndarray of int64
    cells : tuple of Generalized
        One an axis; their classes are the groups.
    """

    tree: SampledTree
    of_leaf: Ids
    sizes: NDArray[np.int64]
    cells: tuple[Generalized, ...]

    def groups_of(self, block: Block) -> Ids:
        """Group of every row of a block."""
        return np.asarray(self.of_leaf[self.tree.leaves_of(block)])

    def released(self, whole: Table) -> CountedTable:
        """Write the groups as distinct rows with their sizes, given every column by itself."""
        axes = self.axes
        counted = replace(CountedTable.of(whole, (), (), self.sizes), together=tuple(axis.name for axis in axes))
        released = with_cells(counted, axes, self.cells, np.arange(len(self.sizes), dtype=np.int32))
        if not isinstance(released, CountedTable):
            raise AssertionError
        return released

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Columns that are coarsened, by their values."""
        return self.tree.values.axes

    @property
    def rows_alike(self) -> NDArray[np.int64]:
        """Rows of each combination of cells; groups with equal cells are one."""
        return rows_alike(self.cells, self.sizes)

    def figures(self, n_sampled: int) -> dict[str, Any]:
        """Say for the manifest what is kept, and of how many rows the groups were found."""
        return {
            "global_certainty_penalty": certainty_penalty_of(self.cells, self.sizes),
            "n_classes_of_cells": len(self.rows_alike),
            "grown_on_rows": n_sampled,
            "of_rows": int(self.sizes.sum()),
        }


class _Held(Protocol):
    """Codes of one axis that the rows of each leaf hold, as far as its cells depend on them."""

    def take(self, leaves: Ids, codes: Codes) -> None:
        """Take more rows."""

    def finished(self) -> tuple[NDArray[np.integer], Codes]:
        """Leaves and codes of the pairs."""
        ...


def _held(axis: Axis, n_nodes: int) -> _Held:
    if axis.positions is not None:
        return _Ends(axis.n_values, n_nodes)
    is_small = n_nodes * (axis.n_values + 1) <= _MOST_FLAGS
    return _Flags(axis.n_values, n_nodes) if is_small else _Pairs(axis.n_values)


class _Ends:
    """Lowest and highest code of each leaf, and whether one is missing: all that a range says."""

    def __init__(self, n_values: int, n_nodes: int) -> None:
        self._low = np.full(n_nodes, n_values, dtype=np.int32)
        self._high = np.full(n_nodes, MISSING, dtype=np.int32)
        self._has_missing = np.zeros(n_nodes, dtype=np.bool_)

    def take(self, leaves: Ids, codes: Codes) -> None:
        is_known = codes != MISSING
        self._has_missing[leaves[~is_known]] = True
        known, own = (leaves, codes) if is_known.all() else (leaves[is_known], codes[is_known])
        np.minimum.at(self._low, known, own)
        np.maximum.at(self._high, known, own)

    def finished(self) -> tuple[NDArray[np.integer], Codes]:
        known, lost = np.flatnonzero(self._high != MISSING), np.flatnonzero(self._has_missing)
        missing = np.full(len(lost), MISSING, dtype=np.int32)
        return np.concatenate([known, known, lost]), np.concatenate([self._low[known], self._high[known], missing])


class _Flags:
    """Every code of each leaf, as a set says it: a flag for each that is possible."""

    def __init__(self, n_values: int, n_nodes: int) -> None:
        self._is_held = np.zeros((n_nodes, n_values + 1), dtype=np.bool_)  # a missing value, -1, is the last

    def take(self, leaves: Ids, codes: Codes) -> None:
        self._is_held[leaves, codes] = True

    def finished(self) -> tuple[NDArray[np.integer], Codes]:
        leaves, codes = np.nonzero(self._is_held)
        return leaves, np.where(codes == self._is_held.shape[1] - 1, MISSING, codes).astype(np.int32)


class _Pairs:
    """Every code of each leaf, where there are too many for flags; pairs are added up when many wait."""

    def __init__(self, n_values: int) -> None:
        self._width = n_values + 1  # a missing value has the code -1
        self._waiting: list[NDArray[np.int64]] = []
        self._n_waiting = 0

    def take(self, leaves: Ids, codes: Codes) -> None:
        self._waiting.append(np.unique(leaves.astype(np.int64) * self._width + codes + 1))
        self._n_waiting += len(self._waiting[-1])
        if self._n_waiting > _MANY_WAITING + 2 * len(self._waiting[0]):
            self._add_up()

    def _add_up(self) -> None:
        self._waiting = [np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *self._waiting]))]
        self._n_waiting = len(self._waiting[0])

    def finished(self) -> tuple[NDArray[np.integer], Codes]:
        self._add_up()
        leaves, codes = np.divmod(self._waiting[0], self._width)
        return leaves, (codes - 1).astype(np.int32)


def not_from_a_sample(asked: Guarantee) -> InvalidParameterError:
    """Say of a promise that it need not hold of all rows where it holds of a sample."""
    problem, allowed = "got one, and the distinct rows do not fit in the memory given", "left out"
    hint = "give more memory, take fewer columns, or ask mondrian for distinct l"
    return InvalidParameterError(asked.level.name, problem, allowed=allowed, hint=hint, remedy=("memory",))


def rows_in_a_sample(k: int, share: float) -> int:
    """Rows of a sample behind which k rows of the table are likely: two standard deviations more than expected."""
    expected = k * share
    return k if share >= 1 else max(math.ceil(expected + 2 * math.sqrt(expected)), 1)


def summed_up(tree: Tree, of_leaves: Numbers) -> Numbers:
    """Add the sums of leaves to all nodes above them."""
    sums = of_leaves.copy()
    for level in reversed(tree.levels[1:]):
        np.add.at(sums, tree.parent[level], sums[level])
    return sums
