"""Crowds of persons, where a person may have several rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.guarantees.base import KNOWS_ALL, CrowdGuarantee, GuaranteeWords, declared

ROWS_AND_PERSONS = "rows and persons"
"""What a limit of suppression counts where persons have several rows: of neither a larger share may be left out."""


@declared
@dataclass(frozen=True)
class PersonAnonymity(CrowdGuarantee):
    """Rows that are equal on ``columns`` are those of at least k persons, whom the column ``person`` distinguishes.

    k-anonymity counts rows: five visits of one patient are five rows. This counts people.
    """

    kind: ClassVar[str] = "k-persons"
    rests_on_original: ClassVar[bool] = True
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="k persons in every group",
        meaning="Rows with the same quasi-identifying values belong to at least k different persons, even if a person "
        "has several rows.",
        found="Found: the smallest group of equal rows is that of {level} persons. Promised: at least {k}.",
        against=KNOWS_ALL,
        not_promised=(
            "That several rows of one person cannot be linked to each other by what they hold.",
            "That the sensitive value stays unknown: if all rows of a group share it, it is disclosed.",
        ),
    )
    person: str = ""

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        return (
            f"rows that are equal on {len(self.columns)} quasi-identifying columns belong to at least {self.k} "
            f"different persons (by '{self.person}', which is not released)"
        )
