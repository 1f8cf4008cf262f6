"""Division of originals and released classes into blocks, so that few pairs are left that could be consistent.

The originals are halved by the values of one column after another. Each half keeps the classes whose cell of that
column may stand for one of its values, so that every consistent pair is in one block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.bit_rows import ColumnBits

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
