r"""Cuts both of whose sides keep what is asked of sensitive values, by rows or by persons.

Counts of rows add up along an axis. Neither distinct persons nor their weights add up over rows, but both can be read
along an axis. Left of a cut are as many different pairs of a person and a value as begin there, read from the left. And
if a person has had n rows so far, c of them with value v, the person's weight of v is c/n: each row changes it by what
it is after the row less what it was before, and the sum of these changes left of a cut is the weight there. The right
side is read from the right.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.counts import Counts, Numbers
from sfumato.guarantees import ROUNDING, LDiversity
from sfumato.mechanisms.constraints import Ids, Limit, asks_for_two_values
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

Flags = NDArray[np.bool_]


def allowed_cuts(parts: SortedParts, cuts: Cuts, limit: Limit) -> Cuts:
    """Keep the cuts both of whose sides keep a limit."""
    if limit.matched is not None and limit.persons is not None:
        return _with_matchings(parts, cuts, limit.codes, limit.persons, limit.matched)
    if limit.persons is None and asks_for_two_values(limit.constraint):
        return cuts.keep(np.logical_and(*parts.two_values_on_sides(cuts, limit.codes)))
    passes = np.zeros(len(cuts), dtype=np.bool_)
    for at in stretches(parts, cuts, limit.n_values):
        sides: tuple[Numbers, Numbers]
        if limit.persons is None:
            sides = _counts_of_sides(parts, at, limit.codes, limit.n_values)
        else:
            sides = weights_of_sides(parts, at, limit.codes, limit.persons)
        passes[at.taken] = limit.keeps(sides[0]) & limit.keeps(sides[1])
    return cuts.keep(passes)


def _counts_of_sides(parts: SortedParts, at: Stretch, codes: Ids, n_values: int) -> tuple[Indices, Indices]:
    """Rows of each value left and right of cuts."""
    weights = None if parts.weights is None else parts.weights[at.rows]
    counts = np.bincount(at.block_of_row * n_values + codes[at.rows], weights, len(at.blocks) * n_values)
    sums = np.zeros((len(at.blocks) + 1, n_values), dtype=np.int64)
    np.cumsum(counts.astype(np.int64, copy=False).reshape(-1, n_values), axis=0, out=sums[1:])
    return sums[at.here] - sums[at.first], sums[at.last] - sums[at.here]


def weights_of_sides(parts: SortedParts, at: Stretch, codes: Ids, persons: Ids) -> tuple[Floats, Floats]:
    """Weights of the values left and right of cuts.

    Time and memory grow with the rows of each person times the person's values, besides cuts times values.
    """
    n_persons, n_values = int(persons.max(initial=-1)) + 1, int(codes.max(initial=-1)) + 1
    keys = parts.part_of_place[at.places] * n_persons + persons[at.rows]
    order = np.argsort(keys, kind="stable")  # the rows of each person of a part, in their order along the axis
    begins = np.flatnonzero(np.append(True, keys[order][1:] != keys[order][:-1]))
    lengths = np.diff(np.append(begins, len(order)))
    values, blocks = codes[at.rows][order].astype(np.int64), at.block_of_row[order]
    of_person = np.repeat(np.arange(len(begins)), lengths)
    who, own_values = np.divmod(np.unique(of_person * n_values + values), n_values)
    changes = np.zeros((2, len(at.blocks) * n_values))
    for here in _chunks(lengths[who]):
        number, n_before = _ranges(lengths[who[here]])
        place, value = begins[who[here]][number] + n_before, own_values[here][number]
        n_after = lengths[who[here]][number] - n_before  # this row included
        is_it = values[place] == value
        running = np.cumsum(is_it)
        starts = np.flatnonzero(n_before == 0)
        up_to = running - (running[starts] - is_it[starts])[number]
        after = up_to[starts + lengths[who[here]] - 1][number] - up_to
        sides = (
            up_to / (n_before + 1) - (up_to - is_it) / np.maximum(n_before, 1),
            (after + is_it) / n_after - after / np.maximum(n_after - 1, 1),
        )
        for side, change in zip(changes, sides, strict=True):
            side += np.bincount(blocks[place] * n_values + value, change, len(side))
    sums = np.zeros((2, len(at.blocks) + 1, n_values))
    np.cumsum(changes.reshape(2, -1, n_values), axis=1, out=sums[:, 1:])
    left, right = sums[0][at.here] - sums[0][at.first], sums[1][at.last] - sums[1][at.here]
    # what is but a rounding error is nothing: the least weight is that of one row of many
    return np.where(left < ROUNDING, 0.0, left), np.where(right < ROUNDING, 0.0, right)


def _chunks(lengths: Indices) -> Iterator[slice]:
    """Cut entries into runs that fit in memory, each of one entry at least."""
    ends, start = np.cumsum(lengths), 0
    while start < len(lengths):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + CELLS_AT_ONCE, side="right")))
        yield slice(start, stop)
        start = stop


def _ranges(lengths: Indices) -> tuple[Indices, Indices]:
    """Give each place of runs, one after the other, the number of its run and its place there."""
    number = np.repeat(np.arange(len(lengths)), lengths)
    return number, np.arange(len(number)) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _with_matchings(parts: SortedParts, cuts: Cuts, codes: Ids, persons: Ids, asked: LDiversity) -> Cuts:
    """Keep the cuts both of whose sides have enough values of as many different persons.

    Most are decided by how many persons of a side have each value: c of them, ascending among the l values with most.
    If the i-th has at least i, a person can be found for one value after the other; and if fewer than l values occur,
    none can. Likewise if l values have persons who have no other value in the part. Only what is left is matched.
    """
    passes = np.zeros(len(cuts), dtype=np.bool_)
    is_open = np.zeros((2, len(cuts)), dtype=np.bool_)
    n_persons, n_values = int(persons.max(initial=-1)) + 1, int(codes.max(initial=-1)) + 1
    wanted = int(np.ceil(asked.l - ROUNDING))
    for at in stretches(parts, cuts, n_values):
        values = codes[at.rows]
        person_of_part = parts.part_of_place[at.places] * n_persons + persons[at.rows].astype(np.int64)
        pair = person_of_part * n_values + values
        _, of_person = np.unique(person_of_part, return_inverse=True)
        from_left, from_right = firsts(pair), firsts(pair[::-1])[::-1]
        has_no_other = np.bincount(of_person, from_left)[of_person] == 1
        for side, (begins, begin, end) in enumerate(((from_left, at.first, at.here), (from_right, at.here, at.last))):
            surely, possible = _decided(_counts(begins, values, at, begin, end, n_values), wanted)
            if (possible & ~surely).any():
                alone = _counts(begins & has_no_other, values, at, begin, end, n_values)
                surely |= np.count_nonzero(alone, axis=1) >= wanted
            is_open[side, at.taken] = possible & ~surely
            passes[at.taken] = possible if side == 0 else passes[at.taken] & possible
    for side in range(2):
        undecided = np.flatnonzero(passes & is_open[side])
        passes[undecided] = _are_matched(parts, cuts.keep(undecided), side, codes, persons, asked)
    return cuts.keep(passes)


def _counts(begins: Flags, values: NDArray[np.int32], at: Stretch, first: Indices, last: Indices, n: int) -> Indices:
    """Rows of each value among some, over blocks."""
    counts = np.bincount(at.block_of_row * n + values, begins, len(at.blocks) * n).astype(np.int64)
    sums = np.zeros((len(at.blocks) + 1, n), dtype=np.int64)
    np.cumsum(counts.reshape(-1, n), axis=0, out=sums[1:])
    return np.asarray(sums[last] - sums[first])


def _decided(persons: Indices, wanted: int) -> tuple[Flags, Flags]:
    """Whether sides surely have a matching of some size, and may have one, by the number of persons of each value."""
    possible = np.count_nonzero(persons, axis=1) >= wanted
    if wanted > persons.shape[1]:
        return possible, possible
    most = -np.sort(np.partition(-persons, wanted - 1, axis=1)[:, :wanted], axis=1)
    return np.asarray((most >= np.arange(wanted, 0, -1)).all(axis=1)), possible


def _are_matched(parts: SortedParts, cuts: Cuts, side: int, codes: Ids, persons: Ids, asked: LDiversity) -> Flags:
    """Whether one side of each cut has enough values of as many different persons."""
    begin = parts.starts[cuts.part] if side == 0 else cuts.index
    end = cuts.index if side == 0 else parts.starts[cuts.part + 1]
    lengths = end - begin
    found = np.zeros(len(cuts), dtype=np.bool_)
    for here in _chunks(lengths):
        number, place = _ranges(lengths[here])
        rows = parts.rows[cuts.axis[here][number], begin[here][number] + place]
        found[here] = asked.are_kept_by(Counts.of_rows(number, codes[rows], persons[rows]))
    return found
