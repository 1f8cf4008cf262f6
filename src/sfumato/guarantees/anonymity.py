"""Crowds of rows: k-anonymity, (k,k)-anonymity, global (1,k)-anonymity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sfumato.guarantees.base import (
    KNOWS_ALL,
    CrowdGuarantee,
    FormField,
    GuaranteeWords,
    MayLeaveOut,
    ReleaseFacts,
    declared,
)

if TYPE_CHECKING:
    from sfumato.counting.counts import AnyCounts
    from sfumato.guarantees.base import Levels

_OTHERS_LEARNED = (
    "not promised: that other columns stay unknown. If all rows of a group have the same value, the group discloses "
    "it; an attack on the release counts these cases"
)
ROWS_AND_PERSONS = "rows and persons"
"""What a limit of suppression counts where persons have several rows: of neither a larger share may be left out."""
OF_FITTING_ROWS = (
    "k-anonymity: fewer than k released rows may be equal.",
    "That other columns stay unknown: if all fitting rows have the same value, they disclose it.",
)


@declared
@dataclass(frozen=True)
class KAnonymity(MayLeaveOut, CrowdGuarantee):
    """Every row shares its values on ``columns`` (or ``protected``) with at least k - 1 other rows.

    By persons the equal rows are those of at least k persons: five visits of one patient are one patient.
    """

    kind: ClassVar[str] = "k-anonymity"
    counts_persons: ClassVar[bool] = True
    asked_as: ClassVar[tuple[str, ...]] = ("k", "k-anonymity")
    form_field: ClassVar[FormField | None] = FormField(
        symbol="k",
        title="People who look alike",
        why="Every person looks like at least k − 1 others.",
        suggested="5; 10 or more for a release to the public",
        left_empty="Attackers may single a person out by what they know.",
    )
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="k-anonymity",
        meaning="Every row has the same quasi-identifying values as at least k − 1 other rows. These values do not "
        "distinguish the rows of such a group.",
        found="Found: the smallest group of equal rows has {level} {units}. Promised: at least {k}.",
        against=KNOWS_ALL,
        not_promised=(
            "That the sensitive value stays unknown: if all rows of a group share it, the group discloses it.",
            "Anything about columns with the role sensitive or other: they are published unchanged.",
        ),
    )
    protected: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_protected()

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        if self.by_persons:
            crowd = f"belong to at least {self.k} different persons{self._by()}"
            return f"rows that are equal on {len(self.over)} quasi-identifying columns {crowd}{self._left_out()}"
        return (
            f"every row shares its values on {len(self.over)} quasi-identifying columns "
            f"with at least {self.k - 1} other rows{self._left_out()}"
        )

    def levels(self, counts: AnyCounts) -> Levels:
        """Units of each class."""
        return counts.n_units.astype("float64")

    @property
    def is_kept_by_growing(self) -> bool:
        """Units only get more."""
        return True

    def in_short(self) -> str:
        """Say what is asked of a class in a few words."""
        return f"{self.k} persons in every class" if self.by_persons else f"{self.k}-anonymity"

    def left_open(self, facts: ReleaseFacts) -> Iterator[str]:
        """Say that other columns may still be learned within a group."""
        if facts.has_generalized_cells:
            yield _OTHERS_LEARNED


@declared
@dataclass(frozen=True)
class KKAnonymity(CrowdGuarantee):
    """(k,k)-anonymity of Gionis, Mazza and Tassa (2008): every row fits k rows of the other table, both ways.

    A released row fits an original one when each of its cells stands for the original's value. Weaker than
    k-anonymity: fewer than k released rows may be equal. By persons, rows of either table fit rows of at least k
    persons of the other; a released row is one of the person whose original it was made of.
    """

    kind: ClassVar[str] = "kk-anonymity"
    counts_persons: ClassVar[bool] = True
    asked_as: ClassVar[tuple[str, ...]] = ("kk-anonymity",)
    form_field: ClassVar[FormField | None] = FormField(
        symbol="k",
        title="Rows that fit a person",
        why="Every person fits at least k released rows, and every released row fits at least k people. It is not "
        "k-anonymity: fewer than k rows may be equal.",
        suggested="5; 10 or more for a release to the public",
        left_empty="A person may fit one row alone.",
    )
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="(k,k)-anonymity",
        meaning="Every original row fits at least k released rows, and every released row fits at least k original "
        "ones. Released rows need not be equal.",
        found="Found: every row of either table fits at least {level} {units} of the other. Promised: at least {k}.",
        against=KNOWS_ALL,
        not_promised=OF_FITTING_ROWS,
    )

    def in_plain_words(self) -> str:
        """Say the promise for people."""
        if self.by_persons:
            return self.describe()
        return (
            f"on {len(self.columns)} quasi-identifying columns, every original row fits at least {self.k} released "
            f"rows and every released row fits at least {self.k} original rows. This is not k-anonymity: fewer than "
            f"{self.k} released rows may be equal"
        )

    def describe(self) -> str:
        """Say the promise in one sentence, as manifests state it."""
        of = f"at least {self.k}"
        released, original = (f"{of} released rows", f"{of} original ones")
        if self.by_persons:
            released, original = (f"{which} of {of} different persons" for which in ("released rows", "original rows"))
        return (
            f"on {len(self.columns)} quasi-identifying columns every original row fits {released} and every released "
            f"row {original} (which is not k-anonymity: fewer than {self.k} released rows may be equal){self._by()}"
        )

    def left_open(self, facts: ReleaseFacts) -> Iterator[str]:
        """Say that it is not k-anonymity, and that other columns may be learned."""
        yield facts.with_smallest_class("not promised: k-anonymity")
        if facts.has_generalized_cells:
            yield _OTHERS_LEARNED


@declared
@dataclass(frozen=True)
class GlobalAnonymity(CrowdGuarantee):
    """Global (1,k)-anonymity of Gionis, Mazza and Tassa (2008).

    Holds also against an attacker who knows every original row: each of them can be any of k released rows in some
    assignment of all released rows to all original ones. By persons the rows that an original row can be are those of
    at least k persons. Assignments need not keep a person's rows together: whoever can tell that several released rows
    are one person's can rule some out.
    """

    kind: ClassVar[str] = "global-anonymity"
    counts_persons: ClassVar[bool] = True
    asked_as: ClassVar[tuple[str, ...]] = ("global-anonymity",)
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="global (1,k)-anonymity",
        meaning="Match every person with one released row: over all such matchings, each original row can still belong "
        "to at least k released rows.",
        found="Found: every original row can belong to at least {level} released {units}. Promised: at least {k}.",
        against="an attacker who knows the quasi-identifying values of everybody in the table, and that each of them "
        "has one row",
        not_promised=OF_FITTING_ROWS,
    )

    def in_plain_words(self) -> str:
        """Say the promise for people."""
        if self.by_persons:
            return self.describe()
        return (
            f"each original row can belong to at least {self.k} released rows, even for an attacker who knows all "
            f"original rows on {len(self.columns)} quasi-identifying columns"
        )

    def describe(self) -> str:
        """Say the promise in one sentence, as manifests state it."""
        crowd = f"at least {self.k} released rows"
        if self.by_persons:
            crowd = f"released rows of at least {self.k} different persons"
        return (
            f"even to somebody who knows all original rows on {len(self.columns)} quasi-identifying columns, each of "
            f"them can belong to {crowd} (global (1,k)-anonymity){self._by()}"
        )
