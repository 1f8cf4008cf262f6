r"""Shares of single sensitive values among equal rows: β-likeness, δ-disclosure privacy and (α,k)-anonymity.

t-closeness adds the differences of all values up, so that much more of a rare value is little. These look at each value
by itself: at how much more frequent it gets (β), at how much more or less frequent (δ), or at its share alone (α). By
persons shares are those of weights, as in t-closeness by persons; neither sense follows from the other.

By rows each holds for a class that is made up of classes for which it holds: the share of a value in the union is a
weighted mean of its shares in the parts, and all three allow an interval of shares, the same for every class that is
compared with the same table: :math:`q \le p (1 + \min(\beta, -\ln p))`, :math:`p e^{-\delta} < q < p e^{\delta}` and
:math:`q \le \alpha`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from sfumato.counting import ROUNDING
from sfumato.errors import InvalidParameterError
from sfumato.guarantees.base import (
    EVERY_SENSITIVE,
    KNOWS_ALL,
    LEAST_CROWD,
    AboutValues,
    GuaranteeWords,
    Level,
    check_whole,
    declared,
)
from sfumato.guarantees.diversity import LDiversity
from sfumato.guarantees.forms import AboveZero, Crowd, ProperShare
from sfumato.parameters import ParameterSpec

if TYPE_CHECKING:
    from sfumato.counting.counts import AnyCounts
    from sfumato.guarantees.base import Levels

LikenessVariant = Literal["basic", "enhanced"]

KNOWS_TABLE = f"{KNOWS_ALL}, and how the sensitive ones are distributed in the whole table"
TABLE_IS_SHOWN = "Protection of that distribution itself: it is released."


def check_above_zero(name: str, value: float) -> None:
    """Refuse a level that is no number above 0."""
    if not 0 < value < math.inf:
        raise InvalidParameterError(name, f"got {value!r}", allowed="a number above 0")


def check_largest_share(alpha: float, k: int) -> None:
    """Refuse an α that is no share, and a k that is no crowd."""
    check_whole("k", k, LEAST_CROWD)
    if not 0 < alpha < 1:
        raise InvalidParameterError("alpha", f"got {alpha!r}", allowed="above 0 and below 1")


@declared
@dataclass(frozen=True)
class BetaLikeness(AboutValues):
    r"""In every class no sensitive value is much more frequent than in the whole table.

    Basic and enhanced :math:`\beta`-likeness of [CK12]_. With the share p of a value in the table and q in a class,
    :math:`(q - p)/p \le \beta` for all values; enhanced: :math:`(q - p)/p \le \min(\beta, -\ln p)`, so that a frequent
    value cannot become certain however large :math:`\beta` is. Values that get rarer are not looked at: that somebody
    is less likely to have one is not what the model protects.

    References
    ----------
    .. [CK12] Cao, Karras: Publishing Microdata with a Robust Privacy Guarantee. PVLDB 5(11) (2012).
    """

    kind: ClassVar[str] = "beta-likeness"
    compares_with_table: ClassVar[bool] = True
    shorthand: ClassVar[Mapping[str, ParameterSpec]] = {
        "beta": ParameterSpec(
            "β-likeness: how much more frequent than in the table a sensitive value may get", above=0
        ),
        "likeness": ParameterSpec("kind of β-likeness"),
    }
    level: ClassVar[Level] = Level("beta", False, "a number above 0", lambda beta: beta > 0)
    asked_as: ClassVar[tuple[str, ...]] = ("beta",)
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="β-likeness",
        meaning="In every group of equal rows, the share of each sensitive value is at most 1 + β times its share in "
        "the whole table; enhanced: at most 1 − ln(share) times, too.",
        found="Found: the value that gains most gains {level} times its share. Promised: at most {beta} times, "
        "{likeness}.",
        against=KNOWS_TABLE,
        not_promised=(
            "That a value does not become rarer in a group, or is missing there.",
            TABLE_IS_SHOWN,
        ),
    )
    beta: AboveZero
    sensitive: str = EVERY_SENSITIVE
    columns: tuple[str, ...] = ()
    likeness: LikenessVariant = "basic"
    protected: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_above_zero("beta", self.beta)

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        enhanced = ", nor by more than -ln(that share) times it" if self.likeness == "enhanced" else ""
        return (
            f"among rows that are equal on {len(self.over)} quasi-identifying columns, no value of '{self.sensitive}' "
            f"exceeds its share in the whole table by more than {self.beta:g} times that share{enhanced}"
            f"{self._weighed()}{self._left_out()}"
        )

    def levels(self, counts: AnyCounts) -> Levels:
        """Smallest β of each class."""
        from sfumato.measures.value_shares import likeness_levels

        return likeness_levels(counts, self.likeness)

    def in_short(self) -> str:
        """Say what is asked of a class in a few words."""
        return f"{self.likeness} {self.beta:g}-likeness{' by persons' if self.by_persons else ''}"


@declared
@dataclass(frozen=True)
class DeltaDisclosure(AboutValues):
    r"""In every class each sensitive value of the table occurs, with nearly its share in the whole table.

    :math:`\delta`-disclosure privacy of [BS08]_: :math:`|\ln(q/p)| < \delta` for every value of the table, with its
    share p there and q in a class. A value that a class lacks has :math:`\ln 0`, which no :math:`\delta` allows. (ARX
    and pycanon look only at the values that a class has; ARX takes logarithms to base 2 and, as everywhere, compares
    with the table before suppression.)

    Notes
    -----
    A level is compared by "at most", as every other one. That is the same as the paper's "below": the logarithm of a
    fraction other than 1 is transcendental, hence never equal to a number that can be written down, and :math:`\delta`
    must be above 0.

    References
    ----------
    .. [BS08] Brickell, Shmatikov: The Cost of Privacy: Destruction of Data-Mining Utility in Anonymized Data
       Publishing. KDD (2008).
    """

    kind: ClassVar[str] = "delta-disclosure"
    compares_with_table: ClassVar[bool] = True
    shorthand: ClassVar[Mapping[str, ParameterSpec]] = {
        "delta": ParameterSpec("δ-disclosure privacy of the sensitive columns: every value in every group", above=0),
    }
    level: ClassVar[Level] = Level("delta", False, "a number above 0", lambda delta: delta > 0)
    asked_as: ClassVar[tuple[str, ...]] = ("delta",)
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="δ-disclosure privacy",
        meaning="In every group of equal rows, each sensitive value of the table occurs, and its share is that in the "
        "whole table up to a factor of e to the power of δ.",
        found="Found: the share that differs most does so by a factor of e to the power of {level}. Promised: below "
        "{delta}.",
        against=KNOWS_TABLE,
        not_promised=(TABLE_IS_SHOWN,),
    )
    delta: AboveZero
    sensitive: str = EVERY_SENSITIVE
    columns: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_above_zero("delta", self.delta)

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        return (
            f"among rows that are equal on {len(self.over)} quasi-identifying columns, every value of "
            f"'{self.sensitive}' occurs, with its share in the whole table up to a factor of e^{self.delta:g}"
            f"{self._weighed()}{self._left_out()}"
        )

    def levels(self, counts: AnyCounts) -> Levels:
        """Smallest δ of each class."""
        from sfumato.measures.value_shares import disclosure_levels

        return disclosure_levels(counts)

    def in_short(self) -> str:
        """Say what is asked of a class in a few words."""
        return f"{self.delta:g}-disclosure privacy{' by persons' if self.by_persons else ''}"


@declared
@dataclass(frozen=True)
class AlphaKAnonymity(AboutValues):
    r"""Classes have at least k rows, and no sensitive value makes up more than a share :math:`\alpha` of one.

    :math:`(\alpha, k)`-anonymity of [WLFW06]_, whose general form this is: every value of the column is sensitive. It
    limits the share of the most frequent value, which l-diversity leaves open, and compares with no distribution.

    References
    ----------
    .. [WLFW06] Wong, Li, Fu, Wang: (α, k)-Anonymity: An Enhanced k-Anonymity Model for Privacy Preserving Data
       Publishing. KDD (2006).
    """

    kind: ClassVar[str] = "alpha-k-anonymity"
    shorthand: ClassVar[Mapping[str, ParameterSpec]] = {
        "alpha": ParameterSpec("(α,k)-anonymity: largest share of a sensitive value in a group", above=0, below=1),
    }
    level: ClassVar[Level] = Level("alpha", False, "a number above 0 and below 1", lambda alpha: 0 < alpha < 1)
    asked_as: ClassVar[tuple[str, ...]] = ("alpha",)
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="(α,k)-anonymity",
        meaning="Every group of equal rows has at least k, and no sensitive value makes up more than a share α of it.",
        found="Found: the most frequent value of a group has a share of {level}. Promised: at most {alpha}, in groups "
        "of at least {k} {units}.",
        against=f"{KNOWS_ALL}, and who wants the sensitive one",
        not_promised=(
            "Protection where the values of a group mean nearly the same.",
            "That a value is as frequent in a group as in the whole table.",
        ),
    )
    alpha: ProperShare
    k: Crowd = LEAST_CROWD
    sensitive: str = EVERY_SENSITIVE
    columns: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_largest_share(self.alpha, self.k)

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        crowd, weighed = f"are at least {self.k}", ""
        if self.by_persons:
            crowd = f"belong to at least {self.k} different persons"
            weighed = f", where each person weighs 1, shared over the person's rows in the group{self._by()}"
        return (
            f"rows that are equal on {len(self.over)} quasi-identifying columns {crowd}, and no value of "
            f"'{self.sensitive}' has a share above {self.alpha:g} among them{weighed}{self._left_out()}"
        )

    def levels(self, counts: AnyCounts) -> Levels:
        """Largest share of a value in each class; its k is that of k-anonymity, which goes with it."""
        from sfumato.measures.value_shares import largest_shares

        return largest_shares(counts)

    def implied(self) -> LDiversity | None:
        """Distinct 1/α-diversity: shares of at most α add up to 1 over at least 1/α values."""
        n_values = math.ceil(1 / (self.alpha + ROUNDING) - ROUNDING)
        return LDiversity(n_values, self.sensitive, self.columns) if n_values >= LEAST_CROWD else None

    def in_short(self) -> str:
        """Say what is asked of a class in a few words."""
        return f"a share of at most {self.alpha:g} for every value{' by persons' if self.by_persons else ''}"
