"""Patterns of 0/1 columns: k-anonymity by containment, and few unique patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sfumato.errors import InvalidParameterError
from sfumato.guarantees.base import (
    KNOWS_ALL,
    CrowdGuarantee,
    FormField,
    Guarantee,
    GuaranteeWords,
    Level,
    check_share,
    declared,
)
from sfumato.guarantees.forms import Share, list_of, word

REVEALING = ("ones", "zeros", "both")
"""Which values of a binary column an attacker may know."""


@declared
@dataclass(frozen=True)
class Containment(CrowdGuarantee):
    """k-anonymity by containment: the ones of every row are included in those of at least k - 1 other rows.

    ``reveals`` says for each column which values an attacker may know; empty means the ones of every column. By persons
    at least k of them have a row with all ones of a row; what two rows of a person have together counts for nobody, for
    an attacker who looks for the values in one row finds neither.
    """

    kind: ClassVar[str] = "containment"
    counts_persons: ClassVar[bool] = True
    asked_as: ClassVar[tuple[str, ...]] = ("containment",)
    form_field: ClassVar[FormField | None] = FormField(
        symbol="k",
        title="People who have the same",
        why="An attacker who knows only what a person has (items bought, conditions) still has at least k matching "
        "rows. It is not k-anonymity: an attacker who also knows what the person does not have may find one row.",
        suggested="5; 10 or more for a release to the public",
        left_empty="What a person has may match a single row.",
    )
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="k-anonymity by containment",
        meaning="For 0/1 tables. Knowing any 1-values of a person still leaves at least k matching rows. 0-values are "
        "not covered, unless they are declared as revealing.",
        found="Found: at least {level} {units} have all revealing values of a row. Promised: at least {k}.",
        against="an attacker who knows some revealing values of a person (by default the 1-values: conditions, items "
        "bought)",
        not_promised=(
            "Anything about values that are not declared as revealing, by default the 0-values.",
            "That no row is unique: no other row may have the same pattern of 0-values and 1-values.",
        ),
    )
    reveals: Annotated[tuple[str, ...], list_of(word(*REVEALING))] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reveals and (len(self.reveals) != len(self.columns) or not set(self.reveals) <= set(REVEALING)):
            raise InvalidParameterError(
                "reveals", "but this list is not", allowed=f"one of {REVEALING} for each column"
            )

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        known, rest = self._known_and_rest()
        crowd = f"different persons{self._by()} have a row with them all" if self.by_persons else "rows have them all"
        return (
            f"whatever {known} of a row an attacker knows among {len(self.columns)} binary columns, "
            f"at least {self.k} {crowd}{rest}"
        )

    def _known_and_rest(self) -> tuple[str, str]:
        """Say which values reveal, and what is to be said of the others."""
        if not self.reveals:
            return "ones", " (nothing is promised about zeros)"
        counted = ", ".join(f"{self.reveals.count(v)}: {v}" for v in REVEALING if v in self.reveals)
        return "revealing values", f" (revealing are, by number of columns, {counted})"

    def in_plain_words(self) -> str:
        """Say the promise for people."""
        crowd = "different persons with a matching row" if self.by_persons else "matching rows"
        columns = f"these {len(self.columns)} columns" if len(self.columns) != 1 else "this column"
        if not self.reveals:
            return (
                f"knowing any 1-values of a person in {columns} still leaves at least {self.k} {crowd}. 0-values "
                "are not covered"
            )
        named = {"ones": "the 1-values", "zeros": "the 0-values", "both": "both values"}
        counted = ", ".join(f"{named[v]} of {self.reveals.count(v)}" for v in REVEALING if v in self.reveals)
        return (
            f"knowing any revealing values of a person in {columns} still leaves at least {self.k} {crowd}. "
            f"Revealing values, by number of columns: {counted}. Other values are not covered"
        )

    @property
    def open_values(self) -> str:
        """Values that are not covered where only 1-values are said to reveal."""
        return "" if self.reveals else "0-values"


@declared
@dataclass(frozen=True)
class UniquePatterns(Guarantee):
    """At most a given share of the rows is unique on ``columns``."""

    kind: ClassVar[str] = "unique-patterns"
    level: ClassVar[Level] = Level("max_unique_fraction", higher_is_safer=False)
    form_field: ClassVar[FormField | None] = FormField(
        symbol="θ",
        title="Largest share of unique rows",
        why="Few rows have a 0/1 pattern that no other row has.",
        suggested="empty; 0.05 if attackers may also know 0-values",
        left_empty="Any number of rows may be unique to an attacker who also knows 0-values.",
    )
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="few unique rows",
        meaning="At most a share θ of the rows has a combination of values that no other row has.",
        found="Found: a share of {level} of the rows is unique. Promised: at most {max_unique_fraction}.",
        against=KNOWS_ALL,
        not_promised=("Anything about the other rows, which may be in groups of two.",),
    )
    max_unique_fraction: Share
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("max_unique_fraction", self.max_unique_fraction)

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        return (
            f"at most {self.max_unique_fraction:.4g} of the rows have values on {len(self.columns)} "
            "quasi-identifying columns that no other row has"
        )
