"""Excel and OpenDocument workbooks, read through calamine."""

from __future__ import annotations

import difflib
import io
import re
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import IO

import python_calamine

from sfumato.errors import InputError
from sfumato.table.bytes import StoredBytes, unzipped
from sfumato.table.cells import ColumnCoder, check_names
from sfumato.table.objects import MixedColumnError, column_of_objects, refuse_mixed
from sfumato.table.parsed import Parsed

MAX_SHEET_CELLS = 1 << 26

_CHUNK_BYTES = 1 << 20
_CELL_REFERENCE = re.compile(rb"""r=["']([A-Z]{1,3})(\d{1,7})["']""")
_REFERENCE_BYTES = 16

Row = Sequence[object]


def parse_spreadsheet(stored: StoredBytes, coder: ColumnCoder, *, sheet: str | None, header: bool) -> Parsed:
    """Parse one sheet (the first unless named); empty rows are skipped, as are empty columns at the end."""
    data = b"".join(unzipped(stored.first_pass(), stored.name))
    if not data:
        problem = "is empty"
        raise InputError(problem, path=stored.name)
    _check_extent(data, stored.name)
    rows = [(number, row) for number, row in enumerate(_rows(data, sheet, stored.name), start=1) if _width(row)]
    if not rows:
        problem = "its sheet is empty"
        raise InputError(problem, path=stored.name, hint="name another one with --sheet")
    width = max(_width(row) for _, row in rows)
    first_line, first = rows[0]
    if header:
        names = check_names((_label(cell) for cell in _padded(first, width)), place=stored.name, line=first_line)
        rows = rows[1:]
    else:
        names = [f"c{i}" for i in range(1, width + 1)]
    if not rows:
        problem = "has a header but no data rows"
        raise InputError(problem, path=stored.name)
    columns, kinds = {}, {}
    for position, name in enumerate(names):
        cells = [row[position] if position < len(row) else "" for _, row in rows]
        try:
            array = column_of_objects(cells, coder.rules.tokens(name), is_text=coder.rules.is_text(name))
        except MixedColumnError as error:
            raise refuse_mixed(error, place=stored.name, column=name, row=rows[error.position][0]) from None
        columns[name], kinds[name] = coder.code(name, array)
    return Parsed(columns, kinds, len(rows), lambda row: rows[row][0])


def _check_extent(data: bytes, name: str) -> None:
    """Refuse a sheet that a cell far away makes too large; the parser would take memory for all cells in between."""
    extents = [(0, 0)]
    with suppress(Exception), zipfile.ZipFile(io.BytesIO(data)) as archive:  # the parser says what is damaged
        for member in archive.namelist():
            if member.lower().endswith(".xml"):
                with archive.open(member) as file:
                    extents.append(_extent(file))
    n_rows, n_columns = max(extents, key=lambda extent: extent[0] * extent[1])
    if n_rows * n_columns > MAX_SHEET_CELLS:
        problem = f"holds a sheet of {n_rows:,} rows and {n_columns:,} columns, more than {MAX_SHEET_CELLS:,} cells"
        raise InputError(problem, path=name, hint="delete stray cells far from the table, or save it as CSV")


def _extent(file: IO[bytes]) -> tuple[int, int]:
    """Row and column of the last cell of a sheet."""
    n_rows, letters, rest = 0, {b""}, b""
    for chunk in iter(partial(file.read, _CHUNK_BYTES), b""):
        cells = _CELL_REFERENCE.findall(rest + chunk)
        letters.update(column for column, _ in cells)
        n_rows = max(n_rows, *(int(row) for _, row in cells), 0)
        rest = chunk[-_REFERENCE_BYTES:]
    return n_rows, max(_column_number(column) for column in letters)


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number


def _rows(data: bytes, sheet: str | None, name: str) -> Sequence[Row]:
    try:
        workbook = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(data))
        titles = workbook.sheet_names
        if titles and (sheet is None or sheet in titles):
            found = workbook.get_sheet_by_name(titles[0] if sheet is None else sheet)
            return found.to_python(skip_empty_area=False)
    except python_calamine.PasswordError:
        problem = "is protected by a password"
        raise InputError(problem, path=name, hint="save a copy without one") from None
    except BaseException as error:  # a damaged file may end in a panic of the Rust parser, which is no Exception
        is_damage = isinstance(error, Exception) or type(error).__name__ == "PanicException"
        if isinstance(error, MemoryError) or not is_damage:
            raise
        problem = "cannot be read as an Excel workbook"
        raise InputError(problem, path=name, hint="is it damaged, or a text file with this suffix?") from None
    if sheet is None:
        problem = "holds no sheet"
        raise InputError(problem, path=name)
    nearest = difflib.get_close_matches(sheet, titles, n=1)
    problem = f"has no sheet '{sheet}'"
    raise InputError(problem, path=name, hint=f"did you mean '{nearest[0]}'?" if nearest else "")


def _width(row: Row) -> int:
    """Count the cells up to the last one that holds something."""
    return max((i for i, cell in enumerate(row, start=1) if cell not in ("", None)), default=0)


def _padded(row: Row, width: int) -> Row:
    return [*row[:width], *[""] * (width - len(row))]


def _label(cell: object) -> object:
    """Header cell as text: a year stored as 2020.0 is 2020."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell
