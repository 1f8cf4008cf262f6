"""What counts of distinct rows cannot show is named."""

from types import SimpleNamespace

import pytest

from sfumato.audit.in_blocks import beyond_counts


@pytest.mark.parametrize(
    ("claimed", "named"),
    [
        ({}, []),
        ({"drops_incomplete_rows": True}, ["incomplete rows that were left out"]),
        ({"perturbation": SimpleNamespace(kind="shuffled")}, ["rows that are shuffled"]),
        ({"input_parties": 3}, ["a release of several parties' rows"]),
        ({"stated_risk": {"smallest_bucket": 3, "k": 5}}, ["smallest_bucket"]),
    ],
    ids=["nothing", "incomplete rows", "perturbation", "parties", "risk"],
)
def test_what_counts_cannot_show_is_named(claimed, named):
    nothing = {"promises": [], "stated_risk": {}, "perturbation": None, "drops_incomplete_rows": False}
    nothing |= {"input_parties": None, "recodings": {}}
    claims = SimpleNamespace(**(nothing | claimed))

    assert list(beyond_counts(claims)) == named
