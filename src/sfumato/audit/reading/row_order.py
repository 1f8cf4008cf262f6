"""Whether released rows are in their canonical order: an order that is free could carry what the rows do not say.

Rows ascend by the first released column, then by the next. Missing is first; numbers go by value, truth values as false
before true, dates by time, texts by their UTF-8 bytes. A text column that is stated to be numeric and holds nothing but
numbers goes by their values, then by its texts. ``docs/canonical-form.md`` has the definition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.audit.checks import Check, Unchecked
from sfumato.audit.claims import AS_READ, SORTED, Claims
from sfumato.audit.reading.columns import Columns
from sfumato.audit.reading.values import is_text, numbers_in
from sfumato.schema import Kind

NAME = "row order"
Ranks = NDArray[np.int64]
Key: TypeAlias = Any
"""What rows are compared by: an array of numbers, or of cells."""


def ranks_in_order(values: pa.Array, kind: Kind) -> Ranks:
    """Rank of each distinct value in the canonical order of its column.

    Examples
    --------
    >>> ranks_in_order(pa.array(["10", None, "9"]), Kind.NUMERIC).tolist()
    [2, 0, 1]
    >>> ranks_in_order(pa.array(["10", None, "9"]), Kind.CATEGORICAL).tolist()
    [1, 0, 2]
    """
    rank = np.zeros(len(values), dtype=np.int64)
    for key in keys_of(values, are_numbers=kind is Kind.NUMERIC and are_all_numbers(values)):
        own = dense_ranks(key)
        rank = np.unique(rank * (int(own.max(initial=0)) + 1) + own, return_inverse=True)[1].reshape(-1)
    return rank


def dense_ranks(cells: pa.Array) -> Ranks:
    """Rank of each cell as Arrow orders them, equal ones alike, missing ones 0."""
    found = np.asarray(pc.rank(cells, sort_keys="ascending", tiebreaker="dense").to_numpy(), dtype=np.int64)
    found[cells.is_null().to_numpy(zero_copy_only=False)] = 0
    return found


def are_all_numbers(values: pa.Array) -> bool:
    """Whether all values that are not missing are numbers."""
    numbers, is_wrong = numbers_in(values)
    is_none = np.isnan(numbers) & np.asarray(values.is_valid().to_numpy(zero_copy_only=False))
    return not is_wrong.any() and not is_none.any()


def keys_of(cells: pa.Array, *, are_numbers: bool) -> list[pa.Array]:
    """Give what cells are compared by, first key first; ``are_numbers``: texts of a column that holds only numbers."""
    if not is_text(cells.type):
        return [cells]
    texts = pc.cast(cells, pa.large_binary())
    return [pa.array(numbers_in(cells)[0], from_pandas=True), texts] if are_numbers else [texts]


class RowOrder:
    """Judges rows that come in blocks; ``is_kept`` says whether all so far ascend."""

    def __init__(self) -> None:
        self.is_kept = True
        self._last: list[Key] = []

    def add(self, keys: Iterable[Key]) -> None:
        """Judge one more block: of each column what its rows are compared by, the first column first."""
        if not self.is_kept:
            return
        undecided: NDArray[np.intp] | None = None
        last: list[Key] = []
        for i, own in enumerate(keys):
            last.append(own[-1:])
            both = _joined(self._last[i], own) if self._last and len(own) else own
            if undecided is None:
                undecided = np.arange(max(len(both) - 1, 0))
            if len(undecided):
                is_less, is_more = _compared(both, undecided)
                self.is_kept &= not is_less.any()
                undecided = undecided[~is_more]
        if last and len(last[0]):
            self._last = last


def _joined(last: Key, own: Key) -> Key:
    return pa.concat_arrays([last, own]) if isinstance(own, pa.Array) else np.concatenate([last, own])


def _compared(cells: Key, at: NDArray[np.intp]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether the row after each of some rows is less, and whether it is more."""
    if not isinstance(cells, pa.Array):
        return cells[at + 1] < cells[at], cells[at + 1] > cells[at]
    before, after = cells.take(pa.array(at)), cells.take(pa.array(at + 1))
    is_less = pc.or_(pc.fill_null(pc.less(after, before), False), pc.and_(after.is_null(), before.is_valid()))
    is_more = pc.or_(pc.fill_null(pc.greater(after, before), False), pc.and_(after.is_valid(), before.is_null()))
    return is_less.to_numpy(zero_copy_only=False), is_more.to_numpy(zero_copy_only=False)


def check_row_order(released: Columns, claims: Claims) -> Check:
    """Whether the rows of a table in memory are in their canonical order."""
    of_numbers = claims.output_format == "libsvm"  # where a label is a number, whatever its column is called
    kinds = {column.name: Kind.NUMERIC if of_numbers else column.kind for column in claims.columns}
    order = RowOrder()

    def keys() -> Iterable[Key]:
        for name in released_names(claims, released):
            column = released.coded(name)
            yield ranks_in_order(column.values, kinds[name])[column.codes]

    order.add(keys())
    return said_of(order)


def released_names(claims: Claims, released: Columns) -> Sequence[str]:
    """Columns that rows are compared by; those that are not there another check misses."""
    return [name for name in claims.names() if name in released]


def said_of(order: RowOrder) -> Check:
    """Give what was found."""
    said = f"are {'' if order.is_kept else 'not '}in their canonical order"
    said += "" if order.is_kept else ": another one could tell more than the rows do"
    return Check(NAME, order.is_kept, f"the released rows {said}")


def kept_as_read(claims: Claims) -> Unchecked | None:
    """Say that rows are in the order in which the original was read, where the manifest does."""
    if claims.output_order != AS_READ:
        return None
    said = "the released rows are stated to be in the original's order, by which releases of one table can be joined"
    return Unchecked("row-order", said, "release again, with sorted rows")


def is_sorted(claims: Claims) -> bool:
    """Whether the manifest says that rows are in their canonical order."""
    return claims.output_order == SORTED
