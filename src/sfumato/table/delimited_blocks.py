"""Comma-, tab- and otherwise separated text, parsed block by block: the same cells as when parsed at once.

A block ends at a line end. Should that stand inside quotes, the row of our own that is put after every block is
swallowed, and the block is cut again where a record ends.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sfumato.errors import InputError
from sfumato.table import text as limits
from sfumato.table.delimited import Layout, parse_rows
from sfumato.table.records import fault_of, split_records
from sfumato.table.text import Text

BLOCK_BYTES = 16 << 20


@dataclass(frozen=True, repr=False)
class DelimitedBlocks:
    """Data rows of a checked text, block by block, as often as asked."""

    text: Text
    layout: Layout

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
        while not is_last:
            piece = source.read(BLOCK_BYTES)
            is_last = len(piece) < BLOCK_BYTES
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
