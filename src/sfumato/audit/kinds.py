"""How the audit judges each kind of guarantee: how its level is measured, and what is compared with it.

A module that measures a guarantee says so itself, by :func:`judge` next to the measuring; ``levels`` loads these
modules. This is the audit's own account of a guarantee, written apart from the one in ``guarantees``, of which it takes
the promised data only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from sfumato.audit.checks import Check, Unchecked, listed
from sfumato.audit.claims import Claims
from sfumato.audit.original.release_vs_original import ReleaseVsOriginal
from sfumato.audit.population_table import GivenPopulation, InPopulation
from sfumato.audit.reading.columns import AnyTable, Columns
from sfumato.audit.reading.equivalence import EquivalenceClasses
from sfumato.schema import Role

FindDetermining = Callable[[Sequence[str], str], list[str]]


class UndecidableError(Exception):
    """A level cannot be measured here: sorted rows do not show which of them is whose, or a package is not installed.

    Parameters
    ----------
    at_least : float
        What the level is whichever way rows belong together.
    exception : str
        Name of the exception that the audit then ends in.
    remedy : str
        What makes it possible to measure it.
    """

    def __init__(self, problem: str, at_least: float = 0, *, exception: str = "promises", remedy: str = "") -> None:
        super().__init__(problem)
        self.at_least = at_least
        self.exception = exception
        self.remedy = remedy


@dataclass(frozen=True)
class Evidence:
    """What the audit has been given in addition to a promise."""

    claims: Claims
    original: Columns | None
    release_vs_original: ReleaseVsOriginal | None
    has_roles: bool
    """Whether the role of every column of the original was declared."""
    population: GivenPopulation | None = None
    find_determining: FindDetermining | None = None
    """Finds the columns among some that determine another one; without it they are looked up in ``original``."""


@dataclass(frozen=True)
class Judging:
    """How a kind of guarantee is judged.

    Parameters
    ----------
    parameters : tuple of str
        Entries that a mechanism may have as parameters of the same name: they must be the same. The first is the level.
    in_classes : callable or None
        Measures the level on classes of equal rows, with the values of the guarantee's sensitive column if it has one:
        by rows or by persons, and wherever rows are, for counts of distinct rows are enough.
    over : callable or None
        Columns whose equal rows are a class; ``None``: those that the guarantee says it holds on.
    between_spellings : bool
        Whether the level is taken between values and between their spellings, of which the larger counts as the worse.
    on_release : callable or None
        Measures the level on the released table alone.
    with_original : callable or None
        Measures the level on the release and its original.
    by_persons : callable or None
        Measures the level by persons, on the release and its original, which says whose a row is; ``None``: in classes.
    in_population : callable or None
        Measures the level on the release and a table of the population. Without any of these functions a promise is
        one about how a release came about, see :mod:`sfumato.audit.levels.differential_privacy`.
    is_about_fitting_rows : bool
        Whether it is about which released rows fit which original ones.
    further : callable or None
        Further checks of the promise, before its level is measured.
    """

    parameters: tuple[str, ...] = ()
    in_classes: Callable[[Any, EquivalenceClasses], float] | None = None
    over: Callable[[Any], Sequence[str]] | None = None
    between_spellings: bool = False
    on_release: Callable[[Any, AnyTable], float] | None = None
    with_original: Callable[[Any, ReleaseVsOriginal], float] | None = None
    by_persons: Callable[[Any, ReleaseVsOriginal], float] | None = None
    in_population: Callable[[Any, InPopulation], float] | None = None
    is_about_fitting_rows: bool = False
    further: Callable[[Any, Evidence], Iterator[Check | Unchecked]] | None = None

    def columns_of_classes(self, guarantee: Any) -> Sequence[str]:
        """Columns whose equal rows are a class."""
        return guarantee.over if self.over is None else self.over(guarantee)

    def level_in(
        self, guarantee: Any, counted: Callable[[bool], AbstractContextManager[EquivalenceClasses]], *, are_merged: bool
    ) -> float:
        """Measure in classes, counted with one value for all its spellings and, if any are merged, with each as one."""
        if self.in_classes is None:
            raise AssertionError
        found = []
        for spelled in (False, True) if self.between_spellings and are_merged else (False,):
            with counted(spelled) as classes:
                found.append(self.in_classes(guarantee, classes))
        return max(found)


JUDGED: dict[str, Judging] = {}
"""Every kind that the audit can judge; what is not here is refused."""


def judge(kind: str, judging: Judging) -> None:
    """Say how a kind of guarantee is judged.

    Raises
    ------
    TypeError
        If that was said already: the later one would silently judge by other rules.
    """
    if kind in JUDGED:
        problem = f"how '{kind}' is judged is said twice"
        raise TypeError(problem)
    JUDGED[kind] = judging


def check_quasi_identifiers(
    kind: str, what: str, names: Sequence[str], claims: Claims, original: Columns | None
) -> Check:
    """Whether a promise speaks of all quasi-identifiers of the original, where their roles are known, and no others."""
    expected = {*claims.names(Role.QUASI_IDENTIFIER), *claims.dropped_columns}
    wrong = [name for name in names if name not in expected]
    if original is not None:
        wrong = sorted(set(original.with_role(Role.QUASI_IDENTIFIER)) ^ set(names))
    said = "were released or dropped" if original is None else "are the original's quasi-identifiers"
    said = f"are not the original's quasi-identifiers: {listed(wrong)}" if wrong else said
    return Check(f"{kind}: {what}", not wrong, f"{kind}: the columns {what} {said}")
