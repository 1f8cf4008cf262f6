"""Error-risk pruning of generated trees with 1,000 to 100,000 leaves, by both rules."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.contest import Benchmark, Contender
from benchmarks.generated import kept

K = 5
ROWS_A_LEAF = 20
N_COLUMNS, N_VALUES, N_CLASSES = 12, 8, 3
SIZES = (10_000, 1_000, 100_000)
"""Leaves, first those on which the plain loop, whose time grows with their square, is run as well."""


def kept_tree(n_leaves: int, folder: Path) -> Any:
    """Make a tree once for all contenders."""
    return kept(folder / f"tree-{n_leaves}.pickle", partial(make_tree, n_leaves, folder))


def make_tree(n_leaves: int, folder: Path) -> Any:
    """Split the largest leaf, unevenly, until there are enough; even columns are categorical, odd ones numeric."""
    import heapq

    import numpy as np

    from sfumato.learning.c45.criteria import Entropy
    from sfumato.learning.c45.tree import TreeColumn

    rng = np.random.default_rng(21)
    parent, attribute, cut, first, n_children = [-1], [-1], [np.nan], [-1], [0]
    domains: list[dict[int, tuple[float, float]]] = [{}]
    leaves = [(-ROWS_A_LEAF * n_leaves, 0)]
    while len(leaves) < n_leaves:
        size, node = heapq.heappop(leaves)
        column, parts = draw_split(domains[node], rng)
        attribute[node], first[node], n_children[node] = column, len(parent), len(parts)
        cut[node] = parts[0][1] if column % 2 else np.nan
        rows = rng.multinomial(-size, rng.dirichlet(np.ones(len(parts))))
        for part, n_rows in zip(parts, rows.tolist(), strict=True):
            heapq.heappush(leaves, (-n_rows, len(parent)))
            domains.append({**domains[node], column: part})
            for values, value in ((parent, node), (attribute, -1), (cut, np.nan), (first, -1), (n_children, 0)):
                values.append(value)
    numbers = np.arange(101, dtype=np.float64)
    no_rows = np.zeros(0, dtype=np.int32)
    columns = [TreeColumn(no_rows, 101, numbers) if j % 2 else TreeColumn(no_rows, N_VALUES) for j in range(N_COLUMNS)]
    return as_tree(parent, attribute, cut, first, n_children, leaves, rng), columns, Entropy(N_CLASSES)


def draw_split(domains: dict[int, tuple[float, float]], rng: Any) -> tuple[int, list[tuple[float, float]]]:
    """Choose a column and say the domains of the children; a categorical column is split once on a path."""
    column = int(rng.integers(N_COLUMNS))
    if column % 2 == 0 and column not in domains:
        return column, [(float(value), float(value)) for value in range(N_VALUES)]
    column |= 1
    low, high = domains.get(column, (0.0, 100.0))
    cut = low + (high - low) * float(rng.uniform(0.2, 0.8))
    return column, [(low, cut), (cut, high)]


def as_tree(parent: Any, attribute: Any, cut: Any, first: Any, n_children: Any, leaves: Any, rng: Any) -> Any:
    """Give the rows of the leaves classes and add them up."""
    import numpy as np

    from sfumato.learning.c45.tree import Tree

    statistics = np.zeros((len(parent), N_CLASSES))
    for size, leaf in leaves:
        statistics[leaf] = rng.multinomial(-size, rng.dirichlet(np.full(N_CLASSES, 0.5)))
    for node in range(len(parent) - 1, 0, -1):
        statistics[parent[node]] += statistics[node]
    ids = [np.array(a, dtype=np.int32) for a in (parent, attribute, first, n_children)]
    cuts = np.array(cut)
    return Tree(ids[0], ids[1], cuts, cuts, ids[2], ids[3], statistics.sum(axis=1), statistics)


def prune(rule: str, grown: Any) -> Any:
    """Prune with sfumato; the answer says that all groups are large enough."""
    from sfumato.mechanisms.tree.error_risk import prune_by_error_risk

    return bool(grown[0].weights[prune_by_error_risk(*grown, K, rule=rule).groups].min() >= K)


def make_tree_and_groups(n_leaves: int, rule: str, folder: Path) -> Any:
    """Make the tree and the figures that the plain loop starts from, and prune with sfumato for comparison."""
    from sfumato.mechanisms.tree.error_risk import domain_granularity, prune_by_error_risk

    tree, columns, criterion = kept_tree(n_leaves, folder)
    groups = prune_by_error_risk(tree, columns, criterion, K, rule=rule).groups.tolist()
    return tree, domain_granularity(tree, columns).tolist(), criterion.error(tree.statistics).tolist(), groups


def prune_plainly(is_lowest: bool, prepared: Any) -> Any:
    """Compute all branches anew after every cut, as Figure 2 of [ERP19] is printed; says that the groups are ours."""
    *figures, groups = prepared
    return plain_loop(*figures, is_lowest) == groups


def plain_loop(tree: Any, granularity: list[float], error: list[float], is_lowest: bool) -> list[int]:
    """Walk the whole tree for every cut."""
    from math import inf, log2

    rows, parent = tree.weights.tolist(), tree.parent.tolist()
    is_split = (tree.n_children > 0).tolist()
    is_gone = [False] * len(rows)
    information = [g + log2(n) if n else inf for g, n in zip(granularity, rows, strict=True)]
    while True:
        least = [inf if s else i for s, i in zip(is_split, information, strict=True)]
        errors = [0.0 if s else e for s, e in zip(is_split, error, strict=True)]
        has_small = [not s and 0 < n < K for s, n in zip(is_split, rows, strict=True)]
        has_inner = [False] * len(rows)
        for node in range(len(rows) - 1, 0, -1):
            if not is_gone[node]:
                above = parent[node]
                least[above] = min(least[above], least[node])
                errors[above] += errors[node]
                has_small[above] |= has_small[node]
                has_inner[above] |= has_small[node] and is_split[node]
        turns = []
        for node, split in enumerate(is_split):
            if split and not is_gone[node] and has_small[node] and not (is_lowest and has_inner[node]):
                gain, cost = round(information[node] - least[node], 12), error[node] - errors[node]
                turns.append((round(gain / cost, 9), 0.0, -node) if cost else (inf, round(gain, 9), -node))
        if not turns:
            return [t for t, n in enumerate(rows) if n and not is_split[t] and not is_gone[t]]
        best = -max(turns)[-1]
        is_split[best] = False
        for node in range(best + 1, len(rows)):
            is_gone[node] = is_gone[node] or is_gone[parent[node]] or parent[node] == best


BENCHMARK = Benchmark(
    title=f"Error-risk pruning of generated trees, half of the columns with {N_VALUES}-way splits; k = {K}",
    goal="10,000 leaves well under a second by either rule, growth near-linear, the groups of the plain loop",
    is_forked=True,
    contenders=(
        *(
            Contender(f"{n:,} leaves, {rule} rule", partial(prune, rule), partial(kept_tree, n), packages=("sfumato",))
            for rule in ("literal", "lowest")
            for n in SIZES
        ),
        *(
            Contender(
                f"{SIZES[0]:,} leaves, {rule} rule, plain loop",
                partial(prune_plainly, rule == "lowest"),
                partial(make_tree_and_groups, SIZES[0], rule),
                repeats=1,
            )
            for rule in ("literal", "lowest")
        ),
    ),
)
