"""l-diverse slicing to the letter: how probable a sensitive value is over all buckets that match a person.

References
----------
.. [LLZM12] Li, Li, Zhang, Molloy: Slicing: A New Approach for Privacy Preserving Data Publishing.
   IEEE TKDE 24(3) (2012).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.mechanisms.buckets.buckets import Ids, sensitive_codes
from sfumato.schema import Role
from sfumato.table.coding import Table

PEOPLE_AT_ONCE = 1024

Numbers = NDArray[np.int64]


def sliced_diversity_level(table: Table, bucket_of_row: Ids, slices: Sequence[Sequence[str]], sensitive: str) -> float:
    r"""Largest l for which slicing a table in this way is l-diverse: 1 over the most probable sensitive value.

    With :math:`f(t, B)` the product over slices of the share of rows of bucket B that have a row t's quasi-identifiers
    of the slice, :math:`p(t, B) = f(t, B) / \sum_B f(t, B)`, and :math:`p(s | t, B)` the share of value s among the
    entries of the sensitive slice that match t in B: :math:`p(t, s) = \sum_B p(t, B)\, p(s | t, B)`, to be at most 1/l
    for every row t and value s ([LLZM12]_, Section 2.3). Higher is safer. A table without rows has level 0.

    Parameters
    ----------
    table : Table
        The original, whose quasi-identifiers an attacker knows.
    bucket_of_row : ndarray of int32
    slices : sequence of sequence of str
        One of them holds the sensitive column.

    Notes
    -----
    Never lower than the quotient that :class:`sfumato.guarantees.BucketDiversity` promises: p(t, s) is a mean of
    shares that are at most 1/l each. Time O(distinct quasi-identifiers * buckets) at worst.
    """
    if not table.n_rows:
        return 0.0
    quasi = frozenset(table.schema.names(Role.QUASI_IDENTIFIER))
    keys = [_combinations(table, [name for name in names if name in quasi]) for names in slices]
    (own,) = (i for i, names in enumerate(slices) if sensitive in names)
    people = np.unique(np.column_stack(keys), axis=0)
    counts = [_counts(key, bucket_of_row) for key in keys]
    sizes = np.bincount(bucket_of_row)
    shares = [sp.csr_matrix(held.multiply(1 / sizes)) for held in counts]
    values = sensitive_codes(table, sensitive)
    of_value = [_counts(keys[own], bucket_of_row, values == value, counts[own].shape) for value in np.unique(values)]
    most_probable = 0.0
    for begin in range(0, len(people), PEOPLE_AT_ONCE):
        some = people[begin : begin + PEOPLE_AT_ONCE]
        weights = _weights(some, shares, own).multiply(1 / sizes).tocsr()
        total = np.asarray(weights.multiply(counts[own][some[:, own]]).sum(axis=1)).ravel()
        for having in of_value:
            probability = np.asarray(weights.multiply(having[some[:, own]]).sum(axis=1)).ravel() / total
            most_probable = max(most_probable, float(probability.max()))
    return 1 / most_probable


def _combinations(table: Table, names: Sequence[str]) -> Numbers:
    ids = np.zeros(table.n_rows, dtype=np.int64)
    for name in names:
        ids = np.unique(ids * table[name].n_distinct + table[name].codes, return_inverse=True)[1]
    return ids


def _counts(
    key: Numbers, buckets: Ids, chosen: NDArray[np.bool_] | slice = slice(None), shape: tuple[int, int] | None = None
) -> sp.csr_matrix:
    """Rows of each key in each bucket."""
    at = key[chosen], buckets[chosen]
    return sp.csr_matrix((np.ones(len(at[0])), at), shape=shape or (int(key.max()) + 1, int(buckets.max()) + 1))


def _weights(people: Numbers, shares: Sequence[sp.csr_matrix], own: int) -> sp.csr_matrix:
    """f(t, B) without the factor of the sensitive slice, 0 where that does not match."""
    density = [held.nnz / held.shape[0] for held in shares]
    others = sorted(set(range(len(shares))) - {own}, key=density.__getitem__)
    weights = shares[own][people[:, own]].sign()
    for i in others:
        weights = weights.multiply(shares[i][people[:, i]]).tocsr()
    return weights
