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

    ``reveals`` says for each column which values an attacker may know; empty means the ones of every column.
    """

    kind: ClassVar[str] = "containment"
    asked_as: ClassVar[tuple[str, ...]] = ("containment",)
    form_field: ClassVar[FormField | None] = FormField(
        symbol="k",
        title="People who have the same",
        why="Somebody who knows only what people have (items bought, conditions had) is left with at least k rows. It "
        "is not k-anonymity: who also knows what a person does not have may find one row.",
        suggested="5; 10 or more for a release to the public",
        left_empty="What a person has may fit one row alone.",
    )
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="k-anonymity by containment",
        meaning="For 0/1 tables. Take the ones of any row: at least k rows have all of them. Who knows some ones of a "
        "person cannot get below k rows.",
        found="Found: whatever is known of a person, at least {level} rows have it. Promised: at least {k}.",
        against="somebody who knows some revealing values of a person (by default the ones: conditions had, items "
        "bought)",
        not_promised=(
            "Anything about values that are said not to reveal, by default the zeros.",
            "That no row is unique: a row may have a pattern of zeros and ones that no other row has.",
        ),
    )
    reveals: Annotated[tuple[str, ...], list_of(word(*REVEALING))] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reveals and (len(self.reveals) != len(self.columns) or not set(self.reveals) <= set(REVEALING)):
            raise InvalidParameterError("reveals", "got another list", allowed=f"one of {REVEALING} for each column")

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        if not self.reveals:
            known, rest = "ones", " (nothing is promised about zeros)"
        else:
            counted = ", ".join(f"{self.reveals.count(v)}: {v}" for v in REVEALING if v in self.reveals)
            known, rest = "revealing values", f" (revealing are, by number of columns, {counted})"
        return (
            f"whatever {known} of a row an attacker knows among {len(self.columns)} binary columns, "
            f"at least {self.k} rows have them all{rest}"
        )

    @property
    def open_values(self) -> str:
        """Zeros, where only ones are said to reveal."""
        return "" if self.reveals else "zeros"


@declared
@dataclass(frozen=True)
class UniquePatterns(Guarantee):
    """At most a given share of the rows is unique on ``columns``."""

    kind: ClassVar[str] = "unique-patterns"
    level: ClassVar[Level] = Level("max_unique_fraction", higher_is_safer=False)
    form_field: ClassVar[FormField | None] = FormField(
        symbol="θ",
        title="Largest share of unique rows",
        why="Few rows have a pattern of zeros and ones that no other row has.",
        suggested="empty; 0.05 where the zeros of a person may be known too",
        left_empty="Any number of rows may be unique for who knows the zeros of a person too.",
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
        check_share("max_unique_fraction", self.max_unique_fraction)

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        return (
            f"at most {self.max_unique_fraction:.4g} of the rows have values on {len(self.columns)} "
            "quasi-identifying columns that no other row has"
        )
