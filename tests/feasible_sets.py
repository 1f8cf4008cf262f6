"""Searches over the feasible sets of a table, asked with the table itself instead of what it is reduced to."""

from __future__ import annotations

from sfumato.mechanisms.containment.feasibility import Enumeration, maximal_sets_of, reduce_table
from sfumato.mechanisms.containment.improvement import _with_columns, improve


def maximal_feasible_sets(matrix, k, limit=10_000):
    """Feasible sets that no feature can join; a table of fewer than k rows has none."""
    if 0 < matrix.shape[0] < k:
        return Enumeration((), complete=True)
    return maximal_sets_of(reduce_table(matrix, k), k, limit)


def improved_set(matrix, features, weights, k, budget):
    """Exchange features of a feasible set as long as that raises the sum of their weights."""
    reduced = reduce_table(matrix, k)
    better = improve(_with_columns(reduced, k, reduced.columns(features)), reduced.weights(weights), budget)
    return reduced.features(better.chosen)
