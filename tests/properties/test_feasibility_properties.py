"""The exact condition of containment, and the searches over it, beside brute force on small tables."""

import itertools
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from feasible_sets import improved_set, maximal_feasible_sets
from sfumato.mechanisms.containment import feasibility, optimal
from sfumato.mechanisms.containment.exact import ExactContainmentSelector, PatternCounts, area_under_curve
from sfumato.mechanisms.containment.feasibility import reduce_table
from sfumato.mechanisms.containment.improvement import SwappableRows, heaviest_first, shared_by_rows
from sfumato.mechanisms.containment.optimal import (
    OptimalContainmentSelector,
    clique_bound,
    heaviest_feasible,
    heaviest_of_all,
)
from sfumato.mechanisms.time_limit import TimeBudget
from sfumato.table.binary import as_binary_matrix
from strategies import binary_tables

LEVELS = st.integers(1, 4)
TABLES = binary_tables(max_rows=9, max_columns=6)
AMPLE = 30.0


def as_matrix(rows):
    return as_binary_matrix(np.array(rows, dtype=np.int8).reshape(len(rows), -1))


def levels(rows, least=1):
    return st.integers(least, min(4, len(rows)))


LABELLED = binary_tables(min_rows=2, max_rows=9, min_columns=1, max_columns=6, both_classes=True).flatmap(
    lambda table: st.tuples(st.just(table), levels(table.rows, least=2))  # what a mechanism can be asked for
)


@st.composite
def weighted_tables(draw):
    rows, _ = draw(TABLES)
    weights = draw(st.lists(st.integers(0, 9), min_size=len(rows[0]), max_size=len(rows[0])))
    return rows, np.array(weights, dtype=np.int64), draw(levels(rows))


def heaviest_weight(rows, weights, k):
    return max(sum(int(weights[j]) for j in s) for s in oracles.feasible_sets(rows, k))


@pytest.mark.slow
@pytest.mark.parametrize("lattice_columns", [24, -1], ids=["lattice", "search"])
@given(table=TABLES, k=LEVELS)
def test_maximal_feasible_sets_agree_with_the_definition(lattice_columns, table, k):
    with patch.object(feasibility, "LATTICE_COLUMNS", lattice_columns):
        found = maximal_feasible_sets(as_matrix(table.rows), k)

    expected = oracles.maximal_sets(oracles.feasible_sets(table.rows, k))
    assert found.complete
    assert list(found.sets) == sorted(tuple(sorted(s)) for s in expected)


@pytest.mark.slow
@given(weighted_tables())
def test_the_papers_family_is_contained_in_ours(table):
    """Lemma 3: an itemset with support k is feasible, so each is part of a maximal feasible set."""
    rows, _, k = table
    maximal = [set(s) for s in maximal_feasible_sets(as_matrix(rows), k).sets]

    for itemset in oracles.column_sets(len(rows[0])):
        if sum(itemset <= oracles.ones(row) for row in rows) >= k:
            assert any(itemset <= s for s in maximal)


@pytest.mark.slow
@pytest.mark.parametrize("lattice_columns", [24, -1], ids=["lattice", "search"])
@given(table=TABLES, k=LEVELS, limit=st.integers(0, 3))
def test_a_limit_is_kept_and_told(lattice_columns, table, k, limit):
    matrix = as_matrix(table.rows)
    every = maximal_feasible_sets(matrix, k)
    with patch.object(feasibility, "LATTICE_COLUMNS", lattice_columns):
        some = maximal_feasible_sets(matrix, k, limit)

    assert some.complete == (len(every.sets) <= limit)
    assert len(some.sets) == min(limit, len(every.sets))
    assert set(some.sets) <= set(every.sets)


@pytest.mark.slow
@given(weighted_tables(), st.data())
def test_local_improvement_gives_a_maximal_set_that_weighs_no_less(table, data):
    rows, weights, k = table
    feasible = sorted(map(sorted, oracles.feasible_sets(rows, k)))
    start = data.draw(st.sampled_from(feasible))

    better = improved_set(as_matrix(rows), start, weights, k, TimeBudget(AMPLE))

    assert weights[list(better)].sum() >= weights[start].sum()
    assert frozenset(better) in oracles.maximal_sets(set(map(frozenset, feasible)))


@pytest.mark.slow
@given(weighted_tables())
def test_no_exchange_is_left_after_local_improvement(table):
    """Neither of one column for a heavier one, nor of two for one that is heavier than both together."""
    rows, weights, k = table
    reduced = reduce_table(as_matrix(rows), k)
    of_columns = reduced.weights(weights)
    chosen = set(reduced.columns(improved_set(as_matrix(rows), (), weights, k, TimeBudget(AMPLE))))

    for joining in set(range(reduced.n_columns)) - chosen:
        for leaving in itertools.chain(itertools.combinations(chosen, 1), itertools.combinations(chosen, 2)):
            if of_columns[joining] > of_columns[list(leaving)].sum():
                exchanged = reduced.features(chosen - set(leaving) | {joining})
                assert not oracles.is_feasible(rows, exchanged, k)


@given(weighted_tables())
def test_a_spent_budget_still_gives_a_feasible_set(table):
    rows, weights, k = table

    found = improved_set(as_matrix(rows), (), weights, k, TimeBudget(0))

    assert oracles.is_feasible(rows, found, k)


@pytest.mark.slow
@given(weighted_tables())
def test_what_k_rows_share_is_feasible(table):
    rows, weights, k = table
    reduced = reduce_table(as_matrix(rows), k)

    for columns in shared_by_rows(reduced, reduced.weights(weights), k, TimeBudget(AMPLE)):
        assert oracles.is_feasible(rows, reduced.features(columns), k)


@pytest.mark.slow
@given(weighted_tables(), st.data())
def test_swappable_rows_decide_as_the_definition_does(table, data):
    """Columns join and leave; whether one may join, which ones stand in its way, agrees with brute force."""
    rows, weights, k = table
    reduced = reduce_table(as_matrix(rows), k)
    state = SwappableRows(reduced, k)
    state.add_all(heaviest_first(reduced.weights(weights)))
    gone = data.draw(st.lists(st.sampled_from(state.chosen), unique=True, max_size=2)) if state.chosen else []
    state.drop(gone)
    state.add_all(data.draw(st.permutations(gone)))
    chosen = state.chosen

    def feasible(columns):
        return oracles.is_feasible(rows, reduced.features(columns), k)

    for column in set(range(reduced.n_columns)) - set(chosen):
        assert state.allows(column) == feasible([*chosen, column])
        helpful = [c for c in chosen if feasible({*chosen, column} - {c})]
        assert state.obstacles(column) == ([] if feasible([*chosen, column]) else sorted(helpful))
        pairs = {tuple(sorted(p)) for p in state.obstacle_pairs(column)}
        for a in chosen:
            for b in chosen:
                if a < b and a not in helpful and b not in helpful and feasible({*chosen, column} - {a, b}):
                    assert (a, b) in pairs


@pytest.mark.slow
@given(weighted_tables())
def test_the_heaviest_set_of_the_lattice_is_the_heaviest_of_all(table):
    rows, weights, k = table
    reduced = reduce_table(as_matrix(rows), k)

    found = heaviest_of_all(reduced, reduced.weights(weights), k)

    features = reduced.features(found.columns)
    assert oracles.is_feasible(rows, features, k)
    assert weights[list(features)].sum() == heaviest_weight(rows, weights, k)


@pytest.mark.slow
@given(weighted_tables(), st.booleans())
def test_branch_and_bound_finds_and_proves_the_heaviest_set(table, from_greedy):
    rows, weights, k = table
    weights = weights.copy()
    weights[[sum(row[j] for row in rows) in (0, len(rows)) for j in range(len(weights))]] = 0
    reduced = reduce_table(as_matrix(rows), k)
    start = SwappableRows(reduced, k)
    if from_greedy:
        start.add_all(heaviest_first(reduced.weights(weights)))

    found = heaviest_feasible(reduced, reduced.weights(weights), k, start.chosen, TimeBudget(AMPLE))

    assert found.is_proven
    assert found.weight == heaviest_weight(rows, weights, k)
    assert oracles.is_feasible(rows, reduced.features(found.columns), k)
    assert found.weight == reduced.weights(weights)[list(found.columns)].sum()


@pytest.mark.slow
@given(weighted_tables())
def test_branch_and_bound_without_time_gives_a_true_bound(table):
    rows, weights, k = table
    reduced = reduce_table(as_matrix(rows), k)
    of_columns = reduced.weights(weights)
    optimum = max(of_columns[reduced.columns(s)].sum() for s in oracles.feasible_sets(rows, k))

    found = heaviest_feasible(reduced, of_columns, k, (), TimeBudget(0))

    assert found.weight <= optimum <= found.upper_bound
    for budget in (TimeBudget(0), TimeBudget(AMPLE)):
        assert optimum <= clique_bound(reduced, of_columns, k, budget)


@pytest.mark.slow
@pytest.mark.parametrize("lattice_columns", [24, -1], ids=["lattice", "branching"])
@given(drawn=LABELLED)
def test_optimal_selector_has_the_largest_separation_of_all_feasible_sets(lattice_columns, drawn):
    (rows, labels), k = drawn
    with patch.object(optimal, "LATTICE_COLUMNS", lattice_columns):
        selector = OptimalContainmentSelector(k=k).fit(as_matrix(rows), labels)

    feasible = oracles.feasible_sets(rows, k)
    best = max(oracles.hamming_separation(oracles.projected(rows, s), labels) for s in feasible)
    chosen = frozenset(selector.selected_columns_.tolist())
    assert selector.search_["proven"]
    assert chosen in oracles.maximal_sets(feasible)
    assert oracles.hamming_separation(oracles.projected(rows, chosen), labels) == best
    assert selector.search_["bound"] == pytest.approx(float(best))


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["hamming_separation", "distinguished_pairs"])
@given(drawn=LABELLED)
def test_exact_selector_takes_the_best_maximal_set(criterion, drawn):
    (rows, labels), k = drawn
    selector = ExactContainmentSelector(k=k, criterion=criterion).fit(as_matrix(rows), labels)

    maximal = oracles.maximal_sets(oracles.feasible_sets(rows, k))
    worth = getattr(oracles, criterion)
    best = max(worth(oracles.projected(rows, s), labels) for s in maximal)
    chosen = frozenset(selector.selected_columns_.tolist())
    assert selector.search_["n_maximal_sets"] == len(maximal)
    assert chosen in maximal
    assert worth(oracles.projected(rows, chosen), labels) == best


@given(binary_tables(min_rows=2, both_classes=True, n_classes=3), st.data())
def test_separated_pairs_from_pattern_counts_are_those_of_the_rows(table, data):
    rows, labels = table
    features = data.draw(st.lists(st.integers(0, len(rows[0]) - 1), unique=True)) if rows[0] else []
    classes = np.unique(labels, return_inverse=True)[1].astype(np.int32)

    counts = PatternCounts(as_matrix(rows), classes, int(classes.max()) + 1)

    pairs = oracles.pairs_of_different_classes(labels)
    expected = sum(any(rows[i][f] != rows[j][f] for f in features) for i, j in pairs)
    assert counts.separated_pairs(features) == expected


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), max_size=5))
def test_area_under_curve_is_the_share_of_pairs_in_the_right_order(cells):
    cells = [(0, 1, 0), (1, 0, 1), *cells]
    scores, positives, negatives = (np.array(column) for column in zip(*cells, strict=True))

    wins = sum(p * n * ((a > b) + (a == b) / 2) for a, p, _ in cells for b, _, n in cells)

    assert area_under_curve(scores, positives, negatives) == pytest.approx(wins / (positives.sum() * negatives.sum()))
