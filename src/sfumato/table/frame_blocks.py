"""Tables of other libraries, read block by block and as often as asked.

DuckDB relations, lazy polars frames, Ibis tables and pyarrow datasets are run anew for every pass, each time only for
the columns that are needed, and never held. What is in memory already is cut into blocks where it stands.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from sfumato.errors import InputError, InvalidParameterError
from sfumato.table import parquet
from sfumato.table.cells import ColumnCoder
from sfumato.table.frames import (
    explained,
    frame_columns,
    is_dataset,
    is_lazy_polars,
    is_pandas,
    is_relation,
    library_of,
    not_a_table,
    source_name,
)

Batches: TypeAlias = Generator[pa.RecordBatch]
Reading: TypeAlias = Callable[[Sequence[int]], Batches]
"""Gives the columns at these positions, all rows of them, in batches of any size."""

_PROBLEM = "its rows cannot be read in blocks"
_HINT = "run the query by itself to see why, and leave no other result of its connection open"


@dataclass(frozen=True, repr=False)
class FrameBlocks:
    """Rows of a frame, block by block, as often as asked.

    Examples
    --------
    >>> from sfumato.table.cells import CellRules
    >>> blocks = FrameBlocks.of(pa.table({"age": [31, 40], "sex": ["f", "m"]}), ColumnCoder(CellRules()))
    >>> blocks.names, [[cells.to_pylist() for cells in block] for block in blocks([1])]
    (['age', 'sex'], [[['f', 'm']]])
    """

    names: list[str]
    place: str
    _read: Reading

    @classmethod
    def of(cls, frame: Any, coder: ColumnCoder) -> FrameBlocks:
        """Look at the columns of a frame.

        Raises
        ------
        InputError
            If the library cannot run it; never shows a value.
        InvalidParameterError
            If the object is no frame, or one that gives its rows only once.
        """
        place = source_name(frame)
        if isinstance(frame, np.ndarray) or is_pandas(frame):
            names, arrays = frame_columns(frame, coder)
            frame = pa.table(list(arrays), names=names)
        with explained(place, _PROBLEM, _HINT):
            names, read = _opened(frame)
        if not names:
            problem = "has no columns"
            raise InputError(problem, path=place)
        return cls(names, place, read)

    def __call__(self, positions: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Cells of some columns, block by block."""
        n_rows = 0
        with closing(self._read(positions or [0])) as batches:
            while True:
                with explained(self.place, _PROBLEM, _HINT):
                    batch = next(batches, None)
                if batch is None:
                    break
                n_rows += batch.num_rows
                for start in range(0, batch.num_rows, parquet.BLOCK_ROWS):
                    block = batch.slice(start, parquet.BLOCK_ROWS)
                    yield block.columns[: len(positions)]
        if not n_rows:
            problem = "has no rows"
            raise InputError(problem, path=self.place)


def _opened(frame: Any) -> tuple[list[str], Reading]:
    """Names of a frame's columns, and how its rows are read."""
    _refuse_unsteady(frame)
    if is_relation(frame):
        return list(frame.columns), _rows_of_relation(frame)
    if is_lazy_polars(frame):
        return frame.collect_schema().names(), _rows_of_polars(frame)
    if hasattr(frame, "to_pyarrow_batches"):
        return list(frame.columns), _rows_of_ibis(frame)
    if is_dataset(frame):
        return list(frame.schema.names), _rows_of_dataset(frame)
    if not hasattr(frame, "__arrow_c_stream__"):
        raise not_a_table(frame)
    with pa.RecordBatchReader.from_stream(frame) as reader:
        return list(reader.schema.names), _rows_of_stream(frame)


def _refuse_unsteady(frame: Any) -> None:
    problem = hint = ""
    if isinstance(frame, pa.RecordBatchReader):
        problem, hint = "got a reader", "write its rows to a Parquet file first"
    elif library_of(frame) == "pyspark":
        problem, hint = "got a frame of Spark", "release it on its cluster (sfumato.cluster), or write it to Parquet"
    if problem:
        allowed = "something that gives its rows several times in one order"
        raise InvalidParameterError("source read in blocks", problem, allowed=allowed, hint=hint)


def _rows_of_relation(relation: Any) -> Reading:
    def rows(positions: Sequence[int]) -> Batches:
        chosen = relation.project(", ".join(f"#{i + 1}" for i in positions))
        read = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_record_batch  # the second: DuckDB 1
        with read(parquet.BLOCK_ROWS) as reader:
            yield from reader

    return rows


def _rows_of_polars(frame: Any) -> Reading:
    nth = sys.modules["polars"].nth

    def rows(positions: Sequence[int]) -> Batches:
        chosen = frame.select([nth(i) for i in positions])
        for batch in chosen.collect_batches(chunk_size=parquet.BLOCK_ROWS, maintain_order=True):
            yield from pa.table(batch).to_batches()

    return rows


def _rows_of_ibis(table: Any) -> Reading:
    def rows(positions: Sequence[int]) -> Batches:
        chosen = table.select(*(table.columns[i] for i in positions))
        with chosen.to_pyarrow_batches(chunk_size=parquet.BLOCK_ROWS) as reader:
            yield from reader

    return rows


def _rows_of_dataset(dataset: Any) -> Reading:
    from pyarrow import dataset as datasets

    of_parquet = getattr(getattr(dataset, "format", None), "default_extname", "") == "parquet"
    options = datasets.ParquetFragmentScanOptions(pre_buffer=False)  # else all that was read of a file stays in memory

    def rows(positions: Sequence[int]) -> Batches:
        wanted = {f"c{j}": datasets.field(dataset.schema.names[i]) for j, i in enumerate(positions)}
        yield from dataset.to_batches(
            columns=wanted,
            batch_size=parquet.BLOCK_ROWS,
            batch_readahead=1,
            fragment_readahead=1,
            fragment_scan_options=options if of_parquet else None,
        )

    return rows


def _rows_of_stream(frame: Any) -> Reading:
    def rows(positions: Sequence[int]) -> Batches:
        with pa.RecordBatchReader.from_stream(frame) as reader:
            for batch in reader:
                yield batch.select(list(positions))

    return rows
