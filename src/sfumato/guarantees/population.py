"""Promises about a table of the population that the released people are from: k-map and δ-presence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from sfumato.errors import InvalidParameterError
from sfumato.guarantees.base import (
    LEAST_CROWD,
    Guarantee,
    GuaranteeWords,
    K,
    Level,
    ReleaseFacts,
    SearchedBy,
    check_share,
    check_whole,
    declared,
)
from sfumato.guarantees.forms import Crowd, ProperShare, Share
from sfumato.parameters import ParameterSpec

HOLDS_REGISTER = "an attacker who holds this population table, with the quasi-identifying values of everybody in it"
_ANOTHER_REGISTER = "That it holds with a newer or a larger population table: another table may change it."

Commitment = Annotated[str, {"type": "string", "pattern": "^[0-9a-f]{64}$"}]


@dataclass(frozen=True)
class AboutPopulation(Guarantee):
    """A promise that rests on a population table, which recipients of the release do not have.

    Parameters
    ----------
    people : int
        Rows of that table, one a person.
    register : str
        Commitment to that table by the key of the release; empty without one. A plain hash would let anybody confirm a
        guess of the table.
    """

    of_original: ClassVar[bool] = True
    absent_when_empty: ClassVar[tuple[str, ...]] = ("register",)
    searched_by: ClassVar[SearchedBy | None] = SearchedBy.PEOPLE
    people: int = 0
    columns: tuple[str, ...] = ()
    register: Commitment = ""

    def _against(self) -> str:
        return (
            f"against an attacker who holds this population table of {self.people:,} people (a newer one may change it)"
        )


@declared
@dataclass(frozen=True, kw_only=True)
class KMap(AboutPopulation):
    """k-map of Sweeney (2001): every released row fits at least k people of a population table."""

    kind: ClassVar[str] = "k-map"
    shorthand: ClassVar[Mapping[str, ParameterSpec]] = {
        "k_map": ParameterSpec("k-map: people of the population table whom every released row fits", at_least=2)
    }
    level: ClassVar[Level] = Level("k_map", K.higher_is_safer, K.allowed, K.makes_sense)
    slack: ClassVar[float] = 0.0
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="k-map",
        meaning="Every released row fits at least k people of a population table: whoever looks a row up there by its "
        "quasi-identifying values finds at least k people.",
        found="Found: the row that fits fewest people fits {level} of {people}. Promised: at least {k_map}.",
        against=HOLDS_REGISTER,
        not_promised=(
            _ANOTHER_REGISTER,
            "k-anonymity: fewer than k released rows may be equal. Whoever knows that a person is in the release may "
            "find their row.",
            "That the sensitive value stays unknown.",
        ),
    )
    k_map: Crowd

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("k_map", self.k_map, LEAST_CROWD)

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        return (
            f"{self._against()}: every released row fits at least {self.k_map} of these people on "
            f"{len(self.columns)} quasi-identifying columns"
        )

    def left_open(self, facts: ReleaseFacts) -> Iterator[str]:
        """Say what an attacker learns who knows that a person is in the release."""
        if facts.smallest_class is None or facts.smallest_class < self.k_map:
            said = "k-map protects from those who do not know who is in the release; whoever knows it may find a row"
            yield facts.with_smallest_class(said)


@declared
@dataclass(frozen=True, kw_only=True)
class Presence(AboutPopulation):
    """δ-presence of Nergiz, Atzori and Clifton (2007), by classes of equal rows that nobody fits two of."""

    kind: ClassVar[str] = "delta-presence"
    shorthand: ClassVar[Mapping[str, ParameterSpec]] = {
        "delta_max": ParameterSpec(
            "δ-presence: most that somebody of that table is in the release with", above=0, below=1
        ),
        "delta_min": ParameterSpec("δ-presence: least that everybody of that table is in it with", at_least=0, below=1),
    }
    level: ClassVar[Level] = Level("delta_max", False, "a number above 0 and below 1", lambda delta: 0 < delta < 1)
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="δ-presence",
        meaning="Whoever holds the population table, and takes people with the same quasi-identifying values as "
        "equally likely, believes of each of them that they are in the release with a probability between δ_min and "
        "δ_max.",
        found="Found: at most {level}. Promised: from {delta_min} to {delta_max}, for {people} people.",
        against=HOLDS_REGISTER,
        not_promised=(
            _ANOTHER_REGISTER,
            "Anything against attackers who know more about who takes part than the quasi-identifying values.",
            "That the sensitive value of those who are in the release stays unknown.",
        ),
    )
    delta_max: ProperShare
    delta_min: Share = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.delta_max < 1:
            raise InvalidParameterError("delta_max", f"got {self.delta_max!r}", allowed="above 0 and below 1")
        check_share("delta_min", self.delta_min)
        if self.delta_min > self.delta_max:
            problem = f"got {self.delta_min:g}, and delta_max is {self.delta_max:g}"
            raise InvalidParameterError("delta_min", problem, allowed="at most delta_max")

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        return (
            f"{self._against()}: each of these people is in the release with a probability from {self.delta_min:g} to "
            f"{self.delta_max:g}, as far as {len(self.columns)} quasi-identifying columns tell"
        )
