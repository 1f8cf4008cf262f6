"""Which released class each original row falls into, where no two classes can hold the same row.

The cells of a class say which values its rows may have: a box. Where boxes come from cuts of a whole, some column
parts any set of them into groups that share none of its values, and so on down to single boxes. That is a tree by which
any row finds the one box that can hold it, however many rows there are. It is built from the released cells alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from sfumato.audit.reading.cells import Containing
from sfumato.audit.reading.columns import places_of_runs

Numbers = NDArray[np.int64]
NO_BOX = -1
_LEAF = -1


@dataclass(frozen=True)
class _Level:
    """One depth of the tree.

    Parameters
    ----------
    column : array
        Column by which each node parts its boxes.
    starts, stops : array
        Runs of places with a group of boxes, ascending by node and place: ``node * width + place``.
    groups : array
        Node of the next depth that each run leads to; of single boxes the box, as ``-2 - box``.
    """

    column: Numbers
    starts: Numbers
    stops: Numbers
    groups: Numbers


@dataclass(frozen=True, repr=False, eq=False)
class Boxes:
    """Boxes of which no two hold the same row, by the cells of each column."""

    reads: Sequence[Containing]
    cells: Sequence[Numbers]
    levels: Sequence[_Level]
    width: int

    @classmethod
    def of(cls, reads: Sequence[Containing], cells: Sequence[Numbers]) -> Boxes | None:
        """Index distinct released rows; ``None`` where no column parts some of them.

        Parameters
        ----------
        reads : sequence of Containing
            What the cells of each column stand for.
        cells : sequence of arrays
            Cell of each released row, column by column.
        """
        n_boxes, width = len(cells[0]), max(read.n_places for read in reads) + 1
        node_of_box = np.zeros(n_boxes, dtype=np.int64)
        levels: list[_Level] = []
        n_nodes = 1
        while n_nodes:
            parted = [_parted(read, own, node_of_box, width) for read, own in zip(reads, cells, strict=True)]
            n_groups = np.stack([np.bincount(own.node_of_group, minlength=n_nodes) for own in parted])
            column = n_groups.argmax(axis=0).astype(np.int64)
            sizes = np.bincount(node_of_box[node_of_box != _LEAF], minlength=n_nodes)
            if ((n_groups.max(axis=0) < 2) & (sizes > 1)).any():
                return None
            starts, stops, groups = ([np.zeros(0, dtype=np.int64)] for _ in range(3))
            next_of_box = np.full(n_boxes, _LEAF, dtype=np.int64)
            n_next = 0
            for i, own in enumerate(parted):
                is_used = column[own.node_of_group] == i
                in_group = is_used[own.group_of_box] & (own.group_of_box != _LEAF)
                boxes = np.flatnonzero(in_group)
                held = np.bincount(own.group_of_box[boxes], minlength=len(is_used))
                leads_to = np.full(len(is_used), _LEAF, dtype=np.int64)
                is_inner = is_used & (held > 1)
                leads_to[is_inner] = n_next + np.arange(int(is_inner.sum()))
                n_next += int(is_inner.sum())
                alone = boxes[held[own.group_of_box[boxes]] == 1]
                leads_to[own.group_of_box[alone]] = -2 - alone
                inner = boxes[held[own.group_of_box[boxes]] > 1]
                next_of_box[inner] = leads_to[own.group_of_box[inner]]
                runs = np.flatnonzero(is_used[own.group_of_run])
                starts.append(own.starts[runs])
                stops.append(own.stops[runs])
                groups.append(leads_to[own.group_of_run[runs]])
            every = np.concatenate(starts)
            order = np.argsort(every)
            levels.append(_Level(column, every[order], np.concatenate(stops)[order], np.concatenate(groups)[order]))
            node_of_box, n_nodes = next_of_box, n_next
        return cls(reads, cells, levels, width)

    @property
    def n_boxes(self) -> int:
        """Number of boxes."""
        return len(self.cells[0])

    def of_cells(self, cells: Sequence[Numbers]) -> Numbers:
        """Box of each released row, given its cells column by column; -1 where a cell holds no value."""
        firsts = []
        for read, own in zip(self.reads, cells, strict=True):
            runs = read.first_runs
            place = np.append(read.starts, -1)[np.where(runs[1:] > runs[:-1], runs[:-1], len(read.starts))]
            firsts.append(place[own])
        return self.of_rows(firsts)

    def of_rows(self, places: Sequence[Numbers]) -> Numbers:
        """Box that can hold each row, given the places of its values column by column; -1 where none does."""
        n_rows = len(places[0])
        table = np.stack(places)
        found = np.full(n_rows, NO_BOX, dtype=np.int64)
        rows, node = np.arange(n_rows), np.zeros(n_rows, dtype=np.int64)
        for level in self.levels:
            wanted = node * self.width + table[level.column[node], rows]
            run = np.searchsorted(level.starts, wanted, side="right") - 1
            is_held = (run >= 0) & (wanted < level.stops[run])
            leads_to = np.where(is_held, level.groups[run], _LEAF)
            is_box = leads_to < _LEAF
            found[rows[is_box]] = -2 - leads_to[is_box]
            goes_on = leads_to >= 0
            rows, node = rows[goes_on], leads_to[goes_on]
        known = np.flatnonzero(found != NO_BOX)
        for read, own, cells in zip(self.reads, places, self.cells, strict=True):
            known = known[read.holds_at(own[known], cells[found[known]])]
        held = np.full(n_rows, NO_BOX, dtype=np.int64)
        held[known] = found[known]
        return held


@dataclass(frozen=True)
class _Parted:
    """Groups of boxes of each node that share no value of one column, and the runs of places that they hold."""

    node_of_group: Numbers
    group_of_box: Numbers
    starts: Numbers
    stops: Numbers
    group_of_run: Numbers


def _parted(read: Containing, cells: Numbers, node_of_box: Numbers, width: int) -> _Parted:
    """Part the boxes of each node by one column: those whose runs of places touch nothing of each other."""
    boxes = np.flatnonzero(node_of_box != _LEAF)
    n_runs = np.diff(read.first_runs)[cells[boxes]]
    box_of_run = np.repeat(np.arange(len(boxes)), n_runs)
    run = places_of_runs(read.first_runs[cells[boxes]], read.first_runs[cells[boxes] + 1])
    node = node_of_box[boxes]
    starts, stops = (node[box_of_run] * width + own[run] for own in (read.starts, read.stops))
    order = np.argsort(starts)
    reach = np.maximum.accumulate(stops[order])
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = starts[order][1:] >= reach[:-1]
    first = np.flatnonzero(begins)
    stretch = np.empty(len(order), dtype=np.int64)
    stretch[order] = np.cumsum(begins) - 1
    ends = reach[np.append(first[1:], len(order)) - 1] if len(first) else reach
    group_of_box = np.full(len(node_of_box), _LEAF, dtype=np.int64)
    if (n_runs == 1).all():
        group_of_box[boxes], of_stretch, n_groups = stretch, np.arange(len(first)), len(first)
    else:
        links = sp.csr_array(
            (np.ones(len(order), dtype=np.int8), (box_of_run, len(boxes) + stretch)), (len(boxes) + len(first),) * 2
        )
        n_groups, of_both = connected_components(links, directed=False)
        group_of_box[boxes], of_stretch = of_both[: len(boxes)], of_both[len(boxes) :].astype(np.int64)
    node_of_group = np.zeros(n_groups, dtype=np.int64)
    node_of_group[group_of_box[boxes]] = node
    return _Parted(node_of_group, group_of_box, starts[order][first], ends, of_stretch)
