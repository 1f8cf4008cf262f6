"""Minimal sample uniques against a count over all subsets."""

import json
from collections import Counter
from itertools import combinations
from math import prod

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproductions.public_data import load_adult
from sfumato.attack import uniques
from sfumato.attack.uniques import minimal_uniques
from sfumato.errors import InvalidParameterError
from sfumato.schema import Column, Role, Schema
from sfumato.table.binary import BinaryTable, Feature, as_binary_matrix
from sfumato.table.coding import Table

NAMES = "abcd"


def table(rows, names=NAMES):
    cells = {name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(names)}
    return Table.from_arrow(pa.table(cells), Schema.of([Column(name) for name in names]))


def naive(rows, largest, names=NAMES):
    """Find the unique rows of each set, and those that are unique on no proper subset."""
    found = {}
    for size in range(1, largest + 1):
        for chosen in combinations(range(len(names)), size):
            counts = Counter(tuple(row[i] for i in chosen) for row in rows)
            found[chosen] = {r for r, row in enumerate(rows) if counts[tuple(row[i] for i in chosen)] == 1}
    minimal = {
        chosen: {
            row
            for row in unique
            if not any(row in found[part] for size in range(1, len(chosen)) for part in combinations(chosen, size))
        }
        for chosen, unique in found.items()
    }
    return found, minimal


values = st.one_of(st.sampled_from("xyz"), st.none())
tables = st.lists(st.tuples(values, values, values, values), min_size=1, max_size=25)


@given(tables, st.integers(1, 4))
def test_sets_and_scores_are_those_of_a_count_over_all_subsets(rows, largest):
    unique, minimal = naive(rows, largest)

    found = minimal_uniques(table(rows), largest=largest)

    assert [(s.columns, s.n_unique, s.n_minimal) for s in found.sets] == [
        (tuple(NAMES[i] for i in chosen), len(unique[chosen]), len(minimal[chosen])) for chosen in unique
    ]
    scores = [0] * len(rows)
    for chosen, who in minimal.items():
        for row in who:
            scores[row] += prod(4 - i for i in range(len(chosen), largest))
    assert found.scores.tolist() == scores


@pytest.mark.slow
@given(tables)
def test_blame_is_the_share_of_minimal_uniques_with_the_column(rows):
    _, minimal = naive(rows, 3)
    total = sum(len(who) for who in minimal.values())

    summary = minimal_uniques(table(rows)).summary()

    json.dumps(summary)
    assert summary["n_minimal"] == total
    for entry in summary["columns"]:
        place = NAMES.index(entry["column"])
        with_column = sum(len(who) for chosen, who in minimal.items() if place in chosen)
        assert entry["n_minimal"] == with_column
        assert entry["share"] == pytest.approx(with_column / max(total, 1))
    assert summary["n_rows_with"] == len(set().union(*minimal.values()))
    assert sum(entry["n_minimal"] for entry in summary["by_size"]) == total


def test_rows_by_hand():
    found = minimal_uniques(table([("f", "a"), ("f", "b"), ("m", "a"), ("m", "a")], "xy"), largest=2)

    assert [(s.columns, s.n_unique, s.n_minimal) for s in found.sets] == [
        (("x",), 0, 0),
        (("y",), 1, 1),
        (("x", "y"), 2, 1),
    ]
    assert found.scores.tolist() == [1, 1, 0, 0]
    assert found.by_column["y"] == {"n_minimal": 2, "share": 1.0, "score_share": 1.0}


def test_only_sets_within_a_group_are_searched():
    rows = [("1", "1", "1", "1"), ("1", "2", "1", "2")]

    found = minimal_uniques(table(rows), within=[["a", "b"], ["c", "d"]])

    assert [s.columns for s in found.sets] == [("a",), ("b",), ("c",), ("d",), ("a", "b"), ("c", "d")]


def test_only_quasi_identifiers_are_searched_unless_others_are_named():
    rows = table([("1", "1", "1", "1"), ("2", "2", "2", "2")])
    described = rows.with_schema(rows.schema.with_roles({"a": Role.SENSITIVE, "b": Role.OTHER}))

    assert minimal_uniques(described).names == ("c", "d")
    assert minimal_uniques(described, ["a"]).names == ("a",)


def test_sparse_tables_are_searched_too():
    nothing = table([("1",) * 4] * 3).keep([])
    bits = BinaryTable(as_binary_matrix([[1, 0], [0, 1], [0, 1]]), (Feature("p", "p"), Feature("q", "q")), nothing)

    assert [s.n_unique for s in minimal_uniques(bits).sets] == [1, 1, 1]


def test_too_many_sets_lower_the_size(monkeypatch):
    rows = table([("1", "2", "1", "2"), ("2", "1", "1", "1")])
    monkeypatch.setattr(uniques, "MOST_SETS", 10)
    assert minimal_uniques(rows, largest=3).largest == 2
    monkeypatch.setattr(uniques, "MOST_CELLS", 19)
    assert minimal_uniques(rows, largest=3).largest == 1


def test_progress_is_told():
    told = []
    minimal_uniques(table([("1",) * 4]), largest=1, progress=lambda *step: told.append(step))

    assert told == [(number, 4, "uniques") for number in range(1, 5)]


@pytest.mark.parametrize("largest", [0, -1, True, 2.0])
def test_sizes_out_of_range_are_refused(largest):
    with pytest.raises(InvalidParameterError, match="largest"):
        minimal_uniques(table([("1",) * 4]), largest=largest)


def test_nothing_to_search():
    assert minimal_uniques(table([])).summary()["n_rows_with"] == 0
    assert minimal_uniques(table([("1",) * 4]), []).summary()["n_sets"] == 0


@pytest.mark.slow
def test_adult_agrees_with_a_count(shared_data):
    names = ["age", "workclass", "education", "marital-status", "occupation", "race", "sex", "native-country"]
    adult = load_adult(complete=True).keep(names)
    rows = list(zip(*(adult[name].codes.tolist() for name in names), strict=True))
    chosen = [0, 2, 7]
    _, minimal = naive([tuple(row[i] for i in chosen) for row in rows], 3, "abc")

    found = {s.columns: s.n_minimal for s in minimal_uniques(adult).sets}

    assert len(found) == 92
    for part, who in minimal.items():
        assert found[tuple(names[chosen[i]] for i in part)] == len(who)
