"""JSON lines: one flat object a line; a key that is not there is missing."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NoReturn

import pyarrow as pa

from sfumato.errors import InputError, InvalidParameterError
from sfumato.table.cells import ColumnCoder, MixedColumnError, as_text, check_names, column_of_objects, refuse_mixed
from sfumato.table.coding import Table
from sfumato.table.io.formats import Parsed
from sfumato.table.io.text import Text

_ROWS_AT_ONCE = 1 << 14
_EXACT_INTEGERS = 2**53
_MOST_COLUMNS = 100_000


class _Refused(Exception):  # noqa: N818  (internal: becomes an InputError with its line)
    """Internal: why a line is no row."""


def parse_json_lines(text: Text, coder: ColumnCoder) -> Parsed:
    """Parse objects of texts, numbers, truth values and nulls; columns are in the order of first use."""
    columns: dict[str, list[object]] = {}
    lines: list[int] = []
    for number, line in enumerate(text.lines(), start=1):
        if not line.strip():
            continue
        for key, value in _row(line, text.name, number).items():
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


def _check_width(columns: dict[str, list[object]], place: str, line: int) -> None:
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


def _json_texts(values: pa.Array, name: str) -> list[str]:
    kinds = pa.types
    if not (kinds.is_integer(values.type) or kinds.is_floating(values.type) or kinds.is_boolean(values.type)):
        values = as_text(values)
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
