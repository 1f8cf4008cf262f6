"""JSON lines: one flat object a line; a key that is not there is missing.

A file that fits is parsed at once; a larger one in two passes, of which the first finds out what columns hold and the
second keeps their cells in a private file.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence, Sized
from typing import Any, BinaryIO, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import InputError, InvalidParameterError
from sfumato.table.cells import (
    ColumnCoder,
    MixedColumnError,
    as_doubles,
    check_names,
    column_of_objects,
    is_missing,
    is_whole,
    kind_of_object,
    mixed_problem,
    refuse_mixed,
    text_of_object,
    written_text,
)
from sfumato.table.coding import Table
from sfumato.table.io.formats import Parsed
from sfumato.table.io.kept_rows import KeptRows
from sfumato.table.io.text import Text

_ROWS_AT_ONCE = 1 << 14
_EXACT_INTEGERS = 2**53
_MOST_COLUMNS = 100_000
_LARGEST_INTEGER = 2**63 - 1
_TIMES_LARGER = 8  # objects of a line than the line


class _Refused(Exception):  # noqa: N818  (internal: becomes an InputError with its line)
    """Internal: why a line is no row."""


def parse_json_lines(text: Text, coder: ColumnCoder) -> Parsed:
    """Parse objects of texts, numbers, truth values and nulls; columns are in the order of first use."""
    columns: dict[str, list[object]] = {}
    lines: list[int] = []
    for number, row in _numbered_rows(text):
        for key, value in row.items():
            if key not in columns:
                columns[key] = [None] * len(lines)
                _check_width(columns, text.name, number)
            columns[key].append(value)
        lines.append(number)
        for cells in columns.values():
            if len(cells) < len(lines):
                cells.append(None)
    if not lines:
        problem = "has no data rows"
        raise InputError(problem, path=text.name)
    names = check_names(columns, place=text.name)
    coded, kinds = {}, {}
    for name, cells in zip(names, columns.values(), strict=True):
        try:
            array = column_of_objects(cells, coder.rules.tokens(name), is_text=coder.rules.is_text(name))
        except MixedColumnError as error:
            raise refuse_mixed(error, place=text.name, column=name, row=lines[error.position]) from None
        coded[name], kinds[name] = coder.code(name, array)
    if not coded:
        problem = "has no columns: its objects are empty"
        raise InputError(problem, path=text.name)
    return Parsed(coded, kinds, len(lines), lambda row: lines[row])


def _check_width(columns: Sized, place: str, line: int) -> None:
    if len(columns) > _MOST_COLUMNS:
        problem = f"has more than {_MOST_COLUMNS:,} different keys"
        raise InputError(problem, path=place, line=line, hint="keys are names of columns; are these values?")


def _row(line: str, place: str, number: int) -> dict[str, object]:
    try:
        found = json.loads(line, object_pairs_hook=_flat, parse_constant=_no_number)
        if isinstance(found, dict):
            return found
        _refuse("is not an object {…}")
    except _Refused as error:
        hint = "each line is one object of texts, numbers, true, false and null; nested data has to be flattened first"
        raise InputError(str(error), path=place, line=number, hint=hint) from None
    except (ValueError, RecursionError):
        problem = "is not JSON"
        hint = "each line is one JSON object; is it JSON over several lines? Then write its records to CSV or Parquet"
        raise InputError(problem, path=place, line=number, hint=hint) from None


def _flat(pairs: list[tuple[str, object]]) -> dict[str, object]:
    row = dict(pairs)
    if len(row) < len(pairs):
        _refuse("has a key twice")
    for key, value in row.items():
        if isinstance(value, dict | list):
            _refuse("holds an object or a list in a cell")
        if isinstance(value, float) and not math.isfinite(value):
            _refuse("holds a number that is too large")
        try:
            f"{key}{value if isinstance(value, str) else ''}".encode()
        except UnicodeEncodeError:
            _refuse("holds half a character")
    return row


def _no_number(word: str) -> NoReturn:
    _refuse("holds NaN or Infinity, which JSON does not have")


def _refuse(problem: str) -> NoReturn:
    raise _Refused(problem)


# Files that are larger than memory.


class _Seen:
    """What was seen of a column so far, by which its type is settled as :func:`column_of_objects` does."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = frozenset(tokens)
        self._first: dict[str, int] = {}
        self._is_whole = self._is_small = self._fits_float = True

    def take(self, value: object, line: int) -> None:
        """Look at a cell."""
        if is_missing(value, self._tokens):
            return
        what = kind_of_object(value)
        self._first.setdefault(what, line)
        if what != "numbers":
            return
        if isinstance(value, float) and not is_whole(value):
            self._is_whole = False
        elif abs(int(value)) > _LARGEST_INTEGER:  # type: ignore[call-overload]
            self._is_small = self._is_small and int(value) == -_LARGEST_INTEGER - 1  # type: ignore[call-overload]
            self._fits_float = self._fits_float and abs(int(value)) <= sys.float_info.max  # type: ignore[call-overload]

    def settled(self, *, is_text: bool) -> pa.DataType:
        """Say the type of the column; a mixed one is text, or refused with the line where the second kind begins."""
        kinds = list(self._first)
        if len(kinds) > 1:
            if is_text:
                return pa.string()
            raise MixedColumnError(mixed_problem(kinds), self._first[kinds[1]])
        if kinds == ["truth values"]:
            return pa.bool_()
        if kinds == ["numbers"] and self._is_whole and self._is_small:
            return pa.int64()
        if kinds == ["numbers"] and not self._is_whole and self._fits_float:
            return pa.float64()
        return pa.string()


def kept_json_lines(text: Text, coder: ColumnCoder, cells_at_once: int, bytes_at_once: int) -> KeptRows:
    """Find out what columns hold, then keep their cells, typed as a table that is read at once has them."""
    seen: dict[str, _Seen] = {}
    is_any = False
    for number, row in _numbered_rows(text):
        is_any = True
        for key, value in row.items():
            if key not in seen:
                seen[key] = _Seen(coder.rules.tokens(key.strip()))
                _check_width(seen, text.name, number)
            seen[key].take(value, number)
    if not is_any:
        problem = "has no data rows"
        raise InputError(problem, path=text.name)
    names = check_names(seen, place=text.name)
    types = []
    for name, own in zip(names, seen.values(), strict=True):
        try:
            types.append(own.settled(is_text=coder.rules.is_text(name)))
        except MixedColumnError as error:
            raise refuse_mixed(error, place=text.name, column=name, row=error.position) from None
    if not names:
        problem = "has no columns: its objects are empty"
        raise InputError(problem, path=text.name)
    schema = pa.schema([(str(i), own) for i, own in enumerate(types)])
    tokens = [frozenset(coder.rules.tokens(name)) for name in names]
    n_rows = max(1, cells_at_once // len(names))
    batches = _typed_batches(text, list(seen), tokens, schema, n_rows, bytes_at_once // _TIMES_LARGER)
    return KeptRows.of(names, schema, batches, text.name, cells_at_once)


def _numbered_rows(text: Text) -> Iterator[tuple[int, dict[str, object]]]:
    for number, line in enumerate(text.lines(), start=1):
        if line.strip():
            yield number, _row(line, text.name, number)


def _typed_batches(
    text: Text,
    keys: Sequence[str],
    tokens: Sequence[frozenset[str]],
    schema: pa.Schema,
    most_rows: int,
    most_bytes: int,
) -> Iterator[pa.RecordBatch]:
    waiting: list[dict[str, object]] = []
    n_bytes = 0

    def batch() -> pa.RecordBatch:
        columns = []
        for key, own, field in zip(keys, tokens, schema, strict=True):
            values = (row.get(key) for row in waiting)
            known = [None if is_missing(value, own) else _as_type(value, field.type) for value in values]
            columns.append(pa.array(known, field.type))
        return pa.record_batch(columns, schema=schema)

    for number, line in enumerate(text.lines(), start=1):
        if not line.strip():
            continue
        waiting.append(_row(line, text.name, number))
        n_bytes += len(line)
        if len(waiting) >= most_rows or n_bytes > most_bytes:
            yield batch()
            waiting, n_bytes = [], 0
    if waiting:
        yield batch()


def _as_type(value: object, data_type: pa.DataType) -> object:
    if pa.types.is_string(data_type):
        return value if isinstance(value, str) else text_of_object(value)
    if pa.types.is_integer(data_type):
        return int(value)  # type: ignore[call-overload]
    return float(value) if pa.types.is_floating(data_type) else value  # type: ignore[arg-type]


# Writing.


def write_json_lines(table: Table, file: BinaryIO) -> None:
    """Write one object a line: all columns in their order, null where missing, dates and times as texts."""
    keys = [json.dumps(name, ensure_ascii=False) + ":" for name in table.columns]
    texts = [_json_texts(table[name].values, name) for name in table.columns]
    codes = [table[name].codes for name in table.columns]
    for start in range(0, table.n_rows, _ROWS_AT_ONCE):
        columns = [
            [key + own[code] for code in part[start : start + _ROWS_AT_ONCE].tolist()]
            for key, own, part in zip(keys, texts, codes, strict=True)
        ]
        file.write("".join("{" + ",".join(row) + "}\n" for row in _rows(columns)).encode())


def _rows(columns: Sequence[list[str]]) -> Iterator[tuple[str, ...]]:
    return zip(*columns, strict=True)


def stored_in_lines(values: pa.Array) -> pa.Array:
    """Values as a file holds them: truth values, doubles, whole numbers below 2**63, and texts of all else."""
    kinds, values = pa.types, as_doubles(values)
    fits = kinds.is_integer(values.type) and (pc.max(values).as_py() or 0) < 2**63
    return values if fits or kinds.is_floating(values.type) or kinds.is_boolean(values.type) else written_text(values)


def _json_texts(values: pa.Array, name: str) -> list[str]:
    values = stored_in_lines(values)
    return [json_text(value, name) for value in values.to_pylist()]


def json_text(value: Any, name: str) -> str:
    """Spell a cell: whole numbers without a point, others in their shortest digits."""
    if isinstance(value, float):
        if not math.isfinite(value):
            problem, allowed = f"got infinite numbers in column '{name}'", "something else than jsonl for such numbers"
            raise InvalidParameterError("format", problem, allowed=allowed, hint="write csv or parquet")
        if value.is_integer() and abs(value) <= _EXACT_INTEGERS:
            value = int(value)
    return json.dumps(value, ensure_ascii=False)
