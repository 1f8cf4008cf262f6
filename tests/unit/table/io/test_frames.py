"""Frames of other libraries are taken as they are, and their errors never show a cell."""

import datetime
import traceback

import duckdb
import narwhals.stable.v2 as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

from sfumato.errors import InputError, InvalidParameterError
from sfumato.table.io.read import ReadOptions, read_table

CANARY = "canary-4711"
CELLS = pa.table(
    {
        "age": pa.array([31, None, 40, 31], pa.int32()),
        "town": pa.array(["Ulm", " Ulm", None, "?"]),
        "day": pa.array([datetime.date(2024, 1, 2), None, datetime.date(2024, 2, 29), None]),
        "dose": pa.array([0.5, float("nan"), -0.0, None]),
        "ill": pa.array([True, False, None, True]),
    }
)


class Spark:
    """Stands for a PySpark frame: its rows come by ``toArrow`` only."""

    def toArrow(self):  # noqa: N802
        return CELLS


Spark.__module__ = "pyspark.sql.dataframe"


class Ibis:
    """Stands for an Ibis table, with the methods of one that are used."""

    def __init__(self, cells):
        self._cells = cells
        self.columns = tuple(cells.column_names)

    def select(self, *names):
        return Ibis(self._cells.select(list(names)))

    def to_pyarrow_batches(self, *, chunk_size):
        return pa.RecordBatchReader.from_batches(self._cells.schema, self._cells.to_batches(chunk_size))

    def __arrow_c_stream__(self, requested_schema=None):
        return self._cells.__arrow_c_stream__(requested_schema)


Ibis.__module__ = "ibis.expr.types.relations"


def real_ibis():
    ibis = pytest.importorskip("ibis", reason="NOT TESTED with the real Ibis, which is not installed")
    return ibis.polars.connect({"people": pl.from_arrow(CELLS)}).table("people")


FRAMES = {
    "duckdb": lambda: duckdb.connect().from_arrow(CELLS),
    "polars-lazy": lambda: pl.from_arrow(CELLS).lazy(),
    "dataset": lambda: pyarrow.dataset.dataset(CELLS),
    "narwhals": lambda: nw.from_native(pl.from_arrow(CELLS)),
    "narwhals-lazy": lambda: nw.from_native(duckdb.connect().from_arrow(CELLS)),
    "narwhals-pandas": lambda: nw.from_native(pd.DataFrame({n: CELLS[n].to_pandas() for n in CELLS.column_names})),
    "pyspark": Spark,
    "ibis": lambda: Ibis(CELLS),
    "real-ibis": real_ibis,
}


@pytest.mark.parametrize("name", FRAMES)
def test_every_frame_gives_the_table_that_arrow_gives(name):
    expected, found = read_table(CELLS), read_table(FRAMES[name]())

    if name == "narwhals-pandas":  # pandas has no whole numbers with missing ones, and no truth values
        columns = ["town", "dose"]
    else:
        columns = CELLS.column_names
        assert found.source.sha256 == expected.source.sha256
    for column in columns:
        assert found[column].cells().to_pylist() == expected[column].cells().to_pylist()
    assert found.schema.names() == expected.schema.names()


@pytest.mark.parametrize(
    ("name", "library"),
    [("duckdb", "<duckdb>"), ("narwhals-lazy", "<duckdb>"), ("narwhals", "<polars>"), ("pyspark", "<pyspark>")],
)
def test_the_source_is_named_by_its_library(name, library):
    assert read_table(FRAMES[name]()).source.name == library


def test_names_of_a_relation_are_those_of_its_columns():
    """Also where DuckDB takes two for one."""
    connection = duckdb.connect()

    assert read_table(connection.sql("SELECT 1 AS age, 2 AS Age")).schema.names() == ("age", "Age")
    with pytest.raises(InputError, match="columns 1 and 2 have the same name"):
        read_table(connection.sql("SELECT 1 AS age, 2 AS age"))


class Failing(Spark):
    """A frame whose library quotes a cell when it fails."""

    def toArrow(self):  # noqa: N802
        raise RuntimeError(CANARY)


Failing.__module__ = "pyspark.sql.dataframe"


@pytest.mark.parametrize(
    "make",
    [
        lambda: duckdb.connect().sql(f"SELECT CAST('{CANARY}' AS INTEGER) AS a"),
        lambda: pl.LazyFrame({"a": [CANARY]}).select(pl.col("a").cast(pl.Int64)),
        Failing,
    ],
    ids=["duckdb", "polars", "pyspark"],
)
def test_what_fails_shows_no_cell(make):
    with pytest.raises(InputError) as caught:
        read_table(make())

    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_other_objects_are_refused_by_their_type():
    with pytest.raises(InvalidParameterError, match=r"DuckDB relation.*got an object of type dict"):
        read_table({"a": [1]})


def test_truth_values_among_numbers_are_no_numbers():
    """Arrow takes them for 1 and 0 after a number with decimals; then one cell would change the cells of others."""
    for cells in ([1.0, True, False], [True, False, 1.0]):
        frame = pd.DataFrame({"flag": pd.Series(cells, dtype=object)})
        with pytest.raises(InputError, match="mixes"):
            read_table(frame)
        mixed = read_table(frame, options=ReadOptions(mixed_as_text=True))
        assert sorted(mixed["flag"].values.to_pylist()) == ["1", "false", "true"]
