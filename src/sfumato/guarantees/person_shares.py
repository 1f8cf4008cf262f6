r"""Promises about shares of single sensitive values that count persons, where a person may have several rows.

As in :mod:`sfumato.guarantees.person_values` each has a kind of its own, and the same weights: in a class each person
weighs 1, shared equally over the person's rows there, and in the whole release 1, shared over all of the person's
released rows. With the share q of a value among the weights of a class and p among those of the release, what is
promised reads as in :mod:`sfumato.guarantees.value_shares`. Neither sense follows from the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.guarantees.base import KNOWS_ALL, Guarantee, GuaranteeWords, Level, declared
from sfumato.guarantees.forms import AboveZero, Crowd, ProperShare
from sfumato.guarantees.persons import LINKED
from sfumato.guarantees.value_shares import (
    KNOWS_TABLE,
    TABLE_IS_SHOWN,
    AlphaKAnonymity,
    BetaLikeness,
    DeltaDisclosure,
    LikenessVariant,
    check_above_zero,
    check_largest_share,
)

_WEIGHED = "where each person weighs 1 in a group and in the table, shared over the person's rows there"


@declared
@dataclass(frozen=True)
class PersonLikeness(Guarantee):
    r"""β-likeness by persons: :math:`(q - p)/p \le \beta` of weights; enhanced: :math:`\le \min(\beta, -\ln p)`."""

    kind: ClassVar[str] = "beta-persons"
    level: ClassVar[Level] = BetaLikeness.level
    asked_as: ClassVar[tuple[str, ...]] = ("beta",)
    rests_on_original: ClassVar[bool] = True
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="β-likeness by persons",
        meaning="In every group of equal rows, the share of each sensitive value is at most 1 + β times its share in "
        "the whole table, where each person counts once, in the group and in the table; enhanced: at most "
        "1 − ln(share) times, too.",
        found="Found: the value that gains most gains {level} times its share. Promised: at most {beta} times, "
        "{likeness}, by persons.",
        against=KNOWS_TABLE,
        not_promised=(LINKED, "That a value does not become rarer in a group, or is missing there.", TABLE_IS_SHOWN),
    )
    beta: AboveZero
    sensitive: str
    columns: tuple[str, ...]
    likeness: LikenessVariant = "basic"
    person: str = ""

    def __post_init__(self) -> None:
        check_above_zero("beta", self.beta)

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        enhanced = ", nor by more than -ln(that share) times it" if self.likeness == "enhanced" else ""
        return (
            f"among rows that are equal on {len(self.columns)} quasi-identifying columns, no value of "
            f"'{self.sensitive}' exceeds its share in the whole table by more than {self.beta:g} times that share"
            f"{enhanced}, {_WEIGHED} (by '{self.person}', which is not released)"
        )


@declared
@dataclass(frozen=True)
class PersonDisclosure(Guarantee):
    r"""δ-disclosure privacy by persons: :math:`|\ln(q/p)| < \delta` of weights, for every value of the release."""

    kind: ClassVar[str] = "delta-persons"
    level: ClassVar[Level] = DeltaDisclosure.level
    asked_as: ClassVar[tuple[str, ...]] = ("delta",)
    rests_on_original: ClassVar[bool] = True
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="δ-disclosure privacy by persons",
        meaning="In every group of equal rows, each sensitive value of the table occurs, and its share is that in the "
        "whole table up to a factor of e to the power of δ, where each person counts once, in the group and in the "
        "table.",
        found="Found: the share that differs most does so by a factor of e to the power of {level}. Promised: below "
        "{delta}, by persons.",
        against=KNOWS_TABLE,
        not_promised=(LINKED, TABLE_IS_SHOWN),
    )
    delta: AboveZero
    sensitive: str
    columns: tuple[str, ...]
    person: str = ""

    def __post_init__(self) -> None:
        check_above_zero("delta", self.delta)

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        return (
            f"among rows that are equal on {len(self.columns)} quasi-identifying columns, every value of "
            f"'{self.sensitive}' occurs, with its share in the whole table up to a factor of e^{self.delta:g}, "
            f"{_WEIGHED} (by '{self.person}', which is not released)"
        )


@declared
@dataclass(frozen=True)
class PersonShare(Guarantee):
    r"""(α,k)-anonymity by persons: rows of at least k persons in a class, and :math:`q \le \alpha` of weights."""

    kind: ClassVar[str] = "alpha-k-persons"
    level: ClassVar[Level] = AlphaKAnonymity.level
    asked_as: ClassVar[tuple[str, ...]] = ("alpha",)
    rests_on_original: ClassVar[bool] = True
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="(α,k)-anonymity by persons",
        meaning="Every group of equal rows is that of at least k persons, and no sensitive value makes up more than a "
        "share α of it, where each person counts once.",
        found="Found: the most frequent value of a group has a share of {level}. Promised: at most {alpha}, in groups "
        "of at least {k} persons.",
        against=f"{KNOWS_ALL}, and who wants the sensitive one",
        not_promised=(LINKED, *AlphaKAnonymity.words.not_promised),
    )
    alpha: ProperShare
    k: Crowd
    sensitive: str
    columns: tuple[str, ...]
    person: str = ""

    def __post_init__(self) -> None:
        check_largest_share(self.alpha, self.k)

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        return (
            f"rows that are equal on {len(self.columns)} quasi-identifying columns belong to at least {self.k} "
            f"different persons, and no value of '{self.sensitive}' has a share above {self.alpha:g} among them, where "
            f"each person weighs 1, shared over the person's rows in the group (by '{self.person}', which is not "
            "released)"
        )
