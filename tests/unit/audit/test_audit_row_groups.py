"""Row groups of released Parquet files: those that we write, and no others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from sfumato.audit.bytes.parquet import written_again
from sfumato.schema import Column, Schema
from sfumato.table.coding import Table
from sfumato.table.io.parquet import ROWS_OF_A_GROUP, write_parquet

N_ROWS, N_COLUMNS = 70_000, 20


@pytest.fixture(scope="module")
def cells() -> pa.Table:
    numbers = np.arange(N_ROWS) % 7
    texts = pa.array([f"v{i}" for i in range(7)]).take(pa.array(numbers))
    return pa.table({f"c{i}": texts if i % 2 else pa.array(numbers) for i in range(N_COLUMNS)})


def test_what_we_write_is_made_again(cells: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    with path.open("wb") as file:
        write_parquet(Table.from_arrow(cells, Schema.of([Column(n) for n in cells.column_names], ())), file)
    metadata = pyarrow.parquet.read_metadata(path)

    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [65_536, N_ROWS - 65_536]
    assert written_again(path, {})[0]


@pytest.mark.parametrize(
    ("rows", "is_ours"), [(ROWS_OF_A_GROUP, False), (65_536, True), (50_000, False), (16_384, False)]
)
def test_groups_of_other_sizes_are_not(cells: pa.Table, tmp_path: Path, rows: int, is_ours: bool) -> None:
    path = tmp_path / "out.parquet"
    with pyarrow.parquet.ParquetWriter(path, cells.schema, write_page_checksum=True, store_schema=False) as writer:
        writer.write_table(cells, rows)

    assert written_again(path, {})[0] is is_ours
