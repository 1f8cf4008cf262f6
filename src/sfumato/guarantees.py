"""What a release can promise, as data. Measuring and auditing a promise happen elsewhere.

Every guarantee is over named released columns. ``describe`` is the sentence people read; ``is_met_by`` compares a
level found in a table with the promise; ``to_dict`` and :func:`guarantee_from_dict` carry it through a manifest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from sfumato.bucket_guarantees import BucketDiversity, BucketSize
from sfumato.entropy_guarantees import PrivacyGain
from sfumato.errors import InvalidParameterError, ManifestError
from sfumato.estimated_guarantees import BreachBound
from sfumato.promise_data import LEAST_CROWD, AsDict, check_whole

DiversityVariant = Literal["distinct", "entropy", "recursive"]
ClosenessDistance = Literal["equal", "ordered"]

REVEALING = ("ones", "zeros", "both")
"""Which values of a binary column an attacker may know."""

ONE_ROW_CHANGED = "one row's feature values changed; class sizes and the list of features public"
"""Tables between which differential privacy promises that a release tells little."""

ROUNDING = 1e-9
"""Slack for real-valued levels, so that a promise is not missed by the last bit of a logarithm."""


class Guarantee(Protocol):
    """A promise about a released table."""

    kind: ClassVar[str]

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        ...

    def is_met_by(self, level: float) -> bool:
        """Whether a level measured on a table keeps the promise."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the manifest."""
        ...


def check_diversity(l: float, variant: DiversityVariant) -> None:  # noqa: E741  # the field's own name
    """Refuse a level that every class has: one value, or an entropy of at least log(1)."""
    if variant == "entropy":
        if not 1 < l < math.inf:
            raise InvalidParameterError("l", f"got {l!r}", allowed="above 1 for entropy l-diversity")
    elif not LEAST_CROWD <= l < math.inf:
        raise InvalidParameterError("l", f"got {l!r}", allowed=f"at least {LEAST_CROWD}")


def _check_share(name: str, value: float) -> None:
    """Refuse what is no share, and all: every table keeps to it."""
    if not 0 <= value < 1:
        raise InvalidParameterError(name, f"got {value!r}", allowed="from 0 and below 1")


class _MayLeaveOut:
    """A promise over all quasi-identifiers, or over ``protected`` ones only, which it then says plainly."""

    columns: tuple[str, ...]
    protected: tuple[str, ...]

    @property
    def over(self) -> tuple[str, ...]:
        """Columns that the promise holds on."""
        return self.protected or self.columns

    def _check_protected(self) -> None:
        if not set(self.protected) <= set(self.columns):
            raise InvalidParameterError("protected", "names other columns", allowed="some of the quasi-identifiers")
        for name in ("columns", "protected"):
            named = getattr(self, name)
            if len(set(named)) < len(named):
                raise InvalidParameterError(name, "names a column twice", allowed="different columns")

    def _left_open(self) -> str:
        n_open = len(set(self.columns) - set(self.over))
        return f"; {n_open} further quasi-identifying columns are released and NOT PROTECTED" if n_open else ""


@dataclass(frozen=True)
class _Crowd(AsDict):
    """Promise of at least k rows of some sort."""

    k: int
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        check_whole("k", self.k, LEAST_CROWD)

    def is_met_by(self, level: float) -> bool:
        """Whether the smallest number found is large enough."""
        return level >= self.k


@dataclass(frozen=True)
class KAnonymity(_MayLeaveOut, _Crowd):
    """Every row shares its values on ``columns`` (or ``protected``) with at least k - 1 other rows."""

    kind: ClassVar[str] = "k-anonymity"
    protected: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_protected()

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        return (
            f"every row shares its values on {len(self.over)} quasi-identifying columns "
            f"with at least {self.k - 1} other rows{self._left_open()}"
        )


@dataclass(frozen=True)
class KKAnonymity(_Crowd):
    """(k,k)-anonymity of Gionis, Mazza and Tassa (2008): every row fits k rows of the other table, both ways.

    A released row fits an original one when each of its cells stands for the original's value. Weaker than
    k-anonymity: fewer than k released rows may be equal.
    """

    kind: ClassVar[str] = "kk-anonymity"

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        return (
            f"on {len(self.columns)} quasi-identifying columns every original row fits at least {self.k} released rows "
            f"and every released row at least {self.k} original ones (which is not k-anonymity: fewer than {self.k} "
            "released rows may be equal)"
        )


@dataclass(frozen=True)
class GlobalAnonymity(_Crowd):
    """Global (1,k)-anonymity of Gionis, Mazza and Tassa (2008).

    Holds also against an attacker who knows every original row: each of them can be any of k released rows in some
    assignment of all released rows to all original ones.
    """

    kind: ClassVar[str] = "global-anonymity"

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        return (
            f"even to somebody who knows all original rows on {len(self.columns)} quasi-identifying columns, each of "
            f"them can belong to at least {self.k} released rows (global (1,k)-anonymity)"
        )


@dataclass(frozen=True)
class Containment(_Crowd):
    """k-anonymity by containment: the ones of every row are included in those of at least k - 1 other rows.

    ``reveals`` says for each column which values an attacker may know; empty means the ones of every column.
    """

    kind: ClassVar[str] = "containment"
    reveals: tuple[str, ...] = ()

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


@dataclass(frozen=True)
class UniquePatterns(AsDict):
    """At most a given share of the rows is unique on ``columns``."""

    kind: ClassVar[str] = "unique-patterns"
    max_unique_fraction: float
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_share("max_unique_fraction", self.max_unique_fraction)

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        return (
            f"at most {self.max_unique_fraction:.4g} of the rows have values on {len(self.columns)} "
            "quasi-identifying columns that no other row has"
        )

    def is_met_by(self, level: float) -> bool:
        """Whether few enough rows are unique (here lower is better)."""
        return level <= self.max_unique_fraction + ROUNDING


@dataclass(frozen=True)
class LDiversity(_MayLeaveOut, AsDict):
    """Every class of rows equal on ``columns`` has well-represented values of the sensitive column."""

    kind: ClassVar[str] = "l-diversity"
    l: float  # noqa: E741  # the field's own name
    sensitive: str
    columns: tuple[str, ...]
    variant: DiversityVariant = "distinct"
    c: float | None = None
    protected: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check_protected()
        check_diversity(self.l, self.variant)
        if (self.variant == "recursive") != (self.c is not None):
            raise InvalidParameterError(
                "c", f"got {self.c!r}", allowed="given for recursive l-diversity and only there"
            )

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        ways = {
            "distinct": f"at least {self.l:g} different values of '{self.sensitive}'",
            "entropy": f"an entropy of '{self.sensitive}' of at least log({self.l:g})",
            "recursive": f"recursive ({self.c or 0:g}, {self.l:g})-diverse values of '{self.sensitive}'",
        }
        way = ways[self.variant]
        return f"rows that are equal on {len(self.over)} quasi-identifying columns have {way}{self._left_open()}"

    def is_met_by(self, level: float) -> bool:
        """Whether the least diverse class is diverse enough."""
        return level >= self.l - ROUNDING


@dataclass(frozen=True)
class TCloseness(_MayLeaveOut, AsDict):
    """In every class the sensitive column is distributed almost as in the whole table."""

    kind: ClassVar[str] = "t-closeness"
    t: float
    sensitive: str
    columns: tuple[str, ...]
    distance: ClosenessDistance = "equal"
    protected: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check_protected()
        _check_share("t", self.t)

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        return (
            f"among rows that are equal on {len(self.over)} quasi-identifying columns, '{self.sensitive}' is "
            f"distributed as in the whole table up to a distance of {self.t:g}{self._left_open()}"
        )

    def is_met_by(self, level: float) -> bool:
        """Whether the farthest class is close enough (here lower is better)."""
        return level <= self.t + ROUNDING


@dataclass(frozen=True)
class DifferentialPrivacy(AsDict):
    """How a release came about changes its probability by a factor of at most exp(epsilon) when one row changes.

    A property of the mechanism and its noise: no look at one release can confirm or refute it.
    """

    kind: ClassVar[str] = "differential-privacy"
    epsilon: float
    columns: tuple[str, ...]
    neighbours: str = ONE_ROW_CHANGED

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < float("inf"):
            raise InvalidParameterError("epsilon", f"got {self.epsilon!r}", allowed="above 0")
        if self.neighbours != ONE_ROW_CHANGED:
            raise InvalidParameterError("neighbours", "got another text", allowed=f"'{ONE_ROW_CHANGED}'")

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        return (
            f"whatever the values of one row on the features are, any release has the same probability up to a factor "
            f"of exp({self.epsilon:g}) ({len(self.columns)} features were released; class sizes and the list of "
            f"features are taken as known)"
        )

    def is_met_by(self, level: float) -> bool:
        """Never: there is no level that could be measured on a table."""
        return False


_KNOWN = (
    KAnonymity,
    KKAnonymity,
    GlobalAnonymity,
    Containment,
    UniquePatterns,
    LDiversity,
    TCloseness,
    BucketSize,
    BucketDiversity,
    BreachBound,
    PrivacyGain,
    DifferentialPrivacy,
)

MEASURED_ON_ORIGINAL = (BreachBound.kind, PrivacyGain.kind)
"""Guarantees whose level is computed from columns and rows that are not released; it is stated in three digits."""

GUARANTEES: dict[str, type[Guarantee]] = {cls.kind: cls for cls in _KNOWN}


def guarantee_from_dict(data: dict[str, Any]) -> Guarantee:
    """Rebuild a guarantee from a manifest entry.

    Examples
    --------
    >>> guarantee_from_dict({"kind": "containment", "k": 5, "columns": ["a"]})
    Containment(k=5, columns=('a',), reveals=())
    """
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items() if k != "kind"}
    try:
        return GUARANTEES[data["kind"]](**fields)
    except (KeyError, TypeError) as exc:
        raise ManifestError(
            "a guarantee in the manifest is not one this version knows", hint=f"known: {', '.join(GUARANTEES)}"
        ) from exc
