"""Released rows in their canonical order where they do not fit in memory: sorted by DuckDB, which spills.

Columns whose values are listed come as codes. They become ranks, as many side by side as fit in a whole number of 64
bits, which ascends as they do; columns of which only cells are known are sorted by their cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.blocks.database import spilling_connection
from sfumato.engines.memory_limit import cells_at_once
from sfumato.errors import InputError
from sfumato.schema import Kind
from sfumato.table.row_order import numbers_of_texts, stored_values, value_ranks

Block = Mapping[str, NDArray[np.int32] | pa.Array]
_LARGEST_KEY = 2**62
_ROWS_AT_ONCE = 1 << 17


class _NoNumbersError(Exception):
    """Cells of a column that was taken for numbers are none."""


@dataclass(frozen=True, eq=False)
class _Listed:
    """Columns side by side in one key: their ranks, how many each may have, and a code for each rank."""

    names: tuple[str, ...]
    ranks: tuple[NDArray[np.int64], ...]
    codes: tuple[NDArray[np.int32], ...]

    def packed(self, block: Block) -> pa.Array:
        key = np.zeros(len(block[self.names[0]]), dtype=np.int64)
        for name, ranks, codes in zip(self.names, self.ranks, self.codes, strict=True):
            key = key * len(codes) + ranks[np.asarray(block[name])]
        return pa.array(key)

    def unpacked(self, key: pa.Array) -> dict[str, NDArray[np.int32]]:
        rest, found = key.to_numpy(), {}
        for name, codes in zip(reversed(self.names), reversed(self.codes), strict=True):
            rest, rank = np.divmod(rest, len(codes))
            found[name] = codes[rank]
        return found


@dataclass(frozen=True, eq=False)
class _Open:
    """A column of which cells come; texts that are numbers are sorted by these first."""

    name: str
    type: pa.DataType
    kind: Kind


class RowSorter:
    """Sorts rows that come in blocks.

    Parameters
    ----------
    columns : mapping of str to Arrow array
        For each column its distinct values, or an array without values where the blocks bring the cells.
    kinds : mapping of str to Kind
        As the manifest states them.
    format : str
        Of the file that the rows are written to, by which they are compared.
    memory : int
        Bytes; what does not fit in the share of the database is spilled into a private folder.
    """

    def __init__(self, columns: Mapping[str, pa.Array], kinds: Mapping[str, Kind], format: str, memory: int) -> None:
        self._names, self._format, self._memory = list(columns), format, memory
        self._parts: list[_Listed | _Open] = []
        listed: list[tuple[str, NDArray[np.int64], NDArray[np.int32]]] = []
        span = 1
        for name, values in columns.items():
            if not len(values):
                self._close(listed)
                span = 1
                self._parts.append(_Open(name, values.type, kinds[name]))
                continue
            ranks = value_ranks(stored_values(values, format), kinds[name])
            n_ranks = int(ranks.max()) + 1
            if span * n_ranks > _LARGEST_KEY:
                self._close(listed)
                span = 1
            codes = np.zeros(n_ranks, dtype=np.int32)
            codes[ranks] = np.arange(len(values))
            listed.append((name, ranks, codes))
            span *= n_ranks
        self._close(listed)

    def _close(self, listed: list[tuple[str, NDArray[np.int64], NDArray[np.int32]]]) -> None:
        if listed:
            names, ranks, codes = zip(*listed, strict=True)
            self._parts.append(_Listed(tuple(names), tuple(ranks), tuple(codes)))
            listed.clear()

    def sorted(self, blocks: Callable[[], Iterator[Block]]) -> Iterator[Block]:
        """Give the rows of the blocks in canonical order, in blocks; ``blocks`` may be asked for again.

        Raises
        ------
        InputError
            If there is not enough memory and disk to sort them.
        """
        by_number = {part.name for part in self._parts if isinstance(part, _Open) and part.kind is Kind.NUMERIC}
        while True:
            try:
                yield from self._sorted(blocks(), by_number)
            except _NoNumbersError as exc:  # said of the first blocks, before any row is given
                by_number.remove(str(exc))
            else:
                return

    def _sorted(self, blocks: Iterator[Block], by_number: set[str]) -> Iterator[Block]:
        import duckdb

        failures: list[BaseException] = []
        fields = [field for i, part in enumerate(self._parts) for field in self._fields(i, part, by_number)]
        reader = pa.RecordBatchReader.from_batches(pa.schema(fields), self._batches(blocks, by_number, failures))
        by = ", ".join(f"{field.name} NULLS FIRST" for field in fields)
        try:
            with spilling_connection(self._memory) as connection:
                found = connection.from_arrow(reader).order(by).to_arrow_reader(self._rows_at_once())
                for batch in found:
                    yield self._block(batch)
        except (duckdb.Error, pa.ArrowException):
            if failures:
                raise failures[0] from None
            problem = "the released rows cannot be sorted in the given memory"
            hint = "give more memory, or free disk space for spilling"
            raise InputError(problem, hint=hint, remedy=("memory",)) from None

    def _rows_at_once(self) -> int:
        return max(1, min(_ROWS_AT_ONCE, cells_at_once(self._memory) // len(self._names)))

    def _fields(self, i: int, part: _Listed | _Open, by_number: set[str]) -> Sequence[pa.Field]:
        if isinstance(part, _Listed):
            return [pa.field(f"k{i}", pa.int64())]
        number = [pa.field(f"n{i}", pa.float64())] if part.name in by_number and self._is_text(part) else []
        return [*number, pa.field(f"k{i}", stored_type(part.type, self._format))]

    def _is_text(self, part: _Open) -> bool:
        return bool(pa.types.is_string(stored_type(part.type, self._format)))

    def _batches(
        self, blocks: Iterator[Block], by_number: set[str], failures: list[BaseException]
    ) -> Iterator[pa.RecordBatch]:
        """Give what rows are sorted by, in batches; an error is kept, for the engine hides it."""
        try:
            for block in blocks:
                arrays: list[pa.Array] = []
                names: list[str] = []
                for i, part in enumerate(self._parts):
                    fields = self._fields(i, part, by_number)
                    names += [field.name for field in fields]
                    if isinstance(part, _Listed):
                        arrays.append(part.packed(block))
                        continue
                    cells = stored_values(block[part.name], self._format)
                    if len(fields) > 1:
                        numbers = numbers_of_texts(cells, part.kind)
                        if numbers is None:
                            raise _NoNumbersError(part.name)
                        arrays.append(numbers)
                    arrays.append(cells)
                yield pa.record_batch(arrays, names=names)
        except BaseException as exc:  # an interruption too
            failures.append(exc)
            raise

    def _block(self, batch: pa.RecordBatch) -> Block:
        found: dict[str, NDArray[np.int32] | pa.Array] = {}
        for i, part in enumerate(self._parts):
            own = batch.column(f"k{i}")
            if isinstance(part, _Listed):
                found |= part.unpacked(own)
            else:
                found[part.name] = own.cast(stored_type(part.type, self._format))
        return {name: found[name] for name in self._names}


def stored_type(data_type: pa.DataType, format: str) -> pa.DataType:
    """Type that cells have in a file of a format."""
    return stored_values(pa.array([], data_type), format).type
