"""Parse and write hierarchies in ARX's format: text without header, one line a value, labels separated by ``;``.

::

    nurse;health;*
    doctor;health;*
    cook;kitchen;*

Blanks around a label are dropped, empty lines are skipped, and a label that holds the delimiter, a quote or a line end
stands in double quotes. A missing value may be listed like any other, as an empty first cell or another token.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from sfumato.atomic import write_atomically
from sfumato.errors import InputError, InvalidParameterError
from sfumato.mechanisms.hierarchies.hierarchy import Fault, Hierarchy, faults_of
from sfumato.table.io.bytes import open_stored
from sfumato.table.io.csv import DELIMITERS, split_records
from sfumato.table.io.text import check_text

Rows = list[list[str]]

_MAX_FAULTS = 20
_SAVE_AS_UTF8 = "save it as UTF-8"


def read_hierarchy(path: str | os.PathLike[str], *, delimiter: str = ";", encoding: str | None = None) -> Hierarchy:
    """Read a hierarchy from a file (``-`` is standard input).

    Parameters
    ----------
    delimiter : {";", ",", tab, "|"}
    encoding : str or None
        ``None`` takes what a byte order mark says, else UTF-8.

    Raises
    ------
    InputError
        If the file cannot be read or is no hierarchy. The message gives the line and the fix, never a value.
    """
    name, rows, lines = _read_rows(path, delimiter, encoding)
    for fault in faults_of(rows):
        raise _as_error(fault, name, lines)
    return Hierarchy.from_rows(rows)


def faults_of_file(path: str | os.PathLike[str]) -> list[InputError]:
    """Find all that is wrong with the rows of a hierarchy file, or the first twenty things, with their lines."""
    name, rows, lines = _read_rows(path, ";", None)
    return [_as_error(fault, name, lines) for fault in islice(faults_of(rows), _MAX_FAULTS)]


def write_hierarchy(hierarchy: Hierarchy, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a hierarchy in ARX's format, whole or not at all; a file that exists is replaced only with ``force``."""
    write_atomically(Path(path), hierarchy_text(hierarchy).encode(), force=force)


def hierarchy_text(hierarchy: Hierarchy) -> str:
    r"""Write a hierarchy as the text of a file.

    Examples
    --------
    >>> hierarchy_text(Hierarchy.from_rows([("a;b", "x", "*"), ("c", "x", "*")]))
    '"a;b";x;*\nc;x;*\n'
    """
    return "".join(";".join(map(_quoted, row)) + "\n" for row in hierarchy.rows())


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if any(special in cell for special in ';"\r\n') else cell


def _read_rows(path: str | os.PathLike[str], delimiter: str, encoding: str | None) -> tuple[str, Rows, list[int]]:
    """Name of the file, and the trimmed cells and the line of each record that is not blank."""
    if delimiter not in DELIMITERS:
        problem = f"got {len(delimiter)} characters" if len(delimiter) != 1 else f"got {delimiter!r}"
        raise InvalidParameterError("delimiter", problem, allowed="a semicolon, comma, tab or bar")
    rows, lines = [], []
    with open_stored(path) as stored:
        text = check_text(stored, encoding, hint=_SAVE_AS_UTF8, remedy=("hierarchy_encoding",))
        for record in split_records(text.lines(), delimiter):
            if not record.is_closed:
                problem = "a quote that is opened here is never closed"
                hint = 'write a quote inside a label as ""'
                raise InputError(problem, path=text.name, line=record.first_line, hint=hint)
            cells = [cell.strip() for cell in record.cells]
            if any(cells):
                rows.append(cells)
                lines.append(record.first_line)
        stored.ensure_unchanged()
    return text.name, rows, lines


def _as_error(fault: Fault, name: str, lines: Sequence[int]) -> InputError:
    line = lines[fault.rows[-1]] if fault.rows else None
    return InputError(fault.in_words("line", lines), path=name, line=line, hint=fault.hint)
