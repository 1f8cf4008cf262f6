"""No check, passed or failed, and no error shows a cell value."""

import numpy as np
import pytest

from sfumato.audit import audit_release, measured_level, risk_profile
from sfumato.audit.auditor import AuditorHas
from sfumato.errors import AuditFailedError, SfumatoError
from sfumato.guarantees import Containment, KAnonymity, LDiversity, TCloseness
from sfumato.schema import Kind, Role
from unit.audit.audit_oracles import CANARY, manifest_of, table_of

ORIGINAL = table_of(
    {
        "id": [CANARY, CANARY + "2", CANARY + "3", None],
        "q": [CANARY, CANARY, "v", CANARY],
        "n": ["1", CANARY, "3", "4"],
        "s": [CANARY, "w", CANARY, "w"],
    },
    {"id": Role.IDENTIFIER, "s": Role.SENSITIVE},
)
RELEASED = table_of(
    {"id": ORIGINAL["id"].cells(), "q": [CANARY, "v", CANARY, "u"], "n": [CANARY] * 4, "s": [CANARY, CANARY, "w", "w"]},
    {"id": Role.IDENTIFIER, "s": Role.SENSITIVE},
    {"n": Kind.CATEGORICAL},
)
QI = ("q", "n")
EVERYTHING = [
    (KAnonymity(3, ("q",)), 9),
    (Containment(2, QI), 2),
    (LDiversity(3, "s", QI), 9),
    (LDiversity(3, "s", QI, "recursive", 3.0), 9),
    (TCloseness(0.0, "s", QI, "ordered"), 0.9),
    (KAnonymity(3, (*QI, "zz")), 9),
]
RECODINGS = {
    "one-of": {"name": "q", "column": "q", "rule": "one-of", "values": [CANARY]},
    "interval": {"name": "q", "column": "n", "rule": "interval", "upto": 3},
    "as-is": {"name": "q", "column": "n", "rule": "as-is"},
    "nowhere": {"name": "q", "column": "x", "rule": "missing"},
}


@pytest.mark.slow
@pytest.mark.parametrize("rule", [None, *RECODINGS])
@pytest.mark.parametrize("missing", ["kept", "dropped"])
@pytest.mark.parametrize("suppressed", [0, 1])
def test_no_check_shows_a_cell_value(rule, missing, suppressed):
    released = RELEASED.take(np.arange(4 - suppressed))
    manifest = manifest_of(
        released,
        EVERYTHING,
        ORIGINAL,
        recodings=[RECODINGS[rule]] if rule else [],
        missing={"tokens": [CANARY], "rows": missing, "n_dropped": 0},
        suppressed_rows=suppressed,
        mechanism={"name": "test", "parameters": {"k": 1, "l": 1, "generalization": CANARY}, "seed": None},
        dropped_columns=["q"],
        evidence={"risk": {"what_this_is": CANARY}},
    )
    manifest["output"]["columns"][2]["kind"] = "numeric"  # which also breaks the digest
    manifest["output"]["sha256"] = "1" * 64
    manifest["guarantees"][0]["statement"] = CANARY

    report = audit_release(
        released,
        manifest,
        AuditorHas(original=ORIGINAL, original_sha256="0" * 64, roles=True),
        released_sha256="0" * 64,
    )

    assert len(report.failures) >= 15
    assert CANARY not in str(report.to_dict())
    with pytest.raises(AuditFailedError) as caught:
        report.raise_if_failed()
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("guarantee", [Containment(2, QI), KAnonymity(2, ("zz",)), LDiversity(2, "zz", QI)], ids=str)
def test_no_error_of_a_measure_shows_a_cell_value(guarantee):
    with pytest.raises(SfumatoError) as caught:
        measured_level(guarantee, RELEASED)

    assert CANARY not in str(caught.value)


def test_no_profile_shows_a_cell_value():
    assert CANARY not in str(risk_profile(RELEASED))


def test_what_the_auditor_has_shows_neither_cells_nor_keys():
    has = AuditorHas(original=ORIGINAL, key=CANARY.encode(), project_key=CANARY.encode(), register=ORIGINAL)

    assert CANARY not in repr(has)
    assert "roles=False" in repr(has)
