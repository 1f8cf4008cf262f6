"""Kernels that compute a measure in another way, beside the measure, on random counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.counting.counts import DenseCounts
from sfumato.guarantees import LDiversity
from sfumato.learning.c45.criteria import Entropy
from sfumato.measures import diversity
from sfumato.measures.anonymity import average_class_size, discernibility
from sfumato.measures.information import (
    entropies_bits,
    entropy_bits,
    mutual_information_bits,
    total_entropies_bits,
    x_log_x,
)
from sfumato.measures.loss import (
    generalized_certainty_penalty,
    normalized_certainty_penalty_of_ranges,
    normalized_certainty_penalty_of_sets,
)
from sfumato.measures.separation import distinguished_pairs, n_distinguished_pairs, pairs_of_different_classes
from sfumato.mechanisms.axes import Axis
from sfumato.mechanisms.constraints import Promised, asks_for_two_values
from sfumato.mechanisms.hierarchies import automatic as hierarchy_automatic
from sfumato.mechanisms.lattice import losses as lattice_class_losses
from sfumato.mechanisms.lattice import losses as lattice_losses
from sfumato.mechanisms.lattice.lattice import LatticeProblem, RollUp
from sfumato.mechanisms.mondrian.parts import Cuts, Scales, SortedParts, Widths


def dense_counts(n_values, *, largest=9, min_rows=1):
    rows = st.lists(st.integers(0, largest), min_size=n_values, max_size=n_values)
    return st.lists(rows, min_size=min_rows, max_size=6).map(np.array)


GROUPS = st.integers(1, 9).flatmap(dense_counts)
LARGE = st.integers(2, 5).flatmap(lambda n: dense_counts(n, largest=100_000))


@pytest.mark.slow
@given(GROUPS)
def test_entropies_of_groups_are_the_entropy_of_each(counts):
    assert entropies_bits(counts) == pytest.approx([entropy_bits(group) for group in counts], abs=1e-14)


@given(GROUPS | LARGE)
def test_total_entropies_are_entropies_times_rows(counts):
    """That of C4.5, of automatic hierarchies and of the loss by non-uniform entropy too."""
    expected = pytest.approx(entropies_bits(counts) * counts.sum(axis=1), rel=1e-12, abs=1e-8)

    assert total_entropies_bits(counts) == expected
    assert Entropy(counts.shape[1]).impurity(counts.astype(np.float64)) == expected
    assert hierarchy_automatic._rows_times_entropy(counts.astype(np.float64)) == expected
    assert [lattice_losses._total_bits(group) for group in counts] == expected


@given(LARGE)
def test_sums_of_x_log_x(counts):
    assert lattice_class_losses._times_log(counts.ravel()) == pytest.approx(x_log_x(counts).sum(), rel=1e-12, abs=1e-9)


@st.composite
def nodes(draw, loss):
    """Draw a column of values in groups, a target, and which classes of one of three levels are kept."""
    of_value = draw(st.lists(st.integers(0, 2), min_size=1, max_size=6))
    of_value = np.unique(of_value, return_inverse=True)[1].reshape(-1)
    counts = draw(dense_counts(3, largest=20, min_rows=len(of_value)).filter(lambda c: c[: len(of_value)].any()))
    values, targets = np.nonzero(counts[: len(of_value)])
    n_values = len(of_value)
    maps = np.arange(n_values), of_value, np.zeros(n_values, dtype=np.int64)
    shares = tuple(np.bincount(level) / n_values for level in maps)
    codes = values.astype(np.int32).reshape(-1, 1)
    problem = LatticeProblem(codes, counts[values, targets], (maps,), (shares,), loss=loss, target=targets, k=2)
    roll_up = RollUp(problem)
    level = draw(st.integers(0, 2))
    table = roll_up.table((level,))
    kept = np.array(draw(st.lists(st.booleans(), min_size=table.n_classes, max_size=table.n_classes)))
    contingency = np.zeros((table.n_classes, 3), dtype=np.int64)
    labels = table.class_labels(0, np.arange(table.n_classes))
    np.add.at(contingency, (np.searchsorted(labels, maps[level][values]), targets), counts[values, targets])
    return problem, roll_up, table, kept, contingency


@given(nodes("target_information"))
def test_information_of_a_node_is_the_mutual_information_of_its_classes(node):
    _, roll_up, table, kept, contingency = node
    classes = np.vstack([contingency[kept], contingency[~kept].sum(axis=0)])  # suppressed ones are one

    found = lattice_class_losses._information_bits(table, kept, np.asarray(roll_up.combinations.target))
    assert found == pytest.approx(mutual_information_bits(classes), abs=1e-12)


@given(nodes("certainty_penalty"))
def test_certainty_penalty_of_a_node_is_the_mean_over_its_cells(node):
    problem, _, table, kept, contingency = node
    labels = table.class_labels(0, np.arange(table.n_classes))
    n_values = len(problem.level_maps[0][0])
    n_held = np.rint(problem.shares[0][table.levels[0]][labels] * n_values)
    penalties = np.where(kept, normalized_certainty_penalty_of_sets(n_held, n_values), 1.0)

    found = lattice_losses.certainty_penalty(problem).value(table, kept)
    assert found == pytest.approx(generalized_certainty_penalty(penalties[:, None], contingency.sum(axis=1)), abs=1e-12)


@given(nodes("discernibility"))
def test_losses_of_class_sizes_are_the_measures(node):
    problem, _, table, kept, contingency = node
    sizes, n_suppressed = contingency[kept].sum(axis=1), int(contingency[~kept].sum())

    found = lattice_class_losses.Discernibility(problem).value(table, kept)
    assert found == discernibility(sizes, n_suppressed)
    found = lattice_class_losses.AverageClassSize(problem).value(table, kept)
    assert found == average_class_size(sizes, problem.k, n_suppressed)


@given(st.lists(st.integers(0, 7), min_size=2, max_size=12), st.data())
def test_penalties_that_cuts_are_chosen_by_are_the_measures(cells, data):
    """On a scale of numbers and on one of words."""
    known, codes = np.unique(cells, return_inverse=True)
    codes, labels = codes.reshape(-1).astype(np.int32), tuple(map(str, known.tolist()))
    axes = [Axis("number", codes, labels, known.astype(np.float64)), Axis("word", codes, labels, None)]
    scales = Scales.of(axes)
    parts = SortedParts.of(scales.values(axes))
    index = data.draw(st.integers(1, len(cells) - 1))
    cuts = Cuts(np.arange(2), np.zeros(2, dtype=np.intp), np.full(2, index))

    for found, side in zip(Widths(scales, parts).of_sides(cuts), (slice(index), slice(index, None)), strict=True):
        numbers, words = (parts.values[axis, side] - scales.first[axis] for axis in range(2))
        ends = known[numbers.min()], known[numbers.max()]
        of_range = normalized_certainty_penalty_of_ranges(*ends, known[0], known[-1])
        of_set = normalized_certainty_penalty_of_sets(len(set(words.tolist())), len(known))
        assert found == pytest.approx([float(of_range), float(of_set)])


@st.composite
def divided_rows(draw):
    """Draw rows on two axes in up to three parts, with a code of a further column each."""
    number = st.integers(0, 3)
    rows = draw(st.lists(st.tuples(st.integers(0, 2), number, number, number), min_size=2, max_size=20))
    part, *axes, codes = np.array(rows, dtype=np.int32).T
    part = np.unique(part, return_inverse=True)[1].reshape(-1).astype(np.int32)
    return SortedParts.of([np.unique(axis, return_inverse=True)[1].astype(np.int32) for axis in axes], part), codes


@given(divided_rows(), st.integers(1, 3))
def test_sides_of_cuts_with_two_values_are_those_of_distinct_diversity(divided, k):
    parts, codes = divided
    for cuts in (parts.cuts_between_values(k), parts.cuts_in_the_middle(k)):
        left, right = parts.two_values_on_sides(cuts, codes)

        for i, (axis, part, index) in enumerate(zip(cuts.axis, cuts.part, cuts.index, strict=True)):
            places = slice(parts.starts[part], index), slice(index, parts.starts[part + 1])
            of_sides = [DenseCounts.alone(np.bincount(codes[parts.rows[axis, side]])) for side in places]
            assert [left[i], right[i]] == [diversity.distinct_diversity(side) >= 2 for side in of_sides]


@pytest.mark.parametrize("level", [2, 2 + 1e-12, 2.5, 3])
@given(GROUPS)
def test_a_constraint_that_asks_for_two_values_allows_just_the_groups_that_have_them(level, counts):
    constraint = Promised(LDiversity(level, "s", ()))

    if asks_for_two_values(constraint):
        assert (
            constraint.are_kept_by(DenseCounts.alone(counts)).tolist()
            == (np.count_nonzero(counts, axis=1) >= 2).tolist()
        )
    assert asks_for_two_values(constraint) == (level < 2.1)


@given(GROUPS)
def test_distinguished_pairs_are_counted_as_their_share(counts):
    pairs = int(pairs_of_different_classes(counts.sum(axis=0)))

    assert n_distinguished_pairs(counts) == pytest.approx(distinguished_pairs(counts) * pairs, abs=1e-9)
