"""Lemmas and exact conditions of [kAC17] as properties, and the fast kernels beside their oracles."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

import oracles
from sfumato import GreedyContainmentSelector
from sfumato.counting import bitsets
from sfumato.counting.bitsets import ProjectedRows, distinct_rows, ones_by_class, pack_rows
from sfumato.errors import InvalidParameterError
from sfumato.measures.containment import containment_counts, containment_group, containment_level
from sfumato.measures.separation import distinguished_pairs, hamming_separation
from sfumato.table.binary import as_binary_matrix
from strategies import binary_tables

LEVELS = st.integers(1, 4)
ASKED = st.integers(2, 4)  # what a mechanism can be asked for
LABELLED = binary_tables(min_rows=4, min_columns=1, both_classes=True)


def as_matrix(rows):
    return as_binary_matrix(np.array(rows, dtype=np.int8).reshape(len(rows), -1))


def all_subsets(n):
    return itertools.chain.from_iterable(itertools.combinations(range(n), size) for size in range(n + 1))


@given(st.sets(st.integers(0, 200)))
def test_packed_sets_keep_their_size(rows):
    assert np.bitwise_count(pack_rows(np.array(sorted(rows), dtype=np.int32), 201)).sum() == len(rows)


@given(binary_tables())
def test_distinct_rows_are_the_set_of_rows(table):
    rows, _ = table
    found = distinct_rows(as_matrix(rows))

    assert len(found.counts) == len({tuple(row) for row in rows})
    assert found.counts.sum() == len(rows)
    assert all(rows[found.representatives[g]] == row for g, row in zip(found.inverse, rows, strict=True))


@given(binary_tables())
def test_counts_and_groups_of_rows_are_those_of_their_definitions(table):
    """AC(e) and the group of e, Definitions 3-5; AC(D) is the smallest."""
    rows, _ = table
    matrix = as_matrix(rows)
    counts = containment_counts(matrix)

    assert counts.tolist() == oracles.containment_counts(rows)
    assert counts.min(initial=len(rows)) == containment_level(matrix)
    for i in range(len(rows)):
        includes = [j for j, other in enumerate(rows) if oracles.ones(rows[i]) <= oracles.ones(other)]
        assert containment_group(matrix, i).tolist() == includes


@given(binary_tables(min_rows=1), st.data())
def test_counts_of_rows_that_stand_for_several(table, data):
    rows, _ = table
    times = data.draw(st.lists(st.integers(1, 3), min_size=len(rows), max_size=len(rows)))
    written_out = [row for row, n in zip(rows, times, strict=True) for _ in range(n)]

    counts = containment_counts(as_matrix(rows), np.array(times, dtype=np.int64))

    assert np.repeat(counts, times).tolist() == oracles.containment_counts(written_out)


@pytest.mark.parametrize("row", [-1, 2])
def test_there_is_no_group_of_a_row_that_is_not_there(row):
    with pytest.raises(InvalidParameterError, match="row number from 0 to 1"):
        containment_group(as_matrix([[1, 0], [0, 1]]), row)


def test_wide_rows_are_counted_in_pieces(monkeypatch):
    rows = (np.random.default_rng(5).random((40, 130)) < 0.05).astype(int).tolist()
    monkeypatch.setattr(bitsets, "_CHUNK_WORDS", 7)

    assert containment_counts(as_matrix(rows)).tolist() == oracles.containment_counts(rows)


@given(binary_tables().map(lambda table: (table.rows * 2, table.labels * 2)), LEVELS)
def test_k_anonymity_implies_containment(table, k):
    """Lemma 1."""
    rows, _ = table
    assume(min(distinct_rows(as_matrix(rows)).counts) >= k)

    assert containment_level(as_matrix(rows)) >= k


@pytest.mark.slow
@given(binary_tables(), st.data())
def test_dropping_columns_never_lowers_the_level(table, data):
    """Lemma 2."""
    rows, _ = table
    matrix = as_matrix(rows)
    kept = data.draw(st.lists(st.sampled_from(range(matrix.shape[1])), unique=True)) if matrix.shape[1] else []

    assert containment_level(matrix[:, kept]) >= containment_level(matrix)


@given(binary_tables(), LEVELS)
def test_frequent_itemsets_are_feasible(table, k):
    """Lemma 3, the half that is true."""
    rows, _ = table
    matrix = as_matrix(rows)

    for features in all_subsets(matrix.shape[1]):
        if sum(all(row[f] for f in features) for row in rows) >= k:
            assert containment_level(matrix[:, list(features)]) >= k


@pytest.mark.slow
@given(binary_tables(), LEVELS)
def test_feasible_means_no_itemset_that_is_rare_but_present(table, k):
    """The exact condition: S is feasible for k iff it holds no itemset with support 1 .. k - 1."""
    rows, _ = table
    assume(len(rows) >= k)
    matrix = as_matrix(rows)
    rare = [set(itemset) for itemset in oracles.rare_itemsets(rows, k)]

    for features in all_subsets(matrix.shape[1]):
        feasible = containment_level(matrix[:, list(features)]) >= k
        assert feasible == (not any(itemset <= set(features) for itemset in rare))


@given(binary_tables(), LEVELS, st.data())
def test_incremental_check_agrees_with_counting_from_scratch(table, k, data):
    rows, labels = table
    matrix = as_matrix(rows)
    assume(len(rows) >= k)
    projected = ProjectedRows(matrix, np.array(labels, dtype=np.int32), max(labels) + 1)

    for feature in data.draw(st.permutations(range(matrix.shape[1]))):
        expected = oracles.containment_level([[row[f] for f in [*projected.chosen, feature]] for row in rows]) >= k
        assert projected.keeps_containment(feature, k) == expected
        if expected:
            projected.add(feature)
    groups = {}
    for group, row in zip(projected.group, rows, strict=True):
        groups.setdefault(int(group), set()).add(tuple(row[f] for f in projected.chosen))
    assert all(len(patterns) == 1 for patterns in groups.values())
    assert len(groups) == len(set().union(*groups.values())) == projected.n_groups


def test_incremental_check_beyond_one_word_of_features():
    """Patterns of more than 64 chosen features need a second word."""
    rng = np.random.default_rng(5)
    rows = (rng.random((40, 150)) < 0.6).astype(int).tolist()
    rows += rows
    matrix = as_matrix(rows)
    projected = ProjectedRows(matrix, np.zeros(80, dtype=np.int32), 1)

    for feature in range(150):
        expected = containment_level(matrix[:, [*projected.chosen, feature]]) >= 3
        assert projected.keeps_containment(feature, 3) == expected
        if expected or feature % 2:
            projected.add(feature)
    assert len(projected.chosen) > 64


@given(LABELLED)
def test_hamming_separation_is_modular_and_agrees_with_pairs(table):
    """Theorem 1."""
    rows, labels = table
    matrix, classes = as_matrix(rows), np.array(labels, dtype=np.int32)
    sizes = np.bincount(classes)
    ones = ones_by_class(matrix, classes, len(sizes))

    whole = hamming_separation(ones, sizes)

    assert whole == pytest.approx(float(oracles.hamming_separation(rows, labels)))
    assert whole == pytest.approx(sum(hamming_separation(ones[:, [f]], sizes) for f in range(matrix.shape[1])))


def group_counts(rows, labels, features):
    groups = {}
    for row, label in zip(rows, labels, strict=True):
        groups.setdefault(tuple(row[f] for f in features), [0] * (max(labels) + 1))[label] += 1
    return np.array(list(groups.values()))


@given(LABELLED, st.data())
def test_distinguished_pairs_is_monotone_and_submodular(table, data):
    """Theorem 2."""
    rows, labels = table
    n = len(rows[0])
    larger = data.draw(st.lists(st.integers(0, n - 1), unique=True, max_size=n - 1))
    smaller = larger[: data.draw(st.integers(0, len(larger)))]
    extra = data.draw(st.sampled_from([f for f in range(n) if f not in larger]))

    def value(features):
        found = distinguished_pairs(group_counts(rows, labels, features))
        projected = [[row[f] for f in features] for row in rows]
        assert found == pytest.approx(float(oracles.distinguished_pairs(projected, labels)))
        return found

    gain_small, gain_large = value([*smaller, extra]) - value(smaller), value([*larger, extra]) - value(larger)
    assert value(smaller) <= value(larger)
    assert gain_small >= gain_large - 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["hamming_separation", "distinguished_pairs"])
@pytest.mark.parametrize("on_infeasible", ["stop", "skip"])
@given(table=LABELLED, k=ASKED)
def test_greedy_selector_agrees_with_the_naive_greedy(criterion, on_infeasible, table, k):
    rows, labels = table
    selector = GreedyContainmentSelector(k=k, criterion=criterion, on_infeasible=on_infeasible)

    selector.fit(sp.csr_matrix(as_matrix(rows)), labels)

    expected = oracles.greedy_containment(rows, labels, k, criterion, on_infeasible)
    assert selector.selected_columns_.tolist() == sorted(expected)
    assert selector.containment_level_ >= k


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["hamming_separation", "distinguished_pairs"])
@given(table=LABELLED, k=ASKED)
def test_skipping_gives_a_maximal_set(criterion, table, k):
    """No feature outside the selection can join it."""
    rows, labels = table
    selector = GreedyContainmentSelector(k=k, criterion=criterion, on_infeasible="skip").fit(as_matrix(rows), labels)
    chosen = selector.selected_columns_.tolist()

    for feature in set(range(len(rows[0]))) - set(chosen):
        assert oracles.containment_level([[row[f] for f in [*chosen, feature]] for row in rows]) < k
