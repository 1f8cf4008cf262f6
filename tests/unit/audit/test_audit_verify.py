import json

import pytest
from hypothesis import given

from sfumato.audit import AuditReport, Check, audit_release, measured_level
from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.errors import AuditFailedError, InvalidParameterError
from sfumato.guarantees import Containment, KAnonymity, LDiversity, TCloseness
from sfumato.schema import Kind, Role
from unit.audit.audit_oracles import CANARY, golden_table, manifest_of, sealed, small_rows, table_from_rows, table_of

QI = ("a", "b")
TABLE = table_of(
    {"a": list("xxxxyyyy"), "b": [1, 1, 1, 1, 0, 0, 0, 0], "s": [1, 2, 3, 1, 2, 3, 1, 1], "t": list("++--++--")},
    {"s": Role.SENSITIVE, "t": Role.TARGET},
    {"s": Kind.NUMERIC},
)
GUARANTEES = [
    KAnonymity(4, QI),
    LDiversity(3, "s", QI),
    LDiversity(2.5, "s", QI, "entropy"),
    LDiversity(2, "s", QI, "recursive", 3.0),
    TCloseness(0.1, "s", QI),
    TCloseness(0.1, "s", QI, "ordered"),
]


def honest(guarantees=GUARANTEES, table=TABLE, **changes):
    return manifest_of(table, [(g, measured_level(g, table)) for g in guarantees], **changes)


def failed(report) -> list[str]:
    return [check.name for check in report.checks if not check.passed]


def test_every_promise_is_measured_again():
    report = audit_release(TABLE, honest(), AuditorHas(original=TABLE))

    assert report.passed
    assert {check.name for check in report.checks} >= {f"{g.kind}: level" for g in GUARANTEES}
    report.raise_if_failed()


def test_golden_containment_release():
    """Table 1 of the paper on x1, x2, x5: k = 2 holds, k = 3 does not."""
    original = golden_table()
    part = original.keep(["x1", "x2", "x5", "class"])
    names = ("x1", "x2", "x5")

    good = audit_release(part, manifest_of(part, [(Containment(2, names), 2)], original), AuditorHas(original=original))
    bad = audit_release(part, manifest_of(part, [(Containment(3, names), 2)], original), AuditorHas(original=original))

    assert good.passed
    assert bad.failures == ("containment does not hold: promised k = 3, found 2",)
    level = next(c for c in bad.checks if c.name == "containment: level")
    assert (level.promised, level.found) == (3, 2)


@pytest.mark.parametrize(
    "guarantee",
    [
        KAnonymity(5, QI),
        LDiversity(4, "s", QI),
        LDiversity(2.9, "s", QI, "entropy"),
        LDiversity(4, "s", QI, "recursive", 3.0),
    ],
    ids=lambda g: f"{g.kind} {getattr(g, 'variant', '')}",
)
def test_a_broken_promise_fails(guarantee):
    report = audit_release(TABLE, honest([guarantee]))

    assert failed(report) == [f"{guarantee.kind}: level"]
    with pytest.raises(AuditFailedError, match="does not hold"):
        report.raise_if_failed()


@pytest.mark.parametrize("distance", ["equal", "ordered"])
def test_a_broken_closeness_promise_fails(distance):
    table = table_of({"a": list("xxyy"), "s": [1, 1, 2, 2]}, {"s": Role.SENSITIVE})

    assert failed(audit_release(table, honest([TCloseness(0.4, "s", ("a",), distance)], table))) == [
        "t-closeness: level"
    ]


def test_an_audited_value_must_be_the_one_found():
    manifest = manifest_of(TABLE, [(KAnonymity(2, QI), 3)])

    assert failed(audit_release(TABLE, manifest)) == ["k-anonymity: audited level"]
    assert audit_release(TABLE, manifest, publisher=PublisherKnows(levels_are_stated=False)).passed


def test_a_missing_audited_value_fails():
    manifest = manifest_of(TABLE, [(KAnonymity(2, QI), None)])

    assert failed(audit_release(TABLE, manifest)) == ["k-anonymity: audited level"]
    assert audit_release(TABLE, manifest, publisher=PublisherKnows(levels_are_stated=False)).passed


def test_a_manifest_that_promises_nothing_fails():
    report = audit_release(TABLE, honest([]))

    assert report.failures == ("the manifest promises nothing",)


def test_a_promise_that_leaves_out_a_quasi_identifier_fails():
    """It may hold on its own columns and still single people out."""
    report = audit_release(TABLE, honest([KAnonymity(4, ("a",)), LDiversity(3, "s", ("b",))]))

    assert report.failures == (
        "k-anonymity leaves out released quasi-identifiers: 'b'",
        "l-diversity leaves out released quasi-identifiers: 'a'",
    )


def test_roles_come_from_the_manifest():
    """A reader that knows nothing takes every column for a quasi-identifier."""
    unknowing = table_of({name: TABLE[name].cells() for name in ("a", "b", "s", "t")})

    assert audit_release(unknowing, honest()).passed


def test_a_column_that_is_promised_must_be_released():
    report = audit_release(TABLE, manifest_of(TABLE, [(KAnonymity(4, (*QI, "c")), 4)]))

    assert failed(report) == ["k-anonymity: level"]
    assert "column 'c': not found" in report.failures[0]


def test_containment_of_columns_that_are_not_binary_fails():
    table = table_of({"a": ["1", CANARY]})

    report = audit_release(table, manifest_of(table, [(Containment(2, ("a",)), 1)]))

    assert failed(report) == ["containment: level"]
    assert CANARY not in str(report)


@pytest.mark.parametrize(
    ("parameters", "passes"),
    [
        ({"k": 4}, True),
        ({"k": 3}, False),
        ({"r": 3}, True),
    ],
    ids=str,
)
def test_the_mechanism_must_have_been_asked_for_what_is_promised(parameters, passes):
    mechanism = {"name": "m", "parameters": parameters, "seed": None}

    report = audit_release(TABLE, honest([KAnonymity(4, QI)], mechanism=mechanism))

    assert failed(report) == ([] if passes else ["k-anonymity: parameter k"])


def test_parameters_of_other_guarantees_are_compared_as_well():
    guarantees = [LDiversity(2, "s", QI, "recursive", 3.0), TCloseness(0.1, "s", QI)]
    mechanism = {"name": "m", "parameters": {"l": 3, "c": 3, "t": 0.2}, "seed": None}

    report = audit_release(TABLE, honest(guarantees, mechanism=mechanism))

    assert failed(report) == ["l-diversity: parameter l", "t-closeness: parameter t"]


def test_the_statement_must_be_that_of_the_promise():
    """People read the statement, not the parameters."""
    manifest = honest([KAnonymity(4, QI)])
    manifest["guarantees"][0]["statement"] = KAnonymity(5, QI).describe()

    assert failed(audit_release(TABLE, sealed(manifest))) == ["k-anonymity: statement"]


def test_a_kind_without_a_measure_is_refused():
    class Novel:
        kind = name = "novel"

    with pytest.raises(InvalidParameterError, match="got 'novel'"):
        measured_level(Novel(), TABLE)


@pytest.mark.slow
@given(small_rows(1))
def test_an_honest_manifest_of_any_table_with_rows_passes(rows):
    table = table_from_rows(rows, [i % 3 for i in range(len(rows))])
    names = table.schema.names(Role.QUASI_IDENTIFIER)
    k = measured_level(KAnonymity(2, names), table)
    if not rows:
        assert k == 0
        return
    different, t = (
        measured_level(g, table) for g in (LDiversity(2, "s", names), TCloseness(0.5, "s", names, "ordered"))
    )
    guarantees = [KAnonymity(k, names)] if k > 1 else []
    guarantees += [LDiversity(2, "s", names)] if different > 1 else []
    guarantees += [TCloseness(0.999, "s", names, "ordered")] if t < 0.999 else []
    if not guarantees:
        return

    assert audit_release(table, honest(guarantees, table), AuditorHas(original=table)).passed


def test_a_report_is_plain_data():
    report = audit_release(TABLE, honest(), AuditorHas(original=TABLE), released_sha256="00")

    assert json.loads(json.dumps(report.to_dict(), allow_nan=False)) == report.to_dict()
    assert report.to_dict()["passed"] is False


def test_a_report_of_no_checks_does_not_pass():
    with pytest.raises(AuditFailedError, match="nothing was checked"):
        AuditReport(()).raise_if_failed()
    assert AuditReport((Check("x", True, "good"),)).passed
