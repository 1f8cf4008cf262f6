r"""l-diversity as a condition on the parts of a division: how often each sensitive value occurs in them.

Agrees with :mod:`sfumato.measures.diversity`. All three hold for a part when they hold for two parts that make it up
([MKGV07]_, Section 4), so that a part which is not diverse cannot be saved by dividing it.

References
----------
.. [MKGV07] Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam: l-Diversity: Privacy Beyond k-Anonymity.
   ACM TKDD 1 (2007).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError
from sfumato.guarantees import ROUNDING, LDiversity
from sfumato.measures.diversity import distinct_diversity, entropy_diversity, recursive_diversity

Counts = NDArray[np.int64]
Levels = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Constraint(Protocol):
    """What every part must satisfy besides its size."""

    def __call__(self, counts: Counts) -> Flags:
        """Whether parts are allowed, from their counts of sensitive values, one row a part."""
        ...

    def levels(self, counts: Counts) -> Levels:
        """Level of each part; higher is safer."""
        ...

    def describe(self) -> str:
        """Say the constraint in a few words."""
        ...


@dataclass(frozen=True)
class _AtLeast(ABC):
    """A level of at least l in every part."""

    l: float  # noqa: E741  # the field's own name

    def __post_init__(self) -> None:
        if not self.l >= 1:
            raise InvalidParameterError("l", f"got {self.l!r}", allowed="at least 1")

    @abstractmethod
    def levels(self, counts: Counts) -> Levels:
        """Level of each part; higher is safer."""

    def __call__(self, counts: Counts) -> Flags:
        """Whether parts are diverse enough."""
        return np.asarray(self.levels(counts) >= self.l - ROUNDING)


@dataclass(frozen=True)
class DistinctDiversity(_AtLeast):
    """At least l different values.

    Examples
    --------
    >>> DistinctDiversity(2)(np.array([[3, 1], [4, 0]])).tolist()
    [True, False]
    """

    def levels(self, counts: Counts) -> Levels:
        """Different values of each part."""
        return distinct_diversity(counts)

    def describe(self) -> str:
        """Say the constraint in a few words."""
        return f"distinct {self.l:g}-diversity"


@dataclass(frozen=True)
class EntropyDiversity(_AtLeast):
    r"""Entropy of at least log l: :math:`-\sum_s p(s) \log p(s) \ge \log l`.

    Examples
    --------
    >>> EntropyDiversity(2)(np.array([[3, 3], [4, 1]])).tolist()
    [True, False]
    """

    def levels(self, counts: Counts) -> Levels:
        """How many equally frequent values would be as diverse; 0 for a part without rows."""
        return entropy_diversity(counts)

    def describe(self) -> str:
        """Say the constraint in a few words."""
        return f"entropy {self.l:g}-diversity"


@dataclass(frozen=True)
class RecursiveDiversity(_AtLeast):
    r"""Recursive (c, l)-diversity: with descending counts, :math:`r_1 < c\,(r_l + \dots + r_m)`.

    ``c`` is taken as the decimal number that it is written as, and the comparison is made in whole numbers.

    Examples
    --------
    >>> RecursiveDiversity(2, c=2)(np.array([[4, 3, 1], [8, 3, 1]])).tolist()
    [True, False]
    """

    c: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.c < float("inf"):
            raise InvalidParameterError("c", f"got {self.c!r}", allowed="above 0")

    def levels(self, counts: Counts) -> Levels:
        """Largest l of each part, 0 where there is none."""
        return recursive_diversity(counts, self.c)

    def describe(self) -> str:
        """Say the constraint in a few words."""
        return f"recursive ({self.c:g}, {self.l:g})-diversity"


def constraint_of(guarantee: LDiversity) -> Constraint:
    """Constraint under which a division keeps a promise of l-diversity.

    Examples
    --------
    >>> constraint_of(LDiversity(3, "disease", ("age",))).describe()
    'distinct 3-diversity'
    """
    if guarantee.variant == "recursive":
        return RecursiveDiversity(guarantee.l, guarantee.c or 0.0)
    return EntropyDiversity(guarantee.l) if guarantee.variant == "entropy" else DistinctDiversity(guarantee.l)
