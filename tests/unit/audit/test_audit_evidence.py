"""What a manifest states beside its promises is measured anew."""

import json

import pyarrow as pa
import pytest

import sfumato
from sfumato.audit.auditor import PublisherKnows
from sfumato.datasets.admissions import admissions
from sfumato.datasets.papers import toy_containment_table
from sfumato.errors import ManifestRefusedError
from sfumato.mechanisms.buckets.anatomy import Anatomy
from sfumato.mechanisms.buckets.slicing import Slicer
from sfumato.mechanisms.containment.greedy import GreedyContainmentSelector
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.registry import build_mechanism
from sfumato.schema import Column, Role, Schema
from sfumato.table.coding import Table


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
    [{"anonymity_level": 3}, {"containment_level": 9}, {"unique_pattern_fraction": 0.5}],
    ids=["k", "containment", "unique"],
)
def test_a_wrong_statement_fails(risk):
    report = audited_with(**risk)

    assert len(report.failures) == 1
    assert next(iter(risk)).replace("_", " ") in report.failures[0]


@pytest.mark.parametrize("risk", [{"anonymity_level": "high"}, {"anonymity_level": True}, {"certified_k": 1000}])
def test_a_statement_of_another_type_or_name_is_refused(risk):
    with pytest.raises(ManifestRefusedError, match=r"evidence\.risk"):
        audited_with(**risk)


def patients():
    return admissions(n_rows=200).keep(["age", "sex", "insurance", "discharge_diagnosis", "readmitted"])


def failed_with(release, change):
    """Names of the checks that fail once the manifest is changed, that of its digest left out."""
    manifest = json.loads(json.dumps(release.manifest.to_dict()))
    change(manifest)
    try:
        report = sfumato.audit_release(release.table, manifest, publisher=PublisherKnows(levels_are_stated=False))
    except ManifestRefusedError:
        return ["form of the manifest"]
    return [check.name for check in report.checks if not check.passed and check.name != "manifest digest"]


@pytest.mark.parametrize(
    ("mechanism", "name", "wrong"),
    [
        (Slicer(k=5, l=2), "smallest_bucket", 9999),
        (Slicer(k=5, l=2), "smallest_bucket", None),
        (Anatomy(l=2), "largest_share_of_a_sensitive_value", 0.0001),
        (Anatomy(l=2), "largest_share_of_a_sensitive_value", "small"),
    ],
    ids=["bucket", "no bucket", "share", "no share"],
)
def test_risk_in_buckets_is_measured(mechanism, name, wrong):
    release = mechanism.release(patients())

    assert failed_with(release, lambda manifest: None) == []
    found = failed_with(release, lambda manifest: manifest["evidence"]["risk"].update({name: wrong}))
    assert found == [f"risk: {name.replace('_', ' ')}" if isinstance(wrong, int | float) else "form of the manifest"]


def test_a_share_in_buckets_that_are_not_equally_diverse():
    release = Slicer(k=5, l=2).release(patients())
    rows = release.table.to_arrow().to_pylist()
    shares = []
    for bucket in {row["bucket"] for row in rows}:
        ill = [row["discharge_diagnosis"] for row in rows if row["bucket"] == bucket]
        shares.append(max(ill.count(value) for value in ill) / len(ill))

    def state(share):
        name = "largest_share_of_a_sensitive_value"
        return failed_with(release, lambda manifest: manifest["evidence"]["risk"].update({name: share}))

    assert len(set(shares)) > 1
    most, least = (float(f"{share(shares):.3g}") for share in (max, min))
    assert state(most) == []
    assert state(least) == ["risk: largest share of a sensitive value"]
    assert state(most + 0.0001) == ["figures"]


def test_a_figure_with_more_digits_than_three_tells_too_much():
    """An information gain to the last digit left 2 of 957 possible tables."""
    release = GlobalRecoder(k=5).release(patients())

    def finer(manifest):
        manifest["evidence"]["utility"]["loss"] += 1e-9

    assert failed_with(release, finer) == ["figures"]


@pytest.mark.parametrize("name", ["smallest_bucket", "largest_share_of_a_sensitive_value"])
def test_risk_in_buckets_of_a_release_without_buckets_fails(name):
    report = audited_with(**{name: 1})

    assert len(report.failures) == 1
    assert "cannot be measured" in report.failures[0]


def recoded(n_rare=3, **parameters):
    """Release of a table with a job that too few people have, so that rows are left out."""
    jobs = ["cook", "baker", "nurse", "doctor"] * 25 + ["diver"] * n_rare
    rows = pa.table({"job": jobs, "ill": ["uvwx"[i % 4] for i in range(len(jobs))], "y": ["j"] * len(jobs)})
    groups = {"cook": "kitchen", "baker": "kitchen", "nurse": "health", "doctor": "health", "diver": "sea"}
    given = {"job": Hierarchy.from_rows([(job, group, "*") for job, group in groups.items()])}
    columns = [Column("job"), Column("ill", Role.SENSITIVE), Column("y", Role.TARGET)]
    settings = {"k": 30, "max_suppressed_fraction": 0.05, "l": 2.0, "t": 0.5, "hierarchies": given} | parameters
    return build_mechanism("global-recoding", {**settings}).release(Table.from_arrow(rows, Schema.of(columns)))


def test_rows_left_out_are_within_the_limit_and_stated_as_they_are():
    release = recoded()

    assert release.manifest.suppressed_rows == 3
    assert failed_with(release, lambda manifest: None) == []


@pytest.mark.parametrize("wrong", [0.0, 0.05, 1e9, "few", None, True])
def test_another_share_of_rows_left_out_fails(wrong):
    found = failed_with(recoded(), lambda m: m["evidence"]["utility"].update(suppressed_fraction=wrong))

    is_number = isinstance(wrong, float)
    assert found == ["utility: suppressed fraction" if is_number else "form of the manifest"]


@pytest.mark.parametrize("limit", [0, 0.029, 1.01, 1.5, -0.1, "abc", None, True])
def test_more_rows_left_out_than_the_limit_allows_fails(limit):
    found = failed_with(recoded(), lambda m: m["mechanism"]["parameters"].update(max_suppressed_fraction=limit))

    is_share = isinstance(limit, int | float) and limit is not True and 0 <= limit <= 1
    assert found == ["suppression limit" if is_share else "form of the manifest"]


@pytest.mark.parametrize("limit", [0.5, 0.999, 1, 1.0])
def test_a_limit_of_all_rows_is_a_limit(limit):
    found = failed_with(recoded(), lambda m: m["mechanism"]["parameters"].update(max_suppressed_fraction=limit))

    assert found == []


@pytest.mark.parametrize(("n_suppressed", "expected"), [(29, []), (30, ["suppression limit"])])
def test_the_limit_itself_is_allowed_without_rounding(n_suppressed, expected):
    """29 of 100 rows at a limit of 0.29, which times 100 is less than 29 in doubles."""

    def leave_out(manifest):
        manifest["input"]["rows"], manifest["suppressed_rows"] = 100, n_suppressed
        manifest["evidence"]["utility"]["suppressed_fraction"] = n_suppressed / 100
        manifest["mechanism"]["parameters"]["max_suppressed_fraction"] = 0.29

    assert failed_with(recoded(), leave_out) == expected


@pytest.mark.parametrize(
    ("name", "wrong", "kind"),
    [("variant", "entropy", "l-diversity"), ("distance", "ordered", "t-closeness"), ("variant", 7, "l-diversity")],
)
def test_another_variant_than_promised_fails(name, wrong, kind):
    found = failed_with(recoded(), lambda m: m["mechanism"]["parameters"].update({name: wrong}))

    assert found == [f"{kind}: parameter {name}" if isinstance(wrong, str) else "form of the manifest"]


def test_a_label_that_is_listed_and_not_released_fails():
    release = recoded()
    assert set(release.manifest.to_dict()["recodings"][0]["labels"]) == {"kitchen", "health"}

    found = failed_with(release, lambda m: m["recodings"][0]["labels"].update(sea=["diver"]))
    assert found == ["listed labels"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stated", "is_possible"),
    [
        ({"estimated_on_rows": 1, "of_rows": "all"}, True),
        ({"estimated_on_rows": "all", "of_rows": "all"}, True),
        ({"of_rows": "all"}, False),
        ({"estimated_on_rows": 1}, False),
        ({"estimated_on_rows": 0, "of_rows": "all"}, False),
        ({"estimated_on_rows": 1, "of_rows": 10**9}, False),
        ({"estimated_on_rows": 10**9, "of_rows": 1}, False),
    ],
)
def test_stated_samples_must_be_possible(stated, is_possible):
    n_rows = toy_containment_table().n_rows
    report = audited_with(**{name: n_rows if number == "all" else number for name, number in stated.items()})

    assert report.passed == is_possible
    assert all("sizes of a sample" in failure for failure in report.failures)
