"""Risks of persons with several rows against their definition, person by person."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.attack.correspondence import Correspondence
from sfumato.attack.person_risk import risks_of_person_classes
from sfumato.attack.reidentification import reidentification_risk
from sfumato.manifest import draft_manifest
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table
from tests.person_oracles import risks

WHO = Column("patient", Role.PERSON)
AGE = Column("age", kind=Kind.NUMERIC)
RANGES = [{"name": "age", "column": "age", "rule": "generalized", "kind": "numeric"}]

row_of_somebody = st.tuples(st.integers(0, 5), st.integers(0, 5))


def original_of(rows, who=WHO):
    cells = {"patient": [f"p{person}" for person, _ in rows], "age": [age for _, age in rows]}
    return Table.from_arrow(pa.table(cells), Schema.of([who, AGE]))


def released_of(cells, kind=Kind.CATEGORICAL):
    return Table.from_arrow(pa.table({"age": cells}), Schema.of([Column("age", kind=kind)]))


def measured(original, released, **more):
    manifest = draft_manifest(original, released, mechanism="test", parameters={}, guarantees=[], evidence={}, **more)
    return reidentification_risk(Correspondence(original, released, manifest))


def assert_same(found, expected):
    assert found["counted"] == "people"
    for who in ("prosecutor", "journalist", "any_row"):
        of_persons = [float(risk) for risk in expected[who]]
        assert found[who]["highest"] == pytest.approx(max(of_persons, default=0.0), abs=1e-15)
        assert found[who]["mean"] == pytest.approx(sum(of_persons) / max(len(of_persons), 1))
    assert found["marketer"] == pytest.approx(float(expected["marketer"]))
    assert found["n_found"] == expected["n_found"]
    assert found["largest_share"] == pytest.approx(float(expected["largest_share"]))


def repeats(rows):
    persons = [person for person, _ in rows]
    return len(set(persons)) < len(persons)


@given(st.lists(row_of_somebody, min_size=2, max_size=14).filter(repeats), st.sets(st.integers(0, 5), max_size=2))
def test_persons_of_groups_without_overlap_some_left_out(rows, left_out):
    """Whole groups are left out, so that there is one way only in which the release was made."""
    kept = [place for place, (_, age) in enumerate(rows) if age not in left_out]
    original, released = original_of(rows), released_of([rows[place][1] for place in kept], Kind.NUMERIC)
    own = [kept.index(place) if place in kept else None for place in range(len(rows))]

    found = measured(original, released, suppressed_rows=len(rows) - len(kept))

    persons, ages = [person for person, _ in rows], [age for _, age in rows]
    expected = risks(persons, lambda i, row: ages[i] == ages[kept[row]], own, [ages[place] for place in kept])
    assert_same(found, expected)
    assert found["n_people"] == len(set(persons))


@given(st.lists(st.tuples(row_of_somebody, st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=12))
def test_persons_behind_the_rows_that_fit_where_ranges_overlap(drawn):
    rows = [row for row, _, _ in drawn]
    if not repeats(rows):
        return
    ranges = [(age - below, age + above) for (_, age), below, above in drawn]
    released = released_of([f"[{low}, {high}]" if low < high else str(low) for low, high in ranges])

    found = measured(original_of(rows), released, recodings=RANGES)

    def fits(i, row):
        return ranges[row][0] <= rows[i][1] <= ranges[row][1]

    assert_same(found, risks([person for person, _ in rows], fits, list(range(len(rows))), ranges))


@pytest.mark.slow
@given(st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_with_one_row_a_person_the_figures_are_those_without_a_person_column(ages):
    rows = list(enumerate(ages))
    released = released_of(ages, Kind.NUMERIC)

    found = measured(original_of(rows), released)

    assert found == measured(original_of(rows, Column("patient", Role.IDENTIFIER)), released)
    assert found["counted"] == "people"


def test_by_hand():
    """Two persons share a group; one of them has another group alone, and is named there for certain."""
    found = risks_of_person_classes([0, 0, 0, 1, 1], [7, 7, 8, 8, 8])

    assert found["prosecutor"] == {"highest": 1.0, "mean": 0.75}
    assert found["marketer"] == 0.75

    twice = risks_of_person_classes([0, 0, 1, 1], [7, 8, 7, 8])
    assert twice["prosecutor"] == {"highest": 0.5, "mean": 0.5}
    assert twice["marketer"] == 0.5  # one guess a person; two guesses, one in each group, are another figure


def test_many_rows_of_few_persons_are_no_crowd():
    """What rows would say: one in 100."""
    found = measured(original_of([(i % 2, 3) for i in range(100)]), released_of([3] * 100, Kind.NUMERIC))

    assert found["prosecutor"]["highest"] == 0.5
    assert (found["n_people"], found["n_released"]) == (2, 100)


def test_rows_are_said_where_nothing_tells_whose_they_are():
    rows = [(0, 1), (0, 2), (1, 3)]
    unknown = original_of(rows, Column("patient", Role.IDENTIFIER))

    assert measured(unknown, released_of([1, 2, 3], Kind.NUMERIC))["counted"] == "rows"
    assert measured(original_of(rows), released_of([7, 8, 9], Kind.NUMERIC))["counted"] == "rows"


def test_sorted_rows_that_fit_several_groups_are_said():
    rows = [(0, 1), (0, 2), (1, 3)]
    released = released_of(["[1, 2]", "[1, 3]", "[2, 3]"])

    found = measured(original_of(rows), released, recodings=RANGES)

    assert "may be others" in found["note"]


def test_pairs_that_are_too_many_are_not_counted(monkeypatch):
    monkeypatch.setattr("sfumato.attack.person_risk._MOST_PRODUCTS", 1)

    found = measured(original_of([(0, 1), (0, 2), (1, 3)]), released_of([1, 2, 3], Kind.NUMERIC))

    assert found["counted"] == "rows"


def test_a_sample_of_persons():
    found = risks_of_person_classes([0, 0, 1], [1, 1, 2], sample_fraction=0.5)

    assert found["prosecutor"]["highest"] == 1
    assert found["journalist"]["highest"] == pytest.approx(0.6931471805599453)
