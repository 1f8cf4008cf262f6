"""What every part of a partition must satisfy besides its size: what is promised of a sensitive column.

A constraint is judged from how often each sensitive value occurs in a part, and agrees with
:mod:`sfumato.measures.diversity` and :mod:`sfumato.measures.value_shares`. All of them hold for a part when they hold
for two parts that make it up, l-diversity by [MKGV07]_, Section 4, t-closeness because the distance is convex in the
distribution ([LLV07]_, Section 4), limits of shares by :mod:`sfumato.mechanisms.share_limits`: so a part that violates
one cannot be saved by dividing it, and groups of equal cells may be joined.

References
----------
.. [MKGV07] Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam: l-Diversity: Privacy Beyond k-Anonymity.
   ACM TKDD 1 (2007).
.. [LLV07] Li, Li, Venkatasubramanian: t-Closeness: Privacy Beyond k-Anonymity and l-Diversity. ICDE (2007).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.same_values import value_numbers
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.guarantees import (
    ROUNDING,
    ClosenessDistance,
    DiversityVariant,
    LDiversity,
    TCloseness,
    check_diversity,
)
from sfumato.measures.diversity import distinct_diversity, entropy_diversity, recursive_diversity
from sfumato.mechanisms.share_limits import NO_SHARES, ShareGuarantee, ShareLimit, SharePromises, limit_of
from sfumato.schema import WITHHELD, Role
from sfumato.table.coding import Table

Counts = NDArray[np.int64] | NDArray[np.float64]
"""How often values occur; weights where persons count and some have several rows."""
Levels = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ids = NDArray[np.int32]
Totals = Callable[[Ids, int], NDArray[np.int64] | NDArray[np.float64]]
SensitiveGuarantee = LDiversity | TCloseness | ShareGuarantee


class Constraint(Protocol):
    """What every part must satisfy besides its size."""

    def __call__(self, counts: Counts) -> Flags:
        """Whether parts are allowed, from their counts of sensitive values, one row a part."""
        ...

    def levels(self, counts: Counts) -> Levels:
        """Level of each part, by the measure that the constraint is about."""
        ...

    def describe(self) -> str:
        """Say the constraint in a few words."""
        ...


@dataclass(frozen=True)
class _AtLeast(ABC):
    """A level of at least l in every part."""

    l: float  # noqa: E741  # the field's own name

    def __post_init__(self) -> None:
        if not self.l >= 1:
            raise InvalidParameterError("l", f"got {self.l!r}", allowed="at least 1")

    @abstractmethod
    def levels(self, counts: Counts) -> Levels:
        """Level of each part; higher is safer."""

    def __call__(self, counts: Counts) -> Flags:
        """Whether parts are diverse enough."""
        return np.asarray(self.levels(counts) >= self.l - ROUNDING)


@dataclass(frozen=True)
class DistinctDiversity(_AtLeast):
    """At least l different values.

    Examples
    --------
    >>> DistinctDiversity(2)(np.array([[3, 1], [4, 0]])).tolist()
    [True, False]
    """

    def levels(self, counts: Counts) -> Levels:
        """Different values of each part."""
        return distinct_diversity(counts)

    def describe(self) -> str:
        """Say the constraint in a few words."""
        return f"distinct {self.l:g}-diversity"


@dataclass(frozen=True)
class EntropyDiversity(_AtLeast):
    r"""Entropy of at least log l: :math:`-\sum_s p(s) \log p(s) \ge \log l`.

    Examples
    --------
    >>> EntropyDiversity(2)(np.array([[3, 3], [4, 1]])).tolist()
    [True, False]
    """

    def levels(self, counts: Counts) -> Levels:
        """How many equally frequent values would be as diverse; 0 for a part without rows."""
        return entropy_diversity(counts)

    def describe(self) -> str:
        """Say the constraint in a few words."""
        return f"entropy {self.l:g}-diversity"


@dataclass(frozen=True)
class RecursiveDiversity(_AtLeast):
    r"""Recursive (c, l)-diversity: with descending counts, :math:`r_1 < c\,(r_l + \dots + r_m)`.

    ``c`` is taken as the decimal number that it is written as, and the comparison is made in whole numbers.

    Examples
    --------
    >>> RecursiveDiversity(2, c=2)(np.array([[4, 3, 1], [8, 3, 1]])).tolist()
    [True, False]
    """

    c: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.c < float("inf"):
            raise InvalidParameterError("c", f"got {self.c!r}", allowed="above 0")

    def levels(self, counts: Counts) -> Levels:
        """Largest l of each part, 0 where there is none."""
        return recursive_diversity(counts, self.c)

    def describe(self) -> str:
        """Say the constraint in a few words."""
        return f"recursive ({self.c:g}, {self.l:g})-diversity"


@dataclass(frozen=True, eq=False)
class Closeness:
    r"""Distance of at most t from the whole table.

    The earth mover's distance of :func:`sfumato.measures.diversity.distances_by_class`. All rows are released, so
    the whole table is the one that a reader compares with.

    Parameters
    ----------
    t : float
    distance : {"equal", "ordered"}
        ``ordered`` goes by the order of the values' numbers.
    overall : ndarray of int64
        How often each value occurs in the whole table.

    Examples
    --------
    >>> Closeness(0.2, "equal", np.array([5, 5]))(np.array([[3, 2], [4, 1]])).tolist()
    [True, False]
    """

    t: float
    distance: ClosenessDistance
    overall: Counts

    def __post_init__(self) -> None:
        if not 0 <= self.t <= 1:
            raise InvalidParameterError("t", f"got {self.t!r}", allowed="between 0 and 1")

    def __call__(self, counts: Counts) -> Flags:
        """Whether parts are close enough; one without rows is."""
        return np.asarray(self.levels(counts) <= self.t + ROUNDING)

    def levels(self, counts: Counts) -> Levels:
        """Distance of each part; lower is safer."""
        occurs = self.overall > 0
        n_values = int(np.count_nonzero(occurs))
        if n_values < 2:
            return np.zeros(len(counts))
        rows = counts.sum(axis=-1, keepdims=True)
        ahead = counts[..., occurs] / np.maximum(rows, 1) - (self.overall[occurs] / self.overall.sum()) * (rows > 0)
        if self.distance == "equal":
            return np.asarray(np.abs(ahead).sum(axis=-1) / 2)
        return np.asarray(np.abs(np.cumsum(ahead, axis=-1)[..., :-1]).sum(axis=-1) / (n_values - 1))

    def describe(self) -> str:
        """Say the constraint in a few words."""
        return f"{self.t:g}-closeness ({self.distance} distance)"


@dataclass(frozen=True, eq=False)
class LimitedShares:
    """Shares of single values within a limit; all rows are released, so the whole table is what a reader sees.

    Parameters
    ----------
    limit : ShareLimit
    overall : ndarray of int64
        How often each value occurs in the whole table.
    """

    limit: ShareLimit
    overall: Counts

    def __call__(self, counts: Counts) -> Flags:
        """Whether parts keep to the limit; one without rows does."""
        return self.limit.is_met_by(self.levels(counts))

    def levels(self, counts: Counts) -> Levels:
        """Level of each part; lower is safer."""
        return self.limit.levels_of_parts(counts, self.overall)

    def describe(self) -> str:
        """Say the constraint in a few words."""
        return self.limit.describe()


@dataclass(frozen=True, eq=False)
class Joined:
    """A constraint on values that have several spellings each, from counts of the spellings.

    Parameters
    ----------
    constraint : Constraint
    value_of : ndarray of int32
        Value of each spelling.
    """

    constraint: Constraint
    value_of: Ids

    def __call__(self, counts: Counts) -> Flags:
        """Whether parts satisfy the constraint."""
        return self.constraint(self._joined(counts))

    def levels(self, counts: Counts) -> Levels:
        """Level of each part, by the constraint's measure."""
        return self.constraint.levels(self._joined(counts))

    def describe(self) -> str:
        """Say the constraint in a few words."""
        return self.constraint.describe()

    def _joined(self, counts: Counts) -> Counts:
        is_of = np.zeros((len(self.value_of), int(self.value_of.max(initial=-1)) + 1), dtype=np.int64)
        is_of[np.arange(len(self.value_of)), self.value_of] = 1
        return np.asarray(counts @ is_of[: counts.shape[-1]])


@dataclass(frozen=True, eq=False)
class AllOf:
    """Several constraints at once, on the same counts."""

    constraints: tuple[Constraint, ...]

    def __call__(self, counts: Counts) -> Flags:
        """Whether parts satisfy all constraints."""
        return np.asarray(np.logical_and.reduce([constraint(counts) for constraint in self.constraints]))

    def levels(self, counts: Counts) -> Levels:
        """Level of each part by the first constraint that some part violates, else by the first."""
        violated = [constraint for constraint in self.constraints if not constraint(counts).all()]
        return (violated or self.constraints)[0].levels(counts)

    def describe(self) -> str:
        """Say the constraints in a few words."""
        return " and ".join(dict.fromkeys(constraint.describe() for constraint in self.constraints))


@dataclass(frozen=True)
class SensitivePromises:
    """What is asked for a sensitive column besides k: l-diversity, t-closeness, shares; parameters as they were given.

    Examples
    --------
    >>> SensitivePromises(t=0.2).are_made
    True
    """

    l: float | None = None  # noqa: E741  # the field's own name
    variant: DiversityVariant = "distinct"
    c: float | None = None
    t: float | None = None
    distance: ClosenessDistance = "equal"
    sensitive: str | None = None
    shares: SharePromises = NO_SHARES

    @property
    def are_made(self) -> bool:
        """Whether anything is asked for."""
        return self.l is not None or self.t is not None or bool(self.shares.asked)

    def check(self) -> None:
        """Refuse what makes no sense for any table."""
        self._check_nothing_is_said_alone()
        self.shares.check()
        for name, allowed in (
            ("l", "a number of at least 2"),
            ("t", "a number from 0 to 1"),
            ("c", "a number above 0"),
        ):
            given = getattr(self, name)
            is_number = isinstance(given, int | float | np.integer | np.floating) and not isinstance(given, bool)
            if given is not None and not is_number:
                raise InvalidParameterError(name, f"got {given!r}", allowed=f"{allowed}, or None")
        if self.l is not None:
            check_diversity(self.l, self.variant)
        if self.sensitive is not None and not isinstance(self.sensitive, str):
            raise InvalidParameterError("sensitive", f"got {self.sensitive!r}", allowed="the name of a column, or None")

    def _check_nothing_is_said_alone(self) -> None:
        for name, without, is_alone, needs in (
            ("sensitive", None, not self.are_made, "l"),
            ("variant", "distinct", self.l is None, "l"),
            ("c", None, self.l is None, "l"),
            ("distance", "equal", self.t is None, "t"),
        ):
            given = getattr(self, name)
            if is_alone and given != without:
                allowed = f"{without!r} where {needs} is not given"
                raise InvalidParameterError(name, f"got {given!r}", allowed=allowed, hint=f"give {needs} as well")

    def of(self, table: Table) -> list[SensitiveGuarantee]:
        """Promises about the sensitive column of a table: the named one, or that with the role sensitive."""
        found = self.by_column(table)
        if len(found) > 1:
            problem = f"{self._what} is about one sensitive column, and the table has {len(found)}"
            raise SchemaError(problem, hint="name it with the parameter sensitive")
        for own in found[0] if found else []:
            if table.schema[own.sensitive].role is Role.SENSITIVE_QUASI_IDENTIFIER:
                problem = f"is a quasi-identifier as well, and {self._what} of it needs groups that are made for that"
                raise SchemaError(problem, column=own.sensitive, hint="use mondrian", remedy=("mechanism",))
        return found[0] if found else []

    def by_column(self, table: Table) -> list[list[SensitiveGuarantee]]:
        """Promises about each sensitive column of a table: the named one, or all with the role sensitive."""
        if not self.are_made:
            return []
        named = [self.sensitive] if self.sensitive else list(table.schema.names(Role.SENSITIVE))
        if not named:
            problem = f"{self._what} is about sensitive columns, and the table has none"
            raise SchemaError(problem, hint="name one with the parameter sensitive")
        return [self._of_column(name, table) for name in named]

    @property
    def _what(self) -> str:
        kinds = [kind for kind, level in ((LDiversity, self.l), (TCloseness, self.t)) if level is not None]
        return " and ".join([*(kind.words.title for kind in kinds), *self.shares.titles])

    def _of_column(self, name: str, table: Table) -> list[SensitiveGuarantee]:
        if table.schema[name].role in (Role.QUASI_IDENTIFIER, *WITHHELD):
            problem = f"'{name}' is a {table.schema[name].role}"
            raise InvalidParameterError("sensitive", problem, allowed="a column that is published unchanged")
        if table.schema[name].role is Role.SENSITIVE_QUASI_IDENTIFIER:
            self._check_both_roles(name)
        columns = table.schema.quasi_identifiers_beside(name)
        promised: list[SensitiveGuarantee] = []
        if self.l is not None:
            c = None if self.c is None else float(self.c)
            promised.append(LDiversity(float(self.l), name, columns, self.variant, c))
        if self.t is not None:
            promised.append(TCloseness(float(self.t), name, columns, self.distance))
        return [*promised, *self.shares.guarantees(name, columns)]

    def _check_both_roles(self, name: str) -> None:
        """Refuse what coarsening the sensitive column itself would make look better: distances from the table."""
        for parameter in ("t", *(asked for asked in self.shares.asked if asked != "alpha")):
            if parameter != "t" or self.t is not None:
                problem = f"got one, and '{name}' is a quasi-identifier as well: coarsened values hide distances"
                hint = "ask for l or alpha, or give the column the role sensitive alone"
                raise InvalidParameterError(parameter, problem, allowed="left out", hint=hint)


def asks_for_two_values(constraint: Constraint) -> bool:
    """Whether a part is allowed if and only if it has two different values, so that nothing need be counted.

    Examples
    --------
    >>> asks_for_two_values(DistinctDiversity(2)), asks_for_two_values(DistinctDiversity(3))
    (True, False)
    """
    return isinstance(constraint, DistinctDiversity) and 1 < constraint.l - ROUNDING <= 2


def check_all_rows(constraint: Constraint, counts: Counts) -> None:
    """Refuse a constraint that not even all rows together satisfy.

    Raises
    ------
    PrivacyNotAchievableError
        With the level that they have.
    """
    if not constraint(counts[np.newaxis]).all():
        level = float(constraint.levels(counts[np.newaxis])[0])
        raise PrivacyNotAchievableError(f"{constraint.describe()} of the sensitive column", best_level=level)


def constraint_of(guarantee: LDiversity) -> Constraint:
    """Constraint under which a division keeps a promise of l-diversity.

    Examples
    --------
    >>> constraint_of(LDiversity(3, "disease", ("age",))).describe()
    'distinct 3-diversity'
    """
    if guarantee.variant == "recursive":
        return RecursiveDiversity(guarantee.l, guarantee.c or 0.0)
    return EntropyDiversity(guarantee.l) if guarantee.variant == "entropy" else DistinctDiversity(guarantee.l)


def constraint_on(
    table: Table,
    guarantees: Sequence[SensitiveGuarantee],
    totals: Totals = lambda codes, n: np.bincount(codes, None, n),
) -> tuple[Constraint, Ids] | None:
    """Constraint under which a division of a table keeps promises about one sensitive column, and its codes by row.

    l-diversity and (α,k)-anonymity count values, however they are spelled. What compares with the whole table is kept
    by the values and by their spellings, each by itself, as the audit measures it. ``None`` where nothing is promised.
    ``totals`` counts, or weighs, the values of the whole table from the codes of its rows.
    """
    if not guarantees:
        return None
    (name,) = {guarantee.sensitive for guarantee in guarantees}
    column = table[name]
    numbers = value_numbers(column.values, table.schema[name])
    by_spelling = numbers.has_spellings and any(map(_compares_with_table, guarantees))
    merged = numbers.merged[column.codes]
    codes = numbers.spelled[column.codes] if by_spelling else merged
    value_of = np.zeros(len(numbers.spelled), dtype=np.int32)
    value_of[numbers.spelled] = numbers.merged
    found: list[Constraint] = []
    for guarantee in guarantees:
        own = _constraint(guarantee, totals(merged, int(merged.max(initial=-1)) + 1))
        found.append(Joined(own, value_of) if by_spelling else own)
        if by_spelling and _compares_with_table(guarantee):
            found.append(_constraint(guarantee, totals(codes, int(codes.max(initial=-1)) + 1)))
    return (found[0] if len(found) == 1 else AllOf(tuple(found))), codes


def constraint_on_counts(guarantees: Sequence[SensitiveGuarantee]) -> Constraint:
    """Constraint under which counts of values in a part keep promises that do not compare with the whole table."""
    found = [_constraint(guarantee, np.zeros(0, dtype=np.int64)) for guarantee in guarantees]
    return found[0] if len(found) == 1 else AllOf(tuple(found))


def _compares_with_table(guarantee: SensitiveGuarantee) -> bool:
    if isinstance(guarantee, LDiversity | TCloseness):
        return isinstance(guarantee, TCloseness)
    return limit_of(guarantee).compares_with_table


def _constraint(guarantee: SensitiveGuarantee, overall: Counts) -> Constraint:
    if isinstance(guarantee, LDiversity):
        return constraint_of(guarantee)
    if isinstance(guarantee, TCloseness):
        return Closeness(guarantee.t, guarantee.distance, overall)
    return LimitedShares(limit_of(guarantee), overall)
