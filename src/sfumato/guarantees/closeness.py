"""Sensitive values among equal rows as in the whole table: t-closeness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from sfumato.guarantees.base import (
    EVERY_SENSITIVE,
    KNOWS_ALL,
    AboutValues,
    FormField,
    GuaranteeWords,
    Level,
    check_share,
    declared,
)
from sfumato.guarantees.forms import Share
from sfumato.parameters import ParameterSpec

if TYPE_CHECKING:
    from sfumato.counting.counts import AnyCounts
    from sfumato.guarantees.base import Levels

ClosenessDistance = Literal["equal", "ordered"]


@declared
@dataclass(frozen=True)
class TCloseness(AboutValues):
    """In every class the sensitive column is distributed almost as in the whole table.

    By persons the distributions are those of weights: in a class each person weighs 1, shared equally over the person's
    rows there, and in the whole release 1, shared over all of the person's released rows.
    """

    kind: ClassVar[str] = "t-closeness"
    compares_with_table: ClassVar[bool] = True
    shorthand: ClassVar[Mapping[str, ParameterSpec]] = {
        "t": ParameterSpec("t-closeness of the sensitive columns in every group"),
        "distance": ParameterSpec("distance of t-closeness"),
    }
    level: ClassVar[Level] = Level("t", False, "a number from 0 and below 1", lambda t: 0 <= t < 1)
    asked_as: ClassVar[tuple[str, ...]] = ("t",)
    form_field: ClassVar[FormField | None] = FormField(
        symbol="t",
        title="Distance from the whole table's distribution",
        why="In every group, the sensitive values are distributed nearly as in the whole table.",
        suggested="empty; 0.2 where even a likely value would do harm",
        left_empty="A sensitive value may be much more likely in a group than in the whole table.",
    )
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="t-closeness",
        meaning="In every group of equal rows, the sensitive values are distributed nearly as in the whole table: the "
        "distance is at most t.",
        found="Found: the group that differs most is at a distance of {level}. Promised: at most {t}.",
        against=f"{KNOWS_ALL} and the distribution of the sensitive values in the whole table",
        not_promised=("Protection of that distribution itself: it is released.",),
    )
    t: Share
    sensitive: str = EVERY_SENSITIVE
    columns: tuple[str, ...] = ()
    distance: ClosenessDistance = "equal"
    protected: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("t", self.t)

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        return (
            f"among rows that are equal on {len(self.over)} quasi-identifying columns, '{self.sensitive}' is "
            f"distributed as in the whole table up to a distance of {self.t:g}{self._weighed()}{self._left_out()}"
        )

    def levels(self, counts: AnyCounts) -> Levels:
        """Distance of each class from what it is compared with."""
        from sfumato.measures.diversity import distances

        return distances(counts, self.distance)

    def in_short(self) -> str:
        """Say what is asked of a class in a few words."""
        return f"{self.t:g}-closeness ({self.distance} distance){' by persons' if self.by_persons else ''}"
