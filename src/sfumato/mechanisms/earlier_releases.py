r"""What earlier releases of the same people ask of a new one: cuts that keep them together.

Persons whom all earlier releases show in the same classes are a *group*; those who are in none are one too. If every
part of a new partition has, of each group, nobody or at least as many persons (and as many different sensitive values)
as were promised, then classes over all releases together keep the promises: they are groups within parts. Along an axis
a group forbids two runs of cuts only: from its first row to the one with which the left side has enough, and the same
from the right.

Where persons have several rows, earlier releases may show a person in several combinations of classes: the person then
belongs to several groups, and each of the person's rows counts in all of them. The same condition on every group and
part makes every combination of classes that some person has rows in large enough.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
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
        Thing of each member, from 0: its person, or a sensitive value of that person; -1: it counts for nothing.
    needed : ndarray of int64
        By group; 0 or 1: nothing is asked.
    """

    codes: Ids
    needed: Ids

    def take(self, members: NDArray[np.intp]) -> GroupLimit:
        """Restrict to these members."""
        return GroupLimit(self.codes[members], self.needed)


@dataclass(frozen=True, eq=False)
class EarlierReleases:
    """Groups of a table's rows by what earlier releases showed of their persons.

    Parameters
    ----------
    kept : ndarray of intp
        Rows that can be released: the others would leave too few of their group, here or among those who left.
    groups : ndarray of int64
        Group of each member, from 0.
    limits : tuple of GroupLimit
        For each member.
    row_of : ndarray of intp or None
        Row of each member, ascending: a row is a member of every group of its person. ``None``: of one each, and
        members are the rows of the table.
    fewer : tuple of ndarray of intp
        Other choices of rows that can be released, ever fewer: small groups forbid so many cuts that it may cost less
        detail to leave them out.
    """

    kept: NDArray[np.intp]
    groups: Ids
    limits: tuple[GroupLimit, ...]
    row_of: NDArray[np.intp] | None = None
    fewer: tuple[NDArray[np.intp], ...] = ()

    def choices(self) -> Iterator[EarlierReleases]:
        """Give each choice of rows by itself, the one with most rows first."""
        for kept in (self.kept, *self.fewer):
            yield EarlierReleases(kept, self.groups, self.limits, self.row_of)

    @property
    def digest(self) -> str:
        """Hash of all that a release depends on here."""
        arrays = [self.kept, self.groups, *(a for limit in self.limits for a in (limit.codes, limit.needed))]
        arrays += [*([] if self.row_of is None else [self.row_of]), *self.fewer]
        return hashlib.sha256(b"".join(hashlib.sha256(a.tobytes()).digest() for a in arrays)).hexdigest()

    def of_kept(self) -> EarlierReleases:
        """Restrict to the rows that can be released."""
        members, places = self._members_of(self.kept)
        limits = tuple(limit.take(members) for limit in self.limits)
        row_of = None if self.row_of is None else places
        return EarlierReleases(np.arange(len(self.kept)), self.groups[members], limits, row_of)

    def _members_of(self, rows: NDArray[np.integer]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Members of some rows, one row after the other, and the place of each among these rows."""
        every = np.arange(len(rows), dtype=np.intp)
        if self.row_of is None:
            return np.asarray(rows, dtype=np.intp), every
        first, last = (np.searchsorted(self.row_of, rows, side=side) for side in ("left", "right"))
        lengths = last - first
        before = np.cumsum(lengths) - lengths
        places = np.repeat(every, lengths)
        return np.arange(len(places), dtype=np.intp) + (first - before)[places], places

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
        members, places = self._members_of(rows)
        keys = part_of_place[places].astype(np.int64) * n_groups + self.groups[members]
        n_places, n_members = len(rows), len(members)
        starts, first = np.unique(keys, return_index=True)
        last = n_members - 1 - np.unique(keys[::-1], return_index=True)[1]
        changes = np.zeros(n_places + 2, dtype=np.int64)
        for limit in self.limits:
            needed = limit.needed[starts % max(n_groups, 1)]
            codes = limit.codes[members]
            from_left = _place_of_enough(keys, codes, starts, needed, last)
            from_right = (
                n_members - 1 - _place_of_enough(keys[::-1], codes[::-1], starts, needed, n_members - 1 - first)
            )
            for begin, end in ((first, from_left), (from_right, last)):
                is_run = (needed > 1) & (places[begin] < places[end])
                np.add.at(changes, places[begin[is_run]] + 1, 1)
                np.add.at(changes, places[end[is_run]] + 1, -1)
        return np.asarray(np.cumsum(changes)[:n_places] == 0)


def _place_of_enough(keys: Ids, codes: Ids, starts: Ids, needed: Ids, last: NDArray[np.intp]) -> NDArray[np.intp]:
    """Place at which each key has as many different codes as it needs, read from the left; its last if it never has."""
    width = int(codes.max(initial=-1)) + 1
    counted = np.flatnonzero(codes >= 0)
    firsts = counted[np.sort(np.unique(keys[counted] * width + codes[counted], return_index=True)[1])]
    firsts = firsts[np.argsort(keys[firsts], kind="stable")]
    begins = np.searchsorted(keys[firsts], starts)
    ends = np.searchsorted(keys[firsts], starts, side="right")
    wanted = begins + np.maximum(needed, 1) - 1
    if not len(firsts):
        return last
    return np.where(wanted < ends, firsts[np.minimum(wanted, len(firsts) - 1)], last)


def enough(limits: Sequence[tuple[Ids, int]]) -> bool:
    """Whether there are as many different codes as is asked of each limit; -1 counts for nothing."""
    return all(len(np.unique(codes[codes >= 0])) >= needed for codes, needed in limits if needed > 1)
