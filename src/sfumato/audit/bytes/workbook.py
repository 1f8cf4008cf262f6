"""Workbooks are written again from their cells, and the bytes compared.

Where another version of the library wrote the file, the same content has to be found: the same parts by name with
nothing between them, one sheet of the same cells, the same texts, and no element that the sheet of a release lacks.
"""

from __future__ import annotations

import datetime
import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree

import pyarrow as pa

from sfumato.audit.bytes.compared import NotAccountedError, require
from sfumato.errors import InputError, InvalidParameterError
from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import Table
from sfumato.table.io.excel import rows_of_sheet, write_workbook

_SHEET = "xl/worksheets/sheet1.xml"
_TYPES = {str: pa.string(), float: pa.float64(), bool: pa.bool_(), datetime.date: pa.date32()}
_FIRST_DAY = (1980, 1, 1, 0, 0, 0)
_HEADER_BYTES, _LISTED_BYTES, _END_BYTES = 30, 46, 22  # of an archive, apart from names of parts

Row = Sequence[object]


def written_again(content: bytes, tokens: Mapping[str, Sequence[str]]) -> bytes:
    """Write the cells of a workbook with the canonical writer; ``tokens`` mean "missing", by column.

    Raises
    ------
    NotAccountedError
        If it is no workbook of these columns, or cells of a column are of several types.
    """
    header, *rows = _rows(content)
    require(list(header) == list(tokens), "its first row is not the stated column names")
    arrays = {}
    for position, (name, own) in enumerate(tokens.items()):
        cells = [_cell(row[position] if position < len(row) else None, own) for row in rows]
        types = {type(cell) for cell in cells if cell is not None} or {str}
        require(len(types) == 1 and types <= _TYPES.keys(), "a column mixes texts, numbers, dates and truth values")
        arrays[name] = pa.array(cells, _TYPES[types.pop()])
    schema = Schema.of(Column(name, kind=Kind.CATEGORICAL, missing=tuple(own)) for name, own in tokens.items())
    made = io.BytesIO()
    try:
        write_workbook(Table.from_arrow(pa.table(arrays), schema), made)
    except InvalidParameterError:
        problem = "no workbook can be made of its cells"
        raise NotAccountedError(problem) from None
    return made.getvalue()


def _rows(content: bytes) -> Sequence[Row]:
    try:
        rows = rows_of_sheet(content, "table", "")
    except InputError:
        problem = "it cannot be read as a workbook of one sheet"
        raise NotAccountedError(problem) from None
    require(bool(rows), "its sheet is empty")
    return rows


def _cell(cell: object, tokens: Sequence[str]) -> object:
    """Give a cell as it would be read: without blanks around a text, none where it means "missing"."""
    if not isinstance(cell, str):
        return cell
    text = cell.strip()
    return None if not text or text in tokens else text


def check_content(content: bytes, made: bytes) -> None:
    """Check a workbook of another version of the library beside one that was made here of the same cells.

    Raises
    ------
    NotAccountedError
        If there is anything else in it.
    """
    try:
        _check_archive(content)
        with zipfile.ZipFile(io.BytesIO(content)) as one, zipfile.ZipFile(io.BytesIO(made)) as other:
            require(one.namelist() == other.namelist(), "it has other parts than a workbook of one sheet")
            for name in one.namelist():
                _check_part(name, one.read(name), other.read(name))
    except (zipfile.BadZipFile, zlib.error, ElementTree.ParseError, ValueError, RuntimeError, NotImplementedError):
        problem = "it is not an archive of a workbook"
        raise NotAccountedError(problem) from None
    require(_rows(content) == _rows(made), "it spells missing values in more than one way, or has blanks around texts")


def _check_archive(content: bytes) -> None:
    """Check that an archive holds its parts and nothing before, between and after them."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        at, listed = 0, _END_BYTES
        for entry in archive.infolist():
            has_more = entry.extra or entry.comment or entry.date_time != _FIRST_DAY or entry.header_offset != at
            require(not has_more, "its archive holds more than its parts")
            at += _HEADER_BYTES + len(entry.filename) + entry.compress_size
            listed += _LISTED_BYTES + len(entry.filename)
        is_all = archive.start_dir == at and at + listed == len(content) and not archive.comment
        require(is_all, "its archive holds more than its parts")


def _check_part(name: str, part: bytes, made: bytes) -> None:
    """Check that a part has the texts of the one made here, and the sheet its kinds of elements."""
    is_plain = b"<!--" not in part and part.count(b"<?") == 1 and b"<!" not in part
    require(is_plain, "it has comments")
    found, expected = ElementTree.fromstring(part), ElementTree.fromstring(made)
    if name == _SHEET:
        require(set(_kinds(found)) <= set(_kinds(expected)), "its sheet is not a plain list of cells")
    else:
        is_same = list(found.itertext()) == list(expected.itertext())
        tags = {element.tag for element in found.iter()}
        require(is_same and tags <= {element.tag for element in expected.iter()}, "it holds texts that no cell has")


def _kinds(sheet: ElementTree.Element) -> Iterator[tuple[str, str]]:
    for element in sheet.iter():
        yield element.tag, ""
        yield from ((element.tag, key) for key in element.attrib)
