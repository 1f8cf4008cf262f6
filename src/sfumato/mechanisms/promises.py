"""What mechanisms are asked for besides k, as parameters, and the guarantees that are promised for it.

Where a column tells persons apart and some have several rows, what is promised counts persons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import (
    ROUNDING,
    ROW,
    AlphaKAnonymity,
    BetaLikeness,
    ClosenessDistance,
    DeltaDisclosure,
    DiversityVariant,
    Guarantee,
    KAnonymity,
    LDiversity,
    LikenessVariant,
    TCloseness,
    check_diversity,
)
from sfumato.mechanisms.base import ParameterSpec
from sfumato.schema import WITHHELD, Role
from sfumato.table.coding import Table
from sfumato.table.persons import person_codes

ShareGuarantee = BetaLikeness | DeltaDisclosure | AlphaKAnonymity
SensitiveGuarantee = LDiversity | TCloseness | ShareGuarantee

SHARE_PARAMETERS: Mapping[str, ParameterSpec] = {
    "beta": ParameterSpec("β-likeness: how much more frequent than in the table a sensitive value may get", above=0),
    "likeness": ParameterSpec("kind of β-likeness"),
    "delta": ParameterSpec("δ-disclosure privacy of the sensitive columns: every value in every group", above=0),
    "alpha": ParameterSpec("(α,k)-anonymity: largest share of a sensitive value in a group", above=0, below=1),
}
"""Parameters of mechanisms that can promise these."""

_KINDS: Mapping[str, type[ShareGuarantee]] = {
    "beta": BetaLikeness,
    "delta": DeltaDisclosure,
    "alpha": AlphaKAnonymity,
}


class AsksForShares(Protocol):
    """A mechanism with these parameters."""

    k: int
    beta: float | None
    likeness: LikenessVariant
    delta: float | None
    alpha: float | None


@dataclass(frozen=True)
class SharePromises:
    """What is asked for the shares of sensitive values; parameters as they were given.

    Examples
    --------
    >>> SharePromises(beta=1.0).titles, sorted(SharePromises(beta=1.0).left_unsaid)
    (['β-likeness'], ['alpha', 'delta'])
    """

    beta: float | None = None
    likeness: LikenessVariant = "basic"
    delta: float | None = None
    alpha: float | None = None
    k: int = 2

    @classmethod
    def of(cls, asked: AsksForShares) -> SharePromises:
        """Take them from a mechanism's parameters."""
        return cls(asked.beta, asked.likeness, asked.delta, asked.alpha, asked.k)

    @property
    def asked(self) -> tuple[str, ...]:
        """Parameters by which something is asked for."""
        return tuple(name for name in _KINDS if getattr(self, name) is not None)

    @property
    def titles(self) -> list[str]:
        """What is asked for, in words."""
        return [_KINDS[name].words.title for name in self.asked]

    @property
    def left_unsaid(self) -> frozenset[str]:
        """Parameters that a manifest does not name, so that releases made without them stay as they were."""
        unasked = set(_KINDS) - set(self.asked)
        return frozenset(unasked | ({"likeness"} if "beta" in unasked else set()))

    def check(self) -> None:
        """Refuse a kind of β-likeness where no β is given."""
        if self.beta is None and self.likeness != "basic":
            allowed = "'basic' where beta is not given"
            raise InvalidParameterError("likeness", f"got {self.likeness!r}", allowed=allowed, hint="give beta as well")

    def guarantees(self, name: str, columns: tuple[str, ...]) -> list[ShareGuarantee]:
        """Promises about a sensitive column."""
        promised: list[ShareGuarantee] = []
        if self.beta is not None:
            promised.append(BetaLikeness(float(self.beta), name, columns, self.likeness))
        if self.delta is not None:
            promised.append(DeltaDisclosure(float(self.delta), name, columns))
        if self.alpha is not None:
            promised.append(AlphaKAnonymity(float(self.alpha), int(self.k), name, columns))
        return promised


NO_SHARES = SharePromises()
"""Nothing is asked for."""


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


def check_needs_no_pairs(
    level: float | None, variant: DiversityVariant, t: float | None, shares: Iterable[str] = ()
) -> None:
    """Refuse what needs pairs of a person and a value, where only persons were counted: l, t and limits of shares.

    ``shares`` are the names of the parameters by which such limits are asked for.

    Raises
    ------
    InvalidParameterError
        If there is one.
    """
    needs = {"l": level is not None and not (variant == "distinct" and level - ROUNDING <= 2)}
    needs["t"] = t is not None
    needs |= dict.fromkeys(shares, True)
    for name in (name for name, is_needed in needs.items() if is_needed):
        problem = "got one, some persons have several rows, and the table is not in memory"
        hint = "read the table into memory, or ask for distinct 2-diversity or k alone"
        allowed = "left out (l: 2 at most, distinct)"
        raise InvalidParameterError(name, problem, allowed=allowed, hint=hint, remedy=("one_row_per_person",))


def follows_from_two_persons(guarantee: Guarantee) -> bool:
    """Whether a promise by persons follows from that by rows in a group of two persons or more: distinct 2-diversity.

    Two values in such a group are always those of two different persons, for else all its rows would be of one person
    or hold one value. Three values can be those of two persons.

    Examples
    --------
    >>> [follows_from_two_persons(LDiversity(l, "illness", ("age",))) for l in (2, 3)]
    [True, False]
    """
    return isinstance(guarantee, LDiversity) and guarantee.variant == "distinct" and guarantee.l - ROUNDING <= 2


def promised_by_persons(guarantees: Iterable[SensitiveGuarantee], person: str) -> list[Guarantee]:
    """Promises that take the place of those by rows; distinct l by rows follows, and a release alone can confirm it.

    Examples
    --------
    >>> [g.unit for g in promised_by_persons([LDiversity(3, "illness", ("age",))], "patient")]
    ['row', 'patient']
    """
    found: list[Guarantee] = []
    for one in guarantees:
        found += [one] if isinstance(one, LDiversity) and one.variant == "distinct" else []
        found.append(replace(one, unit=person))
    return found


def person_crowds(table: Table, k: int, columns: tuple[str, ...]) -> list[KAnonymity]:
    """Promise k persons in every group; nothing where no column tells persons apart, or each has one row."""
    return [KAnonymity(k, columns, unit=table.schema.person or ROW)] if person_codes(table) is not None else []
