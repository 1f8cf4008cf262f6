r"""Which columns belong together: their mean-square contingency, and k-medoids on it.

References
----------
.. [LLZM12] Li, Li, Zhang, Molloy: Slicing: A New Approach for Privacy Preserving Data Publishing.
   IEEE TKDE 24(3) (2012).
.. [KR90] Kaufman, Rousseeuw: Finding Groups in Data. Wiley (1990).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.schema import Kind
from sfumato.table.coding import Table

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

MOST_VALUES = 20
"""Values of a column beyond which it is coarsened before its contingency is measured."""
LEAST_GAIN = 1e-12


def mean_square_contingency(table: Table, names: Sequence[str]) -> Floats:
    r"""Mean-square contingency coefficient of every pair of columns.

    :math:`\phi^2 = \frac{1}{\min(d_1, d_2) - 1} \sum_{ij} \frac{(f_{ij} - f_{i\cdot} f_{\cdot j})^2}{f_{i\cdot}
    f_{\cdot j}}` of [LLZM12]_, Section 4.1: 0 for independent columns, 1 where one tells the other. A constant column
    has 0 with every column. A missing value is a value.

    Notes
    -----
    A column with more than 20 values is coarsened first: numbers and dates into as many bands of about equally many
    rows, other columns to their most frequent values and the rest together. [LLZM12]_ coarsens numbers only; a column
    whose values are nearly all different would be found to tell everything.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.schema import Column, Schema
    >>> cells = pa.table({"a": ["x", "x", "y", "y"], "b": ["1", "1", "2", "2"], "c": ["u", "v", "u", "v"]})
    >>> table = Table.from_arrow(cells, Schema.of(map(Column, "abc")))
    >>> mean_square_contingency(table, ("a", "b", "c"))[0].tolist()
    [1.0, 1.0, 0.0]
    """
    codes = [_coarse(table, name) for name in names]
    n_values = np.array([int(column.max(initial=-1)) + 1 for column in codes])
    if not len(names) or not table.n_rows:
        return np.zeros((len(names), len(names)))
    starts = np.cumsum(n_values) - n_values
    columns = np.concatenate([column + start for column, start in zip(codes, starts, strict=True)])
    rows = np.tile(np.arange(table.n_rows), len(names))
    held = sp.csr_matrix((np.ones(len(rows)), (rows, columns)))
    joint = (held.T @ held).toarray()
    counts = joint.diagonal()
    terms = joint**2 / np.outer(counts, counts)
    sums = np.add.reduceat(np.add.reduceat(terms, starts, axis=0), starts, axis=1)
    sums = (sums + sums.T) / 2  # equal in both directions, whatever the order of summation
    fewest = np.minimum.outer(n_values, n_values)
    return np.asarray(np.where(fewest > 1, np.clip((sums - 1) / np.maximum(fewest - 1, 1), 0.0, 1.0), 0.0))


def _coarse(table: Table, name: str) -> Codes:
    """Code of each row, from 0 without gaps, at most ``MOST_VALUES`` and one for missing."""
    column = table[name]
    if column.n_distinct <= MOST_VALUES:
        return column.codes.astype(np.int64)
    if table.schema[name].kind in (Kind.NUMERIC, Kind.DATE):
        before = np.cumsum(column.counts) - column.counts
        band = before * MOST_VALUES // table.n_rows
    else:
        band = np.full(column.n_distinct, MOST_VALUES - 1)
        band[np.argsort(-column.counts, kind="stable")[: MOST_VALUES - 1]] = np.arange(MOST_VALUES - 1)
    if column.missing_code is not None:
        band[column.missing_code] = MOST_VALUES
    return np.asarray(np.unique(band[column.codes], return_inverse=True)[1], dtype=np.int64)


def k_medoids(distances: Floats, n_groups: int) -> NDArray[np.intp]:
    """Group of each item, by the nearest of ``n_groups`` items chosen for a small sum of distances.

    Partitioning around medoids of [KR90]_: chosen one after the other, then exchanged while an exchange lowers the sum.
    Ties go to the lower number; groups are numbered by their first item.

    Examples
    --------
    >>> k_medoids(np.abs(np.subtract.outer([0.0, 9.0, 1.0, 8.0], [0.0, 9.0, 1.0, 8.0])), 2).tolist()
    [0, 1, 0, 1]
    """
    medoids: list[int] = []
    while len(medoids) < min(n_groups, len(distances)):
        medoids.append(_cheapest(distances, medoids)[1])
    cost = distances[:, medoids].min(axis=1, initial=np.inf).sum()
    while True:
        exchanges = [(*_cheapest(distances, medoids[:i] + medoids[i + 1 :]), i) for i in range(len(medoids))]
        best, item, place = min(exchanges, default=(cost, 0, 0))
        if best >= cost - LEAST_GAIN:
            break
        cost, medoids[place] = best, item
    nearest = distances[:, sorted(medoids)].argmin(axis=1) if medoids else np.zeros(0, dtype=np.intp)
    nearest[sorted(medoids)] = np.arange(len(medoids))  # where two medoids are equal, each is of its own group
    _, first, ids = np.unique(nearest, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[ids], dtype=np.intp)


def _cheapest(distances: Floats, medoids: Sequence[int]) -> tuple[float, int]:
    """Sum of distances with the item that lowers it most beside these medoids, and that item."""
    nearest = distances[:, medoids].min(axis=1, initial=np.inf)
    sums = np.minimum(distances, nearest[:, np.newaxis]).sum(axis=0)
    sums[list(medoids)] = np.inf
    item = int(sums.argmin())
    return float(sums[item]), item
