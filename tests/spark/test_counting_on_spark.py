"""Counts on a Spark cluster are those of DuckDB, bit for bit: of Parquet files, of folders and of users' frames."""

import datetime
import random
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.counting.cells import cell_table
from sfumato.counting.classes import class_size_counts, class_value_counts, equivalence_classes
from sfumato.counting.contingency import contingencies, contingency
from sfumato.counting.spark import SparkEngine
from sfumato.errors import ClusterError, ColumnNotFoundError, InputError, InvalidParameterError

NAN = float("nan")
CANARY = "canary-4711"
MOMENT = datetime.datetime(2024, 2, 29, 23, 59, 59, 999999)
ODD_TEXTS = ["", " ", "a,b", 'quote"', "back\\slash", "tab\tnew\nline", "é", "e\u0301", "😀", "NULL", "\x00", "ß", "SS"]


def values_of_every_type():
    """Name, type and some values, the missing one among them."""
    utc = MOMENT.replace(tzinfo=datetime.UTC)
    return {
        "short": (pa.int8(), [-128, 0, 127, None]),
        "int": (pa.int32(), [-(2**31), 0, 2**31 - 1, None]),
        "long": (pa.int64(), [-(2**63), 0, 2**63 - 1, None]),
        "double": (pa.float64(), [NAN, -0.0, 0.0, float("inf"), -float("inf"), 5e-324, 1.5, None]),
        "float": (pa.float32(), [NAN, -0.0, 0.0, 1.5, None]),
        "truth": (pa.bool_(), [True, False, None]),
        "day": (pa.date32(), [datetime.date(1, 1, 1), datetime.date(1582, 10, 10), datetime.date(2024, 2, 29), None]),
        "moment": (pa.timestamp("us"), [MOMENT, MOMENT.replace(year=1904), MOMENT.replace(microsecond=0), None]),
        "moment in UTC": (pa.timestamp("us", "UTC"), [utc, utc.replace(year=1904), None]),
        "decimal": (pa.decimal128(20, 2), [Decimal("1.50"), Decimal("-2.25"), Decimal("9" * 18 + ".99"), None]),
        "text": (pa.string(), [*ODD_TEXTS, None]),
        "a.b `c`": (pa.string(), ["x", "y", None]),
    }


def random_rows(seed, n_rows=400):
    """Make rows where every value of every type occurs, few combinations only once."""
    chooser = random.Random(seed)
    return pa.table(
        {
            name: pa.array([*values, *(chooser.choice(values) for _ in range(n_rows - len(values)))], type=kind)
            for name, (kind, values) in values_of_every_type().items()
        }
    )


@pytest.fixture
def engine(spark):
    return SparkEngine(spark)


@pytest.fixture(params=["file", "folder", "frame"])
def stored(request, spark, tmp_path):
    """Give a function that puts rows where the cluster finds them; one that DuckDB counts is beside it."""

    def store(rows):
        path = tmp_path / "rows [1]{a}*?.parquet"
        pq.write_table(rows, path, row_group_size=50)
        if request.param == "file":
            return path, path
        folder = tmp_path / "folder"
        folder.mkdir()
        half = rows.num_rows // 2
        pq.write_table(rows.slice(half), folder / "part-2.parquet")
        pq.write_table(rows.slice(0, half), folder / "part-1.parquet")
        (folder / "_SUCCESS").write_bytes(b"")
        if request.param == "folder":
            return path, folder
        return path, spark.read.parquet(str(folder)).repartition(2)

    return store


def assert_same_cells(found, expected):
    assert found.columns == expected.columns
    assert found.codes.dtype == expected.codes.dtype
    assert found.codes.tobytes() == expected.codes.tobytes()
    assert found.counts.dtype == expected.counts.dtype
    assert found.counts.tobytes() == expected.counts.tobytes()
    for ours, theirs in zip(found.values, map(in_utc, expected.values), strict=True):
        assert ours.type == theirs.type
        assert repr(ours.to_pylist()) == repr(theirs.to_pylist())  # not-a-number is not equal to itself


def in_utc(values):
    """Name the zone of instants as Spark does; DuckDB names that of the machine."""
    has_zone = pa.types.is_timestamp(values.type) and values.type.tz is not None
    return values.cast(pa.timestamp(values.type.unit, "UTC")) if has_zone else values


def key(value):
    """Tell values apart as counting does: zero has no sign, not-a-number equals itself."""
    if isinstance(value, float):
        return "not a number" if value != value else value + 0.0
    return value


def test_all_types_are_counted_as_by_duckdb_and_by_hand(engine, stored):
    rows = random_rows(seed=7)
    small, large = stored(rows)
    names = rows.column_names

    assert engine.n_rows(large) == rows.num_rows
    for columns in (["double", "float"], ["text", "truth"], ["day", "moment", "moment in UTC"], names):
        found = cell_table(large, columns, engine)
        assert_same_cells(found, cell_table(small, columns))
        by_hand = Counter(zip(*([key(v) for v in rows[name].to_pylist()] for name in columns), strict=True))
        assert sorted(found.counts.tolist()) == sorted(by_hand.values())
        assert found.n_cells == len(by_hand)


def test_contingencies_and_classes_are_those_of_duckdb(engine, stored):
    rows = random_rows(seed=8, n_rows=150)
    small, large = stored(rows)

    dense = contingencies(large, ["text", "decimal"], by="truth", engine=engine)
    for name, counted in contingencies(small, ["text", "decimal"], by="truth").items():
        assert counted.dtype == dense[name].dtype
        assert dense[name].tolist() == counted.tolist()
    pair = ["truth", "short"]
    assert equivalence_classes(large, pair, engine).sizes.tolist() == equivalence_classes(small, pair).sizes.tolist()
    assert class_size_counts(large, pair, engine) == class_size_counts(small, pair)
    found, expected = class_value_counts(large, pair, "text", engine), class_value_counts(small, pair, "text")
    for name in ("class_index", "value_code", "count"):
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()
    assert (found.n_classes, found.n_values) == (expected.n_classes, expected.n_values)


def test_no_columns_make_one_cell_of_all_rows(engine, stored):
    _, large = stored(random_rows(seed=9, n_rows=20))

    assert cell_table(large, [], engine).counts.tolist() == [20]
    assert class_size_counts(large, [], engine) == {20: 1}


def test_a_table_without_rows_has_no_cells(engine, stored):
    small, large = stored(random_rows(seed=9).slice(0, 0))

    assert_same_cells(cell_table(large, ["text", "double"], engine), cell_table(small, ["text", "double"]))
    assert engine.n_rows(large) == 0
    assert class_size_counts(large, ["text"], engine) == {}
    assert contingency(large, "text", "truth", engine).shape == (0, 0)


def test_values_by_hand(engine, spark):
    """No second engine to agree with: the answer is written here."""
    rows = pa.table({"a": [1.0, NAN, None, NAN, -0.0, 0.0], "b": ["x", None, None, None, "x", "x"]})
    cells = cell_table(spark.createDataFrame(rows), ["a", "b"], engine)

    assert [values.to_pylist() for values in cells.values][1] == ["x", None]
    assert repr(cells.values[0].to_pylist()) == "[0.0, 1.0, nan, None]"
    assert cells.codes.tolist() == [[0, 0], [1, 0], [2, 1], [3, 1]]
    assert cells.counts.tolist() == [2, 1, 2, 1]
    assert cells.codes.dtype == np.int32


def test_names_that_spark_cannot_tell_apart_are_counted_by_place(engine, spark):
    """As a user's frame may have them after a join."""
    twice = spark.createDataFrame(pa.table({"x": [1, 1, 2], "y": [3, 4, 4]})).toDF("Age", "age")

    assert cell_table(twice, ["age"], engine).counts.tolist() == [1, 2]
    assert cell_table(twice, ["Age"], engine).counts.tolist() == [2, 1]
    frame = engine.frame(twice, ["age"])
    assert engine.collect(frame).column("age").to_pylist() == [3, 4, 4]
    assert engine.collect(engine.frame(twice)).column_names == ["Age", "age"]


def test_what_cannot_be_counted_is_refused_in_words(engine, spark, tmp_path):
    rows = pa.table({"a": [1], "b": [CANARY]})
    pq.write_table(rows, tmp_path / "rows.parquet")
    (tmp_path / "broken.parquet").write_text(CANARY)

    with pytest.raises(ColumnNotFoundError):
        cell_table(tmp_path / "rows.parquet", ["c"], engine)
    with pytest.raises(InputError, match="does not exist"):
        engine.n_rows(tmp_path / "none.parquet")
    with pytest.raises(InputError, match="Parquet"):
        engine.n_rows(tmp_path / "broken.parquet")
    pq.write_table(pa.table({"a": pa.array([1], pa.timestamp("ns"))}), tmp_path / "fine.parquet")
    with pytest.raises(InputError, match="a type that Spark does not know"):
        engine.n_rows(tmp_path / "fine.parquet")
    with pytest.raises(InvalidParameterError, match="leave the engine out"):
        cell_table(rows, ["a"], engine)
    wrong = spark.createDataFrame(rows).selectExpr("a", "raise_error(b) AS b")
    with pytest.raises(ClusterError, match="USER_RAISED_EXCEPTION") as caught:
        cell_table(wrong, ["b"], engine)
    assert CANARY not in str(caught.value)


def test_a_file_that_is_gone_when_the_cluster_reads_it_is_told(engine, spark, tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    opened = spark.read.parquet(str(path))
    path.unlink()

    with pytest.raises(InputError, match="does not find a file"):
        cell_table(opened, ["a"], engine)
