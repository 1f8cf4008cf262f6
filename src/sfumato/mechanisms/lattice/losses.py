r"""What a global recoding loses, and how little the nodes above a node can lose.

Lower is better. Losses of columns add up what each column loses: without suppressed rows they follow from the columns'
own value counts and never fall from a node to one above it, and suppressing rows only adds to them, so their value
without suppression bounds all nodes above. Losses of classes can fall
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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import ColumnNotFoundError, InvalidParameterError, SchemaError
from sfumato.learning.discretization import description_length_cuts
from sfumato.measures.anonymity import average_class_size, discernibility
from sfumato.measures.information import entropy_bits, expected_information_bits, mutual_information_bits
from sfumato.mechanisms.axes import positions_of
from sfumato.mechanisms.hierarchies.automatic import counts_by_class
from sfumato.mechanisms.lattice.lattice import ClassTable, Ints, LatticeProblem, RollUp, bincount, sums_by_key
from sfumato.schema import Kind
from sfumato.table.coding import Table

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
        """Loss that a sum of terms represents; never falls when the sum grows."""
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
    label_rows: tuple[tuple[Ints, ...], ...]
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
        return tuple(tuple(cheapest_rows(*pair) for pair in levels) for levels in pairs)

    def of_sum(self, total: Numbers) -> Numbers:
        """Loss that a sum of terms represents; grows with it."""
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
    r"""ARX's Loss: how large a part of its column each value represents, a geometric mean over columns.

    Share of a value: the hierarchy's values that have its label, over all; 1 when suppressed. With :math:`n_j` values
    :math:`L_j = (\text{mean share} - 1/n_j) / (1 - 1/n_j)`, and the score is
    :math:`(\prod_j (1 + L_j)^{w_j})^{1/\sum w} - 1`. From 0 to 1. A column of one value loses nothing.
    """
    losses, added, rows = [], [], label_rows(problem)
    for column, shares in enumerate(problem.shares):
        least = problem.least_share(column)
        scale = 1.0 / (1.0 - least) if least < 1.0 else 0.0
        means = _label_means(rows[column], shares)
        losses.append((means - least) * scale)
        added.append(tuple((1.0 - share) * scale / problem.n_rows for share in shares))
    losses = [np.maximum(lost, 0.0) for lost in losses]
    return ColumnLoss(rows, tuple(losses), tuple(added), shares_of_weight(problem), geometric=True)


def certainty_penalty(problem: LatticeProblem) -> ColumnLoss:
    """Mean certainty penalty of all cells (GCP): the share of its column that a value represents, 0 for one value.

    Xu et al. (2006), Ghinita et al. (2007); a suppressed cell costs 1. From 0 to 1. Agrees with
    :func:`sfumato.measures.loss.generalized_certainty_penalty`.
    """
    losses, added, rows = [], [], label_rows(problem)
    for column, penalties in enumerate(certainty_penalties(problem)):
        losses.append(_label_means(rows[column], penalties))
        added.append(tuple((1.0 - penalty) / problem.n_rows for penalty in penalties))
    return ColumnLoss(rows, tuple(losses), tuple(added), shares_of_weight(problem))


def certainty_penalties(problem: LatticeProblem) -> tuple[tuple[Numbers, ...], ...]:
    """For each column and level the certainty penalty of each label."""
    return tuple(
        tuple(np.where(share < 1.5 * problem.least_share(column), 0.0, share) for share in shares)
        for column, shares in enumerate(problem.shares)
    )


def non_uniform_entropy(problem: LatticeProblem) -> ColumnLoss:
    r"""Mean part of each column's bits that a reader no longer has (De Waal and Willenborg 1999).

    A value v generalized to g costs :math:`\log_2(n_g / n_v)` bits with the rows of g and v in the original table, a
    suppressed one :math:`\log_2(n / n_v)`; :math:`L_j` is the mean over the column's entropy. From 0 to 1. A column of
    one value loses nothing. Bits are those of the finest level that was counted.
    """
    losses, added, rows = [], [], label_rows(problem)
    for counts in rows:
        bits = np.array([_total_bits(count) for count in counts])
        scale = 1.0 / bits[0] if bits[0] > 0 else 0.0
        losses.append(np.maximum(bits[0] - bits, 0.0) * scale)
        added.append(tuple(np.log2(problem.n_rows / np.maximum(count, 1)) * (count > 0) * scale for count in counts))
    return ColumnLoss(rows, tuple(losses), tuple(added), shares_of_weight(problem))


def height(problem: LatticeProblem) -> ColumnLoss:
    """Mean over columns of the level over the highest level: how far up the hierarchies values were taken.

    From 0 to 1, whatever is suppressed. A column of one level has height 0.
    """
    levels = _levels_in_hierarchies(problem)
    losses = tuple(own / max(own[-1], 1) for own in levels)
    return ColumnLoss(label_rows(problem), losses, _nothing_added(problem), shares_of_weight(problem))


def height_sum(problem: LatticeProblem) -> ColumnLoss:
    """Sum of the levels, each times its column's weight (1 if left out): generalization height of [FBA19]_, Section 4.

    From 0 to the sum of the highest levels, whatever is suppressed.
    """
    losses = tuple(own.astype(np.float64) for own in _levels_in_hierarchies(problem))
    shares_of_weight(problem)
    weights = np.ones(problem.n_columns) if problem.weights is None else np.asarray(problem.weights, dtype=np.float64)
    return ColumnLoss(label_rows(problem), losses, _nothing_added(problem), weights)


def _levels_in_hierarchies(problem: LatticeProblem) -> list[NDArray[np.int64]]:
    """Levels of each column's hierarchy that it may be taken to."""
    lowest = problem.in_hierarchies((0,) * problem.n_columns)
    return [np.arange(low, low + n) for low, n in zip(lowest, problem.shape, strict=True)]


def _nothing_added(problem: LatticeProblem) -> tuple[tuple[Numbers, ...], ...]:
    return tuple(tuple(np.zeros(len(share)) for share in shares) for shares in problem.shares)


def _total_bits(counts: Ints) -> float:
    """Entropy of counts times their sum.

    :func:`sfumato.measures.information.total_entropies_bits` by another sum, which the last digits of losses rest on.
    """
    present = counts[counts > 0]
    return float(-(present @ np.log2(present / present.sum())))


def cheapest_rows(rows: Ints, added: Numbers) -> Callable[[int], float]:
    """Least that a number of suppressed rows can add."""
    order = np.argsort(added, kind="stable")
    n_rows = np.concatenate([[0], np.cumsum(rows[order])])
    total = np.concatenate([[0.0], np.cumsum(rows[order] * added[order])])
    return lambda n: float(np.interp(n, n_rows, total))


def label_rows(problem: LatticeProblem) -> tuple[tuple[Ints, ...], ...]:
    """For each column and level the rows of each label."""
    found = []
    for column, (maps, shares) in enumerate(zip(problem.level_maps, problem.shares, strict=True)):
        values = problem.value_counts(column)
        found.append(tuple(bincount(m, values, len(share)) for m, share in zip(maps, shares, strict=True)))
    return tuple(found)


def _label_means(rows: Sequence[Ints], of_labels: Sequence[Numbers]) -> Numbers:
    """Mean over the rows, for each level, of a number that each label has."""
    return np.array([n @ x / n.sum() for n, x in zip(rows, of_labels, strict=True)], dtype=np.float64)


def shares_of_weight(problem: LatticeProblem) -> Numbers:
    """Weights of the columns, which sum to 1."""
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


# What a global recoding loses by its classes: discernibility, their number, and what they tell about a target.
#
# Lower is better. Suppression can make these losses fall from a node to one above it. What cannot fall is their value
# with all classes kept, violating ones too: joining classes only raises it, and a suppressed row costs no less than a
# kept one. That value bounds all nodes above. A coarser bound follows from the columns alone: with :math:`H_j` the
# entropy of column j at its level, the classes have an entropy of at most :math:`\sum_j H_j`.


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
    r"""Rows that each row cannot be distinguished from, added up: :math:`\sum_E |E|^2 + n_{suppressed} \cdot n`.

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

    targets: Ints

    @classmethod
    def of(cls, problem: LatticeProblem, roll_up: RollUp) -> Classification:
        """Take the target of a problem."""
        return cls(problem, targets_of(problem, roll_up))

    def value(self, table: ClassTable, kept: Flags) -> float:
        """Loss of a node whose classes are kept or suppressed."""
        classes, counts = target_counts(table, self.targets)
        largest = np.maximum.reduceat(counts, class_starts(classes))
        return (self.problem.n_rows - int(largest[kept].sum())) / self.problem.n_rows

    def bound(self, table: ClassTable) -> float:
        """Least that the node or one above it can lose."""
        return self.value(table, np.ones(table.n_classes, dtype=np.bool_))


@dataclass(frozen=True, eq=False, repr=False)
class TargetInformation(_ClassLoss):
    r"""Share of the cells' information on the target that the classes lose: :math:`1 - I(E; T) / I(\text{cells}; T)`.

    Suppressed rows are one class. From 0 to 1; 0 where the cells tell nothing about the target. Cells are those that
    were counted. The columns give
    :math:`I(E; T) \le \sum_j H_j`.
    """

    targets: Ints
    cell_bits: float

    @classmethod
    def of(cls, problem: LatticeProblem, roll_up: RollUp) -> TargetInformation:
        """Measure what the cells tell."""
        table = roll_up.table((0,) * problem.n_columns)
        kept = np.ones(table.n_classes, dtype=np.bool_)
        targets = targets_of(problem, roll_up)
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


def targets_of(problem: LatticeProblem, roll_up: RollUp) -> Ints:
    """Target of each combination of sensitive values and target."""
    target = roll_up.combinations.target
    if target is None:
        raise InvalidParameterError("target", "got none", allowed=f"given for {problem.loss}")
    return np.asarray(target, dtype=np.int64)


def class_starts(classes: Ints) -> Ints:
    """Place where each class begins, of classes in ascending order."""
    return np.concatenate([[0], np.flatnonzero(np.diff(classes)) + 1])


def target_counts(table: ClassTable, targets: Ints) -> tuple[Ints, Ints]:
    """Class and rows of each pair of class and target that occurs, by class and then by target."""
    n_targets = int(targets.max()) + 1
    key = table.entry_classes * n_targets + targets[table.extra]
    present, counts = sums_by_key(key, table.n_classes * n_targets, table.counts)
    return present // n_targets, counts


def _information_bits(table: ClassTable, kept: Flags, targets: Ints) -> float:
    """Mutual information of class and target; suppressed classes are one.

    :func:`sfumato.measures.information.mutual_information_bits` of the pairs that occur, without room for the others.
    """
    n_targets = int(targets.max()) + 1
    target = targets[table.extra]
    whole = bincount(target, table.counts, n_targets)
    lost = ~kept[table.entry_classes]
    joined = bincount(target[lost], table.counts[lost], n_targets)
    classes, counts = target_counts(table, targets)
    here = kept[classes]
    rest = _times_log(counts[here]) - _times_log(table.sizes[kept]) + _times_log(joined) - _times_log(joined.sum())
    return (rest - _times_log(whole) + _times_log(whole.sum())) / float(whole.sum())


def _times_log(counts: Ints) -> float:
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

SHARES_OF_CELLS = ("non_uniform_entropy", "target_information")
"""Names of the losses that are shares of what the cells tell; of coarser cells they are other numbers."""

LOSSES = (*COLUMN_LOSSES, *CLASS_LOSSES)
"""Names of all losses."""


def loss_of(problem: LatticeProblem, roll_up: RollUp) -> Loss:
    """Loss that a problem names."""
    if problem.loss in COLUMN_LOSSES:
        return COLUMN_LOSSES[problem.loss](problem)
    if problem.loss not in CLASS_LOSSES:
        raise InvalidParameterError("loss", f"got {problem.loss!r}", allowed=f"one of {', '.join(LOSSES)}")
    if problem.weights is not None:
        allowed = f"left out for {problem.loss}, which is not a sum over columns"
        raise InvalidParameterError("weights", "got some", allowed=allowed)
    return CLASS_LOSSES[problem.loss](problem, roll_up)


# Weights of columns in a loss: equal, given, or by what a column tells about the target.
#
# The information gain counted value by value grows with the number of values: a column in which every row has a value
# of its own "tells" everything. Gains are freed of that in two steps. **Numbers and dates** are cut into intervals
# first, where description length allows (:mod:`sfumato.learning.discretization`, as Weka's InfoGainAttributeEval
# does): noise gets no cut and no gain. **From every gain** that is subtracted which columns with the same counts have
# on average when they tell nothing (:func:`sfumato.measures.information.expected_information_bits`); below 0 is 0. For
# why it is this correction see decision 0021.


Weighting = Literal["equal", "gain"] | Mapping[str, float]

LEAST_SHARE = 0.01
"""Smallest weight, as a share of the largest: no column is free to be coarsened."""


CORRECTIONS = ("independence", "none")
"""What is subtracted from a gain: its mean where column and target are independent, or nothing (as in the paper)."""


def information_gains(
    table: Table, names: Sequence[str], target: str, correction: str = "independence"
) -> dict[str, float]:
    """Information gain of each column for a target, in bits: H(C) - H(C|X), free of a bias towards many values.

    Parameters
    ----------
    correction : {"independence", "none"}
        Subtract the mean gain of independent columns with the same counts, or nothing. Numbers and dates are cut by
        description length either way.

    Notes
    -----
    A missing value is a value of its own. A target of more than 50 values counts as 16 classes of neighbouring values.
    """
    if correction not in CORRECTIONS:
        raise InvalidParameterError(
            "gain_correction", f"got {correction!r}", allowed=f"one of {', '.join(CORRECTIONS)}"
        )
    gains = {}
    for name in names:
        counts = _in_intervals(table, name, counts_by_class(table, name, target))
        by_chance = expected_information_bits(counts) if correction == "independence" else 0.0
        gains[name] = max(0.0, mutual_information_bits(counts) - by_chance)
    return gains


def _in_intervals(table: Table, name: str, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of each interval and class of a column of numbers or dates; those of each value of another."""
    described, known = table.schema[name], table[name].values.drop_null()
    if described.kind not in (Kind.NUMERIC, Kind.DATE):
        return counts
    try:
        numbers = positions_of(described, known)
    except SchemaError:  # values that no interval holds are taken as categories, as for hierarchies
        return counts
    if numbers is None:
        return counts
    distinct, place = np.unique(numbers, return_inverse=True)
    by_number = np.zeros((len(distinct), counts.shape[1]), dtype=np.int64)
    np.add.at(by_number, place.reshape(-1), counts[: len(known)])
    interval = np.searchsorted(description_length_cuts(distinct, by_number.astype(np.float64)), distinct)
    in_interval = np.zeros((int(interval.max(initial=-1)) + 1, counts.shape[1]), dtype=np.int64)
    np.add.at(in_interval, interval, by_number)
    return np.vstack([in_interval, counts[len(known) :]])  # missing is the last value


def column_weights(weighting: Weighting, table: Table, names: Sequence[str]) -> list[float] | None:
    """Weight of each column; ``None`` for equal ones."""
    if weighting == "equal":
        return None
    if isinstance(weighting, Mapping):
        return _given(weighting, names)
    if weighting != "gain":
        raise InvalidParameterError("weights", f"got {weighting!r}", allowed="equal, gain, or weights by column")
    if table.schema.target is None:
        problem = "weights by information gain need a target"
        raise SchemaError(problem, hint="give one column the role target, or use weights = equal")
    return weights_by_gain(list(information_gains(table, names, table.schema.target).values()))


def weights_by_gain(gains: Sequence[float]) -> list[float] | None:
    """Weights in proportion to gains, none below a share of the largest; ``None`` where no column tells anything."""
    least = LEAST_SHARE * max(gains, default=0.0)
    return [max(gain, least) for gain in gains] if least > 0 else None


def _given(weighting: Mapping[str, float], names: Sequence[str]) -> list[float]:
    for name, weight in weighting.items():
        if name not in names:
            raise ColumnNotFoundError(name, names, where="the quasi-identifiers, to which weights are given")
        if isinstance(weight, bool) or not isinstance(weight, Real) or not 0 <= weight < float("inf"):
            raise InvalidParameterError("weights", f"got {weight!r} for '{name}'", allowed="0 or more")
    weights = [float(weighting.get(name, 1.0)) for name in names]
    if not any(weights):
        raise InvalidParameterError("weights", "all are 0", allowed="above 0 for some column")
    return weights
