r"""Cuts both of whose sides keep what is asked of sensitive values by persons.

Neither distinct persons nor their weights add up over rows, but both can be read along an axis. Left of a cut are as
many different pairs of a person and a value as begin there, read from the left. And if a person has had n rows so far,
c of them with value v, the person's weight of v is c/n: each row changes it by what it is after the row less what it
was before, and the sum of these changes left of a cut is the weight there. The right side is read from the right.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.guarantees import ROUNDING
from sfumato.measures.person_weights import matched_diversity_by_class
from sfumato.mechanisms.mondrian.parts import (
    CELLS_AT_ONCE,
    Cuts,
    Floats,
    Indices,
    SortedParts,
    Stretch,
    firsts,
    stretches,
)
from sfumato.mechanisms.person_constraints import PersonLimit

Flags = NDArray[np.bool_]


def cuts_allowed_by_persons(parts: SortedParts, cuts: Cuts, limit: PersonLimit) -> Cuts:
    """Keep the cuts both of whose sides keep a limit."""
    if limit.least_matched:
        cuts = _with_matchings(parts, cuts, limit)
    if limit.on_weights is not None:
        passes = np.zeros(len(cuts), dtype=np.bool_)
        for at in stretches(parts, cuts, limit.n_values):
            left, right = weights_of_sides(parts, at, limit)
            passes[at.taken] = limit.on_weights(left) & limit.on_weights(right)
        cuts = cuts.keep(passes)
    return cuts


def weights_of_sides(parts: SortedParts, at: Stretch, limit: PersonLimit) -> tuple[Floats, Floats]:
    """Weights of the values left and right of cuts."""
    n_persons = int(limit.persons.max(initial=-1)) + 1
    keys = parts.part_of_place[at.places] * n_persons + limit.persons[at.rows]
    order = np.argsort(keys, kind="stable")  # the rows of each person of a part, in their order along the axis
    begins = np.flatnonzero(np.append(True, keys[order][1:] != keys[order][:-1]))
    lengths = np.diff(np.append(begins, len(order)))
    n_before = np.arange(len(order)) - np.repeat(begins, lengths)
    n_after = np.repeat(lengths, lengths) - n_before  # this row included
    values = limit.codes[at.rows][order]
    left, right = (np.empty((len(at.here), limit.n_values)) for _ in range(2))
    changes = np.empty(len(order))
    for value in range(limit.n_values):
        is_it = values == value
        running = np.cumsum(is_it)
        up_to = running - np.repeat(running[begins] - is_it[begins], lengths)
        total = np.repeat(up_to[begins + lengths - 1], lengths)
        before = np.divide(up_to - is_it, n_before, out=np.zeros(len(order)), where=n_before > 0)
        changes[order] = up_to / (n_before + 1) - before
        left[:, value] = _sums(changes, at, at.first, at.here)
        after = np.divide(total - up_to, n_after - 1, out=np.zeros(len(order)), where=n_after > 1)
        changes[order] = (total - up_to + is_it) / n_after - after
        right[:, value] = _sums(changes, at, at.here, at.last)
    return left, right


def _sums(changes: Floats, at: Stretch, begin: Indices, end: Indices) -> Floats:
    """Add up blocks; a sum that is but a rounding error is 0, for the least weight is that of one row of many."""
    sums = np.zeros(len(at.blocks) + 1)
    np.cumsum(np.add.reduceat(changes, at.blocks), out=sums[1:])
    found = sums[end] - sums[begin]
    return np.where(found < ROUNDING, 0.0, found)


def _with_matchings(parts: SortedParts, cuts: Cuts, limit: PersonLimit) -> Cuts:
    """Keep the cuts both of whose sides have enough values of as many different persons.

    Most are decided by how many persons of a side have each value: c of them, ascending among the l values with most.
    If the i-th has at least i, a person can be found for one value after the other; and if fewer than l values occur,
    none can. Likewise if l values have persons who have no other value in the part. Only what is left is matched.
    """
    passes = np.zeros(len(cuts), dtype=np.bool_)
    is_open = np.zeros((2, len(cuts)), dtype=np.bool_)
    n_persons, n_values = int(limit.persons.max(initial=-1)) + 1, limit.n_values
    for at in stretches(parts, cuts, n_values):
        persons, values = limit.persons[at.rows].astype(np.int64), limit.codes[at.rows]
        person_of_part = parts.part_of_place[at.places] * n_persons + persons
        pair = person_of_part * n_values + values
        _, of_person = np.unique(person_of_part, return_inverse=True)
        from_left, from_right = firsts(pair), firsts(pair[::-1])[::-1]
        has_no_other = np.bincount(of_person, from_left)[of_person] == 1
        for side, (begins, begin, end) in enumerate(((from_left, at.first, at.here), (from_right, at.here, at.last))):
            surely, possible = _decided(
                _counts(begins, values, at, begin, end, n_values),
                _counts(begins & has_no_other, values, at, begin, end, n_values),
                limit.least_matched,
            )
            is_open[side, at.taken] = possible & ~surely
            passes[at.taken] = possible if side == 0 else passes[at.taken] & possible
    for side in range(2):
        undecided = np.flatnonzero(passes & is_open[side])
        passes[undecided] = _are_matched(parts, cuts.keep(undecided), side, limit)
    return cuts.keep(passes)


def _counts(begins: Flags, values: NDArray[np.int32], at: Stretch, first: Indices, last: Indices, n: int) -> Indices:
    """Rows of each value among some, over blocks."""
    counts = np.bincount(at.block_of_row * n + values, begins, len(at.blocks) * n).astype(np.int64)
    sums = np.zeros((len(at.blocks) + 1, n), dtype=np.int64)
    np.cumsum(counts.reshape(-1, n), axis=0, out=sums[1:])
    return np.asarray(sums[last] - sums[first])


def _decided(persons: Indices, alone: Indices, least: float) -> tuple[Flags, Flags]:
    """Whether sides surely have a matching, and may have one: by the persons of each value, all or without another."""
    wanted = int(np.ceil(least - ROUNDING))
    possible = np.count_nonzero(persons, axis=1) >= wanted
    surely = np.count_nonzero(alone, axis=1) >= wanted
    if wanted <= persons.shape[1]:
        most = -np.sort(-persons, axis=1)[:, :wanted]
        surely |= (most >= np.arange(wanted, 0, -1)).all(axis=1)
    return surely, possible


def _are_matched(parts: SortedParts, cuts: Cuts, side: int, limit: PersonLimit) -> Flags:
    """Whether one side of each cut has enough values of as many different persons."""
    begin = parts.starts[cuts.part] if side == 0 else cuts.index
    end = cuts.index if side == 0 else parts.starts[cuts.part + 1]
    lengths = end - begin
    found = np.zeros(len(cuts), dtype=np.bool_)
    start = 0
    while start < len(cuts):
        total = np.cumsum(lengths[start:])
        stop = start + max(1, int(np.searchsorted(total, CELLS_AT_ONCE, side="right")))
        here = slice(start, stop)
        number = np.repeat(np.arange(stop - start), lengths[here])
        places = np.arange(len(number)) - np.repeat(np.cumsum(lengths[here]) - lengths[here], lengths[here])
        places += np.repeat(begin[here], lengths[here])
        rows = parts.rows[np.repeat(cuts.axis[here], lengths[here]), places]
        persons, values = limit.persons[rows], limit.codes[rows]
        levels = matched_diversity_by_class(number, persons, values, stop - start, limit.least_matched)
        found[here] = levels >= limit.least_matched - ROUNDING
        start = stop
    return found
