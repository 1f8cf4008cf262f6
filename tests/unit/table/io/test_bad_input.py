"""Every kind of bad input is one clear line that names file, line and column, and never shows a cell."""

from __future__ import annotations

import gzip
import io
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import python_calamine
import xlsxwriter

from sfumato.errors import InputError, SfumatoError
from sfumato.schema import Column, Kind, Schema
from sfumato.table.io import bytes as stored_bytes
from sfumato.table.io import csv as delimited
from sfumato.table.io import text
from sfumato.table.io.read import ReadOptions, read_table

CANARY = "CANARY-7f3a"


def refused(path: Path, **options: object) -> InputError:
    with pytest.raises(InputError) as caught:
        read_table(path, options=ReadOptions(**options))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return caught.value


def written(folder: Path, content: bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def workbook(rows: list[list[object]]) -> bytes:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as book:
        sheet = book.add_worksheet()
        for i, row in enumerate(rows):
            sheet.write_row(i, 0, row)
    return file.getvalue()


def parquet(data: dict[str, list[object]]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(data), file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        pytest.param(b"", None, "is empty", id="empty"),
        pytest.param(b"\xef\xbb\xbf", None, "is empty", id="only a mark"),
        pytest.param(b"\n\r\n\n", None, "holds nothing but empty lines", id="only line ends"),
        pytest.param(b"a,b\n", None, "has a header but no data rows", id="header only"),
        pytest.param(b"a,b", None, "has a header but no data rows", id="header without end"),
        pytest.param(b"a,b\n1,2\n3\n", 3, "expected 2 columns, found 1", id="short row"),
        pytest.param(b"a,b\n\n1,2,3\n", 3, "expected 2 columns, found 3", id="long row"),
        pytest.param(b'a,b\n"1\n\n2",2\n1,2,3\n', 5, "expected 2 columns, found 3", id="long row after line ends"),
        pytest.param(b"a\n1,2\n", 2, "expected 1 column, found 2", id="one column"),
        pytest.param(b"a,b,a\n1,2,3\n", 1, "columns 1 and 3 have the same name", id="same name"),
        pytest.param(b"\na, ,c\n1,2,3\n", 2, "column 2 of 3 has no name", id="no name"),
        pytest.param(b"a,b\n1,2\n1,\xe9\n", 3, "is not utf-8 text", id="latin-1"),
        pytest.param(b"a,b\r1,2\r1,\xe9\r", 3, "is not utf-8 text", id="latin-1 with carriage returns"),
        pytest.param(b"a,b\n1,\xc3", 2, "is not utf-8 text", id="half a character"),
        pytest.param("a,b\n1,\x80".encode("utf-16") + b"\x00", 2, "is not utf-16 text", id="half of UTF-16"),
        pytest.param("a\n1,\n".encode("utf-16-be"), 1, "holds a NUL byte", id="UTF-16 without mark"),
        pytest.param(b"\xfe\xff" + "a\n1,\n".encode("utf-16-be") + b"\xd8\x00\x00x", 3, "is not utf-16", id="UTF-16"),
        pytest.param(b"a,b\n1,2\n3,\x004\n", 3, "holds a NUL byte", id="NUL"),
        pytest.param(b"\x7fELF\x02\x01\x01\x00\x00\x00", 1, "holds a NUL byte", id="binary"),
        pytest.param(b"\x89PNG\r\n\x1a\n\x00\x00", 1, "is not utf-8 text", id="image"),
        pytest.param(b'a,b\n1,2\n3,"4\n5,6\n', 3, "a quote that is opened here is never closed", id="open quote"),
        pytest.param(b'a,b\n5",2\n3,"4\n', 3, "a quote that is opened here is never closed", id="open, even number"),
        pytest.param(b'a,b\nend,"\n', 2, "a quote that is opened here is never closed", id="open at the end"),
        pytest.param(b'a\nx\n"', 3, "a quote that is opened here is never closed", id="open, one column"),
        pytest.param(b'a,"b\n1,2\n', 1, "a quote that is opened here is never closed", id="open in the header"),
        pytest.param(b"PAR1junk", None, "is a Parquet file, not text", id="parquet"),
        pytest.param(b"PK\x03\x04junk", None, "is an Excel workbook", id="excel"),
        pytest.param(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1junk", None, "is an old Excel workbook", id="old excel"),
    ],
)
def test_bad_text(tmp_path: Path, content: bytes, line: int | None, message: str) -> None:
    path = written(tmp_path, content)
    error = refused(path)

    assert (error.line, error.path) == (line, str(path))
    assert message in str(error)


def test_quote_inside_an_unquoted_cell_is_text(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, b'a,b\n5" pipe,1\nx"y,2\nz,"q""r"\n'))

    assert table["a"].cells().to_pylist() == ['5" pipe', 'x"y', "z"]  # type: ignore[index]


def test_names_over_several_lines_are_shown_on_one(tmp_path: Path) -> None:
    path = written(tmp_path, b'"a\n\x1b[31mb",c\n1,2\n')
    with pytest.raises(SfumatoError) as caught:
        read_table(path, schema=Schema.of([Column("c")]))

    assert str(caught.value).startswith("column 'a  [31mb': is in ")


def test_empty_file_without_header(tmp_path: Path) -> None:
    assert "is empty" in str(refused(written(tmp_path, b""), header=False))


class TestLongLines:
    def test_limit_counts_bytes_of_one_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(text, "MAX_LINE_BYTES", 100)
        fits = b"a,b\n" + b"x" * 98 + b",1\n" * 1

        assert refused(written(tmp_path, b"a,b\n1,2\n" + b"x" * 101)).line == 3
        assert refused(written(tmp_path, fits[:-1] + b"1\n")).line == 2
        assert read_table(written(tmp_path, fits)).n_rows == 1

    @pytest.mark.parametrize("size", [1, 7, 64, 1000])
    def test_chunks_do_not_matter(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
        monkeypatch.setattr(text, "MAX_LINE_BYTES", 100)
        monkeypatch.setattr(stored_bytes, "CHUNK_BYTES", size)
        content = b"a,b\r" + b"1,2\r\n" * 30 + b"x" * 101 + b"\n"

        assert refused(written(tmp_path, content)).line == 32
        assert refused(written(tmp_path, gzip.compress(content), "t.csv.gz")).line == 32

    def test_quoted_cell_over_many_lines_is_limited_too(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(text, "MAX_LINE_BYTES", 100)
        monkeypatch.setattr(delimited, "_MIN_BLOCK_BYTES", 64)
        content = b'a,b\n1,"' + b"long\n" * 100 + b'"\n'
        error = refused(written(tmp_path, content))

        assert (error.line, "never closed" in str(error)) == (2, True)

    def test_file_without_line_ends_is_refused_early(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(text, "MAX_LINE_BYTES", 1 << 20)
        path = tmp_path / "t.csv"
        with path.open("wb") as file:
            file.write(b"x" * (3 << 20))
            file.truncate(300 << 20)

        assert "holds a line longer than 1,048,576 bytes" in str(refused(path))

    def test_sparse_file_of_zeros_is_refused_early(self, tmp_path: Path) -> None:
        path = tmp_path / "t.csv"
        with path.open("wb") as file:
            file.truncate(300 << 20)

        assert refused(path).line == 1

    @pytest.mark.slow
    def test_zipped_line_is_refused_without_unzipping_it_all(self, tmp_path: Path) -> None:
        with gzip.open(tmp_path / "t.csv.gz", "wb", compresslevel=1) as file:
            for _ in range(66):
                file.write(b"x" * (1 << 20))

        assert "holds a line longer than" in str(refused(tmp_path / "t.csv.gz"))


class TestPaths:
    def test_missing_file_suggests_a_neighbour(self, tmp_path: Path) -> None:
        written(tmp_path, b"a\n1\n", "patients.csv")

        assert "does not exist. Hint: did you mean 'patients.csv'?" in str(refused(tmp_path / "patient.csv"))
        assert str(refused(tmp_path / "zzz")).endswith("does not exist.")
        assert "nor can its folder" in str(refused(tmp_path / "no" / "t.csv"))

    def test_folder(self, tmp_path: Path) -> None:
        assert "is a folder, not a file" in str(refused(tmp_path))

    def test_no_permission(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = written(tmp_path, b"a\n1\n")

        def denied(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", denied)

        assert "permission denied" in str(refused(path))

    def test_other_things_that_are_no_files(self, tmp_path: Path) -> None:
        assert "is neither a file nor a pipe" in str(refused(Path("/dev/null")))
        assert "cannot be opened" in str(refused(tmp_path / ("x" * 300)))
        assert "cannot be opened" in str(refused(tmp_path / "a\0b"))
        assert "cannot be opened" in str(refused(written(tmp_path, b"a\n1\n") / "below"))

    @pytest.mark.parametrize("is_there", [True, False])
    def test_name_that_is_not_unicode(self, tmp_path: Path, is_there: bool) -> None:
        path = tmp_path / os.fsdecode(b"\xff.csv")
        if is_there:
            path.write_bytes(b"a\n1\n")

        message = str(refused(path))

        message.encode()
        assert f"{tmp_path}/\N{REPLACEMENT CHARACTER}.csv: its name is not valid Unicode" in message

    def test_neighbour_whose_name_is_not_unicode(self, tmp_path: Path) -> None:
        (tmp_path / os.fsdecode(b"patients\xff.csv")).write_bytes(b"a\n1\n")

        message = str(refused(tmp_path / "patients.csv"))

        assert message.endswith("did you mean 'patients\N{REPLACEMENT CHARACTER}.csv'?")

    def test_read_that_fails_half_way(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(_: object, name: str) -> Iterator[bytes]:
            class Disk(io.BytesIO):
                def read(self, *_: object) -> bytes:
                    raise OSError(5, "Input/output error")

            return original(Disk(), name)

        original = stored_bytes._chunks
        monkeypatch.setattr(stored_bytes, "_chunks", broken)

        assert "cannot be read (Input/output error)" in str(refused(written(tmp_path, b"a\n1\n")))

    @pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.svm", "t.arff"])
    def test_file_that_changes_while_it_is_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        monkeypatch.setattr(stored_bytes, "MAX_BYTES_IN_MEMORY", 4)
        contents = {
            "t.csv": b"a,b\n1,2\n",
            "t.parquet": parquet({"a": [1]}),
            "t.svm": b"1 1:1\n",
            "t.arff": b"@attribute a numeric\n@data\n1\n",
        }
        path = written(tmp_path, contents[name], name)
        check = stored_bytes.StoredBytes.ensure_unchanged

        def touched(stored: stored_bytes.StoredBytes) -> None:
            with path.open("ab") as file:
                file.write(b"\n")
            check(stored)

        monkeypatch.setattr(stored_bytes.StoredBytes, "ensure_unchanged", touched)

        assert "changed while it was being read" in str(refused(path))

    def test_file_that_disappears_while_it_is_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(stored_bytes, "MAX_BYTES_IN_MEMORY", 4)
        path = written(tmp_path, b"a,b\n1,2\n")

        def disappears(_: object) -> str:
            path.unlink()
            return ","

        monkeypatch.setattr(delimited, "sniff_delimiter", disappears)

        assert "does not exist" in str(refused(path))


class TestGzip:
    content = gzip.compress(b"a,b\n" + b"1,2\n" * 1000)

    def test_truncated(self, tmp_path: Path) -> None:
        for n_bytes in (3, 15, len(self.content) // 2, len(self.content) - 1):
            error = refused(written(tmp_path, self.content[:n_bytes], "t.csv.gz"))
            assert "is a truncated gzip file" in str(error)

    def test_damaged(self, tmp_path: Path) -> None:
        middle = len(self.content) // 2
        damaged = self.content[:middle] + b"\xff\xff\xff\xff" + self.content[middle + 4 :]

        assert "is a damaged gzip file" in str(refused(written(tmp_path, damaged, "t.csv.gz")))
        assert "is a damaged gzip file" in str(refused(written(tmp_path, self.content + b"junk", "t.csv.gz")))

    def test_empty(self, tmp_path: Path) -> None:
        assert "is empty" in str(refused(written(tmp_path, b"", "t.csv.gz")))
        assert "is empty" in str(refused(written(tmp_path, gzip.compress(b""), "t.csv.gz")))

    def test_suffix_only(self, tmp_path: Path) -> None:
        assert "is not a gzip file" in str(refused(written(tmp_path, b"a,b\n1,2\n", "t.csv.gz")))


class TestOtherFormats:
    @pytest.mark.parametrize("name", ["t.parquet", "t.xlsx", "t.svm", "t.arff", "t.tsv", "t.parquet.gz", "t.xlsx.gz"])
    def test_empty_files(self, tmp_path: Path, name: str) -> None:
        assert "is empty" in str(refused(written(tmp_path, b"", name)))

    def test_damaged_parquet(self, tmp_path: Path) -> None:
        good = parquet({"a": [1, 2, 3]})
        for bad in (b"a,b\n1,2\n", b"PAR1", good[:-5], good[: len(good) // 2], b"PAR1" + b"\0" * 50 + good[-8:]):
            assert "Parquet file" in str(refused(written(tmp_path, bad, "t.parquet")))

    @pytest.mark.slow
    def test_damaged_workbook(self, tmp_path: Path) -> None:
        good = workbook([["a"], [1]])
        for bad in (b"a,b\n1,2\n", good[:500], good[:-30], good[:600] + b"\0" * 200 + good[800:]):
            assert "cannot be read as an Excel workbook" in str(refused(written(tmp_path, bad, "t.xlsx")))

    @pytest.mark.slow
    def test_cell_far_away_is_refused_before_memory_is_taken_for_all_between(self, tmp_path: Path) -> None:
        file = io.BytesIO()
        with xlsxwriter.Workbook(file) as book:
            sheet = book.add_worksheet()
            sheet.write(0, 0, "a")
            sheet.write(1_048_575, 16_383, CANARY)
        error = refused(written(tmp_path, file.getvalue(), "t.xlsx"))

        assert "holds a sheet of 1,048,576 rows and 16,384 columns" in str(error)

    def test_panic_of_the_parser_is_our_error_and_an_interrupt_is_not(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class PanicException(BaseException):  # Rust's panics have this name
            pass

        class Workbook:
            error: type[BaseException] = PanicException

            @classmethod
            def from_filelike(cls, _: object) -> None:
                raise cls.error(CANARY)

        monkeypatch.setattr(sys, "executable", "")  # in this process
        monkeypatch.setattr(python_calamine, "CalamineWorkbook", Workbook)
        path = written(tmp_path, workbook([["a"], [1]]), "t.xlsx")
        assert "cannot be read as an Excel workbook" in str(refused(path))
        Workbook.error = python_calamine.PasswordError
        assert "is protected by a password" in str(refused(path))
        Workbook.error = KeyboardInterrupt
        with pytest.raises(KeyboardInterrupt):
            read_table(path)


def bad_files() -> dict[str, bytes]:
    """Files with the canary in a cell, each bad in another way."""
    cell = CANARY.encode()
    good_parquet, good_book = parquet({"a": [CANARY], "b": [CANARY]}), workbook([["a", "b"], [CANARY, 1], [1, CANARY]])
    return {
        "short.csv": b"a,b\n" + cell + b"\n",
        "long.csv": b"a,b\n" + cell + b",2,3\n",
        "quote.csv": b'a,b\n1,"' + cell + b"\n",
        "nul.csv": b"a,b\n" + cell + b",\0\n",
        "latin.csv": b"a,b\n" + cell + b"\xe9,2\n",
        "headless.csv": cell + b"," + cell + b"\n1,2\n",
        "open.csv": b'"' + cell + b"\n1,2\n",
        "numbers.csv": b"a,b\n" + cell + b",1\n",
        "cut.csv.gz": gzip.compress(b"a,b\n" + cell + b"\n")[:-4],
        "label.svm": cell + b" 1:1\n",
        "value.svm": b"1 1:" + cell + b"\n",
        "pair.svm": b"1 " + cell + b"\n",
        "short.arff": b"@attribute a string\n@attribute b string\n@data\n" + cell + b"\n",
        "value.arff": b"@attribute a {x}\n@data\n" + cell + b"\n",
        "quote.arff": b"@attribute a string\n@data\n'" + cell + b"\n",
        "head.arff": b"@attribute a string\n" + cell + b"\n",
        "mixed.xlsx": good_book,
        "cut.xlsx": good_book[:-40],
        "cut.parquet": good_parquet[:-6],
        "flipped.parquet": good_parquet.replace(cell, b"\xff" * len(cell)),
        "junk.parquet": cell,
        "junk.xlsx": cell,
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(bad_files()))
@pytest.mark.parametrize("is_described", [False, True])
def test_no_message_shows_a_cell(tmp_path: Path, name: str, is_described: bool) -> None:
    schema = Schema.of([Column("a", kind=Kind.NUMERIC), Column("b", kind=Kind.NUMERIC)]) if is_described else None
    path = written(tmp_path, bad_files()[name], name)
    if name == "numbers.csv" and not is_described:
        return
    with pytest.raises(SfumatoError) as caught:
        read_table(path, schema=schema)
    shown = str(caught.value) + repr(caught.value) + "".join(traceback.format_exception(caught.value))

    assert CANARY not in shown


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": pd.Series([CANARY, 1], dtype=object)}),
        pd.DataFrame({"a": pd.Series([[CANARY], 1], dtype=object)}),
        pa.table({"a": [[CANARY]]}),
        pa.table({"a": [CANARY.encode()]}),
    ],
)
def test_no_message_shows_a_cell_of_a_frame(frame: object) -> None:
    with pytest.raises(SfumatoError) as caught:
        read_table(frame)

    assert CANARY not in "".join(traceback.format_exception(caught.value))
