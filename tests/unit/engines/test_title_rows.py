"""Rows above the header, headers with holes, and workbooks with several sheets: named and asked for."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from sfumato.cli.main import run
from sfumato.engines.blocks.rows import open_large
from sfumato.errors import InputError, InvalidParameterError
from sfumato.project.describe import describe_to_project
from sfumato.project.file import load_project
from sfumato.schema import Column, Kind, Schema
from sfumato.table.io.read import ReadOptions, read_table

ROWS: list[list[Any]] = [["age", "sex", "ill"], [31, "f", "y"], [40, "m", "n"], [52, "f", "n"]]


def as_csv(rows: list[list[Any]], delimiter: str = ",") -> bytes:
    return "".join(delimiter.join(map(str, row)) + "\n" for row in rows).encode()


def as_xlsx(sheets: dict[str, list[list[Any]]], charts: tuple[str, ...] = ()) -> bytes:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as book:
        for title, rows in sheets.items():
            sheet = book.add_worksheet(title)
            for i, row in enumerate(rows):
                sheet.write_row(i, 0, row)
        for title in charts:
            chart = book.add_chart({"type": "line"})
            chart.add_series({"values": [next(iter(sheets)), 1, 0, 3, 0]})
            book.add_chartsheet(title).set_chart(chart)
    return file.getvalue()


def written(folder: Path, name: str, rows: list[list[Any]]) -> Path:
    path = folder / name
    path.write_bytes(as_xlsx({"table": rows}) if name.endswith(".xlsx") else as_csv(rows))
    return path


def cells(path: Path, **options: Any) -> dict[str, list[str]]:
    table = read_table(path, options=ReadOptions(**options))
    return {
        name: [str(v) for v in column.values.take(column.codes).to_pylist()] for name, column in table.columns.items()
    }  # type: ignore[union-attr]


def refused(path: Path, **options: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        read_table(path, options=ReadOptions(**options))
    return caught.value


WANTED = {"age": ["31", "40", "52"], "sex": ["f", "m", "f"], "ill": ["y", "n", "n"]}


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx"])
@pytest.mark.parametrize(
    ("above", "n_rows"),
    [
        ([["Admissions 2024", "", ""]], 1),
        ([["Admissions 2024", "", ""], ["", "", ""], ["as of May", "", ""]], 3),
        ([["", "", "Ward 7"]], 1),
    ],
)
class TestTitleRows:
    @pytest.mark.slow
    def test_are_suggested_and_skipped(self, tmp_path: Path, name: str, above: list[list[Any]], n_rows: int) -> None:
        path = written(tmp_path, name, [*above, *ROWS])

        error = refused(path)

        assert f"skip {n_rows} rows" in error.hint
        assert "skip_rows" in error.remedy
        assert cells(path, skip_rows=n_rows) == WANTED

    @pytest.mark.slow
    def test_without_a_header(self, tmp_path: Path, name: str, above: list[list[Any]], n_rows: int) -> None:
        path = written(tmp_path, name, [*above, *ROWS[1:]])

        assert list(cells(path, skip_rows=n_rows, header=False).values()) == list(WANTED.values())

    @pytest.mark.slow
    def test_lines_are_those_of_the_file(self, tmp_path: Path, name: str, above: list[list[Any]], n_rows: int) -> None:
        path = written(tmp_path, name, [*above, *ROWS])
        schema = Schema.of([Column("age"), Column("sex", kind=Kind.NUMERIC), Column("ill")])

        with pytest.raises(InputError) as caught:
            read_table(path, schema=schema, options=ReadOptions(skip_rows=n_rows))

        assert caught.value.line == n_rows + 2


@pytest.mark.parametrize("title", ["Admissions 2024\n\n", "Admissions, 2024\n", "Admissions 2024;\n"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_title_of_another_width_is_seen(tmp_path: Path, title: str, delimiter: str) -> None:
    path = tmp_path / "t.csv"
    rows = [["age", "sex", "ill", "ward"], *([*row, "x"] for row in ROWS[1:])]
    path.write_bytes(title.encode() + as_csv(rows, delimiter))

    error = refused(path)

    assert f"skip {title.count(chr(10))} rows" in error.hint
    assert list(cells(path, skip_rows=title.count("\n"))) == ["age", "sex", "ill", "ward"]


@pytest.mark.parametrize("n_skipped", [0, 1, 2, 3])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_blocks_give_the_same_cells(tmp_path: Path, n_skipped: int, end: str) -> None:
    lines = [f'a "title" {i}' for i in range(n_skipped)] + ["age,sex", '31,"f', 'x"', "40,m"]
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbf" + (end.join(lines) + end).encode())
    options = ReadOptions(skip_rows=n_skipped)

    at_once, large = read_table(path, options=options), open_large(path, memory=1 << 30, options=options)

    assert at_once.columns["sex"].values.equals(large.outline.columns["sex"].values)  # type: ignore[union-attr]
    assert at_once.n_rows == large.n_rows == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t.csv", "t.xlsx"])
def test_a_header_with_a_hole_above_full_rows_is_no_title(tmp_path: Path, name: str) -> None:
    error = refused(written(tmp_path, name, [["age", "", "ill"], *ROWS[1:]]))

    assert "skip" not in error.hint


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t.csv", "t.xlsx"])
@pytest.mark.parametrize(
    ("header", "problem", "hint"),
    [
        (["age", "", "ill"], "column 2 of 3 has no name", "give column 2 a name in line 1"),
        (["", "sex", "ill"], "column 1 of 3 has no name", "give column 1 a name, or leave it out if it only numbers"),
        (["age", "sex", "age"], "columns 1 and 3 have the same name", "rename one of the columns 1 and 3 in line 1"),
    ],
)
def test_what_is_wrong_with_a_header_is_said_by_position(
    tmp_path: Path, name: str, header: list[str], problem: str, hint: str
) -> None:
    error = refused(written(tmp_path, name, [header, *ROWS[1:]]))

    assert error.problem == problem
    assert error.hint.startswith(hint)
    assert error.hint.endswith("if that line holds data instead of names, state that there is no header")
    assert error.remedy == ("header",)


def test_a_format_that_always_has_names_is_not_told_of_a_header(tmp_path: Path) -> None:
    path = tmp_path / "t.arff"
    path.write_text("@relation r\n@attribute a numeric\n@attribute a numeric\n@data\n1,2\n")

    error = refused(path)

    assert (error.hint, error.remedy) == ("rename one of the columns 1 and 2", ())


@pytest.mark.parametrize("n_rows", [-1, True, "1"])
def test_only_a_count_is_skipped(tmp_path: Path, n_rows: Any) -> None:
    with pytest.raises(InvalidParameterError, match="skip_rows must be a whole number"):
        read_table(written(tmp_path, "t.csv", ROWS), options=ReadOptions(skip_rows=n_rows))


def test_a_format_without_lines_skips_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="skip_rows must be 0 in a format other than csv, tsv, excel"):
        read_table(tmp_path / "t.parquet", options=ReadOptions(skip_rows=1))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t.csv", "t.xlsx"])
def test_all_rows_skipped(tmp_path: Path, name: str) -> None:
    assert "after the first 9" in refused(written(tmp_path, name, ROWS), skip_rows=9).problem


class TestSheets:
    @pytest.mark.slow
    def test_several_are_named_and_asked_for(self, tmp_path: Path) -> None:
        path = tmp_path / "t.xlsx"
        path.write_bytes(as_xlsx({"people": ROWS, "empty": [], "codes, old": [["a"], [1]]}))

        error = refused(path)

        assert error.problem == "holds 2 sheets: 'people', 'codes, old'"
        assert error.remedy == ("sheet",)
        assert cells(path, sheet="people") == WANTED
        assert cells(path, sheet="codes, old") == {"a": ["1"]}

    @pytest.mark.slow
    @pytest.mark.parametrize("charts", [(), ("picture",)])
    def test_the_only_one_with_something_in_it_is_read(self, tmp_path: Path, charts: tuple[str, ...]) -> None:
        path = tmp_path / "t.xlsx"
        path.write_bytes(as_xlsx({"empty": [], "people": ROWS, "also empty": []}, charts))

        assert cells(path) == WANTED

    @pytest.mark.slow
    @pytest.mark.parametrize("command", ["init", "release", "compare", "audit"])
    def test_the_command_line_names_its_option(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
    ) -> None:
        path = tmp_path / "t.xlsx"
        path.write_bytes(as_xlsx({"people": ROWS, "codes": ROWS}))

        assert run([command, str(path), *(["--dry-run"] if command == "release" else [])]) == 3
        assert "holds 2 sheets: 'people', 'codes'. Hint: choose one of them (--sheet)" in capsys.readouterr().err


@pytest.mark.slow
def test_a_project_keeps_sheet_and_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    path.write_bytes(as_xlsx({"codes": [["a"], [1]], "people": [["Admissions", "", ""], *ROWS]}))
    options = ReadOptions(sheet="people", skip_rows=1)

    describe_to_project(path, tmp_path / "sfumato.toml", options=options)
    project = load_project(tmp_path / "sfumato.toml")

    assert (project.options.sheet, project.options.skip_rows) == ("people", 1)
    assert project.read().n_rows == 3


@pytest.mark.parametrize(
    ("written_as", "what"), [("-1", "0 or more"), ("true", "a whole number"), ('"1"', "a whole number")]
)
def test_a_project_is_told_what_a_count_is(tmp_path: Path, written_as: str, what: str) -> None:
    path = tmp_path / "sfumato.toml"
    path.write_text(f'[data]\npath = "t.csv"\nskip_rows = {written_as}\n')

    with pytest.raises(InputError, match=f"'skip_rows' in \\[data\\] must be {what}"):
        load_project(path)
