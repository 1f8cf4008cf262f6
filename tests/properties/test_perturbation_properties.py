"""What noise may change: claims about flipping and about sensitivities, on small tables, against plain loops."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from oracles import anonymity_level, equivalence_classes, ones
from sfumato.counting.bitsets import ones_by_class
from sfumato.measures.separation import separated_pairs
from sfumato.mechanisms.baselines.flipping import RandomFlipper, flip_to_clusters, k_member_clusters
from sfumato.mechanisms.baselines.noisy_counts import (
    Cells,
    ExponentialReleaser,
    LaplaceReleaser,
    divide_budget,
    occupied_cells,
    rows_of,
    scaled_to,
)
from sfumato.schema import Column, Role, Schema
from sfumato.table.binary import BinaryTable, Feature, as_binary_matrix
from sfumato.table.coding import Table
from strategies import binary_tables

shapes = {"min_rows": 1, "max_rows": 12, "min_columns": 1, "max_columns": 5}


def table_of(drawn):
    companions = Table.from_arrow(
        pa.table({"y": [str(y) for y in drawn.labels]}), Schema.of([Column("y", Role.TARGET)])
    )
    features = tuple(Feature(f"x{i}", f"x{i}") for i in range(len(drawn.rows[0])))
    return BinaryTable(as_binary_matrix(drawn.matrix()), features, companions)


def greedy_members(rows, k, start):
    """Clusters by the greedy k-member algorithm, row by row; equal patterns first, then by their ones."""
    left = sorted(range(len(rows)), key=lambda i: sorted(ones(rows[i])))
    last = left[start]
    clusters = []
    while len(left) >= k:
        seed = max(left, key=lambda i: sum(a != b for a, b in zip(rows[i], rows[last], strict=True)))
        cluster, last = [seed], seed
        left.remove(seed)
        while len(cluster) < k:
            equal = [i for i in left if tuple(rows[i]) == tuple(rows[last])]
            candidates = equal or left
            last = min(candidates, key=lambda i: disagreeing([rows[j] for j in [*cluster, i]]))
            left.remove(last)
            cluster.append(last)
        clusters.append(cluster)
    for i in left:
        min(clusters, key=lambda c: disagreeing([rows[j] for j in [*c, i]]) - disagreeing([rows[j] for j in c])).append(
            i
        )
    return clusters


def disagreeing(rows):
    return sum(len(set(column)) > 1 for column in zip(*rows, strict=True))


@given(drawn=binary_tables(**shapes), k=st.integers(1, 4), seed=st.integers(0, 99), keep=st.booleans())
def test_every_cluster_has_k_rows_and_a_release_is_k_anonymous(drawn, k, seed, keep):
    if k > len(drawn.rows):
        return
    matrix = as_binary_matrix(drawn.matrix())

    flipped = flip_to_clusters(matrix, k, np.random.default_rng(seed), keep_frequent=keep)

    released = flipped.toarray()
    assert anonymity_level(released.tolist()) >= k


@given(drawn=binary_tables(**shapes), k=st.integers(1, 4), seed=st.integers(0, 99))
def test_clusters_are_those_of_the_greedy_algorithm_row_by_row(drawn, k, seed):
    """The same patterns stand together; which of several equal rows goes where is not told apart."""
    if k > len(drawn.rows):
        return
    start = int(np.random.default_rng(seed).integers(len(drawn.rows)))

    found = k_member_clusters(as_binary_matrix(drawn.matrix()), k, np.random.default_rng(seed))

    expected = greedy_members(drawn.rows, k, start)
    grouped = [[i for i, c in enumerate(found) if c == number] for number in range(len(expected))]
    assert [sorted(drawn.rows[i] for i in c) for c in grouped] == [sorted(drawn.rows[i] for i in c) for c in expected]


@given(drawn=binary_tables(**shapes), k=st.integers(1, 4), seed=st.integers(0, 99))
def test_a_released_bit_is_one_that_a_member_had(drawn, k, seed):
    if k > len(drawn.rows):
        return
    released = flip_to_clusters(as_binary_matrix(drawn.matrix()), k, np.random.default_rng(seed)).toarray()

    for pattern, members in equivalence_classes(released.tolist()).items():
        for column, bit in enumerate(pattern):
            assert bit in {drawn.rows[i][column] for i in members}


@given(drawn=binary_tables(**shapes), k=st.integers(1, 4))
def test_rows_that_are_k_anonymous_need_no_flipping(drawn, k):
    if anonymity_level(drawn.rows) < k:
        return

    matrix = as_binary_matrix(drawn.matrix())

    assert (flip_to_clusters(matrix, k, np.random.default_rng(0), keep_frequent=True) != matrix).nnz == 0


@pytest.mark.slow
@given(drawn=binary_tables(**shapes), k=st.integers(2, 3))
def test_every_flipped_release_passes_its_audit(drawn, k):
    if k > len(drawn.rows):
        return

    release = sfumato.release(table_of(drawn), RandomFlipper(k=k))

    assert release.manifest.guarantees[0]["audited"] >= k


@given(drawn=binary_tables(min_rows=2, max_rows=8, min_columns=1, n_classes=3, both_classes=True), data=st.data())
def test_one_row_changes_no_score_by_more_than_the_sensitivity(drawn, data):
    """The features of a row change, its class stays: a feature's separated pairs change by at most Δ."""
    rows, labels = drawn.matrix(), np.array(drawn.labels, dtype=np.int32)
    _, classes = np.unique(labels, return_inverse=True)
    classes = classes.astype(np.int32)
    n_classes = int(classes.max()) + 1
    changed = rows.copy()
    who = data.draw(st.integers(0, len(rows) - 1))
    changed[who] = data.draw(st.lists(st.integers(0, 1), min_size=rows.shape[1], max_size=rows.shape[1]))
    sizes = np.bincount(classes).astype(np.int64)

    here, there = (scores(r, classes, n_classes, sizes) for r in (rows, changed))

    sensitivity = divide_budget(1.0, 1, sizes, noise="").selection.sensitivity
    assert np.abs(here - there).max() <= sensitivity
    counts = [occupied_cells(as_binary_matrix(r), classes, n_classes) for r in (rows, changed)]
    before, after = (dict(zip(c.keys.tolist(), c.counts.tolist(), strict=True)) for c in counts)
    assert sum(abs(before.get(key, 0) - after.get(key, 0)) for key in before | after) <= 2


def scores(rows, classes, n_classes, sizes):
    found = ones_by_class(as_binary_matrix(rows), classes, n_classes).T
    return separated_pairs(found, sizes - found)


@given(data=st.data(), n_features=st.integers(1, 5), n_classes=st.integers(2, 3))
def test_scaling_keeps_shares_within_one_row_and_gives_the_class_sizes(data, n_features, n_classes):
    n_cells = n_classes << n_features
    listed = sorted(data.draw(st.sets(st.integers(0, n_cells - 1))))
    counts = data.draw(st.lists(st.integers(1, 50), min_size=len(listed), max_size=len(listed)))
    sizes = np.array(data.draw(st.lists(st.integers(1, 40), min_size=n_classes, max_size=n_classes)))
    cells = Cells(np.array(listed, dtype=np.int64), np.array(counts, dtype=np.int64), n_features, n_classes)

    scaled = scaled_to(cells, sizes)

    matrix, labels = rows_of(scaled)
    assert np.bincount(labels, minlength=n_classes).tolist() == sizes.tolist()
    assert matrix.shape == (sizes.sum(), n_features)
    assert all(a < b for a, b in pairwise(scaled.keys.tolist()))
    found = dict(zip(scaled.keys.tolist(), scaled.counts.tolist(), strict=True))
    for c in range(n_classes):
        mine = {key: n for key, n in zip(listed, counts, strict=True) if key % n_classes == c}
        for key, n in mine.items():
            assert abs(found.get(key, 0) - n * sizes[c] / sum(mine.values())) < 1


@pytest.mark.slow
@pytest.mark.parametrize("releaser", [LaplaceReleaser, ExponentialReleaser])
@given(
    drawn=binary_tables(min_rows=2, max_rows=10, min_columns=1, n_classes=3, both_classes=True),
    epsilon=st.sampled_from([1e-6, 0.01, 0.5, 1.0, 3.7, 100.0]),
    calibration=st.sampled_from(["proven", "paper"]),
    data=st.data(),
)
def test_every_noisy_release_passes_its_audit(releaser, drawn, epsilon, calibration, data):
    pytest.importorskip("opendp")
    n_features = data.draw(st.integers(1, len(drawn.rows[0])))
    mechanism = releaser(epsilon=epsilon, n_features=n_features, calibration=calibration)

    release = sfumato.release(table_of(drawn), mechanism)

    assert release.table.n_rows == len(drawn.rows)
    assert release.manifest.guarantees[0]["audited"] is None
