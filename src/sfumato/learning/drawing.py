"""A tree as indented text, in the manner of Weka's J48."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.learning.tree import LEAF, Tree

INDENT = "|   "


def draw(tree: Tree, names: Sequence[str], categories: Sequence[Sequence[str] | None], leaves: Sequence[str]) -> str:
    """Write one line a branch, the branches of a node one step further in, and the counts below.

    Parameters
    ----------
    names : sequence of str
        Names of the columns.
    categories : sequence
        The values of each categorical column in the order of its codes, ``None`` for a numeric one.
    leaves : sequence of str
        What to say of each node if it is a leaf.
    """
    lines = [f": {leaves[0]}"] if tree.n_nodes == 1 else []
    waiting = [(child, 0) for child in tree.children(0)[::-1].tolist()]
    while waiting:
        node, depth = waiting.pop()
        parent = int(tree.parent[node])
        is_leaf = tree.attribute[node] == LEAF
        test = _test(tree, parent, node - int(tree.first_child[parent]), names, categories)
        lines.append(INDENT * depth + test + (f": {leaves[node]}" if is_leaf else ""))
        waiting += [(child, depth + 1) for child in tree.children(node)[::-1].tolist()]
    return "\n".join([*lines, "", f"Number of leaves: {tree.n_leaves:,}", f"Size of the tree: {tree.n_nodes:,}"])


def _test(tree: Tree, node: int, branch: int, names: Sequence[str], categories: Sequence[Sequence[str] | None]) -> str:
    attribute = int(tree.attribute[node])
    values = categories[attribute]
    if values is not None:
        return f"{names[attribute]} = {values[branch]}"
    return f"{names[attribute]} {'>' if branch else '<='} {np.format_float_positional(tree.threshold[node], trim='-')}"
