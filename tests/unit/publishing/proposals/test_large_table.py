"""A file read in blocks is understood exactly as one that is read at once."""

import datetime
import gzip
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engines.blocks import rows as distinct
from sfumato.engines.blocks.rows import open_large
from sfumato.errors import ColumnNotFoundError, InputError, InvalidParameterError, SchemaError
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy, covered
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.io import csv as delimited_blocks
from sfumato.table.io import parquet
from sfumato.table.io.read import ReadOptions, read_table
from sfumato.table.weighted import OpenColumn

PLENTY, LITTLE = 10**9, 16_000  # bytes: the second lists at most four values a column


def small_blocks(n_bytes=40, n_rows=3):
    """Cut even small files into several blocks."""
    stack = ExitStack()
    stack.enter_context(patch.object(delimited_blocks, "BLOCK_BYTES", n_bytes))
    stack.enter_context(patch.object(parquet, "BLOCK_ROWS", n_rows))
    stack.enter_context(patch.object(distinct, "_FEWEST_PENDING", 2))
    return stack


def assert_same(path, memory=PLENTY, **reading):
    """Compare names, kinds, cells and counts with those of the table read at once."""
    whole = read_table(path, **reading)
    large = open_large(path, memory=memory, **reading)
    names = whole.schema.names()

    assert large.schema == whole.schema
    assert large.n_rows == whole.n_rows
    assert large.source == whole.source
    blocks = list(large.blocks(names))
    for name in names:
        column = large.outline[name]
        parts = [block[name] for block in blocks]
        if isinstance(column, OpenColumn):
            cells = pa.chunked_array(parts).combine_chunks()
            assert cells.type == whole[name].values.type
            assert cells.to_pylist() == whole[name].cells().to_pylist()
            assert column.n_missing == whole[name].n_missing
        else:
            assert np.concatenate(parts).tolist() == whole[name].codes.tolist()
            assert column.values.equals(whole[name].values)
            assert column.counts.tolist() == whole[name].counts.tolist()
    return large


TEXTS = st.sampled_from(
    ["a", " a", "b ", "", "?", "NA", "1", "1.0", "02", "2024-01-02", "x,y", 'q"q', '"', "l\nl", "l\r\nl", "ü", "x\ty"]
)


def csv_bytes(rows, line_end, quote_all):
    def cell(text):
        needs = quote_all or not text or any(sign in text for sign in ',"\n\r')
        return '"' + text.replace('"', '""') + '"' if needs else text

    return line_end.join(",".join(map(cell, row)) for row in [["one", "two"], *rows]).encode() + line_end.encode()


@pytest.mark.slow
@given(
    st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=30),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
    st.integers(16, 120),
    st.sampled_from([PLENTY, LITTLE]),
    st.sampled_from(["a.csv", "a.csv.gz"]),
)
def test_text_in_blocks_of_any_size_is_the_text_at_once(rows, line_end, quote_all, n_bytes, memory, name):
    """Wherever a block ends, in a quoted line end too, the cells are the same."""
    with TemporaryDirectory() as folder, small_blocks(n_bytes):
        path = Path(folder) / name
        content = csv_bytes(rows, line_end, quote_all)
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        assert_same(path, memory)


def test_a_quote_inside_a_cell_is_a_character(tmp_path):
    """Cutting blocks does not count quotes, of which a cell may hold a single one."""
    path = tmp_path / "a.csv"
    path.write_text("size,note\n" + '5" pipe,"two\nlines"\n' * 20)
    with small_blocks(64):
        assert_same(path)


TYPED = [
    pa.array([1, 2, None, 2, 300] * 3, pa.int16()),
    pa.array([0.5, -0.0, 0.0, float("nan"), None] * 3),
    pa.array([0.5, 1.0, None, 2.0, 3.0] * 3, pa.float16()),
    pa.array([True, False, None] * 5),
    pa.array(["a", " a ", "NA", None, "b"] * 3),
    pa.array(["a", "b", None, "b", "c"] * 3).dictionary_encode(),
    pa.array(["a", "b", None, "b", "c"] * 3, pa.large_string()),
    pa.array([datetime.datetime(2024, 1, d) for d in range(1, 16)], pa.timestamp("us")),
    pa.array([datetime.datetime(2024, 1, d, d % 2) for d in range(1, 16)], pa.timestamp("us")),
    pa.array([datetime.date(2024, 1, d) for d in range(1, 16)], pa.date64()),
    pa.array([datetime.time(d) for d in range(1, 16)]),
    pa.array([None] * 15, pa.null()),
    pa.array([f"{d}.50" for d in range(15)]),
    pa.array(range(15)).cast(pa.decimal128(21, 2)),
]


@pytest.mark.slow
@pytest.mark.parametrize("cells", TYPED, ids=lambda cells: str(cells.type))
@pytest.mark.parametrize("memory", [PLENTY, LITTLE])
def test_typed_columns_in_blocks_are_those_at_once(tmp_path, cells, memory):
    """Types, missing values and midnights are judged over all blocks."""
    pyarrow.parquet.write_table(pa.table({" x ": cells, "a.b": range(15), "a": range(15)}), tmp_path / "a.parquet")
    with small_blocks():
        large = assert_same(tmp_path / "a.parquet", memory)

    assert large.is_open("a") == (memory == LITTLE)


def test_reading_options_mean_the_same(tmp_path):
    """Encoding, delimiter, header and missing texts."""
    path = tmp_path / "a.txt"
    path.write_bytes("Köln;-\nBonn;7\n".encode("latin-1") * 9)
    options = ReadOptions(delimiter=";", encoding="latin-1", header=False, missing=("-",))
    with small_blocks():
        assert_same(path, options=options)


def test_a_schema_orders_the_values(tmp_path):
    """Kinds that are declared, and missing texts of a column."""
    path = tmp_path / "a.csv"
    path.write_text("n,grade\n10,low\n9,high\n-1,low\n")
    columns = [Column("grade", kind=Kind.ORDERED, domain=("low", "high")), Column("n", Role.TARGET, missing=("-1",))]
    with small_blocks():
        assert_same(path, schema=Schema.of(columns))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n3\n", "line 3: expected 2 columns, found 1"),
        (b'a,b\n1,"2\n' + b"3,4\n" * 30, "line 2: a quote that is opened here is never closed"),
        (b"a,b\n", "has a header but no data rows"),
        (b"a,b\n1,\xff\n", "line 2: is not utf-8 text"),
        (b"", "is empty"),
        (b"a,a\n1,2\n", "columns 1 and 2 have the same name"),
    ],
)
def test_faults_are_named_as_when_read_at_once(tmp_path, content, message):
    """The message is that of the reader of whole files."""
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(InputError) as whole:
        read_table(path)
    with small_blocks(), pytest.raises(InputError) as found:
        open_large(path, memory=PLENTY)

    assert message in str(found.value)
    assert str(found.value) == str(whole.value)


def test_a_damaged_parquet_file_is_refused(tmp_path):
    """Without a word of its content."""
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.table({"a": ["secret"] * 50}), path, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[30] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as a Parquet file"):
        open_large(path, memory=PLENTY)


def test_a_file_that_changes_between_passes_is_refused(tmp_path):
    """A value that was not there before, or other bytes."""
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    large = open_large(path, memory=PLENTY)
    path.write_text("a,b\n1,2\n3,5\n")
    with pytest.raises(InputError, match="changed while it was being read"):
        list(large.blocks(["b"]))
    with pytest.raises(InputError, match="changed while it was being read"):
        large.ensure_unchanged()


@pytest.mark.parametrize("name", ["a.xlsx", "a.svm", "a.arff", "-"])
def test_other_formats_are_refused(tmp_path, name):
    """Only what can be read in blocks, several times."""
    with pytest.raises(
        InvalidParameterError, match=r"CSV, Parquet, JSON lines, SPSS \(.sav, .zsav\), Stata or SAS file"
    ):
        open_large(name if name == "-" else tmp_path / name, memory=PLENTY)


def test_what_a_long_column_cannot_be(tmp_path):
    """A column that is declared numeric must be it also where its values are not listed."""
    path = tmp_path / "a.csv"
    path.write_text("a\n" + "".join(f"x{i}\n" for i in range(50)))
    with small_blocks():
        large = open_large(path, memory=LITTLE)
    with pytest.raises(InputError, match="not numbers"):
        large.with_schema(Schema.of([Column("a", kind=Kind.NUMERIC)]))
    with pytest.raises(ColumnNotFoundError):
        list(large.blocks(["b"]))
    with pytest.raises(SchemaError, match="does not describe"):
        open_large(path, memory=PLENTY, schema=Schema.of([]))


def test_wrong_numbers_are_counted_in_rows(tmp_path):
    """Not in distinct values; where the first stands is not known, and not said."""
    path = tmp_path / "a.csv"
    path.write_text("a\n" + "1\n" * 50 + "x\n" * 30 + "2\n")
    schema = Schema.of([Column("a", Role.QUASI_IDENTIFIER, Kind.NUMERIC)])

    with pytest.raises(InputError, match=r"30 of 81 rows are not numbers \(first: this line\)"):
        read_table(path, schema=schema)
    with pytest.raises(InputError, match=r"30 of 81 rows are not numbers\. Hint"):
        open_large(path, memory=PLENTY, schema=schema)


def test_values_that_a_hierarchy_does_not_cover_are_counted_in_rows(tmp_path):
    """Of the file, not of its distinct values."""
    path = tmp_path / "a.csv"
    path.write_text("a\n" + "u\n" * 50 + "x\n" * 30)
    hierarchy = Hierarchy.from_rows([("u", "*")])
    for table in (read_table(path), open_large(path, memory=PLENTY).outline):
        with pytest.raises(SchemaError, match=r"1 of 2 values \(30 of 80 rows\)"):
            covered(hierarchy, table["a"], "a", Kind.CATEGORICAL)
