"""What a tree makes pure: class labels, numbers, or several targets at once.

A criterion keeps a few additive statistics of the rows in a node; impurity and error are functions of their sums, so
that a split is judged from cumulative sums and a node without touching its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.measures.information import total_entropies_bits

Numbers = NDArray[np.float64]

LARGEST_EXPONENT = 400
"""Sums of squares of numbers below 2**400 are numbers, and those of numbers above 2**-400 have all their digits."""


class Criterion(Protocol):
    """How pure a group of rows is and how wrong its best constant prediction."""

    @property
    def n_statistics(self) -> int:
        """Number of sums kept of a group."""
        ...

    @property
    def is_in_bits(self) -> bool:
        """Whether impurity is information, so that gain ratio and the MDL correction of C4.5 apply."""
        ...

    def statistics(self, target: ArrayLike) -> Numbers:
        """Return the sums of single rows, one row a row."""
        ...

    def weight(self, sums: Numbers) -> Numbers:
        """Weight of groups (over the last axis)."""
        ...

    def impurity(self, sums: Numbers) -> Numbers:
        """Impurity of groups times their weight (over the last axis); 0 when all rows are alike."""
        ...

    def error(self, sums: Numbers) -> Numbers:
        """Error E(t) of the best constant prediction of groups (over the last axis)."""
        ...


@dataclass(frozen=True)
class Entropy:
    """Class labels: impurity in bits, error the rows outside the majority class (Equation 8 of [ERP19]_).

    Examples
    --------
    >>> criterion = Entropy(2)
    >>> counts = criterion.statistics([0, 0, 1, 1]).sum(axis=0)
    >>> float(criterion.impurity(counts)), float(criterion.error(counts))
    (4.0, 2.0)
    """

    n_classes: int

    @property
    def n_statistics(self) -> int:
        """One count a class."""
        return self.n_classes

    @property
    def is_in_bits(self) -> bool:
        """Entropy is information."""
        return True

    def statistics(self, target: ArrayLike) -> Numbers:
        """One where a row is of the class; ``target`` holds class numbers."""
        return np.asarray(np.eye(self.n_classes)[np.asarray(target, dtype=np.intp)])

    def weight(self, sums: Numbers) -> Numbers:
        """Rows of a group."""
        return np.asarray(sums.sum(axis=-1))

    def impurity(self, sums: Numbers) -> Numbers:
        """Entropy in bits times the rows."""
        return total_entropies_bits(sums)

    def error(self, sums: Numbers) -> Numbers:
        """Rows that are not of the majority class."""
        return np.asarray(sums.sum(axis=-1) - sums.max(axis=-1))


@dataclass(frozen=True)
class PlainGain(Entropy):
    """Class labels as of :class:`Entropy`, but the split with the greatest gain is taken, as by ID3 and by CART.

    C4.5 takes the greatest ratio of the gain to the information of the split itself, lets a cut pay for being chosen
    among many, and asks for more rows beside a cut than in a leaf. Nothing of that applies here.

    Examples
    --------
    >>> PlainGain(2).is_in_bits, float(PlainGain(2).impurity(np.array([2.0, 2.0])))
    (False, 4.0)
    """

    @property
    def is_in_bits(self) -> bool:
        """Gain ratio and the MDL correction are not asked for."""
        return False


@dataclass(frozen=True)
class Variance:
    """A number, or several of one unit: impurity and error are the sum of squared deviations from the group's mean.

    Parameters
    ----------
    n_numbers : int
        Numbers of each row, whose squared deviations are added up.

    Examples
    --------
    >>> criterion = Variance()
    >>> float(criterion.error(criterion.statistics([1.0, 3.0]).sum(axis=0)))
    2.0
    >>> float(Variance(2).impurity(Variance(2).statistics([[1.0, 0.0], [3.0, 4.0]]).sum(axis=0)))
    10.0
    """

    n_numbers: int = 1

    @property
    def n_statistics(self) -> int:
        """Rows, sums and sum of squares."""
        return self.n_numbers + 2

    @property
    def is_in_bits(self) -> bool:
        """Squares are not."""
        return False

    def statistics(self, target: ArrayLike, weights: NDArray[np.int64] | None = None) -> Numbers:
        """Return 1, the numbers and the sum of their squares; centred first, so that large numbers lose no digits.

        Numbers whose squares a double cannot hold are first divided by a power of two near the largest. The centre is
        the mean, with ``weights`` where numbers occur several times.
        """
        numbers = np.asarray(target, dtype=np.float64)
        exponent = int(np.frexp(np.abs(numbers).max(initial=0.0))[1])
        if abs(exponent) > LARGEST_EXPONENT:
            numbers = np.ldexp(numbers, -exponent)
        centred = numbers - (np.average(numbers, axis=0, weights=weights) if len(numbers) else 0.0)
        squares = centred**2 if centred.ndim == 1 else (centred**2).sum(axis=1)
        return np.column_stack([np.ones(len(numbers)), centred, squares])

    def weight(self, sums: Numbers) -> Numbers:
        """Rows of a group."""
        return np.asarray(sums[..., 0])

    def impurity(self, sums: Numbers) -> Numbers:
        """Sum of squared deviations from the mean."""
        rows = np.maximum(sums[..., 0], np.finfo(np.float64).tiny)
        squared = sums[..., 1] ** 2 if self.n_numbers == 1 else (sums[..., 1:-1] ** 2).sum(axis=-1)
        return np.asarray(np.maximum(sums[..., -1] - squared / rows, 0.0))

    def error(self, sums: Numbers) -> Numbers:
        """Sum of squared deviations from the mean."""
        return self.impurity(sums)


@dataclass(frozen=True)
class Several:
    """Several targets: each criterion's impurity and error as a share of what it is in the whole table, added up.

    Examples
    --------
    >>> criterion = Several((Entropy(2), Variance()), (4.0, 2.0), (2.0, 2.0))
    >>> criterion.n_statistics
    5
    """

    parts: tuple[Criterion, ...]
    impurities: tuple[float, ...]
    """Impurity of each part in the whole table."""
    errors: tuple[float, ...]
    """Error of each part in the whole table."""

    @classmethod
    def of(cls, parts: tuple[Criterion, ...], targets: tuple[ArrayLike, ...]) -> Several:
        """Measure the parts on the whole table."""
        return cls.of_totals(
            parts, [p.statistics(target).sum(axis=0) for p, target in zip(parts, targets, strict=True)]
        )

    @classmethod
    def of_totals(cls, parts: tuple[Criterion, ...], totals: Sequence[Numbers]) -> Several:
        """Measure the parts by their statistics of the whole table."""
        impurities = tuple(float(part.impurity(total)) for part, total in zip(parts, totals, strict=True))
        return cls(parts, impurities, tuple(float(p.error(total)) for p, total in zip(parts, totals, strict=True)))

    @property
    def n_statistics(self) -> int:
        """Those of all parts side by side."""
        return sum(part.n_statistics for part in self.parts)

    @property
    def is_in_bits(self) -> bool:
        """Shares are not."""
        return False

    def statistics(self, target: ArrayLike) -> Numbers:
        """Statistics of all parts side by side; ``target`` is a sequence of one target for each part."""
        targets: list[ArrayLike] = list(target)  # type: ignore[arg-type]
        return np.hstack([part.statistics(t) for part, t in zip(self.parts, targets, strict=True)])

    def weight(self, sums: Numbers) -> Numbers:
        """Rows of a group."""
        return self.parts[0].weight(sums[..., : self.parts[0].n_statistics])

    def impurity(self, sums: Numbers) -> Numbers:
        """Sum of the parts' impurities, each as a share of the whole table's."""
        return self._added(sums, "impurity", self.impurities)

    def error(self, sums: Numbers) -> Numbers:
        """Sum of the parts' errors, each as a share of the whole table's."""
        return self._added(sums, "error", self.errors)

    def _added(self, sums: Numbers, what: str, whole: tuple[float, ...]) -> Numbers:
        start, total = 0, np.zeros(sums.shape[:-1])
        for part, scale in zip(self.parts, whole, strict=True):
            own = sums[..., start : start + part.n_statistics]
            total = total + (getattr(part, what)(own) / scale if scale > 0 else 0.0)
            start += part.n_statistics
        return total
