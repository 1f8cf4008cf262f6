"""Promises about sensitive values that count persons, where a person may have several rows.

Each has a kind of its own beside the one that counts rows: the kind alone says which sense is meant, and a manifest
that was published before keeps its meaning. In a class each person weighs 1, shared equally over the person's rows
there; in the whole release each person weighs 1, shared over all of the person's released rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.errors import InvalidParameterError
from sfumato.guarantees.base import KNOWS_ALL, Guarantee, GuaranteeWords, L, Level, check_share, declared
from sfumato.guarantees.closeness import ClosenessDistance, TCloseness
from sfumato.guarantees.diversity import DiversityVariant, check_diversity
from sfumato.guarantees.forms import AboveOne, Share
from sfumato.guarantees.persons import LINKED


@declared
@dataclass(frozen=True)
class PersonDiversity(Guarantee):
    r"""l-diversity of every class, counted by persons.

    - ``distinct``: l different values that l different persons carry, each one of them: a matching of size l between
      the values and the persons of the class. Then l - 1 values are left, carried by l - 1 different persons, whoever
      is taken out: a person is in one pair of the matching at most, and the other pairs stay.
    - ``entropy`` and ``recursive``: as in :class:`sfumato.guarantees.diversity.LDiversity`, of the weights of values.
    """

    kind: ClassVar[str] = "l-persons"
    level: ClassVar[Level] = L
    asked_as: ClassVar[tuple[str, ...]] = ("l",)
    rests_on_original: ClassVar[bool] = True
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="l-diversity by persons",
        meaning="Every group of equal rows has at least l well-represented values of the sensitive column, where each "
        "person counts once. Distinct: l different values of l different persons.",
        found="Found: the least diverse group reaches {level}. Promised: at least {l}, counted as {variant} values by "
        "persons.",
        against=f"{KNOWS_ALL} and wants the sensitive value",
        not_promised=(
            LINKED,
            "Protection where the values of a group mean nearly the same.",
            "Protection where one value of a group is far more frequent than the others.",
        ),
    )
    l: AboveOne  # noqa: E741  # the field's own name
    sensitive: str
    columns: tuple[str, ...]
    variant: DiversityVariant = "distinct"
    c: float | None = None
    person: str = ""

    def __post_init__(self) -> None:
        check_diversity(self.l, self.variant)
        if (self.variant == "recursive") != (self.c is not None):
            allowed = "given for recursive l-diversity and only there"
            raise InvalidParameterError("c", f"got {self.c!r}", allowed=allowed)

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        weighed = "where each person weighs 1, shared over the person's rows in the group"
        ways = {
            "distinct": f"at least {self.l:g} different values of '{self.sensitive}' of as many different persons",
            "entropy": f"an entropy of '{self.sensitive}' of at least log({self.l:g}), {weighed}",
            "recursive": f"recursive ({self.c or 0:g}, {self.l:g})-diverse values of '{self.sensitive}', {weighed}",
        }
        return (
            f"rows that are equal on {len(self.columns)} quasi-identifying columns have {ways[self.variant]} (by "
            f"'{self.person}', which is not released)"
        )


@declared
@dataclass(frozen=True)
class PersonCloseness(Guarantee):
    """t-closeness of every class to the whole release, counted by persons: see the module for their weights."""

    kind: ClassVar[str] = "t-persons"
    level: ClassVar[Level] = TCloseness.level
    asked_as: ClassVar[tuple[str, ...]] = ("t",)
    rests_on_original: ClassVar[bool] = True
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="t-closeness by persons",
        meaning="In every group of equal rows, the sensitive values are distributed nearly as in the whole table: the "
        "distance is at most t, where each person counts once, in the group and in the table.",
        found="Found: the group that differs most is at a distance of {level}. Promised: at most {t}, by persons.",
        against=f"{KNOWS_ALL} and the distribution of the sensitive values in the whole table",
        not_promised=(LINKED, "Protection of that distribution itself: it is released."),
    )
    t: Share
    sensitive: str
    columns: tuple[str, ...]
    distance: ClosenessDistance = "equal"
    person: str = ""

    def __post_init__(self) -> None:
        check_share("t", self.t)

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        return (
            f"among rows that are equal on {len(self.columns)} quasi-identifying columns, '{self.sensitive}' is "
            f"distributed as in the whole table up to a distance of {self.t:g}, where each person weighs 1 in a group "
            f"and in the table, shared over the person's rows there (by '{self.person}', which is not released)"
        )
