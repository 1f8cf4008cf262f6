"""Packed and sparse patterns against plain loops, and clusters that do not depend on which of them is used."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sfumato.mechanisms.baselines.flipping import (
    Cluster,
    PackedPatterns,
    SparsePatterns,
    k_member_clusters,
    patterns_of,
)
from sfumato.table.binary import as_binary_matrix

WIDTHS = (1, 7, 64, 65, 130)


@st.composite
def rows_of_bits(draw):
    width = draw(st.sampled_from(WIDTHS))
    row = st.sets(st.integers(0, width - 1), max_size=6)
    return width, draw(st.lists(row, min_size=1, max_size=8))


def matrix_of(width, rows):
    dense = np.zeros((len(rows), width), dtype=np.int32)
    for row, ones in enumerate(rows):
        dense[row, sorted(ones)] = 1
    return sp.csr_matrix(dense)


def kinds_of(matrix):
    return PackedPatterns.of(matrix), SparsePatterns(matrix)


@given(rows_of_bits(), st.data())
def test_added_bits_are_those_on_which_a_cluster_did_not_disagree_before(drawn, data):
    width, rows = drawn
    members = data.draw(st.lists(st.sampled_from(range(len(rows))), min_size=1, max_size=4))
    common, union = set.intersection(*(rows[m] for m in members)), set.union(*(rows[m] for m in members))
    expected = [len(row - union) + len(common - row) for row in rows]

    for patterns in kinds_of(matrix_of(width, rows)):
        held = [patterns.bits(m) for m in members]
        in_all = in_some = held[0]
        for bits in held[1:]:
            in_all, in_some = patterns.in_both(in_all, bits), patterns.in_any(in_some, bits)
        assert patterns.added(in_all, in_some).tolist() == expected

        chosen = np.array([len(rows) - 1, 0])
        assert patterns.keep(chosen).added(in_all, in_some).tolist() == [expected[-1], expected[0]]

        clusters = [Cluster([], in_all, in_some), Cluster([], held[0], held[0])]
        for number, row in enumerate(rows):
            far = len(row ^ rows[members[0]])
            assert patterns.added_to(clusters, patterns.bits(number)).tolist() == [expected[number], far]


@pytest.mark.parametrize(("width", "ones", "kind"), [(64, 1, PackedPatterns), (65, 1, SparsePatterns)])
def test_few_ones_among_many_bits_stay_sparse(width, ones, kind):
    assert isinstance(patterns_of(matrix_of(width, [set(range(ones))])), kind)


def test_many_ones_are_packed_whatever_their_number():
    assert isinstance(patterns_of(matrix_of(130, [set(range(20))])), PackedPatterns)


@given(
    rows=st.lists(st.lists(st.integers(0, 1), min_size=5, max_size=5), min_size=1, max_size=30),
    k=st.integers(1, 4),
    seed=st.integers(0, 99),
    keep=st.booleans(),
)
def test_columns_without_ones_change_no_cluster(rows, k, seed, keep):
    """With hundreds of them the patterns are sparse, without them packed."""
    k = min(k, len(rows))
    narrow = np.array(rows, dtype=np.uint8)
    wide = np.hstack([narrow, np.zeros((len(rows), 300), dtype=np.uint8)])

    packed, sparse = (
        k_member_clusters(as_binary_matrix(matrix), k, np.random.default_rng(seed), keep_frequent=keep)
        for matrix in (narrow, wide)
    )

    assert packed.tolist() == sparse.tolist()
