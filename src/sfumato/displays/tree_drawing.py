"""How a tree is drawn: from left to right, a box a node, no box on another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato.displays.bars import shortened
from sfumato.displays.base import WIDTH, dress, legend_below, new_axes
from sfumato.displays.label_places import size_in_points, text_size
from sfumato.displays.palette import BLACK, GREY, SKY_BLUE, WHITE

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from sfumato.displays.tree import TreeDisplay

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
