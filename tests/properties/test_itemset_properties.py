"""The search for maximal itemsets beside a listing of all itemsets of small tables."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

import oracles
from sfumato.measures.containment import containment_level
from sfumato.mechanisms.containment import itemsets as itemset_search
from sfumato.mechanisms.containment import itemsets as transactions
from sfumato.mechanisms.containment.itemsets import (
    Transactions,
    heaviest_itemsets,
    largest_itemsets,
    largest_size_bound,
    merge_equal_rows,
)
from sfumato.mechanisms.containment.maximal import MaximalContainmentSelector
from sfumato.table.binary import as_binary_matrix
from sizes import IS_FULL
from strategies import binary_tables

LEVELS = st.integers(1, 4)
ASKED = st.integers(2, 4)  # what a mechanism can be asked for
TABLES = binary_tables(max_rows=10, max_columns=7)
LABELLED = binary_tables(min_rows=2, min_columns=1, max_rows=10, max_columns=6, both_classes=True)
SEED = 30


def as_matrix(rows):
    return as_binary_matrix(np.array(rows, dtype=np.int8).reshape(len(rows), -1))


def maximal_itemsets(rows, k):
    """All non-empty itemsets that at least k rows contain and no other such set includes."""
    frequent = {
        itemset
        for itemset in oracles.column_sets(len(rows[0]))
        if itemset and sum(itemset <= oracles.ones(row) for row in rows) >= k
    }
    return oracles.maximal_sets(frequent)


def weigh(itemset, weights):
    return sum(int(weights[feature]) for feature in itemset)


def drawn_weights(data, n_features):
    """Weights from 1 on; often equal ones, which make ties."""
    top = data.draw(st.sampled_from([1, 3, 1000]))
    return np.array(data.draw(st.lists(st.integers(1, top), min_size=n_features, max_size=n_features)), dtype=np.int64)


@pytest.fixture(params=[(1 << 22, 1 << 29), (12, 0), (0, 0)], ids=["as a matrix", "mixed", "by rarest item"])
def way_of_dividing(request, monkeypatch):
    """Both ways of dividing the search, which the size of the table chooses between, with and without a cache."""
    dense_cells, cached_bits = request.param
    monkeypatch.setattr(itemset_search, "_DENSE_CELLS", dense_cells)
    monkeypatch.setattr(transactions, "_CACHED_BITS", cached_bits)


@pytest.mark.usefixtures("way_of_dividing")
class TestAgainstAllItemsets:
    @pytest.mark.slow
    @given(table=TABLES, k=LEVELS, r=st.sampled_from([1, 2, 20]), data=st.data())
    def test_heaviest_itemsets_are_the_best_of_all_maximal_ones(self, table, k, r, data):
        rows, _ = table
        weights = drawn_weights(data, len(rows[0]))

        found = heaviest_itemsets(as_matrix(rows), weights, k, r)

        expected = maximal_itemsets(rows, k)
        assert found.proven
        assert found.worths == sorted((weigh(itemset, weights) for itemset in expected), reverse=True)[:r]
        assert found.worths == [weigh(itemset, weights) for itemset in found.itemsets]
        assert len({frozenset(itemset) for itemset in found.itemsets} & expected) == len(found.itemsets)
        assert found.bound == max(found.worths, default=0)

    @pytest.mark.slow
    @given(table=TABLES, k=LEVELS, r=st.sampled_from([1, 2, 20]), data=st.data())
    def test_largest_itemsets_are_the_largest_and_of_equal_ones_the_heaviest(self, table, k, r, data):
        rows, _ = table
        weights = drawn_weights(data, len(rows[0]))

        found = largest_itemsets(as_matrix(rows), weights, k, r)

        expected = maximal_itemsets(rows, k)
        keys = sorted(((len(itemset), weigh(itemset, weights)) for itemset in expected), reverse=True)
        assert found.proven
        assert [(len(itemset), weigh(itemset, weights)) for itemset in found.itemsets] == keys[:r]
        assert len({frozenset(itemset) for itemset in found.itemsets} & expected) == len(found.itemsets)
        assert found.worths == [size for size, _ in keys[:r]]
        assert found.bound == max(found.worths, default=0)

    @pytest.mark.slow
    @given(table=TABLES, k=LEVELS)
    def test_without_time_the_answer_is_maximal_and_the_bound_holds(self, table, k):
        rows, _ = table
        weights = np.arange(1, len(rows[0]) + 1)

        found = heaviest_itemsets(as_matrix(rows), weights, k, 2, time_budget=0)

        expected = maximal_itemsets(rows, k)
        assert bool(found.itemsets) == bool(expected)
        assert all(frozenset(itemset) in expected for itemset in found.itemsets)
        assert found.bound >= max((weigh(itemset, weights) for itemset in expected), default=0)

    @pytest.mark.slow
    @given(table=LABELLED, k=LEVELS, r=st.sampled_from([1, 3, 20]), order=st.randoms(use_true_random=False))
    def test_order_of_the_rows_does_not_matter(self, table, k, r, order):
        rows, _ = table
        shuffled = list(rows)
        order.shuffle(shuffled)
        weights = np.ones(len(rows[0]), dtype=np.int64)

        assert largest_itemsets(as_matrix(shuffled), weights, k, r) == largest_itemsets(as_matrix(rows), weights, k, r)


@pytest.mark.slow
@given(table=LABELLED, k=ASKED)
def test_best_search_has_the_largest_hamming_separation_of_all_maximal_itemsets(table, k):
    rows, labels = table
    assume(len(rows) >= k)

    selector = MaximalContainmentSelector(k=k, search="best").fit(as_matrix(rows), labels)

    def separation(itemset):
        return oracles.hamming_separation(oracles.projected(rows, itemset), labels)

    expected = maximal_itemsets(rows, k)
    chosen = frozenset(selector.selected_columns_.tolist())
    assert chosen in expected or (not expected and not chosen)
    assert separation(chosen) == max(map(separation, expected), default=Fraction(0))
    assert selector.search_["proven"]
    assert selector.search_["bound"] == pytest.approx(float(separation(chosen)))
    assert selector.search_["gap"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["hamming_separation", "distinguished_pairs"])
@given(table=LABELLED, k=ASKED)
def test_top_r_search_compares_the_largest_sets_by_the_criterion(criterion, table, k):
    """With an r above the number of maximal sets all of them are compared."""
    rows, labels = table
    assume(len(rows) >= k)

    selector = MaximalContainmentSelector(k=k, r=100, criterion=criterion).fit(as_matrix(rows), labels)

    def value(itemset):
        return getattr(oracles, criterion)(oracles.projected(rows, itemset), labels)

    expected = maximal_itemsets(rows, k)
    chosen = frozenset(selector.selected_columns_.tolist())
    assert selector.search_["n_candidates"] == len(expected)
    assert value(chosen) == max(map(value, expected), default=Fraction(0))
    assert selector.search_["bound"] == max(map(len, expected), default=0)


@pytest.mark.slow
@pytest.mark.parametrize("search", ["top-r", "best"])
@given(table=LABELLED, k=ASKED, budget=st.sampled_from([0, 30]))
def test_every_selection_keeps_k(search, table, k, budget):
    rows, labels = table
    assume(len(rows) >= k)

    selector = MaximalContainmentSelector(k=k, search=search, time_budget=budget).fit(as_matrix(rows), labels)

    assert oracles.is_feasible(rows, selector.selected_columns_.tolist(), k)
    assert selector.containment_level_ == containment_level(as_matrix(rows)[:, selector.selected_columns_]) >= k


@pytest.mark.slow
@given(TABLES, LEVELS)
def test_no_frequent_itemset_is_larger_than_the_size_bound(table, k):
    rows, _ = table

    bound = largest_size_bound(Transactions.from_matrix(as_matrix(rows), k))

    assert bound >= max(map(len, maximal_itemsets(rows, k)), default=-2)


@given(TABLES, LEVELS)
def test_transactions_are_the_rows_on_frequent_features(table, k):
    rows, _ = table
    matrix = as_matrix(rows)

    merged = Transactions.from_matrix(matrix, k)

    frequent = {f for f in range(len(rows[0])) if sum(row[f] for row in rows) >= k}
    expected = {}
    for row in rows:
        kept = tuple(sorted(oracles.ones(row) & frequent))
        if kept:
            expected[kept] = min(k, expected.get(kept, 0) + 1)
    found = {merged.features_of(merged.items_of_row(row)): copies for row, copies in enumerate(merged.copies)}
    assert found == expected
    assert set(merged.features.tolist()) == frequent


@given(binary_tables(min_rows=0, max_columns=6))
def test_merging_equal_rows_keeps_the_rows(table):
    matrix = sp.csr_matrix(table.matrix())

    representatives, counts, inverse = merge_equal_rows(matrix)

    assert len(counts) == len(set(table.rows))
    assert counts.sum() == len(table.rows)
    assert [table.rows[representatives[group]] for group in inverse] == table.rows


def test_rows_with_the_same_code_are_told_apart(monkeypatch):
    """Codes that collide cost time only."""
    monkeypatch.setattr("sfumato.mechanisms.containment.itemsets._codes", lambda n: np.ones(n, dtype=np.uint64))
    rows = [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 1]]

    _, counts, inverse = merge_equal_rows(sp.csr_matrix(rows))

    assert counts.tolist() == [2, 1, 1]
    assert inverse.tolist() == [0, 1, 0, 2]


N_ITEMS = 9 if IS_FULL else 7  # the listing of one more has twice as many sets


@pytest.mark.slow
@pytest.mark.usefixtures("way_of_dividing")
@pytest.mark.parametrize("density", [0.2, 0.5, 0.7])
@pytest.mark.parametrize("k", [2, 5])
def test_larger_tables_agree_with_the_listing_of_all_itemsets(density, k):
    rng = np.random.default_rng(SEED)
    rows = (rng.random((30, N_ITEMS)) < density).astype(int)
    rows[::7] = rows[1]
    weights = rng.integers(1, 50, N_ITEMS)

    every, few = heaviest_itemsets(as_matrix(rows), weights, k, 1_000), largest_itemsets(as_matrix(rows), weights, k, 5)

    expected = maximal_itemsets(rows.tolist(), k)
    assert {frozenset(itemset) for itemset in every.itemsets} == expected
    keys = sorted(((len(itemset), weigh(itemset, weights)) for itemset in expected), reverse=True)
    assert [(len(itemset), weigh(itemset, weights)) for itemset in few.itemsets] == keys[:5]
