"""Further factors of E(S): what else may count in the choice of columns besides performance, breach and size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError
from sfumato.mechanisms.breach.tradeoff import Factor

Counts = NDArray[np.int64]
Subset = tuple[int, ...]


def _smallest_class(counts: Counts) -> float:
    return float(counts.min())


def _unique_share(counts: Counts) -> float:
    return float((counts == 1).sum() / counts.sum())


FURTHER_FACTORS: Mapping[str, tuple[Callable[[Counts], float], bool]] = {
    "anonymity": (_smallest_class, True),
    "uniqueness": (_unique_share, False),
}
"""By name: what is computed from the sizes of the classes of rows that are equal on a set, and whether more is better.

``anonymity`` is the size of the smallest class (k), ``uniqueness`` the share of rows that equal no other one."""


@dataclass(frozen=True, eq=False, repr=False)
class FurtherFactors:
    """Further factors with their weights, for sets of some columns.

    Parameters
    ----------
    weights : mapping of str to float
        By names of :data:`FURTHER_FACTORS`.
    codes : sequence of array of int
        Of every column.

    Examples
    --------
    >>> found = FurtherFactors({"anonymity": 0.5}, [np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])])
    >>> found.of([(0,), (0, 1)])["anonymity"].values
    (2.0, 1.0)
    """

    weights: Mapping[str, float]
    codes: Sequence[NDArray[Any]]
    _known: dict[Subset, Counts] = field(default_factory=dict)

    def of(self, subsets: Sequence[Subset]) -> dict[str, Factor]:
        """Values of every set."""
        found = {}
        for name, weight in self.weights.items():
            of_counts, higher_is_better = FURTHER_FACTORS[name]
            values = tuple(of_counts(self._counts(subset)) for subset in subsets)
            found[name] = Factor(values, weight, higher_is_better)
        return found

    def _counts(self, subset: Subset) -> Counts:
        if subset not in self._known:
            rows = np.column_stack([self.codes[column] for column in subset])
            self._known[subset] = np.unique(rows, axis=0, return_counts=True)[1]
        return self._known[subset]


def checked_factors(given: Mapping[str, float] | None) -> dict[str, float]:
    """Weights of further factors, refused before any training where E(S) would refuse them."""
    if given is not None and not isinstance(given, Mapping):
        raise InvalidParameterError("factors", f"got {given!r}", allowed="weights by name")
    for name, weight in (given or {}).items():
        if name not in FURTHER_FACTORS:
            raise InvalidParameterError("factors", f"got '{name}'", allowed=f"named {', '.join(FURTHER_FACTORS)}")
        if isinstance(weight, bool) or not isinstance(weight, int | float | np.number) or not 0 <= weight < np.inf:
            raise InvalidParameterError("factors", f"got {weight!r} for {name}", allowed="numbers from 0")
    return {name: float(weight) for name, weight in (given or {}).items() if weight > 0}
