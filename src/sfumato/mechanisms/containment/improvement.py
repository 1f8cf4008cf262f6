"""Better feasible sets from a given one: exchanges of columns, and good sets to start from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.counting.bitsets import WORD_BITS, Words, rows_with
from sfumato.mechanisms.containment.feasibility import Reduced
from sfumato.mechanisms.containment.support import Counts, Held
from sfumato.mechanisms.time_limit import TimeBudget

# Rows projected on a set of columns from which columns can also be taken out again.


_COMPARED_WORDS = 1 << 21  # words compared at once: 16 MiB
_FIRST_BATCH = 4


class SwappableRows:
    """Whether a column may join a feasible set, and which columns stand in its way.

    Rows that are equal on the chosen columns form a group, as in ``ProjectedRows``. A column that is taken out leaves
    its place in the patterns empty and the groups as they are; that two groups may then be equal does no harm.

    Parameters
    ----------
    reduced : Reduced
        The table; a group counts as many rows as it stands for.
    k : int
        Level of containment that every set keeps.
    """

    def __init__(self, reduced: Reduced, k: int) -> None:
        self.reduced = reduced
        self.k = k
        self.place: dict[int, int] = {}
        self._n_places = 0
        self._group = np.zeros(reduced.n_rows, dtype=np.int32)
        self._sizes = np.array([reduced.n_rows])
        self._patterns = np.zeros((1, 1), dtype=np.uint64)

    @property
    def chosen(self) -> list[int]:
        """Columns of the set, in the order in which they joined."""
        return list(self.place)

    def copy(self) -> SwappableRows:
        """Return an independent copy."""
        other = SwappableRows(self.reduced, self.k)
        other.place, other._n_places = dict(self.place), self._n_places
        other._group, other._sizes, other._patterns = self._group.copy(), self._sizes.copy(), self._patterns.copy()
        return other

    def add(self, column: int) -> None:
        """Let a column join: the rows that have it get groups of their own."""
        rows = rows_with(self.reduced.matrix, column)
        word, bit = divmod(self._n_places, WORD_BITS)
        if word >= self._patterns.shape[1]:
            self._patterns = np.pad(self._patterns, ((0, 0), (0, self._patterns.shape[1])))
        groups, position, sizes = np.unique(self._group[rows], return_inverse=True, return_counts=True)
        divided = sizes < self._sizes[groups]
        ids = np.where(divided, len(self._sizes) + np.cumsum(divided) - 1, groups).astype(np.int32)
        self._sizes[groups[divided]] -= sizes[divided]
        self._sizes = np.concatenate([self._sizes, sizes[divided]])
        self._patterns = np.concatenate([self._patterns, self._patterns[groups[divided]]])
        self._patterns[ids, word] |= np.uint64(1 << bit)
        self._group[rows] = ids[position]
        self.place[column] = self._n_places
        self._n_places += 1

    def drop(self, columns: Iterable[int]) -> None:
        """Take columns out."""
        self._patterns &= ~self._mask(columns)
        for column in columns:
            del self.place[column]

    def allows(self, column: int, without: Iterable[int] = ()) -> bool:
        """Whether the set stays feasible when a column joins, perhaps after others are taken out."""
        return not len(self._rare_patterns(column, without)[0])

    def add_all(self, columns: Iterable[int]) -> None:
        """Let every column join that may, in this order."""
        for column in columns:
            if column not in self.place and self.allows(column):
                self.add(column)

    def obstacles(self, column: int, without: Iterable[int] = ()) -> list[int]:
        """Columns each of which, taken out alone, lets another one join; none if it may join anyway.

        A pattern that is rare among the column's rows needs further rows that include it: those that lack just the
        one column that is taken out.
        """
        rare, present, held = self._rare_patterns(column, without)
        found: set[int] | None = None
        for pattern in rare:
            missing_rows, helped_by = self._lacking(pattern, present, held, 1)
            helpful = {single for (single,), n_rows in helped_by.items() if n_rows >= missing_rows}
            found = helpful if found is None else found & helpful
            if not found:
                return []
        return sorted(c for c in found or () if self.allows(column, (*without, c)))

    def obstacle_pairs(self, column: int) -> list[tuple[int, int]]:
        """Pairs of columns that may, taken out together, let another one join; ``allows`` says whether they do."""
        rare, present, held = self._rare_patterns(column, ())
        if not len(rare):
            return []
        missing_rows, helped_by = self._lacking(rare[0], present, held, 2)
        singles = sorted(lacking[0] for lacking in helped_by if len(lacking) == 1)
        pairs = {*combinations(singles, 2), *(lacking for lacking in helped_by if len(lacking) == 2)}
        found = {
            (a, b)
            for a, b in pairs
            if helped_by.get((a, b), 0) + helped_by.get((a,), 0) + helped_by.get((b,), 0) >= missing_rows
        }
        for single in singles:
            if helped_by[(single,)] >= missing_rows:  # settles this pattern; the other column must settle the rest
                found.update((min(single, c), max(single, c)) for c in self.obstacles(column, (single,)))
        return sorted(found)

    def _lacking(self, pattern: Words, present: Words, held: Held, most: int) -> tuple[int, dict[tuple[int, ...], int]]:
        """How many rows a pattern is short of k, and the rows that lack up to so many of its columns, by these.

        Where persons are counted: how many persons, and those whom such rows would add. Two sets of columns may add the
        same person, so that sums are bounds.
        """
        lacking = pattern & ~present
        n_lacking = np.bitwise_count(lacking).sum(axis=1, dtype=np.int64)
        near = np.flatnonzero((n_lacking > 0) & (n_lacking <= most))
        keys: dict[tuple[int, ...], int] = {}
        if len(near):
            column_of = {place: chosen for chosen, place in self.place.items()}
            bits = np.unpackbits(lacking[near].astype("<u8").view(np.uint8), axis=1, bitorder="little")
            columns = (tuple(sorted(column_of[place] for place in np.flatnonzero(row).tolist())) for row in bits)
            key_of = np.array([keys.setdefault(own, len(keys)) for own in columns])
            added = held.beyond(n_lacking == 0, near, key_of, len(keys)).tolist()
            keys = dict(zip(keys, added, strict=True))
        return self.k - int(held.support((n_lacking == 0)[None, :])[0]), keys

    def _mask(self, columns: Iterable[int]) -> Words:
        mask = np.zeros(self._patterns.shape[1], dtype=np.uint64)
        for column in columns:
            word, bit = divmod(self.place[column], WORD_BITS)
            mask[word] |= np.uint64(1 << bit)
        return mask

    def _rare_patterns(self, column: int, without: Iterable[int]) -> tuple[Words, Words, Held]:
        """Patterns of the column's rows that fewer than k of them include (some of these, if there are any).

        Also all patterns of these rows, and who has them. Patterns with most ones are asked first.
        """
        rows = rows_with(self.reduced.matrix, column)
        groups, position = np.unique(self._group[rows], return_inverse=True)
        held = self.reduced.held.grouped(rows, position, len(groups))
        present = self._patterns[groups] & ~self._mask(without)
        asked = present[held.counts < self.k]
        asked = asked[np.argsort(-np.bitwise_count(asked).sum(axis=1, dtype=np.int64), kind="stable")]
        most = max(_FIRST_BATCH, _COMPARED_WORDS // max(1, present.size))
        start, size = 0, _FIRST_BATCH
        while start < len(asked):
            batch = asked[start : start + size]
            included = ((present[None, :, :] & batch[:, None, :]) == batch[:, None, :]).all(axis=2)
            rare = held.falls_short(included, self.k)
            if rare.any():
                return batch[rare], present, held
            start, size = start + size, min(2 * size, most)
        return asked[:0], present, held


Reals = NDArray[np.float64]
Worth = Callable[[Sequence[int]], int]
"""What a set of columns is worth; a whole number, so that better is exact."""

_COMPARED_ROWS, _COMPARED_CELLS = 2048, 1 << 23  # rows with most weight that may give a start
_ROW_STARTS, _FILLED_STARTS = 40, 3  # rows that give one, and how many of these sets are made maximal


def good_start(
    reduced: Reduced, weights: Counts, k: int, features: Iterable[int], budget: TimeBudget
) -> tuple[int, ...]:
    """Take the heaviest of a feasible set and of sets begun with what k rows share, and exchange columns of it."""
    best = _with_columns(reduced, k, reduced.columns(features))
    for columns in shared_by_rows(reduced, weights, k, budget)[:_FILLED_STARTS]:
        if budget.is_spent():
            break
        rows = _with_columns(reduced, k, columns)
        _fill(rows, heaviest_first(weights), budget)
        if _is_better(rows, best, weights, None):
            best = rows
    return tuple(sorted(improve(best, weights, budget).chosen))


def improved_columns(
    reduced: Reduced,
    k: int,
    columns: Iterable[int],
    weights: tuple[Counts, Counts],
    budget: TimeBudget,
    worth: Worth | None = None,
) -> tuple[int, ...]:
    """Fill up a feasible set by the first weights, then exchange columns by the second; columns, ascending."""
    rows = _with_columns(reduced, k, columns)
    _fill(rows, heaviest_first(weights[0]), budget)
    return tuple(sorted(improve(rows, weights[1], budget, worth).chosen))


def _with_columns(reduced: Reduced, k: int, columns: Iterable[int]) -> SwappableRows:
    """Choose a feasible set."""
    rows = SwappableRows(reduced, k)
    for column in columns:
        rows.add(column)
    return rows


def improve(rows: SwappableRows, weights: Counts, budget: TimeBudget, worth: Worth | None = None) -> SwappableRows:
    """Make a set maximal, then exchange columns as long as that raises its worth and there is time.

    Parameters
    ----------
    rows : SwappableRows
        The table with the set chosen; it may be changed.
    weights : array of int
        Weight of every column: heavier ones are tried first, and two are exchanged only for one that is heavier.
    worth : callable, optional
        What is to be raised; by default the sum of the weights.

    Returns
    -------
    SwappableRows
        The table with the better set.
    """
    order = heaviest_first(weights)
    better = rows if _fill(rows, order, budget) else None
    while better is not None:
        rows = better
        better = _exchange_one(rows, order, weights, worth, budget)
        better = better or _exchange_two(rows, order, weights, worth, budget)
    return rows


def heaviest_first(weights: Counts) -> list[int]:
    """Columns by descending weight; of equal ones the earlier first."""
    order: list[int] = np.argsort(-weights, kind="stable").tolist()
    return order


def _fill(rows: SwappableRows, order: Iterable[int], budget: TimeBudget) -> bool:
    """Let every column join that may; False if the budget was spent before all had been tried."""
    for column in order:
        if budget.is_spent():
            return False
        rows.add_all([column])
    return True


def _exchange_one(
    rows: SwappableRows, order: Sequence[int], weights: Counts, worth: Worth | None, budget: TimeBudget
) -> SwappableRows | None:
    """Take out one column for those that then fit, if that is better; most promising first."""
    waiting: dict[int, list[int]] = {}
    for column in order:
        if budget.is_spent():
            return None
        if column not in rows.place:
            for obstacle in rows.obstacles(column):
                waiting.setdefault(obstacle, []).append(column)
    hope = {out: int(weights[columns].sum() - weights[out]) for out, columns in waiting.items()}
    for out in sorted(waiting, key=lambda c: (-hope[c], c)):
        if budget.is_spent() or (worth is None and hope[out] <= 0):
            return None
        trial = _exchanged(rows, (out,), waiting[out])
        if _is_better(trial, rows, weights, worth):
            return trial
    return None


def _exchange_two(
    rows: SwappableRows, order: Sequence[int], weights: Counts, worth: Worth | None, budget: TimeBudget
) -> SwappableRows | None:
    """Take out two columns for a heavier one, and whatever else then fits, if that is better."""
    for column in order:
        if column in rows.place:
            continue
        for pair in rows.obstacle_pairs(column):
            if budget.is_spent():
                return None
            if weights[list(pair)].sum() >= weights[column] or not rows.allows(column, pair):
                continue
            trial = _exchanged(rows, pair, [column])
            if not _fill(trial, order, budget):
                return None
            if _is_better(trial, rows, weights, worth):
                return trial
    return None


def _exchanged(rows: SwappableRows, out: tuple[int, ...], into: Iterable[int]) -> SwappableRows:
    """Make a set without some columns and with those others that then fit."""
    trial = rows.copy()
    trial.drop(out)
    trial.add_all(into)
    return trial


def _is_better(trial: SwappableRows, rows: SwappableRows, weights: Counts, worth: Worth | None) -> bool:
    if worth is None:
        return int(weights[trial.chosen].sum()) > int(weights[rows.chosen].sum())
    return worth(trial.chosen) > worth(rows.chosen)


def shared_by_rows(reduced: Reduced, weights: Counts, k: int, budget: TimeBudget) -> list[tuple[int, ...]]:
    """Heavy sets of columns that k rows have in common: feasible by Lemma 3 of [kAC17]_, and good to start from.

    Each begins with a row and takes in, again and again, the row that leaves most weight in common. Rows begin in the
    order of what they share with the (k - 1)-th most similar row; the heaviest sets come first.
    """
    by_row = sp.csr_matrix(reduced.matrix, dtype=np.float64)
    most = max(_ROW_STARTS, min(_COMPARED_ROWS, _COMPARED_CELLS // max(1, reduced.n_rows)))
    heaviest = np.argsort(-(by_row @ weights), kind="stable")[:most]
    shared = (by_row[heaviest].multiply(weights.astype(np.float64)) @ by_row.T).toarray()
    found: set[tuple[int, ...]] = set()
    for start in np.argsort(-_reached_by(shared, reduced.counts, k), kind="stable")[:_ROW_STARTS].tolist():
        if budget.is_spent():
            break
        found.add(_common_columns(by_row, reduced.held, weights, int(heaviest[start]), k))
    return sorted(found - {()}, key=lambda columns: (-int(weights[list(columns)].sum()), columns))


def _reached_by(shared: Reals, counts: Counts, k: int) -> Reals:
    """For every row the weight that it shares with at least k rows, counted one by one; persons as if they add up."""
    order = np.argsort(-shared, axis=1, kind="stable")
    n_rows = np.cumsum(counts[order], axis=1)
    last = np.minimum((n_rows < k).sum(axis=1), shared.shape[1] - 1)
    return np.asarray(shared[np.arange(len(shared)), order[np.arange(len(shared)), last]])


def _common_columns(by_row: sp.csr_matrix, held: Held, weights: Counts, start: int, k: int) -> tuple[int, ...]:
    common = by_row[start].indices
    used = np.zeros(len(held.counts), dtype=np.bool_)
    used[start] = True

    def is_crowd() -> bool:
        return int(held.support(used[None, :])[0]) >= k

    while not is_crowd() and len(common):
        kept = np.asarray(by_row[:, common] @ weights[common]).ravel()
        kept[used] = -1
        best = int(np.argmax(kept))
        used[best] = True
        common = np.intersect1d(common, by_row[best].indices)
    return tuple(sorted(common.tolist())) if is_crowd() else ()
