"""Certainty penalties, re-computed from what the audit reads in the cells: how much a release leaves open.

NCP and GCP of [GKKM07]_: a range costs its width over that of the column, a set the share of the column's values that
it names, a single value nothing; the table's penalty is the mean over all cells. A range that may also be missing costs
one value's share more.

References
----------
.. [GKKM07] Ghinita, Karras, Kalnis, Mamoulis: Fast Data Anonymization with Low Information Loss. VLDB 2007.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.audit.cells import Containing
from sfumato.audit.values import meanings_beside, moments_in, numbers_in
from sfumato.schema import Column, Kind
from sfumato.table.coding import CodedColumn

Penalties = NDArray[np.float64]


def cell_penalties(
    read: Containing, original: CodedColumn, described: Column, codes: NDArray[np.int32]
) -> Penalties | None:
    """Penalty of each distinct cell; ``None`` where values that ranges run over have no measurable distance.

    Only values whose codes are given count as values of the column.
    """
    occurs = np.zeros(read.n_places, dtype=np.bool_)
    occurs[read.places[codes]] = True
    missing = original.missing_code
    missing_place = read.n_places if missing is None else int(read.places[missing])
    may_be_missing = np.zeros(read.n_cells, dtype=np.bool_)
    holds_missing = (read.starts <= missing_place) & (missing_place < read.stops)
    may_be_missing[read.cells[holds_missing]] = True
    if described.kind is Kind.CATEGORICAL:
        return _of_sets(read, occurs)
    positions = _positions(original.values, described)
    if positions is None:
        return None
    at_place = np.full(read.n_places, np.nan)
    at_place[read.places] = positions
    occurs[missing_place:] = False
    return _of_ranges(read, occurs, at_place, may_be_missing)


def _of_sets(read: Containing, occurs: NDArray[np.bool_]) -> Penalties:
    before = np.concatenate([[0], np.cumsum(occurs)])
    covered = np.bincount(read.cells, weights=before[read.stops] - before[read.starts], minlength=read.n_cells)
    return np.where(covered <= 1, 0.0, covered / max(before[-1], 1))


def _of_ranges(
    read: Containing, occurs: NDArray[np.bool_], at_place: Penalties, may_be_missing: NDArray[np.bool_]
) -> Penalties:
    known = at_place[occurs]
    span = float(np.ptp(known)) if len(known) else 0.0
    low, high = np.full(read.n_cells, np.inf), np.full(read.n_cells, -np.inf)
    places = np.flatnonzero(occurs)
    first, last = np.searchsorted(places, read.starts), np.searchsorted(places, read.stops) - 1
    holds = first <= last
    np.minimum.at(low, read.cells[holds], at_place[places[first[holds]]])
    np.maximum.at(high, read.cells[holds], at_place[places[last[holds]]])
    has_value = low <= high
    width = np.subtract(high, low, out=np.zeros(read.n_cells), where=has_value)
    penalties = width / span if span > 0 else np.zeros(read.n_cells)
    return np.minimum(penalties + may_be_missing / (len(places) + 1), 1.0) * has_value


def _positions(values: pa.Array, described: Column) -> Penalties | None:
    if described.kind is Kind.NUMERIC:
        numbers, wrong = numbers_in(values)
        return None if wrong.any() else numbers
    if described.kind is Kind.DATE:
        moments = moments_in(values)
        if moments is None:
            return None
        return np.asarray(pc.cast(moments, pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    if described.domain is None:
        return None
    place = {meaning: float(i) for i, meaning in enumerate(meanings_beside(pa.array(described.domain), values.type))}
    placed = [np.nan if m is None else place.get(m) for m in meanings_beside(values, pa.string())]
    return None if None in placed else np.array(placed, dtype=np.float64)
