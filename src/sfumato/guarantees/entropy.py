"""The entropy that dropped columns take away: privacy gain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

from sfumato.errors import InvalidParameterError
from sfumato.guarantees.base import Guarantee, GuaranteeWords, Level, ReleaseFacts, check_whole, declared


@declared
@dataclass(frozen=True)
class PrivacyGain(Guarantee):
    r"""Dropping some columns takes away at least a share θ of the largest entropy that the table could have.

    :math:`\rho(D, D') = \sum_{removed} H(A) / M_D` with :math:`M_D = \sum_j \log_2|A_j|`, Example V.2 of
    Sheikhalishahi and Martinelli (WETICE 2017). NOT k-anonymity: it measures what is no longer released, and protects
    nobody from being singled out by the columns that are.

    Parameters
    ----------
    min_privacy_gain : float
        θ, above 0 and at most 1.
    columns, removed : tuple of str
        Quasi-identifiers that are released, and those that were dropped for the gain.
    n_values : mapping of str to int
        Number of values that each of them may have, a missing one included.
    cuts : mapping of str to tuple of float
        Cut points of numeric columns whose intervals count as values, and are what is released of those that stay;
        each interval has its upper end.
    """

    kind: ClassVar[str] = "privacy-gain"
    level: ClassVar[Level] = Level("min_privacy_gain")
    of_original: ClassVar[bool] = True
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="gain by dropped columns",
        meaning="The dropped columns held at least a share θ of the information that the table could hold. Used when "
        "several parties select columns together.",
        found="Found: the dropped columns held a share of {level} of the largest entropy. "
        "Promised: at least {min_privacy_gain}.",
        against="an attacker who would have used the dropped columns",
        not_promised=(
            "Anything about the columns that are released: a row may be unique on them.",
            "k-anonymity, or that a person cannot be found.",
        ),
    )
    min_privacy_gain: float
    columns: tuple[str, ...]
    removed: tuple[str, ...]
    n_values: Mapping[str, int]
    cuts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.min_privacy_gain <= 1:
            problem = f"got {self.min_privacy_gain!r}"
            raise InvalidParameterError("min_privacy_gain", problem, allowed="above 0 and at most 1")
        names = (*self.columns, *self.removed)
        if not self.removed or len(set(names)) < len(names):
            raise InvalidParameterError("removed", "but these are not", allowed="some columns that are not released")
        if not isinstance(self.n_values, Mapping) or set(self.n_values) != set(names):
            raise InvalidParameterError("n_values", "but these are not", allowed="a number for every column")
        for n in self.n_values.values():
            check_whole("n_values", n)
        if not isinstance(self.cuts, Mapping) or not set(self.cuts) <= set(names):
            raise InvalidParameterError("cuts", "but names other columns", allowed="cut points of some of the columns")
        object.__setattr__(self, "n_values", dict(self.n_values))
        object.__setattr__(self, "cuts", {name: tuple(map(float, cuts)) for name, cuts in self.cuts.items()})
        for name, cuts in self.cuts.items():
            is_ascending = all(map(math.isfinite, cuts)) and all(low < high for low, high in pairwise(cuts))
            if not cuts or not is_ascending or not 1 <= self.n_values[name] - len(cuts) <= 2:
                allowed = "ascending numbers, with as many intervals as the column has values, or one fewer"
                raise InvalidParameterError("cuts", "but these are not", allowed=allowed)

    @property
    def most_entropy_bits(self) -> float:
        """Largest entropy that the table could have, M_D."""
        return math.fsum(math.log2(n) for n in self.n_values.values())

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        cut = f", {len(self.cuts)} of them counted (and released, if at all) as intervals," if self.cuts else ""
        return (
            f"dropping {len(self.removed)} of {len(self.n_values)} quasi-identifying columns{cut} takes away at least "
            f"{self.min_privacy_gain:g} of the {self.most_entropy_bits:.6g} bits of entropy that the table could have "
            f"at most; this is NOT k-anonymity and protects nobody from being singled out by the {len(self.columns)} "
            "columns that are released"
        )

    def left_open(self, facts: ReleaseFacts) -> Iterator[str]:
        """Say that it protects nobody by the columns that are released."""
        said = "not promised: k-anonymity. Dropping columns hides their values and nothing else"
        yield facts.with_smallest_class(said, apart=True)
