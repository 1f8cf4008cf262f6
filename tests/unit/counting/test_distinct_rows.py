"""Equal rows of binary matrices, and counts of rows that stand for many, against plain loops over all rows."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sfumato.counting.bitsets import ProjectedRows, distinct_rows, ones_by_class, ones_of_each
from sfumato.measures.containment import containment_level
from sfumato.mechanisms.containment.exact import PatternCounts
from sfumato.mechanisms.containment.feasibility import Lattice, Reduced, reduce_table
from sfumato.mechanisms.containment.itemsets import Transactions


def distinct_by_looking_rows_up(rows):
    """Give the sets of ones numbers as they appear, in a dictionary."""
    rows = sp.csr_matrix(rows)
    rows.sort_indices()
    seen = {}
    inverse = np.empty(rows.shape[0], dtype=np.intp)
    raw = np.ascontiguousarray(rows.indices, dtype=np.int32).tobytes()
    for row, (start, end) in enumerate(pairwise((rows.indptr.astype(np.int64) * 4).tolist())):
        inverse[row] = seen.setdefault(raw[start:end], len(seen))
    _, representatives, counts = np.unique(inverse, return_index=True, return_counts=True)
    return representatives.tolist(), counts.tolist(), inverse.tolist()


@st.composite
def matrices(draw):
    """Few different rows of few or many columns; columns at the edges of words are among those with ones."""
    n_columns = draw(st.sampled_from([0, 1, 7, 63, 64, 65, 128, 255, 256, 257, 70_000]))
    places = st.sampled_from(sorted({p for p in (0, 1, 62, 63, 64, 254, 255, 256, 65_535, 65_536) if p < n_columns}))
    patterns = draw(st.lists(st.sets(places) if n_columns else st.just(set()), min_size=1, max_size=5))
    rows = draw(st.lists(st.sampled_from(patterns), max_size=30))
    indices = [place for row in rows for place in sorted(row)]
    ends = np.cumsum([0, *map(len, rows)])
    return sp.csr_matrix((np.ones(len(indices), dtype=np.uint8), indices, ends), shape=(len(rows), n_columns))


@given(matrices(), st.sampled_from(["csr", "csc", "coo"]), st.sampled_from([np.uint8, np.int64, np.float64, np.bool_]))
def test_equal_rows_are_those_that_a_dictionary_finds(matrix, layout, dtype):
    """In whatever layout and type the matrix comes."""
    found = distinct_rows(matrix.asformat(layout).astype(dtype))

    expected = distinct_by_looking_rows_up(matrix)
    assert (found.representatives.tolist(), found.counts.tolist(), found.inverse.tolist()) == expected


@pytest.mark.parametrize("n_columns", [20, 200])
def test_the_order_of_the_ones_in_a_row_does_not_matter(n_columns):
    """Nor is a matrix changed that has them in another order."""
    matrix = sp.csr_matrix((np.ones(6, dtype=np.uint8), [3, 1, 19, 1, 3, 19], [0, 3, 6]), shape=(2, n_columns))
    assert distinct_rows(matrix).inverse.tolist() == [0, 0]
    assert matrix.indices.tolist() == [3, 1, 19, 1, 3, 19]


def test_dense_rows_are_taken_too():
    assert distinct_rows(np.array([[1, 0], [0, 0], [1, 0]])).inverse.tolist() == [0, 1, 0]


@st.composite
def counted_tables(draw):
    """Rows of features and classes, and how many rows each stands for."""
    n_columns = draw(st.integers(1, 6))
    row = st.tuples(st.lists(st.integers(0, 1), min_size=n_columns, max_size=n_columns), st.integers(0, 2))
    rows = draw(st.lists(row, min_size=1, max_size=12))
    counts = draw(st.lists(st.integers(1, 4), min_size=len(rows), max_size=len(rows)))
    matrix = sp.csc_matrix(np.array([ones for ones, _ in rows], dtype=np.uint8))
    return matrix, np.array([label for _, label in rows], dtype=np.int32), np.array(counts, dtype=np.int64)


def written_out(matrix, classes, counts):
    return sp.csc_matrix(matrix.toarray().repeat(counts, axis=0)), classes.repeat(counts)


@given(counted_tables())
def test_counts_stand_for_rows(table):
    """Whatever is counted is counted as if the rows were written out."""
    matrix, classes, counts = table
    rows, labels = written_out(*table)

    assert ones_of_each(matrix, counts).tolist() == rows.toarray().sum(axis=0).tolist()
    assert ones_by_class(matrix, classes, 3, counts).tolist() == [
        rows.toarray()[labels == label].sum(axis=0).tolist() for label in range(3)
    ]
    assert distinct_rows(matrix, counts).counts.tolist() == distinct_by_looking_rows_up(rows)[1]
    assert containment_level(matrix, counts) == containment_level(rows)


def groups_of(projected, matrix):
    """Class counts by the pattern on the chosen features."""
    patterns = map(tuple, matrix.toarray()[:, projected.chosen].tolist())
    return {p: projected.class_counts[g].tolist() for p, g in zip(patterns, projected.group, strict=True)}


@given(counted_tables(), st.integers(1, 8), st.sampled_from([None, 1, 2, 3]), st.randoms())
def test_projected_rows_may_stand_for_many(table, k, reveals, random):
    """Verdicts, divisions and exclusions are those of the rows written out."""
    matrix, classes, counts = table
    rows, labels = written_out(*table)
    codes = None if reveals is None else np.full(matrix.shape[1], reveals, dtype=np.uint8)
    few, many = ProjectedRows(matrix, classes, 3, codes, counts), ProjectedRows(rows, labels, 3, codes)
    order = list(range(matrix.shape[1]))
    random.shuffle(order)
    few.exclude_rare(k)
    many.exclude_rare(k)
    for feature in order:
        assert few.keeps_containment(feature, k) == many.keeps_containment(feature, k)
        assert few.n_unique_with(feature) == many.n_unique_with(feature)
        if few.keeps_containment(feature, k):
            few.add(feature)
            many.add(feature)
            few.exclude_conflicts(k)
            many.exclude_conflicts(k)
        assert few.excluded.tolist() == many.excluded.tolist()
    assert groups_of(few, matrix) == groups_of(many, rows)


@pytest.mark.slow
@given(counted_tables(), st.integers(1, 8))
def test_searches_see_rows_that_stand_for_many(table, k):
    """What is left to decide, the frequent items and the pairs that sets separate are those of the rows written out."""
    matrix, classes, counts = table
    rows, labels = written_out(*table)
    few, many = reduce_table(matrix, k, counts), reduce_table(rows, k)
    assert (few.members, few.free, few.rare, few.counts.tolist()) == (
        many.members,
        many.free,
        many.rare,
        many.counts.tolist(),
    )
    assert few.matrix.toarray().tolist() == many.matrix.toarray().tolist()
    items, all_items = Transactions.from_matrix(matrix, k, counts), Transactions.from_matrix(rows, k)
    assert items.copies.tolist() == all_items.copies.tolist()
    assert items.items.tolist() == all_items.items.tolist()
    worth, all_worth = PatternCounts(matrix, classes, 3, 0, counts), PatternCounts(rows, labels, 3, 0)
    features = list(range(matrix.shape[1]))
    assert worth.separated_pairs(features) == all_worth.separated_pairs(features)


def test_more_rows_than_half_a_word_counts_are_not_taken_for_few():
    """2**32 + 1 rows would be one row if they were added up in 32 bits."""
    matrix = sp.csc_matrix(np.array([[1, 0], [1, 1]], dtype=np.uint8))
    counts = np.array([2**32 - 1, 2], dtype=np.int64)
    lattice = Lattice(Reduced(matrix, counts, ((0,), (1,)), (), ()), 2)
    assert not lattice.infeasible.any()
