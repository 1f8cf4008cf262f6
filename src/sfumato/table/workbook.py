"""Excel workbooks, written through XlsxWriter.

Numbers are stored with 16 significant digits, as the format's own programs do; use Parquet for every last bit.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import date, datetime
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import xlsxwriter
from xlsxwriter.exceptions import FileCreateError

from sfumato.errors import InvalidParameterError
from sfumato.table.cells import as_text
from sfumato.table.coding import Table, is_number_type

MAX_ROWS = 1_048_576
MAX_COLUMNS = 16_384
MAX_CELL_CHARACTERS = 32_767

_EXACT_INTEGERS = 2**53
_FIXED_DATE = datetime(2000, 1, 1)
_FIRST_DATE = date(1900, 3, 1)  # before it, Excel counts a day that never was
_OPTIONS = {
    "in_memory": True,
    "constant_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
}
_DATE_FORMAT = {"num_format": "yyyy-mm-dd"}

Writer = Callable[[int, int, Any], object]


def write_workbook(table: Table, file: BinaryIO) -> None:
    """Write one sheet: numbers, truth values and dates as such, all else as text, missing values as empty cells.

    A row in which everything is missing gets a missing token in its first cell, because an empty row is no row.
    ``file`` gets the finished workbook in one piece: a write that fails is the plain ``OSError`` of the file, and no
    half-made archive tries to write once more when it is thrown away.
    """
    _check_size(table)
    content = io.BytesIO()
    workbook = xlsxwriter.Workbook(content, _OPTIONS)
    workbook.set_properties({"created": _FIXED_DATE})
    _fill(workbook.add_worksheet("table"), table, workbook.add_format(_DATE_FORMAT))
    try:
        workbook.close()
    except FileCreateError as error:
        raise error.args[0] from None
    file.write(content.getbuffer())


def _fill(sheet: Any, table: Table, date_format: Any) -> None:
    for position, name in enumerate(table.columns):
        sheet.write_string(0, position, _checked_text(name, name))
    columns = [_column(sheet, table, name, date_format) for name in table.columns]
    empty = _empty_rows(table)
    for row in range(table.n_rows):
        if row in empty:
            sheet.write_string(row + 1, 0, empty[row])
            continue
        for position, (write, values, codes) in enumerate(columns):
            value = values[codes[row]]
            if value is not None:
                write(row + 1, position, value)


def _check_size(table: Table) -> None:
    if table.n_rows >= MAX_ROWS or len(table.columns) > MAX_COLUMNS:
        problem = f"got a table of {table.n_rows:,} rows and {len(table.columns):,} columns"
        raise _refused(problem)


def _column(sheet: Any, table: Table, name: str, date_format: Any) -> tuple[Writer, list[Any], list[int]]:
    """How the values of a column are written, its distinct values, and its codes."""
    values, codes = table[name].values, table[name].codes.tolist()
    if pa.types.is_boolean(values.type):
        return sheet.write_boolean, values.to_pylist(), codes
    if is_number_type(values.type):
        return sheet.write_number, _checked_numbers(values, name), codes
    if pa.types.is_date(values.type) and _fit_dates(values):
        return lambda row, at, value: sheet.write_datetime(row, at, value, date_format), values.to_pylist(), codes
    texts = [None if text is None else _checked_text(text, name) for text in as_text(values).to_pylist()]
    return sheet.write_string, texts, codes


def _checked_numbers(values: pa.Array, name: str) -> list[Any]:
    numbers = values.drop_null().to_pylist()
    if not all(np.isfinite(float(number)) for number in numbers):
        problem = f"got infinite numbers in column '{name}'"
        raise _refused(problem)
    if any(isinstance(number, int) and abs(number) > _EXACT_INTEGERS for number in numbers):
        problem = f"got integers in column '{name}' that Excel would round"
        raise _refused(problem)
    return list(values.to_pylist())


def _fit_dates(values: pa.Array) -> bool:
    days = values.drop_null().cast(pa.int32()).to_pylist()
    first, last = (_FIRST_DATE - date(1970, 1, 1)).days, (date.max - date(1970, 1, 1)).days
    return all(first <= day <= last for day in days)


def _checked_text(text: str, name: str) -> str:
    if len(text) > MAX_CELL_CHARACTERS:
        problem = f"got a text longer than {MAX_CELL_CHARACTERS:,} characters in column '{name}'"
        raise _refused(problem)
    return text


def _empty_rows(table: Table) -> dict[int, str]:
    """Rows in which everything is missing, with the text that says so."""
    names = list(table.columns)
    missing = [table[name].missing_code for name in names]
    if not names or None in missing:
        return {}
    is_empty = np.ones(table.n_rows, dtype=np.bool_)
    for name, code in zip(names, missing, strict=True):
        is_empty &= table[name].codes == code
    token = next((token for token in table.schema.missing_tokens(names[0]) if token), "")
    return dict.fromkeys(np.flatnonzero(is_empty).tolist(), token)


def _refused(problem: str) -> InvalidParameterError:
    allowed = (
        f"something else than excel unless the table has at most {MAX_ROWS - 1:,} rows and {MAX_COLUMNS:,} columns "
        "of numbers and texts that a cell can hold"
    )
    return InvalidParameterError("format", problem, allowed=allowed, hint="write csv or parquet")
