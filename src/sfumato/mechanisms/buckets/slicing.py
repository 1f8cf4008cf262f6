"""Slicing: columns in slices of what belongs together, rows in buckets, and slices parted within each bucket.

References
----------
.. [LLZM12] Li, Li, Zhang, Molloy: Slicing: A New Approach for Privacy Preserving Data Publishing.
   IEEE TKDE 24(3) (2012).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.counting.counts import AnyCounts, DenseCounts, Levels, Numbers
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.guarantees.buckets import BucketDiversity, BucketSize
from sfumato.manifest import AnyTable
from sfumato.mechanisms.axes import axes_of
from sfumato.mechanisms.base import SEEDS, Compared, Mechanism, MechanismInfo, Release
from sfumato.mechanisms.buckets.buckets import (
    LINKS_ROWS,
    Ids,
    bucketed_release,
    check_seed,
    checked_table,
    free_name,
    sensitive_codes,
)
from sfumato.mechanisms.constraints import Flags, Limit
from sfumato.mechanisms.estimator import Estimator
from sfumato.mechanisms.mondrian.division import mondrian_partition
from sfumato.mechanisms.recoder import check_group_size
from sfumato.parameters import ParameterSpec
from sfumato.progress import Progress
from sfumato.schema import WITHHELD, Kind, Role
from sfumato.table.coding import Table

# Which columns belong together: their mean-square contingency, and k-medoids on it.
#
# References ---------- .. [LLZM12] Li, Li, Zhang, Molloy: Slicing: A New Approach for Privacy Preserving Data
# Publishing. IEEE TKDE 24(3) (2012). .. [KR90] Kaufman, Rousseeuw: Finding Groups in Data. Wiley (1990).


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


BUCKET = "bucket"


@dataclass(frozen=True, eq=False)
class ShareLimit:
    """No sensitive value in more than 1/l of a part's rows that agree on the columns next to the sensitive one.

    ``block_starts`` says where the labels of one combination of values beside begin: labels are ordered by it. Holds
    for a part when it holds for two parts that make it up.

    Examples
    --------
    >>> limit = ShareLimit(2, np.array([0, 2]))
    >>> limit.are_kept_by(DenseCounts.alone(np.array([[1, 1, 0, 0], [3, 3, 2, 1]]))).tolist()
    [True, False]
    """

    l: int  # noqa: E741  # the field's own name
    block_starts: NDArray[np.intp]

    def are_kept_by(self, counts: AnyCounts) -> Flags:
        """Whether the most frequent value is rare enough in every block."""
        sizes, largest = self._of_blocks(counts)
        return np.asarray((largest * self.l <= sizes).all(axis=1))

    def levels(self, counts: AnyCounts) -> Levels:
        """Smallest quotient of a block's rows and those with its most frequent value."""
        sizes, largest = self._of_blocks(counts)
        quotients = np.where(largest > 0, sizes / np.maximum(largest, 1), np.inf)
        return np.asarray(quotients.min(axis=1))

    def describe(self) -> str:
        """Say the constraint in a few words."""
        return f"no value in more than 1/{self.l} of the rows"

    def _of_blocks(self, counts: AnyCounts) -> tuple[Numbers, Numbers]:
        """Rows of every block, and of its most frequent value."""
        sizes = np.add.reduceat(counts.array, self.block_starts, axis=1)
        return sizes, np.maximum.reduceat(counts.array, self.block_starts, axis=1)


@dataclass(frozen=True, eq=False)
class _Slicing:
    slices: list[tuple[str, ...]]
    beside: tuple[str, ...]
    bucket_of_row: Ids
    contingency_kept: float


class Slicer(Mechanism, Estimator):
    """Put columns into slices and rows into buckets, and part the slices of each bucket from each other.

    Slicing of [LLZM12]_. Values of one slice stay together; which values of two slices belong to one row is told only
    up to the bucket. Every cell value is released as it is; all rows are kept, each in its bucket's places.

    Parameters
    ----------
    k : int, default=5
        Rows of a bucket.
    l : int, default=2
        Nobody's sensitive value is more probable than 1/l.
    sensitive : str or None
        Column that l is about; ``None`` takes the one with the role sensitive. A missing value is a value.
    n_slices : int or None
        Slices besides that of the sensitive column; ``None`` for one to about two columns.
    n_beside_sensitive : int, default=1
        How many quasi-identifiers share the slice of the sensitive column at most: those with the highest
        contingency with it of those that leave l within reach.
    random_state : int, default=0
        Public seed of the order of values in a bucket, which depends on nothing else but these values.

    Attributes
    ----------
    slices_ : list of tuple of str
        The last one holds the sensitive column.

    Notes
    -----
    **What is promised.** In every bucket, among the rows with the same values beside the sensitive one, none is in more
    than 1/l. Whatever buckets match a person's quasi-identifiers and however probable each is, the person's value is
    then at most 1/l probable: l-diverse slicing of [LLZM12]_, Definitions 5 and 6
    (tests compute it literally), even to somebody who knows
    the bucket.

    **What is not.** A slice may hold values that one person has, so that this person is seen to be in the table, with
    all columns of that slice. Recombined rows hide membership only where other rows match as well. k-anonymity does not
    hold. What links columns within a slice is exact, also for target and other columns that share it.

    **Deviations.** Rows are divided by :func:`sfumato.mechanisms.mondrian.division.mondrian_partition`. [LLZM12]_
    accepts a cut when all rows of the table stay l-diverse over all buckets; ours judges each side by itself, which is
    stricter, can be audited on the release alone, and takes O(n) a depth. The default number of slices is ours.

    References
    ----------
    .. [LLZM12] Li, Li, Zhang, Molloy: Slicing: A New Approach for Privacy Preserving Data Publishing.
       IEEE TKDE 24(3) (2012).

    Examples
    --------
    >>> from sfumato.datasets.admissions import admissions
    >>> release = Slicer(k=5, l=3).release(admissions(n_rows=200))
    >>> release.manifest.evidence["risk"]["smallest_bucket"] >= 5
    True
    """

    mechanism_name: ClassVar[str] = "slicing"
    parameter_specs: ClassVar[Mapping[str, ParameterSpec]] = {
        "k": ParameterSpec("rows of a bucket", at_least=2),
        "l": ParameterSpec("a sensitive value is at most 1/l probable", at_least=2),
        "sensitive": ParameterSpec("column of l (default: the one with the role sensitive)"),
        "n_slices": ParameterSpec(
            "slices apart from that of the sensitive column (default: of two columns)", at_most=99
        ),
        "n_beside_sensitive": ParameterSpec("quasi-identifiers that share the sensitive column's slice", at_most=99),
        "random_state": ParameterSpec("public seed of the order within buckets", at_least=0, below=SEEDS),
    }

    def __init__(
        self,
        k: int = 5,
        l: int = 2,  # noqa: E741  # the field's own name
        sensitive: str | None = None,
        n_slices: int | None = None,
        n_beside_sensitive: int = 1,
        random_state: int = 0,
    ) -> None:
        self.k = k
        self.l = l
        self.sensitive = sensitive
        self.n_slices = n_slices
        self.n_beside_sensitive = n_beside_sensitive
        self.random_state = random_state

    def why_rows_count(self) -> str:
        """Say that a promise by persons would be hollow: rows of one person can be seen to belong together."""
        return LINKS_ROWS

    def release(self, table: AnyTable, *, progress: Progress | None = None) -> Release:
        """Slice a table and describe the result.

        Raises
        ------
        PrivacyNotAchievableError
            If the table has fewer than k rows, or a sensitive value is in more than 1/l of all rows.
        """
        self._check_parameters()
        table, name = checked_table(table, self.sensitive)
        self.check_parameters("k")
        check_group_size(self.k, table.n_rows)
        found = self._slice(table, name, progress)
        self.slices_ = found.slices
        quasi = table.schema.names(Role.QUASI_IDENTIFIER)
        bucket = free_name(BUCKET, table)
        sizes = np.bincount(found.bucket_of_row)
        return bucketed_release(
            table,
            found.bucket_of_row,
            found.slices,
            bucket=bucket,
            seed=self.random_state,
            mechanism=self.mechanism_name,
            parameters=self.get_params(deep=False) | {"k": int(self.k), "l": int(self.l)},
            guarantees=[
                BucketSize(quasi, bucket, int(self.k)),
                BucketDiversity(quasi, bucket, int(self.l), name, found.beside),
            ],
            evidence={
                "utility": {
                    "n_slices": len(found.slices),
                    "n_buckets": len(sizes),
                    "contingency_within_slices_fraction": found.contingency_kept,
                },
                "risk": {"smallest_bucket": int(sizes.min())},
            },
        )

    def _check_parameters(self) -> None:
        self.check_parameters("l")
        check_seed(self.random_state)
        n_slices, n_beside = self.n_slices, self.n_beside_sensitive
        if n_slices is not None and (isinstance(n_slices, bool) or not isinstance(n_slices, int) or n_slices < 1):
            raise InvalidParameterError("n_slices", f"got {n_slices!r}", allowed="a whole number from 1, or None")
        if isinstance(n_beside, bool) or not isinstance(n_beside, int) or n_beside < 0:
            raise InvalidParameterError("n_beside_sensitive", f"got {n_beside!r}", allowed="a whole number from 0")

    def _slice(self, table: Table, name: str, progress: Progress | None) -> _Slicing:
        names = [c.name for c in table.schema if c.role not in WITHHELD and c.name != name]
        contingency = mean_square_contingency(table, [*names, name])
        beside = self._beside(table, name, dict(zip(names, contingency[-1].tolist(), strict=False)))
        others = [i for i, column in enumerate(names) if column not in beside]
        n_groups = -(-len(others) // 2) if self.n_slices is None else self.n_slices
        group_of = k_medoids(1 - contingency[np.ix_(others, others)], n_groups)
        members = [[names[i] for i, g in zip(others, group_of, strict=True) if g == group] for group in set(group_of)]
        slices = [*map(tuple, members), (*beside, name)]
        labels, limit = _limit(table, name, beside, int(self.l))
        partition = mondrian_partition(
            axes_of(table, table.schema.names(Role.QUASI_IDENTIFIER)),
            int(self.k),
            limits=[Limit(limit, labels)],
            progress=progress,
        )
        place = {column: i for i, group in enumerate(slices) for column in group}
        of_column = np.array([place[column] for column in (*names, name)])
        together = np.equal.outer(of_column, of_column)
        np.fill_diagonal(contingency, 0.0)
        kept = float(contingency[together].sum() / max(contingency.sum(), 1e-300))
        return _Slicing(slices, beside, partition.of_row, kept)

    def _beside(self, table: Table, name: str, contingency: dict[str, float]) -> tuple[str, ...]:
        """Choose the quasi-identifiers beside the sensitive column, one after the other."""
        chosen: tuple[str, ...] = ()
        quasi = table.schema.names(Role.QUASI_IDENTIFIER)
        for column in sorted(quasi, key=lambda column: -contingency[column]):
            if len(chosen) == self.n_beside_sensitive:
                break
            labels, limit = _limit(table, name, (*chosen, column), int(self.l))
            if limit.are_kept_by(DenseCounts.alone(np.bincount(labels)[np.newaxis])).all():
                chosen = (*chosen, column)
        return chosen


def _limit(table: Table, name: str, beside: tuple[str, ...], l: int) -> tuple[Ids, ShareLimit]:  # noqa: E741
    """Label every row by its values beside the sensitive one and that one, and limit the shares of the latter."""
    combinations = np.zeros(table.n_rows, dtype=np.int64)
    for column in beside:
        combinations = np.unique(combinations * table[column].n_distinct + table[column].codes, return_inverse=True)[1]
    sensitive = sensitive_codes(table, name).astype(np.int64)
    pairs, labels = np.unique(combinations * (int(sensitive.max(initial=0)) + 1) + sensitive, return_inverse=True)
    of_label = pairs // (int(sensitive.max(initial=0)) + 1)
    starts = np.flatnonzero(np.concatenate([[True], of_label[1:] != of_label[:-1]]))
    if not len(pairs):
        raise PrivacyNotAchievableError("buckets of a table without rows", best_level=0)
    return labels.astype(np.int32), ShareLimit(l, starts)


DECLARATION = MechanismInfo(
    Slicer,
    why="keeps every cell value and the links of correlated columns; for tables of many columns",
    promises="no sensitive value of a person is more probable than 1/l, in buckets of k rows; not k-anonymity",
    compared=Compared(({"k": 5, "l": 2}, {"k": 10, "l": 3}), needs_sensitive=True, most_columns=200),
    guarantee="bucket-diversity",
)
