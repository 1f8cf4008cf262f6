"""Rows left out where cells overlap: only the publisher can say which they are, and is not believed blindly."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.audit.verify import audit_release
from sfumato.errors import InvalidParameterError
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

N_PERSONS = 60


@pytest.fixture(scope="module")
def visits():
    """Two visits of each person; sex and age are cut in many ways, so that cells overlap."""
    rng = np.random.default_rng(1)
    person = np.repeat(np.arange(N_PERSONS), 2)
    age, sex = rng.integers(20, 60, N_PERSONS)[person], rng.choice(["f", "m"], N_PERSONS)[person]
    cells = {"who": [f"P{p}" for p in person], "age": age.tolist(), "sex": sex.tolist()}
    roles = [
        Column("who", Role.PERSON),
        Column("age", Role.QUASI_IDENTIFIER, kind=Kind.NUMERIC),
        Column("sex", Role.QUASI_IDENTIFIER),
    ]
    return Table.from_arrow(pa.table(cells), Schema.of(roles))


@pytest.fixture(scope="module")
def without_some(visits):
    """Release all rows but those of every tenth person."""
    kept = np.flatnonzero(np.arange(visits.n_rows) // 2 % 10 != 0)
    made = Mondrian(k=3).release(visits.take(kept))
    rows = {"input": {**made.manifest.input, "rows": visits.n_rows}, "suppressed_rows": visits.n_rows - len(kept)}
    return replace(made.with_manifest(**rows), kept_rows=kept), kept


def checks(release, visits, own_rows):
    report = audit_release(
        release.table,
        release.manifest.to_dict(),
        AuditorHas(original=visits, roles=True),
        publisher=PublisherKnows(levels_are_stated=False, places=np.arange(release.table.n_rows), own_rows=own_rows),
    )
    return {check.name: check.passed for check in report.checks}


def test_persons_are_counted_where_the_publisher_tells_the_rows(visits, without_some):
    release, kept = without_some

    assert all(checks(release, visits, kept).values())
    assert not all(checks(release, visits, None).values())


def test_rows_that_are_told_falsely_are_found_out(visits, without_some):
    """Each released row is compared with the row that it is said to be."""
    release, kept = without_some
    left_out = np.setdiff1d(np.arange(visits.n_rows), kept)
    false = np.sort(np.concatenate([kept[: -len(left_out)], left_out]))

    assert not checks(release, visits, false)["cells"]


@pytest.mark.parametrize("told", [[0, 0, 1], [5, 3, 4], [0, 1, 10**6]], ids=["twice", "not-in-order", "not-there"])
def test_rows_that_cannot_be_are_refused(visits, without_some, told):
    release, kept = without_some
    wrong = kept.copy()
    wrong[-3:] = told
    with pytest.raises(InvalidParameterError, match="own_rows"):
        checks(release, visits, wrong)
    with pytest.raises(InvalidParameterError, match="own_rows"):
        checks(release, visits, kept[1:])
