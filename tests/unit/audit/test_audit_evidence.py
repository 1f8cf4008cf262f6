"""Risk that a manifest states is measured anew."""

import pytest

import sfumato
from sfumato.datasets.papers import toy_containment_table
from sfumato.selection.containment import GreedyContainmentSelector


def audited_with(**risk):
    release = sfumato.release(toy_containment_table(), GreedyContainmentSelector(k=2, on_infeasible="skip"))
    stated = dict(release.manifest.evidence["risk"]) | risk
    changed = release.with_manifest(evidence={**release.manifest.evidence, "risk": stated})
    return sfumato.audit_release(changed.table, changed.manifest.to_dict())


def test_what_a_mechanism_states_is_confirmed():
    report = audited_with()

    assert report.passed
    assert {c.name for c in report.checks} >= {
        "risk: containment level",
        "risk: anonymity level",
        "risk: unique pattern fraction",
    }


@pytest.mark.parametrize(
    "risk",
    [{"anonymity_level": 3}, {"containment_level": 9}, {"unique_pattern_fraction": 0.5}, {"anonymity_level": "high"}],
    ids=["k", "containment", "unique", "no number"],
)
def test_a_wrong_statement_fails(risk):
    report = audited_with(**risk)

    assert len(report.failures) == 1
    assert next(iter(risk)).replace("_", " ") in report.failures[0]
