"""A frame of Spark is taken as it is: read into memory, or released on its cluster."""

import traceback

import pyarrow as pa
import pyarrow.parquet
import pytest

import sfumato
from sfumato.engines.blocks.rows import open_large
from sfumato.errors import InputError, InvalidParameterError
from sfumato.table.io.read import read_table

CANARY = "canary-4711"
CELLS = pa.table(
    {
        "age": [31, None, 40, 31, 25],
        "town": ["Ulm", " Ulm", None, "?", "a,b"],
        "dose": [0.5, -0.0, None, 1e300, 2.0],
    }
)


def test_a_frame_of_spark_gives_the_table_that_arrow_gives(spark):
    frame = spark.createDataFrame(CELLS).coalesce(1)
    expected, found = read_table(CELLS), read_table(frame)

    assert found.schema == expected.schema
    assert found.source.name == "<pyspark>"
    assert found.source.sha256 == expected.source.sha256


def test_what_fails_on_the_cluster_shows_no_cell(spark, spark_logs, capfd):
    frame = spark.createDataFrame(pa.table({"a": ["1", CANARY]})).selectExpr("CAST(a AS INT) AS n")
    with pytest.raises(InputError) as caught:
        read_table(frame)

    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert capfd.readouterr() == ("", "")
    assert not spark_logs


def test_one_machine_does_not_read_it_in_blocks(spark):
    """Spark gives its rows in no fixed order, and in blocks only with Python on every worker."""
    with pytest.raises(InvalidParameterError, match="got a frame of Spark"):
        open_large(spark.createDataFrame(CELLS), memory=10**9)


def test_release_large_leaves_a_frame_on_its_cluster(spark, tmp_path):
    """The rows that one machine releases of the same table, written by the cluster."""
    people = pa.table({"sex": ["f", "m", None] * 4, "age": [20, 30, 40, 50] * 3, "ill": ["no", "yes", "no"] * 4})
    orders = {"mechanism": sfumato.GlobalRecoder(k=3), "roles": {"ill": "sensitive"}}
    here = sfumato.release_large(people, path=tmp_path / "here.parquet", **orders)
    there = sfumato.release_large(spark.createDataFrame(people), path=tmp_path / "there.parquet", **orders)

    assert there.table_path.is_dir()
    assert there.audit.passed
    assert there.release.manifest.guarantees == here.release.manifest.guarantees
    found, expected = (pyarrow.parquet.read_table(published.table_path) for published in (there, here))
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist()))


def test_a_mechanism_that_needs_all_rows_is_refused_for_a_frame(spark, tmp_path):
    """A frame gives its rows in no fixed order, so that the same ones could not be read again for the audit."""
    with pytest.raises(InputError, match="without a fixed order"):
        sfumato.release_large(spark.createDataFrame(CELLS), sfumato.MDAV(k=2), tmp_path / "out.parquet")
    assert not list(tmp_path.iterdir())
