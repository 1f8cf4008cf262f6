"""Columns that would be numeric but for a few rows, and typed columns that mix kinds."""

from __future__ import annotations

import io
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xlsxwriter

from sfumato.errors import InputError
from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import Table
from sfumato.table.io.read import ReadOptions, read_table
from sfumato.table.kinds import MixedColumn, mixed_columns

NUMBERS = [str(i) for i in range(40)]


def found_in(cells: list[str | None], kind: Kind = Kind.CATEGORICAL) -> list[MixedColumn]:
    return mixed_columns(Table.from_arrow(pa.table({"x": cells}), Schema.of([Column("x", kind=kind)])))


def test_the_rows_that_are_no_numbers_are_counted_and_the_first_is_found() -> None:
    assert found_in([*NUMBERS, None, "none", "-1.5e3", "none"]) == [MixedColumn("x", 2)]


@pytest.mark.parametrize(
    "cells",
    [
        pytest.param(NUMBERS, id="all numbers"),
        pytest.param([*NUMBERS, None], id="all numbers, some missing"),
        pytest.param([*NUMBERS, *["other"] * 5], id="too many others"),
        pytest.param([str(i % 10) for i in range(100)] + ["other"], id="ten numbers"),
        pytest.param([f"{i % 10}.{'0' * (i // 10)}" for i in range(100)] + ["other"], id="ten numbers, many spellings"),
        pytest.param([*(str(n) for n in range(10_000, 10_040)), "02139", "x"], id="codes"),
        pytest.param(["a", "b"] * 20, id="text"),
        pytest.param([], id="no rows"),
    ],
)
def test_other_columns_are_not_found(cells: list[str | None]) -> None:
    assert found_in(cells) == []


def test_what_is_not_finite_is_no_number() -> None:
    assert found_in([*NUMBERS, "nan", "inf", "1e999"]) == [MixedColumn("x", 3)]


def test_typed_and_otherwise_declared_columns_are_left_alone() -> None:
    assert found_in([*NUMBERS, "none"], Kind.ORDERED) == []
    typed = pa.table({"x": np.arange(100)})
    assert mixed_columns(Table.from_arrow(typed, Schema.of([Column("x", kind=Kind.CATEGORICAL)]))) == []


def test_a_mixed_csv_column_is_found_after_reading(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{n},u\n" for n in NUMBERS) + "n/k,v\n")

    table = read_table(path)

    assert isinstance(table, Table)
    assert mixed_columns(table) == [MixedColumn("a", 1)]


CELLS: list[object] = [1, 2.5, "canary", None, date(2024, 1, 2)]
TEXTS = ["1", "2.5", "canary", None, "2024-01-02"]


def workbook(folder: Path) -> Path:
    content = io.BytesIO()
    book = xlsxwriter.Workbook(content, {"in_memory": True})
    sheet = book.add_worksheet()
    day = book.add_format({"num_format": "yyyy-mm-dd"})
    for row, cell in enumerate(["x", *CELLS]):
        sheet.write(row, 1, "u" if row else "y")
        if isinstance(cell, date):
            sheet.write_datetime(row, 0, cell, day)
        elif cell is not None:
            sheet.write(row, 0, cell)
    book.close()
    path = folder / "t.xlsx"
    path.write_bytes(content.getvalue())
    return path


@pytest.mark.slow
@pytest.mark.parametrize("source", ["workbook", "pandas", "numpy"])
def test_mixed_typed_columns_are_text_when_asked_for(tmp_path: Path, source: str) -> None:
    frame = pd.DataFrame({"x": pd.Series(CELLS, dtype=object)})
    given = {"workbook": workbook(tmp_path), "pandas": frame, "numpy": np.array([[cell] for cell in CELLS], object)}

    with pytest.raises(InputError, match="mixes") as caught:
        read_table(given[source])
    table = read_table(given[source], options=ReadOptions(mixed_as_text=True))

    assert "canary" not in str(caught.value)
    assert isinstance(table, Table)
    name = table.schema.names()[0]
    assert table[name].cells().to_pylist() == TEXTS
    assert table.schema[name].kind is Kind.CATEGORICAL


def test_columns_of_one_kind_stay_typed_when_mixtures_are_text() -> None:
    frame = pd.DataFrame({"x": pd.Series([1, 2, None], dtype=object), "y": pd.Series([1, "a", "b"], dtype=object)})

    table = read_table(frame, options=ReadOptions(mixed_as_text=True))

    assert isinstance(table, Table)
    assert table["x"].cells().to_pylist() == [1, 2, None]
    assert table["y"].cells().to_pylist() == ["1", "a", "b"]


def test_a_mixed_column_that_is_declared_numeric_is_refused_all_the_same() -> None:
    frame = pd.DataFrame({"x": pd.Series([1, "canary"], dtype=object)})
    schema = Schema.of([Column("x", kind=Kind.NUMERIC)])

    with pytest.raises(InputError, match="is declared numeric, but 1 of 2 rows are not numbers"):
        read_table(frame, schema=schema, options=ReadOptions(mixed_as_text=True))
