"""What every class of rows must satisfy: k, and l-diversity and t-closeness of one or several sensitive columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.same_values import ValueNumbers, value_numbers
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import ClosenessDistance, DiversityVariant, Guarantee, KAnonymity, LDiversity, TCloseness
from sfumato.recoding.lattice_models import ClassModel, CloseClasses, DiverseClasses
from sfumato.schema import Role
from sfumato.table.coding import Table


@dataclass(frozen=True)
class PrivacyGoal:
    """Promises over all quasi-identifiers of a table.

    Parameters
    ----------
    sensitive : tuple of str
        Columns that l and t are about.
    """

    k: int
    l: float | None = None  # noqa: E741  # the field's own name
    variant: DiversityVariant = "distinct"
    c: float | None = None
    t: float | None = None
    distance: ClosenessDistance = "equal"
    sensitive: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        table: Table,
        k: int,
        diversity: tuple[float | None, DiversityVariant, float | None],
        closeness: tuple[float | None, ClosenessDistance],
        names: str | None,
    ) -> PrivacyGoal:
        """Check a goal against a table; ``names`` are sensitive columns by commas, else those with that role.

        Raises
        ------
        SchemaError
            If l or t is asked for and no column is sensitive.
        InvalidParameterError
            If a column named as sensitive is a quasi-identifier or identifier, or l or t is out of range.
        """
        level, variant, c = diversity
        t, distance = closeness
        for name, number in (("l", level), ("c", c), ("t", t)):
            if number is not None and (isinstance(number, bool) or not isinstance(number, Real)):
                raise InvalidParameterError(name, f"got {number!r}", allowed="a number")
        named = _named(names, table)
        if level is None and t is None:
            _refuse_alone(names, variant, c)
            return cls(k)
        found = named or list(table.schema.names(Role.SENSITIVE))
        if not found:
            problem = "l-diversity and t-closeness are about a sensitive column, and the table has none"
            raise SchemaError(problem, hint="give a column the role sensitive, or name it with the parameter sensitive")
        for name in found:
            n_distinct = sensitive_numbers(table, name).n_values
            if level is not None and level > n_distinct:
                problem = f"got {level:g}, and '{name}' has {n_distinct} distinct values"
                raise InvalidParameterError("l", problem, allowed="at most the number of sensitive values")
        level, c, t = (None if given is None else float(given) for given in (level, c, t))
        goal = cls(k, level, variant, c, t, distance, tuple(found))
        goal.guarantees(())  # checks the ranges of l, c and t
        return goal

    def guarantees(self, columns: Sequence[str]) -> list[Guarantee]:
        """Promises over some columns."""
        over = tuple(columns)
        promised: list[Guarantee] = [KAnonymity(self.k, over)]
        for name in self.sensitive:
            if self.l is not None:
                promised.append(LDiversity(float(self.l), name, over, self.variant, self.c))
            if self.t is not None:
                promised.append(TCloseness(float(self.t), name, over, self.distance))
        return promised

    def conditions(self, table: Table) -> tuple[tuple[ClassModel, ...], tuple[JudgedColumn, ...]]:
        """Conditions on classes besides their size, and the columns that they count, which they name by place.

        l counts values, however they are spelled. t is kept by the values and by their spellings, each by itself.
        """
        models: list[ClassModel] = []
        judged: list[JudgedColumn] = []
        for name in self.sensitive:
            numbers = sensitive_numbers(table, name)
            judged.append(JudgedColumn(name, numbers.merged))
            if self.l is not None:
                models.append(DiverseClasses(float(self.l), self.variant, self.c, len(judged) - 1))
            if self.t is not None:
                models.append(CloseClasses(float(self.t), self.distance, len(judged) - 1))
            if self.t is not None and numbers.has_spellings:
                judged.append(JudgedColumn(name, numbers.spelled))
                models.append(CloseClasses(float(self.t), self.distance, len(judged) - 1))
        return tuple(models), tuple(judged)


@dataclass(frozen=True, eq=False)
class JudgedColumn:
    """A sensitive column and the number of each of its codes, in the order of its kind; missing is last."""

    name: str
    numbers: NDArray[np.int32]


def _named(names: str | None, table: Table) -> list[str]:
    """Take apart the names of sensitive columns, each once; they must be released as they are."""
    if names is None:
        return []
    if not isinstance(names, str):
        raise InvalidParameterError("sensitive", f"got a {type(names).__name__}", allowed="names by commas")
    found = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    for name in found:
        role = table.schema[name].role
        if role in (Role.QUASI_IDENTIFIER, Role.IDENTIFIER):
            hint = f"give '{name}' the role sensitive, or name another column"
            allowed = "a column that is released as it is"
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
