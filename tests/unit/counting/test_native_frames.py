"""Counts of a caller's own frame are those of the Arrow table with the same cells, missing values included."""

import datetime
import traceback
from collections import Counter

import duckdb
import narwhals.stable.v2 as nw
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.counting.cells import cell_table
from sfumato.counting.classes import class_size_counts, class_value_counts, equivalence_classes
from sfumato.counting.contingency import contingency
from sfumato.counting.engine import Engine
from sfumato.errors import ColumnNotFoundError, InputError, InvalidParameterError

CANARY = "canary-4711"


def real_ibis(cells):
    ibis = pytest.importorskip("ibis", reason="NOT TESTED with the real Ibis, which is not installed")
    return ibis.polars.connect({"people": pl.from_arrow(cells)}).table("people")


FRAMES = {
    "polars-lazy": lambda cells: pl.from_arrow(cells).lazy(),
    "polars": pl.from_arrow,
    "duckdb": lambda cells: duckdb.connect().from_arrow(cells),
    "pandas": lambda cells: cells.to_pandas(types_mapper=_nullable),
    "dataset": pyarrow.dataset.dataset,
    "narwhals": nw.from_native,
    "ibis": real_ibis,
}
VALUES = {
    "a": (pa.string(), st.sampled_from(["x", "X", "", " x", None])),
    "b": (pa.int64(), st.sampled_from([0, -3, 2**40, None])),
    "A b": (pa.float64(), st.sampled_from([0.5, 1.5, float("inf"), None])),
    "day": (pa.date32(), st.sampled_from([datetime.date(2024, 2, 29), datetime.date(1969, 1, 1), None])),
    "c$": (pa.bool_(), st.sampled_from([True, False, None])),
}


def _nullable(kind):
    import pandas as pd

    return pd.ArrowDtype(kind)


@st.composite
def tables(draw):
    names = draw(st.lists(st.sampled_from(list(VALUES)), min_size=2, max_size=4, unique=True))
    rows = draw(st.lists(st.tuples(*(VALUES[name][1] for name in names)), min_size=1, max_size=15))
    columns = [pa.array(cells, VALUES[name][0]) for name, cells in zip(names, zip(*rows, strict=True), strict=True)]
    return pa.table(columns, names=names)


@pytest.mark.slow
@pytest.mark.parametrize("frames", [[name for name in FRAMES if name != "ibis"], ["ibis"]], ids="/".join)
@given(cells=tables())
def test_all_counts_are_those_of_the_arrow_table(frames, cells):
    """Those of the Arrow table are counted once for all frames."""
    names = cells.column_names
    rows = Counter(zip(*cells.to_pydict().values(), strict=True))
    expected, crossed = cell_table(cells, names), contingency(cells, *names[:2]).tolist()
    sizes = equivalence_classes(cells, names).sizes.tolist()
    values = class_value_counts(cells, names[:-1], names[-1])
    for frame in (FRAMES[name](cells) for name in frames):
        found = cell_table(frame, names)
        counted = [found.values[i].take(pa.array(found.codes[:, i])).to_pylist() for i in range(len(names))]
        assert dict(zip(zip(*counted, strict=True), found.counts.tolist(), strict=True)) == rows
        assert found.codes.tolist() == expected.codes.tolist()
        assert [v.to_pylist() for v in found.values] == [v.to_pylist() for v in expected.values]
        assert contingency(frame, *names[:2]).tolist() == crossed
        assert equivalence_classes(frame, names).sizes.tolist() == sizes
        assert class_size_counts(frame, names) == Counter(sorted(rows.values()))
        found_values = class_value_counts(frame, names[:-1], names[-1])
        assert found_values.count.tolist() == values.count.tolist()
        assert found_values.value_code.tolist() == values.value_code.tolist()
        assert cell_table(frame, []).counts.tolist() == [cells.num_rows]


@pytest.mark.slow
def test_a_table_of_a_database_file_is_counted_under_the_limit_of_its_connection(tmp_path):
    """More distinct rows than the memory of the connection holds: DuckDB spills them."""
    with duckdb.connect(tmp_path / "a.duckdb", config={"memory_limit": "48MB", "threads": 1}) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS a, range % 7 AS b, range // 3 AS c FROM range(1_000_000)")

        assert class_size_counts(connection.table("t"), ["a", "b", "c"]) == {1: 1_000_000}
        assert cell_table(connection.table("t"), ["b"]).counts.sum() == 1_000_000


FAILING = {
    "polars": lambda: pl.LazyFrame({"a": ["1", CANARY]}).select(pl.col("a").cast(pl.Int64)),
    "polars-schema": lambda: pl.LazyFrame({CANARY: ["1"]}).select(pl.col("a")),
    "duckdb": lambda: duckdb.connect().sql(f"SELECT CAST('{CANARY}' AS INTEGER) AS a"),
}


@pytest.mark.parametrize("name", FAILING)
def test_an_engine_that_fails_shows_no_cell(name):
    with pytest.raises(InputError, match="cannot be counted") as caught:
        cell_table(FAILING[name](), ["a"])

    assert CANARY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("module", "error"),
    [
        ("pyspark.errors", "PySparkException"),
        ("py4j.protocol", "Py4JError"),
        ("ibis.common.exceptions", "IbisError"),
        ("narwhals.exceptions", "NarwhalsError"),
        ("polars.exceptions", "PolarsError"),
    ],
)
def test_errors_of_other_engines_are_known_by_their_base_class(module, error):
    """Each as its library defines it, raised where a query runs."""
    base = getattr(pytest.importorskip(module, reason=f"NOT TESTED with {module}, which is not installed"), error)

    class Failed(base):
        def __init__(self):
            Exception.__init__(self, CANARY)

    class Query:
        def collect(self):
            raise Failed

    with Engine(threads=1) as engine, pytest.raises(InputError, match=r"cannot be counted \(Failed\)") as caught:
        engine.collect(Query())
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_other_objects_and_columns_are_refused():
    with pytest.raises(InvalidParameterError, match="got an object of type dict"):
        cell_table({"a": [1]}, ["a"])
    with pytest.raises(ColumnNotFoundError, match="did you mean 'town'"):
        cell_table(pl.LazyFrame({"town": ["Ulm"]}), ["twon"])
    with pytest.raises(ColumnNotFoundError, match="did you mean 'town'"):
        cell_table(pyarrow.dataset.dataset(pa.table({"town": ["Ulm"]})), ["twon"])
