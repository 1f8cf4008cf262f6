r"""Consistency of a generalized release with its original: k, (1,k), (k,1), (k,k) and global (1,k)-anonymity.

An original row and a released row are *consistent* when every released cell may stand for the original's value. The
levels are those of [GMT08]_, each the least number over all rows, so that higher is safer:

- (1,k): released rows that are consistent with an original row;
- (k,1): original rows that are consistent with a released row;
- (k,k): the smaller of the two;
- global (1,k): released rows that an original row can be given when every row is given one of its own, that is in some
  perfect matching of originals and released rows;
- k: rows of a class of equal released rows. A release whose rows stand for their own originals has
  k <= global (1,k) <= (1,k).

A table without rows has level 0, which keeps no promise.

Notes
-----
Equal originals are counted as one, and so are equal released rows. Both are divided into blocks outside of which no
pair is consistent. For each column and original value the released
classes of a block that contain it are a row of bits; the rows of an original's values are joined by "and", some
originals at a time. With a perfect matching in hand, a pair lies in some perfect matching when both ends are in one
strongly connected component of the graph with an edge to each consistent released row and one back for each matched
pair.

References
----------
.. [GMT08] Gionis, Mazza, Tassa: k-Anonymization Revisited. ICDE 2008.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, maximum_flow

from sfumato.audit.reading import cells as bit_rows
from sfumato.audit.reading.cells import (
    ColumnBits,
    Containing,
    Words,
    a_row_of_each,
    contained,
    ones,
    packed,
    unchanged,
    weighted_ones,
    weighted_rows,
)
from sfumato.audit.reading.columns import Classes, Columns, Refinement
from sfumato.errors import SchemaError
from sfumato.schema import Column

# Division of originals and released classes into blocks, so that few pairs are left that could be consistent.
#
# The originals are halved by the values of one column after another. Each half keeps the classes whose cell of that
# column may stand for one of its values, so that every consistent pair is in one block.


Ids = NDArray[np.int64]

_MOST_PAIRS = 1 << 23
_SAMPLED = 512
_WORTHWHILE = 0.97  # share of the pairs that may be left by halving a block of few originals
_FEW_ORIGINALS = 1 << 14


def blocks_of(columns: Sequence[ColumnBits], n_originals: int, n_classes: int) -> Iterator[tuple[Ids, Ids]]:
    """Give blocks of originals and classes; together they hold each consistent pair once, and others."""
    waiting = [(np.arange(n_originals), np.arange(n_classes))]
    while waiting:
        originals, classes = waiting.pop()
        if not len(originals) or not len(classes):
            continue
        cut = _best_cut(columns, originals, classes) if len(originals) * len(classes) > _MOST_PAIRS else None
        if cut is None:
            yield originals, classes
            continue
        column, place = cut
        is_below = column.places[originals] < place
        for side in (originals[~is_below], originals[is_below]):
            waiting.append((side, classes[column.touches(classes, column.places[side])]))


def _best_cut(columns: Sequence[ColumnBits], originals: Ids, classes: Ids) -> tuple[ColumnBits, int] | None:
    """Find the column whose middle value leaves the fewest pairs, by a sample; ``None`` where halving is no use."""
    some, few = _sampled(originals), _sampled(classes)
    best, least = None, np.inf
    for column in columns:
        places = column.places[some]
        middle = int(np.partition(places, len(places) // 2)[len(places) // 2])
        middle += int(places.min() == middle)
        is_below = places < middle
        if is_below.all():
            continue
        share = is_below.mean()
        left = share * column.touches(few, places[is_below]).mean()
        left += (1 - share) * column.touches(few, places[~is_below]).mean()
        if left < least:
            best, least = (column, middle), left
    return None if least > _WORTHWHILE and len(originals) <= _FEW_ORIGINALS else best


def _sampled(ids: Ids) -> Ids:
    return ids[:: max(1, len(ids) // _SAMPLED)]


# Strongly connected components of originals and released classes.


_EDGES_AT_ONCE = 1 << 22
_MOST_EDGES = 1 << 24
_LARGE_SHARE = 1 / 16


class Components:
    """Strongly connected components of originals and released classes; matched ones are in one from the start.

    Edges are listed between components only. Should more than ``_MOST_EDGES`` remain after joining, the others are left
    out: components can only become smaller by it, so that a level is found too low, never too high.
    """

    def __init__(self, matched: Ids, matched_class: Ids, n_originals: int, n_classes: int) -> None:
        n = n_originals + n_classes
        links = sp.csr_array((np.ones(len(matched)), (matched, n_originals + matched_class)), shape=(n, n))
        self.n, labels = connected_components(links, directed=False)
        self.of_original, self.of_class = labels[:n_originals].astype(np.int64), labels[n_originals:].astype(np.int64)
        self._edges: list[Ids] = []
        self._limit, self._is_full = _EDGES_AT_ONCE, False
        self._find_large()

    def _find_large(self) -> None:
        """Remember the classes of large components: there is no need to list edges inside of them."""
        sizes = np.bincount(self.of_class, minlength=self.n)
        large = np.flatnonzero(sizes > _LARGE_SHARE * len(self.of_class))
        self._large = [int(component) for component in large]

    def add(self, originals: Ids, classes: Ids, words: Words) -> None:
        """Add the edges from some originals, those of one component side by side, to the classes of their bits."""
        if self._is_full:
            return
        tails = self.of_original[originals]
        starts = np.flatnonzero(np.diff(tails, prepend=-1))
        words, tails = np.bitwise_or.reduceat(words, starts, axis=0), tails[starts]
        of_bit = self.of_class[classes]
        for component in self._large:
            is_inside = tails == component
            if is_inside.any():
                words[is_inside] &= packed(of_bit != component)
        rows, bits = ones(words)
        tails, heads = tails[rows], of_bit[bits]
        self._edges.append((tails * self.n + heads)[tails != heads])
        if sum(map(len, self._edges)) > self._limit:
            self.join()

    def join(self) -> None:
        """Make one component of those that reach each other by the edges so far."""
        edges = _distinct(np.concatenate([*self._edges, np.zeros(0, dtype=np.int64)]))
        tails, heads = edges // self.n, edges % self.n
        graph = sp.csr_array((np.ones(len(edges), dtype=np.int8), (tails, heads)), shape=(self.n, self.n))
        self.n, joined = connected_components(graph, directed=True, connection="strong")
        joined = joined.astype(np.int64)
        self.of_original, self.of_class = joined[self.of_original], joined[self.of_class]
        tails, heads = joined[tails], joined[heads]
        kept = _distinct((tails * self.n + heads)[tails != heads])
        self._is_full = len(kept) > _MOST_EDGES
        self._edges = [] if self._is_full else [kept]
        self._limit = _EDGES_AT_ONCE + len(kept)
        self._find_large()


def _distinct(numbers: Ids) -> Ids:
    """Sort and leave out repetitions (NumPy's ``unique`` hashes, which is slower for many distinct numbers)."""
    numbers = np.sort(numbers)
    return numbers[np.flatnonzero(np.diff(numbers, prepend=-1))]


Counts = NDArray[np.int64]

_MANY_PAIRS = 1 << 22
_SAMPLED_WORDS = 64
_MOST_PAIRS_IN_FLOW = 1 << 24


def consistency(
    released: Columns,
    original: Columns,
    names: Sequence[str],
    *,
    generalized: Mapping[str, Column],
    rows: NDArray[np.intp] | None = None,
    read: Mapping[str, Containing] | None = None,
) -> Consistency:
    """Compare a release with its original on some columns.

    Parameters
    ----------
    generalized : mapping of str to Column
        Kind and domain of the columns whose released cells are generalized; those of others are single values.
    rows : array or None
        Rows of the original that were released, in the order of the released rows; ``None`` takes all.
    read : mapping of str to Containing, or None
        Generalized columns that were read already.

    Raises
    ------
    SchemaError
        If the cells of a generalized column cannot be read. No cell is shown.
    ColumnNotFoundError
        If a column is not in both tables.
    """
    n_rows = original.n_rows if rows is None else len(rows)
    before, after = Refinement(n_rows), Refinement(released.n_rows)
    compared: list[tuple[Containing, Ids, Ids]] = []
    for name in names:
        old, new = original.coded(name), released.coded(name)
        column = generalized.get(name)
        if column is None:
            containing = unchanged(new.values, old.values)
        else:
            known = (read or {}).get(name)
            containing = known or contained(new.values, old.values, column.kind, column.domain)
            _require_readable(name, containing)
        places = containing.places[old.codes if rows is None else old.codes[rows]]
        before.add(places, containing.n_places)
        after.add(new.codes, len(new.values))
        compared.append((containing, places, new.codes.astype(np.int64)))
    originals, classes = before.classes(), after.classes()
    first, last = a_row_of_each(originals), a_row_of_each(classes)
    bits = tuple(ColumnBits(containing, places[first], cells[last]) for containing, places, cells in compared)
    is_own = n_rows == released.n_rows and all(
        containing.holds_at(places, cells).all() for containing, places, cells in compared
    )
    return Consistency(originals, classes, is_own, bits)


def _require_readable(name: str, containing: Containing) -> None:
    if containing.n_unreadable:
        problem = f"has cells that cannot be read ({containing.n_unreadable:,} of {containing.n_cells:,} distinct ones)"
        raise SchemaError(problem, column=name)
    if containing.n_foreign:
        problem = f"has cells that name values which the original lacks ({containing.n_foreign:,} distinct ones)"
        raise SchemaError(problem, column=name)


@dataclass(frozen=True, repr=False, eq=False)
class Consistency:
    """Which originals and released rows are consistent, counted.

    Parameters
    ----------
    originals, classes : Classes
        Equal original rows and equal released rows.
    is_row_by_row : bool
        Whether each released row is consistent with its own original.
    """

    originals: Classes
    classes: Classes
    is_row_by_row: bool
    _columns: tuple[ColumnBits, ...]

    @cached_property
    def released_per_original(self) -> Counts:
        """Number of released rows that are consistent with each distinct original (``originals.ids`` gives a row's)."""
        return self._counts[0]

    @cached_property
    def originals_per_released(self) -> Counts:
        """Number of original rows that are consistent with each class of equal released rows."""
        return self._counts[1]

    @cached_property
    def assignable_per_original(self) -> Counts:
        """Number of released rows that each distinct original has in some perfect matching; 0 when there is none."""
        found = np.zeros(len(self.originals.sizes), dtype=np.int64)
        if self.in_one_component is None:
            return found
        if not self.in_one_component:
            return self.released_per_original
        for originals, classes, words in self.fitting_bits(*self.in_one_component):
            found[originals] += weighted_ones(words, self.classes.sizes[classes])
        return found

    @cached_property
    def in_one_component(self) -> tuple[ColumnBits, ...] | None:
        """What pairs must agree in besides to be in some perfect matching: nothing, or a column of components.

        ``None`` where there is no perfect matching.
        """
        pairs = self._matched_pairs()
        if pairs is None:
            return None
        components = Components(*pairs, len(self.originals.sizes), len(self.classes.sizes))
        side_by_side = components.of_original
        if self.released_per_original.sum() > _MANY_PAIRS:
            for originals, classes, words in self.fitting_bits(order=side_by_side):
                components.add(originals, classes, _some_ones(words))
            components.join()
        for originals, classes, words in self.fitting_bits(order=side_by_side):
            components.add(originals, classes, words)
        components.join()
        if components.n <= 1:
            return ()
        each = np.arange(components.n)
        same = Containing(each, len(each), each, each, each + 1, len(each))
        return (ColumnBits(same, components.of_original, components.of_class),)

    @property
    def anonymity_level(self) -> int:
        """Size of the smallest class of equal released rows."""
        return int(self.classes.sizes.min()) if len(self.classes.sizes) else 0

    @property
    def level_1k(self) -> int:
        """Least number of released rows that are consistent with an original row."""
        return _least(self.released_per_original)

    @property
    def level_k1(self) -> int:
        """Least number of original rows that are consistent with a released row."""
        return _least(self.originals_per_released)

    @property
    def level_kk(self) -> int:
        """Smaller one of the (1,k) and (k,1) levels."""
        return min(self.level_1k, self.level_k1)

    @cached_property
    def level_global(self) -> int:
        """Least number of released rows that an original row has in some perfect matching; 0 when there is none."""
        return _least(self.assignable_per_original)

    @cached_property
    def _counts(self) -> tuple[Counts, Counts]:
        """Released rows for each original, and original rows for each class."""
        released = np.zeros(len(self.originals.sizes), dtype=np.int64)
        rows = np.zeros(len(self.classes.sizes), dtype=np.int64)
        for originals, classes, words in self.fitting_bits():
            released[originals] += weighted_ones(words, self.classes.sizes[classes])
            rows[classes] += weighted_rows(words, self.originals.sizes[originals], len(classes))
        return released, rows

    def fitting_bits(self, *more: ColumnBits, order: Ids | None = None) -> Iterator[tuple[Ids, Ids, Words]]:
        """Give the distinct originals, some at a time, with released classes and which of these fit each, as bits.

        An original may come again with other classes. Those given together are sorted by ``order``.
        """
        columns = (*self._columns, *more)
        for originals, classes in blocks_of(columns, len(self.originals.sizes), len(self.classes.sizes)):
            if order is not None:
                originals = originals[np.argsort(order[originals], kind="stable")]
            kept = [column.kept(originals, classes) for column in columns]
            every = packed(np.ones(len(classes), dtype=np.bool_))
            step = max(1, bit_rows.CHUNK_WORDS // len(every))
            for start in range(0, len(originals), step):
                some = slice(start, start + step)
                words = np.tile(every, (len(originals[some]), 1))
                for column in kept:
                    words &= column.of(some)
                yield originals[some], classes, words

    def _matched_pairs(self) -> tuple[Ids, Ids] | None:
        """Originals and classes that belong together in one perfect matching; ``None`` when there is none."""
        n_classes = len(self.classes.sizes)
        if len(self.originals.ids) != len(self.classes.ids) or not n_classes:
            return None
        if self.is_row_by_row:
            pairs = np.unique(self.originals.ids * n_classes + self.classes.ids)
            return pairs // n_classes, pairs % n_classes
        return self._flow()

    def _flow(self) -> tuple[Ids, Ids] | None:
        """Search a perfect matching; not among more pairs than fit in memory, where none is taken to exist."""
        tails, heads, n_pairs = [], [], 0
        for originals, classes, words in self.fitting_bits():
            rows, bits = ones(words)
            tails.append(originals[rows])
            heads.append(classes[bits])
            n_pairs += len(rows)
            if n_pairs > _MOST_PAIRS_IN_FLOW:
                return None
        if not tails:
            return None
        found = filled_by_flow(self.originals.sizes, self.classes.sizes, np.concatenate(tails), np.concatenate(heads))
        return None if found is None else found[:2]


def filled_by_flow(supply: Counts, demand: Counts, tail: Ids, head: Ids) -> tuple[Ids, Ids, Ids] | None:
    """Fill all that released rows want by a flow from the originals that fit them; ``None`` where there is no way.

    Given are pairs of an original and a released class, and how many rows each is; found how many rows go which way.
    """
    n, m = len(supply), len(demand)
    source, sink = n + m, n + m + 1
    starts = np.concatenate([np.full(n, source), tail, n + np.arange(m)])
    ends = np.concatenate([np.arange(n), n + head, np.full(m, sink)])
    capacities = np.concatenate([supply, np.minimum(supply[tail], demand[head]), demand]).astype(np.int32)
    network = sp.csr_array((capacities, (starts, ends)), shape=(sink + 1, sink + 1))
    found = maximum_flow(network, source, sink)
    if int(found.flow_value) < int(demand.sum()):
        return None
    flow = found.flow[:n, n : n + m].tocoo()
    is_used = flow.data > 0
    return flow.row[is_used].astype(np.int64), flow.col[is_used].astype(np.int64), flow.data[is_used].astype(np.int64)


def _some_ones(words: Words) -> Words:
    """Keep the lowest one of every word, or of some words where many have ones."""
    some = np.zeros_like(words)
    step = 1 + np.count_nonzero(words) // (len(words) * _SAMPLED_WORDS)
    some[:, ::step] = words[:, ::step] & (~words[:, ::step] + np.uint64(1))
    return some


def _least(counts: Counts) -> int:
    return int(counts.min()) if len(counts) else 0
