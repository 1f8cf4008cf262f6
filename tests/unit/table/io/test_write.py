"""What is written is what is read again, byte for byte the same each time."""

from __future__ import annotations

import errno
import gc
import gzip
import io
import sys
import unicodedata
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameterError
from sfumato.schema import DEFAULT_MISSING_TOKENS, Column, Role, Schema
from sfumato.table.binary import BinaryTable, Feature, as_binary_matrix
from sfumato.table.coding import Table
from sfumato.table.io import excel as workbook
from sfumato.table.io import write
from sfumato.table.io.formats import WRITABLE, format_of, writable_format_of
from sfumato.table.io.read import ReadOptions, read_table
from sfumato.table.io.write import write_table

SUFFIXES = {"excel": "xlsx", "libsvm": "svm"}


def written(table: Table | BinaryTable, format_name: str) -> bytes:
    file = io.BytesIO()
    write_table(table, file, format_name)
    return file.getvalue()


def read_again(
    folder: Path, table: Table | BinaryTable, format_name: str, schema: Schema | None = None
) -> Table | BinaryTable:
    path = folder / f"t.{SUFFIXES.get(format_name, format_name)}"
    path.write_bytes(written(table, format_name))
    assert format_of(path) == format_name
    return read_table(path, schema=schema)


def plain(data: dict[str, list[object]], **options: object) -> Table:
    table = read_table(pa.table(data), options=ReadOptions(**options))  # type: ignore[arg-type]
    assert isinstance(table, Table)
    return table


def binary(rows: list[list[int]], labels: list[object] | None, names: list[str] | None = None) -> BinaryTable:
    matrix = as_binary_matrix(np.array(rows))
    names = names or [f"f{i + 1}" for i in range(matrix.shape[1])]
    if labels is None:
        companions = Table(Schema.of([]), {}, len(rows))
    else:
        described = plain({"target": labels})
        companions = described.with_schema(described.schema.with_roles({"target": Role.TARGET}))
    return BinaryTable(matrix, tuple(Feature(name, name) for name in names), companions)


def assert_same_columns(found: object, expected: Table) -> None:
    assert isinstance(found, Table)
    assert list(found.columns) == list(expected.columns)
    for name, column in expected.columns.items():
        assert found[name].codes.tolist() == column.codes.tolist()
        assert found[name].values.equals(column.values), name


def assert_same_binary(found: object, expected: BinaryTable) -> None:
    assert isinstance(found, BinaryTable)
    assert found.features == expected.features
    assert (found.matrix != expected.matrix).nnz == 0
    assert_same_columns(found.companions, expected.companions)
    assert found.companions.schema == expected.companions.schema


def _can_be_a_cell(text: str) -> bool:
    return text == text.strip() and text not in DEFAULT_MISSING_TOKENS and text != "\ufeff"


# Noncharacters cannot stand in an Excel file; blanks around a cell are dropped, Unicode's own idea of them included.
characters = st.one_of(
    st.sampled_from(list(",;\t|\"\n\r'=0123456789 ._-äß日\U0001f600x{}%?@#:")),
    st.characters(codec="utf-8", exclude_characters="\0\ufeff\ufffe\uffff", exclude_categories=("Cs", "Cn")),
)
texts = st.text(characters, max_size=12).map(lambda text: text.strip()).filter(_can_be_a_cell)
names = st.text(characters, min_size=1, max_size=6).map(lambda text: text.strip()).filter(bool)


@st.composite
def text_tables(draw: st.DrawFn) -> Table:
    columns = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    n_rows = draw(st.integers(1, 6))
    cells = st.lists(st.one_of(st.none(), texts), min_size=n_rows, max_size=n_rows)
    return plain({name: pa.array(draw(cells), pa.string()) for name in columns})  # type: ignore[misc]


@pytest.mark.slow
@pytest.mark.parametrize("format_name", ["csv", "tsv", "csv.gz", "tsv.gz", "parquet", "excel"])
@given(table=text_tables())
def test_texts_survive(tmp_path_factory: pytest.TempPathFactory, format_name: str, table: Table) -> None:
    folder = tmp_path_factory.mktemp("written")

    assert_same_columns(read_again(folder, table, format_name), table)


def test_names_and_cells_that_look_like_other_delimiters(tmp_path: Path) -> None:
    for name, cell in [("a;b", "c;d"), ("a|b|c", "d|e|f"), ("a\tb", "c\td"), ('"', '"";'), ("a,b", ",")]:
        table = plain({name: [cell, "x"]})
        assert_same_columns(read_again(tmp_path, table, "csv"), table)


@pytest.mark.parametrize("cell", [None, "a b", 'say "hi"', "a\tb", "a,b"])
def test_a_column_whose_name_begins_like_json(tmp_path: Path, cell: str | None) -> None:
    for format_name in ("csv", "tsv"):
        table = plain({"{": pa.array([cell], pa.string())})
        assert_same_columns(read_again(tmp_path, table, format_name), table)


class TestDelimited:
    def test_quotes_only_what_needs_them(self) -> None:
        table = plain({"a b": ["x;y", 'say "hi"', None], "c,d": ["1,5", "two\nlines", "=1+1"]})

        assert written(table, "csv") == (b'a b,"c,d"\nx;y,"1,5"\n"say ""hi""","two\nlines"\n,=1+1\n')
        assert written(table, "tsv").startswith(b'a b\t"c,d"\nx;y\t1,5\n')

    def test_types_are_written_in_their_shortest_form(self) -> None:
        table = plain(
            {
                "f": [1.0, 0.1, None],
                "b": [True, False, None],
                "d": [date(2020, 1, 2), None, date(1, 1, 1)],
                "t": [datetime(2020, 1, 2, 3, 4, 5), datetime(2020, 1, 2, 3, 4, 5, 600000), None],
                "c": [time(1, 2), None, time(1, 2, 3)],
                "m": [Decimal("1.50"), Decimal("2.25"), None],
            }
        )

        assert written(table, "csv").decode().splitlines()[1:] == [
            "1,true,2020-01-02,2020-01-02 03:04:05,01:02:00,1.50",
            "0.1,false,,2020-01-02 03:04:05.600000,,2.25",
            ",,0001-01-01,,01:02:03,",
        ]

    def test_missing_value_is_written_as_the_schema_says(self, tmp_path: Path) -> None:
        table = plain({"a": ["x", None], "b": ["", "y"]}, missing=("?", "-"))

        assert written(table, "csv") == b"a,b\nx,\n?,y\n"
        own = Schema.of([Column("a", missing=("-",)), Column("b", missing=("NA", ""))], missing=("?",))
        described = table.with_schema(own)
        assert written(described, "csv") == b"a,b\nx,\n-,y\n"
        assert_same_columns(read_again(tmp_path, table, "csv", Schema.of(table.schema, ("?", "-"))), table)

    def test_missing_value_of_a_single_column_is_no_empty_line(self, tmp_path: Path) -> None:
        table = plain({"a": [None, "x", None]})

        assert written(table, "csv") == b'a\n""\nx\n""\n'
        assert_same_columns(read_again(tmp_path, table, "csv"), table)

    def test_rows_are_joined_in_several_batches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        table = plain({"a": list(range(50)), "b": [f"v{i % 3}" for i in range(50)]})
        features = binary([[i % 2, 1] for i in range(50)], list(range(50)))
        whole = written(table, "csv"), written(features, "csv")
        monkeypatch.setattr(write, "_CELLS_AT_ONCE", 7)

        assert (written(table, "csv"), written(features, "csv")) == whole

    def test_gzip_holds_no_time_and_no_name(self) -> None:
        table = plain({"a": ["x"]})

        assert gzip.decompress(written(table, "csv.gz")) == written(table, "csv")
        assert written(table, "csv.gz")[3:9] == b"\0" * 5 + b"\2"

    def test_table_without_columns(self) -> None:
        assert written(Table(Schema.of([]), {}, 3), "csv") == b"\n"

    @pytest.mark.parametrize("labels", [None, ["u", "v,w", None]])
    def test_binary_table_is_written_like_its_columns(self, labels: list[object] | None) -> None:
        table = binary([[0, 1, 0], [1, 1, 0], [0, 1, 0]], labels, ["a", "b,c", "d"])

        for format_name in ("csv", "tsv"):
            assert written(table, format_name) == written(table.to_table(), format_name)


class TestTypes:
    data: dict[str, list[object]] = {  # noqa: RUF012 - only read
        "i": [3, 1, None],
        "f": [0.5, -1e300, None],
        "s": ["007", None, "=1"],
        "d": [date(2020, 1, 2), None, date(1950, 1, 1)],
        "b": [True, None, False],
    }

    @pytest.mark.slow
    @pytest.mark.parametrize("format_name", ["parquet", "excel"])
    def test_survive(self, tmp_path: Path, format_name: str) -> None:
        table = plain(self.data)

        assert_same_columns(read_again(tmp_path, table, format_name), table)

    @pytest.mark.parametrize("format_name", WRITABLE)
    def test_same_table_gives_same_bytes(self, format_name: str) -> None:
        table = plain(self.data) if format_name != "libsvm" else binary([[0, 1], [1, 1]], [1, 2])
        if format_name == "xpt":  # SAS has no such large numbers
            table = table.keep([name for name in self.data if name != "f"])

        assert written(table, format_name) == written(table, format_name)

    def test_parquet_keeps_every_type(self, tmp_path: Path) -> None:
        table = plain({"t": [datetime(2020, 1, 2, 3)], "c": [time(1)], "m": [Decimal("1.5")], "z": [None]})

        assert_same_columns(read_again(tmp_path, table, "parquet"), table)


class TestWorkbook:
    @pytest.mark.slow
    def test_rows_of_missing_values_stay_rows(self, tmp_path: Path) -> None:
        table = plain({"a": [1, None, 2, None], "b": ["x", None, None, None]})

        assert_same_columns(read_again(tmp_path, table, "excel"), table)

    @pytest.mark.slow
    def test_dates_that_excel_does_not_know_are_text(self, tmp_path: Path) -> None:
        again = read_again(tmp_path, plain({"d": [date(1815, 12, 10)], "t": [datetime(2020, 1, 2, 3)]}), "excel")

        assert isinstance(again, Table)
        assert again["d"].values.to_pylist() == ["1815-12-10"]
        assert again["t"].values.to_pylist() == ["2020-01-02 03:00:00"]

    @pytest.mark.parametrize(
        ("cell", "message"),
        [(2**53 + 1, "Excel would round"), (float("inf"), "infinite"), ("x" * 32_768, "longer than 32,767")],
    )
    def test_cells_that_excel_cannot_hold_are_refused(self, cell: object, message: str) -> None:
        with pytest.raises(InvalidParameterError, match=message):
            written(plain({"a": [cell]}), "excel")

    def test_too_large_tables_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        table = plain({"a": [1, 2], "b": [1, 2]})
        monkeypatch.setattr(workbook, "MAX_ROWS", 2)
        with pytest.raises(InvalidParameterError, match="2 rows and 2 columns"):
            written(table, "excel")
        monkeypatch.setattr(workbook, "MAX_ROWS", 3)
        monkeypatch.setattr(workbook, "MAX_COLUMNS", 1)
        with pytest.raises(InvalidParameterError, match="2 rows and 2 columns"):
            written(table, "excel")

    @pytest.mark.slow
    def test_a_full_disk_is_an_os_error_and_nothing_is_printed(self) -> None:
        table = plain({"a": [1, 2], "b": ["x", "y"]})

        class FullDisk(io.BytesIO):
            def write(self, *_: object) -> int:
                raise OSError(errno.ENOSPC, "No space left on device")

        unraisable: list[object] = []
        hook, sys.unraisablehook = sys.unraisablehook, unraisable.append
        try:
            file = FullDisk()
            with pytest.raises(OSError, match="No space left") as caught:
                write_table(table, file, "excel")
            file.close()
            number, kind = caught.value.errno, caught.type
            del caught
            gc.collect()
        finally:
            sys.unraisablehook = hook

        assert (number, kind, unraisable) == (errno.ENOSPC, OSError, [])

    @pytest.mark.slow
    def test_table_of_binary_features(self, tmp_path: Path) -> None:
        again = read_again(tmp_path, binary([[0, 1], [1, 1]], ["u", "v"]), "excel")

        assert isinstance(again, Table)
        assert again["f1"].cells().to_pylist() == [0, 1]


@st.composite
def binary_tables(draw: st.DrawFn) -> BinaryTable:
    n_rows, n_features = draw(st.integers(1, 6)), draw(st.integers(0, 5))
    rows = draw(
        st.lists(
            st.lists(st.integers(0, 1), min_size=n_features, max_size=n_features), min_size=n_rows, max_size=n_rows
        )
    )
    numbers = draw(st.lists(st.integers(0, 40), min_size=n_features, max_size=n_features, unique=True))
    labels = draw(st.lists(st.sampled_from(["1", "-1", "0", "2.5"]), min_size=n_rows, max_size=n_rows))
    matrix = sp.csc_matrix(np.array(rows, dtype=np.uint8).reshape(n_rows, n_features))
    described = plain({"target": labels})
    companions = described.with_schema(Schema.of([Column("target", Role.TARGET)]))
    return BinaryTable(matrix, tuple(Feature(f"f{i}", f"f{i}") for i in sorted(numbers)), companions)


@pytest.mark.slow
@given(table=binary_tables())
def test_binary_tables_survive_as_libsvm(tmp_path_factory: pytest.TempPathFactory, table: BinaryTable) -> None:
    assert_same_binary(read_again(tmp_path_factory.mktemp("written"), table, "libsvm"), table)


class TestLibsvm:
    def test_what_is_written(self) -> None:
        table = binary([[0, 1, 0], [1, 1, 0]], [1, -1], ["f7", "f2", "f9"])

        assert written(table, "libsvm") == b"1 2:1 9:0\n-1 2:1 7:1\n"
        assert written(binary([[0, 1], [1, 1]], [1, 2], ["a", "b"]), "libsvm") == b"1 2:1\n2 1:1 2:1\n"

    def test_only_binary_tables_with_a_numeric_target(self) -> None:
        with pytest.raises(InvalidParameterError, match="binarize"):
            written(plain({"a": [1]}), "libsvm")
        for labels in (["u", "v"], [None, 1], None, [float("inf"), 1.0]):
            with pytest.raises(InvalidParameterError, match="numeric target"):
                written(binary([[0, 1], [1, 1]], labels), "libsvm")

    @pytest.mark.slow
    def test_email_corpus_survives(self, tmp_path: Path, shared_data: Path) -> None:
        table = read_table(shared_data / "pu1" / "pu1_bare_body.svm.gz")
        assert isinstance(table, BinaryTable)

        assert_same_binary(read_again(tmp_path, table, "libsvm"), table)


@pytest.mark.parametrize("format_name", ["arff", "xls", "", "csv.bz2"])
def test_unknown_formats_are_refused(format_name: str) -> None:
    with pytest.raises(InvalidParameterError, match="format must be one of csv, tsv"):
        written(plain({"a": [1]}), format_name)


@pytest.mark.slow
def test_adult_survives(tmp_path: Path, shared_data: Path) -> None:
    table = read_table(shared_data / "adult-arx" / "adult.csv")
    assert isinstance(table, Table)

    for format_name in ("csv", "tsv.gz", "parquet"):
        assert_same_columns(read_again(tmp_path, table, format_name), table)


def test_unicode_blanks_are_dropped_alike_in_names_and_cells(tmp_path: Path) -> None:
    blanks = [chr(c) for c in range(1, 0x3001) if chr(c).isspace()]
    table = plain({f"{blank}a{blank}": [f"{blank}x{blank}"] for blank in blanks[:1]})

    assert {unicodedata.category(blank) for blank in blanks} <= {"Cc", "Zs", "Zl", "Zp"}
    assert list(table.columns) == ["a"]
    for blank in blanks:
        assert plain({"a": [f"{blank}x{blank}"]})["a"].values.to_pylist() == ["x"], hex(ord(blank))


@pytest.mark.parametrize(
    ("suffix", "format_name"),
    [
        (".csv", "csv"),
        (".tsv", "tsv"),
        (".tab", "tsv"),
        (".csv.gz", "csv.gz"),
        (".tsv.GZ", "tsv.gz"),
        (".parquet", "parquet"),
        (".pq", "parquet"),
        (".XLSX", "excel"),
        (".svm", "libsvm"),
        (".libsvm", "libsvm"),
        (".svmlight", "libsvm"),
    ],
)
def test_formats_of_outputs(suffix: str, format_name: str) -> None:
    assert writable_format_of(Path("some.folder") / f"release.v2{suffix}") == format_name
    assert format_name in WRITABLE


@pytest.mark.parametrize(
    "name",
    [
        *("a.json", "a.pdf", "a.txt", "a.xls", "a.xlsm", "a.xlsb", "a.ods", "a.arff", "a", "b.csv/a", ".csv", "a.gz"),
        *("a.parquet.gz", "a.xlsx.gz", "a.svm.gz", "-", "", "\udcff.csv"),
    ],
)
def test_outputs_that_cannot_be_written_are_refused(name: str) -> None:
    with pytest.raises(InvalidParameterError, match=r"output must be a file name that ends in .*\.parquet") as caught:
        writable_format_of(name)

    str(caught.value).encode()
