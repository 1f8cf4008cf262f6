"""Search of a lattice of hierarchy levels beside a naive one over all nodes and rows, for every loss and condition."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import PrivacyNotAchievableError
from sfumato.guarantees import AlphaKAnonymity, BetaLikeness, DeltaDisclosure, LDiversity, TCloseness
from sfumato.mechanisms.lattice import bounded_search as lattice_bounded
from sfumato.mechanisms.lattice import lattice as lattice_tables
from sfumato.mechanisms.lattice import search as lattice_search
from sfumato.mechanisms.lattice.conditions import Condition
from sfumato.mechanisms.lattice.lattice import LatticeProblem, RollUp
from sfumato.mechanisms.lattice.losses import COLUMN_LOSSES, LOSSES
from sfumato.mechanisms.lattice.node_checks import Judge, NodeChecker
from sfumato.mechanisms.lattice.recoder import regroup
from sfumato.mechanisms.lattice.search import search_lattice


def diverse(level, variant="distinct", c=None, column=0):
    return Condition(LDiversity(level, "s", (), variant, c), column)


def close(t, distance="equal", column=0):
    return Condition(TCloseness(t, "s", (), distance), column)


def like(beta, likeness="basic", column=0):
    return Condition(BetaLikeness(beta, "s", (), likeness), column)


def limited(alpha, column=0):
    return Condition(AlphaKAnonymity(alpha, 2, "s", ()), column)


CONDITIONS = (
    (),
    (diverse(2),),
    (diverse(3, column=1),),
    (diverse(1.7, "entropy"),),
    (diverse(2, "recursive", c=1.5),),
    (close(0.3),),
    (close(0.25, "ordered"),),
    (diverse(2), close(0.4, column=1)),
    (diverse(2, column=1), diverse(1.5, "entropy"), diverse(2, "recursive", c=4.0, column=1)),
    (close(0.4), close(0.4, "ordered", column=1)),
    (like(0.8),),
    (like(2.0, "enhanced", column=1),),
    (Condition(DeltaDisclosure(0.7, "s", ())),),
    (limited(0.6),),
    (diverse(2), limited(0.5, column=1), like(1.5)),
)
MONOTONE = tuple(asked for asked in CONDITIONS if all(one.guarantee.is_kept_by_growing for one in asked))


class Rows(NamedTuple):
    """Rows of value numbers with two sensitive columns and a target, and the hierarchies of the first."""

    rows: list[tuple[int, ...]]
    sensitive: list[tuple[int, int]]
    target: list[int]
    maps: list[list[list[int]]]
    k: int
    fraction: float
    weights: list[float] | None

    def problem(self, loss="loss", conditions=()):
        keys = [(*row, *s, t) for row, s, t in zip(self.rows, self.sensitive, self.target, strict=True)]
        counted = Counter(keys)
        cells = np.array(sorted(counted), dtype=np.int32)
        n = len(self.maps)
        return LatticeProblem(
            codes=cells[:, :n],
            counts=np.array([counted[tuple(cell)] for cell in cells.tolist()], dtype=np.int64),
            level_maps=tuple(tuple(np.array(m, dtype=np.int32) for m in maps) for maps in self.maps),
            shares=tuple(tuple(np.bincount(m) / len(m) for m in maps) for maps in self.maps),
            k=self.k,
            max_suppressed_fraction=self.fraction,
            conditions=conditions,
            loss=loss,
            weights=self.weights if loss in COLUMN_LOSSES else None,
            sensitive=(cells[:, n], cells[:, n + 1]),
            target=cells[:, n + 2],
        )

    @property
    def nodes(self):
        return list(itertools.product(*[range(len(maps)) for maps in self.maps]))


@st.composite
def hierarchies(draw):
    n_values = draw(st.integers(1, 4))
    levels = [list(range(n_values))]
    for _ in range(draw(st.integers(0, 2))):
        below = levels[-1]
        parents = draw(st.lists(st.integers(0, max(below)), min_size=max(below) + 1, max_size=max(below) + 1))
        numbers = {label: i for i, label in enumerate(sorted(set(parents)))}
        levels.append([numbers[parents[label]] for label in below])
    return levels


@st.composite
def tables(draw, max_rows=16):
    maps = draw(st.lists(hierarchies(), min_size=1, max_size=3))
    row = st.tuples(*[st.integers(0, len(m[0]) - 1) for m in maps])
    n_rows = draw(st.integers(1, max_rows))
    rows = draw(st.lists(row, min_size=n_rows, max_size=n_rows))
    pair = st.tuples(st.integers(0, 2), st.integers(0, 3))
    sensitive = draw(st.lists(pair, min_size=n_rows, max_size=n_rows))
    target = draw(st.lists(st.integers(0, 2), min_size=n_rows, max_size=n_rows))
    weight = st.sampled_from([0.5, 1.0, 3.0])
    weights = draw(st.none() | st.lists(weight, min_size=len(maps), max_size=len(maps)))
    k = draw(st.integers(1, 4))
    return Rows(rows, sensitive, target, maps, k, draw(st.sampled_from([0.0, 0.2, 0.29, 0.5, 0.9])), weights)


# --- the naive search -------------------------------------------------------------------------------------------------


def groups_at(table, levels, members=None):
    found = {}
    for i in range(len(table.rows)) if members is None else members:
        labels = tuple(m[level][v] for m, level, v in zip(table.maps, levels, table.rows[i], strict=True))
        found.setdefault(labels, []).append(i)
    return list(found.values())


def shares_of(values, domain):
    counted = Counter(values)
    return [counted[v] / len(values) for v in domain]


def keeps_to_limit(limit, values, everything):
    if isinstance(limit, AlphaKAnonymity):
        return max(Counter(values).values()) / len(values) <= limit.alpha + 1e-9
    domain = sorted(set(everything))
    pairs = list(zip(shares_of(values, domain), shares_of(everything, domain), strict=True))
    if isinstance(limit, DeltaDisclosure):
        return all(q > 0 and abs(math.log(q / p)) < limit.delta for q, p in pairs)
    most = [min(limit.beta, -math.log(p)) if limit.likeness == "enhanced" else limit.beta for _, p in pairs]
    return all(q / p - 1 <= allowed + 1e-9 for (q, p), allowed in zip(pairs, most, strict=True))


def satisfies(condition, table, group, released):
    promised = condition.guarantee
    values, everything = ([table.sensitive[i][condition.column] for i in rows] for rows in (group, released))
    if isinstance(promised, BetaLikeness | DeltaDisclosure | AlphaKAnonymity):
        return keeps_to_limit(promised, values, everything)
    counted = sorted(Counter(values).values(), reverse=True)
    if isinstance(promised, TCloseness):
        domain = sorted(set(everything))
        gaps = [p - q for p, q in zip(shares_of(values, domain), shares_of(everything, domain), strict=True)]
        if promised.distance == "equal":
            distance = sum(map(abs, gaps)) / 2
        else:
            steps = [abs(sum(gaps[: i + 1])) for i in range(len(gaps))]
            distance = sum(steps) / max(len(domain) - 1, 1)
        return distance <= promised.t + 1e-9
    if promised.variant == "distinct":
        return len(counted) >= promised.l
    if promised.variant == "entropy":
        entropy = -sum(n / len(values) * math.log(n / len(values)) for n in counted)
        return entropy >= math.log(promised.l) - 1e-9
    return counted[0] < Fraction(str(promised.c)) * sum(counted[int(promised.l) - 1 :])


def released_groups(table, conditions, groups):
    kept = [g for g in groups if len(g) >= table.k]
    while True:
        released = [i for g in kept for i in g]
        still = kept
        for condition in conditions:  # one after the other, as each suppresses classes that the next is compared with
            released = [i for g in still for i in g]
            still = [g for g in still if satisfies(condition, table, g, released)]
        if len(still) == len(kept):
            return kept
        kept = still


def column_losses(table, loss, levels, released):
    n = len(table.rows)
    for maps, level, j in zip(table.maps, levels, range(len(levels)), strict=True):
        n_values, labels = len(maps[0]), maps[level]
        column = [row[j] for row in table.rows]
        share = [labels.count(labels[v]) / n_values for v in column]
        if loss == "loss":
            mean = sum(share[i] if i in released else 1.0 for i in range(n)) / n
            yield 0.0 if n_values == 1 else (mean - 1 / n_values) / (1 - 1 / n_values)
        elif loss == "certainty_penalty":
            penalty = [0.0 if labels.count(labels[v]) == 1 else s for v, s in zip(column, share, strict=True)]
            yield sum(penalty[i] if i in released else 1.0 for i in range(n)) / n
        elif loss == "non_uniform_entropy":
            rows_of, rows_at = Counter(column), Counter(labels[v] for v in column)
            lost = sum(
                math.log2((rows_at[labels[v]] if i in released else n) / rows_of[v]) for i, v in enumerate(column)
            )
            whole = sum(math.log2(n / rows_of[v]) for v in column)
            yield lost / whole if whole else 0.0
        else:
            yield level / max(len(maps) - 1, 1) if loss == "height" else level


def information(target, groups):
    n = len(target)
    whole = Counter(target)
    total = 0.0
    for group in groups:
        for t, both in Counter(target[i] for i in group).items():
            total += both / n * math.log2(both * n / (len(group) * whole[t]))
    return total


def naive_loss(table, loss, levels, groups):
    n, released = len(table.rows), {i for g in groups for i in g}
    rest = [i for i in range(n) if i not in released]
    if loss in COLUMN_LOSSES:
        lost = list(column_losses(table, loss, levels, released))
        weights = table.weights or [1.0] * len(lost)
        if loss == "height_sum":
            return sum(w * x for w, x in zip(weights, lost, strict=True))
        if loss == "loss":
            product = math.prod((1 + x) ** w for w, x in zip(weights, lost, strict=True))
            return product ** (1 / sum(weights)) - 1
        return sum(w * x for w, x in zip(weights, lost, strict=True)) / sum(weights)
    if loss == "discernibility":
        return sum(len(g) ** 2 for g in groups) + n * len(rest)
    if loss == "average_class_size":
        return n / (len(groups) * table.k)
    if loss == "classification":
        right = sum(max(Counter(table.target[i] for i in g).values()) for g in groups)
        return (n - right) / n
    finest = information(table.target, groups_at(table, (0,) * len(levels)))
    left = information(table.target, groups + ([rest] if rest else []))
    return 1 - left / finest if finest > 1e-12 else 0.0


def satisfying_nodes(table, conditions):
    """Nodes that satisfy the goal, each with the suppressed rows and the released groups, whatever the loss."""
    for levels in table.nodes:
        groups = released_groups(table, conditions, groups_at(table, levels))
        n_lost = len(table.rows) - sum(map(len, groups))
        if n_lost <= Fraction(str(table.fraction)) * len(table.rows):
            yield levels, n_lost, groups


def naive_best(table, loss, nodes):
    """Rank, suppressed rows and released groups of the best node; none if there is none."""
    found = []
    for levels, n_lost, groups in nodes:
        value = naive_loss(table, loss, levels, groups)
        found.append(((round(value, 10), sum(levels), levels), n_lost, groups))
    return min(found, key=lambda f: f[0]) if found else None


def as_partition(table, problem, classes):
    """Row numbers of each class, given the classes of cells."""
    of_cell = {}
    cells = np.column_stack([problem.codes, *problem.sensitive, problem.target])
    for cell, number in zip(cells.tolist(), classes.tolist(), strict=True):
        of_cell[tuple(cell)] = number
    found = {}
    for i, (row, s, t) in enumerate(zip(table.rows, table.sensitive, table.target, strict=True)):
        found.setdefault(of_cell[(*row, *s, t)], set()).add(i)
    found.pop(-1, None)
    return sorted(map(sorted, found.values()))


def assert_same_as_naive(table, conditions):
    nodes = list(satisfying_nodes(table, conditions))
    for loss in LOSSES:
        problem = table.problem(loss, conditions)
        expected = naive_best(table, loss, nodes)
        if expected is None:
            with pytest.raises(PrivacyNotAchievableError):
                search_lattice(problem, max_seconds=60)
            continue
        result = search_lattice(problem, max_seconds=60)
        (value, _, levels), n_lost, groups = expected

        assert result.proven, loss
        assert result.loss == pytest.approx(value, abs=1e-9), loss
        assert (result.levels, result.n_suppressed) == (levels, n_lost), loss
        assert as_partition(table, problem, result.classes) == sorted(map(sorted, groups)), loss


@pytest.mark.slow
@given(table=tables(), conditions=st.sampled_from(CONDITIONS))
def test_exact_search_finds_the_best_node_of_all(table, conditions):
    assert_same_as_naive(table, conditions)


@pytest.mark.slow
@given(table=tables(max_rows=10), conditions=st.sampled_from(CONDITIONS))
def test_search_of_large_lattices_finds_the_best_node_of_all_when_it_has_time(table, conditions):
    with patch.object(lattice_search, "MAX_NODES", 1):
        assert_same_as_naive(table, conditions)


def losses_at(table, loss, conditions, fractions, seconds=None):
    """Loss of the search at each limit of suppressed rows, infinite where none is found; its clock counts readings."""
    problem, found = table.problem(loss, conditions), []
    for fraction in fractions:
        ticks = itertools.count()
        try:
            asked = replace(problem, max_suppressed_fraction=fraction)
            found.append(search_lattice(asked, seconds, clock=lambda ticks=ticks: 1000.0 * next(ticks)).loss)
        except PrivacyNotAchievableError:
            found.append(float("inf"))
    return found


FRACTIONS = st.lists(
    st.sampled_from([0.0, 0.004, 0.015, 0.06, 0.1, 0.2, 0.29, 0.5, 0.77, 0.9999, 1.0]),
    min_size=2,
    max_size=4,
    unique=True,
)


@pytest.mark.slow
@given(table=tables(), conditions=st.sampled_from(CONDITIONS), fractions=FRACTIONS)
def test_a_looser_limit_of_suppressed_rows_never_raises_the_least_loss(table, conditions, fractions):
    for loss in LOSSES:
        found = losses_at(table, loss, conditions, sorted(fractions))

        rounded = [round(lost, 9) for lost in found]
        assert rounded == sorted(rounded, reverse=True), loss


@pytest.mark.slow
@given(table=tables(), conditions=st.sampled_from(CONDITIONS), fractions=FRACTIONS, n_ticks=st.integers(1, 400))
def test_a_looser_limit_never_raises_the_loss_however_little_work_is_allowed(table, conditions, fractions, n_ticks):
    """The search of large lattices, with a budget of work that is counted in readings of the clock.

    Numbers of suppressed rows are tried as a ladder, or every one.
    """
    for loss, few_rows in itertools.product(LOSSES, (0, 32)):
        with patch.object(lattice_search, "MAX_NODES", 1), patch.object(lattice_bounded, "_FEW_ROWS", few_rows):
            found = losses_at(table, loss, conditions, sorted(fractions), seconds=1000.0 * n_ticks)

        assert found == sorted(found, reverse=True), (loss, few_rows)


@pytest.mark.slow
@given(table=tables(), conditions=st.sampled_from(CONDITIONS), data=st.data())
def test_rolled_up_classes_equal_those_counted_from_the_rows(table, conditions, data):
    problem = table.problem(conditions=conditions)
    limits = data.draw(st.sampled_from([{"_SMALL_SPAN": 1}, {"_MAX_DENSE": 0}, {"_MAX_KEY": 40}, {"_MAX_TABLES": 1}]))
    with patch.multiple(lattice_tables, _SMALL_TABLE=0, **limits):
        roll_up = RollUp(problem)
        for levels in data.draw(st.permutations(table.nodes)):
            rolled = roll_up.table(levels)
            places = np.arange(rolled.n_classes)
            labels = zip(*[rolled.class_labels(j, places).tolist() for j in range(len(levels))], strict=True)
            found = dict(zip(labels, rolled.sizes.tolist(), strict=True))
            naive = Counter(
                tuple(m[level][v] for m, level, v in zip(table.maps, levels, row, strict=True)) for row in table.rows
            )
            numbers = roll_up.classes_of_cells(levels)

            assert found == naive
            assert np.bincount(numbers, weights=problem.counts).tolist() == rolled.sizes.tolist()


def verdicts(problem):
    roll_up = RollUp(problem)
    judge = Judge(problem, roll_up.combinations)
    return {levels: judge.judge(roll_up.table(levels)) for levels in itertools.product(*map(range, problem.shape))}


def pairs(nodes):
    """All pairs of a node and one above it."""
    return [(x, y) for x in nodes for y in nodes if all(a <= b for a, b in zip(x, y, strict=True))]


@pytest.mark.slow
@given(table=tables(), conditions=st.sampled_from(CONDITIONS))
def test_rows_that_miss_a_condition_declared_monotone_never_grow_going_up(table, conditions):
    found = verdicts(table.problem(conditions=conditions))

    for below, above in pairs(table.nodes):
        assert found[below].n_surely_suppressed >= found[above].n_surely_suppressed
        assert found[below].n_suppressed >= found[below].n_surely_suppressed
        if conditions in MONOTONE:
            assert found[below].n_suppressed == found[below].n_surely_suppressed


@pytest.mark.slow
@given(table=tables(), conditions=st.sampled_from(CONDITIONS))
def test_without_suppression_every_condition_that_holds_holds_above(table, conditions):
    found = verdicts(table.problem(conditions=conditions))

    for below, above in pairs(table.nodes):
        assert found[below].n_suppressed > 0 or found[above].n_suppressed == 0


@pytest.mark.slow
@given(table=tables(), conditions=st.sampled_from(CONDITIONS))
def test_bounds_hold_for_the_node_and_all_above_or_below(table, conditions):
    for loss in LOSSES:
        assert_bounds_hold(loss, table, conditions)


def assert_bounds_hold(loss, table, conditions):
    problem = table.problem(loss, conditions)
    checker = NodeChecker(problem)
    tables_at = {levels: checker.roll_up.table(levels) for levels in table.nodes}
    verdict = {levels: checker.judge.judge(found) for levels, found in tables_at.items()}
    slack = 1e-9 * max(1, len(table.rows) ** 2)

    def of_columns(levels, n_suppressed=0):
        terms = checker.loss.terms(n_suppressed)
        return float(checker.loss.of_sum(np.asarray(sum(t[i] for t, i in zip(terms, levels, strict=True)))))

    for below, above in pairs(table.nodes):
        value = checker.loss.value(tables_at[above], verdict[above].kept)
        assert checker.loss.bound(tables_at[below]) <= value + slack
        assert of_columns(below) <= value + slack
        low_value = checker.loss.value(tables_at[below], verdict[below].kept)
        assert of_columns(below, verdict[above].n_surely_suppressed) <= low_value + slack


@pytest.mark.slow
@given(
    table=tables(),
    conditions=st.sampled_from([m for m in CONDITIONS if not any(x.guarantee.compares_with_table for x in m)]),
)
def test_regrouped_classes_satisfy_the_goal_and_nothing_more_can_be_released(table, conditions):
    is_achievable = any(satisfying_nodes(table, conditions))
    for loss in ("loss", "height", "discernibility"):
        assert_nothing_more_can_be_released(loss, table, conditions, is_achievable)


def assert_nothing_more_can_be_released(loss, table, conditions, is_achievable):
    problem = table.problem(loss, conditions)
    if not is_achievable:
        with pytest.raises(PrivacyNotAchievableError):
            search_lattice(problem)
        return
    first = search_lattice(problem)
    levels, rounds = regroup(problem, first)
    groups = []
    for number, node in enumerate(levels):
        (members,) = as_partition(table, problem, np.where(rounds == number, 0, -1))
        groups += groups_at(table, node, members)
    left = [i for i in range(len(table.rows)) if not any(i in g for g in groups)]

    assert problem.counts[rounds < 0].sum() == len(left)
    assert levels[0] == first.levels
    assert ((rounds == 0) == (first.classes >= 0)).all()
    for group in groups:
        assert len(group) >= table.k
        assert all(satisfies(condition, table, group, group) for condition in conditions)
    for levels in table.nodes:
        assert not released_groups(table, conditions, groups_at(table, levels, left))
