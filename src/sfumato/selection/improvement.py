"""Better feasible sets from a given one: exchanges of columns, and good sets to start from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.selection.budget import TimeBudget
from sfumato.selection.reduction import Counts, Reduced
from sfumato.selection.swapping import SwappableRows

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
    best, _ = improve(best, weights, budget)
    return tuple(sorted(best.chosen))


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
    better, _ = improve(rows, weights[1], budget, worth)
    return tuple(sorted(better.chosen))


def _with_columns(reduced: Reduced, k: int, columns: Iterable[int]) -> SwappableRows:
    """Choose a feasible set."""
    rows = SwappableRows(reduced, k)
    for column in columns:
        rows.add(column)
    return rows


def improve(
    rows: SwappableRows, weights: Counts, budget: TimeBudget, worth: Worth | None = None
) -> tuple[SwappableRows, bool]:
    """Make a set maximal, then exchange columns as long as that raises its worth.

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
    rows : SwappableRows
        The table with the better set.
    finished : bool
        Whether no exchange is left; False if the budget was spent before.
    """
    order = heaviest_first(weights)
    if not _fill(rows, order, budget):
        return rows, False
    while True:
        better = _exchange_one(rows, order, weights, worth, budget) or _exchange_two(
            rows, order, weights, worth, budget
        )
        if better is None:
            return rows, not budget.is_spent()
        rows = better


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
        found.add(_common_columns(by_row, reduced.counts, weights, int(heaviest[start]), k))
    return sorted(found - {()}, key=lambda columns: (-int(weights[list(columns)].sum()), columns))


def _reached_by(shared: Reals, counts: Counts, k: int) -> Reals:
    """For every row the weight that it shares with at least k rows, counted one by one."""
    order = np.argsort(-shared, axis=1, kind="stable")
    n_rows = np.cumsum(counts[order], axis=1)
    last = np.minimum((n_rows < k).sum(axis=1), shared.shape[1] - 1)
    return np.asarray(shared[np.arange(len(shared)), order[np.arange(len(shared)), last]])


def _common_columns(by_row: sp.csr_matrix, counts: Counts, weights: Counts, start: int, k: int) -> tuple[int, ...]:
    common = by_row[start].indices
    used = np.zeros(len(counts), dtype=np.bool_)
    used[start] = True
    while counts[used].sum() < k and len(common):
        kept = np.asarray(by_row[:, common] @ weights[common]).ravel()
        kept[used] = -1
        best = int(np.argmax(kept))
        used[best] = True
        common = np.intersect1d(common, by_row[best].indices)
    return tuple(sorted(common.tolist())) if counts[used].sum() >= k else ()
