"""How the audit judges each kind of guarantee: how its level is measured, and what is compared with it.

A module that measures a guarantee says so itself, by :func:`judge` next to the measuring; ``levels`` loads these
modules. This is the audit's own account of a guarantee, written apart from the one in ``guarantees``, of which it takes
the promised data only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.audit.checks import Check, Unchecked
from sfumato.audit.claims import Claims
from sfumato.audit.original.release_vs_original import ReleaseVsOriginal
from sfumato.audit.population_table import GivenPopulation, InPopulation
from sfumato.audit.reading.columns import AnyTable, Columns

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
    on_release : callable or None
        Measures the level on the released table alone.
    with_original : callable or None
        Measures the level on the release and its original.
    by_persons : callable or None
        Measures the level by persons, on the release and its original, which says whose a row is.
    in_population : callable or None
        Measures the level on the release and a table of the population. Without any of these functions a promise is
        one about how a release came about, see :mod:`sfumato.audit.levels.differential_privacy`.
    by_counts : bool
        Whether counts of distinct released rows are enough to judge it by rows, out of core and on a cluster too.
    is_about_fitting_rows : bool
        Whether it is about which released rows fit which original ones.
    further : callable or None
        Further checks of the promise, before its level is measured.
    """

    parameters: tuple[str, ...] = ()
    on_release: Callable[[Any, AnyTable], float] | None = None
    with_original: Callable[[Any, ReleaseVsOriginal], float] | None = None
    by_persons: Callable[[Any, ReleaseVsOriginal], float] | None = None
    in_population: Callable[[Any, InPopulation], float] | None = None
    by_counts: bool = False
    is_about_fitting_rows: bool = False
    further: Callable[[Any, Evidence], Iterator[Check | Unchecked]] | None = None


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
