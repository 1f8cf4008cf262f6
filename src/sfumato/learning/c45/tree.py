"""A decision tree as arrays, and the columns it is grown on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.errors import ColumnNotFoundError, InvalidParameterError, SchemaError
from sfumato.table.coding import CodedColumn, is_number_type

Ids = NDArray[np.int32]
Numbers = NDArray[np.float64]

LEAF = -1
MISSING = -1
EVERY_VALUE = -1
"""In the place of a value that is split off: a categorical column that is split into all its values."""


@dataclass(frozen=True, eq=False, repr=False)
class TreeColumn:
    """A column to split on, as codes of its distinct values; a missing value has the code -1.

    Parameters
    ----------
    codes : ndarray of int32, shape (n_rows,)
    n_values : int
        Number of values; codes run from 0 to ``n_values - 1``.
    numbers : ndarray of float64 or None
        For a numeric column the number of each code, ascending; ``None`` for a categorical one.
    """

    codes: Ids
    n_values: int
    numbers: Numbers | None = None

    @property
    def is_numeric(self) -> bool:
        """Whether the column is split at a threshold instead of by its values."""
        return self.numbers is not None


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """A tree as one array entry a node; node 0 is the root, a parent stands before its children, siblings together.

    Parameters
    ----------
    parent : ndarray of int32
        Parent of each node, -1 for the root.
    attribute : ndarray of int32
        Column that a node splits on, -1 for a leaf.
    threshold : ndarray of float64
        Of a split on a numeric column: numbers up to it go to the first child, larger ones to the second. It is a
        number of the data, as in C4.5. Of a binary split on a categorical column: the code of the value that goes to
        the first child; all others go to the second. Not-a-number elsewhere.
    cut : ndarray of float64
        Half way between the threshold and the next number of the data: where the domain of the column is divided.
    first_child, n_children : ndarray of int32
        Children are numbered from ``first_child``; of a split of a categorical column into all its values the i-th is
        that of code i.
    weights : ndarray of float64
        Weight of the training rows in each node.
    statistics : ndarray of float64, shape (n_nodes, n_statistics)
        What the criterion keeps of the training rows in each node, class counts for instance.
    """

    parent: Ids
    attribute: Ids
    threshold: Numbers
    cut: Numbers
    first_child: Ids
    n_children: Ids
    weights: Numbers
    statistics: Numbers

    def __repr__(self) -> str:
        return f"Tree({self.n_nodes:,} nodes, {self.n_leaves:,} leaves)"

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.parent)

    @property
    def n_leaves(self) -> int:
        """Number of leaves; one that no training row reached counts as well."""
        return int((self.attribute == LEAF).sum())

    @cached_property
    def levels(self) -> list[NDArray[np.intp]]:
        """Nodes by the number of splits above them, the root first."""
        levels = []
        level = np.zeros(1, dtype=np.intp)
        while len(level):
            levels.append(level)
            counts = self.n_children[level].astype(np.intp)
            first = self.first_child[level] - (np.cumsum(counts) - counts)
            level = np.repeat(first, counts) + np.arange(counts.sum())
        return levels

    @property
    def depth(self) -> int:
        """Largest number of splits above a leaf."""
        return len(self.levels) - 1

    def split_off(self, nodes: NDArray[np.integer]) -> Ids:
        """Code of the value that nodes with a split on a categorical column split off; -1: every value by itself."""
        value = self.threshold[nodes]
        return np.where(np.isnan(value), EVERY_VALUE, value).astype(np.int32)

    @cached_property
    def heaviest_child(self) -> Ids:
        """Child with the most weight (the first of several), -1 for a leaf: where rows with a missing value go."""
        place = np.arange(self.n_nodes) - self.first_child[self.parent]
        is_child = (self.parent >= 0) & (place >= 0) & (place < self.n_children[self.parent])
        children = np.flatnonzero(is_child)  # nodes of a branch that was replaced are children of none
        order = children[np.lexsort((children, -self.weights[children], self.parent[children]))]
        heaviest = np.full(self.n_nodes, LEAF, dtype=np.int32)
        heaviest[self.parent[order[::-1]]] = order[::-1]  # the heaviest, which comes first, is written last
        return heaviest

    def children(self, node: int) -> NDArray[np.intp]:
        """Children of a node, in the order of the column's values."""
        first = int(self.first_child[node])
        return np.arange(first, first + int(self.n_children[node]))


def route(tree: Tree, columns: Sequence[TreeColumn]) -> Ids:
    """Leaf of every row, without fractions.

    A row whose value is missing or unknown, or leads to a child that no training row reached, goes to the heaviest
    child.

    Examples
    --------
    >>> grown = Tree(*(np.array(a, dtype=t) for a, t in (
    ...     ([-1, 0, 0], np.int32), ([0, -1, -1], np.int32), ([2, np.nan, np.nan], np.float64),
    ...     ([2.5, np.nan, np.nan], np.float64), ([1, -1, -1], np.int32), ([2, 0, 0], np.int32),
    ...     ([5, 2, 3], np.float64), ([[5], [2], [3]], np.float64))))
    >>> route(grown, [TreeColumn(np.array([0, 1, 2, -1], dtype=np.int32), 3, np.array([1.0, 2.0, 3.0]))]).tolist()
    [1, 1, 2, 2]
    """
    n_rows = len(columns[0].codes) if columns else 0
    node = np.zeros(n_rows, dtype=np.int32)
    moving = np.flatnonzero(tree.attribute[node] != LEAF)
    while len(moving):
        at = node[moving]
        for attribute in np.unique(tree.attribute[at]).tolist():
            here = tree.attribute[at] == attribute
            node[moving[here]] = _step(tree, columns[attribute], moving[here], at[here])
        moving = moving[tree.attribute[node[moving]] != LEAF]
    return node


def _step(tree: Tree, column: TreeColumn, rows: NDArray[np.intp], at: Ids) -> Ids:
    codes = column.codes[rows]
    if column.numbers is not None:
        numbers = np.append(column.numbers, np.nan)[codes]  # a missing code, -1, is the last
        is_known = ~np.isnan(numbers)
        branch = (numbers > tree.threshold[at]).astype(np.int32)
    else:
        branch, is_known = branch_of_codes(codes, tree.split_off(at), tree.n_children[at])
    child = tree.first_child[at] + branch
    leads_on = is_known & (tree.weights[child] > 0)
    return np.where(leads_on, child, tree.heaviest_child[at]).astype(np.int32)


def branch_of_codes(
    codes: NDArray[Any], split_off: NDArray[Any], n_children: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Branch that rows take at splits on a categorical column, and whether their value is known there.

    Parameters
    ----------
    split_off : ndarray of int
        Value that goes to the first child, all others to the second; -1 where every value has its own child.

    Examples
    --------
    >>> branch, is_known = branch_of_codes(np.array([2, 0, -1, 2]), np.array([2, 2, 2, -1]), np.array([2, 2, 2, 3]))
    >>> branch.tolist(), is_known.tolist()
    ([0, 1, 0, 2], [True, True, False, True])
    """
    is_binary = split_off != EVERY_VALUE
    is_known = (codes >= 0) & (is_binary | (codes < n_children))
    return np.where(is_known, np.where(is_binary, codes != split_off, codes), 0), is_known


# Columns of an array or a DataFrame as a tree splits them: codes of numbers and of categories.


Categorical = str | Sequence[str] | Sequence[int] | Sequence[bool] | NDArray[Any] | None
"""``"from_dtype"``, names or positions of the categorical columns, one truth value a column, or None for none."""


@dataclass(frozen=True, eq=False, repr=False)
class ColumnCoding:
    """How the values of a column become codes: learned from the training rows, applied to others.

    Parameters
    ----------
    name : str
    values : pyarrow.Array or None
        The categories in their order; ``None`` for a numeric column.
    """

    name: str
    values: pa.Array | None

    def __repr__(self) -> str:
        kind = "numeric" if self.values is None else f"{len(self.values):,} categories"
        return f"ColumnCoding({self.name!r}, {kind})"

    @classmethod
    def learn(cls, cells: pa.Array, name: str, is_categorical: bool) -> ColumnCoding:
        """Learn the categories that occur, sorted; nothing of a numeric column."""
        if not is_categorical:
            return cls(name, None)
        values = CodedColumn.encode(_without_nan(cells)).values
        return cls(name, values.drop_null())

    def encode(self, cells: pa.Array) -> TreeColumn:
        """Code cells; a category that was not learned counts as missing."""
        if self.values is None:
            return numeric_column(_numbers(cells, self.name))
        try:
            cells = _without_nan(cells).cast(self.values.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            problem = "its type is not that of the training rows"
            raise SchemaError(problem, column=self.name) from None
        codes = pc.fill_null(pc.index_in(cells, value_set=self.values, skip_nulls=True), MISSING)
        return TreeColumn(codes.to_numpy(zero_copy_only=False).astype(np.int32), len(self.values))


def numeric_column(numbers: NDArray[np.float64]) -> TreeColumn:
    """Code the numbers of a column; not-a-number is missing.

    Examples
    --------
    >>> column = numeric_column(np.array([2.5, np.nan, 1.0, 2.5]))
    >>> column.codes.tolist(), column.numbers.tolist()
    ([1, -1, 0, 1], [1.0, 2.5])
    """
    is_known = ~np.isnan(numbers)
    distinct = np.unique(numbers[is_known])
    codes = np.where(is_known, np.searchsorted(distinct, numbers), MISSING)
    return TreeColumn(codes.astype(np.int32), len(distinct), distinct)


def tree_columns(X: Any, categorical_features: Categorical = "from_dtype") -> list[TreeColumn]:
    """Code the columns of a DataFrame or a two-dimensional array.

    Examples
    --------
    >>> colour, size = tree_columns(np.array([["red", 3], ["blue", None]], dtype=object))
    >>> colour.codes.tolist(), size.numbers.tolist()
    ([1, 0], [3.0])
    """
    cells = cells_by_name(X)
    return [coding.encode(cells[coding.name]) for coding in learn_codings(cells, categorical_features)]


def learn_codings(cells: dict[str, pa.Array], categorical_features: Categorical) -> list[ColumnCoding]:
    """Learn the coding of every column."""
    is_categorical = _are_categorical(cells, categorical_features)
    return [ColumnCoding.learn(cells[name], name, flag) for name, flag in zip(cells, is_categorical, strict=True)]


def cells_by_name(X: Any) -> dict[str, pa.Array]:
    """Return the cells of every column; those of an array are named x0, x1, ..."""
    if sp.issparse(X):
        allowed = "a DataFrame or a dense array"
        raise InvalidParameterError("X", "got a sparse matrix", allowed=allowed, hint="X.toarray() makes it dense")
    refuse_repeated_names(X)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return {str(column.name): _arrow(column, str(column.name)) for column in frame.iter_columns()}
    return {f"x{number}": _arrow(column, f"x{number}") for number, column in enumerate(np.asarray(X).T)}


def refuse_repeated_names(X: Any) -> None:
    """Refuse two columns of one name, also 1 and "1": which one is meant could not be said."""
    names = X.column_names if isinstance(X, pa.Table) else getattr(X, "columns", ())
    for name, times in Counter(map(str, names)).items():
        if times > 1:
            problem = f"{times} columns have this name"
            raise SchemaError(problem, column=name, hint="give every column a name of its own")


def _arrow(column: Any, name: str) -> pa.Array:
    """Cells of a narwhals series or of an array."""
    try:
        cells = pa.array(column, from_pandas=True) if isinstance(column, np.ndarray) else column.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        problem = "its cells are of several types"
        raise SchemaError(problem, column=name, hint="make them all text or all numbers") from None
    cells = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
    cells = cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells
    if not (_is_text(cells.type) or is_number_type(cells.type) or pa.types.is_null(cells.type)):
        problem = "its cells are neither numbers, text nor truth values"
        raise SchemaError(problem, column=name, hint="convert them, dates to a number of days for instance")
    return cells


def _is_text(data_type: pa.DataType) -> bool:
    kinds = pa.types
    return bool(kinds.is_string(data_type) or kinds.is_large_string(data_type) or kinds.is_string_view(data_type))


def _are_categorical(cells: dict[str, pa.Array], categorical_features: Categorical) -> list[bool]:
    names = list(cells)
    if categorical_features is None:
        return [False] * len(names)
    if isinstance(categorical_features, str):
        if categorical_features != "from_dtype":
            allowed = "'from_dtype', None, or names, positions or truth values of columns"
            raise InvalidParameterError("categorical_features", f"got {categorical_features!r}", allowed=allowed)
        return [not _is_numeric(cells[name].type) for name in names]
    chosen = np.asarray(categorical_features)
    if chosen.dtype == np.bool_ and len(chosen) != len(names):
        problem = f"got {len(chosen):,}"
        raise InvalidParameterError("categorical_features", problem, allowed=f"{len(names):,} truth values")
    if chosen.dtype == np.bool_:
        return [bool(flag) for flag in chosen]
    if chosen.dtype.kind in "iu" and len(chosen) and not (chosen.min() >= 0 and chosen.max() < len(names)):
        problem = "some positions are not"
        raise InvalidParameterError("categorical_features", problem, allowed=f"between 0 and {len(names) - 1}")
    listed = {names[i] for i in chosen} if chosen.dtype.kind in "iu" else {str(name) for name in chosen}
    for name in sorted(listed - set(names)):
        raise ColumnNotFoundError(name, names, where="categorical_features")
    return [name in listed for name in names]


def _is_numeric(data_type: pa.DataType) -> bool:
    return (is_number_type(data_type) and not pa.types.is_boolean(data_type)) or pa.types.is_null(data_type)


def _numbers(cells: pa.Array, name: str) -> NDArray[np.float64]:
    if not (is_number_type(cells.type) or pa.types.is_null(cells.type)):
        problem = "it is split as a number, but its cells are none"
        raise SchemaError(problem, column=name, hint="convert them, or list the column in categorical_features")
    numbers = np.asarray(cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    if np.isinf(numbers).any():
        problem = "it contains infinity"
        raise SchemaError(problem, column=name)
    return numbers


def _without_nan(cells: pa.Array) -> pa.Array:
    if not pa.types.is_floating(cells.type):
        return cells
    return pc.if_else(pc.is_nan(cells), pa.scalar(None, cells.type), cells)
