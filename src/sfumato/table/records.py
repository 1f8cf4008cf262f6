"""Delimited text cut into records in plain Python: slow, exact about lines, used for headers and to say what is wrong.

The rules are those of the fast parser: a field is quoted when its first character is ``"``; ``""`` inside is one quote;
what follows the closing quote belongs to the field; a quote inside an unquoted field is text; empty lines are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from sfumato.errors import InputError
from sfumato.table import text as limits
from sfumato.table.text import Text

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
