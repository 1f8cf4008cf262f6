r"""Promises about shares of single sensitive values, as mechanisms are asked for them: β-likeness, δ-disclosure and α.

What is asked for (:class:`SharePromises`) is the same for partitions and for recodings. Each promise limits a level of
:mod:`sfumato.measures.value_shares`, which either of them counts in its own way.

Every limit holds for a class that is made up of classes for which it holds: the share of a value in the union is a
weighted mean of its shares in the parts, and all three allow an interval of shares, the same for every class that is
compared with the same table: :math:`q \le p (1 + \min(\beta, -\ln p))`, :math:`p e^{-\delta} < q < p e^{\delta}` and
:math:`q \le \alpha`. That is so of counts of rows. Of weights of persons it is not: they do not add up over classes
(:mod:`sfumato.measures.person_weights`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.classes import ClassValueCounts
from sfumato.errors import InvalidParameterError
from sfumato.guarantees import ROUNDING, AlphaKAnonymity, BetaLikeness, DeltaDisclosure, LikenessVariant
from sfumato.measures.value_shares import (
    disclosure_levels,
    disclosure_levels_by_class,
    largest_shares,
    largest_shares_by_class,
    likeness_levels,
    likeness_levels_by_class,
)
from sfumato.mechanisms.base import ParameterSpec

Counts = NDArray[np.int64] | NDArray[np.float64]
"""How often values occur; weights where persons count and some have several rows."""
Levels = NDArray[np.float64]
Flags = NDArray[np.bool_]
ShareGuarantee = BetaLikeness | DeltaDisclosure | AlphaKAnonymity

SHARE_PARAMETERS: Mapping[str, ParameterSpec] = {
    "beta": ParameterSpec("β-likeness: how much more frequent than in the table a sensitive value may get", above=0),
    "likeness": ParameterSpec("kind of β-likeness"),
    "delta": ParameterSpec("δ-disclosure privacy of the sensitive columns: every value in every group", above=0),
    "alpha": ParameterSpec("(α,k)-anonymity: largest share of a sensitive value in a group", above=0, below=1),
}
"""Parameters of mechanisms that can promise these."""

_KINDS: Mapping[str, type[ShareGuarantee]] = {
    "beta": BetaLikeness,
    "delta": DeltaDisclosure,
    "alpha": AlphaKAnonymity,
}


class AsksForShares(Protocol):
    """A mechanism with these parameters."""

    k: int
    beta: float | None
    likeness: LikenessVariant
    delta: float | None
    alpha: float | None


@dataclass(frozen=True)
class SharePromises:
    """What is asked for the shares of sensitive values; parameters as they were given.

    Examples
    --------
    >>> SharePromises(beta=1.0).titles, sorted(SharePromises(beta=1.0).left_unsaid)
    (['β-likeness'], ['alpha', 'delta'])
    """

    beta: float | None = None
    likeness: LikenessVariant = "basic"
    delta: float | None = None
    alpha: float | None = None
    k: int = 2

    @classmethod
    def of(cls, asked: AsksForShares) -> SharePromises:
        """Take them from a mechanism's parameters."""
        return cls(asked.beta, asked.likeness, asked.delta, asked.alpha, asked.k)

    @property
    def asked(self) -> tuple[str, ...]:
        """Parameters by which something is asked for."""
        return tuple(name for name in _KINDS if getattr(self, name) is not None)

    @property
    def titles(self) -> list[str]:
        """What is asked for, in words."""
        return [_KINDS[name].words.title for name in self.asked]

    @property
    def left_unsaid(self) -> frozenset[str]:
        """Parameters that a manifest does not name, so that releases made without them stay as they were."""
        unasked = set(_KINDS) - set(self.asked)
        return frozenset(unasked | ({"likeness"} if "beta" in unasked else set()))

    def check(self) -> None:
        """Refuse a kind of β-likeness where no β is given."""
        if self.beta is None and self.likeness != "basic":
            allowed = "'basic' where beta is not given"
            raise InvalidParameterError("likeness", f"got {self.likeness!r}", allowed=allowed, hint="give beta as well")

    def guarantees(self, name: str, columns: tuple[str, ...]) -> list[ShareGuarantee]:
        """Promises about a sensitive column."""
        promised: list[ShareGuarantee] = []
        if self.beta is not None:
            promised.append(BetaLikeness(float(self.beta), name, columns, self.likeness))
        if self.delta is not None:
            promised.append(DeltaDisclosure(float(self.delta), name, columns))
        if self.alpha is not None:
            promised.append(AlphaKAnonymity(float(self.alpha), int(self.k), name, columns))
        return promised


NO_SHARES = SharePromises()
"""Nothing is asked for."""


@dataclass(frozen=True)
class ShareLimit(ABC):
    """Largest level that a class may have."""

    at_most: float
    compares_with_table: ClassVar[bool] = True
    """Whether a level depends on the rows outside its class; spellings then count as values of their own, too."""

    @abstractmethod
    def levels_of_parts(self, counts: Counts, overall: Counts) -> Levels:
        """Level of each part, from counts of the values in it and in the whole table; lower is safer."""

    @abstractmethod
    def levels_of_classes(self, counts: ClassValueCounts) -> Levels:
        """Level of each class; lower is safer."""

    @abstractmethod
    def describe(self) -> str:
        """Say the limit in a few words."""

    def is_met_by(self, levels: Levels) -> Flags:
        """Whether levels are low enough."""
        return np.asarray(levels <= self.at_most + ROUNDING)


@dataclass(frozen=True)
class LikenessLimit(ShareLimit):
    """β-likeness.

    Examples
    --------
    >>> LikenessLimit(1.0, "enhanced").describe()
    'enhanced 1-likeness'
    """

    likeness: LikenessVariant = "basic"

    def levels_of_parts(self, counts: Counts, overall: Counts) -> Levels:
        """Smallest β of each part."""
        return likeness_levels(counts, overall, self.likeness)

    def levels_of_classes(self, counts: ClassValueCounts) -> Levels:
        """Smallest β of each class."""
        return likeness_levels_by_class(counts, self.likeness)

    def describe(self) -> str:
        """Say the limit in a few words."""
        return f"{self.likeness} {self.at_most:g}-likeness"


@dataclass(frozen=True)
class DisclosureLimit(ShareLimit):
    """δ-disclosure privacy."""

    def levels_of_parts(self, counts: Counts, overall: Counts) -> Levels:
        """Smallest δ of each part."""
        return disclosure_levels(counts, overall)

    def levels_of_classes(self, counts: ClassValueCounts) -> Levels:
        """Smallest δ of each class."""
        return disclosure_levels_by_class(counts)

    def describe(self) -> str:
        """Say the limit in a few words."""
        return f"{self.at_most:g}-disclosure privacy"


@dataclass(frozen=True)
class LargestShare(ShareLimit):
    """Share of the most frequent value; the k of (α,k)-anonymity is the mechanism's own."""

    compares_with_table: ClassVar[bool] = False

    def levels_of_parts(self, counts: Counts, overall: Counts) -> Levels:
        """Largest share in each part."""
        return largest_shares(counts)

    def levels_of_classes(self, counts: ClassValueCounts) -> Levels:
        """Largest share in each class."""
        return largest_shares_by_class(counts)

    def describe(self) -> str:
        """Say the limit in a few words."""
        return f"a share of at most {self.at_most:g} for every value"


def limit_of(guarantee: ShareGuarantee) -> ShareLimit:
    """Limit under which classes of at least k rows keep a promise."""
    if isinstance(guarantee, BetaLikeness):
        return LikenessLimit(guarantee.beta, guarantee.likeness)
    return DisclosureLimit(guarantee.delta) if isinstance(guarantee, DeltaDisclosure) else LargestShare(guarantee.alpha)
