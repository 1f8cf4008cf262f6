"""Worked examples of [kAC17]: every number printed in the paper that follows from its Table 1."""

from fractions import Fraction

import numpy as np
import pytest

import oracles
from reproductions.public_data import load_pu1
from sfumato import GreedyContainmentSelector
from sfumato.counting.bitsets import ones_by_class
from sfumato.datasets.papers import toy_containment_table
from sfumato.measures.containment import containment_counts, containment_group, containment_level
from sfumato.measures.separation import hamming_separation

X1, X2, X3, X4, X5 = range(5)


@pytest.fixture
def toy():
    return toy_containment_table()


def hamming(toy, features):
    classes = toy.target().codes
    ones = ones_by_class(toy.matrix[:, features], classes, 2)
    return hamming_separation(ones, np.bincount(classes))


def test_first_row_is_contained_four_times_and_the_last_once(toy):
    counts = containment_counts(toy.matrix)

    assert counts.tolist() == oracles.containment_counts(toy.matrix.toarray().tolist())
    assert counts[0] == 4
    assert counts[5] == 1
    assert containment_level(toy.matrix) == 1


def test_groups_of_the_first_and_the_last_row(toy):
    """Definition 5: e1 stands among e1, e2, e4 and e5; e6 alone."""
    assert containment_group(toy.matrix, 0).tolist() == [0, 1, 3, 4]
    assert containment_group(toy.matrix, 5).tolist() == [5]


@pytest.mark.parametrize(
    ("features", "level"),
    [([X1, X2, X5], 2), ([X3, X4, X5], 2), ([X1, X3, X4, X5], 2), ([X2, X3], 1), ([X2, X4], 1), ([], 6)],
    ids=["x1x2x5", "x3x4x5", "x1x3x4x5", "x2x3", "x2x4", "none"],
)
def test_level_of_projections(toy, features, level):
    assert containment_level(toy.matrix[:, features]) == level


@pytest.mark.parametrize(
    ("features", "expected"), [([X1, X2, X5], Fraction(6, 9)), ([X3, X4, X5], Fraction(8, 9))], ids=["x1x2x5", "x3x4x5"]
)
def test_hamming_separation(toy, features, expected):
    assert hamming(toy, features) == float(expected)


def test_lemma_1_has_no_converse():
    """{(1,1), (1,0), (1,1)} is 2-anonymous by containment and not 2-anonymous."""
    assert containment_level(np.array([[1, 1], [1, 0], [1, 1]])) == 2


def test_lemma_3_has_no_converse(toy):
    """{x3, x4, x5} is feasible for k = 2 though no row contains it: the paper's F_2 omits it."""
    assert not toy.matrix[:, [X3, X4, X5]].toarray().all(axis=1).any()
    assert containment_level(toy.matrix[:, [X3, X4, X5]]) >= 2


@pytest.mark.parametrize("criterion", ["hamming_separation", "distinguished_pairs"])
def test_greedy_stops_after_the_second_feature_breaks_k(toy, criterion):
    """x2 comes first, and x3, next in line, makes the rare pair {x2, x3}."""
    selector = GreedyContainmentSelector(k=2, criterion=criterion).fit(toy.matrix, toy.target().codes)

    assert selector.selected_columns_.tolist() == [X2]


@pytest.mark.parametrize("criterion", ["hamming_separation", "distinguished_pairs"])
def test_greedy_with_skip_reaches_a_true_maximal_set(toy, criterion):
    selector = GreedyContainmentSelector(k=2, criterion=criterion, on_infeasible="skip")

    selector.fit(toy.matrix, toy.target().codes)

    assert selector.selected_columns_.tolist() == [X1, X2, X5]
    assert selector.containment_level_ == 2


@pytest.mark.parametrize(
    ("parameters", "counts"),
    [
        ({}, (11, 11, 11)),
        ({"criterion": "distinguished_pairs"}, (11, 7, 7)),
        ({"criterion": "classification_metric"}, (3, 3, 3)),
        ({"reveals": "both"}, (4, 4, 4)),
        ({"criterion": "distinguished_pairs", "reveals": "both"}, (4, 4, 4)),
    ],
    ids=["HamDist", "DistCnt", "CM", "k-anonymity HamDist", "k-anonymity DistCnt"],
)
def test_email_data_selects_the_papers_number_of_features(shared_data, parameters, counts):
    """Table 6 of the paper, selected-feature counts of the greedy methods on the e-mail data at k = 5, 8, 11."""
    mail = load_pu1()

    for k, n_selected in zip((5, 8, 11), counts, strict=True):
        selector = GreedyContainmentSelector(k=k, **parameters).fit(mail.matrix, mail.target().codes)
        assert len(selector.selected_columns_) == n_selected
        assert selector.containment_level_ >= k
