"""Releases in buckets: how large they are, and how diverse their sensitive values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from sfumato.guarantees.base import (
    KNOWS_ALL,
    LEAST_CROWD,
    FormField,
    Guarantee,
    GuaranteeWords,
    K,
    L,
    Level,
    ReleaseFacts,
    check_whole,
    declared,
)
from sfumato.guarantees.forms import Crowd


@dataclass(frozen=True)
class _InBuckets(Guarantee):
    """Promise about the rows that share a value of the column ``bucket``."""

    slack: ClassVar[float] = 0.0
    columns: tuple[str, ...]
    bucket: str

    def left_open(self, facts: ReleaseFacts) -> Iterator[str]:
        """Say that quasi-identifiers are not changed."""
        yield (
            "not promised: k-anonymity, or that somebody's being in the table stays unknown: quasi-identifiers are "
            "released as they are, only what belongs with what is hidden within each bucket"
        )


@declared
@dataclass(frozen=True)
class BucketSize(_InBuckets):
    """Every bucket has at least k rows."""

    kind: ClassVar[str] = "bucket-size"
    level: ClassVar[Level] = K
    asked_as: ClassVar[tuple[str, ...]] = ("bucket-size",)
    form_field: ClassVar[FormField | None] = FormField(
        symbol="k",
        title="Rows of a bucket",
        why="Within a bucket of at least k rows it is hidden which parts of a row belong together. It is not "
        "k-anonymity: people can be found.",
        suggested="5",
        left_empty="Buckets may be small.",
    )
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="size of buckets",
        meaning="Rows are put into buckets of at least k, and within one it is hidden which parts of a row belong "
        "together.",
        found="Found: the smallest bucket has {level} rows. Promised: at least {k}.",
        against="somebody who knows the values of one slice of columns and wants those of another",
        not_promised=("That the values within one slice are not unique to a person.",),
    )
    k: Crowd

    def __post_init__(self) -> None:
        check_whole("k", self.k, LEAST_CROWD)

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        return (
            f"what '{self.bucket}' holds together are at least {self.k} rows, so that the values of a row in one slice "
            f"of the columns can belong with those of any of {self.k} rows in another (which is not k-anonymity: a "
            f"slice may hold values of the {len(self.columns)} quasi-identifying columns that nobody else has)"
        )


@declared
@dataclass(frozen=True)
class BucketDiversity(_InBuckets):
    """In every bucket no sensitive value makes up more than 1/l of the rows that a person may be.

    These are the rows of the bucket that are equal on ``beside``, the quasi-identifiers that are released in one slice
    with the sensitive column; without any, all rows of the bucket. Anatomy's promise (Xiao, Tao 2006), and a sufficient
    condition for l-diverse slicing (Li, Li, Zhang, Molloy 2012).
    """

    kind: ClassVar[str] = "bucket-diversity"
    level: ClassVar[Level] = L
    asked_as: ClassVar[tuple[str, ...]] = ("bucket-diversity",)
    form_field: ClassVar[FormField | None] = FormField(
        symbol="l",
        title="Different sensitive values in a bucket",
        why="No sensitive value of a person is more likely than 1/l. Who is in the table can still be seen.",
        suggested="2 or 3",
        left_empty="A bucket may hold one sensitive value alone.",
    )
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="diversity in buckets",
        meaning="Rows are put into buckets, and within one it is hidden which sensitive value belongs to whom. No "
        "value is more likely than 1/l.",
        found="Found: a sensitive value makes up one part in {level} of a bucket at most. Promised: one part in {l}.",
        against=f"{KNOWS_ALL}, also the bucket, and who takes the rows of a bucket as equally likely",
        not_promised=(
            "k-anonymity, or that being in the table stays unknown: quasi-identifiers are released as they are.",
            "Protection against a model of how quasi-identifiers go with sensitive values.",
            "Protection against somebody who knows the sensitive values of others in the bucket.",
        ),
    )
    l: Crowd  # noqa: E741  # the field's own name
    sensitive: str
    beside: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_whole("l", self.l, LEAST_CROWD)

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        known = f" and with the same values of {_listed(self.beside)}" if self.beside else ""
        return (
            f"to somebody who knows a person's {len(self.columns)} quasi-identifying columns and takes all rows of the "
            f"same '{self.bucket}'{known} as equally likely, no value of '{self.sensitive}' is more probable than "
            f"1/{self.l} (quasi-identifiers are released as they are: that a person is in the table is not hidden)"
        )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)
