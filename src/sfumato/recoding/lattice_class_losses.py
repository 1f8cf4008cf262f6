r"""What a global recoding loses by its classes: discernibility, their number, and what they tell about a target.

Lower is better. Suppression can make these losses fall from a node to one above it. What cannot fall is their value
with all classes kept, violating ones too: joining classes only raises it, and a suppressed row costs no less than a
kept one. That value bounds all nodes above. A coarser bound follows from the columns alone: with :math:`H_j` the
entropy of column j at its level, the classes have an entropy of at most :math:`\sum_j H_j`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfumato.errors import InvalidParameterError
from sfumato.measures.anonymity import average_class_size, discernibility
from sfumato.measures.information import entropy_bits
from sfumato.recoding.lattice import Counts, LatticeProblem, bincount
from sfumato.recoding.lattice_losses import COLUMN_LOSSES, Flags, Loss, Numbers
from sfumato.recoding.lattice_tables import ClassTable, RollUp, sums_by_key


@dataclass(frozen=True, eq=False, repr=False)
class _ClassLoss:
    is_bounded_by_columns: ClassVar[bool] = False
    problem: LatticeProblem

    def terms(self, n_suppressed: int = 0) -> tuple[Numbers, ...]:
        """For each column and level its entropy in bits, negative so that it grows going up; whatever is suppressed."""
        return tuple(-entropies for entropies in column_entropies(self.problem))

    def of_sum(self, total: Numbers) -> Numbers:
        """Nothing is known from the columns."""
        return np.zeros_like(total)


class Discernibility(_ClassLoss):
    r"""Rows that each row cannot be told from, added up: :math:`\sum_E |E|^2 + n_{suppressed} \cdot n`.

    See :func:`sfumato.measures.anonymity.discernibility`. From n to n². The bound from the columns is
    :math:`n^2 2^{-\sum_j H_j}`, because no distribution has a Rényi entropy above its entropy.
    """

    def of_sum(self, total: Numbers) -> Numbers:
        """Least sum of squares of classes whose entropy is at most that of the columns together."""
        return np.asarray(float(self.problem.n_rows) ** 2 * np.exp2(total) * (1 - 1e-9))

    def value(self, table: ClassTable, kept: Flags) -> float:
        """Loss of a node whose classes are kept or suppressed."""
        return float(discernibility(table.sizes[kept], int(table.sizes[~kept].sum())))

    def bound(self, table: ClassTable) -> float:
        """Least that the node or one above it can lose."""
        return float(discernibility(table.sizes))


class AverageClassSize(_ClassLoss):
    r"""Average class size in multiples of k: :math:`n / (n_{classes} \cdot k)` (LeFevre et al. 2006; ARX's AECS).

    See :func:`sfumato.measures.anonymity.average_class_size`. All rows count, suppressed ones too, so that suppressing
    does not make it better. At least 1.
    """

    def value(self, table: ClassTable, kept: Flags) -> float:
        """Loss of a node whose classes are kept or suppressed."""
        return average_class_size(table.sizes[kept], self.problem.k, int(table.sizes[~kept].sum()))

    def bound(self, table: ClassTable) -> float:
        """Least that the node or one above it can lose: no node above has more classes."""
        most = min(table.n_classes, max(self.problem.n_rows // self.problem.k, 1))
        return self.problem.n_rows / (most * self.problem.k)


@dataclass(frozen=True, eq=False, repr=False)
class Classification(_ClassLoss):
    """Share of the rows that are suppressed or not of their class's most frequent target (Iyengar 2002), in [0, 1]."""

    targets: Counts

    @classmethod
    def of(cls, problem: LatticeProblem, roll_up: RollUp) -> Classification:
        """Take the target of a problem."""
        return cls(problem, _targets(problem, roll_up))

    def value(self, table: ClassTable, kept: Flags) -> float:
        """Loss of a node whose classes are kept or suppressed."""
        classes, counts = _target_counts(table, self.targets)
        largest = np.maximum.reduceat(counts, _starts(classes))
        return (self.problem.n_rows - int(largest[kept].sum())) / self.problem.n_rows

    def bound(self, table: ClassTable) -> float:
        """Least that the node or one above it can lose."""
        return self.value(table, np.ones(table.n_classes, dtype=np.bool_))


@dataclass(frozen=True, eq=False, repr=False)
class TargetInformation(_ClassLoss):
    r"""Share of the cells' information on the target that the classes lose: :math:`1 - I(E; T) / I(\text{cells}; T)`.

    Suppressed rows are one class. From 0 to 1; 0 where the cells tell nothing about the target. The columns give
    :math:`I(E; T) \le \sum_j H_j`.
    """

    targets: Counts
    cell_bits: float

    @classmethod
    def of(cls, problem: LatticeProblem, roll_up: RollUp) -> TargetInformation:
        """Measure what the cells tell."""
        table = roll_up.table((0,) * problem.n_columns)
        kept = np.ones(table.n_classes, dtype=np.bool_)
        targets = _targets(problem, roll_up)
        return cls(problem, targets, _information_bits(table, kept, targets))

    def of_sum(self, total: Numbers) -> Numbers:
        """Least that is lost when the classes' entropy is at most that of the columns together."""
        return np.maximum(1.0 + total / self.cell_bits, 0.0) if self.cell_bits > 0 else np.zeros_like(total)

    def value(self, table: ClassTable, kept: Flags) -> float:
        """Loss of a node whose classes are kept or suppressed."""
        if not self.cell_bits > 0:
            return 0.0
        return max(1.0 - _information_bits(table, kept, self.targets) / self.cell_bits, 0.0)

    def bound(self, table: ClassTable) -> float:
        """Least that the node or one above it can lose: joining classes tells no more."""
        return self.value(table, np.ones(table.n_classes, dtype=np.bool_))


def column_entropies(problem: LatticeProblem) -> tuple[Numbers, ...]:
    """Entropy in bits of each column at each of its levels."""
    found = []
    for column, maps in enumerate(problem.level_maps):
        values = problem.value_counts(column)
        counts = [bincount(m, values, int(m.max()) + 1) for m in maps]
        found.append(np.array([entropy_bits(count) for count in counts]))
    return tuple(found)


def _targets(problem: LatticeProblem, roll_up: RollUp) -> Counts:
    target = roll_up.combinations.target
    if target is None:
        raise InvalidParameterError("target", "got none", allowed=f"given for {problem.loss}")
    return np.asarray(target, dtype=np.int64)


def _starts(classes: Counts) -> Counts:
    return np.concatenate([[0], np.flatnonzero(np.diff(classes)) + 1])


def _target_counts(table: ClassTable, targets: Counts) -> tuple[Counts, Counts]:
    """Class and rows of each pair of class and target that occurs, by class and then by target."""
    n_targets = int(targets.max()) + 1
    key = table.entry_classes * n_targets + targets[table.extra]
    present, counts = sums_by_key(key, table.n_classes * n_targets, table.counts)
    return present // n_targets, counts


def _information_bits(table: ClassTable, kept: Flags, targets: Counts) -> float:
    """Mutual information of class and target; suppressed classes are one.

    :func:`sfumato.measures.information.mutual_information_bits` of the pairs that occur, without room for the others.
    """
    n_targets = int(targets.max()) + 1
    target = targets[table.extra]
    whole = bincount(target, table.counts, n_targets)
    lost = ~kept[table.entry_classes]
    joined = bincount(target[lost], table.counts[lost], n_targets)
    classes, counts = _target_counts(table, targets)
    here = kept[classes]
    rest = _times_log(counts[here]) - _times_log(table.sizes[kept]) + _times_log(joined) - _times_log(joined.sum())
    return (rest - _times_log(whole) + _times_log(whole.sum())) / float(whole.sum())


def _times_log(counts: Counts) -> float:
    """Sum of :func:`sfumato.measures.information.x_log_x`, added up so that losses keep their last digits."""
    present = counts[counts > 0].astype(np.float64)
    return float(present @ np.log2(present))


CLASS_LOSSES: dict[str, Callable[[LatticeProblem, RollUp], Loss]] = {
    "discernibility": lambda problem, _: Discernibility(problem),
    "average_class_size": lambda problem, _: AverageClassSize(problem),
    "classification": Classification.of,
    "target_information": TargetInformation.of,
}

TARGET_LOSSES = ("classification", "target_information")
"""Names of the losses that need a target."""

LOSSES = (*COLUMN_LOSSES, *CLASS_LOSSES)
"""Names of all losses."""


def loss_of(problem: LatticeProblem, roll_up: RollUp) -> Loss:
    """Loss that a problem names."""
    if problem.loss in COLUMN_LOSSES:
        return COLUMN_LOSSES[problem.loss](problem)
    if problem.loss not in CLASS_LOSSES:
        raise InvalidParameterError("loss", f"got {problem.loss!r}", allowed=f"one of {', '.join(LOSSES)}")
    if problem.weights is not None:
        allowed = f"left out for {problem.loss}, which is no sum over columns"
        raise InvalidParameterError("weights", "got some", allowed=allowed)
    return CLASS_LOSSES[problem.loss](problem, roll_up)
