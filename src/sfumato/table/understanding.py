"""How an undescribed table is understood: roles, kinds, formats, missing texts, dates of birth that become ages.

The commands, ``sfumato.release`` and the page all come here, so that ``release DATA`` takes a table for what ``init``
writes down about it. Words about it are in :mod:`sfumato.table.roles` and :mod:`sfumato.table.births`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sfumato.schema import Role
from sfumato.table.births import released_as_ages
from sfumato.table.io.read import DEFAULT_OPTIONS, ReadOptions, check_formats, read_table
from sfumato.table.persons import one_row_per_person
from sfumato.table.preparing.declared import Preparation
from sfumato.table.preparing.keyed import PreparationKeys
from sfumato.table.preparing.prepared import prepared
from sfumato.table.roles import (
    AnyTable,
    ColumnGuess,
    describe_columns,
    redescribed,
    with_confirmed,
    without_guessed_target,
)


@dataclass(frozen=True)
class Understood:
    """A table with what its columns were taken for.

    Parameters
    ----------
    table : Table or BinaryTable
        With the given and guessed roles; not prepared yet.
    guesses : tuple of ColumnGuess
        Of every column, features of a sparse table included.
    preparations : tuple of Preparation
        What is to be done to columns: as given, and the ages of dates of birth.
    """

    table: AnyTable
    guesses: tuple[ColumnGuess, ...]
    preparations: tuple[Preparation, ...] = ()

    @property
    def guessed(self) -> tuple[ColumnGuess, ...]:
        """Columns whose roles nobody gave, without the features of a sparse table."""
        schema = self.table.coded_part.schema
        return tuple(guess for guess in self.guesses if guess.column.name in schema and not guess.is_given)

    def prepared(self, keys: PreparationKeys | None = None) -> AnyTable:
        """Prepare the columns; see :func:`sfumato.table.preparing.prepared.prepared`."""
        return prepared(self.table, self.preparations, keys)


def understand(
    seen: AnyTable,
    roles: Mapping[str, Role] | None = None,
    *,
    preparations: Sequence[Preparation] = (),
    guess_target: bool = True,
) -> Understood:
    """Say what the columns of a table are that was read without a description, or the outline of one.

    Parameters
    ----------
    roles : mapping of str to Role, optional
        Roles that are known; they are never changed.
    preparations : sequence of Preparation
        Asked for by the user. A date of birth is then prepared in this way only, and stays an identifier unless that
        makes an age of it.
    guess_target : bool
        Whether a column may be guessed to be the target.
    """
    guesses = describe_columns(seen, overrides=roles)
    guesses = guesses if guess_target else without_guessed_target(seen, guesses)
    own = {asked.column: asked.age_at for asked in preparations}
    guesses = released_as_ages(seen, guesses, own)
    proposed = [Preparation.of(g.column.name, g.prepare) for g in guesses if g.prepare and g.column.name not in own]
    schema = seen.coded_part.schema
    described = redescribed(seen, [guess.column for guess in guesses if guess.column.name in schema])
    return Understood(described, tuple(guesses), (*preparations, *proposed))


def read_understood(
    source: Any,
    options: ReadOptions = DEFAULT_OPTIONS,
    roles: Mapping[str, Role] | None = None,
    *,
    preparations: Sequence[Preparation] = (),
    confirmed: Iterable[str] = (),
    guess_target: bool = True,
) -> Understood:
    """Read a table that nobody has described and say what its columns are, see :func:`understand`.

    ``confirmed`` are columns that somebody has decided to release although they look like identifiers. Of each person
    one row is kept if the options say so.

    Raises
    ------
    ColumnNotFoundError
        If a role or a format is given to a column that does not exist.
    """
    seen = read_table(source, options=replace(options, mixed_as_text=True))
    check_formats(options, seen.coded_part.schema.names(), str(source) if isinstance(source, str) else "the table")
    seen = with_confirmed(seen, tuple(confirmed))
    found = understand(seen, roles, preparations=preparations, guess_target=guess_target)
    rule = options.one_row_per_person
    return found if rule is None else replace(found, table=one_row_per_person(found.table, rule))
