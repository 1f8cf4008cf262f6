"""Guess what the columns of an undescribed table are, and say why.

A guess leans to the safe side: what is not known to be anything else is a quasi-identifier. A column is judged by its
name (:mod:`sfumato.table.column_names`) and by what its cells hold (:mod:`sfumato.table.identifiers`). A reason holds
counts, patterns and column names, never a cell value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.errors import ColumnNotFoundError, SchemaError
from sfumato.schema import WITHHELD, Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.column_names import (
    CATEGORY_NAMES,
    FIRST_NAMES,
    IDENTIFIER_NAMES,
    KEY_NAMES,
    NAMES_OF_NAMES,
    PERSON_NAMES,
    PLACE_NAMES,
    QUASI_IDENTIFIER_NAMES,
    RELIGION_NAMES,
    SENSITIVE_NAMES,
    TARGET_NAMES,
    folded_name,
)
from sfumato.table.identifiers.person_keys import may_number_people
from sfumato.table.identifiers.text_columns import why_withheld
from sfumato.table.kinds import mixed_columns
from sfumato.table.orders.recognise import recognise_order

AnyTable = Table | BinaryTable

_KEY_FRACTION = 0.05  # an "id" with fewer distinct values than this share of the rows is a code, not a key
_MOST_CLASSES = 20
_MOST_CLASSES_IN_WORDS = 100


@dataclass(frozen=True)
class ColumnGuess:
    """A column with its guessed role.

    Parameters
    ----------
    column : Column
    reason : str
        One short phrase for people.
    n_distinct : int
        Distinct values, not counting a missing one.
    n_missing : int
    is_given : bool
        Whether the role was given and not guessed.
    is_withheld : bool
        Whether the column is left out because of what its cells hold, until somebody confirms it.
    prepare : mapping or None
        How the column should be prepared, as a project file says it.
    """

    column: Column
    reason: str
    n_distinct: int
    n_missing: int
    is_given: bool = False
    is_withheld: bool = False
    prepare: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class _Seen:
    """What the rules look at: the name as `` word word ``, the cells as counts."""

    column: Column
    coded: CodedColumn
    words: str
    n_distinct: int
    n_missing: int

    @classmethod
    def of(cls, column: Column, coded: CodedColumn) -> _Seen:
        missing = coded.values.null_count
        return cls(
            column, coded, folded_name(column.name), coded.n_distinct - missing, coded.n_missing if missing else 0
        )

    @property
    def most_classes_by_convention(self) -> int:
        """Values up to which a column that stands where the class stands is one: of words more than of numbers."""
        is_in_words = self.column.kind in (Kind.CATEGORICAL, Kind.ORDERED)
        return _MOST_CLASSES_IN_WORDS if is_in_words else _MOST_CLASSES

    @property
    def n_present(self) -> int:
        return self.coded.n_rows - self.n_missing

    def guess(self, role: Role, why: str) -> ColumnGuess:
        column = replace(self.column, role=role)
        return ColumnGuess(column, f"{why} → {role}", self.n_distinct, self.n_missing)


def describe_columns(table: Table | BinaryTable, *, overrides: Mapping[str, Role] | None = None) -> list[ColumnGuess]:
    """Guess a role for every column, in table order.

    The rules, first match wins: what ``overrides`` says; a name of an identifier; cells that look like one, see
    :func:`sfumato.table.identifiers.recognise.recognise`; the name of a key with many values; a value unique in 95 %
    of the rows that have one and that is not a decimal measurement; the name of a target with 2 to 20 values (one
    column at most: the plainest name, then two values before more, then the rightmost); the name of something
    sensitive; the name of something others know; one value only; and else quasi-identifier. When no target was found, a
    last column with two values and no telling name is taken; of an ARFF file also one with more values, since the last
    attribute is the class there.

    Of the identifiers the first whose name numbers people and that repeats tells persons apart.

    Features of a :class:`BinaryTable` are quasi-identifiers; only its companions are guessed. The reason of a column
    that is categorical although almost all its rows are numbers (see :func:`mixed_columns`) says so, and so does that
    of one whose values have an order, or nearly (:func:`sfumato.table.orders.recognise.recognise_order`).

    Parameters
    ----------
    table : Table or BinaryTable
    overrides : mapping of str to Role, optional
        Roles that are already known.

    Raises
    ------
    ColumnNotFoundError
        If ``overrides`` names a column that does not exist.
    SchemaError
        If ``overrides`` gives two columns the role target, or a binary feature another role than quasi-identifier.
    """
    known = dict(overrides or {})
    plain = table.coded_part
    features = _describe_features(table, known) if isinstance(table, BinaryTable) else []
    taken = {guess.column.name for guess in features}
    for name in known:
        if name not in plain.schema and name not in taken:
            raise ColumnNotFoundError(name, (*taken, *plain.schema.names()))
    seen = [_Seen.of(column, plain[column.name]) for column in plain.schema]
    is_arff = plain.source is not None and plain.source.format == "arff"
    classes = {seen[-1].column.name} if is_arff and seen else set()
    guesses = {
        s.column.name: _override(s, known)
        or _identifier(s, is_recognised=s.column.name in classes or _is_recognised(s))
        or _person_key(s, plain)
        for s in seen
    }
    open_to_target = [s for s in seen if guesses[s.column.name] is None]
    target = None if Role.TARGET in known.values() else _target(open_to_target)
    if Role.PERSON not in known.values():
        guesses |= _person([(s, guess) for s in seen if (guess := guesses[s.column.name]) and not guess.is_given])
    rest = [
        guesses[s.column.name] or (target if target and target.column.name == s.column.name else _other(s))
        for s in seen
    ]
    if target is None and Role.TARGET not in known.values():
        rest = _last_as_target(seen, rest, known, by_convention=is_arff)
    Schema.of(guess.column for guess in rest)
    return features + [_with_order(plain, guess) for guess in _with_mixtures(plain, rest)]


def with_guessed_roles(
    table: AnyTable, roles: Mapping[str, Role], *, quasi_identifiers_as_given: bool = False
) -> tuple[AnyTable, list[ColumnGuess]]:
    """Give the named columns their roles and the others guessed ones; returned with what is said of every column.

    Features of a binary table have no guess. With ``quasi_identifiers_as_given`` a list of quasi-identifiers is
    complete: no other column is guessed to be one.
    """
    plain = table.coded_part
    guesses = [g for g in describe_columns(table, overrides=roles) if g.column.name in plain.schema]
    if quasi_identifiers_as_given and any(role.is_one_of([Role.QUASI_IDENTIFIER]) for role in roles.values()):
        guesses = [_not_quasi(g) if g.column.name not in roles else g for g in guesses]
    return redescribed(table, [guess.column for guess in guesses]), guesses


def without_guessed_target(table: AnyTable, guesses: Iterable[ColumnGuess]) -> list[ColumnGuess]:
    """Take a column that was guessed to be the target for what it would be if it were none."""
    plain = table.coded_part
    return [
        replace(_other(_Seen.of(guess.column, plain[guess.column.name])), reason=f"{NO_TARGET_GIVEN}; {guess.reason}")
        if guess.column.role is Role.TARGET and not guess.is_given
        else guess
        for guess in guesses
    ]


NO_TARGET_GIVEN = "not taken as the target, since none was given"


def redescribed(table: AnyTable, columns: Iterable[Column]) -> AnyTable:
    """Describe the columns of a table again; of a binary table those apart from its features."""
    plain = table.coded_part
    described = plain.with_schema(Schema.of(columns, plain.schema.missing))
    return table.with_coded_part(described)


def with_confirmed(table: AnyTable, names: Iterable[str]) -> AnyTable:
    """Say of some columns that somebody has decided to release them although they look as if they named people."""
    plain = table.coded_part
    return redescribed(table, plain.schema.with_confirmed(names)) if names else table


def _not_quasi(guess: ColumnGuess) -> ColumnGuess:
    if guess.column.role is not Role.QUASI_IDENTIFIER:
        return guess
    column = replace(guess.column, role=Role.OTHER)
    return replace(guess, column=column, reason="not among the quasi-identifiers given → other")


def _with_mixtures(table: Table, guesses: list[ColumnGuess]) -> list[ColumnGuess]:
    n_others = {column.name: column.n_rows_not_numbers for column in mixed_columns(table)}
    return [_with_mixture(g, table.n_rows, n_others.get(g.column.name, 0)) for g in guesses]


def _with_mixture(guess: ColumnGuess, n_rows: int, n_others: int) -> ColumnGuess:
    """Say how many rows of a categorical column are numbers when almost all are."""
    if not n_others:
        return guess
    present = n_rows - guess.n_missing
    shown = f"{present - n_others:,} of {present:,} rows are numbers, kind categorical because of the others"
    return replace(guess, reason=f"{guess.reason}; {shown}")


def _with_order(table: Table, guess: ColumnGuess) -> ColumnGuess:
    """Say which known order the values of a column have, or why they have none although they look like it."""
    column = guess.column
    if column.role in WITHHELD or column.kind not in (Kind.CATEGORICAL, Kind.ORDERED):
        return guess
    if column.domain and not column.is_order_recognised:
        return guess
    found = recognise_order(table[column.name].values)
    if not found.said:
        return guess
    said = f"{found.said}, kind ordered" if found.domain else f"kind {column.kind}: {found.said}"
    return replace(guess, reason=f"{guess.reason}; {said}")


def _describe_features(table: BinaryTable, known: Mapping[str, Role]) -> list[ColumnGuess]:
    ones = np.diff(table.matrix.indptr)
    guesses = []
    for feature, n_ones in zip(table.features, ones.tolist(), strict=True):
        if known.get(feature.name, Role.QUASI_IDENTIFIER) is not Role.QUASI_IDENTIFIER:
            problem = f"is a binary feature and cannot have the role {known[feature.name]}"
            raise SchemaError(problem, column=feature.name, hint="features are quasi-identifiers")
        column = Column(feature.name, Role.QUASI_IDENTIFIER, Kind.CATEGORICAL)
        n_distinct = len({0, n_ones, table.n_rows}) - 1
        reason = f"binary feature with {n_ones:,} ones → {Role.QUASI_IDENTIFIER}"
        guesses.append(ColumnGuess(column, reason, n_distinct, 0))
    return guesses


def _override(seen: _Seen, known: Mapping[str, Role]) -> ColumnGuess | None:
    role = known.get(seen.column.name)
    return None if role is None else replace(seen.guess(role, "as given"), is_given=True)


def _identifier(seen: _Seen, *, is_recognised: bool) -> ColumnGuess | None:
    """Name rules need some variety (a yes/no column named phone is no phone number), a key needs many values."""
    if seen.column.confirmed:
        return None
    varied = seen.n_distinct > 2 or seen.n_distinct == seen.n_present > 0
    many = seen.n_distinct >= _KEY_FRACTION * seen.n_present
    found, names = IDENTIFIER_NAMES.search(seen.words), FIRST_NAMES.search(seen.words)
    if varied and (many or names or seen.n_distinct > _MOST_CLASSES) and (found or seen.words in NAMES_OF_NAMES):
        return seen.guess(Role.IDENTIFIER, f"name says {found.group(1) if found else seen.words.strip()}")
    key = KEY_NAMES.search(seen.words)
    if varied and many and key:
        return seen.guess(Role.IDENTIFIER, f"name says {key.group(1)}, {seen.n_distinct:,} values")
    why = why_withheld(seen.column, seen.coded, is_recognised=is_recognised)
    return replace(seen.guess(Role.IDENTIFIER, why), is_withheld=True) if why else None


def _person_key(seen: _Seen, table: Table) -> ColumnGuess | None:
    """Leave out whole numbers that may number people: whether they do is asked, see :mod:`sfumato.table.repeating`."""
    why = "" if seen.column.confirmed else may_number_people(table, seen.column)
    return replace(seen.guess(Role.IDENTIFIER, why), is_withheld=True) if why else None


def _is_recognised(seen: _Seen) -> bool:
    """Whether the name says what the column holds: something others know, something sensitive, a target, categories."""
    patterns = (SENSITIVE_NAMES, QUASI_IDENTIFIER_NAMES, CATEGORY_NAMES, PLACE_NAMES, *TARGET_NAMES)
    return any(pattern.search(seen.words) for pattern in patterns)


def _person(identifiers: list[tuple[_Seen, ColumnGuess]]) -> dict[str, ColumnGuess]:
    """Take the first identifier that is named as a number of people and repeats as what tells them apart.

    Names of people repeat by chance, so a column named as one tells nobody apart.
    """
    for seen, _ in identifiers:
        if PERSON_NAMES.search(seen.words) and seen.n_distinct < seen.n_present:
            said = f"{seen.n_distinct:,} persons in {seen.n_present:,} rows"
            return {seen.column.name: seen.guess(Role.PERSON, f"numbers people and repeats, {said}")}
    return {}


def _target(candidates: list[_Seen]) -> ColumnGuess | None:
    ranked = []
    for position, seen in enumerate(candidates):
        if 2 <= seen.n_distinct <= _MOST_CLASSES:
            tier = next((i for i, pattern in enumerate(TARGET_NAMES) if pattern.search(seen.words)), None)
            if tier is not None:
                ranked.append((tier, seen.n_distinct != 2, -position, seen))
    if not ranked:
        return None
    best = min(ranked, key=lambda entry: entry[:3])[3]
    return best.guess(Role.TARGET, f"{best.n_distinct} values and the name '{best.column.name}'")


def _other(seen: _Seen) -> ColumnGuess:
    for role, pattern in ((Role.SENSITIVE, SENSITIVE_NAMES), (Role.QUASI_IDENTIFIER, QUASI_IDENTIFIER_NAMES)):
        found = pattern.search(seen.words)
        if found and seen.n_distinct <= 2 and RELIGION_NAMES.search(seen.words):
            return seen.guess(Role.QUASI_IDENTIFIER, f"name says {found.group(1)}, with two values, which others know")
        if found:
            return seen.guess(role, f"name says {found.group(1)}")
    if seen.n_distinct + (seen.n_missing > 0) <= 1:
        return seen.guess(Role.OTHER, "one value only" if seen.n_distinct else "no value at all")
    return ColumnGuess(replace(seen.column, role=Role.QUASI_IDENTIFIER), _UNKNOWN, seen.n_distinct, seen.n_missing)


_UNKNOWN = "not recognised: please decide"


def _last_as_target(
    seen: list[_Seen], guesses: list[ColumnGuess], known: Mapping[str, Role], *, by_convention: bool
) -> list[ColumnGuess]:
    """Take a two-valued last column as the target, but never one whose name says that others know or want it.

    In ARFF the last attribute is the class by convention, so that one of more values is taken as well.
    """
    if not guesses or guesses[-1].reason != _UNKNOWN or seen[-1].column.name in known:
        return guesses
    last = seen[-1]
    if last.n_distinct >= 2 and by_convention and last.n_distinct <= last.most_classes_by_convention:
        why = "no column is named like a target; the last attribute of an ARFF file is the class by convention"
        return [*guesses[:-1], last.guess(Role.TARGET, why)]
    if last.n_distinct == 2:
        return [*guesses[:-1], last.guess(Role.TARGET, "no column is named like a target; the last one has 2 values")]
    return guesses
