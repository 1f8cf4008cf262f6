"""Places of rows among many distinct rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError

Codes = NDArray[np.int32]
Places = NDArray[np.intp]

_LARGEST_KEY = 2**62


class RowFinder:
    """Finds rows of codes among distinct ones.

    Columns are packed into one 64-bit key; before a key could pass 2**62 it is replaced by its place among those that
    occur.

    Parameters
    ----------
    columns : sequence of int arrays
        Codes of the distinct rows, column by column.
    n_values : sequence of int
        Number of codes of each column.

    Examples
    --------
    >>> finder = RowFinder([np.array([4, 1])], [5])
    >>> finder.find([np.array([1, 4, 4])]).tolist()
    [1, 0, 0]
    """

    def __init__(self, columns: Sequence[Codes], n_values: Sequence[int]) -> None:
        self._n_values = tuple(n_values)
        self._known: list[NDArray[np.int64] | None] = []
        key, span = np.zeros(len(columns[0]), dtype=np.int64), 1
        for codes, radix in zip(columns, self._n_values, strict=True):
            is_full = span * radix > _LARGEST_KEY
            self._known.append(np.unique(key) if is_full else None)
            if is_full:
                key, span = np.searchsorted(self._known[-1], key), len(self._known[-1])  # type: ignore[arg-type]
            key = key * radix + codes
            span *= radix
        self._order = np.argsort(key)
        self._keys = key[self._order]

    def find(self, columns: Sequence[Codes]) -> Places:
        """Place of each row.

        Raises
        ------
        InputError
            If a row is not among the distinct ones.
        """
        key = np.zeros(len(columns[0]), dtype=np.int64)
        for codes, radix, known in zip(columns, self._n_values, self._known, strict=True):
            if known is not None:
                key = np.searchsorted(known, key)
            key = key * radix + codes
        order = np.argsort(key)  # looked up in their order, neighbours are found near each other
        places = np.empty(len(key), dtype=np.intp)
        found = np.minimum(np.searchsorted(self._keys, key[order]), len(self._keys) - 1)
        if not np.array_equal(self._keys[found], key[order]):
            problem = "the table changed while it was being read"
            raise InputError(problem, hint="try again when nobody writes to it")
        places[order] = self._order[found]
        return places
