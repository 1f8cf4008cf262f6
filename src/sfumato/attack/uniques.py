r"""Sample uniques and minimal sample uniques: with which few columns people are unique, and which columns are to blame.

A row is *unique* on a set of columns when no other row has its values there. It is a *minimal* sample unique of the set
when it is unique on no proper subset. Definitions of SUDA2 [MHK08]_. A person with many minimal uniques, and with
small ones, is easy to find even for somebody who knows little.

The score of a minimal unique of s columns, among m columns and with sets of up to M, is
:math:`\prod_{i=s}^{M-1}(m - i)`, the ways in which it grows to a set of M columns. This is the score of [EM05]_ less
the factor m - M, which all minimal uniques share and which would be 0 for M = m.

References
----------
.. [MHK08] Manning, Haglin, Keane: A recursive search algorithm for statistical disclosure assessment. Data Mining and
   Knowledge Discovery 16 (2008) 165-196.
.. [EM05] Elliot, Manning, Mayes, Gurd, Bane: SUDA: A Program for Detecting Special Uniques. UNECE/Eurostat 2005.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.reading.cells import a_row_of_each
from sfumato.audit.reading.columns import Columns, Refinement, group_rows
from sfumato.errors import InvalidParameterError
from sfumato.manifest import AnyTable
from sfumato.progress import Progress
from sfumato.schema import Role

Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]

LARGEST_SET = 3
MOST_SETS = 50_000
MOST_CELLS = 2 * 10**8
SETS_LISTED = 20


@dataclass(frozen=True)
class UniquesOfSet:
    """A set of columns: rows that are unique on it, and those of them that are unique on no proper subset."""

    columns: tuple[str, ...]
    n_unique: int
    n_minimal: int


@dataclass(frozen=True, repr=False, eq=False)
class MinimalUniques:
    """Minimal sample uniques of a table.

    Parameters
    ----------
    names : tuple of str
        Columns that were searched.
    largest : int
        Size of the largest sets.
    sets : tuple of UniquesOfSet
        All sets searched, the smallest first.
    scores : array
        Sum of the scores of each row's minimal uniques.
    """

    names: tuple[str, ...]
    largest: int
    sets: tuple[UniquesOfSet, ...]
    scores: Counts

    def __repr__(self) -> str:
        n_rows = np.count_nonzero(self.scores)
        return f"MinimalUniques({len(self.names)} columns, {n_rows:,} of {len(self.scores):,} rows)"

    @property
    def n_minimal(self) -> int:
        """Number of minimal uniques, in all sets and rows."""
        return sum(found.n_minimal for found in self.sets)

    @cached_property
    def by_column(self) -> Mapping[str, dict[str, float]]:
        """Share of the minimal uniques, and of all scores, in whose sets each column is."""
        count, score = dict.fromkeys(self.names, 0), dict.fromkeys(self.names, 0)
        for found in self.sets:
            for name in found.columns:
                count[name] += found.n_minimal
                score[name] += found.n_minimal * _score(len(found.columns), self.largest, len(self.names))
        n_minimal, total = max(self.n_minimal, 1), max(int(self.scores.sum()), 1)
        return {
            name: {"n_minimal": count[name], "share": count[name] / n_minimal, "score_share": score[name] / total}
            for name in self.names
        }

    def summary(self, shown: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Plain counts, fit for JSON; no cell is in it where ``shown`` gives other names to features named by one."""
        shown = shown or {}
        n_rows = len(self.scores)
        n_rows_with = int(np.count_nonzero(self.scores))
        worst = sorted((s for s in self.sets if s.n_minimal), key=lambda s: (-s.n_minimal, len(s.columns)))
        blamed = sorted(self.by_column.items(), key=lambda item: -item[1]["score_share"])
        return {
            "n_rows": n_rows,
            "largest_set": self.largest,
            "n_sets": len(self.sets),
            "n_rows_with": n_rows_with,
            "share_of_rows": n_rows_with / max(n_rows, 1),
            "n_minimal": self.n_minimal,
            "by_size": [self._of_size(size) for size in range(1, self.largest + 1)],
            "columns": [{"column": shown.get(name, name), **shares} for name, shares in blamed],
            "sets": [
                {
                    "columns": [shown.get(name, name) for name in s.columns],
                    "n_unique": s.n_unique,
                    "n_minimal": s.n_minimal,
                }
                for s in worst[:SETS_LISTED]
            ],
            "highest_score": int(self.scores.max(initial=0)),
            "mean_score": float(self.scores.mean()) if n_rows else 0.0,
        }

    def _of_size(self, size: int) -> dict[str, int]:
        of_size = [s for s in self.sets if len(s.columns) == size]
        return {"size": size, "n_sets": len(of_size), "n_minimal": sum(s.n_minimal for s in of_size)}


def minimal_uniques(
    table: AnyTable | Columns,
    names: Sequence[str] | None = None,
    *,
    largest: int = LARGEST_SET,
    within: Sequence[Sequence[str]] | None = None,
    progress: Progress | None = None,
) -> MinimalUniques:
    """Search all sets of up to some columns for rows that are unique on the set and on no proper subset.

    Parameters
    ----------
    names : sequence of str or None
        Columns; ``None`` takes the quasi-identifiers. Cells count as they are written; missing is a value.
    largest : int, default=3
        Size of the largest sets. It is lowered where there would be more than 50,000 of them, or sets × rows beyond
        2 × 10**8; ``largest`` of the result tells.
    within : sequence of sequence of str or None
        Groups of columns; only sets within one group are searched. ``None`` is one group of all.

    Raises
    ------
    InvalidParameterError
        If ``largest`` is no whole number of at least 1.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.schema import Column, Schema
    >>> from sfumato.table.coding import Table
    >>> cells = pa.table({"sex": ["f", "f", "m", "m"], "job": ["a", "b", "a", "a"]})
    >>> found = minimal_uniques(Table.from_arrow(cells, Schema.of([Column("sex"), Column("job")])))
    >>> [(s.columns, s.n_unique, s.n_minimal) for s in found.sets]
    [(('sex',), 0, 0), (('job',), 1, 1), (('sex', 'job'), 2, 1)]
    """
    if isinstance(largest, bool) or not isinstance(largest, int | np.integer) or largest < 1:
        raise InvalidParameterError("largest", f"got {largest!r}", allowed="a whole number of at least 1")
    columns = table if isinstance(table, Columns) else Columns(table)
    chosen = tuple(columns.with_role(Role.QUASI_IDENTIFIER) if names is None else names)
    groups = [tuple(name for name in chosen if name in group) for group in ([chosen] if within is None else within)]
    most = _largest_within_limit([len(group) for group in groups], int(largest), columns.n_rows)
    search = _Search(columns, chosen, most)
    sets = [s for size in range(1, most + 1) for s in _sets(groups, size)]
    found = []
    for number, chosen_set in enumerate(sets, start=1):
        found.append(search.of(chosen_set))
        if progress is not None:
            progress(number, len(sets), "uniques")
    return MinimalUniques(chosen, most, tuple(found), search.scores_of_rows)


def _sets(groups: Sequence[tuple[str, ...]], size: int) -> Iterator[tuple[str, ...]]:
    for group in groups:
        yield from combinations(group, size)


def _largest_within_limit(sizes: Sequence[int], largest: int, n_rows: int) -> int:
    most, n_sets = 1, sum(sizes)
    for size in range(2, min(largest, max(sizes, default=1)) + 1):
        n_sets += sum(comb(n, size) for n in sizes)
        if n_sets > MOST_SETS or n_sets * n_rows > MOST_CELLS:
            break
        most = size
    return most


def _score(size: int, largest: int, n_columns: int) -> int:
    return prod(n_columns - i for i in range(size, largest))


class _Search:
    """Rows that are unique on each set searched so far, as packed bits; subsets come before their supersets.

    Rows that are equal on all columns are one entry, and unique on no set when they are several.
    """

    def __init__(self, columns: Columns, names: Sequence[str], largest: int) -> None:
        self._classes = group_rows(columns, names)
        row_of_class = a_row_of_each(self._classes)
        self._scores: Counts = np.zeros(len(row_of_class), dtype=np.int64)
        self._coded = {name: columns.coded(name).codes[row_of_class] for name in names}
        self._n_values = {name: len(columns.coded(name).values) for name in names}
        self._is_alone = self._classes.sizes == 1
        self._n_columns, self._largest = len(names), largest
        self._unique: dict[tuple[str, ...], NDArray[np.uint8]] = {}

    @property
    def scores_of_rows(self) -> Counts:
        return self._scores[self._classes.ids]

    def of(self, names: tuple[str, ...]) -> UniquesOfSet:
        if not self._is_alone.any():
            return UniquesOfSet(names, 0, 0)
        is_unique = self._unique_on(names)
        n_entries = len(is_unique)
        in_subset = np.zeros(-(-n_entries // 8), dtype=np.uint8)
        for subset in combinations(names, len(names) - 1) if len(names) > 1 else ():
            in_subset |= self._unique[subset]
        if len(names) < self._largest:
            self._unique[names] = np.packbits(is_unique)
        is_minimal = is_unique & ~np.unpackbits(in_subset, count=n_entries).astype(np.bool_)
        self._scores[is_minimal] += _score(len(names), self._largest, self._n_columns)
        return UniquesOfSet(names, int(np.count_nonzero(is_unique)), int(np.count_nonzero(is_minimal)))

    def _unique_on(self, names: tuple[str, ...]) -> Flags:
        """Entries that are one row and share their values with no other."""
        refinement = Refinement(len(self._scores))
        n_keys = 1
        for name in names:
            refinement.add(self._coded[name], self._n_values[name])
            n_keys *= max(self._n_values[name], 1)
        if n_keys <= 4 * len(self._scores):
            return np.asarray(self._is_alone & (np.bincount(refinement.ids, minlength=n_keys)[refinement.ids] == 1))
        classes = refinement.classes()
        return np.asarray(self._is_alone & (classes.sizes[classes.ids] == 1))
