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
            "not promised: k-anonymity, or hiding who is in the table. Quasi-identifiers are published unchanged; a "
            "bucket hides only which values belong to the same row"
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
        why="A bucket has at least k rows and hides which parts of a row belong together. It is not "
        "k-anonymity: people can be found.",
        suggested="5",
        left_empty="Buckets may be small.",
    )
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="size of buckets",
        meaning="Every bucket has at least k rows. Within a bucket, the release hides which parts of a row belong "
        "together.",
        found="Found: the smallest bucket has {level} rows. Promised: at least {k}.",
        against="an attacker who knows the values of one slice of columns and wants those of another slice",
        not_promised=("That the values within one slice are not unique to a person.",),
    )
    k: Crowd

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("k", self.k, LEAST_CROWD)

    def in_plain_words(self) -> str:
        """Say the promise for people."""
        return (
            f"every value of '{self.bucket}' marks a bucket of at least {self.k} rows. Within a bucket, the values of "
            f"a row in one slice of columns can belong to the values of any of {self.k} rows in another slice. This is "
            f"not k-anonymity: a slice may hold values of the {len(self.columns)} quasi-identifying columns that "
            "nobody else has"
        )

    def describe(self) -> str:
        """Say the promise in one sentence, as manifests state it."""
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
        left_empty="A bucket may have a single sensitive value.",
    )
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="diversity in buckets",
        meaning="Within a bucket, the release hides which sensitive value belongs to whom. No value is more likely "
        "than 1/l.",
        found="Found: no sensitive value makes up more than 1/{level} of a bucket. Promised: at most 1/{l}.",
        against=f"{KNOWS_ALL} and the bucket, and who considers all rows of the bucket equally likely",
        not_promised=(
            "k-anonymity, or hiding who is in the table: quasi-identifiers are published unchanged.",
            "Protection against a model of how quasi-identifiers relate to sensitive values.",
            "Protection against an attacker who knows the sensitive values of others in the bucket.",
        ),
    )
    l: Crowd  # noqa: E741  # the field's own name
    sensitive: str
    beside: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("l", self.l, LEAST_CROWD)

    def in_plain_words(self) -> str:
        """Say the promise for people."""
        known = f" with the same values of {_listed(self.beside)}" if self.beside else ""
        return (
            f"no value of '{self.sensitive}' is more probable than 1/{self.l} to an attacker who knows a person's "
            f"{len(self.columns)} quasi-identifying columns and considers all rows of the same "
            f"'{self.bucket}'{known} equally likely. Quasi-identifiers are published unchanged: the release does "
            "not hide who is in the table"
        )

    def describe(self) -> str:
        """Say the promise in one sentence, as manifests state it."""
        known = f" and with the same values of {_listed(self.beside)}" if self.beside else ""
        return (
            f"to somebody who knows a person's {len(self.columns)} quasi-identifying columns and takes all rows of the "
            f"same '{self.bucket}'{known} as equally likely, no value of '{self.sensitive}' is more probable than "
            f"1/{self.l} (quasi-identifiers are released as they are: that a person is in the table is not hidden)"
        )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)
