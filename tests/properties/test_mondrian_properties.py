"""Mondrian beside a naive recursion written from its description, on small tables with missing values."""

import math
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.counting.classes import ClassValueCounts
from sfumato.guarantees import LDiversity
from sfumato.learning.c45.criteria import Entropy, Variance
from sfumato.mechanisms.axes import Axis
from sfumato.mechanisms.mondrian import division as cut_rules
from sfumato.mechanisms.mondrian.division import (
    DistinctDiversity,
    EntropyDiversity,
    RecursiveDiversity,
    constraint_of,
    mondrian_partition,
)
from sfumato.mechanisms.recoder import Cover, generalize
from table_levels import distinct_diversity_level, entropy_diversity_level, recursive_diversity_level

RULES = ("penalty", "median", "gain")


class Rows(NamedTuple):
    """Columns of numbers or words, ``None`` where missing, with a target and a sensitive value for each row."""

    columns: list[list]
    target: list[int]
    k: int

    @property
    def n_rows(self):
        return len(self.target)

    def axes(self):
        return [axis_of(f"c{j}", column) for j, column in enumerate(self.columns)]

    def divide(self, **options):
        if options.get("split") == "gain":
            options |= {"statistics": Entropy(3).statistics(self.target), "criterion": Entropy(3)}
        return mondrian_partition(self.axes(), self.k, **options)


def axis_of(name, column):
    known = sorted({cell for cell in column if cell is not None})
    codes = np.array([-1 if cell is None else known.index(cell) for cell in column], dtype=np.int32)
    positions = np.array(known, dtype=np.float64) if is_ordered(column) else None
    return Axis(name, codes, tuple(map(str, known)), positions)


def is_ordered(column):
    return not any(isinstance(cell, str) for cell in column)


NUMBERS = st.sampled_from([0, 1, 2, 3, 7, 7.5, None])
WORDS = st.sampled_from(["a", "b", "c", "d", None])


@st.composite
def tables(draw, max_rows=16):
    n_rows = draw(st.integers(1, max_rows))
    kinds = draw(st.lists(st.sampled_from([NUMBERS, WORDS]), min_size=1, max_size=3))
    columns = [draw(st.lists(kind, min_size=n_rows, max_size=n_rows)) for kind in kinds]
    target = draw(st.lists(st.integers(0, 2), min_size=n_rows, max_size=n_rows))
    return Rows(columns, target, draw(st.integers(1, min(n_rows, 5))))


def place_of(column, cell):
    """Where a value stands on its axis: numbers by size, words by frequency and then by spelling, missing last."""
    if cell is None:
        return math.inf
    if is_ordered(column):
        return cell
    return sorted(set(column) - {None}, key=lambda word: (-column.count(word), word)).index(cell)


def penalty(column, cells):
    """Certainty penalty of a cell that stands for these values, as the release is charged."""
    known = [cell for cell in cells if cell is not None]
    n_domain = len(set(column))
    if len(set(cells)) == 1:
        return 0.0
    if not is_ordered(column):
        return len(set(cells)) / n_domain
    every = [cell for cell in column if cell is not None]
    width = (max(known) - min(known)) / ((max(every) - min(every)) or 1)
    return min(width + (len(known) < len(cells)) / n_domain, 1.0)


def cuts_of(table, part, allows=lambda rows: True):
    """All allowed cuts between values as (axis, left, right), in the order of axis and place."""
    for axis, column in enumerate(table.columns):
        places = {row: place_of(column, column[row]) for row in part}
        for place in sorted(set(places.values()))[:-1]:
            left = [row for row in part if places[row] <= place]
            right = [row for row in part if places[row] > place]
            if min(len(left), len(right)) >= table.k and allows(left) and allows(right):
                yield axis, left, right


def score(table, part, axis, left, right, rule):
    def charged(rows):
        return penalty(table.columns[axis], [table.columns[axis][row] for row in rows])

    if rule == "median":
        return charged(part), -axis, -abs(len(left) - len(right))
    return len(part) * charged(part) - (len(left) * charged(left) + len(right) * charged(right))


def naive_groups(table, rule):
    """Breadth-first, so that groups come in the order of the tree's leaves."""
    level, groups = [list(range(table.n_rows))], []
    while level:
        below = []
        for part in level:
            cuts = list(cuts_of(table, part))
            if cuts:
                below += max(cuts, key=lambda cut: score(table, part, *cut, rule))[1:]
            else:
                groups.append(part)
        level = below
    return groups


def members(of_row):
    return [np.flatnonzero(of_row == group).tolist() for group in range(max(of_row) + 1)]


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["median", "penalty"])
@given(table=tables())
def test_strict_groups_are_those_of_a_naive_recursion(rule, table):
    """Groups agree, and so do their numbers: depth by depth, left before right."""
    assert members(table.divide(split=rule).of_row) == naive_groups(table, rule)


@pytest.mark.slow
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("rule", RULES)
@given(table=tables())
def test_groups_have_k_rows_and_cannot_be_cut(strict, rule, table):
    """No group is too small, and none has an allowed cut between values left (halving looks at the middle only)."""
    groups = members(table.divide(split=rule, strict=strict).of_row)

    assert min(map(len, groups)) >= table.k
    if strict or rule != "median":
        assert not any(list(cuts_of(table, group)) for group in groups)
    if not strict:
        for group in groups:
            cells = {tuple(column[row] for column in table.columns) for row in group}
            assert len(group) < 2 * table.k or len(cells) == 1


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@given(table=tables())
def test_strict_groups_do_not_overlap(rule, table):
    """No row of another group lies in a group's box."""
    of_row = table.divide(split=rule).of_row
    places = np.array([[place_of(column, cell) for cell in column] for column in table.columns]).T
    for group in range(of_row.max() + 1):
        own = places[of_row == group]
        is_inside = ((places >= own.min(axis=0)) & (places <= own.max(axis=0))).all(axis=1)

        assert of_row[is_inside].tolist() == [group] * len(own)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@given(table=tables(), data=st.data())
def test_row_order_does_not_matter(rule, table, data):
    """Strict groups move with their rows; of relaxed ones the values do, since equal rows may change places."""
    order = data.draw(st.permutations(range(table.n_rows)))
    moved = Rows([[c[i] for i in order] for c in table.columns], [table.target[i] for i in order], table.k)

    assert moved.divide(split=rule).of_row.tolist() == table.divide(split=rule).of_row[order].tolist()
    if rule != "gain":
        assert released_values(moved, rule) == released_values(table, rule)


def released_values(table, rule):
    groups = members(table.divide(split=rule, strict=False).of_row)
    return [sorted(repr([column[row] for column in table.columns]) for row in group) for group in groups]


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@given(table=tables())
def test_the_tree_leads_every_row_to_its_group(rule, table):
    """Thresholds, and infinity for missing values, describe the strict cuts completely; nodes are added up."""
    partition = table.divide(split=rule)
    tree = partition.tree
    inner = np.flatnonzero(tree.n_children == 2)

    assert partition.groups_of(table.axes()).tolist() == partition.of_row.tolist()
    assert tree.weights[tree.attribute == -1].tolist() == np.bincount(partition.of_row).tolist()
    assert tree.weights[inner].tolist() == [tree.weights[tree.children(i)].sum() for i in inner]
    assert tree.statistics[0].sum() == table.n_rows


@given(table=tables())
def test_a_relaxed_tree_leads_rows_with_a_divided_value_to_the_left(table):
    """Equal rows reach one group: of those that hold them, the one furthest left in the tree."""
    partition = table.divide(split="median", strict=False)
    reached, turns = partition.groups_of(table.axes()), turns_to_groups(partition.tree)
    cells = list(zip(*table.columns, strict=True))
    for row, own in enumerate(partition.of_row):
        assert reached[row] == reached[cells.index(cells[row])]
        assert turns[reached[row]] <= turns[own]


def turns_to_groups(tree):
    """Left and right turns (0 and 1) from the root to every leaf."""
    turns = {0: ()}
    for node in np.flatnonzero(tree.n_children).tolist():
        turns |= {child: (*turns[node], turn) for turn, child in enumerate(tree.children(node).tolist())}
    return [turns[leaf] for leaf in np.flatnonzero(tree.attribute == -1).tolist()]


@pytest.mark.slow
@pytest.mark.parametrize("criterion", [Entropy(3), Variance()])
@given(table=tables(max_rows=12))
def test_gain_takes_the_best_cut_and_else_the_median(criterion, table):
    """Every split of the tree gains as much as any allowed cut does, or none gains and it is the median rule's."""
    statistics = criterion.statistics(table.target)
    partition = mondrian_partition(table.axes(), table.k, split="gain", statistics=statistics, criterion=criterion)

    def impurity(rows):
        return float(criterion.impurity(statistics[rows].sum(axis=0)))

    def gain(cut):
        return impurity(cut[1] + cut[2]) - impurity(cut[1]) - impurity(cut[2])

    for part, left in splits_of(partition):
        cuts = list(cuts_of(table, part))
        taken = next(cut for cut in cuts if cut[1] == left)
        best = max(map(gain, cuts))
        if best > 1e-6:
            assert gain(taken) == pytest.approx(best)
        else:
            assert left == max(cuts, key=lambda cut: score(table, part, *cut, "median"))[1]


def splits_of(partition):
    """Rows of every inner node and those of its first child."""
    tree = partition.tree
    leaves = np.flatnonzero(tree.attribute == -1)
    rows = {int(leaf): np.flatnonzero(partition.of_row == group).tolist() for group, leaf in enumerate(leaves)}
    for node in reversed(range(tree.n_nodes)):
        if node not in rows:
            left, right = tree.children(node).tolist()
            rows[node] = sorted(rows[left] + rows[right])
            yield rows[node], rows[left]


CONSTRAINTS = [
    LDiversity(2, "s", ("c",)),
    LDiversity(1.8, "s", ("c",), "entropy"),
    LDiversity(2, "s", ("c",), "recursive", 1.5),
]
LEVELS = {
    "distinct": lambda guarantee, counts: distinct_diversity_level(counts),
    "entropy": lambda guarantee, counts: entropy_diversity_level(counts),
    "recursive": lambda guarantee, counts: recursive_diversity_level(counts, guarantee.c),
}


def measured_level(guarantee, counts):
    return LEVELS[guarantee.variant](guarantee, ClassValueCounts.from_contingency(np.array(counts)[:, None]))


def evenly_sensitive(table):
    """Three copies of a table, with every sensitive value in turn beside a row or one of its neighbours."""
    columns = [column + column[1:] + column[:1] + column[2:] + column[:2] for column in table.columns]
    return Rows(columns, [(value + i) % 3 for i in range(3) for value in table.target], table.k)


@pytest.mark.slow
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("guarantee", CONSTRAINTS, ids=lambda guarantee: guarantee.variant)
@given(table=tables(), rule=st.sampled_from(RULES), cells_at_once=st.sampled_from([1, 9, 2**22]))
def test_constrained_groups_are_diverse_and_cannot_be_cut(strict, guarantee, table, rule, cells_at_once):
    """Every group keeps the promise by our measures, and what could be cut was, however much is looked at at once."""
    table = evenly_sensitive(table)
    sensitive = np.array(table.target, dtype=np.int32)
    with patch.object(cut_rules, "CELLS_AT_ONCE", cells_at_once):
        of_row = table.divide(
            split=rule, strict=strict, is_allowed=constraint_of(guarantee), sensitive=sensitive
        ).of_row

    def is_diverse(rows):
        return guarantee.is_met_by(measured_level(guarantee, np.bincount(sensitive[rows], minlength=3)))

    groups = members(of_row)
    assert all(is_diverse(group) and len(group) >= table.k for group in groups)
    if strict or rule != "median":
        assert not any(list(cuts_of(table, group, is_diverse)) for group in groups)


@given(
    counts=st.lists(st.lists(st.integers(0, 6), min_size=4, max_size=4).filter(any), min_size=1, max_size=4),
    c=st.sampled_from([0.1, 0.5, 1.0, 1.5, 2, 3, 1e30]),
)
def test_levels_of_constraints_are_those_of_the_measures(counts, c):
    """Part by part, and so also for a table of parts."""
    of_parts = np.array(counts)
    for constraint, guarantee in [
        (DistinctDiversity(2), CONSTRAINTS[0]),
        (EntropyDiversity(2), CONSTRAINTS[1]),
        (RecursiveDiversity(2, c), LDiversity(2, "s", ("c",), "recursive", c)),
    ]:
        levels = constraint.levels(of_parts)

        assert levels == pytest.approx([measured_level(guarantee, part) for part in counts], abs=1e-12)
        assert constraint(of_parts).tolist() == (levels >= 2 - 1e-9).tolist()


@pytest.mark.slow
@given(table=tables())
def test_widths_that_parts_are_judged_by_are_the_penalties_of_the_release(table):
    """What cuts weigh is what :mod:`sfumato.mechanisms.recoder` charges."""
    of_row = table.divide().of_row
    charged = [generalized.penalties for generalized in generalize(table.axes(), Cover.of_groups(of_row))]
    for column, penalties in zip(table.columns, charged, strict=True):
        expected = [penalty(column, [column[row] for row in group]) for group in members(of_row)]

        assert penalties.tolist() == pytest.approx(expected)
