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
the joined class is a mean of those in its parts (:mod:`sfumato.mechanisms.share_limits`). Where persons have several
rows, only k and distinct l by persons are: see :class:`WeighedClasses`.

References
----------
.. [MKGV07] Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam: l-Diversity: Privacy Beyond k-Anonymity.
   ACM TKDD 1 (2007).
.. [LLV07] Li, Li, Venkatasubramanian: t-Closeness: Privacy Beyond k-Anonymity and l-Diversity. ICDE (2007).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.classes import ClassValueCounts
from sfumato.counting.same_values import ValueNumbers, value_numbers
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import (
    ROUNDING,
    ClosenessDistance,
    DiversityVariant,
    Guarantee,
    KAnonymity,
    LDiversity,
    TCloseness,
)
from sfumato.measures.diversity import (
    distances_by_class,
    distinct_diversity_by_class,
    entropy_diversity_by_class,
    recursive_diversity_by_class,
)
from sfumato.measures.person_weights import PersonPairs
from sfumato.mechanisms.lattice.lattice import ClassTable, Counts, bincount, sums_by_key
from sfumato.mechanisms.part_constraints import SensitiveGuarantee
from sfumato.mechanisms.person_constraints import (
    check_needs_no_pairs,
    follows_from_two_persons,
    promised_by_persons,
)
from sfumato.mechanisms.share_limits import NO_SHARES, LargestShare, ShareLimit, SharePromises, limit_of
from sfumato.schema import WITHHELD, Role
from sfumato.table.coding import Table
from sfumato.table.persons import person_codes
from sfumato.table.weighted import CountedTable

Flags = NDArray[np.bool_]
Numbers = NDArray[np.float64]


def value_counts(table: ClassTable, values_of_extra: Counts) -> ClassValueCounts:
    """Count a sensitive column, given its value in each combination, in the classes of a node."""
    n_values = int(values_of_extra.max()) + 1
    key = table.entry_classes * n_values + values_of_extra[table.extra]
    present, counts = sums_by_key(key, table.n_classes * n_values, table.counts)
    classes, values = np.divmod(present, n_values)
    return ClassValueCounts(classes, values, counts, table.sizes, bincount(values, counts, n_values))


class ClassModel(Protocol):
    """Condition on how a sensitive column is spread within a class."""

    @property
    def column(self) -> int:
        """Place of the sensitive column."""
        ...

    @property
    def is_monotone_with_suppression(self) -> bool:
        """Whether the rows in violating classes never grow in number from a node to one above it."""
        ...

    @property
    def is_monotone_without_suppression(self) -> bool:
        """Whether classes that all satisfy the condition satisfy it when they are joined."""
        ...

    @property
    def depends_on_kept(self) -> bool:
        """Whether suppressing a class can make another one violate the condition."""
        ...

    def necessary(self) -> ClassModel | None:
        """Condition that is monotone with suppression and that every satisfying class satisfies."""
        ...

    def levels(self, counts: ClassValueCounts) -> Numbers:
        """Level of each class."""
        ...

    def is_met_by(self, levels: Numbers) -> Flags:
        """Whether levels are safe enough."""
        ...

    def worst(self, levels: Numbers) -> float:
        """Least safe of some levels."""
        ...

    def describe(self) -> str:
        """Say the condition in a few words."""
        ...


@dataclass(frozen=True)
class DiverseClasses:
    r"""l-diversity of every class, as :mod:`sfumato.measures.diversity` defines it.

    Parameters
    ----------
    l : float
    variant : {"distinct", "entropy", "recursive"}
    c : float or None
        For recursive (c, l)-diversity; taken as the decimal number that it is written as.
    column : int
        Place of the sensitive column.
    """

    l: float  # noqa: E741  # the field's own name
    variant: DiversityVariant = "distinct"
    c: float | None = None
    column: int = 0
    depends_on_kept: bool = False
    is_monotone_without_suppression: bool = True

    def __post_init__(self) -> None:
        if not self.l >= 1:
            raise InvalidParameterError("l", f"got {self.l!r}", allowed="at least 1")
        if self.variant not in ("distinct", "entropy", "recursive"):
            raise InvalidParameterError("variant", f"got {self.variant!r}", allowed="distinct, entropy or recursive")
        if (self.variant == "recursive") != (self.c is not None) or (self.c is not None and not 0 < self.c < np.inf):
            allowed = "above 0 for recursive l-diversity and left out for the others"
            raise InvalidParameterError("c", f"got {self.c!r}", allowed=allowed)

    @property
    def is_monotone_with_suppression(self) -> bool:
        """Only distinct l-diversity is."""
        return self.variant == "distinct"

    def necessary(self) -> DiverseClasses:
        """Distinct l-diversity, which both other variants imply."""
        return DiverseClasses(self.l, column=self.column)

    def levels(self, counts: ClassValueCounts) -> Numbers:
        """Largest l of each class; higher is safer."""
        if self.variant == "recursive":
            return recursive_diversity_by_class(counts, self.c or 0.0)
        by_class = entropy_diversity_by_class if self.variant == "entropy" else distinct_diversity_by_class
        return by_class(counts)

    def is_met_by(self, levels: Numbers) -> Flags:
        """Whether classes are diverse enough."""
        return np.asarray(levels >= self.l - ROUNDING)

    def worst(self, levels: Numbers) -> float:
        """Lowest level."""
        return float(levels.min())

    def describe(self) -> str:
        """Say the condition in a few words."""
        what = f"({self.c:g}, {self.l:g})" if self.c is not None else f"{self.l:g}"
        return f"{self.variant} {what}-diversity"


@dataclass(frozen=True)
class PersonCrowds(DiverseClasses):
    """At least l different persons in every class: distinct l-diversity of the column that tells them apart.

    Parameters
    ----------
    crowd : int or None
        Value that stands for at least l persons by itself, see :mod:`sfumato.counting.crowds`.
    n_persons : int or None
        Persons of the table, for limits of how many may lose a row; ``None``: not known.
    """

    crowd: int | None = None
    n_persons: int | None = None

    def necessary(self) -> PersonCrowds:
        """Itself: it is monotone with suppression."""
        return self

    def levels(self, counts: ClassValueCounts) -> Numbers:
        """Persons of each class; of one with a crowd at least l."""
        found = super().levels(counts)
        if self.crowd is not None:
            with_crowd = counts.class_index[counts.value_code == self.crowd]
            found[with_crowd] = np.maximum(found[with_crowd], self.l)
        return found

    def n_in(self, counts: ClassValueCounts, classes: Flags) -> int:
        """Count the different persons of some classes; those of a crowd as if each of its rows were a person's."""
        is_there = classes[counts.class_index]
        codes = counts.value_code[is_there]
        if self.crowd is None:
            return len(np.unique(codes))
        in_crowds = codes == self.crowd
        return len(np.unique(codes[~in_crowds])) + int(counts.count[is_there][in_crowds].sum())

    def describe(self) -> str:
        """Say the condition in a few words."""
        return f"{self.l:g} persons in every class"


@dataclass(frozen=True, eq=False)
class MatchedClasses:
    """Values of l different persons in every class, all different: distinct l-diversity by persons.

    Monotone in both senses: a matching of a class is one of every class that it becomes part of.

    Parameters
    ----------
    l : float
    pairs : PersonPairs
        Persons and values of the codes of the column.
    column : int
        Place of the column of pairs.
    """

    l: float  # noqa: E741  # the field's own name
    pairs: PersonPairs
    column: int = 0
    depends_on_kept: bool = False
    is_monotone_with_suppression: bool = True
    is_monotone_without_suppression: bool = True

    def necessary(self) -> MatchedClasses:
        """Itself."""
        return self

    def levels(self, counts: ClassValueCounts) -> Numbers:
        """Values of different persons in each class; where these are fewer or more than l, a bound that shows it."""
        return self.pairs.matched_diversity(counts, self.l)

    def is_met_by(self, levels: Numbers) -> Flags:
        """Whether classes are diverse enough."""
        return np.asarray(levels >= self.l - ROUNDING)

    def worst(self, levels: Numbers) -> float:
        """Lowest level."""
        return float(levels.min())

    def describe(self) -> str:
        """Say the condition in a few words."""
        return f"distinct {self.l:g}-diversity by persons"


@dataclass(frozen=True, eq=False)
class WeighedClasses:
    """A condition on the weights of sensitive values, where each person weighs 1 in a class and in the table.

    Not monotone, with suppression or without: classes that all satisfy it may violate it when they are joined, because
    a person who is in several weighs 1 in the union as well (:mod:`sfumato.measures.person_weights`). Only what follows
    from it for the number of values prunes the search; everything else is looked at.

    Parameters
    ----------
    model : DiverseClasses, CloseClasses or LimitedClasses
        Condition on counts, which weights take the place of. Its column is that of the values.
    pairs : PersonPairs
        Persons and values of the codes of the column.
    column : int
        Place of the column of pairs.
    """

    model: ValueCondition
    pairs: PersonPairs
    column: int = 0
    is_monotone_with_suppression: bool = False
    is_monotone_without_suppression: bool = False

    @property
    def depends_on_kept(self) -> bool:
        """Whether suppressing a class can make another one violate the condition."""
        return self.model.depends_on_kept

    def necessary(self) -> ClassModel | None:
        """Distinct l-diversity for l and α: every value of a class has a weight above 0, and no other has one."""
        return self.model.necessary()

    def levels(self, counts: ClassValueCounts) -> Numbers:
        """Level of each class by its weights."""
        return self.model.levels(self.pairs.weighed(counts))

    def is_met_by(self, levels: Numbers) -> Flags:
        """Whether levels are safe enough."""
        return self.model.is_met_by(levels)

    def worst(self, levels: Numbers) -> float:
        """Least safe of some levels."""
        return self.model.worst(levels)

    def describe(self) -> str:
        """Say the condition in a few words."""
        return f"{self.model.describe()} by persons"


@dataclass(frozen=True)
class CloseClasses:
    r"""t-closeness of every class to the rows that are released, as :mod:`sfumato.measures.diversity` defines it.

    Parameters
    ----------
    t : float
    distance : {"equal", "ordered"}
        ``ordered`` goes by the order of the value numbers.
    column : int
        Place of the sensitive column.

    Notes
    -----
    Classes are compared with what is released, because that is all that a reader (and the audit) sees: classes that are
    too far from all rows are suppressed, then those too far from the rest, until none is left that is.
    """

    t: float
    distance: ClosenessDistance = "equal"
    column: int = 0
    depends_on_kept: bool = True
    is_monotone_with_suppression: bool = False
    is_monotone_without_suppression: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.t <= 1:
            raise InvalidParameterError("t", f"got {self.t!r}", allowed="between 0 and 1")
        if self.distance not in ("equal", "ordered"):
            raise InvalidParameterError("distance", f"got {self.distance!r}", allowed="'equal' or 'ordered'")

    def necessary(self) -> None:
        """None is known."""

    def levels(self, counts: ClassValueCounts) -> Numbers:
        """Distance of each class; lower is safer. A class without rows in common with the others may have any."""
        return distances_by_class(counts, self.distance)

    def is_met_by(self, levels: Numbers) -> Flags:
        """Whether classes are close enough."""
        return np.asarray(levels <= self.t + ROUNDING)

    def worst(self, levels: Numbers) -> float:
        """Largest distance."""
        return float(levels.max())

    def describe(self) -> str:
        """Say the condition in a few words."""
        return f"{self.t:g}-closeness ({self.distance} distance)"


@dataclass(frozen=True)
class LimitedClasses:
    r"""Shares of single values in every class within a limit: β-likeness, δ-disclosure privacy or a largest share α.

    Parameters
    ----------
    limit : ShareLimit
    column : int
        Place of the sensitive column.

    Notes
    -----
    β and δ compare classes with what is released, as :class:`CloseClasses` does. None of the three is monotone with
    suppression. For α a condition that is follows from it: shares of at most α add up to 1 over at least 1/α values, so
    a class satisfies distinct 1/α-diversity. For β and δ none is known, since p changes with what is suppressed.
    """

    limit: ShareLimit
    column: int = 0
    is_monotone_with_suppression: bool = False
    is_monotone_without_suppression: bool = True

    @property
    def depends_on_kept(self) -> bool:
        """Whether suppressing a class can make another one violate the limit."""
        return self.limit.compares_with_table

    def necessary(self) -> DiverseClasses | None:
        """Distinct 1/α-diversity for α, with the slack of rounding that α has itself."""
        if not isinstance(self.limit, LargestShare):
            return None
        return DiverseClasses(max(1.0, 1.0 / (self.limit.at_most + ROUNDING)), column=self.column)

    def levels(self, counts: ClassValueCounts) -> Numbers:
        """Level of each class; lower is safer."""
        return self.limit.levels_of_classes(counts)

    def is_met_by(self, levels: Numbers) -> Flags:
        """Whether classes keep to the limit."""
        return self.limit.is_met_by(levels)

    def worst(self, levels: Numbers) -> float:
        """Largest level."""
        return float(levels.max())

    def describe(self) -> str:
        """Say the condition in a few words."""
        return self.limit.describe()


ValueCondition = DiverseClasses | CloseClasses | LimitedClasses
"""Condition on how often values occur, or on their weights."""


# What every class of rows must satisfy: k, and what is promised of one or several sensitive columns.


@dataclass(frozen=True)
class PrivacyGoal:
    """Promises over all quasi-identifiers of a table.

    Parameters
    ----------
    sensitive : tuple of str
        Columns that everything but k is about.
    person : str or None
        Column that tells persons apart, where some have several rows: k then counts persons too.
    counts_pairs : bool
        Whether pairs of a person and a value can be counted, so that what is promised of values counts persons too.
    """

    k: int
    l: float | None = None  # noqa: E741  # the field's own name
    variant: DiversityVariant = "distinct"
    c: float | None = None
    t: float | None = None
    distance: ClosenessDistance = "equal"
    sensitive: tuple[str, ...] = ()
    shares: SharePromises = NO_SHARES
    person: str | None = None
    counts_pairs: bool = True

    @property
    def counted(self) -> tuple[str, ...]:
        """Columns that must be counted together with the quasi-identifiers."""
        return self.sensitive if self.person is None else (*self.sensitive, self.person)

    @classmethod
    def of(
        cls,
        table: Table,
        k: int,
        diversity: tuple[float | None, DiversityVariant, float | None],
        closeness: tuple[float | None, ClosenessDistance],
        names: str | None,
        shares: SharePromises = NO_SHARES,
    ) -> PrivacyGoal:
        """Check a goal against a table; ``names`` are sensitive columns by commas, else those with that role.

        Raises
        ------
        SchemaError
            If something is asked for sensitive columns and there is none.
        InvalidParameterError
            If a column named as sensitive is a quasi-identifier or identifier, or l or t is out of range.
        """
        level, variant, c = diversity
        t, distance = closeness
        for name, number in (("l", level), ("c", c), ("t", t)):
            if number is not None and (isinstance(number, bool) or not isinstance(number, Real)):
                raise InvalidParameterError(name, f"got {number!r}", allowed="a number")
        shares.check()
        named = _named(names, table)
        person = table.schema.person if _counts_persons(table) else None
        counts_pairs = not isinstance(table, CountedTable)
        if person is not None and not counts_pairs:
            check_needs_no_pairs(level, variant, t, shares.asked)
        if level is None and t is None:
            _refuse_alone(None if shares.asked else names, variant, c)
            if not shares.asked:
                return cls(k, person=person, counts_pairs=counts_pairs)
        found = named or list(table.schema.names(Role.SENSITIVE))
        if not found:
            asked = [] if level is None and t is None else ["l-diversity and t-closeness"]
            problem = f"{' and '.join([*asked, *shares.titles])} are about a sensitive column, and the table has none"
            raise SchemaError(problem, hint="give a column the role sensitive, or name it with the parameter sensitive")
        asked_for = [word for word, level_ in (("l", level), ("t", t)) if level_ is not None]
        for name in found:
            if table.schema[name].role is Role.SENSITIVE_QUASI_IDENTIFIER:
                problem = (
                    f"got one, and '{name}' is a quasi-identifier as well: levels coarsen it without a look at that"
                )
                hint = "leave it out, or use mondrian, which promises l and alpha of such a column"
                raise InvalidParameterError([*asked_for, *shares.asked][0], problem, allowed="left out", hint=hint)
            n_distinct = sensitive_numbers(table, name).n_values
            if level is not None and level > n_distinct:
                problem = f"got {level:g}, and '{name}' has {n_distinct} distinct values"
                raise InvalidParameterError("l", problem, allowed="at most the number of sensitive values")
        level, c, t = (None if given is None else float(given) for given in (level, c, t))
        goal = cls(k, level, variant, c, t, distance, tuple(found), shares, person, counts_pairs)
        goal.guarantees(())  # checks the ranges of l, c and t
        return goal

    def guarantees(self, columns: Sequence[str]) -> list[Guarantee]:
        """Promises over some columns."""
        over = tuple(columns)
        promised: list[Guarantee] = [KAnonymity(self.k, over)] if self.k > 1 else []  # 1 is asked for with k-map only
        if self.person is not None:
            promised.append(KAnonymity(self.k, over, unit=self.person))
        for name in self.sensitive:
            of_column: list[SensitiveGuarantee] = []
            if self.l is not None:
                of_column.append(LDiversity(float(self.l), name, over, self.variant, self.c))
            if self.t is not None:
                of_column.append(TCloseness(float(self.t), name, over, self.distance))
            of_column += self.shares.guarantees(name, over)
            by_persons = self.person is not None and self.counts_pairs
            promised += promised_by_persons(of_column, self.person or "") if by_persons else of_column
        return promised

    def conditions(self, table: Table) -> tuple[tuple[ClassModel, ...], tuple[JudgedColumn, ...]]:
        """Conditions on classes besides their size, and the columns that they count, which they name by place.

        l and α count values, however they are spelled. What compares with other classes (t, β, δ) is kept by the values
        and by their spellings, each by itself.
        """
        if self.person is not None and self.counts_pairs:
            return self._conditions_by_persons(table, self.person)
        models: list[ClassModel] = []
        judged: list[JudgedColumn] = []
        for name in self.sensitive:
            numbers = sensitive_numbers(table, name)
            judged.append(JudgedColumn(name, numbers.merged))
            if self.l is not None:
                models.append(DiverseClasses(float(self.l), self.variant, self.c, len(judged) - 1))
            if self.t is not None:
                models.append(CloseClasses(float(self.t), self.distance, len(judged) - 1))
            limits = [limit_of(guarantee) for guarantee in self.shares.guarantees(name, ())]
            models += [LimitedClasses(limit, len(judged) - 1) for limit in limits]
            compared = [limit for limit in limits if limit.compares_with_table]
            if numbers.has_spellings and (compared or self.t is not None):
                judged.append(JudgedColumn(name, numbers.spelled))
                if self.t is not None:
                    models.append(CloseClasses(float(self.t), self.distance, len(judged) - 1))
                models += [LimitedClasses(limit, len(judged) - 1) for limit in compared]
        if self.person is not None:
            judged.append(JudgedColumn(self.person, np.arange(table[self.person].n_distinct, dtype=np.int32)))
            crowd = table.crowd if isinstance(table, CountedTable) else None
            n_persons = table.n_persons if isinstance(table, CountedTable) else None
            models.append(PersonCrowds(float(self.k), column=len(judged) - 1, crowd=crowd, n_persons=n_persons))
        return tuple(models), tuple(judged)

    def _conditions_by_persons(
        self, table: Table, person: str
    ) -> tuple[tuple[ClassModel, ...], tuple[JudgedColumn, ...]]:
        """Conditions where persons have several rows: pairs of a person and a value are counted."""
        judged = [JudgedColumn(person, np.arange(table[person].n_distinct, dtype=np.int32))]
        n_persons = int((table[person].counts > 0).sum())
        models: list[ClassModel] = [PersonCrowds(float(self.k), column=0, n_persons=n_persons)]
        for name in self.sensitive:
            numbers = sensitive_numbers(table, name)
            judged.append(JudgedColumn(name, numbers.merged))
            column = len(judged) - 1
            on_values: list[ValueCondition] = []
            if self.l is not None:
                on_values.append(DiverseClasses(float(self.l), self.variant, self.c, column))
            if self.t is not None:
                on_values.append(CloseClasses(float(self.t), self.distance, column))
            on_values += [LimitedClasses(limit_of(own), column) for own in self.shares.guarantees(name, ())]
            by_spelling = [one for one in on_values if one.depends_on_kept] if numbers.has_spellings else []
            for of_code, conditions in ((numbers.merged, on_values), (numbers.spelled, by_spelling)):
                if conditions:
                    pairs = PersonPairs.of(table[person].codes, of_code[table[name].codes])
                    models += [by_persons(condition, pairs, len(judged)) for condition in conditions]
                    judged.append(JudgedColumn(name, of_code, person, pairs))
        return tuple(models), tuple(judged)


def by_persons(condition: ValueCondition, pairs: PersonPairs, column: int) -> ClassModel:
    """Condition on pairs of a person and a value that keeps one on values by persons."""
    if not isinstance(condition, DiverseClasses) or condition.variant != "distinct":
        return WeighedClasses(condition, pairs, column)
    if follows_from_two_persons(condition.l):
        return condition
    return MatchedClasses(condition.l, pairs, column)


def _counts_persons(table: Table) -> bool:
    """Whether some persons have several rows: in distinct rows persons were counted only then."""
    if isinstance(table, CountedTable):
        return table.crowd is not None
    return person_codes(table) is not None


@dataclass(frozen=True, eq=False)
class JudgedColumn:
    """A column that conditions count, and the number of each of its codes; of a sensitive one in the order of its kind.

    With ``person`` and ``pairs``, pairs of that column's code and the number are counted.
    """

    name: str
    numbers: NDArray[np.int32]
    person: str | None = None
    pairs: PersonPairs | None = None

    def of_cells(self, codes_of: Callable[[str], NDArray[np.int32]]) -> NDArray[np.integer]:
        """Give cells their numbers, by the codes that they have in a column."""
        own: NDArray[np.integer] = self.numbers[codes_of(self.name)]
        if self.pairs is None or self.person is None:
            return own
        return self.pairs.find(codes_of(self.person), own)


def _named(names: str | None, table: Table) -> list[str]:
    """Take apart the names of sensitive columns, each once; they must be released as they are."""
    if names is None:
        return []
    if not isinstance(names, str):
        raise InvalidParameterError("sensitive", f"got a {type(names).__name__}", allowed="names by commas")
    found = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    for name in found:
        role = table.schema[name].role
        if role.is_one_of((Role.QUASI_IDENTIFIER, *WITHHELD)):
            hint = f"give '{name}' the role sensitive, or name another column"
            allowed = "a column that is published unchanged"
            raise InvalidParameterError("sensitive", f"'{name}' is a {role}", allowed=allowed, hint=hint)
    return found


def _refuse_alone(names: str | None, variant: DiversityVariant, c: float | None) -> None:
    """Refuse what says more about an l or t that is not asked for."""
    for name, is_given in (("sensitive", names), ("c", c is not None), ("variant", variant != "distinct")):
        if is_given:
            raise InvalidParameterError(name, "got one without l or t", allowed="given together with l or t")


def sensitive_numbers(table: Table, name: str) -> ValueNumbers:
    """Numbers of the codes of a sensitive column: equal for the same value, and one for each spelling."""
    return value_numbers(table[name].values, table.schema[name])
