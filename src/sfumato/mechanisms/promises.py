"""What mechanisms are asked for besides k, as parameters, and the guarantees that are promised for it.

Where a column tells persons apart and some have several rows, what is promised counts persons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
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
from sfumato.schema import WITHHELD, Role, Schema
from sfumato.table.coding import Table
from sfumato.table.persons import person_codes

SensitiveGuarantee = LDiversity | TCloseness | BetaLikeness | DeltaDisclosure | AlphaKAnonymity

SHARE_PARAMETERS: Mapping[str, ParameterSpec] = {
    "beta": ParameterSpec("β-likeness: how much more frequent than in the table a sensitive value may get", above=0),
    "likeness": ParameterSpec("kind of β-likeness"),
    "delta": ParameterSpec("δ-disclosure privacy of the sensitive columns: every value in every group", above=0),
    "alpha": ParameterSpec("(α,k)-anonymity: largest share of a sensitive value in a group", above=0, below=1),
}
"""Parameters of mechanisms that can promise these."""

_KINDS: Mapping[str, type[SensitiveGuarantee]] = {
    "l": LDiversity,
    "t": TCloseness,
    "beta": BetaLikeness,
    "delta": DeltaDisclosure,
    "alpha": AlphaKAnonymity,
}
"""Parameters by which something is asked for, and what is promised for it."""
_NEEDED = {"variant": ("distinct", "l"), "c": (None, "l"), "distance": ("equal", "t"), "likeness": ("basic", "beta")}
"""Parameters that say more about another one: what they are where that is not given."""


class AsksForPromises(Protocol):
    """A mechanism with these parameters."""

    k: int
    l: float | None  # noqa: E741  # the field's own name
    variant: DiversityVariant
    c: float | None
    t: float | None
    distance: ClosenessDistance
    sensitive: str | None
    beta: float | None
    likeness: LikenessVariant
    delta: float | None
    alpha: float | None


@dataclass(frozen=True)
class Asked:
    """What is asked for sensitive columns besides k; parameters as they were given.

    ``sensitive`` names the columns, by commas; ``None`` takes every one with the role sensitive.

    Examples
    --------
    >>> Asked(beta=1.0).parameters, sorted(Asked(beta=1.0).left_unsaid)
    (('beta',), ['alpha', 'delta'])
    """

    l: float | None = None  # noqa: E741  # the field's own name
    variant: DiversityVariant = "distinct"
    c: float | None = None
    t: float | None = None
    distance: ClosenessDistance = "equal"
    sensitive: str | None = None
    beta: float | None = None
    likeness: LikenessVariant = "basic"
    delta: float | None = None
    alpha: float | None = None
    k: int = 2

    @classmethod
    def of(cls, mechanism: AsksForPromises) -> Asked:
        """Take it from a mechanism's parameters."""
        return cls(**{own.name: getattr(mechanism, own.name) for own in fields(cls)})

    @property
    def parameters(self) -> tuple[str, ...]:
        """Parameters by which something is asked for."""
        return tuple(name for name in _KINDS if getattr(self, name) is not None)

    @property
    def left_unsaid(self) -> frozenset[str]:
        """Parameters that a manifest does not name, so that releases made without them stay as they were."""
        unasked = {"beta", "delta", "alpha"} - set(self.parameters)
        return frozenset(unasked | ({"likeness"} if "beta" in unasked else set()))

    def check(self) -> None:
        """Refuse what makes no sense for any table."""
        for name, (without, needed) in _NEEDED.items():
            given = getattr(self, name)
            if getattr(self, needed) is None and given != without:
                allowed = f"{without!r} where {needed} is not given"
                raise InvalidParameterError(name, f"got {given!r}", allowed=allowed, hint=f"give {needed} as well")
        if not self.parameters and self.sensitive is not None:
            allowed = f"given together with {', '.join(_KINDS)}"
            raise InvalidParameterError("sensitive", f"got {self.sensitive!r}", allowed=allowed)
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
            allowed = "names of columns by commas, or None"
            raise InvalidParameterError("sensitive", f"got {self.sensitive!r}", allowed=allowed)

    def of_one_column(self, table: Table) -> list[SensitiveGuarantee]:
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
        """Promises about each sensitive column of a table."""
        if not self.parameters:
            return []
        named = self.columns(table.schema)
        if not named:
            problem = f"{self._what} is about sensitive columns, and the table has none"
            hint = "give a column the role sensitive, or name it with the parameter sensitive"
            raise SchemaError(problem, hint=hint)
        return [self._of_column(name, table) for name in named]

    def columns(self, schema: Schema) -> tuple[str, ...]:
        """Columns that it is about: those named, by commas unless all is the name of one, or all sensitive ones."""
        if not self.parameters:
            return ()
        if self.sensitive is None or self.sensitive in schema:
            return schema.names(Role.SENSITIVE) if self.sensitive is None else (self.sensitive,)
        named = (name.strip() for name in self.sensitive.split(","))
        return tuple(dict.fromkeys(schema[name].name for name in named if name))

    @property
    def _what(self) -> str:
        return " and ".join(_KINDS[name].words.title for name in self.parameters)

    def _of_column(self, name: str, table: Table) -> list[SensitiveGuarantee]:
        role = table.schema[name].role
        if role in (Role.QUASI_IDENTIFIER, *WITHHELD):
            hint = f"give '{name}' the role sensitive, or name another column"
            allowed = "a column that is published unchanged"
            raise InvalidParameterError("sensitive", f"'{name}' is a {role}", allowed=allowed, hint=hint)
        if role is Role.SENSITIVE_QUASI_IDENTIFIER:
            self._check_both_roles(name)
        columns = table.schema.quasi_identifiers_beside(name)
        promised: list[SensitiveGuarantee] = []
        if self.l is not None:
            c = None if self.c is None else float(self.c)
            promised.append(LDiversity(float(self.l), name, columns, self.variant, c))
        if self.t is not None:
            promised.append(TCloseness(float(self.t), name, columns, self.distance))
        if self.beta is not None:
            promised.append(BetaLikeness(float(self.beta), name, columns, self.likeness))
        if self.delta is not None:
            promised.append(DeltaDisclosure(float(self.delta), name, columns))
        if self.alpha is not None:
            promised.append(AlphaKAnonymity(float(self.alpha), int(self.k), name, columns))
        return promised

    def _check_both_roles(self, name: str) -> None:
        """Refuse what coarsening the sensitive column itself would make look better: distances from the table."""
        for parameter in self.parameters:
            if _KINDS[parameter].compares_with_table:
                problem = f"got one, and '{name}' is a quasi-identifier as well: coarsened values hide distances"
                hint = "ask for l or alpha, or give the column the role sensitive alone"
                raise InvalidParameterError(parameter, problem, allowed="left out", hint=hint)


def check_needs_no_pairs(asked: Asked) -> None:
    """Refuse what needs pairs of a person and a value, where only persons were counted: all but distinct l up to 2.

    Raises
    ------
    InvalidParameterError
        If there is one.
    """
    for name in asked.parameters:
        if name == "l" and asked.variant == "distinct" and (asked.l or 0) - ROUNDING <= 2:
            continue
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
