"""Ordered categories of data frames are the order of a column, in memory and in blocks, and come back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.engines.blocks.rows import open_large
from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import Table
from sfumato.table.io.frames import like_frame
from sfumato.table.io.read import read_table
from sizes import examples

SIZES = ["small", "middle", "large", "huge"]
CELLS = ["large", "small", None, "middle", "small", "large"]
CANARY = "CANARY-7f3a"


def in_pandas(categories: list[str], cells: list[str | None]) -> pd.DataFrame:
    return pd.DataFrame({"size": pd.Categorical(cells, categories=categories, ordered=True), "n": range(len(cells))})


def in_polars(categories: list[str], cells: list[str | None]) -> pl.DataFrame:
    return pl.DataFrame({"size": pl.Series(cells, dtype=pl.Enum(categories)), "n": range(len(cells))})


def in_lazy_polars(categories: list[str], cells: list[str | None]) -> pl.LazyFrame:
    return in_polars(categories, cells).lazy()


def in_arrow(categories: list[str], cells: list[str | None]) -> pa.Table:
    codes = pa.array([None if cell is None else categories.index(cell) for cell in cells], pa.int8())
    size = pa.DictionaryArray.from_arrays(codes, pa.array(categories), ordered=True)
    return pa.table({"size": size, "n": range(len(cells))})


FRAMES: list[Callable[[list[str], list[str | None]], Any]] = [in_pandas, in_polars, in_lazy_polars, in_arrow]


def read(frame: Any, schema: Schema | None = None) -> Table:
    table = read_table(frame, schema=schema)
    assert isinstance(table, Table)
    return table


@pytest.mark.parametrize("frame", FRAMES)
def test_the_order_of_categories_is_the_order_of_the_column(frame: Callable[..., Any]) -> None:
    made = frame(SIZES, CELLS)
    whole, large = read(made), open_large(made, memory=10**9)

    assert whole.schema["size"].kind is Kind.ORDERED
    assert whole.schema["size"].domain == tuple(SIZES)
    assert large.schema == whole.schema
    assert large.source.sha256 == whole.source.sha256  # type: ignore[union-attr]


@pytest.mark.parametrize("frame", FRAMES)
@examples(25)
@given(data=st.data())
def test_any_order_of_any_texts_is_kept(frame: Callable[..., Any], data: st.DataObject) -> None:
    text = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=5)
    categories = data.draw(st.lists(text.map(str.strip).filter(bool), min_size=3, max_size=6, unique=True))
    cells = data.draw(st.lists(st.none() | st.sampled_from(categories), min_size=1, max_size=8))
    tokens = set(Schema.of([]).missing)
    domain = tuple(own for own in categories if own not in tokens)
    made = frame(categories, cells)
    column = read(made).schema["size"]

    assert open_large(made, memory=10**9).schema["size"] == column
    if len(domain) >= 3:
        assert column.domain == domain
    else:
        assert not column.domain or set(column.domain) <= set(domain)


def test_what_has_no_order_gets_none() -> None:
    plain = pd.DataFrame({"size": pd.Categorical(CELLS, categories=SIZES)})
    numbers = pd.DataFrame({"size": pd.Categorical([3, 1, 2], categories=[3, 1, 2], ordered=True)})
    few = pd.DataFrame({"size": pd.Categorical(["dog", "cat"], categories=["dog", "cat"], ordered=True)})
    blank = pd.DataFrame({"size": pd.Categorical(["x", "y"], categories=["x", "x ", "y", "z"], ordered=True)})
    free = pl.DataFrame({"size": pl.Series(["dog", "cat", "cow"], dtype=pl.Categorical)})

    assert read(numbers).schema["size"].kind is Kind.NUMERIC
    for frame in (few, blank, free):
        assert read(frame).schema["size"].domain is None
    assert read(plain).schema["size"].domain != tuple(SIZES)


def test_a_schema_says_more_than_categories() -> None:
    made = in_pandas(["2020-01-03", "2020-01-01", "2020-01-02"], ["2020-01-01", "2020-01-03"])
    dated = Schema.of([Column("size", kind=Kind.DATE), Column("n", kind=Kind.NUMERIC)])
    declared = Schema.of(
        [Column("size", kind=Kind.ORDERED, domain=tuple(reversed(SIZES))), Column("n", kind=Kind.NUMERIC)]
    )
    ordered = Schema.of([Column("size", kind=Kind.ORDERED), Column("n", kind=Kind.NUMERIC)])

    assert read(made, dated).schema["size"].kind is Kind.DATE
    assert read(in_pandas(SIZES, CELLS), declared).schema["size"].domain == tuple(reversed(SIZES))
    assert read(in_pandas(SIZES, CELLS), ordered).schema["size"].domain == tuple(SIZES)


@pytest.mark.parametrize("frame", [in_pandas, in_polars])
def test_categories_come_back_without_those_that_no_row_has(frame: Callable[..., Any]) -> None:
    made = frame([*SIZES, CANARY], CELLS)
    again = like_frame(read(made), made)
    own = again["size"].dtype

    assert list(own.categories) == ["small", "middle", "large"]
    assert again["size"].to_list()[0] == "large"
    assert not isinstance(made, pd.DataFrame) or own.ordered
    assert read(again).schema["size"].domain == ("small", "middle", "large")


@pytest.mark.parametrize("frame", [in_pandas, in_polars])
def test_cells_that_are_no_categories_stay_texts(frame: Callable[..., Any]) -> None:
    made = frame(SIZES, CELLS)
    ranges = Table.from_arrow(
        pa.table({"size": ["[small, large]"] * 6, "n": range(6)}), Schema.of([Column("size"), Column("n")])
    )
    again = like_frame(ranges, made)

    assert again["size"].to_list() == ["[small, large]"] * 6


@pytest.mark.parametrize("frame", [in_pandas, in_polars])
def test_a_release_cuts_categories_in_their_order_and_names_no_other(frame: Callable[..., Any]) -> None:
    cells = ["small", "middle", "large", "huge"] * 6
    roles = {"size": "quasi-identifier", "n": "identifier"}
    release = sfumato.release(frame([*SIZES, CANARY], cells), mechanism="mondrian", k=12, roles=roles)
    found = set(release.table.to_arrow().column("size").to_pylist())

    assert found <= {"[small, middle]", "[large, huge]"}
    assert CANARY not in release.manifest.to_json()
