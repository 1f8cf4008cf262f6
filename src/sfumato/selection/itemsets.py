"""The largest and the heaviest maximal frequent itemsets of a binary table, without listing all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # comes with scikit-learn

from sfumato.contract import Progress
from sfumato.selection.budget import TimeBudget
from sfumato.selection.itemset_search import ItemsetSearch
from sfumato.selection.transactions import Transactions, largest_size_bound

_EXACT_BITS = 53  # whole numbers of so many bits are exact as floats
_DESCENT = 0.75


@dataclass(frozen=True)
class FoundItemsets:
    """Maximal frequent itemsets, best first, and how far the search for them got.

    Parameters
    ----------
    itemsets : list of tuple of int
        Positions of the features of each set, ascending.
    worths : list of int
        What each is worth: the sum of its features' weights, or its size when the largest were asked for.
    proven : bool
        Whether the search came to its end: no maximal set that is missing is better than one that is listed.
    bound : int
        No frequent itemset is worth more than this; what the first one is worth if that is proven.
    n_nodes : int
        How often the search was divided.
    """

    itemsets: list[tuple[int, ...]]
    worths: list[int]
    proven: bool
    bound: int
    n_nodes: int


def heaviest_itemsets(
    matrix: sp.csc_matrix,
    weights: NDArray[np.int64],
    k: int,
    r: int = 1,
    time_budget: float = 30.0,
    progress: Progress | None = None,
    row_counts: NDArray[np.int64] | None = None,
) -> FoundItemsets:
    """Find the r maximal frequent itemsets whose features weigh most.

    Parameters
    ----------
    matrix : csc_matrix
        Rows × features, canonical 0/1.
    weights : array of int
        Weight of every feature: at least 1, or 0 for a feature that is one in every row. Sums above 2**53 are rounded.
    k : int
        Rows that must contain a set.
    time_budget : float
        Seconds after which the best found so far is returned. Reading the table in, which is linear in its ones, is
        counted but not cut short.
    row_counts : array of int or None
        How many rows each row of the matrix stands for; None: one.

    Examples
    --------
    >>> from sfumato.datasets.papers import toy_containment_table
    >>> toy = toy_containment_table()  # x2 and x4 weigh most; no two rows have both
    >>> heaviest_itemsets(toy.matrix, np.array([1, 5, 3, 4, 2]), k=2)
    FoundItemsets(itemsets=[(0, 1, 4)], worths=[8], proven=True, bound=8, n_nodes=0)
    """
    budget = TimeBudget(time_budget)
    transactions = Transactions.from_matrix(matrix, k, row_counts)
    search = ItemsetSearch(transactions, transactions.per_item(np.maximum(weights, 1)), r)
    bound, proven = _descend(search, budget, progress)
    return _answer(search, weights, bound, proven)


def largest_itemsets(
    matrix: sp.csc_matrix,
    tie_weights: NDArray[np.int64],
    k: int,
    r: int = 20,
    time_budget: float = 30.0,
    progress: Progress | None = None,
    row_counts: NDArray[np.int64] | None = None,
) -> FoundItemsets:
    """Find the r maximal frequent itemsets with most features; of equally large ones, the heavier.

    Parameters are those of :func:`heaviest_itemsets`. Weights that cannot be added to a size exactly are rounded down
    to where they can.

    Examples
    --------
    >>> from sfumato.datasets.papers import toy_containment_table
    >>> toy = toy_containment_table()
    >>> found = largest_itemsets(toy.matrix, np.array([1, 5, 3, 4, 2]), k=2)
    >>> found.itemsets  # M_2 of [kAC17]_
    [(0, 1, 4), (0, 3, 4), (0, 2, 4)]
    """
    budget = TimeBudget(time_budget)
    transactions = Transactions.from_matrix(matrix, k, row_counts)
    total = int(tie_weights[transactions.features].sum()) + 1
    shift = max(0, (total * (len(transactions.features) + 1)).bit_length() - _EXACT_BITS)
    ties = tie_weights >> shift
    unit = int(ties[transactions.features].sum()) + 1
    worth = transactions.per_item(ties + unit)
    search = ItemsetSearch(transactions, worth, r, unit, largest_size_bound(transactions))
    bound, proven = _descend(search, budget, progress)
    return _answer(search, np.ones(matrix.shape[1], dtype=np.int64), bound // unit, proven)


def _answer(search: ItemsetSearch, weights: NDArray[np.int64], bound: float, proven: bool) -> FoundItemsets:
    itemsets = [search.transactions.features_of(items) for items in search.best.ranked()]
    worths = [int(weights[list(itemset)].sum()) for itemset in itemsets]
    if proven:
        bound = worths[0] if worths else 0
    return FoundItemsets(itemsets, worths, proven, int(bound), search.n_nodes)


def _descend(search: ItemsetSearch, budget: TimeBudget, progress: Progress | None) -> tuple[float, bool]:
    """Look for sets above a high floor first, then above lower ones, until the r best are known or time is up.

    Above a high floor little is left to search, so a floor below the r-th best is reached soon, and each one passed
    bounds what there can be. When a floor takes too long, the best rows give a start for a search of everything.
    Returns a bound on every frequent set, and whether the search came to its end.
    """
    bound = search.bound(search.row_worths, search.transactions.copies)
    least = float(search.worth.min(initial=bound))
    floor = search.first_floor(bound)
    n_passes = 0
    with _blas().limit(limits=1, user_api="blas"):  # many small products: threads would only wait for each other
        _seed(search)
        while bound:
            complete = search.run(floor, budget, budget.share(1 / 3 if floor > search.best.floor else 1))
            bound = min(bound, max(search.left, search.floor))
            if complete and floor <= search.best.floor:
                break
            if not complete:
                if budget.is_spent():
                    return max(bound, search.best.best), False
                _dive_from_best_rows(search, budget.share(1 / 5))
            floor = floor * _DESCENT if complete and floor * _DESCENT >= least else 0.0
            n_passes += 1
            if progress:
                progress(n_passes, n_passes + 1, "searches for itemsets above a falling worth")
    return search.best.best, True


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def _seed(search: ItemsetSearch) -> None:
    """Start from the best rows that occur k times, and from what the best row shares with those most like it."""
    transactions = search.transactions
    repeated = np.flatnonzero(transactions.copies >= transactions.k)
    best_first = np.argsort(-search.row_worths[repeated], kind="stable")
    for row in repeated[best_first][: search.best.r].tolist():
        search.offer_extended(transactions.items_of_row(row))
    if transactions.n_rows:
        _dive(search, int(np.argmax(search.row_worths)))


def _dive_from_best_rows(search: ItemsetSearch, budget: TimeBudget) -> None:
    search.pass_floor = 0.0
    for row in np.argsort(-search.row_worths, kind="stable").tolist():
        _dive(search, row)
        if budget.is_spent():
            return


def _dive(search: ItemsetSearch, row: int) -> None:
    """Offer what a row has in common with others, each time the one that keeps most, until k rows hold it."""
    transactions = search.transactions
    common = transactions.items_of_row(row)
    unused = np.ones(transactions.n_rows, dtype=np.bool_)
    n_copies = 0.0
    while n_copies < transactions.k and len(common):
        worth = np.zeros(transactions.n_items)
        worth[common] = search.worth[common]
        shared = np.where(unused, transactions.per_row(worth), -1.0)
        nearest = int(np.argmax(shared))
        unused[nearest] = False
        n_copies += transactions.copies[nearest]
        common = np.intersect1d(common, transactions.items_of_row(nearest), assume_unique=True)
    if len(common):
        search.offer_extended(common)
