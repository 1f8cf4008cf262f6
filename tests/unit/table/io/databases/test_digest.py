"""The hash of rows depends on the bag of rows alone, and says when that changed."""

from __future__ import annotations

import datetime
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.table.io.databases import digest
from sfumato.table.io.databases.digest import content_sha256

CELLS = {
    pa.int64(): st.none() | st.integers(-3, 3),
    pa.float64(): st.none() | st.sampled_from([0.0, -0.0, 1.5, 1e300]),
    pa.string(): st.none() | st.text("ab\0é", max_size=3),
    pa.bool_(): st.none() | st.booleans(),
    pa.date32(): st.none() | st.dates(datetime.date(2020, 1, 1), datetime.date(2020, 1, 3)),
    pa.decimal128(6, 2): st.none() | st.sampled_from([Decimal("1.50"), Decimal("2.00")]),
    pa.timestamp("us"): st.none() | st.sampled_from([datetime.datetime(2020, 1, 1, 2, 3, 4, 5)]),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    types = draw(st.lists(st.sampled_from(list(CELLS)), min_size=1, max_size=4))
    rows = draw(st.lists(st.tuples(*(CELLS[own] for own in types)), max_size=8))
    columns = [pa.array([row[i] for row in rows], own) for i, own in enumerate(types)]
    return pa.table(columns, names=[f"n{i}" for i in range(len(types))])


def bag(table: pa.Table) -> Counter[str]:
    """Rows as the definition has them: equal cells are equal, and order does not matter."""
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return Counter(repr([cell + 0.0 if isinstance(cell, float) else cell for cell in row]) for row in rows)


@given(table=tables(), data=st.data())
def test_the_order_of_rows_and_the_size_of_batches_do_not_matter(table: pa.Table, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(table.num_rows)))
    cut = data.draw(st.integers(1, 4))
    other = pa.Table.from_batches(table.take(pa.array(order, pa.int64())).to_batches(cut), table.schema)

    assert content_sha256(other) == content_sha256(table)


@given(one=tables(), data=st.data())
def test_another_bag_of_rows_has_another_hash(one: pa.Table, data: st.DataObject) -> None:
    picked = data.draw(st.lists(st.integers(0, max(one.num_rows - 1, 0)), max_size=8)) if one.num_rows else []
    other = one.take(pa.array(picked, pa.int64()))

    assert (content_sha256(one) == content_sha256(other)) == (bag(one) == bag(other))


def test_names_kinds_and_borders_of_cells_count() -> None:
    texts = pa.table({"a": ["x", "yz"], "b": ["yz", "x"]})

    found = {
        content_sha256(texts),
        content_sha256(texts.rename_columns(["a", "c"])),
        content_sha256(pa.table({"a": ["xy", "z"], "b": ["yz", "x"]})),
        content_sha256(pa.table({"a": ["x", "x"], "b": ["yz", "yz"]})),
        content_sha256(pa.table({"a": [1, 2]})),
        content_sha256(pa.table({"a": ["1", "2"]})),
        content_sha256(pa.table({"a": [1.0, 2.0]})),
        content_sha256(pa.table({"a": pa.array([None, None], pa.int64())})),
        content_sha256(pa.table({"a": pa.array([0, 0], pa.int64())})),
    }

    assert len(found) == 9


def test_the_width_of_stored_numbers_does_not_count() -> None:
    narrow, wide = pa.table({"a": pa.array([1, 2], pa.int16())}), pa.table({"a": pa.array([2, 1], pa.int64())})

    assert content_sha256(narrow) == content_sha256(wide)


def test_different_rows_of_one_key_get_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of the first attempt that do not tell rows apart leave no order; the second attempt finds one."""
    own = digest.keyed_batches
    attempts = []

    def poor(schema, batches, attempt):
        attempts.append(attempt)
        for batch in own(schema, batches, attempt):
            poorer = pa.array(np.zeros(batch.num_rows, dtype=np.uint64)) if attempt == 0 else batch.column(digest.KEY)
            yield batch.set_column(batch.num_columns - 1, digest.KEY, poorer)

    monkeypatch.setattr(digest, "keyed_batches", poor)
    table = pa.table({"a": [3, 1, 2]})

    assert content_sha256(table) == content_sha256(table.take([2, 0, 1]))
    assert attempts == [0, 1, 0, 1]
    assert content_sha256(pa.table({"a": [7, 7]})) == content_sha256(pa.table({"a": [7, 7]}))
    assert attempts[4:] == [0, 0]


def test_rows_that_never_have_an_order_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "_mixed", lambda bits: bits * np.uint64(0))

    with pytest.raises(ValueError, match="order"):
        content_sha256(pa.table({"a": [3, 1, 2]}))
