"""Declared figures: names that are keys, one unit before and after, and values that are those of the attacks."""

import pyarrow as pa
import pytest

from sfumato.attack.risk import Attacked
from sfumato.datasets.admissions import admissions
from sfumato.figures import COMPARED, FIGURES, SCORES, Unit
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.report.measured import figures_of
from sfumato.schema import Column, Role, Schema
from sfumato.table.coding import Table


@pytest.fixture(scope="module")
def attacked():
    """Attack a table, and a release of it."""
    table = admissions(n_rows=80).keep(["age", "sex", "insurance", "discharge_diagnosis", "readmitted"])
    made = Mondrian(k=5).release(table)
    return Attacked(table, table), Attacked(table, made.table, made.manifest, kept_rows=made.kept_rows)


def test_names_are_keys_of_their_own():
    for declared in (FIGURES, SCORES):
        assert len({figure.name for figure in declared}) == len(declared)


def test_what_is_compared_is_one_number_a_release(attacked):
    for one in attacked:
        values = {figure.name: figure.values(one) for figure in COMPARED}
        assert all(set(found) == {()} for found in values.values())


def test_figures_are_what_the_attacks_find(attacked):
    before, after = (one.to_dict() for one in attacked)
    rows = {row["name"]: row for row in figures_of(*attacked)}

    for when, found in (("before", before), ("after", after)):
        by_all = found["reidentification"]
        assert rows["marketer"][when] == by_all["marketer"]
        assert rows["mean_journalist"][when] == by_all["journalist"]["mean"]
        assert rows["n_found"][when] == by_all["n_found"]
        assert rows["unique_rows"][when] == found["uniques"]["n_rows_with"]
        assert rows["linked"][when] == found["linkage"][-1]["n_reidentified"]
        assert rows["linked_by"][when] == tuple(found["linkage"][-1]["columns"])
    (secret,) = after["inference"]
    assert rows["guessed_right"]["before"] == secret["with_original"]
    assert rows["guessed_right"]["after"] == secret["with_release"]
    assert rows["breach_increase"]["after"] == secret["breach_increase_percent"]
    assert "any_row" not in " ".join(rows)


def test_words_are_filled_in_and_name_no_cell(attacked):
    rows = figures_of(*attacked)

    assert not [row["what"] for row in rows if "{" in row["what"]]
    cells = {str(cell) for cell in admissions(n_rows=80).to_arrow()["discharge_diagnosis"].to_pylist()}
    assert not [row for row in rows for cell in cells if cell in str(row)]


def test_shares_are_of_one_unit_before_and_after():
    """Whose the released rows are is not known, so that both sides count rows."""
    schema = Schema.of([Column("who", Role.PERSON), Column("job")])
    people = Table.from_arrow(pa.table({"who": ["a", "a", "b", "c"], "job": ["x", "x", "x", "y"]}), schema)
    released = Table.from_arrow(pa.table({"job": ["z", "z"]}), Schema.of([Column("job")]))
    before, after = Attacked(people, people), Attacked(people, released)
    assert (before.result("reidentification")["counted"], after.result("reidentification")["counted"]) == (
        "people",
        "rows",
    )

    share = next(row for row in figures_of(before, after) if row["name"] == "marketer")

    assert share["what"] == "share of rows re-identified (marketer attack)"
    assert share["before"] == before.result("reidentification")["by_rows"]["marketer"] == 0.5
    assert share["unit"] == Unit.SHARE
