"""Labels of rows that a hierarchy was not fitted to, beside the hierarchy's rows read naively."""

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.mechanisms import time_limit
from sfumato.mechanisms.hierarchies.builders import calendar_levels, intervals_at
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy, covered
from sfumato.mechanisms.lattice import recoder as global_recoding
from sfumato.mechanisms.lattice.levels import LevelRecoding, counts_of_values, released_rows_of_values
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.lattice.search import search_lattice
from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import Table

AGES = Hierarchy.from_rows([(str(age), f"{age // 10 * 10}s", "*") for age in range(20, 40)])


def table_of(cells, described):
    return Table.from_arrow(pa.table({"x": pa.array(cells, pa.string())}), Schema.of([described]))


def labels(hierarchy, described, trained, new, level):
    """Fit to some cells, and give the labels of others."""
    table = table_of(trained, described)
    fitted = covered(hierarchy, table["x"], "x", described.kind)
    rows = np.zeros(len(trained), dtype=np.intp)
    shown = counts_of_values(hierarchy, fitted, released_rows_of_values(table["x"], rows == 0))
    recoding = LevelRecoding((described,), (hierarchy,), (fitted,), np.array([[level]]), rows, 0.0, (shown,))
    return recoding.generalized(table_of(new, described))["x"].cells().to_pylist()


@st.composite
def hierarchies(draw):
    values = draw(st.lists(st.integers(0, 99).map(str), min_size=1, max_size=12, unique=True))
    groups = draw(st.lists(st.sampled_from("pqr"), min_size=len(values), max_size=len(values)))
    return [(value, group, "*") for value, group in zip(values, groups, strict=True)]


@pytest.mark.slow
@given(hierarchies(), st.sampled_from([Kind.NUMERIC, Kind.CATEGORICAL]), st.integers(0, 2), st.data())
def test_new_rows_have_the_labels_of_their_own_rows_of_the_hierarchy(rows, kind, level, data):
    """Whatever values the hierarchy was fitted to."""
    cells = st.lists(st.sampled_from([row[0] for row in rows]), min_size=1, max_size=8)
    trained, new = data.draw(cells), data.draw(cells)

    found = labels(Hierarchy.from_rows(rows), Column("x", kind=kind), trained, new, level)

    assert found == [next(row[level] for row in rows if row[0] == cell) for cell in new]


@pytest.mark.slow
@given(st.lists(st.integers(0, 60), min_size=1, max_size=6), st.integers(0, 2))
def test_numbers_that_are_not_listed_go_with_the_next_lower_one(new, level):
    listed = range(10, 50, 10)
    hierarchy = Hierarchy.from_rows([(str(n), "low" if n < 30 else "high", "*") for n in listed])
    rows = {str(n): row for n, row in zip(listed, hierarchy.rows(), strict=True)}

    found = labels(hierarchy, Column("x", kind=Kind.NUMERIC), ["40"], [str(n) for n in new], level)

    assert found == [rows[str(max([n for n in listed if n <= number], default=10))][level] for number in new]


def test_new_numbers_between_two_values_get_the_interval_that_holds_them():
    hierarchy = intervals_at(["16", "17", "25", "64", "90", "91"], [0, 18, 65], merge=())

    found = labels(hierarchy, Column("x", kind=Kind.NUMERIC), ["17", "90"], ["18", "20", "64.0", "70", "17.5", "99"], 1)
    assert found == ["[18, 64]", "[18, 64]", "[18, 64]", "≥ 65", "[0, 17]", "≥ 65"]


def test_new_numbers_get_half_open_intervals_without_their_ends():
    rows = [("0.1", "[0, 0.5[", "*"), ("0.2", "[0, 0.5[", "*"), ("0.9", "[0.5, 1]", "*")]

    found = labels(Hierarchy.from_rows(rows), Column("x", kind=Kind.NUMERIC), ["0.1"], ["0.49", "0.5", "1"], 1)
    assert found == ["[0, 0.5[", "[0.5, 1]", "[0.5, 1]"]


def test_new_dates_get_their_own_month_where_there_is_one():
    hierarchy = calendar_levels(["2024-02-20", "2024-02-21", "2024-03-20", "2023-01-01"])

    new = ["2024-03-01", "2024-02-28", "2024-02-01"]
    assert labels(hierarchy, Column("x", kind=Kind.DATE), ["2023-01-01"], new, 1) == ["2024-03", "2024-02", "2024-02"]


def test_numbers_keep_the_spelling_of_the_rows_that_were_fitted():
    assert labels(AGES, Column("x", kind=Kind.NUMERIC), ["30.0"], ["30", "30.00", "31"], 0) == ["30.0", "30.0", "31"]


def test_texts_that_no_order_places_become_a_star_and_missing_stays():
    numeric = Column("x", kind=Kind.NUMERIC)
    ordered = Column("x", kind=Kind.ORDERED, domain=("s", "m", "l"))
    sizes = Hierarchy.from_rows([("s", "small", "*"), ("l", "large", "*")])

    assert labels(AGES, numeric, ["21"], ["abc", "35", None, "50"], 1) == ["*", "30s", None, "30s"]
    assert labels(sizes, Column("x"), ["s"], ["m", "l", None], 1) == ["*", "large", None]
    assert labels(sizes, ordered, ["l"], ["m", "s"], 1) == ["small", "small"]
    assert labels(sizes, ordered, ["l"], [None, "l"], 2) == ["*", "*"]


def test_a_hierarchy_that_lists_missing_says_what_it_becomes():
    rows = [("a", "x", "*"), ("b", "x", "*"), ("", "x", "*"), ("c", "y", "*")]

    assert labels(Hierarchy.from_rows(rows), Column("x"), ["a"], [None, "b", "c", "d"], 1) == ["x", "x", "y", "*"]


@pytest.mark.parametrize("max_seconds", [7.0, 60.0])
def test_regrouping_gets_the_time_that_the_search_left(max_seconds):
    cells = [str(age) for age in (21, 21, 25, 25, *[31] * 30, *[38] * 30)]
    recoder = GlobalRecoder(k=3, max_suppressed_fraction=0.1, hierarchies={"x": AGES}, max_seconds=max_seconds)

    now = [0.0]

    def searched(problem, seconds):
        now[0] += 5.0
        return search_lattice(problem, seconds)

    with (
        patch.object(time_limit.time, "monotonic", lambda: now[0]),
        patch.object(global_recoding, "search_lattice", searched),
        patch.object(global_recoding, "regroup", wraps=global_recoding.regroup) as regroup,
    ):
        recoder.fit(table_of(cells, Column("x", kind=Kind.NUMERIC)))

    assert [call.args[2] for call in regroup.call_args_list] == [max_seconds - 5.0]
    assert recoder.n_suppressed_ == 0
