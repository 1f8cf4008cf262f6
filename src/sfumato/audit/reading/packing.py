"""Columns of small numbers side by side in one number of 64 bits: rows that a database groups take a fraction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
_LARGEST = 2**62


@dataclass(frozen=True)
class Packing:
    """Which columns share a number.

    Parameters
    ----------
    sizes : tuple of int or None
        Of each column how many numbers it may hold, from 0 on; ``None``: any, so that it stands alone.
    groups : tuple of tuple of int
        Places of columns that share a number.

    Examples
    --------
    >>> packing = Packing.of([10, None, 5])
    >>> [own.tolist() for own in packing.packed([np.array([7, 1]), np.array([-3, 4]), np.array([4, 0])])]
    [[39, 5], [-3, 4]]
    """

    sizes: tuple[int | None, ...]
    groups: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, sizes: Sequence[int | None]) -> Packing:
        """Put as many columns together as fit."""
        groups: list[list[int]] = []
        span = _LARGEST + 1
        for i, size in enumerate(sizes):
            if size is None:
                continue
            if span * size > _LARGEST:
                groups.append([])
                span = 1
            groups[-1].append(i)
            span *= max(size, 1)
        alone = [(i,) for i, size in enumerate(sizes) if size is None]
        return cls(tuple(sizes), (*map(tuple, groups), *alone))

    def packed(self, columns: Sequence[NDArray[np.integer]]) -> list[Numbers]:
        """Give a number for each group, row by row."""
        found = []
        for group in self.groups:
            key = columns[group[0]].astype(np.int64)
            for i in group[1:]:
                key = key * max(self.sizes[i] or 0, 1) + columns[i]
            found.append(key)
        return found
