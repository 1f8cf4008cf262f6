"""Candidates counted over a grid of values, against loops over all pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.attack import candidates as grid_candidates
from sfumato.attack.candidates import GridCandidates, MatchedColumn
from sfumato.audit.reading.cells import Containing
from sfumato.audit.reading.columns import Classes

N_PLACES = 5


@st.composite
def columns_of(draw, n_people, n_released):
    """Draw a column whose cells stand for sets of places (perhaps none), with the sets themselves."""
    stands_for = draw(st.lists(st.sets(st.integers(0, N_PLACES - 1)), min_size=1, max_size=4))
    runs = [
        (cell, place, next(end for end in range(place, N_PLACES + 1) if end not in held))
        for cell, held in enumerate(stands_for)
        for place in sorted(held)
        if place - 1 not in held
    ]
    cells, starts, stops = (np.array([run[i] for run in runs], dtype=np.int64) for i in range(3))
    containing = Containing(np.arange(N_PLACES), N_PLACES, cells, starts, stops, len(stands_for))
    places = draw(st.lists(st.integers(0, N_PLACES - 1), min_size=n_people, max_size=n_people))
    shown = draw(st.lists(st.integers(0, len(stands_for) - 1), min_size=n_released, max_size=n_released))
    matched = MatchedColumn(containing, np.array(places, dtype=np.int32), np.array(shown, dtype=np.int32))
    return matched, [[place in stands_for[cell] for cell in shown] for place in places]


@st.composite
def matched_columns(draw):
    n_people, n_released = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    return [draw(columns_of(n_people, n_released)) for _ in range(draw(st.integers(1, 4)))]


def classes_of(columns):
    """Released rows by their cells in all columns."""
    rows = list(zip(*(column.cells.tolist() for column in columns), strict=True))
    known = sorted(set(rows))
    return Classes(np.array([known.index(row) for row in rows]), np.array([rows.count(row) for row in known]))


@given(matched_columns(), st.data())
def test_every_set_of_columns_is_counted_as_a_double_loop_does(drawn, data):
    """Several sets one after the other, so that what is kept from one cannot be taken for another's."""
    columns, fits = [column for column, _ in drawn], [fit for _, fit in drawn]
    grid = GridCandidates(classes_of(columns), len(fits[0]))
    sets = data.draw(st.lists(st.lists(st.integers(0, len(drawn) - 1), max_size=3), min_size=1, max_size=5))

    for chosen in sets:
        found = grid.per_person([columns[i] for i in chosen])

        n_released = len(fits[0][0])
        people = range(len(fits[0]))
        expected = [sum(all(fits[i][p][r] for i in chosen) for r in range(n_released)) for p in people]
        assert found.tolist() == expected


@pytest.mark.parametrize("most", [0, 5])
def test_a_grid_or_corners_beyond_the_limit_are_not_counted(monkeypatch, most):
    """A grid of five places has room for five corners, but one row of three runs has six."""
    monkeypatch.setattr(grid_candidates, "_FEWEST_AT_ONCE", most)
    monkeypatch.setattr(grid_candidates, "_A_PERSON", 0)
    starts = np.array([0, 2, 4])
    containing = Containing(np.arange(5), 5, np.zeros(3, dtype=np.int64), starts, starts + 1, 1)
    column = MatchedColumn(containing, np.zeros(2, dtype=np.int32), np.zeros(2, dtype=np.int32))
    classes = Classes(np.array([0, 1]), np.array([1, 1]))

    assert GridCandidates(classes, 2).per_person([column]) is None
