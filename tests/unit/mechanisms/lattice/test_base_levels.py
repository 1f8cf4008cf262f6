"""Levels that distinct rows are counted at, and searches that begin there, against all nodes looked at one by one."""

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import entropy_bits
from sfumato.errors import PrivacyNotAchievableError
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy, covered
from sfumato.mechanisms.lattice.base_levels import BaseLevels, LevelSteps, way_up
from sfumato.mechanisms.lattice.lattice import LatticeProblem
from sfumato.mechanisms.lattice.node_checks import NodeChecker
from sfumato.mechanisms.lattice.rounds import recode_in_rounds
from sfumato.mechanisms.lattice.search import search_lattice
from sfumato.schema import Kind
from sfumato.table.coding import CodedColumn

VALUES = tuple("abcdefgh")
PAIRS = Hierarchy.from_rows([(v, "abcd"[i // 2], "xy"[i // 4], "*") for i, v in enumerate(VALUES)])
ODD = Hierarchy.from_rows([(v, "a" if v in "abcde" else v, "*") for v in VALUES])
ABSOLUTE_LOSSES = (
    "loss",
    "certainty_penalty",
    "height",
    "height_sum",
    "discernibility",
    "average_class_size",
    "classification",
)
"""Losses whose value at a node does not depend on what was counted below it."""


def fitted_columns(rows):
    columns = [CodedColumn.encode(pa.array(list(cells))) for cells in zip(*rows, strict=True)]
    kinds = zip(columns, (PAIRS, ODD, PAIRS), strict=False)
    return [covered(h, c, f"c{j}", Kind.CATEGORICAL) for j, (c, h) in enumerate(kinds)], columns


def problem_of(rows, targets, base, **goal):
    """Cells of rows as a problem that begins at a base."""
    fitted, columns = fitted_columns(rows)
    codes = np.column_stack([f.level_codes[low][c.codes] for f, c, low in zip(fitted, columns, base, strict=True)])
    return LatticeProblem(
        codes=codes,
        counts=np.ones(len(rows), dtype=np.int64),
        level_maps=tuple(f.level_maps_from(low) for f, low in zip(fitted, base, strict=True)),
        shares=tuple(f.shares[low:] for f, low in zip(fitted, base, strict=True)),
        target=np.array(targets),
        base=tuple(base),
        least_shares=tuple(float(f.shares[0].min()) for f in fitted),
        **goal,
    )


rows_of_two = st.lists(st.tuples(*[st.sampled_from(VALUES)] * 2), min_size=4, max_size=40)


@given(rows_of_two, st.tuples(st.floats(0.1, 5), st.floats(0.1, 5)))
def test_every_node_of_the_way_costs_least_for_its_entropy(rows, weights):
    """No node with as little entropy has a smaller penalty; the way ends where nothing is left to merge."""
    fitted, columns = fitted_columns(rows)
    way = way_up(fitted, [c.counts for c in columns], weights)

    def entropy(node):
        return sum(entropy_bits(labels) for labels in _labels(fitted, columns, node))

    def penalty(node):
        shares = [
            f.shares[level][f.level_codes[level][c.codes]] for f, c, level in zip(fitted, columns, node, strict=True)
        ]
        return sum(w * float(np.mean(own)) for w, own in zip(weights, shares, strict=True))

    everywhere = [(entropy(n), penalty(n)) for n in itertools.product(*(range(f.n_levels) for f in fitted))]
    for node in way:
        assert all(cost >= penalty(node) - 1e-9 for bits, cost in everywhere if bits <= entropy(node) + 1e-9)
    assert way[0] == (0, 0)
    for one, following in itertools.pairwise(way):
        raised = [b - a for a, b in zip(one, following, strict=True)]
        assert min(raised) == 0
        assert sum(step > 0 for step in raised) == 1
    assert entropy(way[-1]) == 0


def _labels(fitted, columns, node):
    return [f.level_codes[level][c.codes].tolist() for f, c, level in zip(fitted, columns, node, strict=True)]


def test_a_column_of_no_weight_is_raised_to_the_top_first():
    rows = list(zip(VALUES, VALUES, strict=True))
    fitted, columns = fitted_columns(rows)

    assert way_up(fitted, [c.counts for c in columns], [0.0, 1.0])[1] == (3, 0)


@pytest.mark.slow
@given(
    rows_of_two,
    st.tuples(st.integers(0, 3), st.integers(0, 2)),
    st.sampled_from(ABSOLUTE_LOSSES),
    st.integers(2, 5),
    st.sampled_from([0.0, 0.2, 0.5]),
    st.data(),
)
def test_a_search_from_a_base_finds_the_best_node_above_it(rows, base, loss, k, fraction, data):
    """Best as the whole problem, counted at the finest levels, ranks nodes; and it is never called proven."""
    targets = data.draw(st.lists(st.integers(0, 1), min_size=len(rows), max_size=len(rows)))
    goal = {"loss": loss, "k": k, "max_suppressed_fraction": fraction}
    checker = NodeChecker(problem_of(rows, targets, (0, 0), **goal))
    nodes = itertools.product(range(base[0], 4), range(base[1], 3))
    found = [checked for checked in map(checker.check, nodes) if checked.satisfies]
    if not found:
        with pytest.raises(PrivacyNotAchievableError):
            search_lattice(problem_of(rows, targets, base, **goal))
        return
    best = min(found, key=lambda checked: checked.rank)

    result = search_lattice(problem_of(rows, targets, base, **goal))

    assert (result.levels, result.n_suppressed) == (best.levels, best.n_suppressed)
    assert result.loss == pytest.approx(best.loss, abs=1e-9)
    assert result.proven == (base == (0, 0))
    assert result.bound <= result.loss
    assert result.proven or result.bound == 0


@given(rows_of_two, st.tuples(st.integers(0, 3), st.integers(0, 2)))
def test_rounds_from_a_base_stay_above_it_and_release_every_row(rows, base):
    result = recode_in_rounds(problem_of(rows, [0] * len(rows), base, loss="certainty_penalty", k=2))

    assert all(level >= low for levels in result.levels for level, low in zip(levels, base, strict=True))
    assert (result.rounds >= 0).all()
    assert base == (0, 0) or not result.proven


def test_the_base_says_which_levels_were_not_searched():
    """And nothing where all of them were."""
    fitted, _ = fitted_columns(list(zip(VALUES, VALUES, strict=True)))
    steps = LevelSteps((PAIRS, ODD), tuple(fitted), ((0, 0), (2, 0)))

    assert steps.base(0).statement == ""
    assert "from these on were searched: 'c0' 2;" in steps.base(1).statement
    assert replace(steps.base(1), levels=(0, 1)).statement.count("'c0'") == 0
    assert isinstance(steps.base(1), BaseLevels)
