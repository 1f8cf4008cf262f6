"""Files scanned out of core: every line is counted as it stands, or the file is refused."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.counting.cells import cell_table
from sfumato.counting.engine import Engine, default_engine
from sfumato.errors import ColumnNotFoundError, InputError, SchemaError
from sfumato.table.io.read import read_table

CANARY = "canary-4711"


def cells_of(path, columns):
    cells = cell_table(path, columns)
    decoded = [
        [values[code].as_py() for code in codes] for values, codes in zip(cells.values, cells.codes.T, strict=True)
    ]
    return dict(zip(zip(*decoded, strict=True), cells.counts.tolist(), strict=True))


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"], ids=["comma", "semicolon", "tab", "bar"])
def test_separator_is_taken_from_the_header(tmp_path, delimiter):
    path = write(tmp_path, "a.csv", delimiter.join("ab") + "\n" + delimiter.join("xy") + "\n" + delimiter.join("xy"))

    assert cells_of(path, ["a", "b"]) == {("x", "y"): 2}


def test_fields_are_trimmed_texts_and_tokens_are_missing(tmp_path):
    path = write(tmp_path, "a.csv", 'a, b \n007,x\n7,\n 7,""\nNA, x\u00a0\n?,x\n')

    assert cells_of(str(path), ["a", "b"]) == {("007", "x"): 1, ("7", None): 2, (None, "x"): 2}


def test_file_is_counted_as_it_would_be_read(tmp_path):
    path = write(tmp_path, "a.csv", 'a;b\n1;x \n1.0; x\n\n01;?\n"1 ";\n\n')
    read, scanned = cell_table(read_table(path), ["a", "b"]), cell_table(path, ["a", "b"])

    assert read.n_rows == scanned.n_rows == 4
    assert sorted(read.counts.tolist()) == sorted(scanned.counts.tolist())
    assert {tuple(map(str, v.to_pylist())) for v in read.values} == {
        tuple(map(str, v.to_pylist())) for v in scanned.values
    }


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (b'\xef\xbb\xbfa,b\r\n"x\ny","p,""q"\r\n', ["a", "b"]),
        (b'"a\nc",b\n"x\ny","p,""q"\n', ["a\nc", "b"]),
        (b'a, b\n"x\ny","p,""q"', ["a", "b"]),
    ],
    ids=["byte-order-mark", "newline-in-header", "space-in-header"],
)
def test_quoted_fields_and_odd_headers(tmp_path, content, columns):
    assert cells_of(write(tmp_path, "a.txt", content), columns) == {("x\ny", 'p,"q'): 1}


def test_single_column_keeps_its_empty_lines(tmp_path):
    assert cells_of(write(tmp_path, "a.csv", "a\nx\n\nx\n"), ["a"]) == {("x",): 2, (None,): 1}


def test_compressed_files_are_scanned(tmp_path):
    path = write(tmp_path, "a.TSV.gz", gzip.compress(b"a\tb\n1\t2\n"))

    assert cells_of(path, ["b", "a"]) == {("2", "1"): 1}


def test_header_alone_is_an_empty_table(tmp_path):
    path = write(tmp_path, "a.csv", "a,b\n")

    assert cells_of(path, ["a"]) == {}
    assert default_engine().n_rows(path) == 0


@pytest.mark.parametrize("name", ["x[1].csv", "x*.csv", "x?.csv"])
def test_signs_of_a_pattern_in_a_path_mean_themselves(tmp_path, name):
    write(tmp_path, "x1.csv", "a\nother\n")
    write(tmp_path, "xx.csv", "a\nother\n")

    assert cells_of(write(tmp_path, name, "a\nmine\n"), ["a"]) == {("mine",): 1}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (f"a,b\n1,2\n{CANARY},2,3\n", 3),
        (f"a,b\n{CANARY}\n1,2\n", 2),
        (f"a,b\n1,2\n{CANARY},é\n".encode("latin-1"), 3),
        (f'a,b\n1,2\n"{CANARY},2\n', 3),
    ],
    ids=["too-many-fields", "too-few-fields", "not-utf-8", "open-quote"],
)
def test_line_that_does_not_fit_is_refused_without_showing_it(tmp_path, content, line):
    path = write(tmp_path, "a.csv", content)

    with pytest.raises(InputError) as caught:
        cell_table(path, ["a", "b"])

    assert CANARY not in str(caught.value)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "header"),
        ("a.csv", b"\na,b\n1,2\n", "header"),
        ("a.csv", b'"a' + b"x" * 200_000, "header"),
        ("a.csv", b"\xff\xfea,b", "not UTF-8"),
        ("a.csv.gz", b"not compressed", "not compressed"),
        ("a.xlsx", b"", "not a kind of file"),
        ("a", b"", "not a kind of file"),
        ("a.parquet", b"not parquet", "cannot be counted"),
    ],
)
def test_unreadable_file_is_refused(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message):
        cell_table(write(tmp_path, name, content), ["a"])


def test_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        cell_table(tmp_path / "none.csv", ["a"])


def test_header_that_repeats_a_name_is_refused_only_when_needed(tmp_path):
    path = write(tmp_path, "a.csv", "a,b,a,A\n1,2,3,4\n")

    assert cells_of(path, ["b", "A"]) == {("2", "4"): 1}
    with pytest.raises(SchemaError, match="more than once"):
        cell_table(path, ["a"])
    with pytest.raises(ColumnNotFoundError):
        cell_table(path, ["c"])


def test_parquet_columns_keep_their_names_and_types(tmp_path):
    path = tmp_path / "p[1].parquet"
    pq.write_table(pa.table([[10, 9, None], [1, 2, 1], [True, None, True]], names=["A", "a", ""]), path)

    cells = cell_table(path, ["A", "", "a"])

    assert cells.values[0].to_pylist() == [9, 10, None]
    assert cells.codes.tolist() == [[0, 1, 1], [1, 0, 0], [2, 0, 0]]


def test_parquet_file_without_columns_is_refused(tmp_path):
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table({}), path)

    with pytest.raises(InputError, match="cannot be counted"):
        cell_table(path, [])


def test_file_opened_as_a_frame_has_its_own_names(tmp_path):
    path = write(tmp_path, "a.csv", "age,town\n30,Ulm\n")

    with Engine() as engine:
        assert engine.collect(engine.frame(path)).to_pylist() == [{"age": "30", "town": "Ulm"}]


@pytest.mark.slow
def test_few_columns_of_a_wide_file_are_scanned_but_not_all(tmp_path):
    path = write(tmp_path, "a.csv", ",".join(f"w{i}" for i in range(3_000)) + "\n" + ",".join(["x"] * 3_000) + "\n")

    with Engine() as engine:
        assert cell_table(path, ["w2999", "w5"], engine).counts.tolist() == [1]
        assert engine.n_rows(path) == 1
        with pytest.raises(InputError, match="too many to scan"):
            engine.frame(path)
