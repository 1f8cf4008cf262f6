"""Which values reveal, the bound on unique patterns, and the criteria beside the paper's two."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
import sfumato
import sfumato.datasets.admissions
import sfumato.datasets.papers
from sfumato import GreedyContainmentSelector
from sfumato.audit import measured_level
from sfumato.counting.bitsets import ONES, ZEROS, ProjectedRows, ones_by_class, revealing_items
from sfumato.guarantees import REVEALING, Containment, KAnonymity, UniquePatterns
from sfumato.measures.containment import containment_level
from sfumato.mechanisms.containment.greedy import candidates, modular_gains
from sfumato.table.binary import BinaryTable, Feature, as_binary_matrix
from sfumato.table.coding import Table
from strategies import binary_tables

LEVELS = st.integers(1, 4)
ASKED = st.integers(2, 4)  # what a mechanism can be asked for
LABELLED = binary_tables(min_rows=4, min_columns=1, both_classes=True)


def known_items(row, reveals, features):
    """List what an attacker may know of a row, as a set of (feature, value)."""
    shows = {(1, 1), (1, 3), (0, 2), (0, 3)}
    return {(f, row[f]) for f in features if (row[f], reveals[f]) in shows}


def level_by_definition(rows, reveals, features):
    known = [known_items(row, reveals, features) for row in rows]
    return min(sum(all(row[f] == value for f, value in items) for row in rows) for items in known)


@pytest.mark.slow
@given(LABELLED, LEVELS, st.data())
def test_incremental_check_with_any_revealing_values(table, k, data):
    rows, labels = table
    n = len(rows[0])
    reveals = data.draw(st.lists(st.sampled_from([ONES, ZEROS, ONES | ZEROS]), min_size=n, max_size=n))
    codes = np.array(reveals, dtype=np.uint8)
    matrix = as_binary_matrix(np.array(rows))
    projected = ProjectedRows(matrix, np.array(labels, dtype=np.int32), 2, codes)

    for feature in data.draw(st.permutations(range(n))):
        features = [*projected.chosen, feature]
        level = level_by_definition(rows, reveals, features)
        assert containment_level(revealing_items(matrix[:, features], codes[features])) == level
        assert projected.keeps_containment(feature, k) == (level >= k)
        patterns = [tuple(row[f] for f in features) for row in rows]
        assert projected.n_unique_with(feature) == sum(patterns.count(p) == 1 for p in patterns)
        if level >= k:
            projected.add(feature)


@given(LABELLED, st.data())
def test_audit_measures_revealing_values_by_definition(table, data):
    rows, _ = table
    n = len(rows[0])
    words = data.draw(st.lists(st.sampled_from(REVEALING), min_size=n, max_size=n))
    names = [f"x{i}" for i in range(n)]
    reveals = [REVEALING.index(word) + 1 for word in words]
    empty = Table(sfumato.Schema.of([]), {}, len(rows))
    released = BinaryTable(as_binary_matrix(np.array(rows)), tuple(Feature(name, name) for name in names), empty)

    found = measured_level(Containment(2, tuple(names), tuple(words)), released)

    assert found == level_by_definition(rows, reveals, range(n))


@given(LABELLED, ASKED)
def test_revealing_both_everywhere_is_ordinary_anonymity(table, k):
    rows, labels = table
    selector = GreedyContainmentSelector(k=k, reveals="both", on_infeasible="skip").fit(np.array(rows), labels)
    chosen = selector.selected_columns_.tolist()

    assert oracles.anonymity_level([[row[f] for f in chosen] for row in rows]) == selector.containment_level_ >= k


@pytest.mark.slow
@given(LABELLED, st.fractions(0, 1).filter(lambda limit: float(limit) < 1))
def test_the_bound_on_unique_patterns_holds(table, limit):
    rows, labels = table
    selector = GreedyContainmentSelector(k=2, on_infeasible="skip", max_unique_fraction=float(limit))

    chosen = selector.fit(np.array(rows), labels).selected_columns_.tolist()

    patterns = [tuple(row[f] for f in chosen) for row in rows]
    assert sum(patterns.count(p) == 1 for p in patterns) / len(rows) <= float(limit)


@given(LABELLED)
def test_class_contrast_and_mutual_information_follow_their_definitions(table):
    rows, labels = table
    classes = np.array(labels, dtype=np.int32)
    ones = ones_by_class(as_binary_matrix(np.array(rows)), classes, 2)
    sizes = np.bincount(classes)

    contrast = modular_gains("class_contrast", ones, sizes)
    information = modular_gains("mutual_information", ones, sizes)

    for f in range(len(rows[0])):
        share = [
            Fraction(sum(r[f] for r, y in zip(rows, labels, strict=True) if y == c), labels.count(c)) for c in (0, 1)
        ]
        assert contrast[f] == pytest.approx(float(abs(share[0] - share[1])))
        expected = oracles.mutual_information_bits([row[f] for row in rows], labels)
        assert information[f] == pytest.approx(expected, abs=1e-12)


def minority_rows(rows, labels, features):
    groups = {}
    for row, label in zip(rows, labels, strict=True):
        groups.setdefault(tuple(row[f] for f in features), []).append(label)
    return sum(len(group) - max(map(group.count, group)) for group in groups.values())


@given(LABELLED)
def test_classification_metric_counts_rows_in_the_minority(table):
    """Definition 2 of the paper, feature after feature as the greedy offers them."""
    rows, labels = table
    projected = ProjectedRows(as_binary_matrix(np.array(rows)), np.array(labels, dtype=np.int32), 2)

    for feature, gain in candidates("classification_metric", projected):
        before = minority_rows(rows, labels, projected.chosen)
        gains = {
            f: before - minority_rows(rows, labels, [*projected.chosen, f])
            for f in range(len(rows[0]))
            if f not in projected.chosen
        }
        assert math.isclose(gain * len(rows), gains[feature], abs_tol=1e-9)
        assert gains[feature] == max(gains.values())
        assert feature == min(f for f, g in gains.items() if g == gains[feature])
        projected.add(feature)


@pytest.mark.parametrize(
    ("reveals", "kind"),
    [("ones", Containment), ("both", KAnonymity), ("zeros", Containment), ({"x2": "both"}, Containment)],
    ids=["ones", "both", "zeros", "mixed"],
)
def test_a_release_promises_what_its_revealing_values_mean(reveals, kind):
    toy = sfumato.datasets.papers.toy_containment_table()

    release = sfumato.release(toy, GreedyContainmentSelector(k=2, on_infeasible="skip", reveals=reveals))

    (promise,) = release.manifest.promised()
    assert type(promise) is kind


@pytest.mark.slow
def test_a_release_with_a_bound_promises_and_audits_it():
    stays = sfumato.datasets.admissions.admissions(n_rows=300)
    loose = sfumato.release(stays, GreedyContainmentSelector(k=3, on_infeasible="skip"))
    assert loose.manifest.evidence["risk"]["unique_pattern_fraction"] > 0.001

    strict = sfumato.release(stays, GreedyContainmentSelector(k=3, on_infeasible="skip", max_unique_fraction=0.0))

    assert strict.manifest.promised()[1] == UniquePatterns(0.0, strict.table.feature_names)
    assert strict.manifest.guarantees[1]["audited"] == 0
