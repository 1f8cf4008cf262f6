"""Which distinct rows of an original became which released rows, when cells may stand for several values.

A value may fit several released cells (its town and its region), so what a row became is not told by the row alone.
But all rows with the same values became the same, or were left out, and the counts on both sides must add up. That
decides nearly always; where it does not, a choice is made. Any answer is only a proposal: whoever uses it compares
whole rows under it, so a wrong one refuses a sound release and never lets another pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.cells import Containing

Numbers = NDArray[np.int64]

_MOST_LAYERS = 64
_UNDECIDED, LEFT_OUT = -2, -1


class TooManyLayersError(Exception):
    """Cells overlap in too many ways."""


def matched_rows(
    reads: Sequence[Containing],
    places: Sequence[Numbers],
    n_before: Numbers,
    cells: Sequence[Numbers],
    n_after: Numbers,
) -> Numbers:
    """Find the released distinct row that each distinct row of the original became, -1 where it was left out.

    Parameters
    ----------
    reads : sequence of Containing
        What the cells of each column stand for.
    places, n_before
        Distinct rows of the original, column by column, as places of their values; how often each occurs.
    cells, n_after
        The same for the release, as codes of cells.

    Raises
    ------
    TooManyLayersError
        If the cells overlap in too many ways.
    """
    return _decided(_candidates(reads, places, cells, n_after), n_before, n_after)


def _candidates(
    reads: Sequence[Containing], places: Sequence[Numbers], cells: Sequence[Numbers], n_after: Numbers
) -> Numbers:
    """Released rows that each row may have become: one column for each way in which cells are layered, -1 for none."""
    layered = [_layers(read) for read in reads]
    ways = np.column_stack([layer_of_cell[own] for (layer_of_cell, _), own in zip(layered, cells, strict=True)])
    distinct, way_of_row = np.unique(ways, axis=0, return_inverse=True)
    if len(distinct) > _MOST_LAYERS:
        raise TooManyLayersError
    by_size = np.argsort(-np.bincount(way_of_row.reshape(-1), weights=n_after), kind="stable")
    found = np.full((len(places[0]), len(distinct)), -1, dtype=np.int64)
    for i, way in enumerate(distinct[by_size]):
        wanted = [owners[layer][own] for (_, owners), layer, own in zip(layered, way, places, strict=True)]
        is_whole = np.logical_and.reduce([own >= 0 for own in wanted])
        found[is_whole, i] = _places_among(cells, [own[is_whole] for own in wanted])
    return found


def _layers(read: Containing) -> tuple[Numbers, list[Numbers]]:
    """Put cells into layers in which no two overlap: the layer of each cell, and in each layer the cell of a place."""
    sizes = np.bincount(read.cells, weights=read.stops - read.starts, minlength=read.n_cells)
    layer_of_cell = np.zeros(read.n_cells, dtype=np.int64)
    owners = [np.full(read.n_places, -1, dtype=np.int64)]
    for cell in np.argsort(-sizes, kind="stable").tolist():
        runs = [slice(read.starts[i], read.stops[i]) for i in range(read.first_runs[cell], read.first_runs[cell + 1])]
        layer = next((i for i, own in enumerate(owners) if all((own[run] < 0).all() for run in runs)), len(owners))
        if layer == len(owners):
            owners.append(np.full(read.n_places, -1, dtype=np.int64))
        if layer > _MOST_LAYERS:
            raise TooManyLayersError
        for run in runs:
            owners[layer][run] = cell
        layer_of_cell[cell] = layer
    return layer_of_cell, owners


def _places_among(known: Sequence[Numbers], wanted: Sequence[Numbers]) -> Numbers:
    """Place of each wanted row among known distinct ones, -1 where it is not among them."""
    n_known = len(known[0])
    key = np.zeros(n_known + len(wanted[0]), dtype=np.int64)
    for first, second in zip(known, wanted, strict=True):
        column = np.concatenate([first, second])
        key = np.unique(key * (column.max(initial=0) + 1) + column, return_inverse=True)[1].reshape(-1)
    place = np.full(key.max(initial=0) + 1, -1, dtype=np.int64)
    place[key[:n_known]] = np.arange(n_known)
    return place[key[n_known:]]


def _decided(candidates: Numbers, n_before: Numbers, n_after: Numbers) -> Numbers:
    """Decide what counts leave no choice about, again and again; then choose for the rest."""
    chosen = np.full(len(n_before), _UNDECIDED, dtype=np.int64)
    left = n_after.astype(np.int64)
    while True:
        viable = _viable(candidates, n_before, left, chosen)
        n_viable = viable.sum(axis=1)
        sure = (chosen == _UNDECIDED) & (n_viable == 0)
        chosen[sure] = LEFT_OUT
        only = viable & (n_viable == 1)[:, None]
        settled = only if only.any() else viable & _are_all_needed(candidates, viable, n_before, left)
        if not settled.any():
            break
        _settle(settled, candidates, n_before, left, chosen)
    _settle(_viable(candidates, n_before, left, chosen), candidates, n_before, left, chosen)
    return chosen


def _viable(candidates: Numbers, n_before: Numbers, left: Numbers, chosen: Numbers) -> NDArray[np.bool_]:
    is_open = (chosen == _UNDECIDED)[:, None] & (candidates >= 0)
    viable: NDArray[np.bool_] = is_open & (left[candidates] >= n_before[:, None])
    return viable


def _are_all_needed(
    candidates: Numbers, viable: NDArray[np.bool_], n_before: Numbers, left: Numbers
) -> NDArray[np.bool_]:
    """Which candidates are released rows that only come about if everything that may become them does."""
    rows, ways = np.nonzero(viable)
    demand = np.bincount(candidates[rows, ways], weights=n_before[rows], minlength=len(left))
    needed: NDArray[np.bool_] = (demand == left)[candidates]
    return needed


def _settle(settled: NDArray[np.bool_], candidates: Numbers, n_before: Numbers, left: Numbers, chosen: Numbers) -> None:
    """Take the first settled candidate of each row."""
    rows = np.flatnonzero(settled.any(axis=1))
    chosen[rows] = candidates[rows, settled[rows].argmax(axis=1)]
    np.subtract.at(left, chosen[rows], n_before[rows])
