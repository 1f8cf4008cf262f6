"""Mondrian beside a naive recursion written from its description, on small tables with missing values."""

import math
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.counting.counts import Counts, DenseCounts
from sfumato.guarantees import AlphaKAnonymity, BetaLikeness, DeltaDisclosure, LDiversity, TCloseness
from sfumato.learning.c45.criteria import Entropy, Variance
from sfumato.learning.c45.tree import LEAF
from sfumato.measures.diversity import distances, t_closeness
from sfumato.mechanisms.axes import Axis
from sfumato.mechanisms.constraints import Limit, Promised
from sfumato.mechanisms.mondrian import parts as parts_module
from sfumato.mechanisms.mondrian.division import mondrian_partition
from sfumato.mechanisms.recoder import Cover, generalize
from table_levels import distinct_diversity_level, entropy_diversity_level, recursive_diversity_level

RULES = ("penalty", "median", "gain", "score")


SCORES = ((0.0, 1.0), (1.0, 1.5), (3.0, -2.0))


class Rows(NamedTuple):
    """Columns of numbers or words, ``None`` where missing, with a target and a sensitive value for each row."""

    columns: list[list]
    target: list[int]
    k: int

    @property
    def n_rows(self):
        return len(self.target)

    def scores(self):
        """Two numbers for each row, by its target."""
        return [SCORES[value] for value in self.target]

    def axes(self):
        return [axis_of(f"c{j}", column) for j, column in enumerate(self.columns)]

    def divide(self, **options):
        if options.get("split") == "gain":
            options |= {"statistics": Entropy(3).statistics(self.target), "criterion": Entropy(3)}
        if options.get("split") == "score":
            scores = np.array(self.scores())
            options |= {
                "statistics": Variance(2).statistics(scores),
                "criterion": Variance(2),
                "order_by": scores[:, 0],
            }
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


def laid_out(table, rule):
    """Write the columns so that their order is the one in which a rule cuts them."""
    return ordered_by_score(table) if rule == "score" else table


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
        assert not any(list(cuts_of(laid_out(table, rule), group)) for group in groups)
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
    columns = laid_out(table, rule).columns
    places = np.array([[place_of(column, cell) for cell in column] for column in columns]).T
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
    if rule not in ("gain", "score"):
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
    assert (tree.statistics[0, 0] if rule == "score" else tree.statistics[0].sum()) == table.n_rows


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
CLOSE = [TCloseness(0.3, "s", ("c",)), TCloseness(0.25, "s", ("c",), "ordered")]
LEVELS = {
    "distinct": lambda guarantee, counts: distinct_diversity_level(counts),
    "entropy": lambda guarantee, counts: entropy_diversity_level(counts),
    "recursive": lambda guarantee, counts: recursive_diversity_level(counts, guarantee.c),
}


def measured_level(guarantee, counts):
    return LEVELS[guarantee.variant](guarantee, Counts.from_contingency(np.array(counts)[:, None]))


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
    with patch.object(parts_module, "CELLS_AT_ONCE", cells_at_once):
        of_row = table.divide(split=rule, strict=strict, limits=[Limit(Promised(guarantee), sensitive)]).of_row

    def is_diverse(rows):
        return guarantee.is_met_by(measured_level(guarantee, np.bincount(sensitive[rows], minlength=3)))

    groups = members(of_row)
    assert all(is_diverse(group) and len(group) >= table.k for group in groups)
    if strict or rule != "median":
        assert not any(list(cuts_of(laid_out(table, rule), group, is_diverse)) for group in groups)


@pytest.mark.slow
@pytest.mark.parametrize("guarantee", CLOSE, ids=lambda guarantee: guarantee.distance)
@given(table=tables(), rule=st.sampled_from(RULES))
def test_groups_under_closeness_are_close_and_cannot_be_cut(guarantee, table, rule):
    """By the measure over all groups, and written out for each cut that is left."""
    table = evenly_sensitive(table)
    sensitive = np.array(table.target, dtype=np.int32)
    overall = np.bincount(sensitive, minlength=3)
    of_row = table.divide(split=rule, limits=[Limit(Promised(guarantee, overall), sensitive)]).of_row

    def is_close(rows):
        shares = [sum(sensitive[row] == value for row in rows) / len(rows) for value in range(3)]
        ahead = [share - n / table.n_rows for share, n in zip(shares, overall.tolist(), strict=True)]
        if guarantee.distance == "equal":
            return sum(map(abs, ahead)) / 2 <= guarantee.t + 1e-9
        return (abs(ahead[0]) + abs(ahead[0] + ahead[1])) / 2 <= guarantee.t + 1e-9

    groups = members(of_row)
    counted = Counts.from_contingency(np.array([np.bincount(sensitive[g], minlength=3) for g in groups]).T)
    assert t_closeness(counted, guarantee.distance) <= guarantee.t + 1e-9
    assert not any(list(cuts_of(laid_out(table, rule), group, is_close)) for group in groups)


LIMITS = [
    BetaLikeness(0.6, "s", ("c",)),
    BetaLikeness(3.0, "s", ("c",), "enhanced"),
    DeltaDisclosure(0.7, "s", ("c",)),
    AlphaKAnonymity(0.6, 2, "s", ("c",)),
]


def keeps_to_limit(limit, own, overall):
    """Whether a group keeps to a limit, by the definitions."""
    shares = [n / sum(own) for n in own]
    pairs = [(q, n / sum(overall)) for q, n in zip(shares, overall, strict=True) if n]
    if isinstance(limit, AlphaKAnonymity):
        return max(shares) <= limit.alpha + 1e-9
    if isinstance(limit, DeltaDisclosure):
        return all(q > 0 and abs(math.log(q / p)) < limit.delta for q, p in pairs)
    most = [min(limit.beta, -math.log(p)) if limit.likeness == "enhanced" else limit.beta for _, p in pairs]
    return all(q / p - 1 <= allowed + 1e-9 for (q, p), allowed in zip(pairs, most, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.in_short())
@given(table=tables(), rule=st.sampled_from(RULES))
def test_groups_under_limits_of_shares_keep_them_and_cannot_be_cut(limit, table, rule):
    """Written out for every group and for each cut that is left."""
    table = evenly_sensitive(table)
    sensitive = np.array(table.target, dtype=np.int32)
    overall = np.bincount(sensitive, minlength=3)
    of_row = table.divide(split=rule, limits=[Limit(Promised(limit, overall), sensitive)]).of_row

    def is_kept(rows):
        return keeps_to_limit(limit, np.bincount(sensitive[rows], minlength=3).tolist(), overall.tolist())

    groups = members(of_row)
    assert all(is_kept(group) for group in groups)
    assert not any(list(cuts_of(laid_out(table, rule), group, is_kept)) for group in groups)


@given(counts=st.lists(st.lists(st.integers(0, 6), min_size=4, max_size=4).filter(any), min_size=1, max_size=4))
def test_distances_of_closeness_are_those_of_the_measure(counts):
    """Values that do not occur have no place in the order."""
    of_parts = np.array(counts)
    for distance in ("equal", "ordered"):
        levels = Promised(TCloseness(0.2, "s", ("c",), distance), of_parts.sum(axis=0)).levels(
            DenseCounts.alone(of_parts)
        )

        assert levels == pytest.approx(distances(Counts.from_contingency(of_parts.T), distance), abs=1e-12)


@given(table=tables(), rule=st.sampled_from(RULES))
def test_each_of_several_sensitive_columns_has_its_own_constraint(table, rule):
    """Groups satisfy both by counts made by hand, and what could be cut under both was."""
    table = evenly_sensitive(table)
    sensitive = np.array([table.target, np.arange(len(table.target)) % 2], dtype=np.int32)
    constraints = [Promised(LDiversity(level, "s", ("c",))) for level in (3, 2)]
    of_row = table.divide(split=rule, limits=[Limit(*one) for one in zip(constraints, sensitive, strict=True)]).of_row

    def is_diverse(rows):
        return len(set(sensitive[0, rows])) >= 3 and len(set(sensitive[1, rows])) >= 2

    groups = members(of_row)
    assert all(is_diverse(group) and len(group) >= table.k for group in groups)
    assert not any(list(cuts_of(laid_out(table, rule), group, is_diverse)) for group in groups)


@given(
    counts=st.lists(st.lists(st.integers(0, 6), min_size=4, max_size=4).filter(any), min_size=1, max_size=4),
    c=st.sampled_from([0.1, 0.5, 1.0, 1.5, 2, 3, 1e30]),
)
def test_levels_of_constraints_are_those_of_the_measures(counts, c):
    """Part by part, and so also for a table of parts."""
    of_parts = DenseCounts.alone(np.array(counts))
    for guarantee in [*CONSTRAINTS[:2], LDiversity(2, "s", ("c",), "recursive", c)]:
        levels = Promised(guarantee).levels(of_parts)

        assert levels == pytest.approx([measured_level(guarantee, part) for part in counts], abs=1e-12)
        assert Promised(guarantee).are_kept_by(of_parts).tolist() == (levels >= guarantee.l - 1e-9).tolist()


def variance(rows):
    """Squared deviations of vectors from their mean, added up one by one."""
    means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    return sum((number - mean) ** 2 for row in rows for number, mean in zip(row, means, strict=True))


def ordered_by_score(table):
    """Replace each word by the place of its mean score, so that its order is that of numbers."""
    first = [row[0] for row in table.scores()]
    columns = []
    for column in table.columns:
        held = {word: [first[i] for i in range(table.n_rows) if column[i] == word] for word in set(column) - {None}}
        place = {word: (sum(own) / len(own), word) for word, own in held.items()}
        ranks = {word: rank for rank, word in enumerate(sorted(place, key=place.get))}
        columns.append(column if is_ordered(column) else [None if cell is None else ranks[cell] for cell in column])
    return table._replace(columns=columns)


def fall(table, part, axis, left, right, penalty_weight):
    """Add up what a cut lowers: variance of the scores, and penalty on its axis, as shares of the whole table."""
    scores, column = table.scores(), table.columns[axis]
    whole = variance(scores)

    def charged(rows):
        return len(rows) * penalty(column, [column[row] for row in rows])

    fallen = variance([scores[i] for i in part]) - sum(variance([scores[i] for i in side]) for side in (left, right))
    narrower = charged(part) - charged(left) - charged(right)
    return (fallen / whole if whole else 0.0) + penalty_weight * narrower / (table.n_rows * len(table.columns))


def nodes_of(partition):
    """Rows of every node of the tree."""
    leaves = np.flatnonzero(partition.tree.attribute == LEAF)[partition.of_row]
    rows = [[] for _ in range(partition.tree.n_nodes)]
    for row, node in enumerate(leaves.tolist()):
        while node != -1:
            rows[node].append(row)
            node = int(partition.tree.parent[node])
    return rows


@pytest.mark.parametrize("penalty_weight", [0.0, 0.5])
@given(table=tables())
def test_every_cut_by_score_lowers_variance_and_penalty_most(penalty_weight, table):
    """Of all cuts of a part, written out one by one; and parts that are left have none."""
    partition = table.divide(split="score", penalty_weight=penalty_weight)
    tree, rows, cut_along = partition.tree, nodes_of(partition), laid_out(table, "score")
    for node, part in enumerate(rows):
        cuts = {
            (axis, tuple(left)): fall(table, part, axis, left, right, penalty_weight)
            for axis, left, right in cuts_of(cut_along, part)
        }
        if tree.attribute[node] == LEAF:
            assert not cuts
        else:
            chosen = int(tree.attribute[node]), tuple(rows[tree.first_child[node]])
            assert cuts[chosen] >= max(cuts.values()) - 1e-9


@given(table=tables())
def test_where_no_score_falls_parts_are_divided_by_penalty(table):
    """All rows have one score, and so words have one mean: their order is that of their codes."""
    criterion, same = Variance(), np.ones(table.n_rows)
    by_score = mondrian_partition(
        table.axes(), table.k, split="score", statistics=criterion.statistics(same), criterion=criterion, order_by=same
    )
    by_penalty = mondrian_partition(table.axes(), table.k, order_by=same)

    assert by_score.of_row.tolist() == by_penalty.of_row.tolist()


@pytest.mark.slow
@given(table=tables())
def test_widths_that_parts_are_judged_by_are_the_penalties_of_the_release(table):
    """What cuts weigh is what :mod:`sfumato.mechanisms.recoder` charges."""
    of_row = table.divide().of_row
    charged = [generalized.penalties for generalized in generalize(table.axes(), Cover.of_groups(of_row))]
    for column, penalties in zip(table.columns, charged, strict=True):
        expected = [penalty(column, [column[row] for row in group]) for group in members(of_row)]

        assert penalties.tolist() == pytest.approx(expected)
