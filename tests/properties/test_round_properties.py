"""Local recoding in rounds beside a naive one over all nodes and rows; what every release of it must satisfy."""

import math
from collections import Counter
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import PrivacyNotAchievableError
from sfumato.mechanisms.lattice import rounds as lattice_rounds
from sfumato.mechanisms.lattice.lattice import RollUp
from sfumato.mechanisms.lattice.rounds import recode_in_rounds
from tests.properties.test_lattice_properties import CONDITIONS, groups_at, satisfies, tables


@st.composite
def tables_with_tops(draw, max_rows=16):
    """Tables whose hierarchies end in one label, as those of the mechanism do."""
    table = draw(tables(max_rows))
    return table._replace(maps=[m if max(m[-1]) == 0 else [*m, [0] * len(m[0])] for m in table.maps])


# --- the naive rounds -------------------------------------------------------------------------------------------------


def is_safe(table, conditions, group):
    everything = range(len(table.rows))
    return len(group) >= table.k and all(satisfies(condition, table, group, everything) for condition in conditions)


def penalty(table, levels, row):
    weights = table.weights or [1.0] * len(levels)
    lost = [m[level].count(m[level][v]) for m, level, v in zip(table.maps, levels, table.rows[row], strict=True)]
    shares = [0.0 if n == 1 else n / len(m[0]) for n, m in zip(lost, table.maps, strict=True)]
    return sum(w * share for w, share in zip(weights, shares, strict=True)) / sum(weights)


def labels_of(table, levels, row):
    return tuple(m[level][v] for m, level, v in zip(table.maps, levels, table.rows[row], strict=True))


def released_at(table, conditions, levels, left, needed):
    """Cheapest safe groups, without those that are held back so that the rest is safe as one group."""
    groups = [g for g in groups_at(table, levels, left) if is_safe(table, conditions, g)]
    groups.sort(key=lambda g: (round(penalty(table, levels, g[0]), 10), labels_of(table, levels, g[0])))
    if sum(map(len, groups)) == len(left):
        return groups
    while groups and len(left) - sum(map(len, groups)) < table.k:
        groups.pop()
    step = 1
    while groups and sum(map(len, groups)) >= needed:
        released = {i for g in groups for i in g}
        if is_safe(table, conditions, [i for i in left if i not in released]):
            return groups
        groups, step = groups[: max(len(groups) - step, 0)], 2 * step
    return []


def naive_round(table, conditions, left, needed):
    found = []
    for levels in table.nodes:
        groups = released_at(table, conditions, levels, left, needed)
        rows = [i for g in groups for i in g]
        if len(rows) >= needed:
            score = sum(penalty(table, levels, i) for i in rows) / len(rows)
            found.append(((round(score, 10), -len(rows), sum(levels), levels), rows))
    return min(found)


def naive_rounds(table, conditions, fraction):
    """Levels and rows of each round."""
    least = max(math.ceil(round(fraction * len(table.rows), 9)), 1)
    left, needed, found = list(range(len(table.rows))), 0, []
    while left:
        wanted = min(least, math.ceil(len(left) / 10))
        if not found or needed > min(3 * wanted, len(left)):
            needed = wanted
        (*_, levels), rows = naive_round(table, conditions, left, needed)
        found.append((levels, sorted(rows)))
        left = [i for i in left if i not in set(rows)]
    return found


def rows_of_rounds(table, problem, found):
    cells = np.column_stack([problem.codes, *problem.sensitive, problem.target]).tolist()
    round_of = {tuple(cell): r for cell, r in zip(cells, found.rounds.tolist(), strict=True)}
    keys = [(*row, *s, t) for row, s, t in zip(table.rows, table.sensitive, table.target, strict=True)]
    return [(levels, [i for i, key in enumerate(keys) if round_of[key] == r]) for r, levels in enumerate(found.levels)]


# --- what must hold ---------------------------------------------------------------------------------------------------


FRACTIONS = st.sampled_from([0.01, 0.1, 0.3, 0.7, 1.0])


@pytest.mark.slow
@given(table=tables_with_tops(), conditions=st.sampled_from(CONDITIONS), fraction=FRACTIONS)
def test_every_round_takes_the_best_node_of_all(table, conditions, fraction):
    problem = table.problem("certainty_penalty", conditions)
    if not is_safe(table, conditions, range(len(table.rows))):
        with pytest.raises(PrivacyNotAchievableError):
            recode_in_rounds(problem, fraction)
        return
    found = recode_in_rounds(problem, fraction)

    assert found.proven
    assert rows_of_rounds(table, problem, found) == naive_rounds(table, conditions, fraction)


def assert_released_safely(table, problem, conditions, found):
    """Every row is released, and rows with equal released labels satisfy the goal whichever round they are of."""
    assert (found.rounds >= 0).all()
    classes = {}
    for levels, rows in rows_of_rounds(table, problem, found):
        for i in rows:
            # values that labels stand for: equal ones may come from different levels
            labels = [
                m[level].index(label)
                for m, level, label in zip(table.maps, levels, labels_of(table, levels, i), strict=True)
            ]
            members = tuple(
                tuple(v for v, label in enumerate(m[level]) if label == m[level][value])
                for m, level, value in zip(table.maps, levels, labels, strict=True)
            )
            classes.setdefault(members, []).append(i)
    assert sorted(i for group in classes.values() for i in group) == list(range(len(table.rows)))
    assert all(is_safe(table, conditions, group) for group in classes.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "most_held"), [("certainty_penalty", 200_000), ("certainty_penalty", 0), ("target_information", 0)]
)
@given(
    table=tables_with_tops(24),
    conditions=st.sampled_from(CONDITIONS),
    fraction=FRACTIONS,
    work=st.sampled_from([1, 60, 10**9]),
)
def test_every_release_satisfies_the_goal_however_little_work_is_allowed(
    loss, most_held, table, conditions, fraction, work
):
    problem = table.problem(loss, conditions)
    if not is_safe(table, conditions, range(len(table.rows))):
        return
    with patch.object(lattice_rounds, "MOST_HELD", most_held):
        found = recode_in_rounds(problem, fraction, work)
        again = recode_in_rounds(problem, fraction, work)

    assert_released_safely(table, problem, conditions, found)
    assert (found.levels, found.rounds.tolist()) == (again.levels, again.rounds.tolist())


def bits(targets):
    counted = Counter(targets).values()
    return -sum(n * math.log2(n / len(targets)) for n in counted)


@given(table=tables_with_tops())
def test_lost_bits_are_those_that_joining_the_cells_of_a_class_loses(table):
    problem = table.problem("target_information")
    roll_up = RollUp(problem)
    score = lattice_rounds._LostInformation(problem, roll_up)
    bottom = (0,) * len(table.maps)
    for levels in table.nodes:
        classes = roll_up.table(levels)
        found = score.costs(classes, np.arange(classes.n_classes))
        groups = sorted(groups_at(table, levels), key=lambda g: labels_of(table, levels, g[0]))
        for cost, group in zip(found, groups, strict=True):
            cells = groups_at(table, bottom, group)
            lost = bits([table.target[i] for i in group]) - sum(bits([table.target[i] for i in c]) for c in cells)
            assert cost == pytest.approx(lost / len(group), abs=1e-9)
