"""Reading every supported source into coded tables."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import sys
import threading
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import xlsxwriter

from sfumato.cli.main import in_flag_words
from sfumato.errors import ColumnNotFoundError, InputError, InvalidParameterError, NotBinaryError, SchemaError
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import Table
from sfumato.table.io import bytes as stored_bytes
from sfumato.table.io.read import ReadOptions, format_of, read_table


def read(source: object, **options: object) -> Table:
    table = read_table(source, options=ReadOptions(**options))  # type: ignore[arg-type]
    assert isinstance(table, Table)
    return table


def read_text(folder: Path, content: str | bytes, name: str = "t.csv", **options: object) -> Table:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read(path, **options)


def cells(table: Table) -> dict[str, list[object]]:
    return {name: column.cells().to_pylist() for name, column in table.columns.items()}


def binary(table: object) -> BinaryTable:
    assert isinstance(table, BinaryTable)
    return table


class TestDelimited:
    def test_cells_stay_text_and_sort_by_kind(self, tmp_path: Path) -> None:
        table = read_text(tmp_path, "n,zip\n10,02139\n9,10115\n1.0,02139\n1,x\n")

        assert table["n"].values.to_pylist() == ["1", "1.0", "9", "10"]
        assert table["zip"].values.to_pylist() == ["02139", "10115", "x"]
        assert [c.kind for c in table.schema] == [Kind.NUMERIC, Kind.CATEGORICAL]
        assert {c.role for c in table.schema} == {Role.QUASI_IDENTIFIER}

    def test_blanks_around_cells_and_names_are_dropped(self, tmp_path: Path) -> None:
        table = read_text(tmp_path, " a , b\n x, y \n\tx ,y\u00a0\n")

        assert cells(table) == {"a": ["x", "x"], "b": ["y", "y"]}

    def test_all_missing_tokens_are_one_missing_value(self, tmp_path: Path) -> None:
        table = read_text(tmp_path, "a,b\n?,1\n,NA\n NA ,2\nx,nan\n")

        assert cells(table) == {"a": [None, None, None, "x"], "b": ["1", None, "2", None]}
        assert (table["a"].n_missing, table["a"].n_distinct) == (3, 2)

    def test_missing_tokens_can_be_chosen(self, tmp_path: Path) -> None:
        assert cells(read_text(tmp_path, "a,b\n-,?\nNA,1\n", missing=("-",))) == {"a": [None, "NA"], "b": ["?", "1"]}

    @pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
    def test_delimiter_is_found(self, tmp_path: Path, delimiter: str) -> None:
        content = f"a{delimiter}b{delimiter}c\n1{delimiter}2,5;6{delimiter}3\n".replace(
            "2,5;6", '"2,5;6|7"' if delimiter != "\t" else "2,5;6|7"
        )

        assert list(read_text(tmp_path, content).columns) == ["a", "b", "c"]

    def test_decimal_commas_do_not_hide_the_semicolon(self, tmp_path: Path) -> None:
        assert cells(read_text(tmp_path, "a;b\n1,5;2,5\n3,5;4,5\n"))["b"] == ["2.5", "4.5"]

    def test_given_delimiter_is_taken(self, tmp_path: Path) -> None:
        assert list(read_text(tmp_path, "a,b:c\n1,2:3\n", delimiter=":").columns) == ["a,b", "c"]

    def test_tsv_is_cut_at_tabs_only(self, tmp_path: Path) -> None:
        assert list(read_text(tmp_path, "a,b;c\n1,2;3\n", "t.tsv").columns) == ["a,b;c"]

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
    def test_all_line_ends_and_no_last_one(self, tmp_path: Path, end: str) -> None:
        table = read_text(tmp_path, f'a,b{end}1,2{end}{end}3,"4{end}5"')

        assert cells(table) == {"a": ["1", "3"], "b": ["2", f"4{end}5"]}

    def test_quotes(self, tmp_path: Path) -> None:
        table = read_text(tmp_path, 'a,b\n"x,""y""\nz",5" pipe\n"q"r,"s"\n')

        assert cells(table) == {"a": ['x,"y"\nz', "qr"], "b": ['5" pipe', "s"]}

    def test_header_may_be_quoted_over_lines(self, tmp_path: Path) -> None:
        assert cells(read_text(tmp_path, '\n"a\n1","b,c"\nx,y\n')) == {"a\n1": ["x"], "b,c": ["y"]}

    def test_without_header_columns_are_numbered(self, tmp_path: Path) -> None:
        assert cells(read_text(tmp_path, "1,2\n3,4\n", header=False)) == {"c1": ["1", "3"], "c2": ["2", "4"]}

    def test_empty_lines_are_skipped_in_a_single_column_too(self, tmp_path: Path) -> None:
        assert cells(read_text(tmp_path, 'a\n\nx\n""\n\n')) == {"a": ["x", None]}

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le"])
    def test_byte_order_marks_tell_the_encoding(self, tmp_path: Path, encoding: str) -> None:
        mark = "\ufeff" if encoding == "utf-16-le" else ""
        table = read_text(tmp_path, (mark + "größe,ß\n1,é\n").encode(encoding))

        assert cells(table) == {"größe": ["1"], "ß": ["é"]}

    @pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16-be", "shift-jis"])
    def test_named_encoding_is_taken(self, tmp_path: Path, encoding: str) -> None:
        word = "日本" if encoding == "shift-jis" else "größe"

        assert list(read_text(tmp_path, f"{word},b\n1,2\n".encode(encoding), encoding=encoding).columns) == [word, "b"]

    def test_gzip_is_looked_through(self, tmp_path: Path) -> None:
        two_members = gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"3,4\n") + b"\0" * 8
        table = read_text(tmp_path, two_members, "t.csv.gz")

        assert cells(table) == {"a": ["1", "3"], "b": ["2", "4"]}
        assert table.source is not None
        assert table.source.sha256 == hashlib.sha256(two_members).hexdigest()
        assert cells(read_text(tmp_path, two_members, "no-suffix")) == cells(table)

    def test_source_names_path_hash_and_format(self, tmp_path: Path) -> None:
        source = read_text(tmp_path, "a\n1\n").source

        assert source is not None
        assert (source.name, source.format) == (str(tmp_path / "t.csv"), "csv")
        assert source.sha256 == hashlib.sha256(b"a\n1\n").hexdigest()

    def test_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n")))
        table = read("-")

        assert cells(table) == {"a": ["1"], "b": ["2"]}
        assert table.source is not None
        assert table.source.name == "<stdin>"

    def test_standard_input_that_is_no_stream_of_bytes_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("a\n1\n"))

        with pytest.raises(InputError, match=r"^<stdin>: cannot be read"):
            read("-")

    def test_named_pipe_is_read_once(self, tmp_path: Path) -> None:
        path = tmp_path / "pipe"
        os.mkfifo(path)
        writer = threading.Thread(target=path.write_bytes, args=(b"a,b\n1,2\n",))
        writer.start()
        table = read(path)
        writer.join()

        assert cells(table) == {"a": ["1"], "b": ["2"]}

    def test_only_complete_rows_on_demand(self, tmp_path: Path) -> None:
        table = read_text(tmp_path, "a,b\n1,?\n2,x\n,\n", complete_rows_only=True)

        assert cells(table) == {"a": ["2"], "b": ["x"]}
        assert table.n_incomplete_dropped == 2

    def test_file_larger_than_memory_limit_is_read_from_its_path(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(stored_bytes, "MAX_BYTES_IN_MEMORY", 10)
        monkeypatch.setattr(stored_bytes, "CHUNK_BYTES", 7)
        content = "a,b\n" + "".join(f'{i},"ü{i}"\n' for i in range(50))

        for name, data in [("t.csv", content.encode()), ("t.csv.gz", gzip.compress(content.encode()))]:
            table = read_text(tmp_path, data, name)
            assert cells(table)["b"] == [f"ü{i}" for i in range(50)]
            assert table.source is not None
            assert table.source.sha256 == hashlib.sha256(data).hexdigest()

    def test_chunk_borders_do_not_matter(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        content = ("\ufeffä,b\r\n" + 'ö,"1\r\n2"\r\n' * 5).encode()
        expected = cells(read_text(tmp_path, content))
        for size in range(1, 20):
            monkeypatch.setattr(stored_bytes, "CHUNK_BYTES", size)
            assert cells(read_text(tmp_path, content)) == expected
            assert cells(read_text(tmp_path, gzip.compress(content), "t.csv.gz")) == expected

    @pytest.mark.slow
    def test_many_columns(self, tmp_path: Path) -> None:
        names = [f"f{i}" for i in range(3000)]
        table = read_text(tmp_path, ",".join(names) + "\n" + ("0,1," * 1500)[:-1] + "\n" + ("1,1," * 1500)[:-1] + "\n")

        assert (len(table.columns), table["f0"].codes.tolist(), table["f1"].n_distinct) == (3000, [0, 1], 1)

    def test_values_in_several_blocks_share_one_dictionary(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from sfumato.table.io import csv as delimited
        from sfumato.table.io import text

        monkeypatch.setattr(delimited, "_MIN_BLOCK_BYTES", 64)
        monkeypatch.setattr(text, "MAX_LINE_BYTES", 100)
        rows = [(str(i % 7), f"v{i % 11}") for i in range(300)]
        table = read_text(tmp_path, "a,b\n" + "".join(f"{a},{b}\n" for a, b in rows))

        assert list(zip(*cells(table).values(), strict=True)) == rows


class TestSchema:
    content = "age,sex,ill\n30,m,yes\nunknown,f,no\n"

    def schema(self, **changes: Column) -> Schema:
        described = {
            "ill": Column("ill", Role.TARGET),
            "age": Column("age", kind=Kind.NUMERIC, missing=("unknown",)),
            "sex": Column("sex", Role.SENSITIVE),
        }
        return Schema.of((described | changes).values())

    def read(self, folder: Path, schema: Schema, content: str | None = None) -> Table:
        path = folder / "t.csv"
        path.write_text(content or self.content, newline="")
        table = read_table(path, schema=schema)
        assert isinstance(table, Table)
        return table

    def test_is_applied_in_the_order_of_the_file(self, tmp_path: Path) -> None:
        table = self.read(tmp_path, self.schema())

        assert table.schema.names() == ("age", "sex", "ill")
        assert (table.schema.target, table.schema["sex"].role) == ("ill", Role.SENSITIVE)
        assert cells(table)["age"] == ["30", None]

    def test_column_that_does_not_exist_is_refused_with_the_nearest_name(self, tmp_path: Path) -> None:
        with pytest.raises(ColumnNotFoundError, match=r"column 'agee': not found in .*t\.csv.*did you mean 'age'\?"):
            self.read(tmp_path, self.schema(agee=Column("agee")))

    def test_column_that_is_not_described_is_refused(self, tmp_path: Path) -> None:
        hint = "describe it too, or set default_role in the project file"
        with pytest.raises(SchemaError, match=rf"column 'sex': .*Hint: {hint}$") as caught:
            self.read(tmp_path, self.schema().keep(["age", "ill"]))

        assert "sfumato init --update" in in_flag_words(caught.value)

    def test_numeric_column_with_text_names_the_physical_line(self, tmp_path: Path) -> None:
        content = 'age,sex,ill\n\n30,"m\n\nx",yes\nold,f,no\nold,f,no\n'

        with pytest.raises(
            InputError, match=r"t\.csv, line 6, column 'age': is declared numeric, but 2 of 3"
        ) as caught:
            self.read(tmp_path, self.schema(), content)
        assert caught.value.line == 6

    def test_numeric_column_without_header_names_the_line(self, tmp_path: Path) -> None:
        path = tmp_path / "t.csv"
        path.write_text("1\nx\n")

        with pytest.raises(InputError, match="line 2, column 'c1'"):
            read_table(path, schema=Schema.of([Column("c1", kind=Kind.NUMERIC)]), options=ReadOptions(header=False))

    def test_table_is_described_anew(self, tmp_path: Path) -> None:
        table = read_text(tmp_path, self.content)
        again = read_table(table, schema=self.schema())

        assert read_table(table) is table
        assert isinstance(again, Table)
        assert (again.schema.target, cells(again)["age"]) == ("ill", ["30", None])

    def test_binary_table_is_described_anew(self) -> None:
        table = read_table(sp.csr_matrix(np.array([[0, 1, 1], [1, 1, 0]])))
        again = binary(read_table(table, schema=Schema.of([Column("x1", Role.TARGET), Column("x0")])))

        assert (again.feature_names, again.companions.schema.target) == (("x0", "x2"), "x1")
        assert again.companions["x1"].cells().to_pylist() == [1, 1]
        with pytest.raises(ColumnNotFoundError):
            read_table(table, schema=Schema.of([Column("x9")]))


class TestSpreadsheet:
    def book(
        self, folder: Path, rows: list[list[object]], *, title: str = "first", others: tuple[str, ...] = ()
    ) -> Path:
        path = folder / "t.xlsx"
        with xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd"}) as workbook:
            for name in (title, *others):
                sheet = workbook.add_worksheet(name)
                for i, row in enumerate(rows if name == title else [["z"], [1]]):
                    sheet.write_row(i, 0, row)
        return path

    @pytest.mark.slow
    def test_types_are_kept_and_whole_numbers_are_integers(self, tmp_path: Path) -> None:
        rows: list[list[object]] = [
            ["i", "f", "s", "d", "b", 2020],
            [1, 1.5, "x ", date(2020, 1, 2), True, "007"],
            [],
            [2.0, "NA", "?", date(2020, 1, 3), False, "8"],
        ]
        table = read(self.book(tmp_path, rows))

        assert cells(table) == {
            "i": [1, 2],
            "f": [1.5, None],
            "s": ["x", None],
            "d": [date(2020, 1, 2), date(2020, 1, 3)],
            "b": [True, False],
            "2020": ["007", "8"],
        }
        assert [c.kind for c in table.schema][:4] == [Kind.NUMERIC, Kind.NUMERIC, Kind.CATEGORICAL, Kind.DATE]

    @pytest.mark.slow
    def test_sheet_can_be_chosen(self, tmp_path: Path) -> None:
        path = self.book(tmp_path, [["a"], ["x"]], others=("second",))

        assert list(read(path, sheet="second").columns) == ["z"]
        with pytest.raises(InputError, match=r"has no sheet 'secnd'. Hint: did you mean 'second'\?"):
            read(path, sheet="secnd")

    @pytest.mark.slow
    def test_mixed_column_is_refused_with_its_row(self, tmp_path: Path) -> None:
        path = self.book(tmp_path, [["a"], [1], [], ["x"]])

        with pytest.raises(InputError, match=r"column 'a': mixes numbers and text \(row 4\)"):
            read(path)

    @pytest.mark.slow
    def test_mixed_column_is_text_if_declared_categorical(self, tmp_path: Path) -> None:
        path = self.book(tmp_path, [["a"], [3.0], [2.5], ["x"], [True], [date(2020, 1, 2)]])
        table = read_table(path, schema=Schema.of([Column("a")]))

        assert isinstance(table, Table)
        assert cells(table) == {"a": ["3", "2.5", "x", "true", "2020-01-02"]}

    @pytest.mark.slow
    def test_without_header(self, tmp_path: Path) -> None:
        assert cells(read(self.book(tmp_path, [[1, "x"], [2]]), header=False)) == {"c1": [1, 2], "c2": ["x", None]}

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            ([], "its sheet is empty"),
            ([["a", "b"]], "has a header but no data rows"),
            ([["a", ""], [1, 2]], "line 1: column 2 of 2 has no name"),
            ([["a", "a"], [1, 2]], "line 1: columns 1 and 2 have the same name"),
        ],
    )
    def test_bad_sheets(self, tmp_path: Path, rows: list[list[object]], message: str) -> None:
        with pytest.raises(InputError, match=message):
            read(self.book(tmp_path, rows))


class TestArff:
    header = (
        "% note\n@RELATION 'a b'\n\n@attribute \"the age\" NUMERIC\n"
        "@Attribute c {'x y', z,'it\\'s'}\n@attribute s string\n"
    )

    def test_types_quotes_comments_and_missing(self, tmp_path: Path) -> None:
        content = self.header + "@DATA\n% c\n1.5,'x y',\"p,q\"\n?, z ,?\n2,'it\\'s',plain\n3,'x y',\n"
        table = read_text(tmp_path, content, "t.arff")

        assert cells(table) == {
            "the age": ["1.5", None, "2", "3"],
            "c": ["x y", "z", "it's", "x y"],
            "s": ["p,q", None, "plain", None],
        }
        assert [c.kind for c in table.schema] == [Kind.NUMERIC, Kind.CATEGORICAL, Kind.CATEGORICAL]

    def test_sparse_rows_are_filled(self, tmp_path: Path) -> None:
        content = (
            "@relation r\n@attribute a real\n@attribute c {n,y}\n@attribute d date\n@data\n{1 y}\n{0 3,1 'y'}\n{}\n"
        )
        table = read_text(tmp_path, content, "t.arff")

        assert cells(table) == {"a": ["0", "3", "0"], "c": ["y", "y", "n"], "d": ["0", "0", "0"]}

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("a,b\n1,2\n", "line 1: expected @relation"),
            ("@relation r\n@attribute a numeric\n", "has no @data line"),
            ("@relation r\n@data\n1\n", "line 2: @data comes before any @attribute"),
            ("@attribute a numeric\n@data\n", "has no data rows after @data"),
            ("@attribute a numeric\n@data\n1,2\n", "line 3: expected 1 columns, found 2"),
            ("@attribute a numeric\n@data\n'1\n", "line 3: a quote is not closed"),
            ("@attribute a {x\n@data\nx\n", "line 1: the list of values does not end"),
            ("@attribute a relational\n@data\nx\n", "line 1: the type is none of"),
            ("@attribute a\n@data\nx\n", "line 1: expected @attribute NAME TYPE"),
            ("@attribute a {x,y}\n@data\nx\nz\n", "line 4, column 'a': holds a value that its @attribute line"),
            ("@attribute a numeric\n@data\n{1 2}\n", "line 3: a cell of this sparse row"),
            ("@attribute a numeric\n@data\n{0 2\n", "line 3: a sparse row does not end"),
            ("@attribute a numeric\n@attribute a numeric\n@data\n1,2\n", "columns 1 and 2 have the same name"),
        ],
    )
    def test_bad_files(self, tmp_path: Path, content: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            read_text(tmp_path, content, "t.arff")

    def test_numeric_column_with_text_names_the_line_once_a_schema_asks(self, tmp_path: Path) -> None:
        path = tmp_path / "t.arff"
        path.write_text("@attribute a numeric\n@data\n1\n\nx\n")

        with pytest.raises(InputError, match="line 5, column 'a'"):
            read_table(path, schema=Schema.of([Column("a", kind=Kind.NUMERIC)]))

    def test_primary_tumor(self, shared_data: Path) -> None:
        table = read(shared_data / "primary-tumor" / "primary-tumor.arff")

        assert (table.n_rows, len(table.columns)) == (339, 18)
        assert {name: column.n_missing for name, column in table.columns.items() if column.n_missing} == {
            "sex": 1,
            "histologic-type": 67,
            "degree-of-diffe": 155,
            "skin": 1,
            "axillar": 1,
        }


class TestLibsvm:
    def read(self, folder: Path, content: str, **options: object) -> BinaryTable:
        path = folder / "t.svm"
        path.write_text(content)
        return binary(read_table(path, options=ReadOptions(**options)))  # type: ignore[arg-type]

    def test_features_are_called_after_their_index(self, tmp_path: Path) -> None:
        table = self.read(tmp_path, "# note\n+1 2:1 7:1 # x\n-1 2:1 3:0\n\n1.5\n")

        assert table.feature_names == ("f2", "f3", "f7")
        assert table.matrix.toarray().tolist() == [[1, 0, 1], [1, 0, 0], [0, 0, 0]]
        assert table.target().cells().to_pylist() == ["1", "-1", "1.5"]
        assert table.companions.schema["target"].kind is Kind.CATEGORICAL
        assert table.source is not None
        assert table.source.format == "libsvm"

    def test_index_may_start_at_zero(self, tmp_path: Path) -> None:
        assert self.read(tmp_path, "1 0:1\n2 1:1\n").feature_names == ("f0", "f1")

    def test_rows_with_missing_label_can_be_left_out(self, tmp_path: Path) -> None:
        table = self.read(tmp_path, "nan 1:1\n2 2:1\n", complete_rows_only=True)

        assert (table.n_rows, table.matrix.toarray().tolist()) == (1, [[0, 1]])

    def test_schema_may_describe_the_target_only(self, tmp_path: Path) -> None:
        path = tmp_path / "t.svm"
        path.write_text("1 1:1\n2 2:1\n")
        table = binary(read_table(path, schema=Schema.of([Column("target", Role.SENSITIVE)])))

        assert table.companions.schema["target"].role is Role.SENSITIVE

    def test_other_numbers_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(NotBinaryError, match=r"column 'f3': holds entries .*2 in .*t\.svm, first on line 3"):
            self.read(tmp_path, "1 1:1\n# c\n2 3:0.5\n2 3:7\n")

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("# only a comment\n", "holds no rows"),
            ("1 1:1\nx 1:1\n", "line 2: the label is not a number"),
            ("1 1:1\n1 a:1\n", "line 2: expected INDEX:VALUE"),
            ("1 1:1\n1 1\n", "line 2: expected INDEX:VALUE"),
            ("1 2:1 1:1\n", "line 1: indices have to ascend"),
            ("1 99999999999:1\n", "line 1: an index is out of range"),
            ("1 -1:1\n", "line 1: an index is out of range"),
            ("1,2 1:1\n", "line 1: the label is not a number"),
        ],
    )
    def test_bad_files(self, tmp_path: Path, content: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            self.read(tmp_path, content)

    def test_email_corpus(self, shared_data: Path) -> None:
        table = binary(read_table(shared_data / "pu1" / "pu1_bare_body.svm.gz"))

        assert table.matrix.shape == (1099, 24604)
        assert sorted(table.target().counts.tolist()) == [481, 618]


class TestFrames:
    def test_pandas_keeps_types(self) -> None:
        frame = pd.DataFrame(
            {
                "i": [1, 2],
                "f": [0.5, float("nan")],
                "s": ["x ", None],
                "c": pd.Categorical(["b", "a"]),
                "d": pd.to_datetime(["2020-01-02", None]),
                "t": pd.to_datetime(["2020-01-02 03:04", None]),
                "n": pd.array([1, None], dtype="Int64"),
                "b": [True, False],
            }
        )
        table = read(frame)

        assert cells(table) == {
            "i": [1, 2],
            "f": [0.5, None],
            "s": ["x", None],
            "c": ["b", "a"],
            "d": [date(2020, 1, 2), None],
            "t": [datetime(2020, 1, 2, 3, 4), None],
            "n": [1, None],
            "b": [True, False],
        }
        assert table.source is not None
        assert (table.source.name, table.source.format, len(table.source.sha256)) == ("<pandas>", "memory", 64)

    def test_all_libraries_give_the_same_table_and_hash(self, tmp_path: Path) -> None:
        data = {"a": [1, 2, 2], "b": ["x", None, "y"]}
        arrow = pa.table(data)
        sources = [pd.DataFrame(data), pl.DataFrame(data), pl.LazyFrame(data), arrow, arrow.to_batches()[0]]
        path = tmp_path / "t.parquet"
        pq.write_table(arrow, path)
        expected = read(path)
        for source in sources:
            table = read(source)
            for name in data:
                assert table[name].codes.tolist() == expected[name].codes.tolist()
                assert table[name].values.equals(expected[name].values)
        assert len({read(source).source.sha256 for source in sources}) == 1  # type: ignore[union-attr]

    def test_hash_tells_different_contents_apart(self) -> None:
        hashes = {read(pl.DataFrame({"a": v})).source.sha256 for v in ([1, 2], [2, 1], [1, None])}  # type: ignore[union-attr]

        assert len(hashes) == 3

    def test_object_columns_of_one_kind(self) -> None:
        big = 2**70
        frame = pd.DataFrame(
            {
                "n": [1, "?", 3.0],
                "d": [date(2020, 1, 1), datetime(2020, 1, 2), None],
                "t": [date(2020, 1, 1), datetime(2020, 1, 2, 3), pd.NaT],
                "m": [Decimal("1.5"), Decimal("2.25"), None],
                "big": [big, 1, None],
                "b": [True, None, False],
                "np": [np.float64(1.5), np.int64(2), np.datetime64("NaT")],
            },
            dtype=object,
        )

        assert cells(read(frame)) == {
            "n": [1, None, 3],
            "d": [date(2020, 1, 1), date(2020, 1, 2), None],
            "t": [datetime(2020, 1, 1), datetime(2020, 1, 2, 3), None],
            "m": [Decimal("1.50"), Decimal("2.25"), None],
            "big": [str(big), "1", None],
            "b": [True, None, False],
            "np": [1.5, 2.0, None],
        }

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ([1, "x"], "column 'a': mixes numbers and text"),
            (["x", date(2020, 1, 1)], "column 'a': mixes text and dates"),
            ([True, 1], "column 'a': mixes truth values and numbers"),
            ([[1], [2]], "column 'a': holds values that are neither"),
            ([b"x", b"y"], "column 'a': holds values that are neither"),
            ([{"k": 1}, None], "column 'a': holds values that are neither"),
            ([object(), 1], "column 'a': holds values that are neither"),
            ([timedelta(1), timedelta(2)], "column 'a': holds values that are neither"),
        ],
    )
    def test_odd_objects_are_refused(self, values: list[object], message: str) -> None:
        with pytest.raises(InputError, match=message):
            read(pd.DataFrame({"a": pd.Series(values, dtype=object)}))

    def test_mixed_objects_are_text_if_declared_categorical(self) -> None:
        frame = pd.DataFrame({"a": pd.Series([3.0, "x", datetime(2020, 1, 2), datetime(2020, 1, 2, 3)], dtype=object)})
        table = read_table(frame, schema=Schema.of([Column("a")]))

        assert isinstance(table, Table)
        assert cells(table) == {"a": ["3", "x", "2020-01-02", "2020-01-02 03:00:00"]}

    @pytest.mark.parametrize(
        "column",
        [pa.array([[1]]), pa.array([b"x"]), pa.array([{"a": 1}]), pa.array([timedelta(1)])],
        ids=["list", "binary", "struct", "duration"],
    )
    def test_nested_types_are_refused(self, column: pa.Array) -> None:
        with pytest.raises(InputError, match="<pyarrow>, column 'a': holds values that are neither"):
            read(pa.table({"a": column}))

    def test_polars_types(self) -> None:
        frame = pl.DataFrame(
            {
                "c": pl.Series(["u", None], dtype=pl.Categorical),
                "e": pl.Series(["u", "v"], dtype=pl.Enum(["v", "u"])),
                "d": [date(2020, 1, 1), None],
                "m": pl.Series([Decimal("1.5"), None]),
            }
        )

        assert cells(read(frame)) == {
            "c": ["u", None],
            "e": ["u", "v"],
            "d": [date(2020, 1, 1), None],
            "m": [Decimal("1.5"), None],
        }

    def test_polars_objects_are_refused(self) -> None:
        with pytest.raises(InputError, match="<polars>"):
            read(pl.DataFrame({"a": [object(), object()]}, schema={"a": pl.Object}))

    def test_lazy_frame_that_fails_is_one_line(self) -> None:
        frame = pl.LazyFrame({"a": ["CANARY-7f3a"]}).with_columns(pl.col("a").cast(pl.Int64))

        with pytest.raises(InputError, match="<polars>: cannot be turned into an Arrow table") as caught:
            read(frame)
        assert "CANARY" not in str(caught.value)

    def test_numpy_columns_are_numbered(self) -> None:
        masked = np.ma.array([[1, 2], [3, 4]], mask=[[0, 0], [1, 0]])

        assert cells(read(np.array([[1, 2], [3, 4]]))) == {"x0": [1, 3], "x1": [2, 4]}
        assert cells(read(np.array([["a", 1], ["b", 2]], dtype=object))) == {"x0": ["a", "b"], "x1": [1, 2]}
        assert cells(read(masked)) == {"x0": [1, None], "x1": [2, 4]}

    @pytest.mark.parametrize("array", [np.zeros(3), np.zeros((2, 2, 2)), np.zeros((0, 2)), np.zeros((2, 0))])
    def test_other_shapes_are_refused(self, array: np.ndarray) -> None:
        with pytest.raises(InputError, match="<numpy>"):
            read(array)

    def test_complex_numbers_are_refused(self) -> None:
        with pytest.raises(InputError, match="column 'x0'"):
            read(np.array([[1j]]))

    def test_sparse_matrix_is_a_binary_table(self) -> None:
        table = binary(read_table(sp.csr_array(np.array([[0, 1], [1, 1]]))))

        assert (table.feature_names, table.companions.schema.names()) == (("x0", "x1"), ())
        assert table.source is not None
        assert table.source.name == "<scipy>"
        assert read_table(table) is table

    def test_sparse_matrix_with_other_numbers_or_none_is_refused(self) -> None:
        with pytest.raises(NotBinaryError, match="'x1'"):
            read_table(sp.csr_matrix(np.array([[0, 2]])))
        with pytest.raises(InputError, match="not a matrix with rows"):
            read_table(sp.csr_matrix((0, 2)))

    def test_names_are_checked(self) -> None:
        with pytest.raises(InputError, match="columns 1 and 2 have the same name"):
            read(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a "]))
        with pytest.raises(InputError, match="column 1 of 1 has no name"):
            read(pd.DataFrame({" ": [1]}))
        with pytest.raises(InputError, match="several levels"):
            read(pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])))

    def test_no_rows_or_columns(self) -> None:
        with pytest.raises(InputError, match="<pandas>: has no rows"):
            read(pd.DataFrame({"a": []}))
        with pytest.raises(InputError, match="<pandas>: has no columns"):
            read(pd.DataFrame())

    @pytest.mark.parametrize("source", [3, None, b"a,b", [[1, 2]], pd.Series([1])])
    def test_other_objects_are_refused(self, source: object) -> None:
        with pytest.raises((InvalidParameterError, InputError)):
            read(source)


class TestParquet:
    def test_types_are_kept(self, tmp_path: Path) -> None:
        path = tmp_path / "t.parquet"
        pq.write_table(pa.table({"i": [1, None], "f": [0.1, float("nan")], "s": ["?", "x"], "z": pa.nulls(2)}), path)

        assert cells(read(path)) == {"i": [1, None], "f": [0.1, None], "s": [None, "x"], "z": [None, None]}

    def test_numbers_can_be_missing_tokens(self, tmp_path: Path) -> None:
        path = tmp_path / "t.parquet"
        pq.write_table(pa.table({"i": [1, -9], "f": [-9.0, 0.5]}), path)

        assert cells(read(path, missing=("-9",))) == {"i": [1, None], "f": [None, 0.5]}

    def test_without_rows(self, tmp_path: Path) -> None:
        path = tmp_path / "t.parquet"
        pq.write_table(pa.table({"i": pa.array([], pa.int64())}), path)

        with pytest.raises(InputError, match="holds no data rows"):
            read(path)

    def test_large_and_zipped(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path, zipped = tmp_path / "t.parquet", tmp_path / "t.parquet.gz"
        pq.write_table(pa.table({"i": [1, 2]}), path)
        zipped.write_bytes(gzip.compress(path.read_bytes()))
        assert cells(read(zipped)) == {"i": [1, 2]}
        monkeypatch.setattr(stored_bytes, "MAX_BYTES_IN_MEMORY", 10)

        assert cells(read(path)) == {"i": [1, 2]}


class TestFormats:
    @pytest.mark.parametrize(
        ("name", "format_name"),
        [
            ("a.csv", "csv"),
            ("a.CSV.GZ", "csv.gz"),
            ("a.tab", "tsv"),
            ("a.pq", "parquet"),
            ("a.xls", "excel"),
            ("a.ods", "excel"),
            ("a.arff", "arff"),
            ("a.svm.gz", "libsvm.gz"),
            ("adult.data", "csv"),
            ("README", "csv"),
            ("-", "csv"),
        ],
    )
    def test_format_by_suffix(self, name: str, format_name: str) -> None:
        assert format_of(name) == format_name

    def test_format_can_be_given(self, tmp_path: Path) -> None:
        assert list(read_text(tmp_path, "a,b\tc\n1\t2\n", "t.csv", format="tsv").columns) == ["a,b", "c"]

    @pytest.mark.parametrize("options", [{"format": "sas"}, {"encoding": "klingon"}, {"encoding": "rot13"}])
    def test_unknown_names_are_refused(self, tmp_path: Path, options: dict[str, object]) -> None:
        with pytest.raises(InvalidParameterError):
            read_text(tmp_path, "a,b\n1,2\n", **options)

    @pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n", "é"])
    def test_impossible_delimiters_are_refused(self, tmp_path: Path, delimiter: str) -> None:
        with pytest.raises(InvalidParameterError, match="delimiter"):
            read_text(tmp_path, "a,b\n1,2\n", delimiter=delimiter)


def test_adult(shared_data: Path) -> None:
    table = read(shared_data / "adult" / "adult.data", header=False, complete_rows_only=True)

    assert (table.n_rows, table.n_incomplete_dropped, len(table.columns)) == (30_162, 2_399, 15)
    assert sum(c.kind is Kind.NUMERIC for c in table.schema) == 6


class TestArffDeclarations:
    @pytest.mark.parametrize(
        "declaration",
        [
            "@attribute c {a,b} % comment",
            "@attribute c {a,b}% comment",
            "@attribute c {a,b} % a comment with a } in it",
            "@attribute c {a,b} % a comment with a quote' in it",
            "@attribute c { a , 'b' } % it's {odd}",
            '@attribute "c" {"a",b}\t%',
        ],
    )
    def test_comments_after_a_list(self, tmp_path: Path, declaration: str) -> None:
        content = f"@relation r % comment\n@attribute x numeric% comment\n{declaration}\n@data% comment\n1,a\n2,b\n"
        assert cells(read_text(tmp_path, content, "t.arff"))["c"] == ["a", "b"]

    @pytest.mark.parametrize("data_type", ["numeric % c", "REAL%c", "integer\t% {c}", "string % c", 'date "yyyy" % c'])
    def test_comments_after_a_type(self, tmp_path: Path, data_type: str) -> None:
        content = f"@relation r\n@attribute x {data_type}\n@attribute 'y % z' numeric\n@data\n1,3\n2,4\n"
        assert list(read_text(tmp_path, content, "t.arff").columns) == ["x", "y % z"]

    def test_a_percent_sign_among_the_values_is_a_value(self, tmp_path: Path) -> None:
        content = "@relation r\n@attribute c {50%,'a % b',\"c } d\", 7 %} % so\n@data\n50%\n'a % b'\n\"c } d\"\n7 %\n"
        assert cells(read_text(tmp_path, content, "t.arff"))["c"] == ["50%", "a % b", "c } d", "7 %"]

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ("{a,b % c", "does not end with }"),
            ("{a,'b} % c", "does not end with }"),
            ("{don't}", "a quote is not closed"),
        ],
    )
    def test_an_open_list_is_refused(self, tmp_path: Path, values: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            read_text(tmp_path, f"@relation r\n@attribute c {values}\n@data\na\n", "t.arff")
