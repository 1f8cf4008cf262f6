"""Comma-, tab- and otherwise separated text.

Cells stay text, so ``1.0`` and ``1`` stay different and leading zeros stay; only blanks around a cell are dropped.
Empty lines are skipped, in a file of one column too: there a missing value has to be written as ``""`` or as another
token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa
import pyarrow.csv

from sfumato.errors import InputError, InvalidParameterError
from sfumato.table import text as limits
from sfumato.table.cells import ColumnCoder, check_names
from sfumato.table.coding import Codes
from sfumato.table.parsed import Parsed
from sfumato.table.records import fault_of, line_of_record, sniff_delimiter, split_records, title_lines, with_title_hint
from sfumato.table.text import Text

_SENTINEL = "end"
_MIN_BLOCK_BYTES = 1 << 16


def parse_delimited(text: Text, coder: ColumnCoder, *, delimiter: str | None, header: bool) -> Parsed:
    """Parse a checked text into coded columns.

    Parameters
    ----------
    delimiter : str or None
        One character; ``None`` finds it among comma, semicolon, tab and bar.
    header : bool
        Whether the first record holds the names; else they are ``c1``, ``c2``, ….
    """
    layout = layout_of(text, delimiter=delimiter, header=header)
    cells = _parse_cells(text, layout)
    columns, kinds = {}, {}
    for position, name in enumerate(layout.names):
        codes, values = _codes_and_values(cells.column(position))
        columns[name], kinds[name] = coder.code_distinct(name, codes[:-1], values)
    n_before = 1 if header else 0

    def line_of(row: int) -> int | None:
        return line_of_record(text, layout.delimiter, row + n_before)

    return Parsed(columns, kinds, cells.num_rows - 1, line_of)


@dataclass(frozen=True)
class Layout:
    """How a text is cut into cells: delimiter, names of the columns, and bytes before the first data row."""

    delimiter: str
    names: list[str]
    skip_bytes: int
    has_header: bool

    @property
    def without_rows(self) -> str:
        """What is wrong with a text that has no data row."""
        return "has a header but no data rows" if self.has_header else "holds no data rows"

    @property
    def last_row(self) -> bytes:
        """A row of our own that shows, after data rows, that no open quote swallowed their end."""
        return f"\n{_SENTINEL}{self.delimiter * (len(self.names) - 1)}\n".encode()


def layout_of(text: Text, *, delimiter: str | None, header: bool) -> Layout:
    """Find the delimiter and the names of a checked text, see :func:`parse_delimited`."""
    chosen = sniff_delimiter(text) if delimiter is None else _checked_delimiter(delimiter)
    first = next(split_records(text.lines(), chosen), None)
    if first is None:
        after = f" after the first {text.skipped_lines:,}, which are skipped" if text.skipped_lines else ""
        raise InputError(f"holds nothing but empty lines{after}", path=text.name)
    if not first.is_closed:
        raise fault_of(text, chosen, len(first.cells))
    labels = first.cells if header else [f"c{i}" for i in range(1, len(first.cells) + 1)]
    if delimiter is None and len(first.cells) == 1 and title_lines(text):
        problem = "has one cell, and the lines after it have more by another delimiter"
        fault = InputError(
            problem, path=text.name, line=first.first_line, hint="name the delimiter", remedy=("delimiter",)
        )
        raise with_title_hint(fault, title_lines(text))
    try:
        names = check_names(labels, place=text.name, line=first.first_line)
    except InputError as error:
        raise with_title_hint(error, title_lines(text)) from None
    return Layout(chosen, names, _bytes_of_lines(text, first.last_line if header else text.skipped_lines), header)


def _checked_delimiter(delimiter: str) -> str:
    if len(delimiter) == 1 and delimiter.isascii() and delimiter not in '\r\n"\0':
        return delimiter
    problem = f"got {len(delimiter)} characters" if len(delimiter) != 1 else "got one that cannot separate cells"
    allowed = "one ASCII character that is neither a quote nor a line end"
    raise InvalidParameterError(name="delimiter", problem=problem, allowed=allowed)


def _bytes_of_lines(text: Text, n_lines: int) -> int:
    """Length of the first lines with their ends."""
    return sum(len(line.encode()) for line in islice(text.physical_lines(), n_lines))


def _parse_cells(text: Text, layout: Layout) -> pa.Table:
    """Parse all data rows and our own last one."""
    block = min(max(text.n_bytes + len(layout.last_row), _MIN_BLOCK_BYTES), limits.MAX_LINE_BYTES)
    content = text.read(skip_bytes=layout.skip_bytes, append=layout.last_row)
    cells = parse_rows(content, layout, block_bytes=block, has_quotes=text.has_quotes)
    if cells is None:
        raise fault_of(text, layout.delimiter, len(layout.names))
    if cells.num_rows == 1:
        raise InputError(layout.without_rows, path=text.name)
    return cells


def parse_rows(
    content: bytes, layout: Layout, *, block_bytes: int, has_quotes: bool, columns: Sequence[int] | None = None
) -> pa.Table | None:
    """Parse data rows that end with our own last one; ``None`` if they are no rows of the layout.

    With ``columns`` only these are parsed, besides the first and the last one.
    """
    names = [str(i) for i in range(len(layout.names))]
    wanted = None if columns is None else [names[i] for i in sorted({0, *columns, len(names) - 1})]
    coded = pa.dictionary(pa.int32(), pa.string())
    try:
        cells = pyarrow.csv.read_csv(
            pa.BufferReader(content),  # Arrow's threads never call Python
            read_options=pyarrow.csv.ReadOptions(column_names=names, block_size=block_bytes),
            parse_options=pyarrow.csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=has_quotes),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, coded),
                strings_can_be_null=False,
                check_utf8=False,
                include_columns=wanted,
            ),
        )
    except MemoryError:
        raise
    except pa.ArrowException:  # its message quotes the row
        return None
    return cells if _ends_with_sentinel(cells) else None


def _ends_with_sentinel(cells: pa.Table) -> bool:
    if cells.num_rows == 0:
        return False
    last = [column[-1].as_py() for column in (cells.column(0), cells.column(cells.num_columns - 1))]
    return last in ([_SENTINEL, ""], [_SENTINEL, _SENTINEL])


def _codes_and_values(cells: pa.ChunkedArray) -> tuple[Codes, pa.Array]:
    whole = cells.chunk(0) if cells.num_chunks == 1 else cells.unify_dictionaries().combine_chunks()
    return whole.indices.to_numpy(), whole.dictionary
