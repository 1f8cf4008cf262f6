"""Covers: each class's cells are exactly the values of its members, and cost what the definitions say."""

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sfumato.mechanisms.axes import axes_of
from sfumato.mechanisms.recoder import Cover, generalize
from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import Table
from sfumato.table.generalized import read_cell

SCHEMA = Schema.of([Column("age", kind=Kind.NUMERIC), Column("job")])


def cells(ages, jobs, of_row):
    table = Table.from_arrow(pa.table({"age": ages, "job": jobs}), SCHEMA)
    cover = Cover.of_groups(np.array(of_row))
    generalized = generalize(axes_of(table, ["age", "job"]), cover)
    return [g.column(cover.of_row).cells().to_pylist() for g in generalized], generalized


def test_ranges_and_sets_of_groups():
    (ages, jobs), (age, job) = cells(["20", "30", "50", "50"], ["a", "b", "c", "c"], [0, 0, 1, 1])

    assert ages == ["[20, 30]", "[20, 30]", "50", "50"]
    assert jobs == ["{a|b}", "{a|b}", "c", "c"]
    assert age.penalties.tolist() == pytest.approx([1 / 3, 0])
    assert job.penalties.tolist() == pytest.approx([2 / 3, 0])


def test_all_values_of_a_categorical_column_are_a_star_and_all_numbers_a_range():
    (ages, jobs), (age, job) = cells(["1", "2"], ["a", None], [0, 0])

    assert ages == ["[1, 2]"] * 2
    assert jobs == ["*"] * 2
    assert age.penalties.tolist() == job.penalties.tolist() == [1.0]


def test_a_group_without_values_is_an_empty_cell_and_some_missing_are_said():
    (ages, jobs), (age, job) = cells(["1", None, None, "4"], ["a", None, None, "b"], [0, 0, 1, 2])

    assert ages == [r"{1|\N}", r"{1|\N}", None, "4"]
    assert jobs == [r"{a|\N}", r"{a|\N}", None, "b"]
    assert age.penalties.tolist() == pytest.approx([1 / 3, 0, 0])
    assert job.penalties.tolist() == pytest.approx([2 / 3, 0, 0])


def test_a_constant_column_costs_nothing():
    (ages, jobs), (age, job) = cells(["7", "7"], ["a", "a"], [0, 0])

    assert (ages, jobs) == (["7", "7"], ["a", "a"])
    assert age.penalties.tolist() == job.penalties.tolist() == [0.0]


@st.composite
def covers(draw):
    n_rows = draw(st.integers(1, 8))
    n_parts = draw(st.integers(1, 4))
    rows = st.sets(st.integers(0, n_rows - 1), min_size=1)
    members = [draw(rows) for _ in range(n_parts)]
    n_classes = draw(st.integers(1, 4))
    parts = [draw(st.sets(st.integers(0, n_parts - 1), min_size=1)) for _ in range(n_classes)]
    ages = [draw(st.sampled_from(["1", "2", "5", None])) for _ in range(n_rows)]
    jobs = [draw(st.sampled_from(["a", "b", "c,d", None])) for _ in range(n_rows)]
    return members, parts, ages, jobs


def incidence(sets, n_columns):
    matrix = sp.lil_matrix((len(sets), n_columns), dtype=np.int8)
    for i, members in enumerate(sets):
        matrix[i, sorted(members)] = 1
    return matrix.tocsr()


@pytest.mark.slow
@given(covers())
def test_a_class_stands_for_the_values_of_all_members_of_its_parts(drawn):
    members, parts, ages, jobs = drawn
    schema = Schema.of([Column("age", kind=Kind.NUMERIC), Column("job")])
    table = Table.from_arrow(pa.table({"age": pa.array(ages, pa.string()), "job": pa.array(jobs, pa.string())}), schema)
    nowhere = np.zeros(len(ages), dtype=np.int32)
    cover = Cover(nowhere, incidence(parts, len(members)), incidence(members, len(ages)), nowhere)
    age, job = generalize(axes_of(table, ["age", "job"]), cover)

    for number, own in enumerate(parts):
        rows = set().union(*(members[p] for p in own))
        known = sorted({int(ages[r]) for r in rows if ages[r] is not None})
        cell = read_cell(age.texts[age.of_class[number]])
        found = sorted(int(v) for v in (*cell.values, *(cell.bounds or ())))
        assert (found[:1], found[-1:]) == (known[:1], known[-1:])
        assert cell.may_be_missing == any(ages[r] is None for r in rows)

        wanted = {jobs[r] for r in rows}
        cell = read_cell(job.texts[job.of_class[number]])
        if cell.is_any:
            assert wanted == set(jobs)
        else:
            assert set(cell.values) | ({None} if cell.may_be_missing else set()) == wanted
        assert job.penalties[number] == pytest.approx(0 if len(wanted) == 1 else len(wanted) / len(set(jobs)))
