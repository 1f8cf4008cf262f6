"""Identifiers that repeat: several rows may be about one person. Light, for the page's server asks too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sfumato.schema import Role
from sfumato.table.column_names import BIRTH_DATE_NAMES, PERSON_NAMES, folded_name

_MOST_ROWS = 10  # on average: what more rows share is rather a category


@dataclass(frozen=True)
class IdentifierCounts:
    """An identifier, how many different values it has, and in how many rows it is known."""

    name: str
    n_values: int
    n_rows: int

    @property
    def repeats(self) -> bool:
        """Whether several rows may be about one person."""
        return 1 < self.n_values < self.n_rows

    @property
    def is_shared_by_many(self) -> bool:
        """Whether so many rows share a value that it is rather a category, unless the name says otherwise."""
        return not self.numbers_people and self.n_rows >= _MOST_ROWS * self.n_values

    @property
    def numbers_people(self) -> bool:
        """Whether the column's name says that every person has a value of their own."""
        return PERSON_NAMES.search(folded_name(self.name)) is not None

    def in_words(self) -> str:
        """Say that rows are counted, and what to do if persons are meant."""
        return (
            f"'{self.name}' repeats: {self.n_values:,} values in {self.n_rows:,} rows. k and all other guarantees "
            "count rows, not people. If it tells people apart, give it the role person"
        )


def counted_identifiers(columns: Iterable[tuple[str, str, int, int]], n_rows: int) -> list[IdentifierCounts]:
    """Count the identifiers among columns, each with its role, distinct values and rows without one.

    None where a column tells persons apart: then these are counted, and nothing has to be asked.
    """
    every = list(columns)
    if any(role == Role.PERSON for _, role, _, _ in every):
        return []
    return [
        IdentifierCounts(name, n_values, n_rows - n_missing)
        for name, role, n_values, n_missing in every
        if role == Role.IDENTIFIER
    ]


def repeating_identifiers(identifiers: Iterable[IdentifierCounts]) -> list[IdentifierCounts]:
    """Find identifiers of a table without a person column that repeat: several rows may be about one person.

    None where a column that numbers people does not repeat: then everybody has one row, and names repeat by chance, as
    dates of birth always do. Any other is a question to the holder of the table and no finding.
    """
    every = list(identifiers)
    if any(one.numbers_people and not one.repeats for one in every):
        return []
    return [one for one in every if one.repeats and not BIRTH_DATE_NAMES.search(folded_name(one.name))]
