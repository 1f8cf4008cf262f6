"""k-map and δ-presence of a release beside a population table, against loops over people and classes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import Mondrian, release
from sfumato.audit.claims import read_claims
from sfumato.audit.population_table import in_population
from sfumato.errors import ColumnNotFoundError, PrivacyNotAchievableError, SchemaError
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.registry import build_mechanism
from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import Table
from sfumato.table.generalized import read_cell
from sizes import examples

JOBS = ("baker", "clerk", "nurse")


def _table(rows):
    arrow = pa.table({"age": pa.array([str(a) for a, _ in rows]), "job": pa.array([j for _, j in rows], pa.string())})
    return Table.from_arrow(arrow, Schema.of([Column("age", kind=Kind.NUMERIC), Column("job")]))


def _cells(table, name):
    column = table[name]
    return [column.values[int(code)].as_py() for code in column.codes]


def _fits(person, cells):
    """Read ranges and sets by the writer's own reader, which the audit does not use."""
    age, job = person
    (low, high), jobs = _range(cells[0]), read_cell(cells[1])
    return low <= age <= high and (jobs.is_any or job in jobs.values)


def _range(text):
    cell = read_cell(text)
    if cell.is_any:
        return -1e9, 1e9
    low, high = cell.bounds or (cell.values[0], cell.values[0])
    return float(low), float(high)


def _by_brute_force(people, made):
    rows = list(zip(_cells(made, "age"), _cells(made, "job"), strict=True))
    fitting = {cells: [i for i, person in enumerate(people) if _fits(person, cells)] for cells in set(rows)}
    k_map = min(len(found) for found in fitting.values())
    chance = [0.0] * len(people)
    n_classes = [0] * len(people)
    for cells, found in fitting.items():
        for i in found:
            chance[i] += rows.count(cells) / len(found)
            n_classes[i] += 1
    mean = sum(1 / len(fitting[cells]) for cells in rows) / len(rows)
    return k_map, mean, (min(chance), max(chance)) if max(n_classes) <= 1 else None


PEOPLE = st.lists(st.tuples(st.integers(20, 26), st.sampled_from(JOBS)), min_size=6, max_size=30)


@pytest.mark.slow
@examples(40)
@given(PEOPLE, st.data(), st.integers(2, 3))
def test_figures_of_a_partition_by_brute_force(people, data, k):
    taken = data.draw(st.lists(st.integers(0, len(people) - 1), min_size=k, max_size=len(people), unique=True))
    table = _table([people[i] for i in sorted(taken)])
    try:
        made = release(table, Mondrian(k=k))
    except PrivacyNotAchievableError:
        return
    found = in_population(made.table, _table(people), read_claims(made.manifest.to_dict()))
    k_map, mean, presence = _by_brute_force(people, made.table)
    assert found.k_map == k_map >= k  # who is released is in the population
    assert found.mean_risk == pytest.approx(mean, abs=1e-9)
    assert found.is_disjoint is (presence is not None)
    if presence is None:
        assert found.presence is None
    else:
        assert found.presence == pytest.approx(presence, abs=1e-9)


def test_a_worked_example_of_presence():
    """Six people, of whom two bakers and one of three nurses are released: 2/2, 1/3 and 0 for the clerk."""
    people = [(20, "baker"), (20, "baker"), (20, "nurse"), (20, "nurse"), (20, "nurse"), (20, "clerk")]
    found = in_population(_table([people[0], people[1], people[2]]), _table(people))
    assert found.k_map == 2
    assert found.presence == (0.0, 1.0)
    assert found.mean_risk == pytest.approx((1 / 2 + 1 / 2 + 1 / 3) / 3, abs=1e-12)
    everybody = in_population(_table(people[:5]), _table(people[:5]))
    assert everybody.presence == (1.0, 1.0)
    assert found.to_dict()["people_who_fit_no_row"] == 1


def test_a_population_that_lacks_released_people_is_said_to():
    found = in_population(_table([(20, "baker"), (20, "baker")]), _table([(20, "baker"), (21, "baker")]))
    assert found.k_map == 1
    assert found.n_rows_without_people == 2
    assert found.presence is None
    nobody = in_population(_table([(20, "baker")]), _table([(21, "clerk")]))
    assert (nobody.k_map, nobody.mean_risk, nobody.presence) == (0, 0.0, None)


def test_labels_of_hierarchies_are_read():
    from sfumato.datasets.admissions import admissions

    people = admissions(n_rows=600).keep(["age", "sex", "insurance"])
    made = release(people.take(np.arange(0, 600, 3)), GlobalRecoder(k=3))
    found = in_population(made.table, people, read_claims(made.manifest.to_dict()))
    assert found.k_map >= 3
    assert found.is_disjoint
    assert found.presence is not None
    assert 0 <= found.presence[0] <= found.presence[1] <= 1


def test_what_cannot_be_matched_is_refused():
    table = _table([(20, "baker"), (21, "clerk")])
    with pytest.raises(ColumnNotFoundError, match="population table"):
        in_population(table, table.keep(["age"]))
    from sfumato.datasets.admissions import admissions

    whole = admissions(n_rows=200).keep(["age", "sex", "discharge_diagnosis"])
    made = release(whole, build_mechanism("anatomy", {}))
    with pytest.raises(SchemaError, match="bucketed"):
        in_population(made.table, whole, read_claims(made.manifest.to_dict()))
