"""Raw rows passed off as noisy ones are refused, honest ones are not; the bound beside every possible noise."""

import json
import math
from collections import defaultdict
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.audit.auditor import AuditorHas
from sfumato.audit.levels.differential_privacy import LEAST_PROBABILITY, ClassCells, _Noise, _of_class, log_probability
from sfumato.manifest import manifest_digest
from sfumato.mechanisms.baselines.noisy_counts import Cells, ExponentialReleaser, LaplaceReleaser, scaled_to
from sfumato.schema import Column, Role, Schema
from sfumato.table.binary import BinaryTable, Feature, as_binary_matrix
from sfumato.table.coding import Table

MOST = {2: 24, 4: 9}
"""Noisy counts below these are listed, by number of cells: what is above is improbable at these scales."""


def outcome_probabilities(counts, scale, threshold, n):
    """Probability of every released table of one class: all noise listed, with the mechanism's own scaling."""
    alpha = math.exp(-1 / scale)
    weight = (1 - alpha) / (1 + alpha)
    of_cell = []
    for count in counts:
        kept = {m: weight * alpha ** abs(m - count) for m in range(threshold, MOST[len(counts)])}
        room = threshold - 1 - count
        dropped = 1 - alpha ** (room + 1) / (1 + alpha) if room >= 0 else alpha**-room / (1 + alpha)
        of_cell.append({0: dropped} | kept)
    n_features = int(math.log2(len(counts)))
    found = defaultdict(float)
    for noisy in product(*of_cell):
        keys = np.array([i for i, m in enumerate(noisy) if m], dtype=np.int64)
        cells = Cells(keys, np.array([m for m in noisy if m], dtype=np.int64), n_features, 1)
        scaled = scaled_to(cells, np.array([n]))
        released = np.zeros(len(counts), dtype=np.int64)
        released[scaled.keys] = scaled.counts
        found[tuple(released.tolist())] += math.prod(of_cell[i][m] for i, m in enumerate(noisy))
    return found


def cells_of(counts, released):
    """Rows of one class as the audit gets them."""
    n_features = int(math.log2(len(counts)))
    before, after = (np.repeat(np.arange(len(own)), own) for own in (counts, released))
    return _of_class(before, after, n_features)


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(3, 2), (5, 0), (1, 1), (2, 0, 1, 1), (0, 0, 4, 0)])
@pytest.mark.parametrize("scale", [0.4, 1.0, 2.0])
@pytest.mark.parametrize("threshold", [1, 2, 3, 5])
def test_no_release_is_more_probable_than_the_bound_says(counts, scale, threshold):
    noise, n = _Noise(scale), sum(counts)

    for released, probability in outcome_probabilities(counts, scale, threshold, n).items():
        bound = noise.of_release(cells_of(counts, released), float(len(counts)), threshold)
        assert probability <= math.exp(bound) * (1 + 1e-9), released


@pytest.mark.slow
@pytest.mark.parametrize(("counts", "scale", "threshold"), [((3, 2), 1.0, 1), ((2, 0, 1, 1), 2.0, 2), ((4, 1), 3.0, 3)])
@pytest.mark.parametrize("level", [0.5, 0.1, 0.01])
def test_so_strong_evidence_comes_about_with_no_higher_probability(counts, scale, threshold, level):
    """The promise of the false refusals, at levels that can be reached on tables this small."""
    outcomes = outcome_probabilities(counts, scale, threshold, sum(counts))
    n_features = int(math.log2(len(counts)))

    refused = sum(
        probability
        for released, probability in outcomes.items()
        if math.exp(log_probability([cells_of(counts, released)], n_features, scale, threshold)) < level
    )

    assert refused <= level


@given(data=st.data(), scale=st.sampled_from([0.02, 0.3, 1.0, 4.0, 4e6]), threshold=st.integers(1, 10**9))
def test_the_bound_is_a_probability_whatever_the_counts(data, scale, threshold):
    size = data.draw(st.integers(1, 6))
    original = np.array(data.draw(st.lists(st.integers(0, 10**6), min_size=size, max_size=size)))
    released = np.array(data.draw(st.lists(st.integers(0, 10**4), min_size=size, max_size=size)))

    found = log_probability([ClassCells(original, released)], 8, scale, threshold)

    assert not math.isnan(found)
    assert found <= 0


def rows(seed, n_rows=400, n_features=8):
    rng = np.random.default_rng(seed)
    shares = rng.uniform(0.1, 0.9, n_features)
    y = (rng.random(n_rows) < 0.5).astype(int)
    bits = (rng.random((n_rows, n_features)) < np.where(y[:, None] == 1, shares, shares[::-1])).astype(int)
    return table_of(bits, y)


def table_of(bits, y):
    companions = Table.from_arrow(pa.table({"y": [str(label) for label in y]}), Schema.of([Column("y", Role.TARGET)]))
    features = tuple(Feature(f"x{i}", f"x{i}") for i in range(bits.shape[1]))
    return BinaryTable(as_binary_matrix(bits), features, companions)


def passed_off(original, release, change=lambda bits: bits):
    """Take the original's own rows on the chosen features, sorted, with figures that fit, under the honest manifest."""
    places = [original.position(name) for name in release.table.feature_names]
    bits = change(original.matrix[:, places].toarray().astype(int))
    labels = np.asarray(original.target().values.to_pylist())[original.target().codes]
    order = np.lexsort((labels, *bits.T[::-1]))
    forged = table_of(bits[order], labels[order])
    forged = BinaryTable(forged.matrix, release.table.features, forged.companions)
    manifest = json.loads(release.manifest.to_json())
    ones = np.array([bits[labels == c].sum(axis=0) for c in ("0", "1")])
    sizes = np.array([(labels == c).sum() for c in ("0", "1")])
    apart = (
        ones.sum(axis=0) * (sizes[:, None] - ones).sum(axis=0) - (ones * (sizes[:, None] - ones)).sum(axis=0)
    ).sum()
    manifest["evidence"]["utility"]["hamming_separation_of_synthetic_rows"] = int(apart) / int(sizes[0] * sizes[1])
    return forged, manifest | {"digest": manifest_digest(manifest)}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
def test_raw_rows_passed_off_as_synthetic_are_refused(seed):
    pytest.importorskip("opendp")
    original = rows(seed)
    releaser = (LaplaceReleaser, ExponentialReleaser)[seed % 2]
    n_features, epsilon = (3, 5, 8)[seed % 3], (0.1, 0.5, 1.0)[seed % 3]
    release = sfumato.release(original, releaser(epsilon=epsilon, n_features=n_features))
    forged, manifest = passed_off(original, release)

    report = sfumato.audit_release(forged, manifest, AuditorHas(original=original))

    assert report.verdict == "refused"
    assert len(report.failures) == 1, report.failures
    assert "too exact for noise of the scale" in report.failures[0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
def test_an_honest_release_is_not_refused_and_not_confirmed_outright(seed):
    pytest.importorskip("opendp")
    original = rows(seed)
    releaser = (LaplaceReleaser, ExponentialReleaser)[seed % 2]
    release = sfumato.release(original, releaser(epsilon=(0.1, 1.0, 5.0)[seed % 3], n_features=(2, 5, 8)[seed % 3]))

    entries = json.loads(release.manifest.to_json())
    report = sfumato.audit_release(release.table, entries, AuditorHas(original=original, roles=True))

    assert report.verdict == "confirmed except", report.failures
    assert [exception.name for exception in report.unchecked] == ["epsilon", "noise"]


def swap_some(bits):
    changed = bits.copy()
    changed[:10, 0] = 1 - changed[:10, 0]
    return changed


def test_raw_rows_with_a_few_changed_are_refused_too():
    pytest.importorskip("opendp")
    original = rows(1)
    release = sfumato.release(original, LaplaceReleaser(epsilon=1.0, n_features=8))

    forged, manifest = passed_off(original, release, swap_some)

    assert sfumato.audit_release(forged, manifest, AuditorHas(original=original)).verdict == "refused"


def test_far_too_little_noise_is_refused_too():
    """Counts with noise of a tenth of the stated scale."""
    pytest.importorskip("opendp")
    original = rows(2, n_rows=4_000, n_features=6)
    release = sfumato.release(original, LaplaceReleaser(epsilon=0.5, n_features=6))
    less = LaplaceReleaser(epsilon=5.0, n_features=6).release(original)
    manifest = json.loads(release.manifest.to_json())
    manifest["evidence"] = json.loads(less.manifest.to_json())["evidence"]
    manifest["digest"] = manifest_digest(manifest)

    report = sfumato.audit_release(less.table, manifest, AuditorHas(original=original))

    assert any("too exact" in failure for failure in report.failures)


def test_where_noise_is_mostly_zero_nothing_can_be_told():
    """At an ε of 100 an honest release is often the raw table."""
    pytest.importorskip("opendp")
    original = rows(3, n_features=3)
    release = sfumato.release(original, LaplaceReleaser(epsilon=100.0, n_features=3))
    forged, manifest = passed_off(original, release)

    assert sfumato.audit_release(forged, manifest, AuditorHas(original=original)).verdict == "confirmed except"


def test_without_the_original_the_audit_says_what_it_needs():
    pytest.importorskip("opendp")
    release = sfumato.release(rows(4), LaplaceReleaser(n_features=3))

    report = sfumato.audit_release(release.table, json.loads(release.manifest.to_json()))

    assert report.verdict == "confirmed except"
    remedies = {exception.name: exception.remedy for exception in report.unchecked}
    assert remedies["noise"] == "give the original"
    assert remedies["epsilon"] == ""  # nothing makes it possible


def test_the_stated_probability_of_a_false_refusal():
    assert LEAST_PROBABILITY == 1e-9
