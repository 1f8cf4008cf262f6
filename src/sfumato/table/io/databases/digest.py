"""SHA-256 of the rows of a result, whatever order they come in: a server may give them in another one every time.

Rows are put into an order that follows from their cells alone, by a quick key of 64 bits, and every column is hashed in
that order. Two different rows with the same key would leave the order open; then the keys are made anew with other
constants. What is hashed are the cells as the database has them, before anything is said of missing values or kinds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import InputError

KEY = "key"
ATTEMPTS = 16
_Keys = NDArray[np.uint64]
_FORM = "sfumato rows 1"
_WORD = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


class SameKeyError(Exception):
    """Two different rows have the same key."""


def content_sha256(rows: pa.Table, keyed: Sequence[pa.RecordBatch] | None = None) -> str:
    """Hash the rows of a table in memory.

    Parameters
    ----------
    keyed : sequence of RecordBatch or None
        What :func:`keyed_batches` gives of all its rows at the first attempt, if that was done already.

    Examples
    --------
    >>> one = pa.table({"age": [31, 40], "sex": ["f", None]})
    >>> content_sha256(one) == content_sha256(one.take([1, 0])) != content_sha256(one.slice(1))
    True
    """
    schema = keyed_schema(rows.schema)
    for attempt in range(ATTEMPTS):
        if keyed is None or attempt:
            keyed = list(keyed_batches(rows.schema, rows.to_batches(), attempt))
        cells = pa.Table.from_batches(keyed, schema)
        digest = SortedDigest(rows.schema)
        try:
            digest.update(cells.take(pa.array(np.argsort(cells.column(KEY).to_numpy()))).combine_chunks())
        except SameKeyError:
            continue
        return digest.hexdigest()
    raise no_order()


def no_order() -> InputError:
    """Refuse rows that were made so that their keys are the same."""
    return InputError("holds rows that cannot be put into an order")


def keyed_schema(schema: pa.Schema) -> pa.Schema:
    """Columns that are hashed, by number, and the key."""
    fields = [pa.field(f"c{i}", pa.string() if _is_text(own.type) else pa.int64()) for i, own in enumerate(schema)]
    return pa.schema([*fields, pa.field(KEY, pa.uint64())])


def keyed_batches(schema: pa.Schema, batches: Iterable[pa.RecordBatch], attempt: int) -> Iterator[pa.RecordBatch]:
    """Give whole numbers and texts for the cells of plain batches, and the key of each row."""
    target = keyed_schema(schema)
    for batch in batches:
        cells = [_texts(own) if _is_text(own.type) else _whole(own) for own in batch.columns]
        keys = np.zeros(batch.num_rows, dtype=np.uint64)
        for i, own in enumerate(cells):
            constant = np.uint64(_GOLDEN * (2 * (len(cells) * attempt + i) + 1) & _WORD)
            keys = keys * np.uint64(_GOLDEN) + _mixed(_bits(own) ^ constant)
        yield pa.record_batch([*cells, pa.array(keys)], schema=target)


class SortedDigest:
    """Hash of keyed rows that come in the order of their keys, in parts of any size."""

    def __init__(self, schema: pa.Schema) -> None:
        self._header = [_FORM, [[column.name, _tag(column.type)] for column in schema]]
        self._columns = [(hashlib.sha256(), hashlib.sha256()) for _ in schema]
        self._n_rows = 0
        self._last: pa.Table | None = None

    def update(self, rows: pa.Table) -> None:
        """Hash some more.

        Raises
        ------
        SameKeyError
            If two different rows have the same key.
        """
        if not rows.num_rows:
            return
        self._n_rows += rows.num_rows
        self._check(rows if self._last is None else pa.concat_tables([self._last, rows]).combine_chunks())
        self._last = rows.slice(rows.num_rows - 1)
        for column, (sizes, content) in zip(rows.columns[:-1], self._columns, strict=True):
            for chunk in column.chunks:
                if pa.types.is_string(chunk.type):
                    sizes.update(pc.fill_null(pc.binary_length(chunk), -1).to_numpy().astype("<i8"))
                    content.update(_bytes_of(chunk)[1].data)
                else:
                    sizes.update(chunk.is_valid().to_numpy(zero_copy_only=False).astype(np.uint8))
                    content.update(pc.fill_null(chunk, 0).to_numpy().astype("<i8"))

    @staticmethod
    def _check(rows: pa.Table) -> None:
        keys = rows.column(KEY).to_numpy()
        same = np.flatnonzero(keys[1:] == keys[:-1])
        if not len(same):
            return
        one, other = rows.take(pa.array(same)), rows.take(pa.array(same + 1))
        for a, b in zip(one.columns[:-1], other.columns[:-1], strict=True):
            both_missing = pc.and_(a.is_null(), b.is_null())
            if not pc.all(pc.or_(pc.fill_null(pc.equal(a, b), False), both_missing)).as_py():
                raise SameKeyError

    def hexdigest(self) -> str:
        """SHA-256 over names, kinds of values, number of rows and the hashes of the columns."""
        said = [*self._header, self._n_rows, [[s.hexdigest(), c.hexdigest()] for s, c in self._columns]]
        return hashlib.sha256(json.dumps(said, ensure_ascii=True).encode()).hexdigest()


def _is_text(own: pa.DataType) -> bool:
    return bool(pa.types.is_string(own) or pa.types.is_decimal(own) or pa.types.is_uint64(own))


def _tag(own: pa.DataType) -> str:
    """Name the kind of values; the width in which a driver stores numbers is no part of it."""
    kinds = pa.types
    if kinds.is_uint64(own) or kinds.is_decimal(own):
        return "decimal"
    if kinds.is_integer(own):
        return "integer"
    return "float" if kinds.is_floating(own) else str(own)


def _texts(cells: pa.Array) -> pa.Array:
    return cells if pa.types.is_string(cells.type) else cells.cast(pa.string())


def _whole(cells: pa.Array) -> pa.Array:
    """Write fixed-width cells as whole numbers: dates and times as they count, floats by their bits."""
    own = cells.type
    if pa.types.is_floating(own):
        wide = pc.add(cells.cast(pa.float64()), 0.0)  # -0.0 becomes 0.0, which it equals
        return pc.if_else(pc.is_nan(wide), pa.scalar(None, pa.float64()), wide).view(pa.int64())
    if pa.types.is_date32(own) or pa.types.is_time32(own):
        return cells.view(pa.int32()).cast(pa.int64())
    if pa.types.is_timestamp(own) or pa.types.is_time64(own):
        return cells.view(pa.int64())
    return cells.cast(pa.int64())


def _bits(cells: pa.Array) -> _Keys:
    """Give 64 bits of every cell, of a text those of a polynomial of its bytes."""
    if not pa.types.is_string(cells.type):
        bits: _Keys = pc.fill_null(cells, 0).to_numpy().view(np.uint64)
    else:
        bits = _polynomials(*_bytes_of(cells))
    if cells.null_count:
        bits = np.where(cells.is_valid().to_numpy(zero_copy_only=False), bits, np.uint64(_GOLDEN ^ 1))
    return bits


def _polynomials(sizes: NDArray[np.int64], content: NDArray[np.uint8]) -> _Keys:
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]) if len(sizes) else sizes
    powers = np.cumprod(np.full(int(sizes.max(initial=0)) + 1, _GOLDEN, dtype=np.uint64))
    places = np.arange(len(content)) - np.repeat(starts, sizes)
    terms = np.append((content.astype(np.uint64) + np.uint64(1)) * powers[places], np.uint64(0))
    sums = np.add.reduceat(terms, starts) if len(starts) else np.zeros(0, dtype=np.uint64)
    found: _Keys = np.where(sizes > 0, sums, np.uint64(0))
    return found


def _bytes_of(texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Lengths of texts, and their bytes one after the other; a missing one has none."""
    filled = pc.fill_null(texts, "")
    _, offsets, data = filled.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[filled.offset : filled.offset + len(filled) + 1].astype(np.int64)
    if not len(filled) or data is None:
        return np.zeros(len(filled), dtype=np.int64), np.zeros(0, dtype=np.uint8)
    content = np.frombuffer(data, dtype=np.uint8)[bounds[0] : bounds[-1]]
    return np.diff(bounds), content


def _mixed(bits: _Keys) -> _Keys:
    """Spread every bit over all, as splitmix64 does."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
