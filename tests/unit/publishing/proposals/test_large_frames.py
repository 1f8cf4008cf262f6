"""A frame read in blocks is understood, hashed and released exactly as one that is read at once."""

import datetime
import json
import traceback
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import duckdb
import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.audit.bytes import parquet as parquet_bytes
from sfumato.engines import counting as blocks
from sfumato.engines.blocks import rows as distinct
from sfumato.engines.blocks.rows import open_large
from sfumato.errors import InputError, InvalidParameterError, OutputError, SchemaError
from sfumato.guarantees import LDiversity
from sfumato.mechanisms.lattice.gain import GainRecoder
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.publishing.propose import make_release
from sfumato.publishing.publish import publish
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.io import parquet
from sfumato.table.io.read import ReadOptions, read_table
from sfumato.table.weighted import OpenColumn
from sizes import examples

PLENTY, LITTLE = 10**9, 16_000  # bytes: the second lists at most four values a column
CANARY = "canary-4711"


def small_blocks(n_rows=3):
    """Make everything come in several blocks, however few rows there are."""
    stack = ExitStack()
    for module, name, value in (
        (parquet, "BLOCK_ROWS", n_rows),
        (distinct, "_FEWEST_PENDING", 2),
        (blocks, "_FEWEST_PENDING", 3),
        (parquet, "ROWS_OF_A_GROUP", 7),
        (parquet_bytes, "BLOCK_ROWS", n_rows),
    ):
        stack.enter_context(patch.object(module, name, value))
    return stack


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


def real_ibis(cells):
    ibis = pytest.importorskip("ibis", reason="NOT TESTED with the real Ibis, which is not installed")
    return ibis.polars.connect({"people": pl.from_arrow(cells)}).table("people")


FRAMES = {
    "arrow": lambda cells: cells,
    "dataset": pyarrow.dataset.dataset,
    "duckdb": lambda cells: duckdb.connect().from_arrow(cells),
    "polars-lazy": lambda cells: pl.from_arrow(cells).lazy(),
    "polars": pl.from_arrow,
    "pandas": lambda cells: cells.to_pandas(),
    "narwhals": lambda cells: nw.from_native(pl.from_arrow(cells).lazy()),
    "ibis": Ibis,
}


def assert_same(frame, memory=PLENTY, **reading):
    """Compare names, kinds, cells, counts and hash with those of the table read at once."""
    whole = read_table(frame, **reading)
    large = open_large(frame, memory=memory, **reading)
    names = whole.schema.names()

    assert large.schema == whole.schema
    assert large.n_rows == whole.n_rows
    assert large.source == large.outline.source == whole.source
    found = list(large.blocks(names))
    for name in names:
        column = large.outline[name]
        parts = [block[name] for block in found]
        if isinstance(column, OpenColumn):
            cells = pa.chunked_array(parts).combine_chunks()
            assert cells.type == whole[name].values.type
            assert cells.to_pylist() == whole[name].cells().to_pylist()
        else:
            assert np.concatenate(parts).tolist() == whole[name].codes.tolist()
            assert column.values.equals(whole[name].values)
            assert column.counts.tolist() == whole[name].counts.tolist()
    large.ensure_unchanged()
    return large


COLUMNS = {
    "whole": st.sampled_from([None, -1, 0, 7, 300]),
    "number": st.sampled_from([None, 0.5, -0.0, 0.0, float("inf"), 1e300]),
    "text": st.sampled_from([None, "a", " a", "?", "NA", "1", "02", "x,y", 'q"q', "l\nl", "ü"]),
    "day": st.sampled_from([None, datetime.date(2024, 2, 29), datetime.date(1969, 1, 1)]),
    "moment": st.sampled_from([None, datetime.datetime(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2, 3)]),
    "ill": st.sampled_from([None, True, False]),
}
TYPES = {
    "whole": pa.int32(),
    "number": pa.float64(),
    "text": pa.string(),
    "day": pa.date32(),
    "moment": pa.timestamp("us"),
    "ill": pa.bool_(),
}


@st.composite
def tables(draw):
    names = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=4, unique=True))
    rows = draw(st.lists(st.tuples(*(COLUMNS[name] for name in names)), min_size=1, max_size=20))
    columns = [pa.array(cells, TYPES[name]) for name, cells in zip(names, zip(*rows, strict=True), strict=True)]
    return pa.table(columns, names=names)


@pytest.mark.slow
@examples(60)
@given(tables(), st.sampled_from(list(FRAMES)), st.sampled_from([PLENTY, LITTLE]), st.integers(1, 8))
def test_every_frame_in_blocks_is_the_frame_at_once(cells, name, memory, n_rows):
    """Whatever the library, the size of the blocks, and whether the values are listed."""
    with small_blocks(n_rows):
        assert_same(FRAMES[name](cells), memory)


@examples(10)
@given(tables(), st.integers(1, 8))
def test_a_table_of_the_real_ibis(cells, n_rows):
    with small_blocks(n_rows):
        assert_same(real_ibis(cells))


@pytest.mark.slow
@pytest.mark.parametrize("memory", [PLENTY, LITTLE])
@pytest.mark.parametrize(
    "cells",
    [
        pa.array(["a", "b", None, "b", "c"] * 3).dictionary_encode(),
        pa.array(["a", "b", None, "b", "c"] * 3, pa.large_string()),
        pa.array(range(15)).cast(pa.decimal128(21, 2)),
        pa.array([datetime.datetime(2024, 1, d) for d in range(1, 16)], pa.timestamp("us")),
        pa.array([datetime.time(d) for d in range(1, 16)]),
        pa.array([0.5, 1.0, None, 2.0, 3.0] * 3, pa.float32()),
    ],
    ids=lambda cells: str(cells.type),
)
@pytest.mark.parametrize("name", ["arrow", "dataset", "duckdb", "polars-lazy", "ibis"])
def test_types_in_blocks_are_those_at_once(name, cells, memory):
    with small_blocks():
        assert_same(FRAMES[name](pa.table({" x ": cells, "a.b": range(15), "^a$": range(15)})), memory)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_dataset_of_many_files_is_one_table(kind, tmp_path):
    cells = pa.table({"a.b": [*range(20)], "part": ["x", "y"] * 10, "dose": [0.5, None] * 10})
    pyarrow.dataset.write_dataset(
        cells, tmp_path / "parts", format=kind, max_rows_per_file=7, max_rows_per_group=7, use_threads=False
    )
    with small_blocks():
        large = assert_same(pyarrow.dataset.dataset(tmp_path / "parts", format=kind))

    assert large.n_rows == 20


def test_objects_of_pandas_are_judged_over_all_rows():
    """A column that is a number in one block and a text in the next is refused, or text where that is declared."""
    frame = pd.DataFrame({"a": [1, 2, 3, 4, "five"], "b": [0] * 5}, dtype=object)
    declared = Schema.of([Column("a", kind=Kind.CATEGORICAL), Column("b")])
    with small_blocks(2):
        assert_same(frame, schema=declared)
        with pytest.raises(InputError, match="mixes"):
            open_large(frame, memory=PLENTY)


def test_numpy_columns_are_numbered():
    with small_blocks():
        assert_same(np.arange(20).reshape(10, 2) % 3)


def test_a_schema_and_missing_texts_mean_the_same():
    """The hash too: a missing value is written as the first of its texts."""
    cells = pa.table({"n": ["10", "9", "-1", None], "grade": ["low", "high", "low", "-"]})
    columns = [
        Column("grade", kind=Kind.ORDERED, domain=("low", "high"), missing=("-",)),
        Column("n", Role.TARGET, missing=("-1",)),
    ]
    with small_blocks():
        assert_same(duckdb.connect().from_arrow(cells), schema=Schema.of(columns))
        assert_same(cells, options=ReadOptions(missing=("-", "-1")))


def test_names_of_a_relation_that_differ_only_in_case():
    with small_blocks():
        large = assert_same(duckdb.connect().sql("SELECT range AS age, -range AS Age FROM range(5)"))

    (block,) = list(large.blocks(["Age"]))
    assert large.outline["Age"].values.take(pa.array(block["Age"])).to_pylist() == [0, -1, -2, -3, -4]


def random_cells(n_rows, seed=5):
    random = np.random.default_rng(seed)

    def pick(values):
        return [values[i] for i in random.integers(0, len(values), n_rows)]

    return pa.table(
        {
            "id": pa.array([f"p{i}" for i in range(n_rows)]),
            "age": pa.array(pick([17, 18, 18, 25, 40, 64, None]), pa.int16()),
            "town": pa.array(pick(["Ulm", " Ulm", "Bonn", "Kiel ", "?", "a,b", 'say "so"'])),
            "illness": pa.array(pick(["flu", "cold", "gout", "NA"])),
            "dose": pa.array(random.normal(size=n_rows).round(1)),
        }
    )


ROLES = {"id": "identifier", "illness": "sensitive", "dose": "other"}


def made_in_memory(frame, mechanism, output):
    table = read_table(frame)
    table = table.with_schema(table.schema.with_roles({name: Role(role) for name, role in ROLES.items()}))
    return publish(make_release(table, mechanism), output, original=table)


@pytest.mark.slow
@examples(20)
@given(
    st.integers(0, 2**32),
    st.sampled_from(list(FRAMES)),
    st.sampled_from(
        [GlobalRecoder(k=3), GainRecoder(k=2, gain_target="illness"), GlobalRecoder(k=2, privacy=[LDiversity(2.0)])]
    ),
    st.sampled_from(["out.parquet", "out.csv"]),
)
def test_the_same_bytes_and_the_same_manifest_as_in_memory(seed, name, mechanism, output_name):
    frame = FRAMES[name](random_cells(40, seed))
    with TemporaryDirectory() as folder, small_blocks(7):
        for place in ("memory", "large"):
            (Path(folder) / place).mkdir()
        expected = made_in_memory(frame, mechanism, Path(folder) / "memory" / output_name)
        found = sfumato.release_large(frame, mechanism, Path(folder) / "large" / output_name, roles=ROLES)
        audited = sfumato.audit_large(found.table_path, original=frame, roles=ROLES)

        assert found.table_path.read_bytes() == expected.table_path.read_bytes()
        assert json.loads(found.manifest_path.read_text()) == json.loads(expected.manifest_path.read_text())
        assert audited.passed
        assert audited.levels == found.audit.levels


@pytest.fixture
def database(tmp_path):
    """Write a database file with a table of people."""
    path = tmp_path / "people.duckdb"
    cells = random_cells(5_000)
    with duckdb.connect(path) as connection:
        connection.from_arrow(cells).create("people")
    return path


@pytest.mark.slow
def test_a_table_of_an_attached_database_is_released_with_a_limit_of_memory(database, tmp_path):
    """Its rows are read where they are; the connection keeps the limit that its owner set."""
    with duckdb.connect(config={"memory_limit": "60MB", "threads": 1}) as connection:
        connection.execute(f"ATTACH '{database}' AS hospital (READ_ONLY)")
        people = connection.table("hospital.people")
        with small_blocks(512):
            found = sfumato.release_large(people, GlobalRecoder(k=5), tmp_path / "out.csv", roles=ROLES)
        expected = made_in_memory(people, GlobalRecoder(k=5), tmp_path / "memory.csv")
        connection.execute("SELECT 1").fetchall()  # no result was left open

    assert found.table_path.read_bytes() == expected.table_path.read_bytes()
    assert found.release.manifest.input == expected.release.manifest.input


def test_a_database_table_that_changes_is_refused(database, tmp_path):
    """Rows that are added, also with values that were there before, change the hash."""
    with duckdb.connect(database) as connection:
        large = open_large(connection.table("people"), memory=PLENTY)
        large.ensure_unchanged()
        connection.execute("INSERT INTO people SELECT * FROM people LIMIT 1")
        with pytest.raises(InputError, match=r"changed while it was being read.*sort the query"):
            large.ensure_unchanged()


class Unsteady:
    """A frame that gives other rows at every reading."""

    def __init__(self, *tables):
        self._tables = list(tables)

    def __arrow_c_stream__(self, requested_schema=None):
        table = self._tables.pop(0) if len(self._tables) > 1 else self._tables[0]
        return table.__arrow_c_stream__(requested_schema)


def test_a_frame_in_another_order_every_time_is_refused(tmp_path):
    """Whether a row more comes between counting and hashing, or the order changes afterwards."""
    cells = random_cells(40)
    backwards = cells.take(pa.array(range(39, -1, -1)))
    with pytest.raises(InputError, match="changed while it was being read"):
        open_large(Unsteady(cells, cells, cells.slice(0, 39)), memory=PLENTY)
    large = open_large(Unsteady(cells, cells, cells, backwards), memory=PLENTY)
    with pytest.raises(InputError, match="changed while it was being read"):
        large.ensure_unchanged()
    shuffled = Unsteady(*[cells.take(pa.array(np.random.default_rng(i).permutation(40))) for i in range(20)])
    with pytest.raises(InputError, match="changed while it was being read"):
        sfumato.release_large(shuffled, GlobalRecoder(k=3), tmp_path / "out.csv", roles=ROLES)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda: duckdb.connect().sql(f"SELECT CAST('{CANARY}' AS INTEGER) AS a"),
        lambda: pl.LazyFrame({"a": ["1", CANARY]}).select(pl.col("a").cast(pl.Int64)),
        lambda: pl.LazyFrame({"a": [CANARY]}).select(pl.col("b")),
    ],
    ids=["duckdb", "polars", "polars-schema"],
)
def test_what_fails_shows_no_cell(make):
    with pytest.raises(InputError, match="cannot be read in blocks") as caught:
        open_large(make(), memory=PLENTY)

    assert CANARY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pa.table({"a": pa.array([], pa.int8())}), "<pyarrow>: has no rows"),
        (pa.table({}), "<pyarrow>: has no columns"),
        (pa.table([[1], [2]], names=["a", "a"]), "columns 1 and 2 have the same name"),
        (pa.table({"a": [[1, 2]]}), "neither text, numbers"),
    ],
    ids=["rows", "columns", "names", "types"],
)
def test_faults_are_named_as_when_read_at_once(frame, said):
    with pytest.raises(InputError, match=said) as whole:
        read_table(frame)
    with pytest.raises(InputError) as found:
        open_large(frame, memory=PLENTY)

    assert str(found.value) == str(whole.value)


def test_what_gives_its_rows_only_once_is_refused():
    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int8())]), [])
    with pytest.raises(InvalidParameterError, match="several times"):
        open_large(reader, memory=PLENTY)
    with pytest.raises(InvalidParameterError, match="object of type list"):
        open_large([1], memory=PLENTY)
    with pytest.raises(InvalidParameterError, match="complete_rows_only"):
        open_large(random_cells(3), memory=PLENTY, options=ReadOptions(complete_rows_only=True))


def test_a_result_that_another_reader_left_open_is_said():
    """DuckDB has one open result a connection."""
    connection = duckdb.connect()
    relation = connection.sql("SELECT range AS a FROM range(1_000_000)")
    reader = relation.to_arrow_reader(10)
    reader.read_next_batch()
    with pytest.raises(InputError, match="no other result of its connection open"):
        open_large(relation, memory=PLENTY)


def test_a_reading_that_is_given_up_leaves_no_result_open():
    connection = duckdb.connect()
    with small_blocks(2048):
        large = open_large(connection.sql("SELECT range % 9 AS a FROM range(100_000)"), memory=PLENTY)
        rows = large.blocks(["a"])
        next(rows)
        rows.close()
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


@pytest.mark.slow
def test_files_are_released_by_the_same_call(tmp_path):
    source = tmp_path / "in.parquet"
    pyarrow.parquet.write_table(random_cells(60), source)
    told = []

    found = sfumato.release_large(
        source, GlobalRecoder(k=3), tmp_path / "out.csv", roles=ROLES, progress=lambda *step: told.append(step)
    )

    assert found.audit.passed
    assert {" ".join(what.split()[-2:]) for _, _, what in told} >= {"rows read", "rows counted", "rows written"}
    assert sfumato.audit_large(found.table_path, original=source, roles=ROLES).passed
    assert sfumato.audit_large(found.table_path).passed
    other = random_cells(60, seed=9)
    assert not sfumato.audit_large(found.table_path, original=other, roles=ROLES).passed
    opened = open_large(source, memory=PLENTY)
    again = sfumato.release_large(opened, GlobalRecoder(k=3), tmp_path / "again.csv", roles=ROLES)
    assert again.table_path.read_bytes() == found.table_path.read_bytes()


@pytest.mark.slow
def test_roles_are_checked_where_they_are_given(tmp_path):
    cells = random_cells(60)
    found = sfumato.release_large(cells, GlobalRecoder(k=3), tmp_path / "out.csv", roles=ROLES)

    assert not sfumato.audit_large(found.table_path, original=cells, roles={**ROLES, "dose": "quasi-identifier"}).passed
    described = Schema.of(
        Column(c.name, Role(ROLES.get(c.name, "quasi-identifier")), c.kind) for c in read_table(cells).schema
    )
    assert sfumato.audit_large(found.table_path, original=cells, schema=described).passed


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"path": "there.csv"}, OutputError, "exists"),
        ({"memory": "1MB"}, InvalidParameterError, "at least 600MB"),
        ({"roles": {"age": "boss"}}, InvalidParameterError, "quasi-identifier"),
        ({"roles": {"wage": "other"}}, SchemaError, "did you mean 'age'"),
    ],
)
def test_what_cannot_be_done_is_said_before_the_rows_are_read(changes, error, said, tmp_path):
    (tmp_path / "there.csv").write_text("a\n")
    settings = {"source": random_cells(20), "mechanism": GlobalRecoder(k=3), "path": "out.csv", "roles": ROLES}
    settings |= changes
    settings["path"] = tmp_path / settings["path"]

    with pytest.raises(error, match=said):
        sfumato.release_large(**settings)
    assert [path.name for path in tmp_path.iterdir()] == ["there.csv"]
