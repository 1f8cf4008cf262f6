"""Every byte of an Excel workbook is accounted for: one sheet of cells, and the fixed parts that every workbook has.

The cells are read from the sheet's own XML by a strict grammar, and a workbook is made of them by our own calls of the
library that writes such files. If that is the very file, it holds nothing but its cells. Else, with another version of
the library, its archive and its parts are looked at one by one.
"""

from __future__ import annotations

import html
import io
import math
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import xlsxwriter

from sfumato.audit.parquet_bytes import NotAccountedError
from sfumato.audit.spelling import double_text

_SHEET, _STRINGS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"
_MEMBERS = (
    "[Content_Types].xml",
    "_rels/.rels",
    "xl/_rels/workbook.xml.rels",
    _SHEET,
    "xl/workbook.xml",
    _STRINGS,
    "xl/styles.xml",
    "xl/theme/theme1.xml",
    "docProps/core.xml",
    "docProps/app.xml",
)
_MOST_BYTES = 4 << 30
_OWNER_ONLY = 0o600 << 16
_FIRST_DAY = 0x21  # 1980-01-01 in an archive
_FIXED_DATE = datetime(2000, 1, 1)
_OPTIONS = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}

_ROW = re.compile(r'<row r="([1-9]\d*)" spans="1?\d+:\d+">((?:<c [^>]*><v>[^<]*</v></c>)+)</row>')
_CELL = re.compile(r'<c r="([A-Z]{1,3})([1-9]\d*)"( s="1")?(?: t="(s|b)")?><v>([^<]*)</v></c>')
_STRING = re.compile(r'<si><t(?: xml:space="preserve")?>([^<]*)</t></si>')
_ESCAPED = re.compile(r"_x([0-9A-F]{4})_")
_NUMBER = re.compile(r"-?\d+(\.\d+)?(E[+-]\d+)?")

Value = str | float | bool


@dataclass(frozen=True)
class Cell:
    """A cell: its place from 0, what it holds, and whether a number is shown as a date."""

    row: int
    column: int
    value: Value
    is_date: bool = False


def account_for_workbook(content: bytes, tokens: Sequence[Sequence[str]]) -> bool:
    """Account for every byte of a workbook, and say whether its cells make the very file here.

    ``tokens`` are for each column the texts that mean "missing".

    Raises
    ------
    NotAccountedError
        If the archive or one of its parts holds more than the cells and what every workbook has.
    """
    try:
        _check_archive(content)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = {name: archive.read(name) for name in _MEMBERS}
        cells = list(_cells(parts))
        _check_columns(cells, tokens)
        if _made(cells) == content:
            return True
        _check_fixed_parts(parts)
    except (zipfile.BadZipFile, zlib.error, ValueError, KeyError, IndexError, struct.error, RuntimeError):
        problem = "it is not an archive of a workbook"
        raise NotAccountedError(problem) from None
    return False


def _check_archive(content: bytes) -> None:
    """Lay the archive out anew from its compressed parts, and compare."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        if tuple(entry.filename for entry in entries) != _MEMBERS or sum(e.file_size for e in entries) > _MOST_BYTES:
            problem = "it has other parts than a workbook of one sheet"
            raise NotAccountedError(problem)
        laid_out, listing = io.BytesIO(), io.BytesIO()
        for entry in entries:
            start = entry.header_offset + 30 + len(entry.filename)
            stored = content[start : start + entry.compress_size]
            plain = archive.read(entry)
            name = entry.filename.encode()
            sizes = struct.pack(
                "<HHHHIIIHH", 0, 8, 0, _FIRST_DAY, zlib.crc32(plain), len(stored), len(plain), len(name), 0
            )
            listing.write(b"PK\x01\x02" + struct.pack("<BBH", 20, 3, 20) + sizes)
            listing.write(struct.pack("<HHHII", 0, 0, 0, _OWNER_ONLY, laid_out.tell()) + name)
            laid_out.write(b"PK\x03\x04" + struct.pack("<H", 20) + sizes + name + stored)
    n, at, size = len(_MEMBERS), laid_out.tell(), listing.tell()
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, n, n, size, at, 0)
    if laid_out.getvalue() + listing.getvalue() + end != content:
        problem = "its archive holds more than its parts"
        raise NotAccountedError(problem)


def _cells(parts: Mapping[str, bytes]) -> Iterator[Cell]:
    strings = _strings(parts[_STRINGS].decode())
    sheet = parts[_SHEET].decode()
    start, end = sheet.index("<sheetData>") + len("<sheetData>"), sheet.index("</sheetData>")
    odd = "its sheet is not a plain list of cells"
    at, n_used, last_row = start, 0, 0
    for row in _ROW.finditer(sheet, start, end):
        if row.start() != at or int(row[1]) != last_row + 1:  # readers pass over blank rows
            raise NotAccountedError(odd)
        at, last_row = row.end(), int(row[1])
        within, last_column = row.start(2), -1
        for cell in _CELL.finditer(sheet, row.start(2), row.end(2)):
            column = _column(cell[1])
            if cell.start() != within or int(cell[2]) != last_row or column <= last_column:
                raise NotAccountedError(odd)
            within, last_column = cell.end(), column
            value: Value
            if cell[4] == "s":
                if int(cell[5]) > n_used:
                    problem = "its texts are not listed in the order of first use"
                    raise NotAccountedError(problem)
                n_used = max(n_used, int(cell[5]) + 1)
                value = strings[int(cell[5])]
            elif cell[4] == "b":
                value = {"0": False, "1": True}[cell[5]]
            elif _NUMBER.fullmatch(cell[5]) and math.isfinite(float(cell[5])):
                value = float(cell[5])
            else:
                raise NotAccountedError(odd)
            yield Cell(last_row - 1, column, value, cell[3] is not None)
        if within != row.end(2):
            raise NotAccountedError(odd)
    if at != end:
        raise NotAccountedError(odd)
    if n_used != len(strings):
        problem = "it lists texts that no cell has"
        raise NotAccountedError(problem)


def _strings(part: str) -> list[str]:
    start = part.index(">", part.index("<sst ")) + 1
    found, at = [], start
    for match in _STRING.finditer(part, start):
        if match.start() != at:
            break
        at = match.end()
        found.append(_ESCAPED.sub(lambda code: chr(int(code[1], 16)), html.unescape(match[1])))
    if part[at:] != "</sst>" or len(set(found)) != len(found):
        problem = "its texts are not a plain list"
        raise NotAccountedError(problem)
    return found


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - 64
    return number - 1


def _check_columns(cells: Sequence[Cell], tokens: Sequence[Sequence[str]]) -> None:
    """Refuse what readers take for the same: tokens beside missing cells, padded texts, numbers beside their texts.

    A missing value is no cell, but a row without any value has a token in its first one.
    """
    n_cells = Counter(cell.row for cell in cells)
    types: dict[int, tuple[type, bool]] = {}
    for cell in cells:
        problem = ""
        own = tokens[cell.column] if cell.row and cell.column < len(tokens) else ()
        is_mark = cell.column == 0 and n_cells[cell.row] == 1 and cell.value == next((t for t in own if t), "")
        stored = (type(cell.value), cell.is_date)
        if isinstance(cell.value, str) and cell.value != cell.value.strip():
            problem = "there are blanks around a text"
        elif is_mark and cell.row:
            continue
        elif not isinstance(cell.value, bool) and _text(cell.value) in own:
            problem = "it spells missing values in more than one way"
        elif stored != (types.setdefault(cell.column, stored) if cell.row else (str, False)):
            problem = "a column mixes texts, numbers, dates and truth values, or its name is no text"
        if problem:
            raise NotAccountedError(problem)


def _text(value: Value) -> str:
    return value if isinstance(value, str) else double_text(float(value))


def _made(cells: Sequence[Cell]) -> bytes:
    """Write a workbook of cells, with the settings that every released one has."""
    content = io.BytesIO()
    workbook = xlsxwriter.Workbook(content, _OPTIONS)
    workbook.set_properties({"created": _FIXED_DATE})
    sheet = workbook.add_worksheet("table")
    as_date = workbook.add_format({"num_format": "yyyy-mm-dd"})
    for cell in cells:
        if isinstance(cell.value, str):
            sheet.write_string(cell.row, cell.column, cell.value)
        elif isinstance(cell.value, bool):
            sheet.write_boolean(cell.row, cell.column, cell.value)
        else:
            sheet.write_number(cell.row, cell.column, cell.value, as_date if cell.is_date else None)
    workbook.close()
    return content.getvalue()


def _check_fixed_parts(parts: Mapping[str, bytes]) -> None:
    """Look, in parts that another version of the library wrote, for what no release has."""
    book = parts["xl/workbook.xml"]
    has_more = book.count(b"<sheet ") != 1 or b"definedName" in book or b" state=" in book
    if has_more or any(b"<!--" in part or part.count(b"<?") != 1 for part in parts.values()):
        problem = "it has hidden sheets, names or comments"
        raise NotAccountedError(problem)
