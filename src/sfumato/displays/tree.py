"""Decision tree with the total information for disclosing an individual (TIDI) of every node, and what was pruned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sfumato.displays.base import (
    BLACK,
    GREY,
    SKY_BLUE,
    WHITE,
    WIDTH,
    DrawnDisplay,
    check_one_length,
    check_range,
    dress,
    legend_below,
    new_axes,
)
from sfumato.displays.drawing import shortened, size_in_points, text_size
from sfumato.errors import InvalidParameterError
from sfumato.learning.c45.tree import EVERY_VALUE

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from sfumato.learning.c45.tree import Tree
    from sfumato.mechanisms.axes import Axis
    from sfumato.mechanisms.tree.mechanism import ErrorRiskTree
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
        from sfumato.mechanisms.axes import axes_of
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
        from sfumato.mechanisms.tree.error_risk import domain_granularity

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
        return "Decision tree with the information needed to disclose a person (TIDI)"

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
        axes = tree_axes(self) if ax is None else ax
        draw_tree(self, axes)
        return self._drawn_on(axes)


def _branch(tree: Tree, axes: Sequence[Axis], node: int) -> str:
    parent = int(tree.parent[node])
    if parent < 0:
        return ""
    axis, number = axes[int(tree.attribute[parent])], node - int(tree.first_child[parent])
    if axis.positions is None:
        split_off = int(tree.split_off(np.array([parent]))[0])
        if split_off == EVERY_VALUE:
            return f"= {axis.labels[number]}"
        return f"{'≠' if number else '='} {axis.labels[split_off]}"
    label = axis.labels[int(np.searchsorted(axis.positions, tree.threshold[parent]))]
    return f"> {label}" if number else f"≤ {label}"


# How a tree is drawn: from left to right, a box a node, no box on another one.


MOST_NODES = 60
LARGEST_FONT = 7.0
LEAST_FONT = 5.5

_LINE = 1.25  # height of a line of text, in sizes of its font
_GAP = 0.7  # lines between two boxes
_BOX_WIDTH = 0.84  # share of a level's width
_LONGEST_LINE = 12  # characters
_MOST_HEIGHT_POINTS = 650.0
_TOP_POINTS, _BOTTOM_POINTS, _SIDE_POINTS = 45.0, 40.0, 8.0
_KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "split": ("split", {"facecolor": WHITE, "edgecolor": BLACK, "linewidth": 0.8}),
    "group": ("group of rows, a leaf after pruning", {"facecolor": SKY_BLUE, "edgecolor": BLACK, "linewidth": 1.5}),
    "pruned": ("pruned", {"facecolor": WHITE, "edgecolor": GREY, "linewidth": 0.8, "linestyle": (0, (2, 2))}),
}


@dataclass(frozen=True)
class _Box:
    level: int
    middle: float
    lines: tuple[str, ...]


@dataclass(frozen=True)
class _Layout:
    """Boxes of the nodes in view; heights are in lines of text, from the top."""

    boxes: dict[int, _Box]
    n_levels: int
    n_lines: float

    @property
    def widest(self) -> float:
        """Width of the widest line, in sizes of its font."""
        return max(text_size(line, 10.0)[0] / 10.0 for box in self.boxes.values() for line in box.lines)


def tree_axes(tree: TreeDisplay) -> Axes:
    """Make axes that are as high as the tree asks for, up to a page."""
    layout = _layout(tree, MOST_NODES)
    width = 72 * WIDTH - 2 * _SIDE_POINTS
    font = min(LARGEST_FONT, _BOX_WIDTH * width / layout.n_levels / layout.widest)
    height = min(max(layout.n_lines * font * _LINE, 60.0), _MOST_HEIGHT_POINTS)
    page = height + _TOP_POINTS + _BOTTOM_POINTS
    side = _SIDE_POINTS / (72 * WIDTH)
    bottom, top = _BOTTOM_POINTS / page, 1 - _TOP_POINTS / page
    return new_axes(left=side, right=1 - side, bottom=bottom, top=top, height=page / 72)


def draw_tree(tree: TreeDisplay, ax: Axes) -> None:
    """Draw as many nodes as can be read on the axes."""
    n_nodes = MOST_NODES
    layout = _layout(tree, n_nodes)
    while _font_that_fits(layout, ax) < LEAST_FONT and n_nodes > 1:
        n_nodes = n_nodes * 3 // 4
        layout = _layout(tree, n_nodes)
    ax.set_xlim(0, layout.n_levels)
    ax.set_ylim(layout.n_lines, 0)
    font = _font_that_fits(layout, ax)
    for node, box in layout.boxes.items():
        _draw_box(ax, box, _kind(tree, node), font)
        if node:
            _draw_branch(ax, layout.boxes[tree.parents[node]], box, is_pruned=tree.is_pruned[node])
    ax.set_axis_off()
    dress(ax, title=tree.title, note=_note(tree, len(layout.boxes)), x_label="", y_label="")
    legend_below(ax, n_columns=3, below_points=8, handles=_legend(tree, layout))


def _layout(tree: TreeDisplay, most_nodes: int) -> _Layout:
    """Give every node in view a strip that holds its own box and the strips of its children, one below the other."""
    children, opened, sizes = tree.children(), tree.opened(most_nodes), _sizes_of_branches(tree)
    in_view = [node for node, parent in enumerate(tree.parents) if node == 0 or parent in opened]
    lines = {node: _lines(tree, node, 0 if node in opened else sizes[node] - 1) for node in in_view}
    below = {node: children[node] if node in opened else [] for node in in_view}
    heights: dict[int, float] = {}
    for node in reversed(in_view):
        heights[node] = max(len(lines[node]) + _GAP, sum(heights[child] for child in below[node]))
    boxes = {0: _Box(0, heights[0] / 2, lines[0])}
    tops = {0: 0.0}
    for node in in_view:
        top = tops[node] + (heights[node] - sum(heights[child] for child in below[node])) / 2
        for child in below[node]:
            tops[child] = top
            boxes[child] = _Box(boxes[node].level + 1, top + heights[child] / 2, lines[child])
            top += heights[child]
    return _Layout(boxes, max(box.level for box in boxes.values()) + 1, heights[0])


def _sizes_of_branches(tree: TreeDisplay) -> list[int]:
    sizes = [1] * len(tree.parents)
    for node in range(len(sizes) - 1, 0, -1):
        sizes[tree.parents[node]] += sizes[node]
    return sizes


def _lines(tree: TreeDisplay, node: int, n_hidden: int) -> tuple[str, ...]:
    branch = shortened(tree.branches[node], _LONGEST_LINE) if tree.branches else ""
    column = shortened(tree.columns[node], _LONGEST_LINE)
    figures = f"{tree.n_rows[node]:,} · {tree.information[node]:.1f}"
    hidden = f"+ {n_hidden:,} nodes" if n_hidden else ""
    return tuple(line for line in (branch, column, figures, hidden) if line)


def _font_that_fits(layout: _Layout, ax: Axes) -> float:
    width, height = size_in_points(ax)
    return min(LARGEST_FONT, _BOX_WIDTH * width / layout.n_levels / layout.widest, height / layout.n_lines / _LINE)


def _kind(tree: TreeDisplay, node: int) -> str:
    if tree.is_pruned[node]:
        return "pruned"
    return "split" if node in tree.still_split else "group"


def _draw_box(ax: Axes, box: _Box, kind: str, font: float) -> None:
    from matplotlib.patches import Rectangle

    height = len(box.lines) + 0.3
    corner = (box.level, box.middle - height / 2)
    ax.add_patch(Rectangle(corner, _BOX_WIDTH, height, zorder=2, clip_on=False, **_KINDS[kind][1]))
    style: dict[str, Any] = {"ha": "center", "va": "center", "linespacing": 1.1, "zorder": 3, "parse_math": False}
    colour = GREY if kind == "pruned" else BLACK
    ax.text(box.level + _BOX_WIDTH / 2, box.middle, "\n".join(box.lines), fontsize=font, color=colour, **style)


def _draw_branch(ax: Axes, parent: _Box, child: _Box, *, is_pruned: bool) -> None:
    bend = child.level - (1 - _BOX_WIDTH) / 2
    across = [parent.level + _BOX_WIDTH, bend, bend, child.level]
    down = [parent.middle, parent.middle, child.middle, child.middle]
    style: dict[str, Any] = {"color": GREY, "linestyle": (0, (2, 2))} if is_pruned else {"color": BLACK}
    ax.plot(across, down, linewidth=0.8, zorder=1, clip_on=False, **style)


def _note(tree: TreeDisplay, n_shown: int) -> str:
    n_nodes = len(tree.parents)
    shown = f"; {n_shown:,} of {n_nodes:,} nodes shown" if n_shown < n_nodes else ""
    leaves = "leaf" if tree.n_empty == 1 else "leaves"
    empty = f"; {tree.n_empty:,} empty {leaves} left out" if tree.n_empty else ""
    return f"a box: column split on, rows · TIDI in bits (less is riskier){shown}{empty}"


def _legend(tree: TreeDisplay, layout: _Layout) -> list[Artist]:
    from matplotlib.patches import Patch

    kinds = {_kind(tree, node) for node in layout.boxes}
    return [Patch(label=label, **style) for kind, (label, style) in _KINDS.items() if kind in kinds]
