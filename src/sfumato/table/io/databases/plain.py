"""Columns of a database as plain Arrow columns: text, numbers, truth values, dates and times, or one clear refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import InputError
from sfumato.table.coding import plain_type
from sfumato.table.io.databases.streaming import QueryRows

Convert: TypeAlias = Callable[[pa.Array], pa.Array]

_SERVER_TYPE = b"POSTGRESQL:type"
_TYPMOD = b"POSTGRESQL:typmod"
_HEADER = 4  # bytes of a variable-length value, which PostgreSQL adds to its type modifiers
_MOST_DIGITS = 38
_MISLEADING = ("money",)
"""Types whose numbers are not what people read: a driver gives cents of a currency that it does not name."""
_HEX = np.array([f"{byte:02x}" for byte in range(256)], dtype="S2").view(np.uint8).reshape(256, 2)
_UUID_PARTS = ((0, 4), (4, 6), (6, 8), (8, 10), (10, 16))


def plain_rows(rows: QueryRows, place: str) -> QueryRows:
    """Give rows of plain types.

    Raises
    ------
    InputError
        Names the column and its type in the database, if it is none of these.
    """
    fields, converts = [], []
    for column in rows.schema:
        target, convert = _plain(column, place)
        fields.append(pa.field(column.name, target))
        converts.append(convert)
    schema = pa.schema(fields)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in rows.batches:
            cells = [_converted(c, own, f, place) for c, own, f in zip(converts, batch.columns, schema, strict=True)]
            yield pa.record_batch(cells, schema=schema)

    return QueryRows(schema, batches())


def _converted(convert: Convert, cells: pa.Array, column: pa.Field, place: str) -> pa.Array:
    try:
        plain = convert(cells)
        if pa.types.is_decimal(plain.type):
            plain.validate(full=True)  # DuckDB's largest whole numbers have a digit more than Arrow's decimals
        return plain
    except (pa.ArrowException, ValueError):  # its message quotes the cell
        problem = "holds values that cannot be read"
        hint = "turn the column into text or numbers in the query"
        raise InputError(problem, path=place, column=column.name, hint=hint) from None


def _plain(column: pa.Field, place: str) -> tuple[pa.DataType, Convert]:
    own, metadata = column.type, column.metadata or {}
    server_type = metadata.get(_SERVER_TYPE, b"").decode(errors="replace")
    if server_type == "numeric":
        return _numeric(int(metadata.get(_TYPMOD, b"-1")))
    if str(own) == "extension<arrow.uuid>":
        return pa.string(), lambda cells: _uuid_texts(cells.storage)
    if pa.types.is_dictionary(own) and (target := plain_type(own.value_type)) is not None:  # an enum
        return target, lambda cells: cells.cast(target)
    target = None if isinstance(own, pa.BaseExtensionType) else plain_type(own)
    if target is None or server_type in _MISLEADING:
        problem = f"has the type {server_type or own}, which is neither text, number, truth value, date nor time"
        hint = "leave the column out, or turn it into text or numbers in a query"
        raise InputError(problem, path=place, column=column.name, hint=hint, remedy=("query",))
    kept = target
    return kept, lambda cells: cells.cast(kept)


def _numeric(modifier: int) -> tuple[pa.DataType, Convert]:
    """Give exact numbers: decimals where digits are declared, else texts without zeros at the end."""
    digits, scale = (modifier - _HEADER) >> 16 & 0xFFFF, (modifier - _HEADER) & 0x7FF
    if modifier >= _HEADER and 0 < digits <= _MOST_DIGITS and scale <= digits:
        kept = pa.decimal128(digits, scale)
        return kept, lambda cells: _without_nan(_storage(cells)).cast(kept)
    return pa.string(), lambda cells: _shortest(_without_nan(_storage(cells)))


def _storage(cells: pa.Array) -> pa.Array:
    return cells.storage if isinstance(cells, pa.ExtensionArray) else cells


def _without_nan(texts: pa.Array) -> pa.Array:
    """Put null for not-a-number, which is missing everywhere here."""
    return pc.if_else(pc.equal(pc.utf8_lower(texts), "nan"), pa.scalar(None, texts.type), texts)


def _shortest(texts: pa.Array) -> pa.Array:
    """Write equal numbers alike: 1.50 and 1.5 are one value to the server."""
    trimmed = pc.replace_substring_regex(texts, pattern=r"(\.[0-9]*?)0+$", replacement=r"\1")
    return pc.replace_substring_regex(trimmed, pattern=r"\.$", replacement="")


def _uuid_texts(stored: pa.Array) -> pa.Array:
    """Write identifiers of 16 bytes as texts of 36 characters."""
    n_rows = len(stored)
    raw = np.frombuffer(stored.buffers()[1], dtype=np.uint8)[16 * stored.offset : 16 * (stored.offset + n_rows)]
    digits = _HEX[raw.reshape(n_rows, 16)].reshape(n_rows, 32)
    dash = np.full((n_rows, 1), ord("-"), dtype=np.uint8)
    parts = [part for start, stop in _UUID_PARTS for part in (digits[:, 2 * start : 2 * stop], dash)][:-1]
    written = np.ascontiguousarray(np.hstack(parts)).view("S36").ravel() if n_rows else np.zeros(0, "S36")
    texts = pa.array(written, pa.binary()).cast(pa.string())
    return pc.if_else(stored.is_valid(), texts, pa.scalar(None, pa.string()))
