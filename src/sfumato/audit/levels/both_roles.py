"""Promises about the values of a column that is sensitive and a quasi-identifier at once.

Such a promise is about rows that are equal on the *other* quasi-identifiers, and its level is measured on the released
cells of the column, each cell as a value. That bounds the diversity of the original values only if no two cells of a
class can mean the same value: ``{flu|cold}`` and ``{cold|HIV}`` are two cells and may be one disease. Distances from
the whole table (t, β, δ) say nothing about the original values then, since coarser cells are closer.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.audit.checks import Check
from sfumato.audit.claims import ClaimedRecoding, Claims, Promise
from sfumato.audit.reading.cells import contained, tokens_of
from sfumato.audit.reading.columns import Columns, group_rows, places_of_runs
from sfumato.audit.reading.values import GENERALIZED, ranks
from sfumato.guarantees import AlphaKAnonymity, LDiversity
from sfumato.schema import Kind, Role

Ids = NDArray[np.int64]
BOUNDED_BY_CELLS = (LDiversity.kind, AlphaKAnonymity.kind)
"""Kinds whose level on disjoint cells is no better than that on the values."""


def sensitive_and_known(promise: Promise, claims: Claims) -> str | None:
    """Name the column that a promise is about, if it is a quasi-identifier as well."""
    name = getattr(promise.guarantee, "sensitive", None)
    return name if name in claims.names(Role.SENSITIVE_QUASI_IDENTIFIER) else None


def check_both_roles(promise: Promise, columns: Columns, claims: Claims) -> Iterator[Check]:
    """Whether a promise about a sensitive quasi-identifier can be judged by its cells, and no two cells overlap."""
    name, kind = sensitive_and_known(promise, claims), promise.guarantee.kind
    if name is None:
        return
    label = f"{kind}: cells of a sensitive quasi-identifier"
    if kind not in BOUNDED_BY_CELLS:
        said = "is also a quasi-identifier, and nothing follows for its original values"
        yield Check(label, False, f"{kind}: '{name}' {said}")
        return
    if name in promise.columns:
        yield Check(label, False, f"{kind}: '{name}' is among the columns that attackers are said to know")
        return
    if name not in columns or any(other not in columns for other in promise.columns):
        return  # the level cannot be measured either, and says so
    n_classes = overlapping_classes(columns, promise.columns, name, claims.recodings.get(name))
    if n_classes is None:
        yield Check(label, False, f"{kind}: the cells of '{name}' cannot be read")
        return
    said = f"may mean the same value in {n_classes:,} classes" if n_classes else "exclude each other in every class"
    yield Check(label, not n_classes, f"{kind}: different cells of '{name}' {said}")


def overlapping_classes(
    columns: Columns, over: tuple[str, ...], name: str, recoding: ClaimedRecoding | None
) -> int | None:
    """Count classes with two different cells that can mean the same value; ``None`` if some cell cannot be read."""
    column = columns.coded(name)
    meant = _values_of_cells(column.values, recoding)
    if meant is None:
        return None
    cells, starts, stops = meant
    classes = group_rows(columns, over)
    width = max(len(column.values), 1)
    pairs = np.unique(classes.ids * width + column.codes)
    of_class, of_pair = pairs // width, pairs % width
    first = np.searchsorted(cells, of_pair, side="left")
    last = np.searchsorted(cells, of_pair, side="right")
    run = places_of_runs(first, last)
    owner = np.repeat(of_class, last - first)
    order = np.lexsort((starts[run], owner))
    owner, low, high = owner[order], starts[run][order], stops[run][order]
    # runs of one cell do not touch: neighbours in a class that do are of two cells
    touches = (owner[1:] == owner[:-1]) & (low[1:] < high[:-1])
    return len(np.unique(owner[1:][touches]))


def _values_of_cells(values: pa.Array, recoding: ClaimedRecoding | None) -> tuple[Ids, Ids, Ids] | None:
    """Give the runs of values that each distinct cell may mean (cell, first, one after the last), ascending.

    Values are those that the cells name: ranges that share a value share one of their ends.
    """
    if recoding is None:
        rank = ranks(values, Kind.CATEGORICAL)
        cells = np.arange(len(values), dtype=np.int64)
        return cells, rank.astype(np.int64), rank.astype(np.int64) + 1
    if recoding.rule != GENERALIZED:
        return None
    tokens, names_missing = tokens_of(values)
    known = pa.array([*tokens, *([None] if names_missing else [])], pa.string())
    read = contained(pc.cast(values, pa.string()), known, recoding.kind, recoding.domain)
    if read.n_unreadable or read.n_foreign:
        return None
    if recoding.kind is not Kind.CATEGORICAL:
        return read.cells, read.starts, read.stops
    lengths = read.stops - read.starts
    place = places_of_runs(read.starts, read.stops)
    rank_of_place = np.zeros(read.n_places, dtype=np.int64)
    rank_of_place[read.places] = ranks(known, Kind.CATEGORICAL)  # spellings of one value are one
    found = np.unique(np.column_stack([np.repeat(read.cells, lengths), rank_of_place[place]]), axis=0)
    return found[:, 0], found[:, 1], found[:, 1] + 1
