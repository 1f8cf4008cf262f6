"""Weka's ARFF: a header that declares columns, then comma-separated or sparse rows; ``?`` is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa

from sfumato.errors import InputError
from sfumato.schema import Kind
from sfumato.table.cells import ColumnCoder, check_names
from sfumato.table.io.formats import Parsed
from sfumato.table.io.text import Text

_NUMERIC_TYPES = ("numeric", "real", "integer")
_CELL = re.compile(
    r"""\s*(?:'(?P<single>(?:[^'\\]|\\.)*)'|"(?P<double>(?:[^"\\]|\\.)*)"|(?P<bare>[^,'"]*?))\s*(?:,|$)""", re.DOTALL
)
_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'(?P<single>(?:[^'\\]|\\.)*)'|"(?P<double>(?:[^"\\]|\\.)*)"|(?P<bare>[^\s{'"]+))\s*(?P<type>\S.*)$""",
    re.IGNORECASE | re.DOTALL,
)
_NOMINAL = re.compile(r"""\{(?P<values>(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^'"}])*)\}\s*(?:%.*)?""", re.DOTALL)
_COMMENT = re.compile(r"[\s%]")
_SPARSE_CELL = re.compile(r"\s*(\d{1,9})\s+(.*)$", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)

Cells = list[str | None]


@dataclass(frozen=True)
class _Attribute:
    """One declared column; ``values`` is empty unless it is nominal."""

    name: str
    kind: Kind | None
    values: tuple[str, ...] = ()

    @property
    def sparse_default(self) -> str:
        """What a cell that a sparse row leaves out holds: zero, or the first of the declared values."""
        return self.values[0] if self.values else "0"


def parse_arff(text: Text, coder: ColumnCoder) -> Parsed:
    """Parse a checked text; nominal cells have to be among the declared values."""
    lines = _meaningful_lines(text)
    attributes = _header(lines, text.name)
    names = check_names((attribute.name for attribute in attributes), place=text.name)
    rows: list[Cells] = []
    row_lines: list[int] = []
    for number, line in lines:
        rows.append(_row(line, attributes, text.name, number))
        row_lines.append(number)
    if not rows:
        problem = "has no data rows after @data"
        raise InputError(problem, path=text.name)
    columns, kinds = {}, {}
    for name, attribute, cells in zip(names, attributes, zip(*rows, strict=True), strict=True):
        _check_declared(cells, attribute, text.name, row_lines)
        columns[name], kinds[name] = coder.code(name, pa.array(cells, pa.string()), attribute.kind)
    return Parsed(columns, kinds, len(rows), lambda row: row_lines[row])


def _meaningful_lines(text: Text) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.lines(), start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith("%"):
            yield number, stripped


def _header(lines: Iterator[tuple[int, str]], place: str) -> list[_Attribute]:
    attributes: list[_Attribute] = []
    for number, line in lines:
        keyword = _COMMENT.split(line, maxsplit=1)[0].lower()
        if keyword == "@attribute":
            attributes.append(_attribute(line, place, number))
        elif keyword == "@data":
            if not attributes:
                _refuse("@data comes before any @attribute", place, number)
            return attributes
        elif keyword != "@relation":
            _refuse("expected @relation, @attribute or @data", place, number)
    problem = "has no @data line"
    raise InputError(problem, path=place, hint="is it an ARFF file?")


def _attribute(line: str, place: str, number: int) -> _Attribute:
    match = _ATTRIBUTE.match(line)
    if match is None:
        _refuse("expected @attribute NAME TYPE", place, number)
    name, data_type = _unquoted(match), match["type"].strip()
    word = _COMMENT.split(data_type, maxsplit=1)[0].lower()
    if data_type.startswith("{"):
        listed = _NOMINAL.fullmatch(data_type)
        if listed is None and not data_type.endswith("}"):
            _refuse("the list of values does not end with }", place, number)
        cells = _split(listed["values"] if listed else data_type[1:-1], place, number)
        return _Attribute(name, Kind.CATEGORICAL, tuple(cell for cell in cells if cell is not None))
    if word in _NUMERIC_TYPES:
        return _Attribute(name, Kind.NUMERIC)
    if word in ("string", "date"):
        return _Attribute(name, Kind.CATEGORICAL if word == "string" else None)
    problem = "the type is none of numeric, real, integer, string, date and {…}"
    raise InputError(problem, path=place, line=number)


def _row(line: str, attributes: Sequence[_Attribute], place: str, number: int) -> Cells:
    if line.startswith("{"):
        return _sparse_row(line, attributes, place, number)
    cells = _split(line, place, number)
    if len(cells) != len(attributes):
        _refuse(f"expected {len(attributes):,} columns, found {len(cells):,}", place, number)
    return cells


def _sparse_row(line: str, attributes: Sequence[_Attribute], place: str, number: int) -> Cells:
    if not line.endswith("}"):
        _refuse("a sparse row does not end with }", place, number)
    row: Cells = [attribute.sparse_default for attribute in attributes]
    inside = line[1:-1].strip()
    for part in re.split(r",(?=\s*\d+\s)", inside) if inside else []:
        match = _SPARSE_CELL.match(part)
        if match is None or int(match[1]) >= len(row):
            _refuse("a cell of this sparse row is not 'INDEX VALUE' with an index that exists", place, number)
        row[int(match[1])] = _split(match[2], place, number)[0]
    return row


def _split(line: str, place: str, number: int) -> Cells:
    """Cells between commas; a bare ``?`` is missing, a quoted one is text."""
    if "'" not in line and '"' not in line:
        bare = [cell.strip() for cell in line.split(",")]
        return [None if cell == "?" else cell for cell in bare]
    cells: Cells = []
    at = 0
    while True:
        match = _CELL.match(line, at)
        if match is None:
            _refuse("a quote is not closed, or is inside an unquoted cell", place, number)
        cells.append(None if match["bare"] == "?" else _unquoted(match))
        at = match.end()
        if not match[0].endswith(","):
            return cells
        if at == len(line):
            return [*cells, ""]


def _unquoted(match: re.Match[str]) -> str:
    if match["bare"] is not None:
        return match["bare"]
    quoted = match["single"] if match["single"] is not None else match["double"]
    return _ESCAPED.sub(r"\1", quoted).strip()


def _check_declared(cells: Sequence[str | None], attribute: _Attribute, place: str, lines: Sequence[int]) -> None:
    if attribute.kind is Kind.CATEGORICAL and attribute.values:
        strange = set(cells) - set(attribute.values) - {None}
        if strange:
            row = next(i for i, cell in enumerate(cells) if cell in strange)
            problem = "holds a value that its @attribute line does not declare"
            raise InputError(problem, path=place, line=lines[row], column=attribute.name)


def _refuse(problem: str, place: str, line: int) -> NoReturn:
    raise InputError(problem, path=place, line=line)
