"""What a mechanism is asked to promise, brought together with a table: over which columns, and by which unit.

Where a column tells persons apart and some have several rows, what is promised counts persons.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Protocol

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import GUARANTEES, ROUNDING, ROW, AboutValues, Guarantee, KAnonymity, LDiversity, SearchedBy
from sfumato.guarantees.base import EVERY_SENSITIVE
from sfumato.guarantees.request import check_request, k_of
from sfumato.schema import WITHHELD, Role, Schema
from sfumato.table.coding import Table
from sfumato.table.persons import person_codes


class AskedForGuarantees(Protocol):
    """A mechanism that can be asked for guarantees by a list."""

    mechanism_name: ClassVar[str]
    searches: ClassVar[tuple[SearchedBy, ...]]
    k: int
    privacy: Sequence[Guarantee]


@dataclass(frozen=True)
class Requested:
    """What is asked of a mechanism: k, and what is to hold for the values of sensitive columns."""

    k: int
    about: tuple[AboutValues, ...] = ()

    @classmethod
    def of(cls, mechanism: AskedForGuarantees) -> Requested:
        """Take it from a mechanism.

        Raises
        ------
        InvalidParameterError
            If it cannot be asked for that.
        """
        check_request(mechanism.privacy, mechanism.searches, mechanism.mechanism_name)
        about = [own for own in mechanism.privacy if isinstance(own, AboutValues)]
        about.sort(key=lambda own: list(GUARANTEES).index(own.kind))
        return cls(int(k_of(mechanism.k, mechanism.privacy)), tuple(about))

    @property
    def sensitive(self) -> str:
        """Columns that it is about, by commas; empty: every one with the role sensitive."""
        return self.about[0].sensitive if self.about else EVERY_SENSITIVE

    def of_one_column(self, table: Table) -> list[AboutValues]:
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

    def by_column(self, table: Table) -> list[list[AboutValues]]:
        """Promises about each sensitive column of a table."""
        if not self.about:
            return []
        named = self.columns(table.schema)
        if not named:
            problem = f"{self._what} is about sensitive columns, and the table has none"
            hint = "give a column the role sensitive, or name it with the parameter sensitive"
            raise SchemaError(problem, hint=hint)
        return [self._of_column(name, table) for name in named]

    def columns(self, schema: Schema) -> tuple[str, ...]:
        """Columns that it is about: those named, by commas unless all is the name of one, or all sensitive ones."""
        if not self.about:
            return ()
        if self.sensitive == EVERY_SENSITIVE:
            return schema.names(Role.SENSITIVE)
        if self.sensitive in schema:
            return (self.sensitive,)
        named = (name.strip() for name in self.sensitive.split(","))
        return tuple(dict.fromkeys(schema[name].name for name in named if name))

    @property
    def _what(self) -> str:
        return " and ".join(own.words.title for own in self.about)

    def _of_column(self, name: str, table: Table) -> list[AboutValues]:
        role = table.schema[name].role
        if role in (Role.QUASI_IDENTIFIER, *WITHHELD):
            hint = f"give '{name}' the role sensitive, or name another column"
            allowed = "a column that is published unchanged"
            raise InvalidParameterError("sensitive", f"'{name}' is a {role}", allowed=allowed, hint=hint)
        if role is Role.SENSITIVE_QUASI_IDENTIFIER:
            self._check_both_roles(name)
        place: dict[str, Any] = {"sensitive": name, "columns": table.schema.quasi_identifiers_beside(name)}
        return [replace(own, **place, **self._numbers(own)) for own in self.about]

    def _numbers(self, own: AboutValues) -> dict[str, Any]:
        """Numbers of a guarantee as it states them: of the types of its fields, and with the k of all classes."""
        found = {
            one.name: float(value)
            for one in own.asked_by
            if one.type is float and (value := getattr(own, one.name)) is not None
        }
        return found | ({"k": self.k} if "k" in {one.name for one in fields(own)} else {})

    def _check_both_roles(self, name: str) -> None:
        """Refuse what coarsening the sensitive column itself would make look better: distances from the table."""
        for own in self.about:
            if own.compares_with_table:
                problem = f"got one, and '{name}' is a quasi-identifier as well: coarsened values hide distances"
                hint = "ask for l or alpha, or give the column the role sensitive alone"
                raise InvalidParameterError(own.level.name, problem, allowed="left out", hint=hint)


def check_needs_no_pairs(requested: Requested) -> None:
    """Refuse what needs pairs of a person and a value, where only persons were counted: all but distinct l up to 2.

    Raises
    ------
    InvalidParameterError
        If there is one.
    """
    for own in requested.about:
        if follows_from_two_persons(own):
            continue
        problem = "got one, some persons have several rows, and the table is not in memory"
        hint = "read the table into memory, or ask for distinct 2-diversity or k alone"
        allowed = "left out (l: 2 at most, distinct)"
        raise InvalidParameterError(own.level.name, problem, allowed=allowed, hint=hint, remedy=("one_row_per_person",))


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


def promised_by_persons(guarantees: Iterable[AboutValues], person: str) -> list[Guarantee]:
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
