"""Original and release beside each other: distributions of columns and the first rows, for the page on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.attack.correspondence import ABSENT, Correspondence
from sfumato.attack.risk import attacked_rows
from sfumato.audit.columns import Columns
from sfumato.contract import Release
from sfumato.errors import SchemaError
from sfumato.manifest import AnyTable
from sfumato.table.cells import as_text
from sfumato.web.column_store import Record
from sfumato.web.tasks.facts import histogram

MOST_ROWS, FEWEST_ROWS, MOST_CELLS = 1_000, 50, 2_000_000
LONGEST_CELL = 60

_DRAWN = "The released rows were drawn anew: no row is that of a person, and no two rows below belong together."
_MOVED = "Values were moved between rows of a bucket: rows of the release do not belong to rows of the original."
_UNKNOWN = "Which released row comes from which original row cannot be told, so that no two rows below belong together."
_SOME_MOVED = "In columns that were moved within buckets, a released row shows the value of another row of its bucket."
_FLIPPED = "Some cells were changed at random; which ones is not said in the release."


@dataclass(frozen=True, repr=False)
class RowsBeside:
    """Rows to be shown.

    Parameters
    ----------
    n_original : int
        How many rows of the original are shown, from the first one.
    released : array of int
        Released row beside each of them, or -1 where it was suppressed. If the rows are not matched: the first
        released rows.
    is_matched : bool
        Whether a released row belongs to the original row beside it.
    note : str
        What must be known about them.
    """

    n_original: int
    released: NDArray[np.int64]
    is_matched: bool
    note: str = ""

    @property
    def suppressed(self) -> list[int]:
        """Original rows, from 0, that were not released."""
        return np.flatnonzero(self.released == ABSENT).tolist() if self.is_matched else []


def tables_beside(original: AnyTable, release: Release) -> Correspondence:
    """Read a release beside the rows that it was made of."""
    return Correspondence(attacked_rows(original, release.manifest), release.table, release.manifest)


def rows_beside(tables: Correspondence) -> RowsBeside:
    """Choose the rows to show: the first ones, fewer of a table with many columns."""
    n_columns = len(tables.original.names) + len(tables.released.names)
    most = min(MOST_ROWS, max(FEWEST_ROWS, MOST_CELLS // max(1, n_columns)))
    n = min(most, tables.original.n_rows)
    own = _own_rows(tables)
    has_moved = any(tables.is_moved(name) for name in tables.released.names)
    if own is not None:
        return RowsBeside(n, own[:n], True, _SOME_MOVED if has_moved else _FLIPPED if tables.is_flipped else "")
    note = _DRAWN if tables.is_synthetic else _MOVED if has_moved else _UNKNOWN
    return RowsBeside(n, np.arange(min(most, tables.released.n_rows)), False, note)


def _own_rows(tables: Correspondence) -> NDArray[np.int64] | None:
    try:
        return tables.own_row
    except SchemaError:  # cells that cannot be read beside the original's
        return None


def column_records(tables: Correspondence, rows: RowsBeside, changes: Mapping[str, str]) -> Iterator[Record]:
    """Give every column of the original, and every one that the release adds, as plain data.

    Parameters
    ----------
    changes : mapping of str to str
        What was done to a column, in words, as far as it is known.

    Yields
    ------
    dict
        ``number``, ``name``, ``role``, ``change``, ``is_released``, ``before`` and ``after``. ``before`` (``None`` for
        a column that is new) and the entries of ``after`` hold ``name``, ``labels`` and ``counts`` of bars,
        ``n_missing``, ``n_distinct`` and ``cells``, the texts of the rows to show (``None`` where missing).
    """
    made: dict[str, list[str]] = {}
    for name in tables.released.names:
        made.setdefault(tables.source_of(name) or name, []).append(name)
    first = np.arange(rows.n_original)
    added = [name for name in made if name not in tables.original]
    for number, name in enumerate([*tables.original.names, *added], start=1):
        released = made.get(name, [])
        is_new = name not in tables.original
        described = (tables.released if is_new else tables.original).describe(name)
        yield {
            "number": number,
            "name": name,
            "role": str(described.role),
            "change": changes.get(name, "released" if released else "dropped"),
            "is_released": bool(released),
            "before": None if is_new else _shown(tables.original, name, first),
            "after": [_shown(tables.released, one, rows.released) for one in released],
        }


def _shown(columns: Columns, name: str, rows: NDArray[np.int64]) -> dict[str, Any]:
    """Describe one column; features are read without making them dense."""
    if columns.feature(name) is not None:
        ones = columns.rows_with_one(name)
        n_ones = len(ones)
        cells: Sequence[str | None] = np.where(np.isin(rows, ones), "1", "0").tolist()
        labels, counts, n_missing = ["0", "1"], [columns.n_rows - n_ones, n_ones], 0
        n_distinct = 2 if 0 < n_ones < columns.n_rows else 1
    else:
        coded = columns.coded(name)
        bars = histogram(coded, columns.describe(name).kind)
        labels, counts, n_missing = bars["labels"], bars["counts"], coded.n_missing
        n_distinct = coded.n_distinct - coded.values.null_count
        # A row that is not there takes any code: its cell is blanked below.
        codes = coded.codes[rows] if len(coded.codes) else np.zeros(len(rows), dtype=np.int32)
        cells = _texts(coded.values, codes)
    is_there = (rows != ABSENT).tolist()
    return {
        "name": name,
        "labels": labels,
        "counts": counts,
        "n_missing": n_missing,
        "n_distinct": n_distinct,
        "cells": [cell if there else None for cell, there in zip(cells, is_there, strict=True)],
    }


def _texts(values: pa.Array, codes: NDArray[np.int32]) -> list[str | None]:
    if not len(values):
        return [None] * len(codes)
    found: list[str | None] = as_text(values.take(pa.array(codes))).to_pylist()
    return [text if text is None or len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…" for text in found]
