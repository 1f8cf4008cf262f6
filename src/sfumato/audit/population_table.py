r"""A release and a table of the population that its people are from: k-map and δ-presence.

A person *fits* a class of equal released rows if every cell of the class may mean the person's value. With
:math:`t_C` the released rows of a class and :math:`p_C` the people of the population who fit it:

- *k-map* [S02]_: every released row fits at least k people of the population, :math:`k = \min_C p_C`. k-anonymity
  implies it where the population holds everybody who was released, and not the other way round.
- *δ-presence* [NAC07]_: whoever knows the population table and takes the people of a class as equally likely believes
  of each person that they are in the release with a probability from :math:`\delta_{min}` to :math:`\delta_{max}`.
  That is :math:`t_C / p_C` for people who fit a class, and 0 for all others. It is defined where nobody fits two
  classes, as after a global recoding.

One row of the population table is one person. Both figures are as good as that table: a person it lacks is not counted.

References
----------
.. [S02] Sweeney: k-anonymity: A Model for Protecting Privacy. Int. J. Uncertainty, Fuzziness and Knowledge-Based
   Systems 10 (2002), and Computational Disclosure Control (PhD thesis, MIT, 2001), where the map is defined.
.. [NAC07] Nergiz, Atzori, Clifton: Hiding the Presence of Individuals from Shared Databases. SIGMOD 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.claims import ClaimedRecoding, Claims
from sfumato.audit.original.consistency import Consistency
from sfumato.audit.reading.cells import ColumnBits, Containing, a_row_of_each, contained, unchanged
from sfumato.audit.reading.columns import AnyTable, Columns, Refinement
from sfumato.audit.reading.labels import contained_in_labels
from sfumato.audit.reading.values import AS_IS, GENERALIZED, HIERARCHY, evaluate, zero_one
from sfumato.errors import ColumnNotFoundError, SchemaError
from sfumato.schema import Role

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class InPopulation:
    """Classes of a release and of a population.

    Parameters
    ----------
    rows : int64 array
        Released rows of each class.
    people : int64 array
        People who fit each class.
    n_people, n_who_fit : int
        People of the population, and those who fit at least one class.
    """

    rows: Counts
    people: Counts
    n_people: int
    n_who_fit: int

    @property
    def k_map(self) -> int:
        """Fewest people that a released row fits; 0 without rows."""
        return int(self.people.min()) if len(self.people) else 0

    @property
    def n_rows_without_people(self) -> int:
        """Released rows in classes with fewer people than rows: the population table lacks some of theirs."""
        return int(self.rows[self.people < self.rows].sum())

    @property
    def is_disjoint(self) -> bool:
        """Whether nobody fits two classes."""
        return int(self.people.sum()) == self.n_who_fit

    @cached_property
    def presence(self) -> tuple[float, float] | None:
        """δ_min and δ_max; ``None`` where they are not defined: people fit two classes, or are too few."""
        if not len(self.rows) or not self.is_disjoint or self.n_rows_without_people:
            return None
        shares = self.rows / self.people
        least = 0.0 if self.n_who_fit < self.n_people else float(shares.min())
        return least, float(shares.max())

    @property
    def mean_risk(self) -> float:
        """Mean over released rows of 1 / people who fit: the share found by who guesses among them; 0 without any."""
        found = self.people > 0
        n_rows = int(self.rows.sum())
        return float((self.rows[found] / self.people[found]).sum() / n_rows) if n_rows else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain data for people and programs."""
        return {
            "people": self.n_people,
            "k_map": self.k_map,
            "mean_risk": self.mean_risk,
            "presence": dict(zip(("delta_min", "delta_max"), self.presence, strict=True)) if self.presence else None,
            "people_who_fit_no_row": self.n_people - self.n_who_fit,
            "rows_with_too_few_people": self.n_rows_without_people,
            "classes_overlap": not self.is_disjoint,
        }


@dataclass(frozen=True, eq=False, repr=False)
class GivenPopulation:
    """A table of the population that an audit was given, and the release that it is about.

    Parameters
    ----------
    released : Table or BinaryTable
        As the manifest describes it.
    table : Table or BinaryTable
        The population, one row a person.
    original : Table or BinaryTable or None
        What the release was made of.
    key : bytes or None
        Of the release, by which a commitment to the table is checked.
    """

    released: AnyTable
    table: AnyTable
    claims: Claims
    original: AnyTable | None = None
    key: bytes | None = None

    @cached_property
    def found(self) -> InPopulation:
        """Classes of the release and of the population."""
        return in_population(self.released, self.table, self.claims)

    @property
    def sha256(self) -> str | None:
        """Hash of the file that the table was read from, which never stands in a manifest."""
        return self.table.source.sha256 if self.table.source is not None else None


def in_population(
    released: AnyTable, population: AnyTable, claims: Claims | None = None, *, columns: Sequence[str] | None = None
) -> InPopulation:
    """Count for every class of a release the people of a population who fit it.

    Parameters
    ----------
    claims : Claims or None
        What the manifest says of the cells; ``None``: every cell is a value.
    columns : sequence of str or None
        Columns that people are compared on; ``None``: all quasi-identifiers.

    Raises
    ------
    SchemaError
        If cells cannot be read, or the rows are not those of people (perturbed, synthetic, in buckets).
    ColumnNotFoundError
        If the population lacks a quasi-identifier.
    """
    after, before = Columns(released), Columns(population)
    if claims is not None and claims.perturbation is not None:
        problem = f"rows that are {claims.perturbation.kind} fit nobody in particular"
        raise SchemaError(problem)
    if columns is not None:
        names: Sequence[str] = columns
    else:
        names = after.with_role(Role.QUASI_IDENTIFIER) if claims is None else claims.names(Role.QUASI_IDENTIFIER)
    recodings = {} if claims is None else claims.recodings
    people, classes = Refinement(before.n_rows), Refinement(after.n_rows)
    compared: list[tuple[Containing, Counts, Counts]] = []
    for name in names:
        recoding = recodings.get(name)
        column = name if recoding is None else recoding.column
        if column not in before:
            raise ColumnNotFoundError(column, before.names, where="the population table")
        read = _read(after, before, name, column, recoding)
        cells = after.coded(name)
        places = read.places[before.coded(column).codes]
        people.add(places, max(read.n_places, 1))
        classes.add(cells.codes, len(cells.values))
        compared.append((read, places, cells.codes.astype(np.int64)))
    persons, groups = people.classes(), classes.classes()
    first, last = a_row_of_each(persons), a_row_of_each(groups)
    bits = tuple(ColumnBits(read, places[first], cells[last]) for read, places, cells in compared)
    found = Consistency(persons, groups, False, bits)
    fits = found.released_per_original > 0
    return InPopulation(groups.sizes, found.originals_per_released, before.n_rows, int(persons.sizes[fits].sum()))


def _read(after: Columns, before: Columns, name: str, column: str, recoding: ClaimedRecoding | None) -> Containing:
    """Say which values of the population each released cell may mean; it may name values that nobody has."""
    cells, values = after.coded(name).values, before.coded(column).values
    if recoding is None or recoding.rule == AS_IS:
        return unchanged(cells, values)
    if recoding.rule == GENERALIZED:
        read = contained(cells, values, recoding.kind, recoding.domain)
    elif recoding.rule == HIERARCHY:
        read = contained_in_labels(cells, values, recoding.kind, recoding.labels, recoding.domain)
    else:
        return _zero_one(name, evaluate(recoding, values), zero_one(cells))
    if read.n_unreadable:
        problem = f"has cells that cannot be read ({read.n_unreadable:,} of {read.n_cells:,} distinct ones)"
        raise SchemaError(problem, column=name)
    return read


def _zero_one(name: str, expected: NDArray[np.int8] | None, found: NDArray[np.int8] | None) -> Containing:
    """Let a 0 mean the values by whose rule the feature is 0, and a 1 the others."""
    if expected is None or found is None or (found < 0).any():
        problem = "has a rule that cannot be applied to the population table"
        raise SchemaError(problem, column=name)
    starts = found.astype(np.int64)
    return Containing(expected.astype(np.int64), 2, np.arange(len(found)), starts, starts + 1, len(found))
