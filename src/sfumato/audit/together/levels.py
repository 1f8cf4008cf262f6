r"""What several releases of the same people say together: persons and sensitive values that stay possible.

Each release is a map from persons to equivalence classes. The *joint class* of persons is the combination of their
classes over all releases, where "no row in this release" is a class like any other: it may be known who came and went.
Persons of one joint class are interchangeable: if they swap all their released values, every release stays the same,
row for row. No attacker can distinguish them who knows the quasi-identifiers and the presence of *everybody* in every
release, and all that was published, even which rows of two releases are about the same person. Hence

- *joint anonymity*: persons of the smallest joint class;
- *joint diversity* of a sensitive column in one release: fewest different values among the rows there of the persons
  of a joint class, each carried by another person (a largest matching of values and persons; with one row a person
  simply different values). It is also what is left to an attacker who compares releases before and after somebody left.
- *remaining values* of a column whose values do not change over time: values that are in *every* class in which a
  person has a row, of all releases together. The intersection attack of [GKS08]_. Where values are stable they are at
  least the joint diversity. m-invariance ([XT07]_) keeps these sets equal over time; here they must keep l values.

Where persons have several rows, an attacker is covered who links one row of each release: a joint class then is a
combination of classes that some person has rows in, and holds all persons that do. Not covered: an attacker who also
links several rows of one release to each other.

Differential privacy composes by sums of ε.

References
----------
.. [GKS08] Ganta, Kasiviswanathan, Smith: Composition Attacks and Auxiliary Information in Data Privacy. KDD (2008).
.. [XT07] Xiao, Tao: m-Invariance: Towards Privacy Preserving Re-publication of Dynamic Datasets. SIGMOD (2007).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.reading.columns import places_of_runs
from sfumato.audit.reading.equivalence import largest_matchings
from sfumato.errors import InvalidParameterError
from sfumato.guarantees import ROUNDING

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]
Levels = NDArray[np.float64]

ABSENT = -1
"""Class of persons without a row in a release."""
MOST_COMBINATIONS = 50_000_000
"""Combinations of classes that are listed at most; beyond, nothing is judged."""


@dataclass(frozen=True, eq=False)
class Appearances:
    """Rows of one release: whose each is, its class, its sensitive values; and what was promised of them.

    Parameters
    ----------
    persons, classes : ndarray of int64
        Of each row, from 0; persons are numbered alike in all releases.
    values : mapping of str to ndarray of int64
        By sensitive column the value of each row, from 0, numbered alike in all releases.
    k : int
        Promised persons of a class; 1: nothing.
    diversity : mapping of str to float
        Promised different values of sensitive columns in every class.
    """

    persons: Ids
    classes: Ids
    values: Mapping[str, Ids] = field(default_factory=dict)
    k: int = 1
    diversity: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Shortfall:
    """One promise that several releases do not keep together, as counts.

    Parameters
    ----------
    what : str
        ``persons``, ``values`` or ``remaining values``.
    column : str or None
        Sensitive column that it is about.
    promised, found : float
    n_persons : int
        Persons for whom it is not kept.
    """

    what: str
    column: str | None
    promised: float
    found: float
    n_persons: int


class Together:
    """Joint classes of several releases, and how far they keep what each release promised.

    Parameters
    ----------
    releases : sequence of Appearances
        At least one.

    Examples
    --------
    Two releases with classes of two persons each, which together tell everybody apart:

    >>> people = np.arange(4)
    >>> first = Appearances(people, np.array([0, 0, 1, 1]), k=2)
    >>> second = Appearances(people, np.array([0, 1, 0, 1]), k=2)
    >>> Together([first, second]).anonymity, Together([first]).anonymity
    (1, 2)
    >>> [(found.what, found.n_persons) for found in Together([first, second]).shortfalls()]
    [('persons', 4)]
    """

    def __init__(self, releases: Sequence[Appearances]) -> None:
        self.releases = tuple(releases)
        persons, classes = _combinations(self.releases)
        self.persons = persons
        """Person of each combination of classes that a person has rows in; several of a person with several rows."""
        self.classes, numbers = np.unique(classes, axis=0, return_inverse=True)
        """Joint classes, one row each: the class in every release, or ``ABSENT``."""
        self.joint = numbers.reshape(-1)
        """Joint class of each combination."""

    @property
    def sizes(self) -> Ids:
        """Persons of each joint class."""
        return np.bincount(self.joint, minlength=len(self.classes)).astype(np.int64)

    @property
    def anonymity(self) -> int:
        """Persons of the smallest joint class; 0 where nobody has a row."""
        return int(self.sizes.min(initial=np.iinfo(np.int64).max)) if len(self.classes) else 0

    def diversity(self, release: int, column: str) -> Ids:
        """Different values of different persons among each joint class's rows in one release; 0 where it has no rows.

        The largest matching of values and persons: removing any one person leaves one value less at most.
        """
        own = self.releases[release]
        width = int(own.classes.max(initial=-1)) + 2
        wanted = self.persons * width + self.classes[self.joint, release]
        keys = own.persons * width + own.classes
        order = np.argsort(keys, kind="stable")
        first, last = (np.searchsorted(keys[order], wanted, side=side) for side in ("left", "right"))
        last = np.where(self.classes[self.joint, release] == ABSENT, first, last)
        rows = order[places_of_runs(first, last)]
        entries = np.repeat(np.arange(len(self.joint)), last - first)  # a person in a joint class
        return largest_matchings(self.joint, entries, own.values[column][rows], len(self.classes))

    def remaining_values(self, column: str) -> Ids:
        """Values that are in every class of a joint class; 0 also where no release with a row has the column."""
        n_releases = np.zeros(len(self.classes), dtype=np.int64)
        pairs = []
        for i, release in enumerate(self.releases):
            if column not in release.values:
                continue
            is_there = self.classes[:, i] != ABSENT
            n_releases += is_there
            held = np.unique(np.column_stack([release.classes, release.values[column]]), axis=0)
            joint = np.flatnonzero(is_there)
            first, last = (np.searchsorted(held[:, 0], self.classes[joint, i], side=s) for s in ("left", "right"))
            pairs.append(np.column_stack([np.repeat(joint, last - first), held[places_of_runs(first, last), 1]]))
        if not pairs:
            return n_releases
        found, times = np.unique(np.concatenate(pairs), axis=0, return_counts=True)
        in_all = found[times == n_releases[found[:, 0]], 0]
        return np.bincount(in_all, minlength=len(self.classes)).astype(np.int64)

    def shortfalls(self) -> Iterator[Shortfall]:
        """Say which promises the releases do not keep together.

        Remaining values count where some are left: where none is, values did change over time.
        """
        for what, column, requested, found in self._levels():
            is_short = _is_short(found, requested)
            if is_short.any():
                worst = np.flatnonzero(is_short)[int(np.argmin(found[is_short]))]
                n_persons = len(np.unique(self.persons[is_short[self.joint]]))
                yield Shortfall(what, column, float(requested[worst]), float(found[worst]), n_persons)

    def persons_below(self) -> Ids:
        """Persons for whom some promise is not kept, ascending."""
        is_short = np.zeros(len(self.classes), dtype=np.bool_)
        for _, _, requested, found in self._levels():
            is_short |= _is_short(found, requested)
        return np.unique(self.persons[is_short[self.joint]])

    def _levels(self) -> Iterator[tuple[str, str | None, Levels, Ids]]:
        """By promise what every joint class must have, 0 where nothing is promised of it, and what it has."""
        yield "persons", None, self._requested({i: float(own.k) for i, own in enumerate(self.releases)}), self.sizes
        by_column: dict[str, dict[int, float]] = {}
        for i, release in enumerate(self.releases):
            for column, promised in release.diversity.items():
                by_column.setdefault(column, {})[i] = promised
                yield "values", column, self._requested({i: promised}), self.diversity(i, column)
        for column, promises in by_column.items():
            found = self.remaining_values(column)
            yield "remaining values", column, self._requested(promises) * (found > 0), found

    def _requested(self, promises: Mapping[int, float]) -> Levels:
        """Give what each joint class must have: what the strictest of these releases promised that it has rows in."""
        requested = np.zeros(len(self.classes))
        for i, promised in promises.items():
            np.maximum(requested, np.where(self.classes[:, i] == ABSENT, 0.0, promised), out=requested)
        return requested


def _is_short(found: Ids, requested: Levels) -> Flags:
    return np.asarray(found < requested - ROUNDING)


def total_epsilon(epsilons: Sequence[float]) -> float:
    """Bound by which several differentially private releases of the same people are private together.

    Sequential composition ([GKS08]_ discusses it as the contrast to partitions): the ε add up.

    Examples
    --------
    >>> total_epsilon([0.5, 0.25])
    0.75
    """
    return float(sum(epsilons))


def _combinations(releases: Sequence[Appearances]) -> tuple[Ids, Ids]:
    """All combinations of classes, one of each release, that a person has rows in: persons, and classes by release."""
    everybody = np.unique(np.concatenate([release.persons for release in releases] or [np.zeros(0, dtype=np.int64)]))
    persons, classes = everybody, np.zeros((len(everybody), 0), dtype=np.int64)
    for release in releases:
        held = np.unique(np.column_stack([release.persons, release.classes]), axis=0)
        absent = np.setdiff1d(everybody, held[:, 0], assume_unique=False)
        held = np.concatenate([held, np.column_stack([absent, np.full(len(absent), ABSENT)])]).astype(np.int64)
        held = held[np.argsort(held[:, 0], kind="stable")]
        first, last = (np.searchsorted(held[:, 0], persons, side=side) for side in ("left", "right"))
        if int((last - first).sum()) > MOST_COMBINATIONS:
            problem = f"some have rows in so many that there are more than {MOST_COMBINATIONS:,} combinations"
            allowed, hint = "in fewer classes of the releases together", "keep one row of each person"
            raise InvalidParameterError("persons", problem, allowed=allowed, hint=hint, remedy=("one_row_per_person",))
        before = np.repeat(np.arange(len(persons)), last - first)
        persons = persons[before]
        classes = np.column_stack([classes[before], held[places_of_runs(first, last), 1]])
    return persons, classes
