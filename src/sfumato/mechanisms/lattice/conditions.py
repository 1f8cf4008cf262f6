r"""What the classes of a node must satisfy, and which of it can only get better from a node to one above it.

A class of a node above is made up of whole classes of the node. Rows in violating classes are suppressed, up to a
limit.

*With suppression* a condition is monotone when the rows in violating classes never grow in number going up. That holds
when a class satisfies the condition as soon as one of the classes that make it up does: then rows of a satisfying class
stay in one. Size (k) and the number of different values (distinct l) only grow, so both are monotone. Entropy and
recursive l-diversity, t-closeness and limits of shares (β, δ, α) are not: a diverse class joined with a larger one of a
single value is no longer diverse, and its rows come on top.

*Without suppression* (a limit of 0 rows) only nodes without violating classes count, and all of them are monotone:
joined classes that all satisfy a condition satisfy it together. For entropy, because it is concave in the distribution;
for recursive (c, l)-diversity by [MKGV07]_, Section 4; for t-closeness because the distance from the whole table, which
is the same at every node, is convex in the distribution ([LLV07]_, Section 4); for limits of shares because a share in
the joined class is a mean of those in its parts (:mod:`sfumato.guarantees.value_shares`). By persons only k and
distinct l are, because a person who is in several classes weighs 1 in their union as well
(:mod:`sfumato.counting.counts`); only what follows from the others for the number of values prunes the search.

References
----------
.. [MKGV07] Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam: l-Diversity: Privacy Beyond k-Anonymity.
   ACM TKDD 1 (2007).
.. [LLV07] Li, Li, Venkatasubramanian: t-Closeness: Privacy Beyond k-Anonymity and l-Diversity. ICDE (2007).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.counts import Counts, Levels, Pairs
from sfumato.counting.same_values import ValueNumbers, value_numbers
from sfumato.errors import InvalidParameterError
from sfumato.guarantees import AboutValues, Guarantee, KAnonymity, LDiversity
from sfumato.mechanisms.requested import (
    Requested,
    check_needs_no_pairs,
    follows_from_two_persons,
    promised_by_persons,
)
from sfumato.schema import Role
from sfumato.table.coding import Table
from sfumato.table.persons import person_codes
from sfumato.table.weighted import CountedTable

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Condition:
    """What a guarantee asks of every class.

    Classes are compared with what is released, because that is all that a reader (and the audit) sees: classes that are
    too far from all rows are suppressed, then those too far from the rest, until none is left that is.

    Parameters
    ----------
    guarantee : Guarantee
    column : int
        Place of the column that is counted.
    pairs : Pairs or None
        Persons and values of the codes of that column, where persons are counted.
    values : int or None
        Place of the column of values, where pairs are counted; ``None``: the column itself.
    crowd : int or None
        Code of a person that stands for at least k persons by itself, see :mod:`sfumato.counting.crowds`.
    n_persons : int or None
        Persons of the table, for limits of how many may lose a row; ``None``: not known, or not those of this column.
    """

    guarantee: Guarantee
    column: int = 0
    pairs: Pairs | None = None
    values: int | None = None
    crowd: int | None = None
    n_persons: int | None = None

    def necessary(self) -> Condition | None:
        """Condition that is monotone with suppression and that every satisfying class satisfies."""
        if self.guarantee.is_kept_by_growing:
            return self
        implied = self.guarantee.implied()
        return None if implied is None else Condition(implied, self.column if self.values is None else self.values)

    def levels(self, counts: Counts) -> Levels:
        """Level of each class."""
        found = self.guarantee.levels(self._by_unit(counts))
        if self.crowd is not None and isinstance(self.guarantee, KAnonymity):
            # a class with a crowd has the persons that are asked for, at least
            with_crowd = counts.class_index[counts.value_code == self.crowd]
            found[with_crowd] = np.maximum(found[with_crowd], self.guarantee.k)
        return found

    def are_kept_by(self, counts: Counts) -> Flags:
        """Whether classes satisfy the condition."""
        if self.crowd is not None:
            return self.guarantee.are_met_by(self.levels(counts))
        return self.guarantee.are_kept_by(self._by_unit(counts))

    def describe(self) -> str:
        """Say what is asked of a class in a few words."""
        return self.guarantee.in_short()

    def n_in(self, counts: Counts, classes: Flags) -> int:
        """Count the different persons of some classes; those of a crowd as if each of its rows were a person's."""
        is_there = classes[counts.class_index]
        codes = counts.value_code[is_there]
        if self.crowd is None:
            return len(np.unique(codes))
        in_crowds = codes == self.crowd
        return len(np.unique(codes[~in_crowds])) + int(counts.count[is_there][in_crowds].sum())

    def _by_unit(self, counts: Counts) -> Counts:
        return counts if self.pairs is None else replace(counts, pairs=self.pairs)


# What every class of rows must satisfy: k, and what is promised of one or several sensitive columns.


@dataclass(frozen=True)
class PrivacyGoal:
    """Promises over all quasi-identifiers of a table.

    Parameters
    ----------
    about : tuple of guarantees
        What is promised besides k, by rows, each about a sensitive column; over which columns is said later.
    person : str or None
        Column that tells persons apart, where some have several rows: k then counts persons too.
    counts_pairs : bool
        Whether pairs of a person and a value can be counted, so that what is promised of values counts persons too.
    """

    k: int
    about: tuple[AboutValues, ...] = ()
    person: str | None = None
    counts_pairs: bool = True

    @property
    def sensitive(self) -> tuple[str, ...]:
        """Sensitive columns."""
        return tuple(dict.fromkeys(guarantee.sensitive for guarantee in self.about))

    @property
    def counted(self) -> tuple[str, ...]:
        """Columns that must be counted together with the quasi-identifiers."""
        return self.sensitive if self.person is None else (*self.sensitive, self.person)

    @classmethod
    def of(cls, table: Table, requested: Requested) -> PrivacyGoal:
        """Check what is asked against a table.

        Raises
        ------
        SchemaError
            If something is asked for sensitive columns and there is none.
        InvalidParameterError
            If a column named as sensitive is a quasi-identifier or identifier, or something is out of range.
        """
        counts_pairs = not isinstance(table, CountedTable)
        # whether some persons have several rows: in distinct rows persons were counted only then
        repeat = table.crowd is not None if isinstance(table, CountedTable) else person_codes(table) is not None
        person = table.schema.person if repeat else None
        if person is not None and not counts_pairs:
            check_needs_no_pairs(requested)
        about = [guarantee for of_column in requested.by_column(table) for guarantee in of_column]
        for guarantee in about:
            name = guarantee.sensitive
            if table.schema[name].role is Role.SENSITIVE_QUASI_IDENTIFIER:
                problem = (
                    f"got one, and '{name}' is a quasi-identifier as well: levels coarsen it without a look at that"
                )
                hint = "leave it out, or use mondrian, which promises l and alpha of such a column"
                raise InvalidParameterError(guarantee.level.name, problem, allowed="left out", hint=hint)
            n_distinct = sensitive_numbers(table, name).n_values
            if isinstance(guarantee, LDiversity) and guarantee.l > n_distinct:
                problem = f"got {guarantee.l:g}, and '{name}' has {n_distinct} distinct values"
                raise InvalidParameterError("l", problem, allowed="at most the number of sensitive values")
        return cls(requested.k, tuple(about), person, counts_pairs)

    def guarantees(self, columns: Sequence[str]) -> list[Guarantee]:
        """Promises over some columns."""
        over = tuple(columns)
        promised: list[Guarantee] = [KAnonymity(self.k, over)] if self.k > 1 else []  # 1 is asked for with k-map only
        if self.person is not None:
            promised.append(KAnonymity(self.k, over, unit=self.person))
        place: dict[str, Any] = {"columns": over}
        about = [replace(guarantee, **place) for guarantee in self.about]
        by_persons = self.person is not None and self.counts_pairs
        return [*promised, *(promised_by_persons(about, self.person or "") if by_persons else about)]

    def conditions(self, table: Table) -> tuple[tuple[Condition, ...], tuple[JudgedColumn, ...]]:
        """Conditions on classes besides their size, and the columns that they count, which they name by place.

        l and α count values, however they are spelled. What compares with other classes (t, β, δ) is kept by the values
        and by their spellings, each by itself.
        """
        found: list[Condition] = []
        judged: list[JudgedColumn] = []
        if self.person is not None:
            of_person = table[self.person]
            judged.append(JudgedColumn(self.person, np.arange(of_person.n_distinct, dtype=np.int32)))
            counted = table if isinstance(table, CountedTable) else None
            crowd = None if counted is None else counted.crowd
            n_persons = int((of_person.counts > 0).sum()) if counted is None else counted.n_persons
            units = Pairs.of_units(of_person.n_distinct)
            of_k = KAnonymity(self.k, (), unit=self.person)
            found.append(Condition(of_k, 0, units, crowd=crowd, n_persons=n_persons))
        for name in self.sensitive:
            numbers = sensitive_numbers(table, name)
            about = [guarantee for guarantee in self.about if guarantee.sensitive == name]
            found += self._conditions(table, name, numbers.merged, about, judged)
            if numbers.has_spellings:
                compared = [guarantee for guarantee in about if guarantee.compares_with_table]
                found += self._conditions(table, name, numbers.spelled, compared, judged)
        return tuple(found), tuple(judged)

    def _conditions(
        self,
        table: Table,
        name: str,
        of_code: NDArray[np.int32],
        about: Sequence[AboutValues],
        judged: list[JudgedColumn],
    ) -> list[Condition]:
        """Conditions on a column with its values numbered in some way; the columns that they count are added."""
        if not about:
            return []
        judged.append(JudgedColumn(name, of_code))
        values = len(judged) - 1
        if self.person is None or not self.counts_pairs:
            return [Condition(guarantee, values) for guarantee in about]
        found = [Condition(guarantee, values) for guarantee in about if follows_from_two_persons(guarantee)]
        by_persons = [guarantee for guarantee in about if not follows_from_two_persons(guarantee)]
        if by_persons:
            pairs = Pairs.of(table[self.person].codes, of_code[table[name].codes])
            judged.append(JudgedColumn(name, of_code, self.person, pairs))
            units = [replace(guarantee, unit=self.person) for guarantee in by_persons]
            found += [Condition(guarantee, values + 1, pairs, values) for guarantee in units]
        return found


@dataclass(frozen=True, eq=False)
class JudgedColumn:
    """A column that conditions count, and the number of each of its codes; of a sensitive one in the order of its kind.

    With ``person`` and ``pairs``, pairs of that column's code and the number are counted.
    """

    name: str
    numbers: NDArray[np.int32]
    person: str | None = None
    pairs: Pairs | None = None

    def of_cells(self, codes_of: Callable[[str], NDArray[np.int32]]) -> NDArray[np.integer]:
        """Give cells their numbers, by the codes that they have in a column."""
        own: NDArray[np.integer] = self.numbers[codes_of(self.name)]
        if self.pairs is None or self.person is None:
            return own
        return self.pairs.find(codes_of(self.person), own)


def sensitive_numbers(table: Table, name: str) -> ValueNumbers:
    """Numbers of the codes of a sensitive column: equal for the same value, and one for each spelling."""
    return value_numbers(table[name].values, table.schema[name])
