"""MDAV microaggregation as a mechanism: clusters of k to 2k - 1 near rows, each with one value a column.

Maximum distance to average vector, in the generic form of [DFT05]_: while 3k rows are left, take the row farthest from
their average and the row farthest from that one, and let each gather its k - 1 nearest rows. Of 2k to 3k - 1 rows that
are left, the farthest from the average gathers its nearest, and the others are the last cluster.

The distance of two rows is Euclidean. Columns with an order (numbers, dates, levels) count by their positions, divided
by their standard deviation. Of other columns equal values are 0 apart and different ones 1, which is a distance between
points as well: the average is that of 0/1 columns, one a value. Missing is a value of its own; on a column with an
order such a row stands at the average, 1 away from rows with a value.

What a cluster shows is its typical values (:mod:`sfumato.mechanisms.drop_in.typical`): the median of a column with an
order and not its mean, so that every cell is a value of the column, in the column's type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SchemaError
from sfumato.guarantees import Guarantee, KAnonymity
from sfumato.learning.c45.tree import MISSING
from sfumato.manifest import AnyTable
from sfumato.mechanisms.axes import Axis
from sfumato.mechanisms.base import Cells, Compared, MechanismInfo, Release
from sfumato.mechanisms.drop_in.typical import in_values
from sfumato.mechanisms.recoder import Cover, Recoder, Recoding
from sfumato.parameters import ParameterSpec
from sfumato.progress import Progress
from sfumato.schema import WITHHELD, Role
from sfumato.table.coding import Table

Ids = NDArray[np.int32]
Numbers = NDArray[np.float64]
Places = NDArray[np.intp]

_MOST_ROWS_COMPARED = 20_000


@dataclass(frozen=True, eq=False, repr=False)
class Points:
    """Rows as points: standardised numbers, and codes of columns whose values are equal or not.

    Parameters
    ----------
    numbers : ndarray of float64, shape (n_numbers, n_rows)
    codes : ndarray of int32, shape (n_codes, n_rows)
        From 0; missing is the last code of its column.
    """

    numbers: Numbers
    codes: Ids

    @classmethod
    def of(cls, axes: Sequence[Axis], scale: Mapping[str, tuple[float, float]]) -> Points:
        """Place the rows of axes; ``scale`` has mean and standard deviation of each with an order."""
        n_rows = len(axes[0].codes) if axes else 0
        numbers, codes = [], []
        for axis in axes:
            is_missing = axis.codes == MISSING
            if axis.positions is None:
                codes.append(np.where(is_missing, axis.n_values, axis.codes))
                continue
            mean, spread = scale[axis.name]
            positions = np.append(axis.positions, mean)[np.where(is_missing, axis.n_values, axis.codes)]
            numbers.append((positions - mean) / spread if spread > 0 else np.zeros(n_rows))
            if is_missing.any():
                codes.append(is_missing.astype(np.int32))
        return cls(
            np.array(numbers, dtype=np.float64).reshape(-1, n_rows), np.array(codes, dtype=np.int32).reshape(-1, n_rows)
        )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.numbers.shape[1])

    def from_row(self, row: int, rows: Places) -> Numbers:
        """Squared distances of some rows from a row."""
        distances = np.zeros(len(rows))
        for column in self.numbers:
            apart = column[rows] - column[row]
            distances += apart * apart
        for codes in self.codes:
            distances += codes[rows] != codes[row]
        return distances

    def from_average(self, rows: Places) -> Numbers:
        """Squared distances of some rows from their average.

        A value of share p is half of 1 - 2p plus the sum of all squared shares away from the average: 0/1 columns are
        divided by the root of 2, so that two different values are 1 apart.
        """
        distances = np.zeros(len(rows))
        for column in self.numbers:
            apart = column[rows] - column[rows].mean()
            distances += apart * apart
        for codes in self.codes:
            own = codes[rows]
            shares = np.bincount(own) / len(rows)
            distances += ((1 + shares @ shares) / 2 - shares)[own]
        return distances


def mdav_clusters(points: Points, k: int, progress: Progress | None = None) -> Ids:
    """Divide rows into clusters of k to 2k - 1 by MDAV; ties go to the row that comes first.

    Examples
    --------
    >>> numbers = np.array([[0.0, 10, 1, 11, 0.5, 10.5]])
    >>> mdav_clusters(Points(numbers, np.zeros((0, 6), dtype=np.int32)), 3).tolist()
    [0, 1, 0, 1, 0, 1]
    """
    left = np.arange(points.n_rows)
    cluster_of = np.zeros(points.n_rows, dtype=np.int32)
    n_clusters = 0
    while len(left) >= 2 * k:
        if progress and n_clusters % 64 == 0:
            progress(points.n_rows - len(left), points.n_rows, "clusters")
        far = int(left[np.argmax(points.from_average(left))])
        distances = points.from_row(far, left)
        seeds = [far]
        if len(left) >= 3 * k:
            seeds.append(int(left[np.argmax(distances)]))
        for place, seed in enumerate(seeds):
            if place:
                distances = points.from_row(seed, left)
            own = _nearest(distances, int(np.searchsorted(left, seed)), k)
            cluster_of[left[own]] = n_clusters
            n_clusters += 1
            left = np.delete(left, own)
    cluster_of[left] = n_clusters
    return cluster_of


def _nearest(distances: Numbers, seed: int, k: int) -> Places:
    """Places of the k nearest rows, the seed among them; of rows equally far away the first."""
    distances = distances.copy()
    distances[seed] = -1.0
    limit = np.partition(distances, k - 1)[k - 1]
    nearer = np.flatnonzero(distances < limit)
    return np.concatenate([nearer, np.flatnonzero(distances == limit)[: k - len(nearer)]])


class MDAV(Recoder):
    """Gather near rows in clusters of k to 2k - 1, and release one typical value a column for each cluster.

    MDAV-generic of [DFT05]_, after [DFM02]_. All rows are kept; columns that are no quasi-identifiers travel along
    unchanged. The release has the original's columns and types: any library trains on it. With
    ``with_cells("ranges")`` the same clusters are released as ranges and sets.

    Rows are taken in an order that follows from their values, so that a release does not depend on the order of the
    input. The time grows with the square of the rows.

    Parameters
    ----------
    k : int, default=5
        Rows of a cluster, at least.

    References
    ----------
    .. [DFM02] Domingo-Ferrer, Mateo-Sanz: Practical Data-Oriented Microaggregation for Statistical Disclosure Control.
       IEEE TKDE 14(1) (2002).
    .. [DFT05] Domingo-Ferrer, Torra: Ordinal, Continuous and Heterogeneous k-Anonymity through Microaggregation. Data
       Mining and Knowledge Discovery 11 (2005).

    Examples
    --------
    >>> from sfumato.datasets.admissions import admissions
    >>> release = MDAV(k=5).release(admissions(n_rows=100).keep(["age", "sex", "readmitted"]))
    >>> [entry["rule"] for entry in release.manifest.recodings], str(release.table.schema["age"].kind)
    (['typical', 'typical'], 'numeric')
    """

    mechanism_name: ClassVar[str] = "mdav"
    cells: Cells = "values"
    parameter_specs: ClassVar[Mapping[str, ParameterSpec]] = {
        "k": ParameterSpec("rows of a cluster, at least", at_least=2),
    }

    def __init__(self, k: int = 5) -> None:
        self.k = k

    def guarantees(self, table: Table) -> list[Guarantee]:
        """Promise k-anonymity over all quasi-identifiers."""
        return [KAnonymity(int(self.k), table.schema.names(Role.QUASI_IDENTIFIER))]

    def recode(self, table: Table, *, progress: Progress | None = None) -> Recoding:
        """Gather the rows in clusters."""
        table = self._checked(table)
        axes = self._axes(table)
        scale = {axis.name: _mean_and_spread(axis) for axis in axes if axis.positions is not None}
        points = Points.of(axes, scale)
        order = _order_of_values(table, axes)
        clusters = np.empty(table.n_rows, dtype=np.int32)
        ordered = Points(points.numbers[:, order], points.codes[:, order])
        clusters[order] = mdav_clusters(ordered, int(self.k), progress)

        def nearest_cluster(new: Sequence[Axis]) -> Ids:
            return _clusters_of_nearest(points, clusters, Points.of(new, scale))

        return Recoding(axes, Cover.of_groups(clusters), nearest_cluster)

    def release(self, table: AnyTable, *, progress: Progress | None = None) -> Release:
        """Release the typical values of every cluster, or its ranges and sets.

        Raises
        ------
        PrivacyNotAchievableError
            If the table has fewer than k rows.
        """
        made = super().release(table, progress=progress)
        return in_values(table, made) if self.cells == "values" else made


def _mean_and_spread(axis: Axis) -> tuple[float, float]:
    known = axis.codes[axis.codes != MISSING]
    if axis.positions is None or not len(known):
        return 0.0, 0.0
    # from the middle of the span, so that squares of large numbers do not overflow
    middle = axis.positions[0] / 2 + axis.positions[-1] / 2
    values = axis.positions[known] - middle
    return float(middle + values.mean()), float(values.std())


def _order_of_values(table: Table, axes: Sequence[Axis]) -> Places:
    """Rows by the values of quasi-identifiers, then by all that is released besides: no order of the input counts."""
    names = {axis.name for axis in axes}
    beside = [c.name for c in table.schema if c.role not in WITHHELD and c.name not in names]
    return np.lexsort([*(table[name].codes for name in reversed(beside)), *(axis.codes for axis in reversed(axes))])


def _clusters_of_nearest(points: Points, clusters: Ids, new: Points) -> Ids:
    """Cluster of the row that is nearest to each new row."""
    every = np.arange(points.n_rows)
    found = np.empty(new.n_rows, dtype=np.int32)
    missing_columns = new.codes.shape[0] != points.codes.shape[0]
    n_codes = 0 if missing_columns else len(points.codes)  # where missing values were seen in one table only
    both = Points(np.hstack([points.numbers, new.numbers]), np.hstack([points.codes[:n_codes], new.codes[:n_codes]]))
    for i in range(new.n_rows):
        found[i] = clusters[int(np.argmin(both.from_row(points.n_rows + i, every)))]
    return found


def _settings_to_compare(table: AnyTable) -> Sequence[Mapping[str, Any]]:
    if table.n_rows > _MOST_ROWS_COMPARED:
        problem = f"{table.n_rows:,} rows are more than {_MOST_ROWS_COMPARED:,}, and its time grows with their square"
        raise SchemaError(problem)
    return Compared(({"k": 5}, {"k": 10}), most_columns=100)(table)


DECLARATION = MechanismInfo(
    MDAV,
    why="clusters of near rows with one typical value a column: the original's types, for any library",
    promises="k-anonymity of typical values (medians, most frequent values)",
    compared=_settings_to_compare,
    cost=8.0,
)
