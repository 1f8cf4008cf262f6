"""Different sensitive values among equal rows: l-diversity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from sfumato.errors import InvalidParameterError
from sfumato.guarantees.base import (
    EVERY_SENSITIVE,
    KNOWS_ALL,
    LEAST_CROWD,
    AboutValues,
    FormField,
    GuaranteeWords,
    L,
    Level,
    declared,
)
from sfumato.guarantees.forms import AboveOne
from sfumato.parameters import ParameterSpec

if TYPE_CHECKING:
    from sfumato.counting.counts import AnyCounts
    from sfumato.guarantees.base import Flags, Levels

DiversityVariant = Literal["distinct", "entropy", "recursive"]


def check_diversity(l: float, variant: DiversityVariant) -> None:  # noqa: E741  # the field's own name
    """Refuse a level that every class has: one value, or an entropy of at least log(1)."""
    if variant == "entropy":
        if not 1 < l < math.inf:
            raise InvalidParameterError("l", f"got {l!r}", allowed="above 1 for entropy l-diversity")
    elif not LEAST_CROWD <= l < math.inf:
        raise InvalidParameterError("l", f"got {l!r}", allowed=f"at least {LEAST_CROWD}")


@declared
@dataclass(frozen=True)
class LDiversity(AboutValues):
    """Every class of rows equal on ``columns`` has well-represented values of the sensitive column.

    By persons, distinct l are l different values that l different persons carry, each one of them: a matching of size l
    between the values and the persons of the class. Whoever is taken out, l - 1 values of as many persons are left.
    Entropy and recursive l are those of the weights of values: each person weighs 1 in a class, shared equally over the
    person's rows there.
    """

    kind: ClassVar[str] = "l-diversity"
    shorthand: ClassVar[Mapping[str, ParameterSpec]] = {
        "l": ParameterSpec("l-diversity of the sensitive columns in every group"),
        "variant": ParameterSpec("kind of l-diversity"),
        "c": ParameterSpec("c of recursive (c, l)-diversity"),
    }
    level: ClassVar[Level] = L
    asked_as: ClassVar[tuple[str, ...]] = ("l", "l-diversity")
    form_field: ClassVar[FormField | None] = FormField(
        symbol="l",
        title="Different sensitive values in a group",
        why="An attacker who finds a person's group still does not know the sensitive value.",
        suggested="2 or 3 if a column is sensitive, else empty",
        left_empty="All people of a group may share one sensitive value; whoever finds the group learns it.",
    )
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="l-diversity",
        meaning="Every group of equal rows has at least l well-represented values of the sensitive column.",
        found="Found: the least diverse group reaches {level}. Promised: at least {l}, counted as {variant} values.",
        against=f"{KNOWS_ALL} and wants the sensitive value",
        not_promised=(
            "Protection where the values of a group mean nearly the same.",
            "Protection where one value of a group is far more frequent than the others.",
        ),
    )
    l: AboveOne  # noqa: E741  # the field's own name
    sensitive: str = EVERY_SENSITIVE
    columns: tuple[str, ...] = ()
    variant: DiversityVariant = "distinct"
    c: float | None = None
    protected: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_diversity(self.l, self.variant)
        if (self.variant == "recursive") != (self.c is not None):
            raise InvalidParameterError(
                "c", f"got {self.c!r}", allowed="given for recursive l-diversity and only there"
            )
        if self.c is not None and not 0 < self.c < math.inf:
            raise InvalidParameterError("c", f"got {self.c!r}", allowed="above 0")

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        ways = {
            "distinct": f"at least {self.l:g} different values of '{self.sensitive}'",
            "entropy": f"an entropy of '{self.sensitive}' of at least log({self.l:g})",
            "recursive": f"recursive ({self.c or 0:g}, {self.l:g})-diverse values of '{self.sensitive}'",
        }
        way = ways[self.variant]
        if self.by_persons:
            weighed = ", where each person weighs 1, shared over the person's rows in the group"
            way += " of as many different persons" if self.variant == "distinct" else weighed
        said = f"rows that are equal on {len(self.over)} quasi-identifying columns have {way}"
        return f"{said}{self._by()}{self._left_out()}"

    def levels(self, counts: AnyCounts) -> Levels:
        """Largest l of each class."""
        from sfumato.measures.diversity import distinct_diversity, entropy_diversity, recursive_diversity

        if self.variant == "recursive":
            return recursive_diversity(counts, self.c or 0.0)
        return entropy_diversity(counts) if self.variant == "entropy" else distinct_diversity(counts)

    def are_kept_by(self, counts: AnyCounts) -> Flags:
        """Whether classes are diverse enough; where persons are matched with values, bounds decide most classes."""
        return self.are_met_by(counts.matched(self.l) if self.variant == "distinct" else self.levels(counts))

    @property
    def is_kept_by_growing(self) -> bool:
        """Different values, of as many units, only get more; a diverse class joined with one value need not be."""
        return self.variant == "distinct"

    def implied(self) -> LDiversity:
        """Distinct l-diversity, which both other variants imply."""
        return LDiversity(max(self.l, LEAST_CROWD), self.sensitive, self.columns)

    def in_short(self) -> str:
        """Say what is asked of a class in a few words."""
        what = f"({self.c:g}, {self.l:g})" if self.c is not None else f"{self.l:g}"
        return f"{self.variant} {what}-diversity{' by persons' if self.by_persons else ''}"
