"""What a table's columns are: role, kind, missing-value tokens, domain and hierarchy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from sfumato.errors import ColumnNotFoundError, SchemaError, on_one_line

LEDGER_NAME = ".sfumato-ledger"
"""Folder next to a project file in which its releases are kept."""
PROJECT_NAME = "sfumato.toml"
"""Usual name of the project file, which holds what is described here."""
RUN_FOLDER = "sfumato-compare"
"""Usual folder beside it for what a comparison has measured."""
COMPARISON_NAME = "latest.comparison"
"""File there with all that the latest comparison has found so far, as JSON."""
ROW = "row"
"""Unit of a guarantee that counts rows; any other is the name of the column that tells persons apart."""
_NAMES_SHOWN = 5
_NOT_STATED = (  # English, German, French, Spanish, Italian, Portuguese, Dutch, Polish
    "not available, not stated",
    "keine Angabe, keine Angaben, ohne Angabe, nicht angegeben",
    "non renseigné, non renseignée, non disponible, non précisé",
    "sin dato, sin datos, no disponible, no consta",
    "non disponibile, non indicato, dato mancante",
    "sem dados, sem informação, não informado, não disponível",
    "niet beschikbaar, niet ingevuld, geen opgave",
    "brak danych, nie podano",
)
_SHORT = "n/a, n.a., N.A., k.A., k. A., k.a., K.A., o.A., n.d., N.D., s/d, S/D, s.d., n/d, N/D, s/i, S/I, n.b., b.d."
_PHRASES = ", ".join(_NOT_STATED).split(", ")
DEFAULT_MISSING_TOKENS = tuple(
    dict.fromkeys(
        [
            *("", "?", "NA", "N/A", "NaN", "nan", "NULL", "null"),
            *_SHORT.split(", "),
            *_PHRASES,
            *(phrase[0].upper() + phrase[1:] for phrase in _PHRASES),
        ]
    )
)
"""Texts that mean "missing" where nobody says which do: not available, not stated, in the languages of column names.

Words for *unknown* and *none* are values: an answer was given."""


class Role(StrEnum):
    """What a column is to the people in the table and to the recipient."""

    IDENTIFIER = "identifier"
    """Names a person by itself; never released."""
    PERSON = "person"
    """Says which rows are about the same person; never released, at most one column. Guarantees then count persons."""
    QUASI_IDENTIFIER = "quasi-identifier"
    """May be known to an attacker and, with others, single a person out."""
    SENSITIVE = "sensitive"
    """What an attacker wants to learn; released with the row."""
    SENSITIVE_QUASI_IDENTIFIER = "sensitive quasi-identifier"
    """Both: some attackers know it and single people out by it, others want to learn it. Coarsened as any other
    quasi-identifier; what is promised of its values is about groups of rows that are equal on the *other* ones."""
    TARGET = "target"
    """The class that recipients predict; at most one column."""
    OTHER = "other"
    """Released as it is and covered by no guarantee."""
    WEIGHT = "weight"
    """How many people of the population a row represents (survey weight); never released, at most one column."""

    @property
    def parts(self) -> tuple[Role, ...]:
        """Roles that a column with this role has: itself, or the two that it combines.

        Examples
        --------
        >>> [str(part) for part in Role.SENSITIVE_QUASI_IDENTIFIER.parts]
        ['quasi-identifier', 'sensitive']
        """
        return _COMBINED if self is Role.SENSITIVE_QUASI_IDENTIFIER else (self,)

    def is_one_of(self, roles: Iterable[Role]) -> bool:
        """Whether a column with this role has one of some roles, by itself or combined with another.

        Examples
        --------
        >>> Role.SENSITIVE_QUASI_IDENTIFIER.is_one_of([Role.SENSITIVE])
        True
        """
        wanted = set(roles)
        return self in wanted or not wanted.isdisjoint(self.parts)


_COMBINED = (Role.QUASI_IDENTIFIER, Role.SENSITIVE)

WITHHELD = (Role.IDENTIFIER, Role.PERSON, Role.WEIGHT)
"""Roles of columns that are never released."""


class Kind(StrEnum):
    """How a column's values relate to each other."""

    NUMERIC = "numeric"
    CATEGORICAL = "categorical"
    ORDERED = "ordered"
    DATE = "date"


def shows_values(role: Role, kind: Kind) -> bool:
    """Whether a release may show single values of a column: passed through, or listed in sets and labels.

    Numbers and dates become ranges where they are quasi-identifiers, and are what recipients want where they are
    sensitive. Whether the texts of a target are released is asked apart.

    Examples
    --------
    >>> shows_values(Role.QUASI_IDENTIFIER, Kind.CATEGORICAL), shows_values(Role.QUASI_IDENTIFIER, Kind.NUMERIC)
    (True, False)
    """
    if role in (*WITHHELD, Role.TARGET):
        return False
    return role is Role.OTHER or kind not in (Kind.NUMERIC, Kind.DATE)


AS_TEXT = "text"
"""Format of a column whose texts are taken as they are."""


@dataclass(frozen=True)
class Reading:
    """How the texts of a column were read at the door, where they were no plain numbers and no ISO dates.

    Parameters
    ----------
    format : str
        Such as ``DD/MM/YYYY`` or ``1.234,56 kg``, see :mod:`sfumato.table.reading`.
    unit : str
        What was written next to every number and is no part of the cells.
    doubt : str
        What in it is a guess that no value decides, in words; empty where nothing is, or somebody has declared it.
    is_own : bool
        Whether somebody has declared it and the guess would be another one: who reads the same file has to know it.
    is_stated : bool
        Whether only the manifest of a release says so, whose word was taken.
    """

    format: str
    unit: str = ""
    doubt: str = field(default="", compare=False)
    is_own: bool = field(default=False, compare=False)
    is_stated: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Column:
    """One column's description.

    Parameters
    ----------
    domain : tuple of str or None
        Declared values: for an ordered column from lowest to highest. ``None`` takes the values that occur.
    hierarchy : str or None
        Path of a generalization hierarchy (``;``-separated), relative to the project file.
    missing : tuple of str or None
        Texts that stand for "missing" in this column; ``None`` takes the table's.
    confirmed : bool
        Whether somebody has decided that the column may be released although its values look as if they named people.
    is_order_recognised : bool
        Whether the domain was found in the values (:mod:`sfumato.table.orders`) and not declared. A manifest then lists
        the values of released rows only.
    reading : Reading or None
        How its texts are read, or were; ``None``: plain numbers, ISO dates, or text.
    """

    name: str
    role: Role = Role.QUASI_IDENTIFIER
    kind: Kind = Kind.CATEGORICAL
    domain: tuple[str, ...] | None = field(default=None, repr=False)  # a recognised one holds cell values
    hierarchy: str | None = None
    missing: tuple[str, ...] | None = None
    confirmed: bool = False
    is_order_recognised: bool = False
    reading: Reading | None = None

    def restricted_to(self, values: Iterable[str | None]) -> Column:
        """Leave those values out of a recognised domain that do not occur; a declared one stays whole.

        Examples
        --------
        >>> found = Column("size", kind=Kind.ORDERED, domain=("S", "M", "L"), is_order_recognised=True)
        >>> found.restricted_to(["L", "S"]).domain
        ('S', 'L')
        """
        if not self.is_order_recognised or self.domain is None:
            return self
        occurring = set(values)
        return replace(self, domain=tuple(value for value in self.domain if value in occurring))


@dataclass(frozen=True)
class Schema:
    """Column descriptions in table order; names are unique and at most one column is the target.

    Examples
    --------
    >>> schema = Schema.of([Column("age", kind=Kind.NUMERIC), Column("ill", role=Role.TARGET)])
    >>> schema.target, schema.names(Role.QUASI_IDENTIFIER)
    ('ill', ('age',))
    """

    columns: Mapping[str, Column] = field(default_factory=dict)
    missing: tuple[str, ...] = DEFAULT_MISSING_TOKENS

    @classmethod
    def of(cls, columns: Iterable[Column], missing: tuple[str, ...] = DEFAULT_MISSING_TOKENS) -> Schema:
        """Build a schema, refusing repeated names and a second target."""
        by_name: dict[str, Column] = {}
        for column in columns:
            if column.name in by_name:
                raise SchemaError("is described twice", column=column.name)
            by_name[column.name] = column
        targets = [c.name for c in by_name.values() if c.role is Role.TARGET]
        if len(targets) > 1:
            listed = ", ".join(f"'{name}'" for name in targets)
            problem = f"{len(targets)} columns have the role target ({listed})"
            raise SchemaError(problem, hint="keep one; give the others the role other or sensitive")
        persons = [c.name for c in by_name.values() if c.role is Role.PERSON]
        if len(persons) > 1:
            listed = ", ".join(f"'{name}'" for name in persons)
            problem = f"{len(persons)} columns have the role person ({listed})"
            raise SchemaError(problem, hint="keep the one that tells persons apart; make the others identifiers")
        if persons == [ROW]:
            problem = "has the role person, and its name is how a guarantee says that it counts rows"
            raise SchemaError(problem, column=ROW, hint="rename the column")
        weights = [c.name for c in by_name.values() if c.role is Role.WEIGHT]
        if len(weights) > 1:
            listed = ", ".join(f"'{name}'" for name in weights)
            problem = f"{len(weights)} columns have the role weight ({listed})"
            raise SchemaError(problem, hint="keep one; give the others the role identifier, which leaves them out")
        return cls(by_name, missing)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns.values())

    def __len__(self) -> int:
        return len(self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> Column:
        try:
            return self.columns[name]
        except KeyError:
            raise ColumnNotFoundError(name, self.columns) from None

    def names(self, *roles: Role) -> tuple[str, ...]:
        """Names of the columns with one of these roles (all columns when none is given), in table order.

        A sensitive quasi-identifier has both roles.
        """
        return tuple(c.name for c in self if not roles or c.role.is_one_of(roles))

    def published_unchanged(self) -> tuple[str, ...]:
        """Names of the columns that no recoding touches: target, sensitive (and no quasi-identifier), other."""
        return tuple(c.name for c in self if c.role in (Role.TARGET, Role.SENSITIVE, Role.OTHER))

    def quasi_identifiers_beside(self, name: str) -> tuple[str, ...]:
        """Names of the quasi-identifiers other than a column: what an attacker who wants its value may know.

        Examples
        --------
        >>> schema = Schema.of([Column("age"), Column("ill", Role.SENSITIVE_QUASI_IDENTIFIER)])
        >>> schema.quasi_identifiers_beside("ill")
        ('age',)
        """
        return tuple(other for other in self.names(Role.QUASI_IDENTIFIER) if other != name)

    @property
    def target(self) -> str | None:
        """Name of the target column, if there is one."""
        return next(iter(self.names(Role.TARGET)), None)

    @property
    def person(self) -> str | None:
        """Name of the column that tells persons apart, if there is one."""
        return next(iter(self.names(Role.PERSON)), None)

    @property
    def weight(self) -> str | None:
        """Name of the column with survey weights, if there is one."""
        return next(iter(self.names(Role.WEIGHT)), None)

    def missing_tokens(self, name: str) -> tuple[str, ...]:
        """Texts that mean "missing" in a column."""
        own = self[name].missing
        return self.missing if own is None else own

    def check_quasi_identifiers(self, purpose: str) -> None:
        """Refuse a table without a quasi-identifier, naming the columns that are none because they are identifiers.

        Parameters
        ----------
        purpose : str
            What they are needed for, after "the table has no quasi-identifier".
        """
        if self.names(Role.QUASI_IDENTIFIER):
            return
        problem, hint = f"the table has no quasi-identifier {purpose}", "give a column the role quasi-identifier"
        identifiers = self.names(*WITHHELD)
        if identifiers:
            shown = ", ".join(f"'{on_one_line(name)}'" for name in identifiers[:_NAMES_SHOWN])
            more = f" and {len(identifiers) - _NAMES_SHOWN:,} more" if len(identifiers) > _NAMES_SHOWN else ""
            problem += f" apart from the identifiers, which are never released: {shown}{more}"
            hint = "a text column that is unique in almost every row counts as an identifier; " + hint
        raise SchemaError(problem, hint=hint, remedy=("quasi_identifiers",))

    def keep(self, names: Iterable[str]) -> Schema:
        """Restrict to these columns, in the order given."""
        return Schema.of((self[name] for name in names), self.missing)

    def with_roles(self, roles: Mapping[str, Role | str | Sequence[Role | str]]) -> Schema:
        """Change the roles of some columns.

        Examples
        --------
        >>> Schema.of([Column("age"), Column("ill")]).with_roles({"ill": "target"}).target
        'ill'
        """
        for name in roles:
            self[name]
        given = as_roles(roles)
        return Schema.of((replace(c, role=given.get(c.name, c.role)) for c in self), self.missing)

    def with_confirmed(self, names: Iterable[str]) -> Schema:
        """Say of some columns that somebody has decided to release them although they look as if they named people.

        Examples
        --------
        >>> Schema.of([Column("ticket")]).with_confirmed(["ticket"])["ticket"].confirmed
        True
        """
        confirmed = {self[name].name for name in names}
        return Schema.of((replace(c, confirmed=c.confirmed or c.name in confirmed) for c in self), self.missing)


def combined(one: Role, other: Role) -> Role | None:
    """Give the role of a column that has two; ``None`` where they do not go together.

    Examples
    --------
    >>> str(combined(Role.SENSITIVE, Role.QUASI_IDENTIFIER)), combined(Role.SENSITIVE, Role.OTHER)
    ('sensitive quasi-identifier', None)
    """
    if one is other:
        return one
    return Role.SENSITIVE_QUASI_IDENTIFIER if {*one.parts, *other.parts} == set(_COMBINED) else None


def as_roles(given: Mapping[str, Role | str | Sequence[Role | str]]) -> dict[str, Role]:
    """Read roles by column that may be given as words; a column that has two roles may have a list of both.

    Raises
    ------
    SchemaError
        If a word is no role; suggests the nearest.
    """
    if not isinstance(given, Mapping):
        problem = f"roles must be a mapping of columns to roles, got a {type(given).__name__}"
        raise SchemaError(problem, hint='write them as {"age": "quasi-identifier"}')
    roles: dict[str, Role] = {}
    for name, word in given.items():
        several = list(word) if isinstance(word, list | tuple | set | frozenset) else [word]
        for one in several:
            role = _as_role(str(name), one)
            both = combined(roles.get(name, role), role)
            if both is None:
                problem = "has two roles that do not go together"
                hint = "only quasi-identifier and sensitive may be combined"
                raise SchemaError(problem, column=str(name), hint=hint)
            roles[name] = both
    return roles


def _as_role(name: str, word: object) -> Role:
    try:
        return Role(str(word))
    except ValueError:
        nearest = difflib.get_close_matches(str(word).lower(), list(Role), n=1)
        hint = f"did you mean '{nearest[0]}'?" if nearest else f"give it one of {', '.join(Role)}"
        raise SchemaError(f"'{on_one_line(str(word))}' is not a role", column=name, hint=hint) from None
