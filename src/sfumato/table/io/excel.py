"""Excel and OpenDocument workbooks, read through calamine in a process of its own."""

from __future__ import annotations

import datetime
import difflib
import io
import math
import os
import pickle
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import IO, Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import InputError, InvalidParameterError, on_one_line
from sfumato.table.cells import (
    ColumnCoder,
    MixedColumnError,
    as_doubles,
    check_names,
    column_of_objects,
    refuse_mixed,
    written_text,
)
from sfumato.table.coding import Table, is_number_type
from sfumato.table.io import excel_child as workbook_child
from sfumato.table.io.bytes import StoredBytes, UnpackingLimit, unzipped
from sfumato.table.io.csv import title_rows, with_title_hint
from sfumato.table.io.excel_child import GREETING, read_sheet
from sfumato.table.io.formats import Parsed

MAX_SHEET_CELLS = 1 << 26
MAX_SHEET_COLUMNS = 1 << 14

_CHUNK_BYTES = 1 << 20
_CELL_REFERENCE = re.compile(rb"""c(?<=[<:]c)\s(?:[^<>:]*?\s)??r\s*=\s*["']([A-Za-z]+)(\d+)["']""")
_REFERENCE_BYTES = 80
_LONGEST_COLUMN = 4
_LONGEST_ROW = 12
_COUNT_OF_TEXTS = re.compile(rb"""<(?:\w+:)?sst\b[^<>]*?\buniqueCount\s*=\s*["'](\d{1,20})["']""")
_IT_IS_DAMAGED = "it is damaged; save it again, or as CSV"
_DIED = "died"

Row = Sequence[object]


def parse_spreadsheet(
    stored: StoredBytes, coder: ColumnCoder, *, sheet: str | None, header: bool, skip_rows: int = 0
) -> Parsed:
    """Parse the sheet that is named, or the only one that holds something.

    The first rows are skipped as told, all empty ones, and empty columns at the end.
    """
    data = b"".join(unzipped(stored.first_pass(), stored))
    if not data:
        problem = "is empty"
        raise InputError(problem, path=stored.name)
    _check_extent(data, stored.name, stored.limit)
    numbered = enumerate(rows_of_sheet(data, sheet, stored.name), start=1)
    rows = [(number, row) for number, row in numbered if number > skip_rows and _width(row)]
    if not rows:
        after = f" after the first {skip_rows:,} rows, which are skipped" if skip_rows else ""
        raise InputError(f"its sheet is empty{after}", path=stored.name, hint="name another sheet", remedy=("sheet",))
    width = max(_width(row) for _, row in rows)
    first_line, first = rows[0]
    if header:
        names = _names(rows, width, first_line, first, stored.name)
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


def _names(rows: Sequence[tuple[int, Row]], width: int, line: int, header: Row, place: str) -> list[str]:
    try:
        return check_names((_label(cell) for cell in _padded(header, width)), place=place, line=line)
    except InputError as error:
        n_rows = title_rows((number, _padded(row, width)) for number, row in rows)
        raise with_title_hint(error, n_rows) from None


def _check_extent(data: bytes, name: str, limit: UnpackingLimit) -> None:
    """Refuse what unpacks to too much, a sheet that a cell far away makes too large, and an untrue count of texts.

    The parser would take memory for all cells in between, and for as many texts as are announced. What is not seen here
    (cells without a reference, other kinds of workbooks) ends the process of the parser at worst.
    """
    extents, n_texts = [(0, 0)], 0
    unpacked = _Unpacked(name, replace(limit, n_stored=len(data)))
    with _unless_damaged(), zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        unpacked.check(sum(member.file_size for member in members))  # as they say themselves
        for member in members:
            member.file_size = sys.maxsize  # the parser does not stop at what they say
            with _unless_damaged(), archive.open(member) as file:
                n_texts = max(n_texts, _announced_texts(file))
                extents.append(_extent(file, unpacked))
    if max(n_columns for _, n_columns in extents) > MAX_SHEET_COLUMNS:
        problem = f"holds a cell beyond column {MAX_SHEET_COLUMNS:,}, where no sheet has one"
        raise InputError(problem, path=name, hint=_IT_IS_DAMAGED)
    n_rows, n_columns = max(extents, key=lambda extent: extent[0] * extent[1])
    if n_rows * n_columns > MAX_SHEET_CELLS:
        raise _too_large(n_rows, n_columns, name)
    if n_texts > MAX_SHEET_CELLS:
        problem = f"says that it holds {n_texts:,} different texts, more than {MAX_SHEET_CELLS:,}"
        raise InputError(problem, path=name, hint=_IT_IS_DAMAGED)


class _Unpacked:
    """Counts the bytes that the members of a workbook unpack to, and refuses too many."""

    def __init__(self, name: str, limit: UnpackingLimit) -> None:
        self._name = name
        self._limit = limit
        self._n_bytes = 0

    def take(self, chunk: bytes) -> None:
        """Count on."""
        self._n_bytes += len(chunk)
        self.check(self._n_bytes)

    def check(self, n_bytes: int) -> None:
        """Refuse a workbook that unpacks to so many bytes."""
        self._limit.check(n_bytes, self._name, hint="save the table alone, as CSV")


@contextmanager
def _unless_damaged() -> Iterator[None]:
    """Leave it to the parser to say what is damaged."""
    try:
        yield
    except InputError:
        raise
    except Exception:  # a damaged archive raises many kinds of errors
        return


def _too_large(n_rows: int, n_columns: int, name: str) -> InputError:
    problem = f"holds a sheet of {n_rows:,} rows and {n_columns:,} columns, more than {MAX_SHEET_CELLS:,} cells"
    return InputError(problem, path=name, hint="delete stray cells far from the table, or save it as CSV")


def _announced_texts(file: IO[bytes]) -> int:
    """Count of texts that a table of texts states at its beginning."""
    stated = _COUNT_OF_TEXTS.search(file.read(_CHUNK_BYTES))
    file.seek(0)
    return int(stated[1]) if stated else 0


def _extent(file: IO[bytes], unpacked: _Unpacked) -> tuple[int, int]:
    """Row and column of the last cell of a sheet; absurd ones are cut, and still absurd."""
    n_rows, letters, rest = 0, {b""}, b""
    for chunk in iter(partial(file.read, _CHUNK_BYTES), b""):
        unpacked.take(chunk)
        cells = _CELL_REFERENCE.findall(rest + chunk)
        letters.update({column for column, _ in cells})
        n_rows = max(n_rows, *(int(row[:_LONGEST_ROW]) for row in {row for _, row in cells}), 0)
        rest = chunk[-_REFERENCE_BYTES:]
    return n_rows, max(_column_number(column[:_LONGEST_COLUMN]) for column in letters)


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - ord("A") + 1
    return number


def rows_of_sheet(data: bytes, sheet: str | None, name: str) -> Sequence[Row]:
    """Give the rows of a sheet, the empty ones above and within it too; ``None``: of the one that holds something.

    Raises
    ------
    InputError
        If there is no such sheet, or it cannot be parsed.
    """
    outcome, found = _parsed_apart(data, sheet) or read_sheet(data, sheet, MAX_SHEET_CELLS)
    if outcome == workbook_child.ROWS:
        rows: Sequence[Row] = found
        return rows
    raise _refusal(outcome, found, sheet, name)


def _refusal(outcome: str, found: Any, sheet: str | None, name: str) -> Exception:
    """Say why there are no rows."""
    if outcome == workbook_child.NO_MEMORY:
        return MemoryError()
    if outcome == workbook_child.TOO_LARGE:
        return _too_large(found[0], found[1], name)
    if outcome == workbook_child.LOCKED:
        return InputError("is protected by a password", path=name, hint="save a copy without one")
    if outcome == workbook_child.SEVERAL_SHEETS:
        listed = ", ".join(f"'{on_one_line(title)}'" for title in found)
        problem = f"holds {len(found):,} sheets: {listed}"
        return InputError(problem, path=name, hint="choose one of them", remedy=("sheet",))
    if outcome == workbook_child.NO_SHEET:
        return _no_sheet(sheet, found, name)
    problem, hint = "cannot be read as an Excel workbook", "is it damaged, or a text file with this suffix?"
    if outcome == _DIED:
        from sfumato.processes import cause_of_death

        problem, hint = f"{problem}: {cause_of_death(found)}", "is it damaged? Save it again, or as CSV"
    return InputError(problem, path=name, hint=hint)


def _no_sheet(sheet: str | None, titles: Sequence[str], name: str) -> InputError:
    if sheet is None:
        return InputError("holds no sheet", path=name)
    nearest = difflib.get_close_matches(sheet, titles, n=1)
    listed = ", ".join(f"'{on_one_line(title)}'" for title in titles)
    hint = f"did you mean '{on_one_line(nearest[0])}'?" if nearest else f"it has {listed}"
    return InputError(f"has no sheet '{sheet}'", path=name, hint=hint, remedy=("sheet",))


def _parsed_apart(data: bytes, sheet: str | None) -> tuple[str, Any] | None:
    """Parse in a process of its own, which a damaged file may take down; None where there can be none.

    Nothing is written to a file, and what the parser says of its end (it may quote cells) is not shown.
    """
    command = _command()
    if command is None:
        return None
    environment = os.environ | {"RUST_BACKTRACE": "0"}
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    try:
        child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, env=environment)
    except OSError:
        return None
    with child:
        try:
            return _talk(child, data, sheet)
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None  # ours may come while the child's end by the same Ctrl-C is looked at
        finally:
            child.kill()


def _command() -> list[str] | None:
    import python_calamine  # for workbooks only

    return command_of(workbook_child.__file__, [python_calamine])


def command_of(program: str, libraries: Iterable[ModuleType]) -> list[str] | None:
    """Command line of a process that needs some libraries; None if the running program is not known to be Python."""
    is_python = Path(sys.executable or "").name.lower().startswith(("python", "pypy"))
    if not is_python or getattr(sys, "frozen", False):
        return None
    folders = dict.fromkeys(str(Path(str(library.__file__)).parents[1]) for library in libraries)
    return [sys.executable, "-I", "-S", program, *folders]


def _talk(child: subprocess.Popen[bytes], data: bytes, sheet: str | None) -> tuple[str, Any] | None:
    given, answer = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
    if answer.read(len(GREETING)) != GREETING:
        return None
    try:
        for part in (pickle.dumps((sheet, MAX_SHEET_CELLS, len(data))), data):
            send(given.fileno(), part)
        outcome, found = _Answer(answer).load()
        rows = [row for piece in iter(lambda: _Answer(answer).load(), None) for row in piece]
    except (EOFError, OSError, pickle.UnpicklingError):
        answer.close()
        code = child.wait()
        if code == -signal.SIGINT:
            raise KeyboardInterrupt from None
        return _DIED, code
    return outcome, rows if outcome == workbook_child.ROWS else found


def send(pipe: int, data: bytes) -> None:
    """Write without a buffer, which could not be emptied when the other side is gone; the pipe stays open."""
    left = memoryview(data)
    while left:
        left = left[os.write(pipe, left) :]


class _Answer(pickle.Unpickler):
    """Reads dates and nothing else that would have to be looked up, should a file ever rule the process that parses.

    ``marshal`` would be safe without this, but it knows no dates.
    """

    def find_class(self, module: str, name: str) -> Any:
        """Give a class of ``datetime``."""
        if module == "datetime" and name in ("date", "datetime", "time", "timedelta"):
            return getattr(datetime, name)
        raise pickle.UnpicklingError


def _width(row: Row) -> int:
    """Count the cells up to the last one that holds something."""
    return max((i for i, cell in enumerate(row, start=1) if cell not in ("", None)), default=0)


def _padded(row: Row, width: int) -> Row:
    return [*row[:width], *[""] * (width - len(row))]


def _label(cell: object) -> object:
    """Header cell as text: a year stored as 2020.0 is 2020."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


# Excel workbooks, written through XlsxWriter.
#
# Numbers are stored with 16 significant digits, as the format's own programs do; use Parquet for every last bit.


MAX_ROWS = 1_048_576
MAX_COLUMNS = 16_384
MAX_CELL_CHARACTERS = 32_767

_EXACT_INTEGERS = 2**53
_FIXED_DATE = datetime.datetime(2000, 1, 1)
_FIRST_DATE = datetime.date(1900, 3, 1)  # before it, Excel counts a day that never was
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
    import xlsxwriter
    from xlsxwriter.exceptions import FileCreateError

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
    values, codes = stored_in_workbook(table[name].values), table[name].codes.tolist()
    if pa.types.is_boolean(values.type):
        return sheet.write_boolean, values.to_pylist(), codes
    if is_number_type(values.type):
        return sheet.write_number, _checked_numbers(values, name), codes
    if pa.types.is_date(values.type):
        return lambda row, at, value: sheet.write_datetime(row, at, value, date_format), values.to_pylist(), codes
    return (
        sheet.write_string,
        [None if text is None else _checked_text(text, name) for text in values.to_pylist()],
        codes,
    )


def stored_in_workbook(values: pa.Array) -> pa.Array:
    """Values as a workbook holds them: truth values, numbers and dates as such, all else as text.

    A number has 16 digits there. Of a column with a number that needs more, the texts are written, and so are decimals
    with places, which a number would lose.

    Examples
    --------
    >>> stored_in_workbook(pa.array([0.5, 2.0])).to_pylist(), stored_in_workbook(pa.array([0.1 + 0.2])).to_pylist()
    ([0.5, 2.0], ['0.30000000000000004'])
    """
    kinds, values = pa.types, as_doubles(values)
    if kinds.is_boolean(values.type) or kinds.is_integer(values.type):
        return values
    if kinds.is_float64(values.type) or (kinds.is_decimal(values.type) and values.type.scale == 0):
        is_whole = all(value is None or _fits_number(value) for value in values.to_pylist())
        return pc.cast(values, pa.float64()) if is_whole else written_text(values)
    return values if kinds.is_date(values.type) and _fit_dates(values) else written_text(values)


def _fits_number(value: float | Decimal) -> bool:
    """Whether a number keeps its value when it is written with 16 digits; infinite ones are refused by name."""
    written = f"{float(value):.16G}"
    return not math.isfinite(value) or (Decimal(repr(float(written))) == Decimal(str(value)))


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
    first, last = (_FIRST_DATE - datetime.date(1970, 1, 1)).days, (datetime.date.max - datetime.date(1970, 1, 1)).days
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
