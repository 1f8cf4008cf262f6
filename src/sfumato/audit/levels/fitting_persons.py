r"""(k,k) and global (1,k)-anonymity by persons: whose rows fit, where a person may have several.

An original row and a released row are consistent as in :mod:`sfumato.audit.original.consistency`. The levels are the
least numbers of *different persons*: (k,k) by persons over the released rows that are consistent with an original row
and over the original rows that are consistent with a released one; global (1,k) by persons over the released rows that
an original row has in some perfect matching of originals and released rows. A released row is the row of the person
whose original row it was made of. All rows without a person count as those of one.

Notes
-----
Rows are never fewer than persons. So no level exceeds the least number of rows, :math:`m`, and an entry with more rows
than the m - 1 persons with the most rows have together needs no look: it has m persons. Of the others persons are
listed, up to m of each.

Where rows are sorted, whose a released row is is not known. Then at most so many rows of a person are among some
released rows as the person has rows that fit them in all columns; the fewest persons whose rows can be that many is a
lower bound, whichever way rows belong together, and the number of persons who can have one there an upper bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.audit.kinds import Judging, UndecidableError, judge
from sfumato.audit.original.assignment import Pairs
from sfumato.audit.original.consistency import Consistency
from sfumato.audit.original.release_vs_original import ReleaseVsOriginal
from sfumato.audit.reading.cells import ColumnBits, ones, packed
from sfumato.audit.reading.columns import Classes, places_of_runs
from sfumato.guarantees import GlobalAnonymity, KKAnonymity

Ids = NDArray[np.int64]
Columns = tuple[ColumnBits, ...]

_PAIRS_AT_ONCE = 1 << 18
_MOST_WAITING = 1 << 22
_MOST_FITTING = 1 << 22
_MOST_STEPS = 1 << 28


def measure_kk_by_persons(guarantee: KKAnonymity, pair: ReleaseVsOriginal) -> float:
    """Fewest persons whose rows of one table fit a row of the other; 0 for a table without rows."""
    found, persons = pair.consistency(guarantee.columns), _persons(guarantee, pair)
    of_released = PersonsThatFit.of_classes(found, persons).fewest()
    of_originals = PersonsThatFit.of_originals(found, persons, found.released_per_original)
    return _least(guarantee, pair, of_originals, of_released)


def measure_global_by_persons(guarantee: GlobalAnonymity, pair: ReleaseVsOriginal) -> float:
    """Fewest persons whose released rows an original row has in perfect matchings; 0 where there is none."""
    found, persons = pair.consistency(guarantee.columns), _persons(guarantee, pair)
    if found.in_one_component is None:
        return 0
    n_rows = found.assignable_per_original
    return _least(guarantee, pair, PersonsThatFit.of_originals(found, persons, n_rows, found.in_one_component))


def _least(
    guarantee: KKAnonymity | GlobalAnonymity,
    pair: ReleaseVsOriginal,
    fitting: PersonsThatFit,
    known: int | None = None,
) -> int:
    """Fewest persons of rows that fit original rows, or what is known besides if that is less.

    Raises
    ------
    UndecidableError
        If rows are sorted and the promise may hold.
    """
    if pair.in_original_order:
        least = fitting.fewest()
        return least if known is None else min(known, least)
    least, most = fitting.fewest_whoever(pair.fitting)
    if known is not None:
        least, most = min(least, known), min(most, known)
    if not guarantee.is_met_by(most):
        return most
    raise UndecidableError(f"rows are sorted and do not tell whose each is; the level is from {least} to {most}", least)


def _persons(guarantee: KKAnonymity | GlobalAnonymity, pair: ReleaseVsOriginal) -> Ids:
    """Person of each row that may be released, numbered from 0 without gaps."""
    codes = pair.original.coded(guarantee.unit).codes[pair.rows]
    return np.unique(codes, return_inverse=True)[1].reshape(-1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class PersonsThatFit:
    """Distinct rows of one table, which fit rows of the other.

    Parameters
    ----------
    n_rows : array
        How many rows of the other table fit each.
    others : Classes
        Distinct rows of the other table.
    persons : array
        Person of each row of the other table; released rows are in the order of the originals, or sorted.
    are_originals : bool
        Whether those of the one table are original rows.
    more : tuple
        Columns in which pairs must agree besides.
    """

    found: Consistency
    n_rows: Ids
    others: Classes
    persons: Ids
    are_originals: bool
    more: Columns = ()

    @classmethod
    def of_classes(cls, found: Consistency, persons: Ids) -> PersonsThatFit:
        """Released rows, and the originals that fit them."""
        return cls(found, found.originals_per_released, found.originals, persons, False)

    @classmethod
    def of_originals(cls, found: Consistency, persons: Ids, n_rows: Ids, more: Columns = ()) -> PersonsThatFit:
        """Original rows, and the released rows that fit them; those are in the order of the originals."""
        return cls(found, n_rows, found.classes, persons, True, more)

    @property
    def enough(self) -> int:
        """Persons that no level exceeds."""
        return int(self.n_rows.min(initial=len(self.persons)))

    def open_at_first(self) -> NDArray[np.bool_]:
        """Entries that may have fewer persons than that, as far as their numbers of rows tell."""
        most = np.sort(np.bincount(self.persons))[::-1]
        return np.asarray(self.n_rows <= most[: max(self.enough - 1, 0)].sum())

    def pairs(self, is_open: NDArray[np.bool_]) -> Iterator[tuple[Ids, Ids]]:
        """Pairs of an entry that is open, and stays so, and a distinct row of the other table; each once."""
        for originals, classes, words in self.found.fitting_bits(*self.more):
            if self.are_originals:
                kept = is_open[originals]
                rows, bits = ones(words[kept])
                own, other = originals[kept][rows], classes[bits]
            else:
                rows, bits = ones(words & packed(is_open[classes]))
                own, other = classes[bits], originals[rows]
            for start in range(0, len(own), _PAIRS_AT_ONCE):
                some = slice(start, start + _PAIRS_AT_ONCE)
                still = is_open[own[some]]
                yield own[some][still], other[some][still]

    def fewest(self) -> int:
        """Fewest different persons whose rows fit an entry."""
        enough = self.enough
        if not enough or not len(self.n_rows):
            return 0
        n_persons = int(self.persons.max()) + 1
        held = np.unique(self.others.ids * n_persons + self.persons)
        holder = held // n_persons
        held = held[np.arange(len(held)) - np.searchsorted(holder, holder) < enough]
        first = np.searchsorted(held // n_persons, np.arange(len(self.others.sizes) + 1))
        is_open = self.open_at_first()
        keys, n_waiting = [np.zeros(0, dtype=np.int64)], 0
        for own, other in self.pairs(is_open):
            lengths = first[other + 1] - first[other]
            person = held[places_of_runs(first[other], first[other + 1])] % n_persons
            keys.append(np.unique(np.repeat(own, lengths) * n_persons + person))
            n_waiting += len(keys[-1])
            if n_waiting > _MOST_WAITING + 2 * len(keys[0]):
                keys = [_of_open(np.unique(np.concatenate(keys)), n_persons, is_open, enough)]
                n_waiting = len(keys[0])
        keys = [_of_open(np.unique(np.concatenate(keys)), n_persons, is_open, enough)]
        counts = np.bincount(keys[0] // n_persons, minlength=len(self.n_rows))
        return int(counts[is_open].min(initial=enough))

    def fewest_whoever(self, fitting: Pairs | None) -> tuple[int, int]:
        """Bounds of the fewest persons whose released rows fit an original row, whichever originals those were.

        Given are the original and released rows that fit in all columns; ``None``: they are too many.
        """
        if fitting is None or len(fitting.before) > _MOST_FITTING or not self.enough:
            return 0, self.enough
        most_of = self._most_rows(fitting)
        n_entries, n_steps = np.diff(most_of.indptr), 0
        rows_of_person = np.bincount(self.persons)
        least = most_persons = self.enough
        is_open = self.open_at_first()
        for own, other in self._whole_entries(is_open):
            n_steps += int(n_entries[other].sum())
            if n_steps > _MOST_STEPS:
                return 0, most_persons
            entries, number = np.unique(own, return_inverse=True)
            fits = sp.csr_array(
                (np.ones(len(own), dtype=np.int64), (number.reshape(-1), other)),
                shape=(len(entries), most_of.shape[0]),
            )
            possible = fits @ most_of
            most = np.minimum(possible.data, rows_of_person[possible.indices])
            least = min(least, _fewest_to_fill(possible.indptr, most, self.n_rows[entries]))
            most_persons = min(most_persons, int(np.diff(possible.indptr).min(initial=most_persons)))
        return least, most_persons

    def _whole_entries(self, is_open: NDArray[np.bool_]) -> Iterator[tuple[Ids, Ids]]:
        """Pairs, those of an entry at once."""
        nothing = np.zeros(0, dtype=np.int64)
        own, other = nothing, nothing
        for more_own, more_other in self.pairs(is_open):
            own, other = np.append(own, more_own), np.append(other, more_other)
            order = np.argsort(own, kind="stable")
            own, other = own[order], other[order]
            is_whole = np.bincount(own, self.others.sizes[other], len(self.n_rows)) == self.n_rows
            yield own[is_whole[own]], other[is_whole[own]]
            own, other = own[~is_whole[own]], other[~is_whole[own]]
        yield own, other

    def _most_rows(self, fitting: Pairs) -> sp.csr_array:
        """Most rows of each person that each distinct released row can hold, by what fits in all columns."""
        n_persons, n_classes = int(self.persons.max(initial=0)) + 1, len(self.others.sizes)
        both, sizes = np.unique(fitting.classes.ids * n_classes + self.others.ids, return_counts=True)
        of_all, of_class = np.divmod(both, n_classes)
        whose = _counted(fitting.originals.ids, self.persons, (len(fitting.originals.sizes), n_persons))
        fits = _counted(fitting.after, fitting.before, (len(fitting.classes.sizes), len(fitting.originals.sizes)))
        can_hold = sp.csr_array((fits @ whose)[of_all])
        can_hold.data = np.minimum(can_hold.data, np.repeat(sizes, np.diff(can_hold.indptr)))
        parts = _counted(of_class, np.arange(len(both)), (n_classes, len(both)))
        return sp.csr_array(parts @ can_hold)


def _counted(rows: Ids, columns: Ids, shape: tuple[int, int]) -> sp.csr_array:
    """Count pairs."""
    return sp.csr_array((np.ones(len(rows), dtype=np.int64), (rows, columns)), shape=shape)


def _of_open(keys: Ids, n_persons: int, is_open: NDArray[np.bool_], enough: int) -> Ids:
    """Close the entries that have enough persons, and keep what is known of the others."""
    entry = keys // n_persons
    n_found = np.bincount(entry, minlength=len(is_open))
    is_open &= n_found < enough
    return np.asarray(keys[is_open[entry]])


def _fewest_to_fill(indptr: NDArray[np.integer], most: Ids, n_rows: Ids) -> int:
    """Fewest persons whose rows can be as many as wanted, of the entry for which these are fewest."""
    entry = np.repeat(np.arange(len(n_rows)), np.diff(indptr))
    order = np.lexsort((-most, entry))
    entry, most = entry[order], most[order]
    before = np.cumsum(most) - most
    starts = np.searchsorted(entry, np.arange(len(n_rows)))
    before -= before[np.minimum(starts, max(len(before) - 1, 0))][entry]
    needed = np.bincount(entry[before < n_rows[entry]], minlength=len(n_rows))
    return int(needed.min(initial=np.iinfo(np.int64).max))


judge(
    KKAnonymity.kind,
    Judging(
        parameters=("k",),
        with_original=lambda guarantee, pair: pair.consistency(guarantee.columns).level_kk,
        by_persons=measure_kk_by_persons,
        is_about_fitting_rows=True,
    ),
)
judge(
    GlobalAnonymity.kind,
    Judging(
        parameters=("k",),
        with_original=lambda guarantee, pair: pair.consistency(guarantee.columns).level_global,
        by_persons=measure_global_by_persons,
        is_about_fitting_rows=True,
    ),
)
