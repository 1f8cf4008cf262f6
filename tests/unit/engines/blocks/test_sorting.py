"""Rows sorted on disk come as those sorted in memory."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato.engines.blocks.sorting import RowSorter
from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import Table
from sfumato.table.row_order import canonical_order

KINDS = {
    "zip": Kind.CATEGORICAL,
    "n": Kind.NUMERIC,
    "long": Kind.NUMERIC,
    "note": Kind.CATEGORICAL,
    "last": Kind.NUMERIC,
}


def people(n=5_000, seed=3, numbers="all"):
    rng = np.random.default_rng(seed)
    long = [None if i % 50 == 0 else f"{v:g}" for i, v in enumerate(rng.normal(size=n).round(2) * 100)]
    if numbers != "all":
        long[7] = numbers
    cells = {
        "zip": pa.array(rng.integers(90, 110, n)),
        "n": pa.array(rng.choice(["1", "10", "9", None], n).tolist(), pa.string()),
        "long": pa.array(long, pa.string()),
        "note": pa.array(rng.choice(["é", "z", "￿", "\U0001f600", ""], n).tolist()),
        "last": pa.array(rng.integers(0, 1000, n) / 8),
    }
    return Table.from_arrow(pa.table(cells), Schema.of([Column(name, kind=kind) for name, kind in KINDS.items()]))


def sorted_on_disk(table, format, opened, n_rows=700):
    """Sort a table whose columns in ``opened`` come as cells."""
    columns = {
        name: column.values.slice(0, 0) if name in opened else column.values for name, column in table.columns.items()
    }

    def blocks():
        for start in range(0, table.n_rows, n_rows):
            rows = slice(start, start + n_rows)
            yield {
                name: column.cells()[rows] if name in opened else column.codes[rows]
                for name, column in table.columns.items()
            }

    found = {name: [] for name in table.columns}
    for block in RowSorter(columns, KINDS, format, 10**9).sorted(blocks):
        assert list(block) == list(table.columns)
        for name, cells in block.items():
            own = cells if isinstance(cells, pa.Array) else table[name].values.take(pa.array(cells))
            found[name] += own.to_pylist()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("opened", [(), ("long",), ("zip", "long", "note", "last")])
@pytest.mark.parametrize("format", ["csv", "parquet"])
@pytest.mark.parametrize("numbers", ["all", "nan", "[1, 2]"])
def test_the_same_as_in_memory(format, opened, numbers):
    table = people(numbers=numbers)
    in_memory = table.take(canonical_order(table, format))

    found = sorted_on_disk(table, format, opened)

    for name in table.columns:
        expected = in_memory[name].cells()
        if format == "csv" and name in opened:
            expected = expected.cast(pa.string())
        assert found[name] == expected.to_pylist(), name


def test_a_failure_of_the_reader_is_told_as_it_is():
    table = people()

    def blocks():
        yield {name: column.codes for name, column in table.columns.items()}
        raise RuntimeError("the file is gone")

    columns = {name: column.values for name, column in table.columns.items()}
    with pytest.raises(RuntimeError, match="the file is gone"):
        list(RowSorter(columns, KINDS, "csv", 10**9).sorted(blocks))
