"""Whose row is in which class of a release that is not in memory: what the ledger keeps, in one pass over the rows.

The rows stay where they are; what is held is a number for each person, class and sensitive value. Where that does not
fit, nothing is said of anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.together.appearances import Named, NamedRows, Promised, check_named, spelled_alike
from sfumato.engines.memory_limit import Memory, working_bytes
from sfumato.engines.protocol import Rows
from sfumato.errors import InputError
from sfumato.table.weighted import Block

BYTES_A_ROW = 500
"""Held for each row of a release and of those that it is checked together with: names, hashes, joint classes."""


def check_fits(n_rows: int, memory: Memory, place: str) -> None:
    """Refuse what is too much to be held, before any of it is.

    Raises
    ------
    InputError
        With what can be done about it.
    """
    if n_rows * BYTES_A_ROW > working_bytes(memory.n_bytes):
        problem = f"whose rows are in which class, {n_rows:,} rows of all releases together, does not fit in memory"
        hint = "give more memory, or leave this release out of the ledger"
        raise InputError(problem, path=place, hint=hint, remedy=("memory", "ledger"))


def named_rows_of(original: Rows, blocks: Iterable[Block], promised: Promised, person: str) -> NamedRows:
    """Find whose each released row is, as :func:`sfumato.audit.together.appearances.named_rows` does in memory.

    Parameters
    ----------
    blocks : iterable of Block
        Released rows with their persons: codes, or cells.

    Raises
    ------
    SchemaError
        If the column that tells persons apart has missing values.
    """
    names = (*promised.columns, person, *promised.diversity)
    classes, parts = _Numbers(), {name: list[Any]() for name in names[len(promised.columns) :]}
    numbered = []
    for block in blocks:
        numbered.append(classes.of([block[name] for name in promised.columns]))
        for name, own in parts.items():
            own.append(block[name])
    found = {name: _named(original, name, own) for name, own in parts.items()}
    check_named(found[person], person)
    values = {name: found[name] for name in promised.diversity}
    return NamedRows(found[person], np.concatenate([np.zeros(0, dtype=np.int64), *numbered]), values, promised)


class _Numbers:
    """Numbers classes from 0 as they are met, by the cells of the columns that make them."""

    def __init__(self) -> None:
        self._number: dict[tuple[object, ...], int] = {}

    def of(self, columns: Sequence[NDArray[np.int32] | pa.Array]) -> NDArray[np.int64]:
        """Class of each row of a block."""
        coded, values = list[NDArray[np.int64]](), list[list[object] | None]()
        for cells in columns:
            if isinstance(cells, np.ndarray):
                coded.append(cells.astype(np.int64))
                values.append(None)
            else:
                encoded = pa.array(cells).dictionary_encode(null_encoding="encode")
                coded.append(encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64))
                values.append(encoded.dictionary.to_pylist())
        rows, of_row = np.unique(np.column_stack(coded), axis=0, return_inverse=True)
        numbers = []
        for row in rows.tolist():
            key = tuple(code if own is None else own[code] for code, own in zip(row, values, strict=True))
            numbers.append(self._number.setdefault(key, len(self._number)))
        return np.array(numbers, dtype=np.int64)[of_row.reshape(-1)]


def _named(original: Rows, name: str, parts: Sequence[NDArray[np.int32] | pa.Array]) -> Named:
    """Name the cells of a column by their values, however they are spelled."""
    if all(isinstance(part, np.ndarray) for part in parts):
        codes = np.concatenate([np.zeros(0, dtype=np.int64), *(np.asarray(part, dtype=np.int64) for part in parts)])
        return spelled_alike(original.outline[name].values, codes)
    cells = pa.chunked_array([chunk for part in parts for chunk in _chunks(part)])
    encoded = cells.dictionary_encode(null_encoding="encode").combine_chunks()
    encoded = encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded
    return spelled_alike(encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False))


def _chunks(part: Any) -> Sequence[pa.Array]:
    return part.chunks if isinstance(part, pa.ChunkedArray) else [pa.array(part)]
