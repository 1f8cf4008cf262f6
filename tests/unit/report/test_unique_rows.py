"""What removes unique rows is tried before it is offered, and its cost is that of the release that it makes."""

import pyarrow as pa
import pytest

import sfumato
from sfumato.mechanisms.auto import Automatic
from sfumato.report.detail import mean_detail_left
from sfumato.report.in_short import MOST_UNIQUE, in_short
from sfumato.report.unique_rows import remedy_for
from sfumato.schema import Column, Role, Schema
from sfumato.table.coding import Table
from sfumato.web.tasks.release import tables_beside


def people(**more):
    """Make 200 people whose diagnosis, a sensitive column of 20 values, makes rows of a class unique."""
    columns = {
        "age": (Role.QUASI_IDENTIFIER, [20 + i // 4 for i in range(200)]),
        "illness": (Role.SENSITIVE, [f"d{i * 7 % 20}" for i in range(200)]),
        "well": (Role.TARGET, ["yn"[i % 2] for i in range(200)]),
        **more,
    }
    arrays = {name: pa.array(values) for name, (_, values) in columns.items()}
    return Table.from_arrow(pa.table(arrays), Schema.of(Column(name, role) for name, (role, _) in columns.items()))


def unique_rows(table):
    """Share of rows that are unique on all columns, counted by hand."""
    rows = [tuple(row.values()) for row in table.to_arrow().to_pylist()]
    return sum(rows.count(row) == 1 for row in rows) / len(rows)


@pytest.mark.slow
def test_the_remedy_makes_few_rows_unique_and_says_so():
    table = people()
    release = sfumato.release(table, Automatic(k=5))
    assert unique_rows(release.table) > MOST_UNIQUE

    found = remedy_for(release, table, Automatic(k=5))

    made = sfumato.release(table.with_schema(found.roles), Automatic(k=found.k))
    assert found.unique == unique_rows(made.table) <= MOST_UNIQUE
    assert not any("unique" in sentence for sentence in in_short(made).warnings())
    assert set(found.roles) == {"illness"}


@pytest.mark.slow
def test_its_cost_is_that_of_both_releases():
    table = people()
    release = sfumato.release(table, Automatic(k=5))

    found = remedy_for(release, table, Automatic(k=5))

    made = sfumato.release(table.with_schema(found.roles), Automatic(k=found.k))
    expected = [mean_detail_left(tables_beside(table, one)) for one in (release, made)]
    assert found.detail == pytest.approx(tuple(expected))
    assert found.auc is None
    assert f"k = {found.k}" in found.cost_in_words()
    assert "AUC" not in found.cost_in_words()


@pytest.mark.slow
def test_the_auc_is_measured_where_the_release_has_one():
    table = people()
    release = sfumato.release(table, Automatic(k=5))
    short = in_short(release, table, Automatic(k=5))

    found = remedy_for(release, table, Automatic(k=5), short.prediction)

    again = in_short(
        sfumato.release(table.with_schema(found.roles), Automatic(k=found.k)),
        table.with_schema(found.roles),
        Automatic(k=found.k),
    )
    assert found.auc[0] == short.prediction.auc_after["mean"]
    if again.prediction.name == short.prediction.name:
        assert found.auc[1] == again.prediction.auc_after["mean"]


@pytest.mark.slow
def test_nothing_is_offered_where_nothing_helps_or_nothing_is_wrong():
    alone = people(illness=(Role.SENSITIVE, ["same", "other"] * 100))
    numbers = people(well=(Role.TARGET, [float(i) for i in range(200)]))
    numbers = numbers.with_schema(numbers.schema.with_confirmed(["well"]))

    assert remedy_for(sfumato.release(alone, Automatic(k=40)), alone, Automatic(k=40)) is None
    assert remedy_for(sfumato.release(numbers, Automatic(k=5)), numbers, Automatic(k=5)) is None
    assert remedy_for(sfumato.release(alone, sfumato.Mondrian(k=5)), alone, sfumato.Mondrian(k=5)) is None
