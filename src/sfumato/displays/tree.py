"""Decision tree with the total information for disclosing an individual (TIDI) of every node, and what was pruned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from sfumato.displays.base import DrawnDisplay
from sfumato.displays.checks import check_one_length, check_range
from sfumato.errors import InvalidParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sfumato.learning.tree import Tree
    from sfumato.recoding.axes import Axis
    from sfumato.recoding.tree import ErrorRiskTree
    from sfumato.table.coding import Table

ROOT = -1
MOST_LEVELS = 7
"""Splits from the root to the farthest node that is shown."""


@dataclass(frozen=True)
class TreeDisplay(DrawnDisplay):
    r"""Nodes of a tree, of which those in branches that were cut off are grey (Figure 1 of [ERP19]_).

    Large trees show their upper levels, first of what was not pruned. Pruned nodes may have few rows: the picture is
    for the data holder, not for publication.

    Parameters
    ----------
    parents : tuple of int
        Parent of every node, -1 for the root, which comes first; a parent stands before its children.
    columns : tuple of str
        Column that every node is split on, nothing for a leaf.
    n_rows : tuple of int
    information : tuple of float
        TIDI of every node in bits; little of it is risky.
    is_pruned : tuple of bool
        Whether the node was cut off.
    branches : tuple of str
        What leads to every node, as split points and values, or nothing. **These are cell values.**
    n_empty : int, default=0
        Leaves without rows, which are not shown.

    References
    ----------
    .. [ERP19] Yang, Wang, Hu, Li: A Decision Tree Approach for Assessing and Mitigating Background and Identity
       Disclosure Risks. ICIS 2019.

    Examples
    --------
    >>> display = TreeDisplay((-1, 0, 0), ("sex", "", ""), (14, 5, 9), (3.8, 3.3, 4.2), (False, False, False))
    >>> [text.get_text() for text in display.plot().texts[:3]]
    ['sex\n14 · 3.8', '5 · 3.3', '9 · 4.2']
    """

    parents: tuple[int, ...]
    columns: tuple[str, ...]
    n_rows: tuple[int, ...]
    information: tuple[float, ...]
    is_pruned: tuple[bool, ...]
    branches: tuple[str, ...] = ()
    n_empty: int = 0

    def __post_init__(self) -> None:
        lists = (self.parents, self.columns, self.n_rows, self.information, self.is_pruned)
        check_one_length("the lists", *lists, self.branches or self.parents)
        check_range("n_rows", self.n_rows, low=1, high=float(2**53))
        check_range("information", self.information)
        if self.parents[0] != ROOT or not all(0 <= up < at for at, up in enumerate(self.parents[1:], start=1)):
            raise InvalidParameterError("parents", "they do not", allowed="such that the root comes first, then others")

    @classmethod
    def from_recoder(cls, recoder: ErrorRiskTree, table: Table, *, show_values: bool = False) -> Self:
        """Show the tree of a recoder that was run on a table.

        Parameters
        ----------
        table : Table
            The one that was recoded; the domains of its columns are measured.
        show_values : bool, default=False
            Whether split points and values are shown. They are cell values: not for a picture that is published.
        """
        from sfumato.recoding.axes import axes_of
        from sfumato.schema import Role

        axes = axes_of(table, table.schema.names(Role.QUASI_IDENTIFIER))
        return cls.from_tree(recoder.tree_, axes, recoder.group_of_leaf_.tolist(), show_values=show_values)

    @classmethod
    def from_tree(
        cls, tree: Tree, axes: Sequence[Axis], group_of_leaf: Sequence[int], *, show_values: bool = False
    ) -> Self:
        """Show a tree that was grown on axes and pruned.

        Parameters
        ----------
        group_of_leaf : sequence of int
            For every node the leaf of the pruned tree that it is or lies below, -1 for one that stays split.
        show_values : bool, default=False
            See :meth:`from_recoder`.
        """
        from sfumato.measures.disclosure import total_information
        from sfumato.recoding.error_risk import domain_granularity

        granularity = domain_granularity(tree, [axis.as_tree_column() for axis in axes])
        information = total_information(granularity, tree.weights)
        shown = np.flatnonzero(tree.weights > 0).tolist()
        place_of = {node: place for place, node in enumerate(shown)}
        return cls(
            tuple(place_of.get(int(tree.parent[node]), ROOT) for node in shown),
            tuple(axes[int(tree.attribute[node])].name if tree.attribute[node] >= 0 else "" for node in shown),
            tuple(round(float(tree.weights[node])) for node in shown),
            tuple(float(information[node]) for node in shown),
            tuple(group_of_leaf[node] not in (ROOT, node) for node in shown),
            tuple(_branch(tree, axes, node) for node in shown) if show_values else (),
            tree.n_nodes - len(shown),
        )

    @property
    def title(self) -> str:
        """What the picture shows, in one line."""
        return "Decision tree with the information it takes to disclose somebody (TIDI)"

    def children(self) -> list[list[int]]:
        """Children of every node, in order."""
        found: list[list[int]] = [[] for _ in self.parents]
        for node, parent in enumerate(self.parents[1:], start=1):
            found[parent].append(node)
        return found

    @cached_property
    def still_split(self) -> frozenset[int]:
        """Nodes that have children after pruning."""
        parents = zip(self.parents, self.is_pruned, strict=True)
        return frozenset(parent for parent, is_pruned in parents if parent != ROOT and not is_pruned)

    def opened(self, most_nodes: int) -> set[int]:
        """Nodes whose children are shown, as long as there is room.

        Those that stay split come first, then by level, then the ones with most rows.
        """
        children, depth = self.children(), [0] * len(self.parents)
        for node, parent in enumerate(self.parents[1:], start=1):
            depth[node] = depth[parent] + 1
        n_shown, found = 1, set[int]()
        order = [(node not in self.still_split, depth[node], -self.n_rows[node], node) for node in range(len(depth))]
        for *_, node in sorted(order):
            is_in_view = node == 0 or self.parents[node] in found
            has_room = depth[node] < MOST_LEVELS and n_shown + len(children[node]) <= most_nodes
            if children[node] and is_in_view and has_room:
                found.add(node)
                n_shown += len(children[node])
        return found

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on given axes, or on those of a new figure that no window shows."""
        from sfumato.displays.tree_drawing import draw_tree, tree_axes

        axes = tree_axes(self) if ax is None else ax
        draw_tree(self, axes)
        return self._drawn_on(axes)


def _branch(tree: Tree, axes: Sequence[Axis], node: int) -> str:
    parent = int(tree.parent[node])
    if parent < 0:
        return ""
    axis, number = axes[int(tree.attribute[parent])], node - int(tree.first_child[parent])
    if axis.positions is None:
        return f"= {axis.labels[number]}"
    label = axis.labels[int(np.searchsorted(axis.positions, tree.threshold[parent]))]
    return f"> {label}" if number else f"≤ {label}"
