"""Comma-, tab- and otherwise separated text.

Cells stay text, so ``1.0`` and ``1`` stay different and leading zeros stay; only blanks around a cell are dropped.
Empty lines are skipped, in a file of one column too: there a missing value has to be written as ``""`` or as another
token.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa
import pyarrow.csv

from sfumato.errors import InputError, InvalidParameterError
from sfumato.table.cells import ColumnCoder, check_names
from sfumato.table.coding import Codes
from sfumato.table.io import text as limits
from sfumato.table.io.formats import Parsed
from sfumato.table.io.text import Text

# Delimited text cut into records in plain Python: slow, exact about lines, used for headers and to say what is wrong.
#
# The rules are those of the fast parser: a field is quoted when its first character is ``"``; ``""`` inside is one
# quote; what follows the closing quote belongs to the field; a quote inside an unquoted field is text; empty lines are
# skipped.


DELIMITERS = (",", ";", "\t", "|")

_SNIFFED_LINES = 100
_SNIFFED_CHARACTERS = 1 << 20


@dataclass(frozen=True, repr=False)
class Record:
    """Cells of one record, the physical lines it stands on, and whether its last quote was closed."""

    cells: Sequence[str]
    first_line: int
    last_line: int
    is_closed: bool = True


def split_records(lines: Iterable[str], delimiter: str) -> Iterator[Record]:
    """Cut lines into records; a record that is still open at the end (or grows past any sense) is the last one."""
    splitter = _Splitter(delimiter)
    number = first = 0
    for number, line in enumerate(lines, start=1):
        if not splitter.is_open:
            first = number
            stripped = line.rstrip("\r\n")
            if not stripped:
                continue
            if '"' not in stripped:
                yield Record(stripped.split(delimiter), number, number)
                continue
        cells = splitter.take(line)
        if cells is not None:
            yield Record(cells, first, number)
        elif splitter.n_characters > limits.MAX_LINE_BYTES:
            break
    if splitter.is_open:
        yield Record(splitter.finish(), first, number, is_closed=False)


class _Splitter:
    """Takes the lines of a record that holds quotes and gives its cells when it is complete."""

    def __init__(self, delimiter: str) -> None:
        self._delimiter = delimiter
        self._cells: list[str] = []
        self._parts: list[str] = []
        self.is_open = False
        self.n_characters = 0

    def take(self, line: str) -> list[str] | None:
        """Cells of the record if this line ends it."""
        self.n_characters += len(line)
        at = 0
        while True:
            if self.is_open:
                at = self._quoted(line, at)
                if self.is_open:
                    return None
            elif line.startswith('"', at):
                self.is_open = True
                at += 1
                continue
            end = line.find(self._delimiter, at)
            if end < 0:
                self._parts.append(line[at:].rstrip("\r\n"))
                return self.finish()
            self._parts.append(line[at:end])
            self._end_cell()
            at = end + 1

    def _quoted(self, line: str, at: int) -> int:
        """Take quoted text; the place after the closing quote, or an open quote at the end of the line."""
        while True:
            end = line.find('"', at)
            if end < 0:
                self._parts.append(line[at:])
                return len(line)
            self._parts.append(line[at:end])
            if not line.startswith('""', end):
                self.is_open = False
                return end + 1
            self._parts.append('"')
            at = end + 2

    def _end_cell(self) -> None:
        self._cells.append("".join(self._parts))
        self._parts = []

    def finish(self) -> list[str]:
        """Cells so far; the next line starts a new record."""
        self._end_cell()
        cells, self._cells = self._cells, []
        self.is_open = False
        self.n_characters = 0
        return cells


def sniff_delimiter(text: Text) -> str:
    """Return the delimiter whose records agree best with the first one: comma, semicolon, tab or bar.

    Only a delimiter that occurs in the first record can be chosen; among equals the one that gives more columns, then
    the earlier one in this list. Without any, the file has one column.
    """
    lines, is_whole = _first_lines(text)
    best, best_score = DELIMITERS[0], (0.0, 1)
    for delimiter in DELIMITERS:
        records = [record for record in split_records(lines, delimiter) if is_whole or record.is_closed]
        n_columns = len(records[0].cells) if records else 1
        if n_columns > 1:
            agreeing = sum(len(record.cells) == n_columns for record in records) / len(records)
            best, best_score = max((best, best_score), (delimiter, (agreeing, n_columns)), key=lambda found: found[1])
    return best


def _first_lines(text: Text) -> tuple[list[str], bool]:
    lines: list[str] = []
    n_characters = 0
    for line in text.lines():
        if len(lines) >= _SNIFFED_LINES or n_characters >= _SNIFFED_CHARACTERS:
            return lines, False
        lines.append(line)
        n_characters += len(line)
    return lines, True


def title_rows(rows: Iterable[tuple[int, Sequence[object]]]) -> int:
    """Count the lines above what looks like the header, if those before it look like a title; else 0.

    Parameters
    ----------
    rows : iterable of (line, cells)
        The first rows of a file, the wrong header among them. A title fills one cell or half of the cells at most; the
        header fills all of its own, and every row after it is as wide.

    Examples
    --------
    >>> title_rows([(1, ["Admissions 2024", ""]), (3, ["age", "sex"]), (4, ["31", ""])])
    2
    >>> title_rows([(1, ["age", ""]), (2, ["31", ""])])
    0
    """
    seen = list(islice(rows, _SNIFFED_LINES))
    filled = [sum(cell not in ("", None) for cell in cells) for _, cells in seen]
    for at in range(1, len(seen) - 1):
        line, cells = seen[at]
        most_of_a_title = max(1, len(cells) // 2)
        is_header = len(cells) > 1 and filled[at] == len(cells) and max(filled[:at]) <= most_of_a_title
        if is_header and all(len(later) == len(cells) for _, later in seen[at + 1 :]):
            return line - 1
    return 0


def title_lines(text: Text) -> int:
    """Count the first lines that look like a title, whatever the delimiter is: one may fit the title alone."""
    lines, _ = _first_lines(text)
    for delimiter in DELIMITERS:
        n_lines = title_rows((record.first_line, record.cells) for record in split_records(lines, delimiter))
        if n_lines:
            return n_lines
    return 0


def with_title_hint(error: InputError, n_lines: int) -> InputError:
    """Add to what is wrong with the header of a file that its first lines may be a title, if there are such."""
    if not n_lines:
        return error
    lines = "line is a title" if n_lines == 1 else f"{n_lines:,} lines are a title"
    hint = f"if the first {lines} above the header, skip {n_lines:,} rows; else {error.hint}"
    remedy = ("skip_rows", *error.remedy)
    return InputError(error.problem, path=error.path, line=error.line, column=error.column, hint=hint, remedy=remedy)


def fault_of(text: Text, delimiter: str, n_columns: int) -> InputError:
    """Find the first line that keeps a file from being a table."""
    for record in split_records(text.lines(), delimiter):
        if not record.is_closed:
            problem = "a quote that is opened here is never closed"
            return InputError(problem, path=text.name, line=record.first_line)
        if len(record.cells) != n_columns:
            problem = f"expected {_columns(n_columns)}, found {len(record.cells):,}"
            hint = "quote cells that hold the delimiter, or name the delimiter"
            fault = InputError(problem, path=text.name, line=record.first_line, hint=hint, remedy=("delimiter",))
            return with_title_hint(fault, title_lines(text))
    return InputError("cannot be read as delimited text", path=text.name)


def _columns(n_columns: int) -> str:
    return f"{n_columns:,} column" + ("s" if n_columns != 1 else "")


def line_of_record(text: Text, delimiter: str, position: int) -> int | None:
    """Physical line on which the record at a position (from 0, the header included) starts."""
    records = enumerate(split_records(text.lines(), delimiter))
    return next((record.first_line for number, record in records if number == position), None)


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
    n_before = 1 if header else 0

    def line_of(row: int) -> int | None:
        return line_of_record(text, layout.delimiter, row + n_before)

    cells = _parse_cells(text, layout)
    columns, kinds = {}, {}
    coder.line_of = line_of
    for position, name in enumerate(layout.names):
        codes, values = _codes_and_values(cells.column(position))
        columns[name], kinds[name] = coder.code_distinct(name, codes[:-1], values)
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


# Comma-, tab- and otherwise separated text, parsed block by block: the same cells as when parsed at once.
#
# A block ends at a line end. Should that stand inside quotes, the row of our own that is put after every block is
# swallowed, and the block is cut again where a record ends.


BLOCK_BYTES = 16 << 20


@dataclass(frozen=True, repr=False)
class DelimitedBlocks:
    """Data rows of a checked text, block by block, as often as asked."""

    text: Text
    layout: Layout
    bytes_at_once: int | None = None

    @property
    def _block_bytes(self) -> int:
        return BLOCK_BYTES if self.bytes_at_once is None else min(BLOCK_BYTES, max(self.bytes_at_once, 1))

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return self.layout.names

    def __call__(self, positions: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Cells of some columns, coded block by block."""
        n_rows = 0
        for cells in self._parsed(positions):
            chosen = cells.slice(0, cells.num_rows - 1)
            n_rows += chosen.num_rows
            if chosen.num_rows:
                yield [_whole(chosen.column(str(i))) for i in positions]
        if not n_rows:
            raise InputError(self.layout.without_rows, path=self.text.name)

    def _parsed(self, positions: Sequence[int]) -> Iterator[pa.Table]:
        rest = b""
        source = self.text.open()
        source.read(self.layout.skip_bytes)
        is_last = False
        n_bytes = self._block_bytes
        while not is_last:
            piece = source.read(n_bytes)
            is_last = len(piece) < n_bytes
            rest += piece
            cut = len(rest) if is_last else _after_last_line(rest)
            cells = self._rows(rest[:cut], positions)
            if cells is None and not is_last:
                cut = self._after_last_record(rest)
                cells = self._rows(rest[:cut], positions)
            if cells is None or len(rest) - cut > limits.MAX_LINE_BYTES:
                raise fault_of(self.text, self.layout.delimiter, len(self.names))
            rest = rest[cut:]
            yield cells

    def _rows(self, block: bytes, positions: Sequence[int]) -> pa.Table | None:
        content = block + self.layout.last_row
        return parse_rows(
            content, self.layout, block_bytes=len(content), has_quotes=self.text.has_quotes, columns=positions
        )

    def _after_last_record(self, block: bytes) -> int:
        """Place after the last record that is complete, found line by line."""
        lines = io.TextIOWrapper(io.BytesIO(block[: _after_last_line(block)]), encoding="utf-8", newline="")
        ends = [record.last_line for record in split_records(lines, self.layout.delimiter) if record.is_closed]
        n_lines = ends[-1] if ends else 0
        lines = io.TextIOWrapper(io.BytesIO(block), encoding="utf-8", newline="", errors="surrogateescape")
        return sum(len(line.encode(errors="surrogateescape")) for _, line in zip(range(n_lines), lines, strict=False))


def _after_last_line(block: bytes) -> int:
    """Place after the last line end, of which a carriage return at the very end may be only the first half."""
    return max(block.rfind(b"\n"), block.rfind(b"\r", 0, len(block) - 1)) + 1


def _whole(cells: pa.ChunkedArray) -> pa.Array:
    return cells.chunk(0) if cells.num_chunks == 1 else cells.unify_dictionaries().combine_chunks()
