"""Differential privacy: a promise about how a release came about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from sfumato.errors import InvalidParameterError
from sfumato.guarantees.base import FormField, Guarantee, GuaranteeWords, Level, ReleaseFacts, declared

ONE_ROW_CHANGED = "one row's feature values changed; class sizes and the list of features public"
"""Tables between which differential privacy promises that a release tells little."""


@declared
@dataclass(frozen=True)
class DifferentialPrivacy(Guarantee):
    """How a release came about changes its probability by a factor of at most exp(epsilon) when one row changes.

    A property of the mechanism and its noise: no look at one release can confirm or refute it.
    """

    kind: ClassVar[str] = "differential-privacy"
    level: ClassVar[Level] = Level("epsilon", False, "a number above 0", lambda epsilon: epsilon > 0)
    asked_as: ClassVar[tuple[str, ...]] = ("epsilon",)
    form_field: ClassVar[FormField | None] = FormField(
        symbol="ε",
        title="Privacy budget",
        why="Holds whatever an attacker knows. Smaller is safer and noisier.",
        suggested="1; more than 10 protects little",
        left_empty="An attacker who knows all rows but one may find the last one.",
    )
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="differential privacy",
        meaning="Changing one person's values changes the chance of any release by a factor of at most e to the power "
        "of ε. Smaller ε is safer.",
        found="Cannot be measured: no look at one release can confirm it. The audit re-computed how epsilon = "
        "{epsilon} was divided and found the stated noise sufficient.",
        against="anybody, whatever they know",
        not_promised=(
            "Anything about class sizes and the list of features, which count as public.",
            "That the audit confirms it: it holds if the program did what the manifest says.",
        ),
    )
    epsilon: float
    columns: tuple[str, ...]
    neighbours: str = ONE_ROW_CHANGED

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.epsilon < float("inf"):
            raise InvalidParameterError("epsilon", f"got {self.epsilon!r}", allowed="above 0")
        if self.neighbours != ONE_ROW_CHANGED:
            raise InvalidParameterError("neighbours", "but this one is not", allowed=f"'{ONE_ROW_CHANGED}'")

    def in_plain_words(self) -> str:
        """Say the promise for people."""
        return (
            f"changing the feature values of one row changes the probability of any release by a factor of at most "
            f"exp({self.epsilon:g}). {len(self.columns)} features were released; class sizes and the list of features "
            "count as public"
        )

    def describe(self) -> str:
        """Say the promise in one sentence, as manifests state it."""
        return (
            f"whatever the values of one row on the features are, any release has the same probability up to a factor "
            f"of exp({self.epsilon:g}) ({len(self.columns)} features were released; class sizes and the list of "
            f"features are taken as known)"
        )

    def is_met_by(self, level: float) -> bool:
        """Never: there is no level that could be measured on a table."""
        return False

    def left_open(self, facts: ReleaseFacts) -> Iterator[str]:
        """Say that what is taken as known is not protected, and neither are two releases together."""
        yield (
            "not promised: anything about the number of rows, the class of each row and the column names, which count "
            "as public. A second release of the same rows costs its epsilon again"
        )
