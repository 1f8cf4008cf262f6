"""Levels from counts: in both forms, of rows as units of their own, and by units as defined."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import person_oracles
from sfumato.counting.counts import Counts, DenseCounts
from sfumato.measures.diversity import distances, distinct_diversity, entropy_diversity, recursive_diversity
from sfumato.measures.value_shares import disclosure_levels, largest_shares, likeness_levels

LEVELS = {
    "distinct": (distinct_diversity, lambda rows, table: person_oracles.matched_level(rows)),
    "entropy": (entropy_diversity, lambda rows, table: person_oracles.entropy_level(rows)),
    **{
        f"recursive {c}": (
            lambda counts, c=c: recursive_diversity(counts, c),
            lambda rows, table, c=c: person_oracles.recursive_level(rows, c),
        )
        for c in (0.5, 1.0, 1.5, 3.0)
    },
    **{
        f"{kind} distance": (
            lambda counts, kind=kind: distances(counts, kind),
            lambda rows, table, kind=kind: person_oracles.distance(rows, table, kind),
        )
        for kind in ("equal", "ordered")
    },
    **{
        f"{kind} likeness": (
            lambda counts, kind=kind: likeness_levels(counts, kind),
            lambda rows, table, kind=kind: person_oracles.likeness(rows, table, kind),
        )
        for kind in ("basic", "enhanced")
    },
    "disclosure": (disclosure_levels, person_oracles.disclosure),
    "largest share": (largest_shares, lambda rows, table: person_oracles.largest_share(rows)),
}
"""Each level of classes, and that of one class by its definition."""
EVERY = pytest.mark.parametrize("name", LEVELS)


@st.composite
def tables(draw):
    """Draw class, value and unit of some rows, the classes numbered without gaps; some values may not occur."""
    rows = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 5)), min_size=1, max_size=20))
    classes, values, units = np.array(rows).T
    return np.unique(classes, return_inverse=True)[1].reshape(-1), values, units


@EVERY
@given(table=tables())
def test_a_row_that_is_its_own_unit_counts_as_a_row(name, table):
    classes, values, _ = table
    level, _ = LEVELS[name]
    plain, by_unit = Counts.of_rows(classes, values), Counts.of_rows(classes, values, np.arange(len(values)))

    assert level(by_unit) == pytest.approx(level(plain), abs=1e-12)
    assert by_unit.n_units.tolist() == plain.n_units.tolist()


@EVERY
@given(table=tables())
def test_both_forms_of_counts_have_the_same_levels(name, table):
    """Of rows, and of the weights of units."""
    level, _ = LEVELS[name]
    classes, values, units = table
    for counts in (Counts.of_rows(classes, values), Counts.of_rows(classes, values, units).weights):
        dense = DenseCounts(counts.dense(counts.n_values), counts.value_totals)
        assert level(dense) == pytest.approx(level(counts), abs=1e-12)


@EVERY
@given(table=tables())
def test_levels_by_units_are_those_of_the_definitions(name, table):
    level, defined = LEVELS[name]
    classes, values, units = table
    rows = list(zip(units.tolist(), values.tolist(), strict=True))
    of_classes = [[rows[i] for i in np.flatnonzero(classes == one)] for one in range(classes.max() + 1)]

    found = level(Counts.of_rows(classes, values, units))
    assert found == pytest.approx([defined(own, rows) for own in of_classes], abs=1e-9)


@given(table=tables(), enough=st.integers(1, 6))
def test_bounds_of_a_matching_say_whether_it_is_large_enough(table, enough):
    classes, values, units = table
    counts = Counts.of_rows(classes, values, units)

    assert (counts.matched(enough) >= enough).tolist() == (counts.matched() >= enough).tolist()
    assert counts.n_units.tolist() == [len(set(units[classes == one])) for one in range(counts.n_classes)]
