"""Workbooks are written again from their cells, and the bytes compared.

Where another version of the library wrote the file, the same content has to be found: the same parts by name with
nothing between them, one sheet of the same cells, the same texts, and no element that the sheet of a release lacks.
"""

from __future__ import annotations

import datetime
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree

import pyarrow as pa

from sfumato.audit.bytes.compared import NotAccountedError, require
from sfumato.audit.bytes.text import as_read
from sfumato.errors import InputError, InvalidParameterError
from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import Table
from sfumato.table.io.excel import rows_of_sheet, write_workbook

_SHEET = "xl/worksheets/sheet1.xml"
_TYPES = {str: pa.string(), float: pa.float64(), bool: pa.bool_(), datetime.date: pa.date32()}
_FIRST_DAY = 0x21  # 1980-01-01 in an archive
_OWNER_ONLY = 0o600 << 16
_HEADER_BYTES = 30  # of a part of an archive, before its name

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
        cells = [as_read(row[position] if position < len(row) else None, own) for row in rows]
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


def check_content(content: bytes, made: bytes) -> None:
    """Compare a workbook of another version of the library with one that was made here of its cells.

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
    except (zipfile.BadZipFile, zlib.error, ElementTree.ParseError, struct.error, ValueError, RuntimeError):
        problem = "it is not an archive of a workbook"
        raise NotAccountedError(problem) from None
    require(_rows(content) == _rows(made), "it spells missing values in more than one way, or has blanks around texts")


def _check_archive(content: bytes) -> None:
    """Lay the archive out anew from its compressed parts, and compare."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        laid_out, listing = io.BytesIO(), io.BytesIO()
        for entry in archive.infolist():
            start = entry.header_offset + _HEADER_BYTES + len(entry.filename)
            stored, name = content[start : start + entry.compress_size], entry.filename.encode()
            sizes = entry.CRC, entry.compress_size, entry.file_size, len(name)
            header = struct.pack("<HHHHIIIHH", 0, zipfile.ZIP_DEFLATED, 0, _FIRST_DAY, *sizes, 0)
            listing.write(b"PK\x01\x02" + struct.pack("<BBH", 20, 3, 20) + header)
            listing.write(struct.pack("<HHHII", 0, 0, 0, _OWNER_ONLY, laid_out.tell()) + name)
            laid_out.write(b"PK\x03\x04" + struct.pack("<H", 20) + header + name + stored)
        n, at, size = len(archive.infolist()), laid_out.tell(), listing.tell()
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, n, n, size, at, 0)
    require(laid_out.getvalue() + listing.getvalue() + end == content, "its archive holds more than its parts")


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
