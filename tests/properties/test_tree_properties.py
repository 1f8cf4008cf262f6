"""Disclosure and pruning of drawn trees beside the definitions of [ERP19] in exact fractions, and its lemmas."""

import itertools
import math
import random
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import PrivacyNotAchievableError
from sfumato.learning.c45.criteria import Entropy, Variance
from sfumato.learning.c45.tree import Tree, TreeColumn
from sfumato.mechanisms.tree.disclosed import disclosure_evidence
from sfumato.mechanisms.tree.error_risk import error_risk, prune_by_error_risk

N_CLASSES = 3
RULES = ["lowest", "literal"]
SHARES = [Fraction(0), Fraction(1, 10), Fraction(1, 3), Fraction(1)]
FLOORS = [0.0, 1.5, 2.5, 3.5, 5.0]


@dataclass
class Node:
    """Rows (their targets), the domain of each column (numbers, or how many values), and the split."""

    rows: list
    domains: list
    parent: int = -1
    column: int = -1
    cut: Fraction | None = None
    value: int | None = None
    children: tuple = ()


@dataclass
class DrawnTree:
    domains: list
    nodes: list

    def leaves(self, node, cut=frozenset()):
        own = self.nodes[node]
        if not own.children or node in cut:
            return [node]
        return [leaf for child in own.children for leaf in self.leaves(child, cut)]

    def inner(self, node, cut=frozenset()):
        """Split nodes strictly below a node."""
        if node in cut:
            return []
        split = [child for child in self.nodes[node].children if self.nodes[child].children and child not in cut]
        return split + [below for child in split for below in self.inner(child, cut)]

    def n_rows(self, node):
        return len(self.nodes[node].rows)

    def share(self, node):
        """Product of P_j(t)."""
        return math.prod(
            (size(own) / size(whole) for own, whole in zip(self.nodes[node].domains, self.domains, strict=True)),
            start=Fraction(1),
        )

    def tree(self, criterion):
        """Give it to sfumato."""
        nodes, no_rows = self.nodes, np.zeros(0, dtype=np.int32)
        ids = [np.array(a, dtype=np.int32) for a in ([n.parent for n in nodes], [n.column for n in nodes])]
        cut = np.array([math.nan if n.cut is None else float(n.cut) for n in nodes])
        threshold = np.array([c if n.value is None else float(n.value) for c, n in zip(cut, nodes, strict=True)])
        first = np.array([n.children[0] if n.children else -1 for n in nodes], dtype=np.int32)
        n_children = np.array([len(n.children) for n in nodes], dtype=np.int32)
        # every row's own statistics, because the whole table centres them
        rows = criterion.statistics([target for _, target in nodes[0].rows])
        statistics = np.array([rows[[i for i, _ in n.rows]].sum(axis=0) for n in nodes])
        weights = np.array([float(len(n.rows)) for n in nodes])
        columns = [
            TreeColumn(no_rows, domain)
            if isinstance(domain, int)
            else TreeColumn(no_rows, len(domain), as_floats(domain))
            for domain in self.domains
        ]
        return Tree(*ids, threshold, cut, first, n_children, weights, statistics), columns


def size(domain):
    """Size of a domain: values, or the length of a range; a range of one number is whole."""
    return Fraction(domain) if isinstance(domain, int) else (domain[-1] - domain[0]) or Fraction(1)


def as_floats(numbers):
    return np.array([float(n) for n in numbers])


def classification_error(targets):
    return Fraction(len(targets) - max(Counter(targets).values(), default=0))


def squared_error(targets):
    mean = Fraction(sum(targets), max(len(targets), 1))
    return sum(((t - mean) ** 2 for t in targets), start=Fraction(0))


CRITERIA = [(Entropy(N_CLASSES), classification_error), (Variance(), squared_error)]


@st.composite
def drawn_trees(draw, max_splits=20, max_rows=60):
    """Trees whose splits are random, not searched: empty leaves, empty branches and idle splits occur."""
    n_rows, n_splits = draw(st.integers(1, max_rows)), draw(st.integers(0, max_splits))
    rng = random.Random(draw(st.integers(0, 2**32)))
    domains = [drawn_domain(rng) for _ in range(rng.randint(1, 5))]
    nodes = [Node(list(enumerate(rng.choices(range(N_CLASSES), (5, 3, 1), k=n_rows))), domains)]
    for _ in range(n_splits):
        options = [(t, c) for t, node in enumerate(nodes) if not node.children for c in splittable(node, domains)]
        if options:
            split(rng, nodes, *rng.choice(options), domains)
    return in_levels(DrawnTree(domains, nodes))


def drawn_domain(rng):
    if rng.random() < 0.5:
        return rng.choice([1, 2, 2, 3, 4])
    return [Fraction(n) for n in sorted(rng.sample(range(9), rng.randint(2, 5)))]


def splittable(node, whole):
    for column, domain in enumerate(node.domains):
        if isinstance(domain, int):
            if domain == whole[column] or domain > 1:
                yield column
        elif domain[-1] - domain[0] > Fraction(1, 4):
            yield column


def split(rng, nodes, at, column, whole):
    """Send rows to random sides, rows of one class often to the same one."""
    node, domain = nodes[at], nodes[at].domains[column]
    node.column = column
    if isinstance(domain, int) and domain > 1 and (domain < whole[column] or rng.random() < 0.5):
        node.value = whole[column] - domain  # one value against the rest, the first that is left
        parts = [1, domain - 1]
    elif isinstance(domain, int):
        parts = [1] * whole[column]
    else:
        node.cut = domain[0] + (domain[-1] - domain[0]) * rng.choice([1, 2, 3]) / 4
        parts = [[domain[0], node.cut], [node.cut, domain[-1]]]
    usual = [rng.randrange(len(parts)) for _ in range(N_CLASSES)]
    sides = [usual[target] if rng.random() < 0.4 else rng.randrange(len(parts)) for _, target in node.rows]
    node.children = tuple(range(len(nodes), len(nodes) + len(parts)))
    for side, part in enumerate(parts):
        rows = [row for row, s in zip(node.rows, sides, strict=True) if s == side]
        nodes.append(Node(rows, [*node.domains[:column], part, *node.domains[column + 1 :]], parent=at))


def group_sizes(drawn):
    """Sizes that some leaves of a drawn tree have and others do not."""
    return st.integers(1, min(6, drawn.n_rows(0)))


def in_levels(drawn):
    """Renumber the nodes as in a tree that is grown level by level."""
    order = [0]
    for node in order:
        order.extend(drawn.nodes[node].children)
    number = {old: new for new, old in enumerate(order)} | {-1: -1}
    for node in drawn.nodes:
        node.parent, node.children = number[node.parent], tuple(number[c] for c in node.children)
    return DrawnTree(drawn.domains, [drawn.nodes[old] for old in order])


class Oracle:
    """Definitions 1-7 and Figure 2, recomputed from the rows whenever they are asked for."""

    def __init__(self, drawn, error):
        self.drawn, self.error_of = drawn, error

    def information(self, node):
        """2 ** R(t), exactly; an empty node discloses nobody."""
        n_rows = self.drawn.n_rows(node)
        return n_rows / self.drawn.share(node) if n_rows else math.inf

    def branch_information(self, node, cut=frozenset()):
        return min(self.information(leaf) for leaf in self.drawn.leaves(node, cut))

    def error(self, node):
        return self.error_of([target for _, target in self.drawn.nodes[node].rows])

    def branch_error(self, node, cut=frozenset()):
        return sum((self.error(leaf) for leaf in self.drawn.leaves(node, cut)), start=Fraction(0))

    def turn(self, node, cut):
        """Ratio and, where that is infinite, the gain."""
        gain = math.log2(self.information(node) / self.branch_information(node, cut))
        cost = self.error(node) - self.branch_error(node, cut)
        return (gain / float(cost), 0.0) if cost else (math.inf, gain)

    def is_violating(self, node, k, cut):
        return any(0 < self.drawn.n_rows(leaf) < k for leaf in self.drawn.leaves(node, cut))

    def prune(self, k, rule):
        """Nodes that are leaves in the end."""
        cut = frozenset()
        while True:
            split = [0, *self.drawn.inner(0, cut)] if self.drawn.nodes[0].children and 0 not in cut else []
            violating = [node for node in split if self.is_violating(node, k, cut)]
            if rule == "lowest":
                violating = [v for v in violating if not set(violating) & set(self.drawn.inner(v, cut))]
            if not violating:
                return self.drawn.leaves(0, cut)
            best = violating[0]
            for node in sorted(violating):
                best = node if is_larger(self.turn(node, cut), self.turn(best, cut)) else best
            cut |= {best}

    def prune_further(self, k, most_added):
        """Leaves after the lowest rule and then, by the largest ratio, of all that gains and is not too dear."""
        leaves = self.prune(k, "lowest")
        cut, left = frozenset(leaf for leaf in leaves if self.drawn.nodes[leaf].children), most_added
        while True:
            split = [0, *self.drawn.inner(0, cut)] if self.drawn.nodes[0].children and 0 not in cut else []
            best = None
            for node in sorted(split):
                cost = self.error(node) - self.branch_error(node, cut)
                gains = self.drawn.n_rows(node) and self.information(node) > self.branch_information(node, cut)
                is_better = best is None or is_larger(self.turn(node, cut), self.turn(best, cut)) if gains else False
                best = node if is_better and cost <= left else best
            if best is None:
                return self.drawn.leaves(0, cut)
            left -= self.error(best) - self.branch_error(best, cut)
            cut |= {best}


def is_larger(one, other):
    for a, b in zip(one, other, strict=True):
        if a != b and not math.isclose(a, b, rel_tol=1e-10, abs_tol=1e-11):
            return a > b
    return False


def logs(values):
    return [math.log2(v) if v != math.inf else v for v in values]


@pytest.mark.slow
@pytest.mark.parametrize(("criterion", "error"), CRITERIA, ids=["classes", "numbers"])
@given(drawn=drawn_trees())
def test_figures_agree_with_the_definitions(criterion, error, drawn):
    oracle, nodes = Oracle(drawn, error), range(len(drawn.nodes))

    found = error_risk(*drawn.tree(criterion), criterion)

    assert found.granularity == pytest.approx([-math.log2(drawn.share(t)) for t in nodes], abs=1e-9)
    assert found.information == pytest.approx(logs(oracle.information(t) for t in nodes), abs=1e-9)
    assert found.branch_information == pytest.approx(logs(oracle.branch_information(t) for t in nodes), abs=1e-9)
    assert found.error == pytest.approx([float(oracle.error(t)) for t in nodes], abs=1e-9)
    assert found.branch_error == pytest.approx([float(oracle.branch_error(t)) for t in nodes], abs=1e-9)
    for t in nodes:
        if not drawn.nodes[t].children:
            assert math.isnan(found.ratio[t])
        elif drawn.n_rows(t):
            assert found.ratio[t] == pytest.approx(oracle.turn(t, frozenset())[0], rel=1e-6, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("criterion", "error"), CRITERIA, ids=["classes", "numbers"])
@given(drawn=drawn_trees(), data=st.data())
def test_pruning_agrees_with_figure_2(criterion, error, rule, drawn, data):
    """Every ratio is computed anew after every cut, as the paper writes it; ties go to the lower node."""
    k = data.draw(group_sizes(drawn))
    leaves = Oracle(drawn, error).prune(k, rule)

    pruned = prune_by_error_risk(*drawn.tree(criterion), criterion, k, rule=rule)

    assert pruned.groups.tolist() == sorted(leaf for leaf in leaves if drawn.n_rows(leaf))
    for leaf in leaves:
        for below in {leaf, *drawn.inner(leaf), *drawn.leaves(leaf)}:
            assert pruned.group_of_leaf[below] == leaf
    assert (pruned.group_of_leaf == -1).sum() == len(drawn.nodes) - sum(
        len({leaf, *drawn.inner(leaf), *drawn.leaves(leaf)}) for leaf in leaves
    )


@pytest.mark.parametrize("rule", RULES)
@given(drawn=drawn_trees(), data=st.data())
def test_every_group_has_at_least_k_rows(rule, drawn, data):
    k = data.draw(group_sizes(drawn))
    criterion = Entropy(N_CLASSES)

    groups = prune_by_error_risk(*drawn.tree(criterion), criterion, k, rule=rule).groups.tolist()

    assert all(drawn.n_rows(group) >= k for group in groups)
    assert sum(drawn.n_rows(group) for group in groups) == drawn.n_rows(0)


@given(drawn=drawn_trees(max_splits=5), data=st.data())
def test_lowest_rule_is_finest(drawn, data):
    """Of all prunings with at least k rows in every leaf none keeps a node split that the lowest rule prunes."""
    k = data.draw(group_sizes(drawn))
    inner = [t for t, node in enumerate(drawn.nodes) if node.children]
    criterion = Entropy(N_CLASSES)

    pruned = prune_by_error_risk(*drawn.tree(criterion), criterion, k)

    stays_split = set(np.flatnonzero(pruned.group_of_leaf == -1).tolist())
    for cut in itertools.chain.from_iterable(itertools.combinations(inner, n) for n in range(len(inner) + 1)):
        leaves = drawn.leaves(0, set(cut))
        if all(drawn.n_rows(leaf) == 0 or drawn.n_rows(leaf) >= k for leaf in leaves):
            assert stays_split >= ancestors(drawn, [leaf for leaf in leaves if drawn.n_rows(leaf)])


@given(drawn=drawn_trees(max_splits=5), data=st.data())
def test_a_floor_is_kept_by_the_finest_pruning_or_refused(drawn, data):
    """Whether any pruning has k rows and so many bits in every leaf is found by trying all of them."""
    k, floor = data.draw(group_sizes(drawn)), data.draw(st.sampled_from(FLOORS))
    inner = [t for t, node in enumerate(drawn.nodes) if node.children]
    criterion, oracle = Entropy(N_CLASSES), Oracle(drawn, classification_error)
    kept = []
    for cut in itertools.chain.from_iterable(itertools.combinations(inner, n) for n in range(len(inner) + 1)):
        leaves = [leaf for leaf in drawn.leaves(0, set(cut)) if drawn.n_rows(leaf)]
        if all(drawn.n_rows(t) >= k and math.log2(oracle.information(t)) >= floor - 1e-10 for t in leaves):
            kept.append(leaves)

    if not kept:
        with pytest.raises(PrivacyNotAchievableError) as caught:
            prune_by_error_risk(*drawn.tree(criterion), criterion, k, min_bits=floor)
        assert caught.value.best_level <= math.log2(drawn.n_rows(0))
        return
    pruned = prune_by_error_risk(*drawn.tree(criterion), criterion, k, min_bits=floor)

    assert sorted(pruned.groups.tolist()) in [sorted(leaves) for leaves in kept]
    stays_split = ancestors(drawn, pruned.groups.tolist())
    assert all(stays_split >= ancestors(drawn, leaves) for leaves in kept)


@pytest.mark.slow
@pytest.mark.parametrize(("criterion", "error"), CRITERIA, ids=["classes", "numbers"])
@given(drawn=drawn_trees(), data=st.data())
def test_pruning_further_by_the_ratio_agrees_with_its_definition(criterion, error, drawn, data):
    k, share = data.draw(group_sizes(drawn)), data.draw(st.sampled_from(SHARES))
    oracle = Oracle(drawn, error)
    leaves = oracle.prune_further(k, share * oracle.error(0))

    pruned = prune_by_error_risk(*drawn.tree(criterion), criterion, k, rule="ratio", max_added_error=float(share))

    assert pruned.groups.tolist() == sorted(leaf for leaf in leaves if drawn.n_rows(leaf))


@given(drawn=drawn_trees(), data=st.data())
def test_pruning_further_never_lowers_the_least_information_and_keeps_the_allowance(drawn, data):
    k, share = data.draw(group_sizes(drawn)), data.draw(st.sampled_from(SHARES))
    criterion, oracle = Entropy(N_CLASSES), Oracle(drawn, classification_error)
    tree, columns = drawn.tree(criterion)
    lowest = prune_by_error_risk(tree, columns, criterion, k).groups.tolist()

    further = prune_by_error_risk(tree, columns, criterion, k, rule="ratio", max_added_error=float(share))
    groups = further.groups.tolist()

    assert ancestors(drawn, groups) <= ancestors(drawn, lowest)
    assert all(drawn.n_rows(group) >= k for group in groups)
    assert min(map(oracle.information, groups)) >= min(map(oracle.information, lowest))
    added = sum(map(oracle.error, groups)) - sum(map(oracle.error, lowest))
    assert added <= share * oracle.error(0)


@given(drawn=drawn_trees(), data=st.data())
def test_evidence_agrees_with_plain_sums(drawn, data):
    k, criterion = data.draw(group_sizes(drawn)), Entropy(N_CLASSES)
    tree, columns = drawn.tree(criterion)
    risk, oracle = error_risk(tree, columns, criterion), Oracle(drawn, classification_error)
    pruned = prune_by_error_risk(tree, columns, criterion, k)

    found = disclosure_evidence(tree, risk, pruned)

    for of, nodes in (("leaves", drawn.leaves(0)), ("groups", pruned.groups.tolist())):
        held = [t for t in nodes if drawn.n_rows(t)]
        by_name = {
            "big": [-math.log2(drawn.share(t)) for t in held],
            "icr": [math.log2(drawn.n_rows(t)) for t in held],
            "tidi": [math.log2(oracle.information(t)) for t in held],
        }
        assert found[f"n_{of}"] == len(held)
        for name, bits in by_name.items():
            mean = sum(b * drawn.n_rows(t) for b, t in zip(bits, held, strict=True)) / drawn.n_rows(0)
            assert found[f"least_{name}_bits_of_{of}"] == pytest.approx(min(bits), abs=1e-9)
            assert found[f"mean_{name}_bits_of_{of}"] == pytest.approx(mean, abs=1e-9)
    ratios = [oracle.turn(t, frozenset())[0] for t in pruned.groups.tolist() if drawn.nodes[t].children]
    finite = [ratio for ratio in ratios if ratio != math.inf]
    assert found["n_branches_pruned"] == len(ratios)
    assert found["n_branches_pruned_at_no_error"] == len(ratios) - len(finite)
    largest = found["largest_error_risk_ratio"]
    assert largest == (pytest.approx(max(finite), rel=1e-6, abs=1e-9) if finite else None)


@given(drawn=drawn_trees())
def test_the_mean_information_of_leaves_is_above_that_of_their_node_where_none_is_empty(drawn):
    """By the divergence of the shares of rows from the shares of the domain; Lemma 3 is about the least."""
    found = error_risk(*drawn.tree(Entropy(N_CLASSES)), Entropy(N_CLASSES)).information

    for t in range(len(drawn.nodes)):
        leaves = drawn.leaves(t)
        if all(drawn.n_rows(leaf) for leaf in leaves):
            mean = sum(found[leaf] * drawn.n_rows(leaf) for leaf in leaves) / drawn.n_rows(t)
            assert mean >= found[t] - 1e-9


def ancestors(drawn, nodes):
    found = set()
    for node in nodes:
        while (node := drawn.nodes[node].parent) >= 0:
            found.add(node)
    return found


@given(drawn=drawn_trees())
def test_lemma_1_a_child_needs_more_background(drawn):
    """BIG(t) < BIG(t_c) wherever the split narrows; a column of one value narrows nothing, and there it is equal."""
    granularity = error_risk(*drawn.tree(Entropy(N_CLASSES)), Entropy(N_CLASSES)).granularity

    for t, node in enumerate(drawn.nodes):
        for child in node.children:
            if drawn.domains[node.column] == 1:
                assert granularity[child] == granularity[t]
            else:
                assert granularity[child] > granularity[t]


@given(drawn=drawn_trees())
def test_lemma_2_a_smaller_child_is_easier_to_search(drawn):
    """ICR(t) > ICR(t_c) wherever the child has fewer rows and some; a child may have all rows."""
    found = error_risk(*drawn.tree(Entropy(N_CLASSES)), Entropy(N_CLASSES)).reidentification

    for t, node in enumerate(drawn.nodes):
        for child in node.children:
            if drawn.n_rows(child) == 0:
                assert found[child] == math.inf
            elif drawn.n_rows(child) == drawn.n_rows(t):
                assert found[child] == found[t]
            else:
                assert found[child] < found[t]


@given(drawn=drawn_trees())
def test_lemma_3_a_branch_needs_less_information_up_to_its_empty_leaves(drawn):
    """R(B_t) - R(t) is at most -log2 of the share of t's domain that leaves with rows fill: 0 if none is empty."""
    found = error_risk(*drawn.tree(Entropy(N_CLASSES)), Entropy(N_CLASSES))

    for t in range(len(drawn.nodes)):
        if drawn.n_rows(t):
            filled = sum(drawn.share(leaf) for leaf in drawn.leaves(t) if drawn.n_rows(leaf)) / drawn.share(t)
            assert found.branch_information[t] - found.information[t] <= -math.log2(filled) + 1e-9
            assert filled == 1 or any(drawn.n_rows(leaf) == 0 for leaf in drawn.leaves(t))


@pytest.mark.parametrize("criterion", [Entropy(N_CLASSES), Variance()], ids=["classes", "numbers"])
@given(drawn=drawn_trees())
def test_a_branch_errs_no_more_than_its_node(criterion, drawn):
    found = error_risk(*drawn.tree(criterion), criterion)

    assert (found.branch_error <= found.error + 1e-9).all()
