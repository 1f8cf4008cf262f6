"""Which distinct rows of an original became which released rows, when cells may stand for several values.

A value may fit several released cells (its town and its region), so what a row became is not told by the row alone.
But all rows with the same values became the same, or were left out, and the counts on both sides must add up. That
decides nearly always; where it does not, one answer that adds up is searched for. Any answer is only a proposal:
whoever uses it compares whole rows under it, so a wrong one never lets another release pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.cells import Containing
from sfumato.audit.count_matching import (
    LEFT_OUT,
    ImpossibleError,
    PossiblePairs,
    UnmatchedError,
    can_be_split,
    matched_by_counts,
)

Numbers = NDArray[np.int64]

_MOST_LAYERS = 64


class TooManyLayersError(Exception):
    """Cells overlap in too many ways."""


@dataclass(frozen=True)
class Matched:
    """What distinct rows became.

    Parameters
    ----------
    became : array
        Released distinct row of each distinct row of the original, -1 where it was left out.
    is_sure : bool
        Whether the counts leave no other answer, if rows with the same values became the same.
    """

    became: Numbers
    is_sure: bool


def matched_rows(
    reads: Sequence[Containing],
    places: Sequence[Numbers],
    n_before: Numbers,
    cells: Sequence[Numbers],
    n_after: Numbers,
) -> Matched:
    """Find the released distinct row that each distinct row of the original became.

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
    UnmatchedError
        If no answer was found by which all counts add up, though equal rows may have become different ones.
    ImpossibleError
        If the released rows cannot be rows of the original, whatever became of equal rows.
    """
    candidates = _candidates(reads, places, cells, n_after)
    rows, ways = np.nonzero(candidates != LEFT_OUT)
    possible = PossiblePairs(rows, candidates[rows, ways], n_before.astype(np.int64), n_after.astype(np.int64))
    try:
        return Matched(*matched_by_counts(possible))
    except UnmatchedError:
        if can_be_split(possible):
            raise
        raise ImpossibleError from None


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
