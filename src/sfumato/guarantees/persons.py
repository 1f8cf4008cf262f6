"""Crowds of persons, where a person may have several rows: of equal rows, and of rows that fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.guarantees.anonymity import OF_FITTING_ROWS
from sfumato.guarantees.base import KNOWS_ALL, CrowdGuarantee, GuaranteeWords, declared

LINKED = "That several rows of one person cannot be linked to each other by what they hold."
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
            LINKED,
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


@declared
@dataclass(frozen=True)
class PersonKKAnonymity(CrowdGuarantee):
    """(k,k)-anonymity by persons: every row of either table fits rows of at least k persons of the other.

    A released row fits an original one when each of its cells stands for the original's value, and is a row of the
    person whose original it was made of. (k,k)-anonymity by rows follows: k persons have k rows.
    """

    kind: ClassVar[str] = "kk-persons"
    rests_on_original: ClassVar[bool] = True
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="(k,k)-anonymity by persons",
        meaning="Every original row fits released rows of at least k different persons, and every released row fits "
        "original rows of at least k different persons, even if a person has several rows.",
        found="Found: every row of either table fits rows of at least {level} persons of the other. Promised: at least "
        "{k}.",
        against=KNOWS_ALL,
        not_promised=(LINKED, *OF_FITTING_ROWS),
    )
    person: str = ""

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        return (
            f"on {len(self.columns)} quasi-identifying columns every original row fits released rows of at least "
            f"{self.k} different persons and every released row original rows of at least {self.k} (by "
            f"'{self.person}', which is not released)"
        )


@declared
@dataclass(frozen=True)
class PersonGlobalAnonymity(CrowdGuarantee):
    """Global (1,k)-anonymity by persons: rows are assigned to rows, and persons of possible rows counted.

    Over all assignments of the released rows to the original ones, each to one that it fits and each original to one,
    the released rows that an original row gets are those of at least k different persons. Global (1,k)-anonymity by
    rows follows. Assignments need not keep a person's rows together: whoever can tell that several released rows are
    one person's can rule some out.
    """

    kind: ClassVar[str] = "global-persons"
    rests_on_original: ClassVar[bool] = True
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="global (1,k)-anonymity by persons",
        meaning="Match every original row with one released row: over all such matchings, each original row can still "
        "belong to released rows of at least k different persons.",
        found="Found: every original row can belong to released rows of at least {level} persons. Promised: at least "
        "{k}.",
        against="an attacker who knows the quasi-identifying values of every row of everybody in the table",
        not_promised=(LINKED, *OF_FITTING_ROWS),
    )
    person: str = ""

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        return (
            f"even to somebody who knows all original rows on {len(self.columns)} quasi-identifying columns, each of "
            f"them can belong to released rows of at least {self.k} different persons (by '{self.person}', which is "
            "not released)"
        )
