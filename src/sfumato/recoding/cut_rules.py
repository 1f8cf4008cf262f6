"""Which cut divides each part: by certainty penalty, at the median, or by information gain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.criteria import Criterion
from sfumato.recoding.constraints import Constraint
from sfumato.recoding.scales import Floats, Scales, Widths
from sfumato.recoding.sorted_parts import Cuts, Indices, SortedParts

NO_AXIS = -1
CELLS_AT_ONCE = 2**22
LEAST_GAIN = 1e-12
"""Share of the impurity of all rows below which a gain is a rounding error."""


@dataclass(frozen=True, eq=False)
class Choice:
    """One cut for each part; the axis is -1 where there is none."""

    axis: Indices
    index: Indices

    def or_else(self, other: Choice) -> Choice:
        """Take the other's cut where there is none."""
        has_cut = self.axis != NO_AXIS
        return Choice(np.where(has_cut, self.axis, other.axis), np.where(has_cut, self.index, other.index))


def by_penalty(parts: SortedParts, scales: Scales, cuts: Cuts) -> Choice:
    """Choose the cut that lowers the certainty penalty on its own axis most, summed over the rows of the part."""
    widths = Widths(scales, parts)
    left, right = widths.of_sides(cuts)
    n_left, n_right = parts.rows_of_sides(cuts)
    remaining = n_left * left + n_right * right
    best = _best_of_groups(cuts, -remaining)
    chosen = cuts.keep(best)
    return _best_of_parts(parts, chosen, parts.n_rows[chosen.part] * widths.of_parts(chosen) - remaining[best])


def by_width(parts: SortedParts, scales: Scales, cuts: Cuts) -> Choice:
    """Choose the axis on which the part is widest, and there the cut nearest to the median.

    Of two equally near cuts the one with fewer rows on the left; of equally wide axes the first.
    """
    n_left, n_right = parts.rows_of_sides(cuts)
    nearest = cuts.keep(_best_of_groups(cuts, -np.abs(n_left - n_right)))
    return _best_of_parts(parts, nearest, Widths(scales, parts).of_parts(nearest))


def by_gain(parts: SortedParts, cuts: Cuts, statistics: Floats, criterion: Criterion) -> Choice:
    """Choose the cut that lowers the impurity of the target most; none where no cut lowers it."""
    gains = np.empty(len(cuts))
    for taken, left, right in _sums_of_sides(parts, cuts, statistics):
        gains[taken] = criterion.impurity(left + right) - criterion.impurity(left) - criterion.impurity(right)
    is_gain = gains > LEAST_GAIN * criterion.impurity(statistics.sum(axis=0))
    cuts, gains = cuts.keep(is_gain), gains[is_gain]
    best = _best_of_groups(cuts, gains)
    return _best_of_parts(parts, cuts.keep(best), gains[best])


def allowed_cuts(parts: SortedParts, cuts: Cuts, is_allowed: Constraint, sensitive: NDArray[np.int32]) -> Cuts:
    """Keep the cuts both of whose sides satisfy a constraint on their counts of sensitive values."""
    n_values = int(sensitive.max(initial=-1)) + 1
    passes = np.zeros(len(cuts), dtype=np.bool_)
    for taken, left, right in _counts_of_sides(parts, cuts, sensitive, n_values):
        passes[taken] = is_allowed(left) & is_allowed(right)
    return cuts.keep(passes)


def _best_of_groups(cuts: Cuts, score: NDArray[np.float64] | Indices) -> Indices:
    """First cut with the highest score of each part on each axis."""
    first = cuts.first_of_group()
    if not len(first):
        return first
    highest = np.repeat(np.maximum.reduceat(score, first), np.diff(np.append(first, len(cuts))))
    best = np.flatnonzero(score == highest)
    return best[cuts.keep(best).first_of_group()]


def _best_of_parts(parts: SortedParts, cuts: Cuts, score: Floats) -> Choice:
    """Cut with the highest score of each part, given at most one for each axis; of equal ones the first axis."""
    shape = len(parts.rows), parts.n_parts
    scores, index = np.full(shape, -np.inf), np.zeros(shape, dtype=np.intp)
    scores[cuts.axis, cuts.part] = score
    index[cuts.axis, cuts.part] = cuts.index
    axis = scores.argmax(axis=0)
    every = np.arange(parts.n_parts)
    has_cut = np.isfinite(scores[axis, every])
    return Choice(np.where(has_cut, axis, NO_AXIS), np.where(has_cut, index[axis, every], parts.starts[:-1]))


def _sums_of_sides(parts: SortedParts, cuts: Cuts, statistics: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
    for taken, rows, blocks, first, last, here in _stretches(parts, cuts, statistics.shape[1]):
        sums = np.zeros((len(blocks) + 1, statistics.shape[1]))
        for i, statistic in enumerate(statistics.T):
            np.cumsum(np.add.reduceat(statistic[rows], blocks), out=sums[1:, i])
        yield taken, sums[here] - sums[first], sums[last] - sums[here]


def _counts_of_sides(
    parts: SortedParts, cuts: Cuts, sensitive: NDArray[np.int32], n_values: int
) -> Iterator[tuple[slice, NDArray[np.int64], NDArray[np.int64]]]:
    for taken, rows, blocks, first, last, here in _stretches(parts, cuts, n_values):
        block_of = np.repeat(np.arange(len(blocks)), np.diff(np.append(blocks, len(rows))))
        counts = np.bincount(block_of * n_values + sensitive[rows], minlength=len(blocks) * n_values)
        sums = np.zeros((len(blocks) + 1, n_values), dtype=np.int64)
        np.cumsum(counts.reshape(-1, n_values), axis=0, out=sums[1:])
        yield taken, sums[here] - sums[first], sums[last] - sums[here]


def _stretches(
    parts: SortedParts, cuts: Cuts, n_sums: int
) -> Iterator[tuple[slice, NDArray[np.int32], Indices, Indices, Indices, Indices]]:
    """Cuts on one axis, as many as fit into memory at a time, with the rows of their parts in blocks between cuts.

    Gives the cuts, the rows, where blocks begin, and for each cut the first block of its part, the one after its last,
    and the block that begins at the cut.
    """
    most = max(1, CELLS_AT_ONCE // max(n_sums, 1))
    of_axis = np.searchsorted(cuts.axis, np.arange(len(parts.rows) + 1))
    for axis in range(len(parts.rows)):
        for begin in range(of_axis[axis], of_axis[axis + 1], most):
            taken = slice(begin, min(begin + most, of_axis[axis + 1]))
            chosen = cuts.keep(taken)
            low, high = chosen.part[0], chosen.part[-1] + 1
            offset = parts.starts[low]
            places = np.union1d(parts.starts[low:high], chosen.index)
            first = np.searchsorted(places, parts.starts[chosen.part])
            last = np.searchsorted(places, parts.starts[chosen.part + 1])
            here = np.searchsorted(places, chosen.index)
            yield taken, parts.rows[axis, offset : parts.starts[high]], places - offset, first, last, here
