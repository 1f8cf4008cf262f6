r"""What the classes of a node must satisfy, and which of it can only get better from a node to one above it.

A class of a node above is made up of whole classes of the node. Rows in violating classes are suppressed, up to a
limit.

*With suppression* a condition is monotone when the rows in violating classes never grow in number going up. That holds
when a class satisfies the condition as soon as one of the classes that make it up does: then rows of a satisfying class
stay in one. Size (k) and the number of different values (distinct l) only grow, so both are monotone. Entropy and
recursive l-diversity and t-closeness are not: a diverse class joined with a larger one of a single value is no longer
diverse, and its rows come on top.

*Without suppression* (a limit of 0 rows) only nodes without violating classes count, and all five are monotone: joined
classes that all satisfy a condition satisfy it together. For entropy, because it is concave in the distribution; for
recursive (c, l)-diversity by [MKGV07]_, Section 4; for t-closeness because the distance from the whole table, which is
the same at every node, is convex in the distribution ([LLV07]_, Section 4).

References
----------
.. [MKGV07] Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam: l-Diversity: Privacy Beyond k-Anonymity.
   ACM TKDD 1 (2007).
.. [LLV07] Li, Li, Venkatasubramanian: t-Closeness: Privacy Beyond k-Anonymity and l-Diversity. ICDE (2007).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.classes import ClassValueCounts
from sfumato.errors import InvalidParameterError
from sfumato.guarantees import ROUNDING, ClosenessDistance, DiversityVariant
from sfumato.measures.diversity import (
    distances_by_class,
    distinct_diversity_by_class,
    entropy_diversity_by_class,
    recursive_diversity_by_class,
)
from sfumato.recoding.lattice import Counts, bincount
from sfumato.recoding.lattice_tables import ClassTable, sums_by_key

Flags = NDArray[np.bool_]
Numbers = NDArray[np.float64]


def value_counts(table: ClassTable, values_of_extra: Counts) -> ClassValueCounts:
    """Count a sensitive column, given its value in each combination, in the classes of a node."""
    n_values = int(values_of_extra.max()) + 1
    key = table.entry_classes * n_values + values_of_extra[table.extra]
    present, counts = sums_by_key(key, table.n_classes * n_values, table.counts)
    classes, values = np.divmod(present, n_values)
    return ClassValueCounts(classes, values, counts, table.sizes, bincount(values, counts, n_values))


class ClassModel(Protocol):
    """Condition on how a sensitive column is spread within a class."""

    @property
    def column(self) -> int:
        """Place of the sensitive column."""
        ...

    @property
    def is_monotone_with_suppression(self) -> bool:
        """Whether the rows in violating classes never grow in number from a node to one above it."""
        ...

    @property
    def depends_on_kept(self) -> bool:
        """Whether suppressing a class can make another one violate the condition."""
        ...

    def necessary(self) -> ClassModel | None:
        """Condition that is monotone with suppression and that every satisfying class satisfies."""
        ...

    def levels(self, counts: ClassValueCounts) -> Numbers:
        """Level of each class."""
        ...

    def is_met_by(self, levels: Numbers) -> Flags:
        """Whether levels are safe enough."""
        ...

    def worst(self, levels: Numbers) -> float:
        """Least safe of some levels."""
        ...

    def describe(self) -> str:
        """Say the condition in a few words."""
        ...


@dataclass(frozen=True)
class DiverseClasses:
    r"""l-diversity of every class, as :mod:`sfumato.measures.diversity` defines it.

    Parameters
    ----------
    l : float
    variant : {"distinct", "entropy", "recursive"}
    c : float or None
        For recursive (c, l)-diversity; taken as the decimal number that it is written as.
    column : int
        Place of the sensitive column.
    """

    l: float  # noqa: E741  # the field's own name
    variant: DiversityVariant = "distinct"
    c: float | None = None
    column: int = 0
    depends_on_kept: bool = False

    def __post_init__(self) -> None:
        if not self.l >= 1:
            raise InvalidParameterError("l", f"got {self.l!r}", allowed="at least 1")
        if self.variant not in ("distinct", "entropy", "recursive"):
            raise InvalidParameterError("variant", f"got {self.variant!r}", allowed="distinct, entropy or recursive")
        if (self.variant == "recursive") != (self.c is not None) or (self.c is not None and not 0 < self.c < np.inf):
            allowed = "above 0 for recursive l-diversity and left out for the others"
            raise InvalidParameterError("c", f"got {self.c!r}", allowed=allowed)

    @property
    def is_monotone_with_suppression(self) -> bool:
        """Only distinct l-diversity is."""
        return self.variant == "distinct"

    def necessary(self) -> DiverseClasses:
        """Distinct l-diversity, which both other variants imply."""
        return DiverseClasses(self.l, column=self.column)

    def levels(self, counts: ClassValueCounts) -> Numbers:
        """Largest l of each class; higher is safer."""
        if self.variant == "recursive":
            return recursive_diversity_by_class(counts, self.c or 0.0)
        by_class = entropy_diversity_by_class if self.variant == "entropy" else distinct_diversity_by_class
        return by_class(counts)

    def is_met_by(self, levels: Numbers) -> Flags:
        """Whether classes are diverse enough."""
        return np.asarray(levels >= self.l - ROUNDING)

    def worst(self, levels: Numbers) -> float:
        """Lowest level."""
        return float(levels.min())

    def describe(self) -> str:
        """Say the condition in a few words."""
        what = f"({self.c:g}, {self.l:g})" if self.c is not None else f"{self.l:g}"
        return f"{self.variant} {what}-diversity"


@dataclass(frozen=True)
class CloseClasses:
    r"""t-closeness of every class to the rows that are released, as :mod:`sfumato.measures.diversity` defines it.

    Parameters
    ----------
    t : float
    distance : {"equal", "ordered"}
        ``ordered`` goes by the order of the value numbers.
    column : int
        Place of the sensitive column.

    Notes
    -----
    Classes are compared with what is released, because that is all that a reader (and the audit) sees: classes that are
    too far from all rows are suppressed, then those too far from the rest, until none is left that is.
    """

    t: float
    distance: ClosenessDistance = "equal"
    column: int = 0
    depends_on_kept: bool = True
    is_monotone_with_suppression: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.t <= 1:
            raise InvalidParameterError("t", f"got {self.t!r}", allowed="between 0 and 1")
        if self.distance not in ("equal", "ordered"):
            raise InvalidParameterError("distance", f"got {self.distance!r}", allowed="'equal' or 'ordered'")

    def necessary(self) -> None:
        """None is known."""

    def levels(self, counts: ClassValueCounts) -> Numbers:
        """Distance of each class; lower is safer. A class without rows in common with the others may have any."""
        return distances_by_class(counts, self.distance)

    def is_met_by(self, levels: Numbers) -> Flags:
        """Whether classes are close enough."""
        return np.asarray(levels <= self.t + ROUNDING)

    def worst(self, levels: Numbers) -> float:
        """Largest distance."""
        return float(levels.max())

    def describe(self) -> str:
        """Say the condition in a few words."""
        return f"{self.t:g}-closeness ({self.distance} distance)"
