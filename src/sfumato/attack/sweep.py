"""Linkage on many sets of background columns: with which ones how many people fall."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sfumato.attack.linkage import LinkageAttack
from sfumato.contract import Progress
from sfumato.errors import InvalidParameterError
from sfumato.manifest import AnyTable
from sfumato.schema import Column

_MOST_SETS = 5_000


def sweep(
    reference: AnyTable,
    released: AnyTable,
    background: Sequence[str],
    *,
    columns: Mapping[str, Column],
    up_to: int = 2,
    truth: ArrayLike | None = None,
    k: int | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Summaries of :func:`sfumato.attack.linkage.link` for many sets of the background columns.

    First all sets of up to ``up_to`` columns, the smallest first. Then the best one of the largest of these (most
    re-identified, then most expected right, then first) grows to all columns, each time by the column that makes it
    best. The last entry is that of all columns; with ``up_to=0`` it is the only one.

    Raises
    ------
    InvalidParameterError
        As for one set, and if more than 5,000 sets would have to be matched.
    """
    names = tuple(background)
    total = _checked_number_of_sets(len(names), up_to)
    tried = _Tried(LinkageAttack(reference, released, names, columns=columns, truth=truth, k=k), total, progress)
    if up_to == 0:
        return [tried.best_of([names])]
    for size in range(1, min(up_to, len(names)) + 1):
        best = tried.best_of(combinations(names, size))
    shown = list(tried.summaries)
    while len(best["background"]) < len(names):
        wider = [[n for n in names if n in best["background"] or n == other] for other in names]
        best = tried.best_of(chosen for chosen in wider if len(chosen) > len(best["background"]))
        shown.append(best)
    return shown


class _Tried:
    """Sets of columns that were matched on so far."""

    def __init__(self, attack: LinkageAttack, total: int, progress: Progress | None) -> None:
        self.summaries: list[dict[str, Any]] = []
        self._attack, self._total, self._progress = attack, total, progress

    def best_of(self, sets: Iterable[Sequence[str]]) -> dict[str, Any]:
        """Match on each of the sets and return the first of the most successful ones."""
        n_before = len(self.summaries)
        for chosen in sets:
            self.summaries.append(self._attack.on(chosen).summary())
            if self._progress is not None:
                self._progress(len(self.summaries), self._total, "matching")
        return max(self.summaries[n_before:], key=lambda summary: (summary["n_reidentified"], summary["n_expected"]))


def _checked_number_of_sets(n_columns: int, up_to: object) -> int:
    if isinstance(up_to, bool) or not isinstance(up_to, int | np.integer) or up_to < 0:
        raise InvalidParameterError("up_to", f"got {up_to!r}", allowed="a whole number of at least 0")
    if up_to == 0:
        return 1
    n_grown = max(n_columns - int(up_to), 0)
    small = sum(comb(n_columns, size) for size in range(1, min(int(up_to), n_columns) + 1))
    n_sets = small + n_grown * (n_grown + 1) // 2
    if n_sets > _MOST_SETS:
        problem = f"{up_to} of {n_columns} columns make {n_sets:,} sets"
        hint = "name fewer background columns, or take 0 to match on all of them only"
        raise InvalidParameterError("up_to", problem, allowed=f"small enough for {_MOST_SETS:,} sets", hint=hint)
    return n_sets
