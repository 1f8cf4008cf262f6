"""Containment where persons have several rows: k counts persons, in every search and in the audit."""

import json
from dataclasses import replace
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import person_oracles as oracle
from sfumato.audit.auditor import AuditorHas
from sfumato.audit.levels.anonymity import Patterns, fewest_holders, known_items
from sfumato.audit.verify import audit_release
from sfumato.counting.bitsets import ProjectedRows
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.guarantees import Containment
from sfumato.manifest import manifest_digest
from sfumato.measures.containment import containment_level
from sfumato.mechanisms.containment import itemsets, optimal, support
from sfumato.mechanisms.containment.base import Labelled
from sfumato.mechanisms.containment.feasibility import maximal_columns, maximal_sets_of, reduce_table
from sfumato.mechanisms.containment.greedy import Criterion, GreedyContainmentSelector
from sfumato.mechanisms.containment.improvement import SwappableRows, improved_columns
from sfumato.mechanisms.containment.itemsets import heaviest_itemsets, largest_itemsets
from sfumato.mechanisms.registry import build_mechanism
from sfumato.mechanisms.time_limit import TimeBudget
from sfumato.publishing.propose import make_release
from sfumato.schema import Column, Role, Schema
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.coding import Table
from sizes import examples
from tests.guarantee_names import by_name, name_of

SEARCHES = ["greedy-containment", "maximal-containment", "exact-containment", "optimal-containment"]
REVEALS = ["ones", "zeros", "both"]


@st.composite
def people(draw, most_columns=5):
    """Draw rows of 0 and 1, the person of each, and a level."""
    n_columns = draw(st.integers(2, most_columns))
    row = st.tuples(*[st.integers(0, 1)] * n_columns)
    rows = draw(st.lists(row, min_size=4, max_size=14))
    persons = draw(st.lists(st.integers(0, 5), min_size=len(rows), max_size=len(rows)))
    return rows, persons, draw(st.integers(2, 3))


def matrix_of(rows):
    return sp.csc_matrix(np.array(rows, dtype=np.uint8))


def codes_of(persons):
    return np.array(persons, dtype=np.int32)


def reduced_of(rows, persons, k):
    return reduce_table(matrix_of(rows), k, None, codes_of(persons))


def labelled(rows, persons, reveals=None):
    """Give rows classes that depend on the columns, and both of them to some row."""
    classes = np.array([(sum(row) + place) % 2 for place, row in enumerate(rows)], dtype=np.int32)
    classes[:2] = 0, 1
    codes = None if reveals is None else np.array([REVEALS.index(one) + 1 for one in reveals], dtype=np.uint8)
    return Labelled(matrix_of(rows), classes, 2, codes, persons=codes_of(persons), person="patient")


def weights_of(rows):
    return np.array([3 + 7 * (c % 3) + c for c in range(len(rows[0]))], dtype=np.int64)


# The level, and which sets are feasible.


@given(people(), st.data())
def test_level_is_that_of_the_definition(table, data):
    rows, persons, _ = table
    columns = data.draw(st.sets(st.integers(0, len(rows[0]) - 1)))
    found = containment_level(matrix_of(rows)[:, sorted(columns)], None, codes_of(persons))

    assert found == oracle.contained_level(rows, persons, columns)


@given(people())
def test_supports_add_up_with_signs(table):
    rows, persons, k = table
    reduced = reduced_of(rows, persons, k)
    summed = reduced.added_up()
    patterns = summed.matrix.toarray()

    for mask in range(1, 1 << reduced.n_columns):
        itemset = np.array([mask >> c & 1 for c in range(reduced.n_columns)])
        features = [reduced.members[c][0] for c in np.flatnonzero(itemset)]
        holders = {p for row, p in zip(rows, persons, strict=True) if all(row[f] for f in features)}
        assert summed.counts[(patterns >= itemset).all(axis=1)].sum() == len(holders)


@given(people())
def test_all_maximal_sets_are_listed(table):
    rows, persons, k = table
    if len(set(persons)) < k:
        return
    reduced = reduced_of(rows, persons, k)
    expected = oracle.maximal_of(oracle.feasible_sets(rows, persons, k))

    by_lattice = maximal_sets_of(reduced, k, 1000)
    by_transversals, complete = maximal_columns(reduced, k, 1000)

    assert set(map(frozenset, by_lattice.sets)) == expected
    assert {frozenset(reduced.features(columns)) for columns in by_transversals} == expected
    assert by_lattice.complete
    assert complete


def test_persons_with_too_many_rows_to_add_up_are_counted_all_the_same(monkeypatch):
    random = np.random.default_rng(3)
    rows = [tuple(row) for row in (random.random((60, 7)) < 0.4).astype(int).tolist()]
    persons = random.integers(0, 9, 60).tolist()
    reduced = reduced_of(rows, persons, 4)
    expected = maximal_sets_of(reduced, 4, 1000)
    monkeypatch.setattr(support, "_MOST_STEPS", 0)

    assert reduced.added_up() is None
    assert maximal_sets_of(reduced, 4, 1000) == expected
    assert set(map(frozenset, expected.sets)) == oracle.maximal_of(oracle.feasible_sets(rows, persons, 4))
    selector = build_mechanism("optimal-containment", {"k": 4})
    selector._fit(labelled(rows, persons), None)
    best = max(selector.search_["separated_pairs"], 1)
    assert best <= selector.search_["separated_pairs_bound"]
    assert frozenset(selector.selected_columns_.tolist()) in oracle.maximal_of(oracle.feasible_sets(rows, persons, 4))


# The searches.


@given(people(4), st.sampled_from(get_args(Criterion)), st.sampled_from(["stop", "skip"]), st.data())
def test_greedy_accepts_what_keeps_k_persons_and_nothing_else(table, criterion, on_infeasible, data):
    rows, persons, k = table
    reveals = data.draw(st.lists(st.sampled_from(REVEALS), min_size=len(rows[0]), max_size=len(rows[0])))
    if len(set(persons)) < k:
        return
    selector = GreedyContainmentSelector(k, criterion, on_infeasible, reveals="both")
    selector._fit(labelled(rows, persons, reveals), None)

    chosen = set()
    for step in selector.trace_:
        keeps = oracle.contained_level(rows, persons, chosen | {step.feature}, reveals) >= k
        assert step.accepted == keeps
        chosen |= {step.feature} if keeps else set()
        assert keeps or step is selector.trace_[-1] or on_infeasible == "skip"
    assert chosen == set(selector.selected_columns_.tolist())
    assert selector.containment_level_ == oracle.contained_level(rows, persons, chosen, reveals)
    if on_infeasible == "skip":
        assert frozenset(chosen) in oracle.maximal_of(oracle.feasible_sets(rows, persons, k, reveals))


def test_features_that_a_pair_rules_out_are_excluded_by_persons():
    """Three rows have both columns, which are those of one person."""
    rows = [(1, 1)] * 3 + [(1, 0)] * 4 + [(0, 1)] * 4
    persons = [0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    for by, excludes in ((None, False), (codes_of(persons), True)):
        found = ProjectedRows(matrix_of(rows), np.zeros(11, dtype=np.int32), 1, None, None, by)
        found.add(0)
        found.exclude_conflicts(3)
        assert found.excluded[1] == excludes


@pytest.mark.slow
@pytest.mark.parametrize("most_listed", [24, 0])
def test_optimal_is_the_heaviest_feasible_set(monkeypatch, most_listed):
    """By all sets and by branch and bound."""
    monkeypatch.setattr(optimal, "LATTICE_COLUMNS", most_listed)

    @given(people())
    @examples(60)
    def holds(table):
        rows, persons, k = table
        if len(set(persons)) < k:
            return
        data = labelled(rows, persons)
        selector = build_mechanism("optimal-containment", {"k": k})
        selector._fit(data, None)
        ones = np.array(rows)
        pairs = [(i, j) for i in range(len(ones)) for j in range(i) if data.classes[i] != data.classes[j]]
        weights = [sum(ones[i, c] != ones[j, c] for i, j in pairs) for c in range(ones.shape[1])]
        feasible = oracle.feasible_sets(rows, persons, k)
        heaviest = max(sum(weights[c] for c in columns) for columns in feasible)

        assert frozenset(selector.selected_columns_.tolist()) in feasible
        assert sum(weights[c] for c in selector.selected_columns_) == heaviest
        assert selector.search_["proven"]

    holds()


@given(people())
def test_exchanges_end_in_maximal_sets(table):
    rows, persons, k = table
    reduced = reduced_of(rows, persons, k)
    if len(set(persons)) < k or not reduced.n_columns:
        return
    weights = reduced.weights(weights_of(rows))
    found = improved_columns(reduced, k, (), (weights, weights[::-1].copy()), TimeBudget(30))

    assert frozenset(reduced.features(found)) in oracle.maximal_of(oracle.feasible_sets(rows, persons, k))


@given(people(4), st.data())
def test_obstacles_are_the_columns_that_let_another_one_in(table, data):
    rows, persons, k = table
    reduced = reduced_of(rows, persons, k)
    if len(set(persons)) < k or not reduced.n_columns:
        return
    swappable = SwappableRows(reduced, k)
    swappable.add_all(data.draw(st.permutations(range(reduced.n_columns))))
    feasible = oracle.feasible_sets(rows, persons, k)

    def is_feasible(columns):
        return frozenset(reduced.features(columns)) in feasible

    chosen = set(swappable.chosen)
    assert is_feasible(chosen)
    for column in set(range(reduced.n_columns)) - chosen:
        fits = [out for out in sorted(chosen) if is_feasible(chosen - {out} | {column})]
        assert swappable.obstacles(column) == fits


@pytest.mark.slow
@given(people())
def test_itemsets_are_those_of_k_persons(table):
    rows, persons, k = table
    expected = oracle.maximal_of(oracle.frequent_sets(rows, persons, k))
    weights = weights_of(rows)
    largest = largest_itemsets(matrix_of(rows), weights, k, r=100, persons=codes_of(persons))
    heaviest = heaviest_itemsets(matrix_of(rows), weights, k, persons=codes_of(persons))

    assert largest.proven
    assert set(map(frozenset, largest.itemsets)) == expected
    assert heaviest.proven
    assert heaviest.worths == sorted((weights[list(one)].sum() for one in expected), reverse=True)[:1]


@pytest.mark.slow
@pytest.mark.parametrize("dense_cells", [1 << 22, 8])
def test_itemsets_of_larger_tables_are_those_of_k_persons(monkeypatch, dense_cells):
    """As a matrix, and as lists of entries."""
    monkeypatch.setattr(itemsets, "_DENSE_CELLS", dense_cells)
    for seed in range(2):
        random = np.random.default_rng(seed)
        rows = [tuple(row) for row in (random.random((60, 7)) < 0.5).astype(int).tolist()]
        persons = random.integers(0, 15, 60).tolist()
        expected = oracle.maximal_of(oracle.frequent_sets(rows, persons, 5))
        found = largest_itemsets(matrix_of(rows), weights_of(rows), 5, r=300, persons=codes_of(persons))
        by_rows = oracle.maximal_of(oracle.frequent_sets(rows, range(60), 5))

        assert set(map(frozenset, found.itemsets)) == expected
        assert expected != by_rows


# Releases, and their audit.


@given(people(), st.data())
def test_the_audit_counts_by_the_definition(table, data):
    rows, persons, _ = table
    width = len(rows[0])
    reveals = data.draw(st.just([]) | st.lists(st.sampled_from(REVEALS), min_size=width, max_size=width))
    patterns = Patterns(known_items(sp.csr_matrix(np.array(rows)), reveals), None)
    found = fewest_holders(patterns, np.arange(len(rows)), codes_of(persons))

    assert found == oracle.contained_level(rows, persons, range(width), reveals or None)


def visits(n_rows=200, n_columns=6, n_persons=60, seed=0):
    """Make visits: some people come often, and most of their visits look alike."""
    random = np.random.default_rng(seed)
    often = np.minimum(random.geometric(min(1, 6 / n_persons), n_rows) - 1, n_persons - 1)
    usual = (random.random((n_persons, n_columns)) < 0.35)[often] ^ (random.random((n_rows, n_columns)) < 0.05)
    cells = {f"x{c}": pa.array(usual[:, c].astype(int)) for c in range(n_columns)}
    kept = np.where(random.random(n_rows) < 0.5, "yes", "no")
    table = pa.table({"patient": pa.array([f"p{one}" for one in often]), **cells, "kept": pa.array(kept)})
    return Table.from_arrow(table, schema_of(n_columns))


def schema_of(n_columns):
    features = [Column(f"x{c}", Role.QUASI_IDENTIFIER) for c in range(n_columns)]
    return Schema.of([Column("patient", Role.PERSON), *features, Column("kept", Role.TARGET)])


def level_by_definition(table, entry):
    """Level of the released features, which are columns of the original."""
    cells = table.to_arrow()
    rows = list(zip(*(cells.column(name).to_pylist() for name in entry["columns"]), strict=True))
    persons = cells.column("patient").to_pylist()
    return oracle.contained_level(rows, persons, range(len(entry["columns"])), entry.get("reveals") or None)


@pytest.mark.parametrize("reveals", ["both", "zeros", {"x0": "both", "x1": "zeros"}])
def test_other_revealing_values_are_counted_by_persons_too(reveals):
    table = visits()
    asked = {"k": 4, "on_infeasible": "skip", "reveals": reveals}
    stated = by_name(make_release(table, build_mechanism("greedy-containment", asked)))
    kind = "k-anonymity" if reveals == "both" else "containment"
    by_persons = stated[f"{kind} by persons"]
    words = {"reveals": ["both"] * len(by_persons["columns"])} if reveals == "both" else {}

    assert by_persons["audited"] == level_by_definition(table, by_persons | words) >= 4
    assert set(stated) == {kind, f"{kind} by persons"}


def test_the_default_counts_persons_of_features():
    release = make_release(visits(), build_mechanism("auto", {"k": 4, "attacker_knows": "ones"}))

    assert {"containment", "containment by persons"} == set(by_name(release))


@pytest.mark.parametrize(("attacker_knows", "kind"), [("all", "k-anonymity"), ("ones", "containment")])
def test_the_default_counts_persons_of_sparse_tables(attacker_knows, kind):
    table = visits()
    names = [f"x{c}" for c in range(6)]
    ones = np.column_stack([table.to_arrow().column(name).to_numpy() for name in names])
    sparse = BinaryTable(
        sp.csc_matrix(ones.astype(np.uint8)),
        tuple(Feature(name, name) for name in names),
        table.keep(["patient", "kept"]),
    )
    release = make_release(sparse, build_mechanism("auto", {"k": 4, "attacker_knows": attacker_knows}))
    by_persons = by_name(release)[f"{kind} by persons"]
    reveals = {"reveals": ["both"] * len(by_persons["columns"])} if kind == "k-anonymity" else {}

    assert by_persons["audited"] == level_by_definition(table, by_persons | reveals) >= 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "more"), [*((name, {}) for name in SEARCHES), ("greedy-containment", {"reveals": "both"})]
)
def test_with_one_row_a_person_nothing_changes(mechanism, more):
    table = visits()
    own = table.to_arrow().set_column(0, "patient", pa.array([f"p{row}" for row in range(table.n_rows)]))
    asked = {"k": 4, **more}
    with_persons = make_release(Table.from_arrow(own, table.schema), build_mechanism(mechanism, asked))
    without = make_release(
        Table.from_arrow(own.drop_columns(["patient"]), table.schema.keep(own.column_names[1:])),
        build_mechanism(mechanism, asked),
    )

    assert with_persons.table.to_table().to_arrow().equals(without.table.to_table().to_arrow())
    assert with_persons.manifest.guarantees == without.manifest.guarantees
    assert with_persons.manifest.evidence == without.manifest.evidence


def test_fewer_than_k_persons_are_refused():
    table = visits(n_rows=40, n_persons=4)

    with pytest.raises(PrivacyNotAchievableError, match="persons"):
        make_release(table, build_mechanism("greedy-containment", {"k": 10}))


def test_cross_validation_by_rows_is_refused():
    with pytest.raises(InvalidParameterError, match="deals rows out to folds"):
        make_release(visits(), build_mechanism("exact-containment", {"k": 3, "choose": "cross_validation"}))


def forged(release, promise):
    entry = promise.to_dict() | {"statement": promise.describe()}
    entries = json.loads(json.dumps(replace(release.manifest, guarantees=(entry,)).to_dict()))
    entries["guarantees"] = [
        {**one, "audited": promise.k} if name_of(one) == promise.name else one for one in entries["guarantees"]
    ]
    return entries | {"digest": manifest_digest(entries)}


def test_a_release_by_rows_that_is_promised_by_persons_is_refused():
    table = visits(n_persons=25)
    by_rows = make_release(
        table.with_schema({"patient": "identifier"}),
        build_mechanism("greedy-containment", {"k": 4, "on_infeasible": "skip"}),
    )
    promise = Containment(4, tuple(by_name(by_rows)["containment"]["columns"]), unit="patient")
    assert level_by_definition(table, promise.to_dict()) < 4

    report = audit_release(by_rows.table, forged(by_rows, promise), AuditorHas(original=table, roles=True))

    assert "containment by persons: level" in {check.name for check in report.checks if not check.passed}


@pytest.mark.parametrize("person", ["kept", "nobody"])
def test_persons_told_apart_by_another_column_are_refused(person):
    table = visits()
    release = make_release(table, build_mechanism("greedy-containment", {"k": 3}))
    promise = Containment(3, tuple(by_name(release)["containment"]["columns"]), unit=person)

    report = audit_release(release.table, forged(release, promise), AuditorHas(original=table, roles=True))

    assert "containment by persons: persons" in {check.name for check in report.checks if not check.passed}


def test_without_the_original_persons_are_not_counted_and_that_is_said():
    release = make_release(visits(), build_mechanism("exact-containment", {"k": 3}))
    alone = audit_release(release.table, release.manifest.to_dict())

    assert any("containment by persons was not measured" in one.message for one in alone.unchecked)
    assert alone.passed
