"""Containment matching against a loop over people and rows."""

import json

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sfumato.attack.correspondence import Correspondence
from sfumato.attack.risk import ContainmentAttack, containment_attack, containment_matching
from sfumato.errors import InvalidParameterError
from sfumato.manifest import draft_manifest
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable, Feature, as_binary_matrix
from sfumato.table.coding import Table

N_ITEMS = 5
bits = st.lists(st.lists(st.integers(0, 1), min_size=N_ITEMS, max_size=N_ITEMS), min_size=1, max_size=15)


def sparse(rows, names):
    nothing = Table.from_arrow(pa.table({"y": ["n"] * len(rows)}), Schema.of([Column("y", Role.OTHER)])).keep([])
    return BinaryTable(as_binary_matrix(np.array(rows)), tuple(Feature(n, n) for n in names), nothing)


@pytest.mark.slow
@given(bits, bits, st.sets(st.integers(0, N_ITEMS - 1), min_size=1), st.integers(0, 10))
def test_candidates_are_those_of_a_loop(people, rows, kept, seed):
    kept = sorted(kept)
    released = np.array(rows)[:, kept]
    place = [kept.index(item) if item in kept else -1 for item in range(N_ITEMS)]
    attack = ContainmentAttack(sp.csr_matrix(np.array(people)), sp.csr_matrix(released), place)
    able = np.flatnonzero(np.array(people).sum(axis=1) >= 2)

    known = attack.known_items(able, 2, np.random.default_rng(seed))

    for person, items in zip(able, known.tolist(), strict=True):
        assert len(set(items)) == 2
        assert all(people[person][item] for item in items)
    expected = [sum(all(row[i] for i in items if i in kept) for row in rows) for items in known.tolist()]
    assert attack.candidates(known).tolist() == expected


@pytest.mark.slow
@given(bits)
def test_shares_are_those_of_the_people_drawn(people):
    attack = ContainmentAttack(sp.csr_matrix(np.array(people)), sp.csr_matrix(np.array(people)), range(N_ITEMS))

    (found,) = containment_matching(attack, items_known=[N_ITEMS], crowds=[2, 3])

    full = [row for row in people if all(row)]  # whoever has all ones: the ones known are all of them
    assert found["n_people"] == len(full)
    assert found["n_without"] == 0
    assert found["least"] == (len(full) or None)
    assert found["below"] == {"2": float(len(full) == 1), "3": float(len(full) in (1, 2))}
    assert found["expected"] == pytest.approx(1 / len(full) if full else 0)


def test_one_known_item_finds_all_rows_that_have_it():
    people = [[1, 0], [1, 0], [0, 1]]
    attack = ContainmentAttack(sp.csr_matrix(people), sp.csr_matrix(people), [0, 1])

    (found,) = containment_matching(attack, items_known=[1], crowds=[2])

    assert found == {
        "n_known": 1,
        "n_people": 3,
        "n_without": 0,
        "least": 1,
        "mean": pytest.approx(5 / 3),
        "below": {"2": pytest.approx(1 / 3)},
        "expected": pytest.approx(2 / 3),
    }


def test_people_without_any_row_are_counted_apart():
    attack = ContainmentAttack(sp.csr_matrix([[1], [1]]), sp.csr_matrix([[0], [0]]), [0])

    (found,) = containment_matching(attack, items_known=[1])

    assert (found["n_without"], found["least"], found["mean"], found["expected"]) == (2, None, None, 0.0)
    assert set(found["below"].values()) == {0.0}


def test_same_seed_same_people():
    rng = np.random.default_rng(0)
    people = sp.csr_matrix((rng.random((400, 12)) < 0.4).astype(int))
    attack = ContainmentAttack(people, people, range(12))

    def run(seed):
        return json.dumps(containment_matching(attack, seed=seed, most_people=50))

    assert run(1) == run(1)
    assert run(1) != run(2)
    assert json.loads(run(1))[0]["n_people"] == 50


def test_items_of_a_sparse_original_that_were_dropped_are_of_no_use():
    original = sparse([[1, 0, 1], [1, 0, 0], [1, 1, 1]], "pqr")
    released = original.select([0])

    attack = containment_attack(Correspondence(original, released, None))

    assert attack.n_items.tolist() == [2, 1, 3]
    assert attack.candidates(np.array([[0, 2], [2, 2]])).tolist() == [3, 3]
    second = containment_attack(Correspondence(original, original.select([1]), None))
    assert second.candidates(np.array([[0, 2], [0, 1]])).tolist() == [3, 1]


def test_features_of_a_table_are_the_items():
    columns = [Column("age", kind=Kind.NUMERIC), Column("smokes")]
    cells = pa.table({"age": [10, 30, 30], "smokes": ["0", "1", "0"]})
    original = Table.from_arrow(cells, Schema.of(columns))
    nothing = original.keep([])
    features = (Feature("old", "age", "interval", above=20.0), Feature("smokes", "smokes"))
    released = BinaryTable(as_binary_matrix([[0, 0], [1, 1], [1, 0]]), features, nothing)
    manifest = draft_manifest(original, released, mechanism="t", parameters={}, guarantees=[], evidence={})

    for shown in (released, released.to_table()):
        attack = containment_attack(Correspondence(original, shown, manifest))
        assert attack.n_items.tolist() == [0, 2, 1]
        assert attack.candidates(np.array([[0, 1], [0, 0]])).tolist() == [1, 2]


def test_features_computed_from_0_1_columns_are_the_items():
    original = Table.from_arrow(pa.table({"smokes": ["0", "1", "0"]}), Schema.of([Column("smokes")]))
    released = BinaryTable(
        as_binary_matrix([[1], [0], [1]]), (Feature("no", "smokes", "one-of", ("0",)),), original.keep([])
    )
    manifest = draft_manifest(original, released, mechanism="t", parameters={}, guarantees=[], evidence={})

    attack = containment_attack(Correspondence(original, released, manifest))

    assert attack.n_items.tolist() == [1, 0, 1]
    assert attack.candidates(np.array([[0]])).tolist() == [2]


def test_other_tables_are_not_attacked():
    words = Table.from_arrow(pa.table({"job": ["a", "b"]}), Schema.of([Column("job")]))
    sensitive = Table.from_arrow(pa.table({"job": ["0", "1"]}), Schema.of([Column("job", Role.SENSITIVE)]))

    assert containment_attack(Correspondence(words, words, None)) is None
    assert containment_attack(Correspondence(sensitive, sensitive, None)) is None


@pytest.mark.parametrize("settings", [{"items_known": [0]}, {"items_known": [True]}, {"crowds": [1.5]}])
def test_numbers_out_of_range_are_refused(settings):
    attack = ContainmentAttack(sp.csr_matrix([[1]]), sp.csr_matrix([[1]]), [0])

    with pytest.raises(InvalidParameterError):
        containment_matching(attack, **settings)
