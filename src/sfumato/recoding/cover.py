"""From groups of rows to released columns: what each group's cells stand for and what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.learning.tree import MISSING
from sfumato.measures.loss import normalized_certainty_penalty_of_ranges, normalized_certainty_penalty_of_sets
from sfumato.recoding.axes import Axis
from sfumato.table.coding import CodedColumn
from sfumato.table.generalized import ANY, write_range, write_set

Penalties = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Cover:
    """Which cells are released together and which rows' values they stand for.

    A *part* has member rows; a *class* stands for the values of all members of its parts. Every row has one class,
    one of whose parts it is a member of.

    Parameters
    ----------
    of_row : ndarray of int32, shape (n_rows,)
        Class of each row.
    parts : csr_matrix of shape (n_classes, n_parts)
        Parts of each class (any non-zero entry).
    members : csr_matrix of shape (n_parts, n_rows)
        Member rows of each part (any non-zero entry); no part is empty.
    home : ndarray of int32, shape (n_rows,)
        Part that each row falls into, whatever others it is also a member of: that of new rows like it.
    """

    of_row: NDArray[np.int32]
    parts: sp.csr_matrix
    members: sp.csr_matrix
    home: NDArray[np.int32]

    def __repr__(self) -> str:
        return f"Cover({len(self.of_row):,} rows, {self.parts.shape[0]:,} classes, {self.members.shape[0]:,} parts)"

    @classmethod
    def of_groups(cls, groups_of_rows: NDArray[np.integer]) -> Cover:
        """Let every group stand for its own rows, and no other; groups are renumbered from 0 in their order."""
        groups, numbered = np.unique(groups_of_rows, return_inverse=True)
        n_rows, n_groups = len(groups_of_rows), len(groups)
        members = sp.csr_matrix((np.ones(n_rows, dtype=np.int8), (numbered, np.arange(n_rows))), (n_groups, n_rows))
        of_row = numbered.astype(np.int32)
        return cls(of_row, sp.identity(n_groups, dtype=np.int8, format="csr"), members, of_row)

    @classmethod
    def of_parts(cls, cover: Cover) -> Cover:
        """Let every part be a class of its own, as new rows see it."""
        n_parts = cover.members.shape[0]
        return cls(cover.home, sp.identity(n_parts, dtype=np.int8, format="csr"), cover.members, cover.home)


@dataclass(frozen=True, eq=False, repr=False)
class Generalized:
    """Cells of each class on one axis: texts (``None`` is missing) by number, and their certainty penalty."""

    texts: tuple[str | None, ...]
    of_class: NDArray[np.int32]
    penalties: Penalties

    def column(self, of_row: NDArray[np.integer]) -> CodedColumn:
        """Released column of rows whose classes are given."""
        values = pa.array(self.texts, pa.string())
        return CodedColumn(self.of_class[of_row], values).recode(values)


def generalize(axes: Sequence[Axis], cover: Cover) -> tuple[Generalized, ...]:
    """Give every class of a cover its cell on each axis: a range where values have positions, else a set.

    A cell that stands for all values of a categorical column is ``*``; see :mod:`sfumato.table.generalized`.
    """
    return tuple(_ranges(axis, cover) if axis.positions is not None else _sets(axis, cover) for axis in axes)


def _ranges(axis: Axis, cover: Cover) -> Generalized:
    positions = axis.positions
    if positions is None:
        raise AssertionError
    codes = axis.codes[cover.members.indices]
    n_values = axis.n_values
    low = _reduced(np.minimum, np.where(codes == MISSING, n_values, codes), cover)
    high = _reduced(np.maximum, codes, cover)
    may_be_missing = _reduced(np.maximum, (codes == MISSING).astype(np.int32), cover) > 0
    shapes, numbered = np.unique(np.column_stack([low, high, may_be_missing]), axis=0, return_inverse=True)
    texts = [
        write_range(axis.labels[a], axis.labels[b], may_be_missing=bool(m)) if b != MISSING else None
        for a, b, m in shapes.tolist()
    ]
    is_known = shapes[:, 1] != MISSING
    penalties = np.zeros(len(shapes))
    if is_known.any():
        ends = positions[np.where(is_known, shapes[:, 0], 0)], positions[np.where(is_known, shapes[:, 1], 0)]
        penalties = normalized_certainty_penalty_of_ranges(*ends, positions[0], positions[-1])
        # One more possibility than the numbers of the range: it costs as much as one value of a categorical column.
        penalties = np.minimum(penalties + shapes[:, 2] / (n_values + 1), 1.0) * is_known
    of_class = numbered.reshape(-1).astype(np.int32)
    return Generalized(tuple(texts), of_class, penalties[of_class])


def _reduced(extreme: np.ufunc, values: NDArray[np.int32], cover: Cover) -> NDArray[np.int32]:
    """Smallest or largest of the members' values in each class."""
    of_part = extreme.reduceat(values, cover.members.indptr[:-1])
    return np.asarray(extreme.reduceat(of_part[cover.parts.indices], cover.parts.indptr[:-1]))


def _sets(axis: Axis, cover: Cover) -> Generalized:
    n_rows, n_values = len(axis.codes), axis.n_values + axis.has_missing
    codes = np.where(axis.codes == MISSING, axis.n_values, axis.codes)
    one_hot = sp.csr_matrix((np.ones(n_rows, dtype=np.int32), codes, np.arange(n_rows + 1)), (n_rows, n_values))
    held = cover.parts.astype(np.int32) @ _presence(cover.members.astype(np.int32) @ one_hot)
    held.sort_indices()
    starts, raw = (held.indptr.astype(np.int64) * 4).tolist(), held.indices.astype(np.int32).tobytes()
    number_of: dict[bytes, int] = {}
    of_class = np.empty(held.shape[0], dtype=np.int32)
    for i in range(held.shape[0]):
        of_class[i] = number_of.setdefault(raw[starts[i] : starts[i + 1]], len(number_of))
    sets = [np.frombuffer(key, dtype=np.int32) for key in number_of]
    penalties = normalized_certainty_penalty_of_sets([len(s) for s in sets], max(n_values, 1))
    texts = [_set_text(axis, members.tolist(), n_values) for members in sets]
    return Generalized(tuple(texts), of_class, penalties[of_class])


def _presence(counts: sp.csr_matrix) -> sp.csr_matrix:
    return sp.csr_matrix((np.ones(counts.nnz, dtype=np.int32), counts.indices, counts.indptr), counts.shape)


def _set_text(axis: Axis, members: list[int], n_values: int) -> str | None:
    if len(members) == n_values > 1:
        return ANY
    labels = [axis.labels[code] for code in members if code < axis.n_values]
    return write_set(labels, may_be_missing=len(labels) < len(members))
