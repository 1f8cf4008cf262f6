"""Random flipping: every row gets k - 1 equals, by changing as many cells as it says."""

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from oracles import anonymity_level
from sfumato.datasets.admissions import admissions
from sfumato.datasets.papers import toy_containment_table
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.mechanisms.baselines.flipping import RandomFlipper, flip_to_clusters, k_member_clusters
from sfumato.schema import Column, Role, Schema
from sfumato.table.binary import BinaryTable, Feature, as_binary_matrix
from sfumato.table.coding import Table


def binary_table(rows, labels=None):
    matrix = as_binary_matrix(np.array(rows))
    columns = {} if labels is None else {"y": labels}
    schema = Schema.of([Column("y", Role.TARGET)] if columns else [])
    companions = Table.from_arrow(pa.table(columns), schema) if columns else Table(schema, {}, len(rows))
    return BinaryTable(matrix, tuple(Feature(f"x{i}", f"x{i}") for i in range(matrix.shape[1])), companions)


def random_rows(n_rows, n_columns, seed=1):
    return (np.random.default_rng(seed).random((n_rows, n_columns)) < 0.3).astype(int)


@pytest.mark.parametrize("keep_frequent", [False, True])
@pytest.mark.parametrize(("n_rows", "k"), [(20, 5), (23, 5), (9, 5), (7, 7), (30, 2), (13, 2)])
def test_every_row_gets_k_minus_1_equals(n_rows, k, keep_frequent):
    table = binary_table(random_rows(n_rows, 6))

    released = RandomFlipper(k=k, keep_frequent=keep_frequent).release(table).table

    assert anonymity_level(released.matrix.toarray().tolist()) >= k
    assert released.matrix.shape == table.matrix.shape


def test_the_stated_number_of_cells_is_the_number_that_changed():
    table = binary_table(random_rows(40, 8), list("ab" * 20))
    flipper = RandomFlipper(k=4, random_state=5)

    release = flipper.release(table)

    n_changed = int((release.table.matrix != table.matrix).sum())
    assert n_changed > 0
    assert release.manifest.perturbation == {"kind": "flipped", "n_cells_changed": n_changed}
    assert flipper.flipped_fraction_ == n_changed / (40 * 8)
    assert release.manifest.evidence["utility"]["flipped_fraction"] == float(f"{flipper.flipped_fraction_:.3g}")


def test_other_columns_and_the_row_order_stay():
    table = binary_table(random_rows(12, 4), [f"r{i}" for i in range(12)])

    released = RandomFlipper(k=3).release(table).table

    assert released.companions is table.companions
    assert released.feature_names == table.feature_names


def test_the_same_seed_gives_the_same_release_and_another_seed_another():
    table = binary_table(random_rows(60, 10))

    first, again, other = (RandomFlipper(k=5, random_state=s).release(table).table.matrix for s in (1, 1, 2))

    assert (first != again).nnz == 0
    assert (first != other).nnz > 0


def test_row_order_does_not_matter_for_the_multiset_of_released_rows():
    rows = random_rows(30, 6)
    shuffled = rows[np.random.default_rng(0).permutation(len(rows))]

    released = [
        sorted(map(tuple, RandomFlipper(k=4, random_state=0).release(binary_table(r)).table.matrix.toarray().tolist()))
        for r in (rows, shuffled)
    ]

    assert released[0] == released[1]


def test_the_input_is_not_modified():
    table = binary_table(random_rows(20, 6))
    before = table.matrix.copy()

    RandomFlipper(k=5).release(table)

    assert (table.matrix != before).nnz == 0


def test_rows_that_are_safe_already_stay_as_they_are_when_asked():
    rows = [[1, 0, 0]] * 6 + [[0, 1, 0]] * 6 + [[0, 0, 1]] * 6 + [[1, 1, 0]] * 6 + [[1, 1, 1]] * 6
    table = binary_table(rows)

    assert RandomFlipper(k=5, keep_frequent=True).release(table).manifest.perturbation["n_cells_changed"] == 0
    assert RandomFlipper(k=5, keep_frequent=False).release(table).manifest.perturbation["n_cells_changed"] > 0


def test_by_hand_two_far_apart_pairs_are_the_clusters():
    """Seeds are far apart and each takes its near neighbour, whatever the first row."""
    matrix = as_binary_matrix(
        np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1]])
    )
    for seed in range(8):
        clusters = k_member_clusters(matrix, 2, np.random.default_rng(seed))

        assert clusters[0] == clusters[2] != clusters[1] == clusters[3]


def test_a_table_without_a_single_one_is_left_alone():
    flipped = flip_to_clusters(sp.csc_matrix((6, 3), dtype=np.uint8), 3, np.random.default_rng(0))

    assert flipped.shape == (6, 3)
    assert flipped.nnz == 0


def test_a_disagreeing_bit_is_one_as_often_as_members_have_it():
    """Of 3,000 clusters with 1 one in 3 rows about a third become one: 1,000 with a standard deviation of 26."""
    n_bits = 3000
    rows = np.zeros((3, n_bits), dtype=int)
    rows[np.arange(n_bits) % 3, np.arange(n_bits)] = 1

    released = flip_to_clusters(as_binary_matrix(rows), 3, np.random.default_rng(0))

    assert 850 < released[0].nnz < 1150


def test_mixed_tables_are_binarized_and_progress_is_told():
    told = []
    table = admissions(n_rows=600)
    plan = {"bands": 2}

    release = RandomFlipper(k=2, random_state=5, binarize=plan).release(
        table, progress=lambda *state: told.append(state)
    )

    assert told[0][2] == "clusters made"
    assert release.manifest.mechanism["parameters"]["binarize"]["bands"] == 2
    assert release.manifest.mechanism["seed"] is None  # by it a guess of the original could be confirmed
    assert release.manifest.mechanism["parameters"]["random_state"] is None
    assert release.manifest.recodings


def test_a_table_without_a_target_can_be_flipped():
    release = RandomFlipper(k=2).release(binary_table(random_rows(6, 3)))

    assert "hamming_separation" not in release.manifest.evidence["utility"]


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"k": 0}, "k"),
        ({"k": 1}, "k"),
        ({"k": 2.5}, "k"),
        ({"k": True}, "k"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": "x"}, "random_state"),
        ({"keep_frequent": 1}, "keep_frequent"),
    ],
)
def test_bad_parameters_are_named(parameters, name):
    with pytest.raises(InvalidParameterError) as caught:
        RandomFlipper(**parameters).release(toy_containment_table())

    assert caught.value.name == name


def test_more_than_there_are_rows_cannot_be_had():
    with pytest.raises(PrivacyNotAchievableError, match="k = 7 on 6 rows") as caught:
        RandomFlipper(k=7).release(toy_containment_table())

    assert caught.value.best_level == 6


def test_a_table_without_features_is_refused():
    table = toy_containment_table().select([])

    with pytest.raises(SchemaError, match="no binary feature"):
        RandomFlipper(k=2).release(table)
