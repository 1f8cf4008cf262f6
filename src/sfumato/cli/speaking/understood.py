"""What ``sfumato init`` understood: the columns with their first cells on a terminal, and what it could not read.

Cells are shown to the holder only: on a terminal, or where somebody asks for them. A log gets names, counts and lines.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from sfumato.errors import on_one_line

if TYPE_CHECKING:
    from sfumato.project.describe import Described
    from sfumato.table.io.read import ReadOptions

_ROWS_SHOWN = 5
_COLUMNS_SHOWN = 60
_WIDTH, _CELL_WIDTH = 28, 19
_MISSING = "·"


def is_shown(wanted: bool | None) -> bool:
    """Whether cells are shown: as asked for, or else on a terminal only."""
    return sys.stderr.isatty() if wanted is None else wanted


def show_first_rows(described: Described) -> None:
    """Show every column with its role, its kind and the first cells as they were read, a line each."""
    plain = described.table.coded_part
    listed = [guess.column for guess in described.guesses if guess.column.name in plain.schema]
    n_shown = min(_ROWS_SHOWN, plain.n_rows)
    lines = [["column", "role", "kind", "read as", *(f"row {i}" for i in range(1, n_shown + 1))]]
    for column in listed[:_COLUMNS_SHOWN]:
        coded = plain[column.name]
        cells = coded.values.take(coded.codes[:n_shown]).to_pylist()
        shown = [_cut(_MISSING if cell is None else str(cell), _CELL_WIDTH) for cell in cells]
        read_as = column.reading.format + (" ?" if column.reading.doubt else "") if column.reading is not None else ""
        lines.append([_cut(column.name, _WIDTH), str(column.role), str(column.kind), _cut(read_as, _WIDTH), *shown])
    widths = [max(map(len, parts)) for parts in zip(*lines, strict=True)]
    for line in lines:
        click.echo("  ".join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip(), err=True)
    if len(listed) > _COLUMNS_SHOWN:
        click.echo(f"… and {len(listed) - _COLUMNS_SHOWN:,} more columns", err=True)


def _cut(text: str, width: int) -> str:
    """Shorten a text to a width; what would move the cursor is escaped."""
    line = on_one_line(text)
    return line if len(line) <= width else line[: width - 1] + "…"


def show_not_understood(described: Described, data: str, options: ReadOptions) -> None:
    """Say which columns stay text although most of their rows are dates or numbers, and where the first other is."""
    from sfumato.table.io.read import line_of_data_row
    from sfumato.table.reading.unread import unread_columns

    plain = described.table.coded_part
    for one in unread_columns(plain):
        line = None if plain.n_incomplete_dropped else line_of_data_row(data, options, one.first_row)
        remedy = ' (--missing TEXT if a text means "missing")'
        click.echo(on_one_line(f"note: {one.in_words(line)}{remedy}"), err=True)
