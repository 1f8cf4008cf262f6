"""One risk of each unit: whatever is printed as a mean or a share is never above what is printed as the highest."""

from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.attack.correspondence import Correspondence
from sfumato.attack.reidentification import reidentification_risk
from sfumato.attack.risk import Attacked
from sfumato.audit.profile import risk_profile
from sfumato.figures import FIGURES
from sfumato.manifest import draft_manifest
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

RANGES = [{"name": "age", "column": "age", "rule": "generalized", "kind": "numeric"}]
rows_of_people = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 5), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=14
)


def risks_by_definition(rows, fits, left_out, by_person):
    """Risk of every unit in the words of docs/guarantees.md, left-out units at 0: plain loops over pairs of rows."""
    units = [row[0] for row in rows] if by_person else list(range(len(rows)))
    risks = {}
    for i, unit in enumerate(units):
        behind = {units[j] for j in range(len(rows)) if j not in left_out and fits(i, j)}
        risk = Fraction(0) if i in left_out else Fraction(1, len(behind))
        risks[unit] = max(risks.get(unit, Fraction(0)), risk)
    return list(risks.values())


def tables_of(rows, who, left_out):
    """Make a table of ages and persons, and a release of ranges around the ages, in the same order."""
    people = pa.table({"who": [f"p{row[0]}" for row in rows], "age": [row[1] for row in rows]})
    original = Table.from_arrow(people, Schema.of([Column("who", who), Column("age", kind=Kind.NUMERIC)]))
    ranges = [(age - below, age + above) for _, age, below, above in rows]
    cells = [str(low) if low == high else f"[{low}, {high}]" for low, high in ranges]
    kept = [cell for place, cell in enumerate(cells) if place not in left_out]
    released = Table.from_arrow(pa.table({"age": pa.array(kept, pa.string())}), Schema.of([Column("age")]))
    manifest = draft_manifest(
        original,
        released,
        mechanism="test",
        parameters={},
        guarantees=[],
        evidence={},
        recodings=RANGES,
        suppressed_rows=len(left_out),
    )
    return original, released, manifest, lambda i, j: ranges[j][0] <= rows[i][1] <= ranges[j][1]


def pairs_of_mean_and_highest(found):
    """Every pair of a mean and a highest figure, at any depth."""
    for value in found.values():
        if isinstance(value, dict):
            yield from pairs_of_mean_and_highest(value)
    highest = found.get("highest", found.get("largest"))
    if highest is not None and "mean" in found:
        yield found["mean"], highest


@pytest.mark.slow
@given(rows_of_people, st.booleans())
def test_the_share_reidentified_is_the_mean_of_the_risks_whose_highest_is_printed(rows, by_person):
    """Rows and persons, ranges that overlap: against the definition, unit by unit, and in the printed figures."""
    original, released, manifest, fits = tables_of(rows, Role.PERSON if by_person else Role.IDENTIFIER, set())

    found = reidentification_risk(Correspondence(original, released, manifest))

    expected = risks_by_definition(rows, fits, set(), by_person)
    assert found["prosecutor"]["highest"] == float(max(expected))
    assert abs(found["marketer"] - float(sum(expected) / len(expected))) < 1e-9
    assert found["marketer"] <= found["prosecutor"]["highest"]
    assert all(mean <= highest for mean, highest in pairs_of_mean_and_highest(found))
    release = Attacked(original, released, manifest)
    share, highest = (figure.value(release) for figure in FIGURES if figure.name in ("marketer", "highest_prosecutor"))
    assert (share, highest) == (found["marketer"], found["prosecutor"]["highest"])


@given(rows_of_people, st.booleans())
def test_who_was_left_out_lowers_the_share_and_not_the_highest(rows, by_person):
    """Ages are released as they are, so that it is known whose the rows are; one age is left out."""
    plain = [(person, age, 0, 0) for person, age, _, _ in rows]
    left_out = {place for place, row in enumerate(plain) if row[1] == plain[0][1]}
    if len(left_out) == len(plain):
        return
    original, released, manifest, fits = tables_of(plain, Role.PERSON if by_person else Role.IDENTIFIER, left_out)

    found = reidentification_risk(Correspondence(original, released, manifest))

    expected = risks_by_definition(plain, fits, left_out, by_person)
    assert abs(found["marketer"] - float(sum(expected) / len(expected))) < 1e-9
    assert found["marketer"] <= found["prosecutor"]["mean"] <= found["prosecutor"]["highest"]


@pytest.mark.slow
@given(rows_of_people)
def test_no_mean_of_a_risk_profile_is_above_its_largest(rows):
    for who in (Role.PERSON, Role.IDENTIFIER):
        original, *_ = tables_of(rows, who, set())

        profile = risk_profile(original)

        assert all(mean <= largest for mean, largest in pairs_of_mean_and_highest(profile))
