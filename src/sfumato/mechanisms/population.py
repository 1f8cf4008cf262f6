"""A table of the population that a released sample is from, for mechanisms that promise k-map or δ-presence about it.

Whether a person *fits* a class of released rows is defined by :mod:`sfumato.audit.population_table`, from the published
cells. Mechanisms count from the values instead, and only people of whom it is sure: cells may mean values that nobody
in the sample has (``*``, an interval of a hierarchy), and who has one of these may fit more rows than are counted here.
Fewer people are never safer, for k-map nor for δ_max, so that this errs on the safe side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import ColumnNotFoundError, InvalidParameterError, SchemaError
from sfumato.guarantees import AboutPopulation, Guarantee, KMap, Presence
from sfumato.manifest import AnyTable
from sfumato.mechanisms.axes import axis_of
from sfumato.schema import WITHHELD, Column, Kind, Role
from sfumato.table.cells import as_text
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.persons import person_codes
from sfumato.table.weighted import CountedTable

Places = NDArray[np.int64]
Counts = NDArray[np.int64]


class AsksForPopulation(Protocol):
    """A mechanism that can be asked for promises about a table of the population."""

    privacy: Sequence[Guarantee]
    population: Population | None


@dataclass(frozen=True, eq=False, repr=False)
class ColumnPlaces:
    """A column of the sample and of the population on one scale.

    Parameters
    ----------
    of_values : int64 array
        Place of each distinct value of the sample's column.
    of_people : int64 array
        Place of each person's value.
    is_ordered : bool
        Whether places follow the order of the values.
    missing : int
        Place of a missing value. The place after it is that of values without a place, which fit nothing.
    """

    of_values: Places
    of_people: Places
    is_ordered: bool
    missing: int

    @classmethod
    def of(cls, described: Column, sample: CodedColumn, people: CodedColumn) -> ColumnPlaces:
        """Put the values of both on one scale; numbers and dates are equal by what they mean.

        Raises
        ------
        SchemaError
            If values of the population cannot be placed among those of the sample.
        """
        known = _placed(described, people.values)
        values = _joined(sample.values, people.values.filter(pa.array(known)))
        try:
            axis = axis_of(described, CodedColumn.encode(values))
            is_ordered = axis_of(described, sample).positions is not None
        except SchemaError as exc:
            raise _not_placed(described) from exc
        if is_ordered and axis.positions is None:
            raise _not_placed(described)
        places = np.where(axis.codes < 0, axis.n_values, axis.codes).astype(np.int64)
        of_people = np.full(len(people.values), axis.n_values + 1, dtype=np.int64)
        of_people[known] = places[len(sample.values) :]
        return cls(places[: len(sample.values)], of_people[people.codes], is_ordered, axis.n_values)


def _placed(described: Column, values: pa.Array) -> NDArray[np.bool_]:
    """Whether values have a place: all but levels that the order of an ordered column does not name."""
    if described.kind is not Kind.ORDERED or not described.domain:
        return np.ones(len(values), dtype=np.bool_)
    in_order = pc.is_in(as_text(values), value_set=pa.array(described.domain, pa.string()))
    return np.asarray(pc.or_(in_order, values.is_null()).to_numpy(zero_copy_only=False))


def _joined(sample: pa.Array, people: pa.Array) -> pa.Array:
    if sample.type != people.type:
        sample, people = as_text(sample), as_text(people)
    return pa.concat_arrays([sample, people])


def _not_placed(described: Column) -> SchemaError:
    problem = "has values in the population table that have no place among its own: they are written in another way"
    return SchemaError(problem, column=described.name, hint="write them as in the table that is released")


@dataclass(frozen=True, eq=False, repr=False)
class Population:
    """A table of the population, one row a person."""

    table: Table

    @classmethod
    def of(cls, table: AnyTable) -> Population:
        """Take a table that has a row for each person.

        Raises
        ------
        InvalidParameterError
            If it is no such table.
        """
        if not isinstance(table, Table) or isinstance(table, CountedTable):
            problem = f"got a {type(table).__name__}"
            raise InvalidParameterError("the population table", problem, allowed="a table with a row for each person")
        if not table.n_rows:
            raise InvalidParameterError("the population table", "has no rows", allowed="a table with people")
        return cls(table)

    def __repr__(self) -> str:
        return f"Population({self.n_people:,} people)"

    @property
    def n_people(self) -> int:
        """People of the population."""
        return self.table.n_rows

    @property
    def sha256(self) -> str:
        """Hash of the file; empty where it was in none. It must not be published."""
        return self.table.source.sha256 if self.table.source is not None else ""

    def beside(self, sample: Table, names: Sequence[str]) -> tuple[ColumnPlaces, ...]:
        """Put some columns of a sample and of the population on one scale each.

        Raises
        ------
        ColumnNotFoundError
            If the population lacks one.
        """
        for name in names:
            if name not in self.table.columns:
                raise ColumnNotFoundError(name, self.table.schema.names(), where="the population table")
        return tuple(ColumnPlaces.of(sample.schema[name], sample[name], self.table[name]) for name in names)


def different_people(places: Sequence[Places]) -> tuple[NDArray[np.int64], Counts]:
    """Different people by their places (one row each), and how many are alike."""
    rows, counts = np.unique(np.column_stack(places), axis=0, return_counts=True)
    return rows, counts.astype(np.int64)


@dataclass(frozen=True)
class PopulationPromises:
    """What is asked about a table of the population.

    Examples
    --------
    >>> PopulationPromises((KMap(k_map=5),)).levels
    ('k_map',)
    """

    about: tuple[AboutPopulation, ...] = ()
    population: Population | None = None

    @classmethod
    def of(cls, asked: AsksForPopulation) -> PopulationPromises:
        """Take them from a mechanism."""
        return cls(tuple(own for own in asked.privacy if isinstance(own, AboutPopulation)), asked.population)

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels that are asked for."""
        return tuple(own.level.name for own in self.about)

    @property
    def k_map(self) -> KMap | None:
        """The k-map that is asked for."""
        return next((own for own in self.about if isinstance(own, KMap)), None)

    @property
    def presence(self) -> Presence | None:
        """The δ-presence that is asked for."""
        return next((own for own in self.about if isinstance(own, Presence)), None)

    def allows_single_rows(self, k: object) -> bool:
        """Whether k = 1, which promises no k-anonymity, was asked for together with k-map."""
        return self.k_map is not None and k == 1 and not isinstance(k, bool)

    def check(self, table: Table) -> None:
        """Refuse promises without a population, a population without promises, and what cannot be counted.

        Raises
        ------
        InvalidParameterError
            Says which.
        """
        if not self.about:
            if self.population is not None:
                problem = "got one, and neither k_map nor delta_max says what to promise about it"
                raise InvalidParameterError("the population table", problem, allowed="given together with one of these")
            return
        name = self.levels[0]
        if self.population is None:
            problem, hint = "got one, and no table of the population", "give the table of the population as well"
            allowed, remedy = "given together with a table of the population", ("population_table",)
            raise InvalidParameterError(name, problem, allowed=allowed, hint=hint, remedy=remedy)
        if isinstance(table, CountedTable):
            raise InvalidParameterError(name, "got one, and the rows are not in memory", allowed="left out")
        if person_codes(table) is not None:
            problem = "got one, and some persons have several rows"
            hint, remedy = "keep one row of each person", ("one_row_per_person",)
            raise InvalidParameterError(name, problem, allowed="left out", hint=hint, remedy=remedy)
        for column in table.schema.names(*WITHHELD):
            people = self.population.table
            if column in people.schema.names() and len(np.unique(people[column].codes)) < people.n_rows:
                problem = f"has several rows with the same '{column}', and rows are counted as people"
                allowed = "a table with a row for each person"
                raise InvalidParameterError("the population table", problem, allowed=allowed)
        if self.presence is not None:
            self._check_sample(table, self.presence)

    def guarantees(self, table: Table) -> list[AboutPopulation]:
        """Promises over all quasi-identifiers."""
        columns = table.schema.names(Role.QUASI_IDENTIFIER)
        people = 0 if self.population is None else self.population.n_people
        return [replace(own, people=people, columns=columns) for own in self.about]

    def _check_sample(self, table: Table, presence: Presence) -> None:
        """Refuse δ-presence of people who are not in the population: it is about who of the population is released."""
        if self.population is None:
            raise AssertionError
        names = table.schema.names(Role.QUASI_IDENTIFIER)
        columns = self.population.beside(table, names)
        own = [column.of_values[table[name].codes] for name, column in zip(names, columns, strict=True)]
        rows = np.column_stack([np.concatenate([a, c.of_people]) for a, c in zip(own, columns, strict=True)])
        alike = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
        n_alike = int(alike.max(initial=0)) + 1
        sample, people = (np.bincount(part, minlength=n_alike) for part in np.split(alike, [table.n_rows]))
        n_without = int(np.maximum(sample - people, 0).sum())
        if n_without:
            problem = f"got {presence.delta_max:g}, and {n_without:,} rows of the table are not in the population table"
            allowed = "left out where the table is no sample of the population table"
            hint = "give a population table that holds everybody who is in the table, or ask for k_map"
            raise InvalidParameterError("delta_max", problem, allowed=allowed, hint=hint)
