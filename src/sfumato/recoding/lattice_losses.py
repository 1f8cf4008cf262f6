r"""What a global recoding loses, and how little the nodes above a node can lose.

Lower is better. Losses of columns add up what each column loses: without suppressed rows they follow from the columns'
own value counts and never fall from a node to one above it, and suppressing rows only adds to them, so their value
without suppression bounds all nodes above. Losses of classes (:mod:`sfumato.recoding.lattice_class_losses`) can fall
from a node to one above it that suppresses less, but each has a part that cannot, which is their bound.

========================= ============================================================== ========= ====================
name                      what                                                           range     monotone part
========================= ============================================================== ========= ====================
``loss``                  ARX's Loss: geometric mean of the columns' shares              [0, 1]    without suppression
``certainty_penalty``     mean normalized certainty penalty of all cells (NCP, GCP)      [0, 1]    without suppression
``non_uniform_entropy``   mean part of the columns' bits that is lost                    [0, 1]    without suppression
``height``                mean of level / highest level                                  [0, 1]    all of it
``height_sum``            sum of levels                                                  [0, Σ]    all of it
``discernibility``        Σ of squared class sizes, n for each suppressed row            [n, n²]   all classes kept
``average_class_size``    rows / (classes · k)                                           > 0       all classes kept
``classification``        share of rows outside their class's majority, or suppressed    [0, 1]    all classes kept
``target_information``    share of the cells' information on the target that is lost     [0, 1]    all classes kept
========================= ============================================================== ========= ====================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError
from sfumato.recoding.lattice import Counts, LatticeProblem, bincount
from sfumato.recoding.lattice_tables import ClassTable

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Loss(Protocol):
    """What a node loses, and bounds of it that never fall going up.

    ``is_bounded_by_columns`` says that the bound from the columns alone is as good as that from the classes.
    """

    is_bounded_by_columns: ClassVar[bool]

    def terms(self, n_suppressed: int = 0) -> tuple[Numbers, ...]:
        """For each column and level, what it adds to the bound of nodes that suppress so many rows or more.

        :meth:`of_sum` makes a loss of the sum over columns.
        """
        ...

    def of_sum(self, total: Numbers) -> Numbers:
        """Loss that a sum of terms stands for; never falls when the sum grows."""
        ...

    def value(self, table: ClassTable, kept: Flags) -> float:
        """Loss of a node whose classes are kept or suppressed."""
        ...

    def bound(self, table: ClassTable) -> float:
        """Least that the node or one above it can lose."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class ColumnLoss:
    r"""Loss that adds up over columns: :math:`\sum_j w_j L_j / \sum_j w_j`, or a geometric mean of :math:`1 + L_j`.

    Parameters
    ----------
    label_rows : for each column, for each level, an array over its labels
        Rows of each label.
    unsuppressed : for each column an array over its levels
        :math:`L_j` when no row is suppressed; never falls with the level.
    added : for each column, for each level, an array over its labels
        What a suppressed row with that label adds to the column's loss, already divided by the number of rows.
    weights : float array
        Of the columns; they sum to 1, or to the number that the loss is scaled by.
    geometric : bool
        Take :math:`\exp(\sum_j w_j \log(1 + L_j)) - 1`.
    """

    is_bounded_by_columns: ClassVar[bool] = True
    label_rows: tuple[tuple[Counts, ...], ...]
    unsuppressed: tuple[Numbers, ...]
    added: tuple[tuple[Numbers, ...], ...]
    weights: Numbers
    geometric: bool = False

    def terms(self, n_suppressed: int = 0) -> tuple[Numbers, ...]:
        """For each column and level, what it adds to the bound; :meth:`of_sum` makes a loss of the sum over columns.

        With suppressed rows: when these are the rows that add the least.
        """
        losses = self.unsuppressed
        if n_suppressed:
            least = [np.array([cheapest(n_suppressed) for cheapest in levels]) for levels in self._cheapest]
            losses = tuple(lost + more for lost, more in zip(losses, least, strict=True))
        return tuple(w * self._scaled(lost) for w, lost in zip(self.weights, losses, strict=True))

    @cached_property
    def _cheapest(self) -> tuple[tuple[Callable[[int], float], ...], ...]:
        pairs = (zip(rows, added, strict=True) for rows, added in zip(self.label_rows, self.added, strict=True))
        return tuple(tuple(_cheapest_rows(*pair) for pair in levels) for levels in pairs)

    def of_sum(self, total: Numbers) -> Numbers:
        """Loss that a sum of terms stands for; grows with it."""
        return np.asarray(np.expm1(total) if self.geometric else total, dtype=np.float64)

    def value(self, table: ClassTable, kept: Flags) -> float:
        """Loss of a node whose classes are kept or suppressed."""
        n_kept = int(np.count_nonzero(kept))
        counts_kept = 2 * n_kept < len(kept)  # the fewer classes are counted, the quicker
        classes = np.flatnonzero(kept if counts_kept else ~kept)
        rows = table.sizes[classes]
        total = 0.0
        for column, level in enumerate(table.levels):
            lost = float(self.unsuppressed[column][level])
            if n_kept < len(kept):
                added = self.added[column][level]
                counted = bincount(table.class_labels(column, classes), rows, len(added))
                suppressed = self.label_rows[column][level] - counted if counts_kept else counted
                lost += float(suppressed @ added)
            total += float(self.weights[column] * self._scaled(np.asarray(lost)))
        return float(self.of_sum(np.asarray(total)))

    def bound(self, table: ClassTable) -> float:
        """Least that the node or one above it can lose: what it loses without suppression."""
        total = sum(term[level] for term, level in zip(self.terms(), table.levels, strict=True))
        return float(self.of_sum(np.asarray(total)))

    def _scaled(self, losses: Numbers) -> Numbers:
        return np.asarray(np.log1p(losses) if self.geometric else losses)


def arx_loss(problem: LatticeProblem) -> ColumnLoss:
    r"""ARX's Loss: how large a part of its column each value stands for, a geometric mean over columns.

    Share of a value: the hierarchy's values that have its label, over all; 1 when suppressed. With :math:`n_j` values
    :math:`L_j = (\text{mean share} - 1/n_j) / (1 - 1/n_j)`, and the score is
    :math:`(\prod_j (1 + L_j)^{w_j})^{1/\sum w} - 1`. From 0 to 1. A column of one value loses nothing.
    """
    losses, added, rows = [], [], _label_rows(problem)
    for column, shares in enumerate(problem.shares):
        least = float(shares[0].min())  # of a hierarchy's values, some may not occur
        scale = 1.0 / (1.0 - least) if least < 1.0 else 0.0
        means = _label_means(rows[column], shares)
        losses.append((means - least) * scale)
        added.append(tuple((1.0 - share) * scale / problem.n_rows for share in shares))
    losses = [np.maximum(lost, 0.0) for lost in losses]
    return ColumnLoss(rows, tuple(losses), tuple(added), _weights(problem), geometric=True)


def certainty_penalty(problem: LatticeProblem) -> ColumnLoss:
    """Mean certainty penalty of all cells (GCP): the share of its column that a value stands for, 0 for one value.

    Xu et al. (2006), Ghinita et al. (2007); a suppressed cell costs 1. From 0 to 1. Agrees with
    :func:`sfumato.measures.loss.generalized_certainty_penalty`.
    """
    losses, added, rows = [], [], _label_rows(problem)
    for column, shares in enumerate(problem.shares):
        one_value = 1.5 * float(shares[0].min())
        penalties = [np.where(share < one_value, 0.0, share) for share in shares]
        losses.append(_label_means(rows[column], penalties))
        added.append(tuple((1.0 - penalty) / problem.n_rows for penalty in penalties))
    return ColumnLoss(rows, tuple(losses), tuple(added), _weights(problem))


def non_uniform_entropy(problem: LatticeProblem) -> ColumnLoss:
    r"""Mean part of each column's bits that a reader no longer has (De Waal and Willenborg 1999).

    A value v generalized to g costs :math:`\log_2(n_g / n_v)` bits with the rows of g and v in the original table, a
    suppressed one :math:`\log_2(n / n_v)`; :math:`L_j` is the mean over the column's entropy. From 0 to 1. A column of
    one value loses nothing.
    """
    losses, added, rows = [], [], _label_rows(problem)
    for counts in rows:
        bits = np.array([_total_bits(count) for count in counts])
        scale = 1.0 / bits[0] if bits[0] > 0 else 0.0
        losses.append(np.maximum(bits[0] - bits, 0.0) * scale)
        added.append(tuple(np.log2(problem.n_rows / np.maximum(count, 1)) * (count > 0) * scale for count in counts))
    return ColumnLoss(rows, tuple(losses), tuple(added), _weights(problem))


def height(problem: LatticeProblem) -> ColumnLoss:
    """Mean over columns of the level over the highest level: how far up the hierarchies values were taken.

    From 0 to 1, whatever is suppressed. A column of one level has height 0.
    """
    losses = tuple(np.arange(n) / max(n - 1, 1) for n in problem.shape)
    return ColumnLoss(_label_rows(problem), losses, _nothing_added(problem), _weights(problem))


def height_sum(problem: LatticeProblem) -> ColumnLoss:
    """Sum of the levels, each times its column's weight (1 if left out): generalization height of [FBA19]_, Section 4.

    From 0 to the sum of the highest levels, whatever is suppressed.
    """
    losses = tuple(np.arange(n, dtype=np.float64) for n in problem.shape)
    _weights(problem)
    weights = np.ones(problem.n_columns) if problem.weights is None else np.asarray(problem.weights, dtype=np.float64)
    return ColumnLoss(_label_rows(problem), losses, _nothing_added(problem), weights)


def _nothing_added(problem: LatticeProblem) -> tuple[tuple[Numbers, ...], ...]:
    return tuple(tuple(np.zeros(len(share)) for share in shares) for shares in problem.shares)


def _total_bits(counts: Counts) -> float:
    """Entropy of counts times their sum.

    :func:`sfumato.measures.information.total_entropies_bits` by another sum, which the last digits of losses rest on.
    """
    present = counts[counts > 0]
    return float(-(present @ np.log2(present / present.sum())))


def _cheapest_rows(rows: Counts, added: Numbers) -> Callable[[int], float]:
    """Least that a number of suppressed rows can add."""
    order = np.argsort(added, kind="stable")
    n_rows = np.concatenate([[0], np.cumsum(rows[order])])
    total = np.concatenate([[0.0], np.cumsum(rows[order] * added[order])])
    return lambda n: float(np.interp(n, n_rows, total))


def _label_rows(problem: LatticeProblem) -> tuple[tuple[Counts, ...], ...]:
    found = []
    for column, (maps, shares) in enumerate(zip(problem.level_maps, problem.shares, strict=True)):
        values = problem.value_counts(column)
        found.append(tuple(bincount(m, values, len(share)) for m, share in zip(maps, shares, strict=True)))
    return tuple(found)


def _label_means(rows: Sequence[Counts], of_labels: Sequence[Numbers]) -> Numbers:
    """Mean over the rows, for each level, of a number that each label has."""
    return np.array([n @ x / n.sum() for n, x in zip(rows, of_labels, strict=True)], dtype=np.float64)


def _weights(problem: LatticeProblem) -> Numbers:
    given = np.ones(problem.n_columns) if problem.weights is None else np.asarray(problem.weights, dtype=np.float64)
    if len(given) != problem.n_columns or not np.isfinite(given).all() or given.min() < 0 or not given.sum() > 0:
        allowed = f"one number of at least 0 for each of the {problem.n_columns} columns, not all 0"
        raise InvalidParameterError("weights", f"got {len(given)} numbers", allowed=allowed)
    return np.asarray(given / given.sum())


COLUMN_LOSSES: dict[str, Callable[[LatticeProblem], ColumnLoss]] = {
    "loss": arx_loss,
    "certainty_penalty": certainty_penalty,
    "non_uniform_entropy": non_uniform_entropy,
    "height": height,
    "height_sum": height_sum,
}
