"""The audit's own look at a privacy gain: what was removed, of how much, and that nothing was left out."""

import json
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit import audit_release
from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.audit.claims import read_claims
from sfumato.errors import InvalidParameterError, ManifestError
from sfumato.guarantees import guarantee_from_dict
from sfumato.guarantees.entropy import PrivacyGain
from sfumato.schema import Kind, Role
from unit.audit.audit_oracles import CANARY, manifest_of, sealed, table_of

N = 40
CELLS = {
    "a": [CANARY if i % 4 else "x" for i in range(N)],
    "b": [None if i % 5 == 0 else str(i % 3) for i in range(N)],
    "c": [float(i) for i in range(N)],
    "y": ["nj"[i % 2] for i in range(N)],
    "ward": [str(i % 3) for i in range(N)],
}
TABLE = table_of(CELLS, {"y": Role.TARGET, "ward": Role.OTHER}, {"c": Kind.NUMERIC})
N_VALUES = {"a": 2, "b": 4, "c": 3}
CUTS = {"c": (9.0, 20.0)}


def entropy(cells):
    return -sum(n / len(cells) * math.log2(n / len(cells)) for n in Counter(cells).values())


def gain(removed=("b",), columns=("a", "c"), theta=0.1, n_values=N_VALUES, cuts=CUTS):
    return PrivacyGain(theta, columns, removed, n_values, cuts)


INTERVALS = ["≤ 9" if c <= 9 else "]9, 20]" if c <= 20 else "> 20" for c in CELLS["c"]]
IN_INTERVALS = table_of(CELLS | {"c": INTERVALS}, {"y": Role.TARGET, "ward": Role.OTHER})
AS_INTERVALS = {"name": "c", "column": "c", "rule": "hierarchy", "kind": "numeric", "labels": {}}


def audited(guarantee, keep=("a", "c", "y", "ward"), check_roles=True, original=TABLE, **changes):
    """Audit a release of these columns; a cut one that stays is released by interval, as it should be."""
    is_cut = "c" in guarantee.cuts and "c" in guarantee.columns
    released = (IN_INTERVALS if is_cut else original).keep(keep)
    changes = {"recodings": [AS_INTERVALS] if is_cut else []} | changes
    manifest = manifest_of(released, [(guarantee, None)], original, **changes)
    return audit_release(
        released,
        manifest,
        AuditorHas(original=original, roles=check_roles),
        publisher=PublisherKnows(levels_are_stated=False),
    )


def failed(report):
    return [check.name for check in report.checks if not check.passed]


def test_an_honest_gain_is_confirmed_and_measured_by_the_definition():
    report = audited(gain())
    most = math.log2(2) + math.log2(4) + math.log2(3)

    assert report.passed, report.failures
    assert report.levels[0] == pytest.approx(entropy(CELLS["b"]) / most)


def test_removed_numbers_count_by_interval():
    report = audited(gain(("c",), ("a", "b")), keep=("a", "b", "y", "ward"))
    cells = [sum(value > cut for cut in CUTS["c"]) for value in CELLS["c"]]

    assert report.passed, report.failures
    assert report.levels[0] == pytest.approx(entropy(cells) / math.log2(24))


@given(st.lists(st.tuples(*[st.sampled_from([None, "u", "v", "w"])] * 2), min_size=1, max_size=12))
def test_the_level_is_the_definition_on_small_tables(rows):
    original = table_of({"p": [row[0] for row in rows], "q": [row[1] for row in rows]})
    report = audited(gain(("q",), ("p",), 0.01, {"p": 4, "q": 4}, {}), keep=("p",), original=original)

    assert report.levels[0] == pytest.approx(entropy([row[1] for row in rows]) / 4, abs=1e-9)


def test_a_gain_that_is_not_reached_is_not_confirmed():
    assert failed(audited(gain(theta=0.6))) == ["privacy-gain: level"]


def test_a_removed_column_that_is_released_is_found():
    assert "privacy-gain: removed" in failed(audited(gain(), keep=("a", "b", "c", "y", "ward")))


def test_a_removed_column_that_lives_on_in_another_is_found():
    recoding = {"name": "a", "column": "b", "rule": "missing"}

    assert "privacy-gain: removed" in failed(audited(gain(), recodings=[recoding]))


def test_a_quasi_identifier_left_out_is_found():
    """Without column c the largest entropy is smaller, so the gain looks larger."""
    promise = gain(("b",), ("a",), n_values={"a": 2, "b": 4}, cuts={})

    assert failed(audited(promise, keep=("a", "y", "ward"))) == ["privacy-gain: counted"]
    assert failed(audited(promise)) == ["privacy-gain: counted", "privacy-gain: columns"]
    assert audited(promise, keep=("a", "y", "ward"), check_roles=False).passed


def test_columns_that_do_not_exist_are_found():
    promise = gain(columns=("a", "c", "ghost"), n_values=N_VALUES | {"ghost": 1})

    for check_roles in (True, False):
        assert "privacy-gain: counted" in failed(audited(promise, check_roles=check_roles))


@pytest.mark.parametrize(
    ("n_values", "cuts"), [(N_VALUES | {"a": 1}, CUTS), (N_VALUES | {"b": 3}, CUTS), (N_VALUES | {"c": 39}, {})]
)
def test_fewer_values_than_there_are_are_found(n_values, cuts):
    assert "privacy-gain: values" in failed(audited(gain(n_values=n_values, cuts=cuts)))


@pytest.mark.parametrize("recodings", [[], [AS_INTERVALS]])
@pytest.mark.parametrize(("n_values", "cuts"), [(3, (9.0, 20.0)), (2, (20.0,))])
def test_numbers_that_are_released_count_all_whatever_cuts_are_stated(recodings, n_values, cuts):
    """With intervals in their place the largest entropy is smaller, and the gain looks larger."""
    released = TABLE.keep(("a", "c", "y", "ward"))
    promise = gain(n_values=N_VALUES | {"c": n_values}, cuts={"c": cuts})
    manifest = manifest_of(released, [(promise, None)], TABLE, recodings=recodings)
    report = audit_release(
        released, manifest, AuditorHas(original=TABLE, roles=True), publisher=PublisherKnows(levels_are_stated=False)
    )

    assert "privacy-gain: values" in failed(report)


def test_intervals_with_other_numbers_in_them_are_found():
    changed = table_of(CELLS | {"c": INTERVALS[::-1]}, {"y": Role.TARGET, "ward": Role.OTHER}).keep(("a", "c", "y"))
    manifest = manifest_of(changed, [(gain(), None)], TABLE.keep(("a", "b", "c", "y")), recodings=[AS_INTERVALS])
    report = audit_release(
        changed,
        manifest,
        AuditorHas(original=TABLE.keep(("a", "b", "c", "y"))),
        publisher=PublisherKnows(levels_are_stated=False),
    )

    assert "cells" in failed(report)


def test_intervals_of_a_column_that_holds_text_are_found():
    report = audited(gain(n_values={"a": 2, "b": 4, "c": 40}, cuts={"a": (1.0,)}))

    assert "privacy-gain: values" in failed(report)
    assert CANARY not in "".join(check.message for check in report.checks)


def test_a_table_of_constants_has_no_gain_to_measure():
    original = table_of({"p": ["u"], "q": ["u"]})

    assert "privacy-gain: level" in failed(
        audited(gain(("q",), ("p",), 0.5, {"p": 1, "q": 1}, {}), keep=("p",), original=original)
    )


def test_without_the_original_it_is_said_not_to_be_checked():
    released = TABLE.keep(("a", "c", "y", "ward"))
    report = audit_release(released, manifest_of(released, [(gain(), 0.5)], TABLE))

    assert "privacy-gain: level" not in [check.name for check in report.checks]
    assert [one.message for one in report.unchecked if one.name == "promises"] == [
        "privacy-gain was not measured: it needs the original"
    ]


def test_a_parameter_that_differs_from_the_promise_is_found():
    mechanism = {"name": "collaboration", "parameters": {"min_privacy_gain": 0.3}, "seed": None}

    assert failed(audited(gain(), mechanism=mechanism)) == ["privacy-gain: parameter min_privacy_gain"]


def test_a_promise_survives_the_manifest():
    guarantee = gain()
    again = guarantee_from_dict(json.loads(json.dumps(guarantee.to_dict())))

    assert again == guarantee
    assert again.describe() == guarantee.describe()
    assert "NOT k-anonymity" in guarantee.describe()
    assert "singled out by the 2 columns" in guarantee.describe()


@pytest.mark.parametrize(
    "fields",
    [
        {"theta": 0},
        {"theta": 1.5},
        {"theta": math.nan},
        {"removed": ()},
        {"removed": ("b", "b")},
        {"removed": ("b", "a")},
        {"n_values": {"a": 2, "b": 4}},
        {"n_values": N_VALUES | {"d": 2}},
        {"n_values": N_VALUES | {"a": 0}},
        {"n_values": N_VALUES | {"a": True}},
        {"n_values": N_VALUES | {"a": 2.5}},
        {"n_values": (2, 4, 3)},
        {"cuts": {"d": (1.0,)}},
        {"cuts": {"c": ()}, "n_values": N_VALUES | {"c": 1}},
        {"cuts": {"c": (2.0, 1.0)}},
        {"cuts": {"c": (1.0, math.nan)}},
        {"cuts": {"c": (1.0,)}, "n_values": N_VALUES | {"c": 4}},
        {"cuts": {"c": (1.0, 2.0, 3.0)}},
        {"cuts": [1.0]},
    ],
)
def test_promises_that_make_no_sense_are_refused(fields):
    with pytest.raises(InvalidParameterError):
        gain(**fields)


@pytest.mark.parametrize(
    "changes",
    [
        {"n_values": []},
        {"n_values": {"a": "2", "b": 4, "c": 3}},
        {"n_values": {"a": 2, "b": -4, "c": 3}},
        {"removed": "b"},
        {"removed": [3]},
        {"cuts": []},
        {"cuts": {"c": "12"}},
        {"cuts": {"c": [1, "2"]}},
        {"cuts": {"c": [9.0, True]}},
        {"min_privacy_gain": "0.1"},
        {"min_privacy_gain": 2},
        {"more": 1},
    ],
)
def test_malformed_entries_are_refused(changes):
    released = TABLE.keep(("a", "c", "y", "ward"))
    manifest = json.loads(json.dumps(manifest_of(released, [(gain(), 0.5)], TABLE)))
    read_claims(manifest)
    manifest["guarantees"][0] |= changes

    with pytest.raises(ManifestError):
        read_claims(sealed(manifest))
