"""Distinct values of a column that comes block by block, with how often each occurs, as long as they are not too many.

Of a column with too many only what can be said of the blocks one by one is kept: type, kind and missing values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.schema import Kind
from sfumato.table.cells import ColumnCoder, are_midnights, clean_values, plain_array, without_tokens
from sfumato.table.coding import Codes, parse_numbers
from sfumato.table.kinds import guess_kind
from sfumato.table.weighted import Counts, OpenColumn, WeightedColumn

_FEWEST_PENDING = 1 << 16


def coded_block(cells: pa.Array, name: str, place: str) -> tuple[Codes, pa.Array]:
    """Codes of a block of cells, and the plain values that they stand for, of which some may not occur."""
    if not pa.types.is_dictionary(cells.type):
        encoded = plain_array(cells, name, place).dictionary_encode(null_encoding="encode")
        return encoded.indices.to_numpy(zero_copy_only=False), encoded.dictionary
    values, indices = plain_array(cells.dictionary, name, place), cells.indices
    if indices.null_count:
        indices = pc.fill_null(indices, len(values))
        values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    return indices.to_numpy(zero_copy_only=False), values


class DistinctValues:
    """Distinct values of one column so far.

    Parameters
    ----------
    tokens : sequence of str
        Texts that mean "missing".
    most : int
        Number of values from which they are no longer listed.
    most_bytes : int
        The same for their size.
    """

    def __init__(self, tokens: Sequence[str], most: int, most_bytes: int) -> None:
        self._tokens, self._most, self._most_bytes = tokens, most, most_bytes
        self._values: list[pa.Array] = []
        self._counts: list[Counts] = []
        self._n_known = self._n_pending = 0
        self.is_open = False
        self._kinds: set[Kind] = set()
        self._are_numbers = True
        self._are_midnights: set[bool] = set()
        self._n_rows = self._n_missing = 0

    def take(self, codes: Codes, values: pa.Array) -> None:
        """Count a block."""
        counts = np.bincount(codes, minlength=len(values))
        occurs = counts > 0
        self._n_rows += len(codes)
        self._values.append(values.filter(pa.array(occurs)))
        self._counts.append(counts[occurs])
        self._n_pending += len(self._values[-1])
        if self.is_open:
            self._say_less()
        elif self._n_pending > max(self._n_known, _FEWEST_PENDING):
            self._merge()
            self.is_open = self._n_known > self._most or self._values[0].nbytes > self._most_bytes
            if self.is_open:
                self._say_less()

    def _merge(self) -> None:
        encoded = pa.concat_arrays(self._values).dictionary_encode(null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        summed = np.bincount(codes, weights=np.concatenate(self._counts), minlength=len(encoded.dictionary))
        self._values, self._counts = [encoded.dictionary], [summed.astype(np.int64)]
        self._n_known, self._n_pending = len(encoded.dictionary), 0

    def _say_less(self) -> None:
        """Keep of the values that wait only what can be said of all of them."""
        for values, counts in zip(self._values, self._counts, strict=True):
            cleaned = clean_values(values, self._tokens)
            self._n_missing += int(counts[cleaned.is_null().to_numpy(zero_copy_only=False)].sum())
            if cleaned.null_count < len(cleaned):
                kind = guess_kind(cleaned)
                self._kinds.add(kind)
                self._are_numbers &= kind is Kind.NUMERIC or _are_numbers(cleaned)
            if values.null_count < len(values):
                self._are_midnights.add(are_midnights(values))
        self._values, self._counts = [self._values[0].slice(0, 0)], [np.zeros(0, dtype=np.int64)]

    def finished(self, name: str, coder: ColumnCoder) -> tuple[pa.Array, WeightedColumn | OpenColumn, Kind]:
        """Values as they are stored, the column that they make, and its kind.

        The entries of the column are the stored values in their order, so its codes say what each is read as.
        """
        if self.is_open:
            kind = next(iter(self._kinds)) if len(self._kinds) == 1 else Kind.CATEGORICAL
            schema = coder.rules.schema
            if self._are_numbers and schema is not None and name in schema and schema[name].kind is Kind.NUMERIC:
                kind = Kind.NUMERIC  # declared so, and not guessed: an infinite number, or one with leading zeros
            stored = self._values[0]
            read = pc.cast(stored, pa.date32()) if self._are_midnights == {True} else stored
            return stored, OpenColumn(np.zeros(0, dtype=np.int32), read, self._n_rows, self._n_missing, kind), kind
        self._merge()
        (stored,), (counts,) = self._values, self._counts
        coded, kind = coder.code_distinct(name, np.arange(len(stored), dtype=np.int32), stored)
        return stored, WeightedColumn(coded.codes, coded.values, counts), kind


def _are_numbers(values: pa.Array) -> bool:
    try:
        parse_numbers(values)
    except ValueError:
        return False
    return True


def open_cells(codes: Codes, values: pa.Array, column: OpenColumn, tokens: Sequence[str]) -> pa.Array:
    """Cells of a block of an open column as they are read: trimmed, dates where all are, null where missing."""
    if pa.types.is_date(column.values.type) and pa.types.is_timestamp(values.type):
        cleaned = without_tokens(pc.cast(values, pa.date32()), tokens)
    elif pa.types.is_timestamp(values.type):
        cleaned = without_tokens(values, tokens)
    else:
        cleaned = clean_values(values, tokens)
    if pa.types.is_floating(cleaned.type):
        cleaned = pc.add(cleaned, pa.scalar(0.0, cleaned.type))  # -0.0 becomes 0.0, as in a coded column
    return cleaned.take(pa.array(codes))
