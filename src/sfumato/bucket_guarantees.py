"""What a release in buckets can promise, as data; see :mod:`sfumato.guarantees`, which lists these with the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.promise_data import LEAST_CROWD, AsDict, check_whole


@dataclass(frozen=True)
class _InBuckets(AsDict):
    """Promise about the rows that share a value of the column ``bucket``."""

    kind: ClassVar[str]
    columns: tuple[str, ...]
    bucket: str


@dataclass(frozen=True)
class BucketSize(_InBuckets):
    """Every bucket has at least k rows."""

    kind: ClassVar[str] = "bucket-size"
    k: int

    def __post_init__(self) -> None:
        check_whole("k", self.k, LEAST_CROWD)

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        return (
            f"what '{self.bucket}' holds together are at least {self.k} rows, so that the values of a row in one slice "
            f"of the columns can belong with those of any of {self.k} rows in another (which is not k-anonymity: a "
            f"slice may hold values of the {len(self.columns)} quasi-identifying columns that nobody else has)"
        )

    def is_met_by(self, level: float) -> bool:
        """Whether the smallest bucket is large enough."""
        return level >= self.k


@dataclass(frozen=True)
class BucketDiversity(_InBuckets):
    """In every bucket no sensitive value makes up more than 1/l of the rows that a person may be.

    These are the rows of the bucket that are equal on ``beside``, the quasi-identifiers that are released in one slice
    with the sensitive column; without any, all rows of the bucket. Anatomy's promise (Xiao, Tao 2006), and a sufficient
    condition for l-diverse slicing (Li, Li, Zhang, Molloy 2012).
    """

    kind: ClassVar[str] = "bucket-diversity"
    l: int  # noqa: E741  # the field's own name
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

    def is_met_by(self, level: float) -> bool:
        """Whether the most frequent value is rare enough in every bucket."""
        return level >= self.l


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)
