import json

import pytest

from sfumato.audit import risk_profile
from sfumato.schema import Kind, Role, Schema
from sfumato.table.coding import Table
from unit.audit.audit_oracles import binary_table, golden_table, table_from_rows, table_of

PATIENTS = table_of(
    {
        "name": ["n1", "n2", "n3", "n4", "n5"],
        "zip": ["a", "a", "b", "b", "c"],
        "age": ["30", "30", "40", "40", "50"],
        "illness": ["flu", "cold", "flu", None, "flu"],
        "pay": ["10", "20", "10", "10", "20"],
        "dead": ["no", "yes", "no", "no", "no"],
    },
    {
        "name": Role.IDENTIFIER,
        "illness": Role.SENSITIVE,
        "pay": Role.SENSITIVE,
        "dead": Role.TARGET,
    },
    {"age": Kind.NUMERIC, "pay": Kind.NUMERIC},
)


def test_a_profile_by_hand():
    profile = risk_profile(PATIENTS)

    assert profile["n_rows"] == 5
    assert profile["quasi_identifiers"] == ["zip", "age"]
    assert (profile["k"], profile["n_classes"]) == (1, 3)
    assert profile["sample_uniques"] == {"count": 1, "share": 0.2}
    assert profile["share_of_rows_at_risk"] == {"2": 0.2, "3": 1.0, "5": 1.0, "10": 1.0}
    assert profile["reidentification_risk"] == {"largest": 1.0, "mean": 0.6}
    assert profile["target"] == {"column": "dead", "n_classes": 2}
    assert profile["containment"] is None
    assert set(profile["sensitive"]) == {"illness", "pay"}
    assert profile["sensitive"]["illness"]["t_ordered"] is None
    assert profile["sensitive"]["pay"] == {
        "distinct_l": 1,
        "entropy_l": 1.0,
        "recursive_l": {"c": 3.0, "l": 1},
        "t_equal": pytest.approx(0.6),
        "t_ordered": pytest.approx(0.6),
        "n_merged_spellings": 0,
    }


def test_a_profile_is_plain_data():
    for table in (PATIENTS, golden_table(), binary_table([[1]], 1)):
        profile = risk_profile(table)

        assert json.loads(json.dumps(profile, allow_nan=False)) == profile


def test_binary_quasi_identifiers_have_a_containment_level():
    """Table 1 of the paper: AC = 1, two of six patterns are unique."""
    profile = risk_profile(golden_table())

    assert profile["containment"] == {"level": 1, "unique_pattern_share": 0.5}
    assert profile["sample_uniques"]["count"] == 3
    assert profile["target"] == {"column": "class", "n_classes": 2}


def test_sparse_features_are_quasi_identifiers():
    profile = risk_profile(binary_table([[1, 0], [1, 0], [1, 1]], 2))

    assert (profile["k"], profile["quasi_identifiers"]) == (1, ["f0", "f1"])
    assert profile["containment"] == {"level": 1, "unique_pattern_share": 1 / 3}


def test_without_quasi_identifiers_all_rows_are_alike():
    profile = risk_profile(table_of({"s": ["a", "b", "b"]}, {"s": Role.SENSITIVE}))

    assert (profile["k"], profile["n_classes"], profile["reidentification_risk"]["largest"]) == (3, 1, 1 / 3)
    assert (profile["sensitive"]["s"]["distinct_l"], profile["target"], profile["containment"]) == (2, None, None)


def test_a_table_without_rows_has_a_profile():
    profile = risk_profile(table_from_rows([], []))

    assert (profile["n_rows"], profile["k"], profile["n_classes"]) == (0, 0, 0)
    assert profile["reidentification_risk"] == {"largest": 0.0, "mean": 0.0}
    assert risk_profile(Table(Schema.of([]), {}, 0))["k"] == 0
