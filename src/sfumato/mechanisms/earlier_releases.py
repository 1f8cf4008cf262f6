r"""What earlier releases of the same people ask of a new one: cuts that keep them together.

Persons whom all earlier releases show in the same classes are a *group*; those who are in none are one too. If every
part of a new partition has, of each group, nobody or at least as many persons (and as many different sensitive values)
as were promised, then classes over all releases together keep the promises: they are groups within parts. Along an axis
a group forbids two runs of cuts only: from its first row to the one with which the left side has enough, and the same
from the right.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class GroupLimit:
    """How many different things every part must hold of a group of which it holds a row.

    Parameters
    ----------
    codes : ndarray of int64
        Thing of each row, from 0: its person, or a sensitive value of that person.
    needed : ndarray of int64
        By group; 0 or 1: nothing is asked.
    """

    codes: Ids
    needed: Ids

    def take(self, rows: NDArray[np.intp]) -> GroupLimit:
        """Restrict to these rows."""
        return GroupLimit(self.codes[rows], self.needed)


@dataclass(frozen=True, eq=False)
class EarlierReleases:
    """Groups of a table's rows by what earlier releases showed of their persons.

    Parameters
    ----------
    kept : ndarray of intp
        Rows that can be released: the others would leave too few of their group, here or among those who left.
    groups : ndarray of int64
        Group of each row of the table, from 0.
    limits : tuple of GroupLimit
        For each row of the table.
    """

    kept: NDArray[np.intp]
    groups: Ids
    limits: tuple[GroupLimit, ...]

    @property
    def digest(self) -> str:
        """Hash of all that a release depends on here."""
        arrays = [self.kept, self.groups, *(a for limit in self.limits for a in (limit.codes, limit.needed))]
        return hashlib.sha256(b"".join(hashlib.sha256(a.tobytes()).digest() for a in arrays)).hexdigest()

    def of_kept(self) -> EarlierReleases:
        """Restrict to the rows that can be released."""
        limits = tuple(limit.take(self.kept) for limit in self.limits)
        return EarlierReleases(np.arange(len(self.kept)), self.groups[self.kept], limits)

    def allowed(self, rows: NDArray[np.integer], part_of_place: NDArray[np.integer]) -> Flags:
        """Whether each place along an axis may begin the right side of a cut; places run through the parts in turn.

        Examples
        --------
        Four persons of one group, of whom two must stay together: only a cut in the middle is allowed.

        >>> limit = GroupLimit(np.arange(4), np.array([2]))
        >>> earlier = EarlierReleases(np.arange(4), np.zeros(4, dtype=np.int64), (limit,))
        >>> earlier.allowed(np.arange(4), np.zeros(4, dtype=np.int64)).tolist()
        [True, False, True, False]
        """
        n_groups = int(self.groups.max(initial=-1)) + 1
        keys = part_of_place.astype(np.int64) * n_groups + self.groups[rows]
        n_places = len(keys)
        starts, first = np.unique(keys, return_index=True)
        last = n_places - 1 - np.unique(keys[::-1], return_index=True)[1]
        changes = np.zeros(n_places + 2, dtype=np.int64)
        for limit in self.limits:
            needed = limit.needed[starts % max(n_groups, 1)]
            codes = limit.codes[rows]
            from_left = _place_of_enough(keys, codes, starts, needed, last)
            from_right = n_places - 1 - _place_of_enough(keys[::-1], codes[::-1], starts, needed, n_places - 1 - first)
            for begin, end in ((first + 1, from_left + 1), (from_right + 1, last + 1)):
                is_run = (needed > 1) & (begin < end)
                np.add.at(changes, begin[is_run], 1)
                np.add.at(changes, end[is_run], -1)
        return np.asarray(np.cumsum(changes)[:n_places] == 0)


def _place_of_enough(keys: Ids, codes: Ids, starts: Ids, needed: Ids, last: Ids) -> Ids:
    """Place at which each key has as many different codes as it needs, read from the left; its last if it never has."""
    width = int(codes.max(initial=-1)) + 1
    firsts = np.sort(np.unique(keys * width + codes, return_index=True)[1])
    firsts = firsts[np.argsort(keys[firsts], kind="stable")]
    begins = np.searchsorted(keys[firsts], starts)
    ends = np.append(begins[1:], len(firsts))
    wanted = begins + np.maximum(needed, 1) - 1
    return np.where(wanted < ends, firsts[np.minimum(wanted, len(firsts) - 1)], last)


def enough(limits: Sequence[tuple[Ids, int]], members: NDArray[np.intp]) -> bool:
    """Whether these members have as many different codes as is asked of each limit."""
    return all(len(np.unique(codes[members])) >= needed for codes, needed in limits if needed > 1)
