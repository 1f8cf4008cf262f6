"""The array tree is the tree of a plain recursive C4.5, written here row by row after Weka 3.6's J48."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from sfumato.learning.c45.criteria import Entropy
from sfumato.learning.c45.grow import grow
from sfumato.learning.c45.pruning import collapse, pessimistic_errors, prune
from sfumato.learning.c45.tree import TreeColumn

SMALL = 1e-6
SPLITS = st.sampled_from(["multiway", "binary"])


def log_part(x):
    return x * math.log2(x) if x > SMALL else 0.0


def bits(counts):
    return log_part(sum(counts)) - sum(log_part(c) for c in counts)


def count(rows, n_classes):
    counts = [0.0] * n_classes
    for _, label, weight in rows:
        counts[label] += weight
    return counts


def weight_of(rows):
    return sum(weight for _, _, weight in rows)


class Node:
    """A node; ``split`` is (column, threshold, value or None), rows are (values, class, weight)."""

    def __init__(self, rows, split=None, sons=()):
        self.rows, self.split, self.sons = rows, split, list(sons)

    def leaves(self):
        return [leaf for son in self.sons for leaf in son.leaves()] if self.sons else [self]


class NaiveC45:
    def __init__(self, kinds, rows, n_classes, min_leaf, confidence=0.25, max_depth=math.inf, splits="multiway"):
        self.kinds, self.rows, self.n_classes, self.splits = kinds, rows, n_classes, splits
        self.min_leaf, self.confidence, self.max_depth = min_leaf, confidence, max_depth
        self.n_raised = 0

    def bags(self, rows, split):
        column, at = split
        found = [[] for _ in range(self.kinds[column] if at is None else 2)]
        for row in rows:
            value = row[0][column]
            if value is not None:
                side = value > at if self.kinds[column] == "numeric" else value != at
                found[value if at is None else int(side)].append(row)
        return found

    def divide(self, rows, split):
        parts = self.bags(rows, split)
        weights = [weight_of(part) for part in parts]
        total = sum(weights)
        shares = [w / total for w in weights] if total > SMALL else [1 / len(parts)] * len(parts)
        for values, label, weight in rows:
            if values[split[0]] is None:
                for part, share in zip(parts, shares, strict=True):
                    if share > SMALL:
                        part.append((values, label, weight * share))
        return parts

    def gain(self, rows, bags):
        total, known = weight_of(rows), sum(weight_of(bag) for bag in bags)
        counts = [count(bag, self.n_classes) for bag in bags]
        gained = known / total * (bits([sum(c) for c in zip(*counts, strict=True)]) - sum(bits(c) for c in counts))
        return 0.0 if abs(gained) < SMALL else gained / known

    def ratio(self, rows, bags, gain):
        total, weights = weight_of(rows), [weight_of(bag) for bag in bags]
        information = log_part(total) - sum(log_part(w) for w in weights) - log_part(total - sum(weights))
        return 0.0 if information < SMALL else gain / (information / total)

    def best_cut(self, rows, column):
        known = sorted((row for row in rows if row[0][column] is not None), key=lambda row: row[0][column])
        least = 0.1 * weight_of(known) / self.n_classes
        least = self.min_leaf if least <= self.min_leaf + SMALL else min(least, 25)
        best, n_cuts, place = 0.0, 0, None
        for i in range(1, len(known)):
            if known[i - 1][0][column] + 1e-5 < known[i][0][column]:
                bags = [known[:i], known[i:]]
                if all(weight_of(bag) >= least - SMALL for bag in bags):
                    n_cuts += 1
                    gain = self.gain(rows, bags)
                    if gain > best + SMALL:
                        best, place = gain, i
        if place is None:
            return None
        best -= math.log2(n_cuts) / weight_of(rows)
        if best <= SMALL:
            return None
        middle = (known[place - 1][0][column] + known[place][0][column]) / 2
        return best, self.ratio(rows, [known[:place], known[place:]], best), (column, middle)

    def candidate(self, rows, column):
        if self.kinds[column] == "numeric":
            return self.best_cut(rows, column)
        if self.splits == "binary":
            return self.best_value(rows, column)
        bags = self.bags(rows, (column, None))
        if sum(weight_of(bag) >= self.min_leaf - SMALL for bag in bags) < 2:
            return None
        gain = self.gain(rows, bags)
        return gain, self.ratio(rows, bags, gain), (column, None)

    def best_value(self, rows, column):
        best = None
        for value in range(self.kinds[column]):
            bags = self.bags(rows, (column, value))
            if all(weight_of(bag) >= self.min_leaf - SMALL for bag in bags):
                gain = self.gain(rows, bags)
                ratio = self.ratio(rows, bags, gain)
                if best is None or ratio > best[1] + SMALL:
                    best = gain, ratio, (column, value)
        return best

    def choose(self, rows):
        counts = count(rows, self.n_classes)
        if sum(counts) < 2 * self.min_leaf - SMALL or sum(counts) - max(counts) < SMALL:
            return None
        found = [self.candidate(rows, column) for column in range(len(self.kinds))]
        many = [kind != "numeric" and kind >= 0.3 * len(self.rows) for kind in self.kinds]
        counted = [f[0] for f, is_many in zip(found, many, strict=True) if f and (all(many) or not is_many)]
        if not counted:
            return None
        best, split = 0.0, None
        for option in found:
            if option and option[0] >= sum(counted) / len(counted) - 1e-3 and option[1] > best + SMALL:
                best, split = option[1], option[2]
        return split

    def grow(self, rows=None, depth=0):
        rows = self.rows if rows is None else rows
        split = self.choose(rows) if depth < self.max_depth else None
        if split is None:
            return Node(rows)
        column, middle = split
        if self.kinds[column] == "numeric":
            split = column, max(v[column] for v, _, _ in self.rows if v[column] is not None and v[column] <= middle)
        return Node(rows, split, [self.grow(part, depth + 1) for part in self.divide(rows, split)])

    def wrong(self, rows):
        counts = count(rows, self.n_classes)
        return sum(counts) - max(counts)

    def collapse(self, node):
        if node.sons and sum(self.wrong(leaf.rows) for leaf in node.leaves()) >= self.wrong(node.rows) - 1e-3:
            node.sons, node.split = [], None
        for son in node.sons:
            self.collapse(son)

    def errors(self, rows):
        return naive_errors(weight_of(rows), self.wrong(rows), self.confidence) if weight_of(rows) > SMALL else 0.0

    def errors_of_branch(self, node, rows):
        if not node.sons:
            return self.errors(rows)
        parts = self.divide(rows, node.split)
        return sum(self.errors_of_branch(son, part) for son, part in zip(node.sons, parts, strict=True))

    def distribute(self, node, rows):
        node.rows = rows
        if node.sons:
            for son, part in zip(node.sons, self.divide(rows, node.split), strict=True):
                self.distribute(son, part)

    def prune(self, node, raising):
        if not node.sons:
            return
        for son in node.sons:
            self.prune(son, raising)
        weights = [weight_of(son.rows) for son in node.sons]
        largest = [son for son, w in zip(node.sons, weights, strict=True) if w >= max(weights) - SMALL][-1]
        raised = self.errors_of_branch(largest, node.rows) if raising else math.inf
        as_leaf, as_tree = self.errors(node.rows), sum(self.errors(leaf.rows) for leaf in node.leaves())
        if as_leaf <= as_tree + 0.1 + SMALL and as_leaf <= raised + 0.1 + SMALL:
            node.sons, node.split = [], None
        elif raised <= as_tree + 0.1 + SMALL:
            self.n_raised += 1
            node.sons, node.split = largest.sons, largest.split
            self.distribute(node, node.rows)
            self.prune(node, raising)


def naive_errors(n, e, confidence):
    if e < 1:
        none = n * (1 - confidence ** (1 / n))
        return e + none + (e * (naive_errors(n, 1, confidence) - 1 - none) if e > 0 else 0.0)
    if e + 0.5 >= n:
        return e + max(n - e, 0)
    z, f = norm.ppf(1 - confidence), (e + 0.5) / n
    rate = (f + z * z / (2 * n) + z * math.sqrt(f / n - f * f / n + z * z / (4 * n * n))) / (1 + z * z / n)
    return n * rate


def as_columns(kinds, rows):
    columns = []
    for number, kind in enumerate(kinds):
        values = [row[0][number] for row in rows]
        known = sorted({v for v in values if v is not None}) if kind == "numeric" else list(range(kind))
        codes = [-1 if v is None else known.index(v) for v in values]
        numbers = np.array(known, dtype=np.float64) if kind == "numeric" else None
        columns.append(TreeColumn(np.array(codes, dtype=np.int32), len(known), numbers))
    return columns


def assert_same(tree, naive, n_classes, at=0):
    assert tree.statistics[at] == pytest.approx(count(naive.rows, n_classes), abs=1e-7)
    assert tree.weights[at] == pytest.approx(weight_of(naive.rows), abs=1e-7)
    assert tree.n_children[at] == len(naive.sons)
    if not naive.sons:
        assert tree.attribute[at] == tree.first_child[at] == -1
        assert np.isnan(tree.threshold[at])
        return
    column, threshold = naive.split
    assert tree.attribute[at] == column
    assert np.isnan(tree.threshold[at]) if threshold is None else tree.threshold[at] == threshold
    for child, son in zip(tree.children(at).tolist(), naive.sons, strict=True):
        assert tree.parent[child] == at < child
        assert_same(tree, son, n_classes, child)


@st.composite
def problems(draw):
    kinds = draw(st.lists(st.sampled_from(["numeric", 2, 3, 4, 12]), min_size=1, max_size=4))
    n_classes = draw(st.integers(2, 3))
    cells = [
        st.none()
        | (st.sampled_from([-1.0, 0.0, 0.25, 1.0, 1.5, 4.0]) if kind == "numeric" else st.integers(0, kind - 1))
        for kind in kinds
    ]
    row = st.tuples(st.tuples(*cells), st.integers(0, n_classes - 1), st.just(1.0))
    return kinds, draw(st.lists(row, min_size=1, max_size=40)), n_classes, draw(st.sampled_from([1, 2, 3]))


def random_problem(seed, missing):
    rng = np.random.default_rng(seed)
    kinds = ["numeric", 3, "numeric", 4, 2]
    rows = []
    for _ in range(150):
        values = [float(rng.integers(12)) / 2, int(rng.integers(3)), float(rng.integers(30)), int(rng.integers(4)), 0]
        values[4] = int(values[0] + rng.normal() > 3)
        label = int(values[0] + 2 * values[1] * (values[3] > 1) + rng.normal() > 4) + int(rng.random() < 0.2)
        rows.append((tuple(None if rng.random() < missing else v for v in values), label, 1.0))
    return kinds, rows, 3, 2


def check_all_stages(problem, confidence, raising, splits):
    kinds, rows, n_classes, min_leaf = problem
    columns, criterion = as_columns(kinds, rows), Entropy(n_classes)
    statistics = criterion.statistics([label for _, label, _ in rows])
    naive = NaiveC45(kinds, rows, n_classes, min_leaf, confidence, splits=splits)

    expected, tree = naive.grow(), grow(columns, statistics, criterion, min_leaf=min_leaf, splits=splits)
    assert_same(tree, expected, n_classes)
    naive.collapse(expected)
    tree = collapse(tree, criterion)
    assert_same(tree, expected, n_classes)
    naive.prune(expected, raising)
    assert_same(prune(tree, columns, statistics, confidence, raising), expected, n_classes)
    return naive.n_raised


@pytest.mark.slow
@given(problems(), st.sampled_from([0.05, 0.25, 0.5]), st.booleans(), SPLITS)
def test_grown_collapsed_and_pruned_trees_are_the_naive_ones(problem, confidence, raising, splits):
    check_all_stages(problem, confidence, raising, splits)


@pytest.mark.slow
@pytest.mark.parametrize("splits", ["multiway", "binary"])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_raised_subtrees_are_the_naive_ones(missing, splits):
    n_raised = sum(check_all_stages(random_problem(seed, missing), 0.25, True, splits) for seed in range(30))

    assert n_raised >= 10


@given(problems(), st.integers(0, 3), SPLITS)
def test_depth_is_limited_as_in_the_naive_tree(problem, max_depth, splits):
    kinds, rows, n_classes, min_leaf = problem
    criterion = Entropy(n_classes)
    statistics = criterion.statistics([label for _, label, _ in rows])
    options = {"min_leaf": min_leaf, "max_depth": max_depth, "splits": splits}
    tree = grow(as_columns(kinds, rows), statistics, criterion, **options)

    naive = NaiveC45(kinds, rows, n_classes, min_leaf, max_depth=max_depth, splits=splits)
    assert_same(tree, naive.grow(), n_classes)
    assert tree.depth <= max_depth


@given(st.floats(0.1, 500), st.floats(0, 1), st.sampled_from([0.01, 0.25, 0.5]))
def test_pessimistic_errors_are_those_of_the_formula(weight, share_wrong, confidence):
    found = float(pessimistic_errors(weight, weight * share_wrong, confidence))

    assert found == pytest.approx(naive_errors(weight, weight * share_wrong, confidence), rel=1e-9)
