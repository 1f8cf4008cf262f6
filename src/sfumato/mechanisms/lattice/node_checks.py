"""Checks of single nodes of a lattice of hierarchy levels, and the best node among those checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.counting.counts import Counts
from sfumato.mechanisms.lattice.conditions import Condition, Flags
from sfumato.mechanisms.lattice.lattice import (
    ClassTable,
    Combinations,
    Ints,
    LatticeProblem,
    Levels,
    PeopleOfNodes,
    RollUp,
    bincount,
    sums_by_key,
)
from sfumato.mechanisms.lattice.losses import TARGET_LOSSES, loss_of
from sfumato.mechanisms.time_limit import TimeLimit

DECIMALS = 10
"""Losses are compared after rounding to so many decimals."""

SLACK = 1e-12
"""By how much rounding may lift the bound of a node above its loss."""

Rank = tuple[float, int, Levels]


def value_counts(table: ClassTable, values_of_extra: Ints) -> Counts:
    """Count a sensitive column, given its value in each combination, in the classes of a node."""
    n_values = int(values_of_extra.max()) + 1
    key = table.entry_classes * n_values + values_of_extra[table.extra]
    present, counts = sums_by_key(key, table.n_classes * n_values, table.counts)
    classes, values = np.divmod(present, n_values)
    return Counts(classes, values, counts, table.sizes, bincount(values, counts, n_values))


@dataclass(frozen=True, eq=False)
class Verdict:
    """Which classes of a node are kept, and how many rows are lost.

    Parameters
    ----------
    kept : bool array
        Of the classes.
    n_suppressed : int
        Rows in classes that are not kept.
    n_surely_suppressed : int
        Rows in classes that violate a condition which is monotone with suppression: every node below suppresses at
        least as many.
    possible : bool array
        Classes that satisfy every condition which is monotone with suppression.
    n_persons, n_persons_surely : int
        Persons who lose a row in these classes, and in those; 0 where they are not limited. As rows that are surely
        lost, persons who surely lose one are no fewer in every node below.
    """

    kept: Flags
    n_suppressed: int
    n_surely_suppressed: int
    possible: Flags
    n_persons: int = 0
    n_persons_surely: int = 0


class Judge:
    """Decides which classes of a node are kept.

    Parameters
    ----------
    problem : LatticeProblem
    combinations : Combinations
        Of the problem's sensitive values and target.
    totals : sequence of int arrays or None
        Rows of each value of each sensitive column in the rows that t-closeness compares classes with; ``None``
        compares them with the classes that are kept.
    """

    def __init__(
        self, problem: LatticeProblem, combinations: Combinations, totals: Sequence[Ints] | None = None
    ) -> None:
        self._k = problem.k
        self._totals = totals
        self._conditions = problem.conditions
        self._values = combinations.sensitive
        needed = [own.necessary() for own in problem.conditions]
        self._necessary = tuple(dict.fromkeys(own for own in needed if own is not None))
        self._further = tuple(own for own in problem.conditions if not own.guarantee.is_kept_by_growing)
        self._columns = sorted({own.column for own in (*self._necessary, *problem.conditions)})
        self._persons = limited_persons(problem)
        self._people = None if problem.people is None else PeopleOfNodes(problem.people, problem)

    def judge(self, table: ClassTable) -> Verdict:
        """Suppress violating classes until none is left."""
        kept = table.sizes >= self._k
        counts = {column: self._value_counts(table, column) for column in self._columns}
        for own in self._necessary:
            kept &= own.are_kept_by(counts[own.column])
        if self._people is not None:
            kept &= self._people.fits_enough(table)
        possible, n_surely = kept.copy(), int(table.sizes[~kept].sum())
        if self._people is not None and self._people.asks_for_shares:
            kept &= self._people.has_right_shares(table)
        changed = bool(self._further)
        while changed:
            before = kept.copy()
            for own in self._further:
                here, compares = counts[own.column], own.guarantee.compares_with_table
                kept &= own.are_kept_by(here.compared_with(kept) if compares and self._totals is None else here)
            depends = self._totals is None and any(own.guarantee.compares_with_table for own in self._further)
            changed = depends and bool((before != kept).any())
        n_lost = int(table.sizes[~kept].sum())
        if self._persons is None:
            return Verdict(kept, n_lost, n_surely, possible)
        persons = counts[self._persons.column]
        n_persons, n_persons_surely = (self._persons.n_in(persons, ~classes) for classes in (kept, possible))
        return Verdict(kept, n_lost, n_surely, possible, n_persons, n_persons_surely)

    def are_safe_together(self, table: ClassTable, classes: Flags) -> bool:
        """Whether some classes of a node, as one class, satisfy every condition."""
        if int(table.sizes[classes].sum()) < self._k:
            return False
        for own in self._conditions:
            counts = self._value_counts(table, own.column)
            joined = np.bincount(counts.value_code, counts.count * classes[counts.class_index], counts.n_values)
            values = np.flatnonzero(joined)
            one = np.zeros(len(values), dtype=np.int64)
            count = joined[values].astype(np.int64)
            together = Counts(one, values, count, np.array([count.sum()]), counts.value_totals)
            if not own.are_kept_by(together).all():
                return False
        return True

    def _value_counts(self, table: ClassTable, column: int) -> Counts:
        found = value_counts(table, self._values[column])
        return found if self._totals is None else replace(found, value_totals=self._totals[column])

    def worst_levels(self, table: ClassTable) -> list[tuple[str, float, bool]]:
        """For size and every condition: what is asked for, the level of the worst class, and whether it is enough."""
        smallest = int(table.sizes.min())
        found = [(f"{self._k}-anonymity", float(smallest), smallest >= self._k)]
        for own in self._conditions:
            level = own.guarantee.worst(own.levels(value_counts(table, self._values[own.column])))
            found.append((own.describe(), level, own.guarantee.is_met_by(level)))
        return found if self._people is None else [*found, *self._people.worst(table)]


def limited_persons(problem: LatticeProblem) -> Condition | None:
    """Condition that tells persons apart, of whom only a share may lose a row; ``None``: rows alone are limited."""
    found = (own for own in problem.conditions if own.n_persons is not None)
    return next(found, None) if problem.limits_persons else None


@dataclass(frozen=True, kw_only=True)
class CheckedNode:
    """What a look at a node found.

    Parameters
    ----------
    levels : tuple of int
    n_suppressed, n_persons : int
        Rows in classes that violate the goal, and persons who lose one of them, where they are limited.
    n_suppressed_below, n_persons_below : int
        Least numbers that a node below suppresses.
    least_loss : float
        What the node loses; infinite where it was not measured, since more was suppressed than was allowed then.
    bound : float
        Least that the node or one above it can lose, as far as its classes tell.
    satisfies : bool
        Whether few enough rows are suppressed, of few enough persons.
    spares_persons : bool
        Whether few enough persons lose a row.
    rules_out_below : bool
        Whether no node below can satisfy the goal.
    """

    levels: Levels
    n_suppressed: int
    n_suppressed_below: int
    n_persons: int
    n_persons_below: int
    least_loss: float
    bound: float
    satisfies: bool = False
    spares_persons: bool = True
    rules_out_below: bool = False

    @property
    def loss(self) -> float:
        """What the node loses; infinite where the goal is not satisfied."""
        return self.least_loss if self.satisfies else float("inf")

    @property
    def rank(self) -> Rank:
        """Loss, sum of levels, levels: the lower, the better."""
        return round(self.loss, DECIMALS), sum(self.levels), self.levels


class NodeChecker:
    """Checks nodes, each once, and remembers the best one.

    ``time_limit`` is asked before a node is looked at that was not looked at before; it may be exchanged between
    checks.
    """

    def __init__(self, problem: LatticeProblem) -> None:
        self.problem = problem
        self.time_limit = TimeLimit()
        self.roll_up = RollUp(problem, with_target=problem.loss in TARGET_LOSSES)
        self.judge = Judge(problem, self.roll_up.combinations)
        self.loss = loss_of(problem, self.roll_up)
        self.best: CheckedNode | None = None
        self.max_suppressed = problem.max_suppressed
        persons = limited_persons(problem)
        self._max_persons = problem.largest_part(persons.n_persons or 0) if persons is not None else 0
        self._is_monotone = all(own.guarantee.is_monotone for own in problem.conditions)
        self.n_checked = 0
        self._checked: dict[Levels, CheckedNode] = {}

    @property
    def checked(self) -> Iterable[CheckedNode]:
        """All nodes looked at, in that order."""
        return self._checked.values()

    def is_checked(self, levels: Levels) -> bool:
        """Whether a node's classes were looked at."""
        return levels in self._checked

    def allow(self, max_suppressed: int) -> None:
        """Judge by another limit of suppressed rows, the nodes looked at so far included.

        A node that satisfies the goal only now counts as not looked at: its loss is not known, and to take the losses
        of all nodes in case the limit is raised would cost more than to look at a few of them again.
        """
        known, self._checked = self._checked, {}
        self.max_suppressed, self.best = max_suppressed, None
        for found in map(self._judged, known.values()):
            if not found.satisfies or np.isfinite(found.least_loss):
                self._enter(found)

    def check(self, levels: Levels) -> CheckedNode:
        """Suppress the violating classes of a node, and take its loss when that leaves rows enough.

        Raises
        ------
        OutOfTime
            If time is up and the node was not looked at before.
        """
        if levels not in self._checked:
            self.time_limit.check()
            table = self.roll_up.table(levels)
            verdict = self.judge.judge(table)
            is_allowed = verdict.n_suppressed <= self.max_suppressed and verdict.n_persons <= self._max_persons
            found = CheckedNode(
                levels=levels,
                n_suppressed=verdict.n_suppressed,
                n_suppressed_below=verdict.n_surely_suppressed,
                n_persons=verdict.n_persons,
                n_persons_below=verdict.n_persons_surely,
                least_loss=self.loss.value(table, verdict.kept) if is_allowed else float("inf"),
                bound=0.0 if self.loss.is_bounded_by_columns else self.loss.bound(table),
            )
            self.n_checked += 1
            self._enter(self._judged(found))
        return self._checked[levels]

    def _judged(self, found: CheckedNode) -> CheckedNode:
        """Judge what was found by the present limit."""
        spares = found.n_persons <= self._max_persons
        satisfies = spares and found.n_suppressed <= self.max_suppressed
        # without suppression all conditions on rows are monotone, see sfumato.mechanisms.lattice.conditions
        is_monotone = self._is_monotone and self.max_suppressed == 0
        too_many = found.n_suppressed_below > self.max_suppressed or found.n_persons_below > self._max_persons
        ruled_out = not satisfies if is_monotone else too_many
        return replace(found, satisfies=satisfies, spares_persons=spares, rules_out_below=ruled_out)

    def _enter(self, found: CheckedNode) -> None:
        self._checked[found.levels] = found
        if found.satisfies and (self.best is None or found.rank < self.best.rank):
            self.best = found
