"""Released rows as a bag: whether each can be given an original row of its own, against trying all ways."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from sfumato.audit.original import assignment
from sfumato.audit.original.assignment import BothBags, Pairs, TooManyPairsError, assigned_rows, cell_of_place
from sfumato.audit.original.cell_rules import CellRule, FittingRule
from sfumato.audit.reading.cells import contained
from sfumato.schema import Kind
from sizes import examples

NUMBERS = [str(i) for i in range(8)]
CELLS = ["0", "3", "[0, 3]", "[2, 5]", "[4, 7]", "[0, 7]", "{1|6}"]
READ = contained(pa.array(CELLS), pa.array(NUMBERS), Kind.NUMERIC)
FITTING = FittingRule("a", "a", read=READ)
EXACT = CellRule("b", "b", np.arange(3), np.arange(3))


def fits(original, released):
    return bool(READ.holds(np.array([original[0]]), np.array([released[0]]))[0]) and original[1] == released[1]


def can_be_assigned(originals, released):
    """By a perfect matching of a matrix of all pairs."""
    if len(released) > len(originals):
        return False
    cost = np.array([[not fits(before, after) for before in originals] for after in released], dtype=float)
    rows, columns = linear_sum_assignment(cost.reshape(len(released), len(originals)))
    return cost.reshape(len(released), len(originals))[rows, columns].sum() == 0


def bags(originals, released):
    return BothBags.of([FITTING, EXACT], _codes(originals), _codes(released))


def _codes(rows):
    return [np.array([row[i] for row in rows], dtype=np.int64) for i in range(2)]


ORIGINAL = st.tuples(st.integers(0, 7), st.integers(0, 2))
RELEASED = st.tuples(st.integers(0, 6), st.integers(0, 2))


@pytest.mark.slow
@given(st.lists(ORIGINAL, min_size=1, max_size=9), st.lists(RELEASED, min_size=1, max_size=9))
@examples(400)
def test_as_trying_all_ways(originals, released):
    assert bags(originals, released).can_be_assigned() == can_be_assigned(originals, released)


@pytest.mark.slow
@given(st.data())
@examples(200)
def test_what_was_made_of_the_original_is_assigned_to_rows_that_fit(data):
    originals = data.draw(st.lists(ORIGINAL, min_size=1, max_size=30))
    fitting = [[i for i in range(7) if fits(row, (i, row[1]))] for row in originals]
    made = [(data.draw(st.sampled_from(cells)), row[1]) for row, cells in zip(originals, fitting, strict=True)]
    released = sorted(made)[: data.draw(st.integers(1, len(made)))]

    own = assigned_rows([FITTING, EXACT], _codes(originals), _codes(released))

    assert own is not None
    assert len(set(own.tolist())) == len(released)
    assert all(fits(originals[i], row) for i, row in zip(own.tolist(), released, strict=True))


@given(st.lists(ORIGINAL, min_size=1, max_size=12), st.lists(RELEASED, min_size=1, max_size=12))
def test_counts_of_distinct_rows_are_enough(originals, released):
    distinct, n_before = np.unique(np.array(originals), axis=0, return_counts=True)
    shown, n_after = np.unique(np.array(released), axis=0, return_counts=True)
    whole = bags(distinct.tolist(), shown.tolist())
    counted = BothBags(whole.originals, whole.released, whole.n_numbers, whole.overlapping, n_before, n_after)

    assert counted.can_be_assigned() == can_be_assigned(originals, released)


def test_only_exact_columns_are_a_comparison_of_counts():
    rules = [EXACT]

    assert BothBags.of(rules, [np.array([0, 1, 1, 2])], [np.array([1, 1, 0])]).can_be_assigned()
    assert not BothBags.of(rules, [np.array([0, 1, 1, 2])], [np.array([0, 0])]).can_be_assigned()
    assert assigned_rows(rules, [np.array([0, 1, 1, 2])], [np.array([2, 1])]).tolist() == [3, 1]


def test_cells_that_do_not_overlap_tell_which_holds_a_value():
    read = contained(pa.array(["[0, 3]", "7", "[5, 6]"]), pa.array(NUMBERS), Kind.NUMERIC)

    assert cell_of_place(read).tolist() == [0, 0, 0, 0, -1, 2, 2, 1]
    assert cell_of_place(READ) is None


def test_the_group_of_each_original_is_told_where_it_fits_one_only():
    originals, released = [(0, 0), (1, 0), (6, 1)], [(2, 0), (2, 0), (4, 1)]  # [0, 3], [0, 3], [4, 7]
    pairs = Pairs.of(bags(originals, released))

    assert pairs.group_of_originals(np.array([0, 0, 1])).tolist() == [0, 0, 1]
    assert Pairs.of(bags(originals, [(2, 0), (5, 0)])).group_of_originals(np.array([0, 1])) is None


def test_too_many_pairs_are_said(monkeypatch):
    monkeypatch.setattr(assignment, "_MOST_PAIRS", 2)
    with pytest.raises(TooManyPairsError):
        bags([(0, 0), (1, 0), (2, 0)], [(5, 0), (2, 0)]).can_be_assigned()
