r"""Mondrian: rows are divided along one quasi-identifier after the other until no part can be divided further.

All parts of a depth are divided at once.

References
----------
.. [LDR06] LeFevre, DeWitt, Ramakrishnan: Mondrian Multidimensional K-Anonymity. ICDE (2006).
.. [LDR08] LeFevre, DeWitt, Ramakrishnan: Workload-Aware Anonymization Techniques for Large-Scale Datasets.
   ACM TODS 33(3) (2008).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.learning.c45.criteria import Criterion
from sfumato.learning.c45.tree import LEAF, Ids, Numbers, Tree, TreeColumn, route
from sfumato.mechanisms.axes import Axis
from sfumato.mechanisms.constraints import Limit, check_persons
from sfumato.mechanisms.mondrian.allowed_cuts import allowed_cuts
from sfumato.mechanisms.mondrian.parts import Counts, Cuts, Floats, Indices, Scales, SortedParts, Widths, stretches
from sfumato.mechanisms.mondrian.population_cuts import PeopleInParts
from sfumato.progress import Progress

# Which cut divides each part: by certainty penalty, at the median, or by information gain of a label or a score.


NO_AXIS = -1
LEAST_GAIN = 1e-12
"""Share of the impurity of all rows below which a gain is a rounding error."""
_RENUMBERED_AFTER = 16
"""Times as many parts after which rows are numbered anew, so that those of a part stay neighbours in memory."""


@dataclass(frozen=True, eq=False)
class Choice:
    """One cut for each part; the axis is -1 where there is none."""

    axis: Indices
    index: Indices

    def without(self, cuts: Cuts) -> Cuts:
        """Keep the cuts of parts for which none is chosen."""
        return cuts.keep(self.axis[cuts.part] == NO_AXIS)

    def or_else(self, other: Choice) -> Choice:
        """Take the other's cut where there is none."""
        has_cut = self.axis != NO_AXIS
        return Choice(np.where(has_cut, self.axis, other.axis), np.where(has_cut, self.index, other.index))


def by_penalty(parts: SortedParts, widths: Widths, cuts: Cuts) -> Choice:
    """Choose the cut that lowers the certainty penalty on its own axis most, summed over the rows of the part."""
    remaining = _penalty_of_sides(widths, parts, cuts)
    best = _best_of_groups(cuts, -remaining)
    chosen = cuts.keep(best)
    return _best_of_parts(parts, chosen, parts.n_rows[chosen.part] * widths.of_parts(chosen) - remaining[best])


def penalty_gains(parts: SortedParts, widths: Widths, cuts: Cuts) -> Floats:
    """How far each cut lowers the certainty penalty on its own axis, summed over the rows of its part."""
    return np.asarray(parts.n_rows[cuts.part] * widths.of_parts(cuts) - _penalty_of_sides(widths, parts, cuts))


def _penalty_of_sides(widths: Widths, parts: SortedParts, cuts: Cuts) -> Floats:
    left, right = widths.of_sides(cuts)
    n_left, n_right = parts.rows_of_sides(cuts)
    return np.asarray(n_left * left + n_right * right)


def by_width(parts: SortedParts, widths: Widths, cuts: Cuts) -> Choice:
    """Choose the axis on which the part is widest, and there the cut nearest to the median.

    Of two equally near cuts the one with fewer rows on the left; of equally wide axes the first.
    """
    n_left, n_right = parts.rows_of_sides(cuts)
    nearest = cuts.keep(_best_of_groups(cuts, -np.abs(n_left - n_right)))
    return _best_of_parts(parts, nearest, widths.of_parts(nearest))


def by_gain(
    parts: SortedParts, cuts: Cuts, statistics: Floats, criterion: Criterion, whole: float, beside: Floats | None = None
) -> Choice:
    """Choose the cut that lowers the impurity of the target, ``whole`` in all rows, most; none where no cut lowers it.

    With ``beside``, what each cut gains otherwise, the largest sum counts; gains of impurity are then shares of that of
    all rows.
    """
    gains = np.empty(len(cuts))
    counted = parts.rows_of_sides(cuts) if parts.are_counted_by(statistics[:, 0]) else None
    for taken, left, right in _sums_of_sides(parts, cuts, statistics, counted):
        gains[taken] = criterion.impurity(left + right) - criterion.impurity(left) - criterion.impurity(right)
    is_gain = gains > LEAST_GAIN * whole
    if beside is not None:
        gains = np.where(is_gain, gains / (whole if whole > 0 else 1.0), 0.0) + beside
        is_gain |= beside > 0
    cuts, gains = cuts.keep(is_gain), gains[is_gain]
    best = _best_of_groups(cuts, gains)
    return _best_of_parts(parts, cuts.keep(best), gains[best])


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


def _sums_of_sides(
    parts: SortedParts, cuts: Cuts, statistics: Floats, counted: tuple[Counts, Counts] | None
) -> Iterator[tuple[slice, Floats, Floats]]:
    """Add up statistics left and right of cuts; with ``counted`` the first is the number of rows, which is known."""
    for at in stretches(parts, cuts, statistics.shape[1]):
        left, right = np.empty((2, len(at.here), statistics.shape[1]))
        for i, statistic in enumerate(statistics.T):
            if i == 0 and counted is not None:
                left[:, 0], right[:, 0] = counted[0][at.taken], counted[1][at.taken]
                continue
            sums = np.zeros(len(at.blocks) + 1)
            np.cumsum(np.add.reduceat(statistic.take(at.rows), at.blocks), out=sums[1:])
            at_cut = sums[at.here]
            left[:, i], right[:, i] = at_cut - sums[at.first], sums[at.last] - at_cut
        yield at.taken, left, right


SplitRule = Literal["penalty", "median", "gain", "score"]


@dataclass(frozen=True, eq=False, repr=False)
class Partition:
    """Groups of rows and the tree of cuts that leads to them.

    Parameters
    ----------
    of_row : ndarray of int32
        Group of each row, numbered as the leaves of the tree.
    tree : Tree
        Every split is one of a numeric column in two; see ``columns``.
    scales : Scales
        How the values of the axes lie, categorical ones too.
    """

    of_row: Ids
    tree: Tree
    scales: Scales

    def __repr__(self) -> str:
        return f"Partition({len(self.of_row):,} rows, {self.n_groups:,} groups)"

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return self.tree.n_leaves

    @property
    def group_of_node(self) -> Ids:
        """Group of each leaf of the tree, -1 for inner nodes."""
        is_leaf = self.tree.attribute == LEAF
        return np.where(is_leaf, np.cumsum(is_leaf) - 1, -1).astype(np.int32)

    def columns(self, axes: Sequence[Axis]) -> list[TreeColumn]:
        """Write the axes of new rows as the columns that the tree splits (see ``axes.align``)."""
        return self.scales.columns(axes)

    def groups_of(self, axes: Sequence[Axis]) -> Ids:
        """Group that new rows fall into.

        Rows with a value that a relaxed cut divides go to its left side.
        """
        return np.asarray(self.group_of_node[route(self.tree, self.columns(axes))])


def mondrian_partition(
    axes: Sequence[Axis],
    k: int,
    *,
    strict: bool = True,
    split: SplitRule = "penalty",
    statistics: Numbers | None = None,
    criterion: Criterion | None = None,
    order_by: Numbers | None = None,
    penalty_weight: float = 0.0,
    limits: Sequence[Limit] = (),
    within: Ids | None = None,
    persons: Ids | None = None,
    people: PeopleInParts | None = None,
    progress: Progress | None = None,
) -> Partition:
    r"""Divide rows into groups of at least k by cuts along the axes, as deep as the groups allow.

    Greedy multidimensional partitioning of [LDR06]_ and [LDR08]_. A cut is allowed when both sides have at least k
    rows (and keep the ``limits``); a group is a part without an allowed cut.

    Parameters
    ----------
    axes : sequence of Axis
        At least one. Entries may stand for several rows each, if groups are ``strict``.
    k : int
        Fewest rows of a group, at least 1.
    strict : bool
        Keep rows with equal values together, so that no two groups overlap. Otherwise equal values may be divided:
        with ``split="median"`` every part is cut into halves on the widest axis (relaxed partitioning of [LDR06]_),
        and with the others only parts that no cut between values can divide. Rows with the cut value are
        divided by their values on the other axes, the axis with the fewest values first, and equal rows by row number.
    split : {"penalty", "median", "gain", "score"}
        ``penalty``: the cut of all axes that lowers the certainty penalty on its axis most, summed over rows.
        ``median``: the axis with the largest certainty penalty (normalized width) that has an allowed cut, and there
        the allowed cut nearest to the median, as in [LDR06]_.
        ``gain``: the cut of all axes that lowers the impurity of the target most, as in [LDR08]_; a part in which no
        cut does so is divided as with ``median``.
        ``score``: the same for a score of the target, see :mod:`sfumato.mechanisms.score_guide`; with a
        ``penalty_weight`` the cut for which the fall of the impurity, as a share of that of all rows, and the fall of
        the certainty penalty, as a share of the largest possible, weighted, are most together. A part in which nothing
        falls is divided as with ``penalty``.
    statistics, criterion : ndarray of shape (n_rows, n_statistics) and Criterion
        Of the target or its score, for ``split="gain"`` and ``"score"``; statistics alone are summed up in the tree.
    order_by : ndarray of float64 or None
        A number of each entry. Values of categorical axes are then put in the order of its mean, so that one cut
        separates low from high; otherwise in that of their frequency.
    penalty_weight : float
        For ``split="score"``, at least 0.
    limits : sequence of Limit
        What the sensitive values of a group must satisfy, by rows or by persons. By persons parts may satisfy it where
        all rows do not.
    within : ndarray of int32 or None
        Part that each row is in to begin with, numbered from 0 without gaps, each of at least k rows or left as it is.
        The tree is then a forest: node i is the root of part i.
    persons : ndarray of int32 or None
        Person of each row, where some have several: a group then needs at least k different ones.
    people : PeopleInParts or None
        A population, of whose people every group must fit enough; with ``strict`` and single rows only.
    progress : callable or None
        Told how many rows are in their groups.

    Returns
    -------
    Partition
        With ``strict`` the groups and their numbers do not depend on the order of rows; otherwise equal rows may
        change places.

    Raises
    ------
    PrivacyNotAchievableError
        There are fewer than k rows, or all rows together do not keep the ``limits``.

    Notes
    -----
    Deviations: [LDR06]_ tries the median only; here the nearest cut that is allowed, and so no group can be divided
    further. A categorical axis is cut in the order of :class:`sfumato.mechanisms.mondrian.parts.Scales`; a missing
    value lies after all others. ``penalty`` and ``score`` are ours: Adult (30,162 rows, eight quasi-identifiers,
    k = 10) has a global certainty penalty of .057 with ``penalty`` and of .060 with ``median``. Time
    O(n_axes * n_rows) for each depth after one sort.

    Examples
    --------
    >>> ages = np.array([30.0, 31.0, 50.0, 52.0])
    >>> age = Axis("age", np.array([0, 1, 2, 3, 3], dtype=np.int32), ("30", "31", "50", "52"), ages)
    >>> mondrian_partition([age], 2).of_row.tolist()
    [0, 0, 1, 1, 1]
    """
    n_rows = _checked_rows(axes, k, split, statistics, criterion)
    weights = axes[0].weights
    if weights is not None and not strict:
        raise InvalidParameterError("axes", "entries stand for several rows", allowed="single rows, if not strict")
    if people is not None and (weights is not None or not strict or within is not None):
        raise InvalidParameterError("people", "got some", allowed="given with strict cuts of one part of single rows")
    n_counted = n_rows if weights is None else int(weights.sum())
    if n_counted < k:
        raise PrivacyNotAchievableError(f"groups of at least {k:,} of {n_counted:,} rows", best_level=n_counted)
    for limit in (limit for limit in limits if limit.persons is None):
        limit.check_all_rows(weights)
    check_persons(persons, k)
    scales = Scales.of(axes, order_by)
    parts = SortedParts.of(scales.values(axes), within, weights)
    kept = None if statistics is None else np.asfortranarray(statistics)  # read one statistic at a time
    share = penalty_weight / (n_counted * len(axes))
    if people is not None:
        people.check_all_rows(parts)
    whole = 0.0 if kept is None or criterion is None else float(criterion.impurity(kept.sum(axis=0)))
    rule = _Rule(k, strict, split, scales, kept, criterion, share, limits, persons, people, whole)
    counted = np.ones((n_rows, 1)) if weights is None else weights[:, None].astype(np.float64)
    grown = _Growing(counted if kept is None else kept, parts.n_parts)
    n_parts_numbered = parts.n_parts
    while parts.n_parts:
        if people is None and parts.n_parts >= _RENUMBERED_AFTER * n_parts_numbered:
            n_parts_numbered, rows = parts.n_parts, parts.rows[0]
            parts, rule = parts.renumbered(), rule.of_rows(rows)
            grown.renumber(rows)
        choice = rule.choose(parts)
        grown.add_level(parts, choice)
        if people is not None:
            people.divide(parts, choice.axis, choice.index)
        parts = parts.divide(choice.axis, choice.index)
        if progress is not None:
            progress(n_rows - parts.rows.shape[1], n_rows, "dividing rows")
    found = grown.partition(scales)
    if within is None and found.n_groups == 1:  # every other group is the side of an allowed cut
        for limit in (limit for limit in limits if limit.persons is not None):
            limit.check_all_rows()
    return found


@dataclass(frozen=True, eq=False, repr=False)
class _Rule:
    k: int
    strict: bool
    split: SplitRule
    scales: Scales
    statistics: Numbers | None
    criterion: Criterion | None
    penalty_share: float
    limits: Sequence[Limit]
    persons: Ids | None = None
    people: PeopleInParts | None = None
    whole: float = 0.0

    def of_rows(self, rows: Ids) -> _Rule:
        """Give the same rule for some of the rows, numbered anew."""
        statistics = None if self.statistics is None else np.asfortranarray(self.statistics[rows])
        persons = None if self.persons is None else self.persons[rows]
        return replace(self, statistics=statistics, limits=[own.of_rows(rows) for own in self.limits], persons=persons)

    def choose(self, parts: SortedParts) -> Choice:
        """Choose a cut for every part that has one."""
        if self.split == "median" and not self.strict:
            return self._halving(parts)
        cuts = self._allowed(parts, parts.cuts_between_values(self.k))
        choice = self._between_values(parts, cuts)
        return choice if self.strict else choice.or_else(self._halving(parts))

    def _between_values(self, parts: SortedParts, cuts: Cuts) -> Choice:
        widths = Widths(self.scales, parts)
        if self.split == "penalty":
            return by_penalty(parts, widths, cuts)
        if self.split == "median" or self.statistics is None or self.criterion is None:
            return by_width(parts, widths, cuts)
        if self.split == "gain":
            chosen = by_gain(parts, cuts, self.statistics, self.criterion, self.whole)
            return chosen.or_else(by_width(parts, widths, chosen.without(cuts)))
        beside = self.penalty_share * penalty_gains(parts, widths, cuts) if self.penalty_share else None
        chosen = by_gain(parts, cuts, self.statistics, self.criterion, self.whole, beside)
        return chosen.or_else(by_penalty(parts, widths, chosen.without(cuts)))

    def _halving(self, parts: SortedParts) -> Choice:
        return by_width(parts, Widths(self.scales, parts), self._allowed(parts, parts.cuts_in_the_middle(self.k)))

    def _allowed(self, parts: SortedParts, cuts: Cuts) -> Cuts:
        if self.persons is not None:
            left, right = parts.persons_of_sides(cuts, self.persons)
            cuts = cuts.keep((left >= self.k) & (right >= self.k))
        for limit in self.limits:
            cuts = allowed_cuts(parts, cuts, limit)
        if self.people is not None:
            cuts = self.people.allowed(parts, cuts)
        return cuts


class _Growing:
    """The tree, one depth after the other."""

    def __init__(self, statistics: Numbers, n_roots: int) -> None:
        self._statistics = statistics
        self._node_of_row = np.zeros(len(statistics), dtype=np.int32)
        self._row = np.arange(len(statistics), dtype=np.int32)
        self._n_nodes = 0
        self._parents = [np.full(n_roots, -1)]
        self._attributes: list[NDArray[np.intp]] = []
        self._first_children: list[NDArray[np.intp]] = []
        self._sizes: list[NDArray[np.int64]] = []
        self._sums: list[Numbers] = []
        self._neighbours: list[NDArray[np.int32]] = []

    def add_level(self, parts: SortedParts, choice: Choice) -> None:
        """Add the parts of one depth as nodes."""
        nodes = self._n_nodes + np.arange(parts.n_parts)
        self._n_nodes += parts.n_parts
        self._node_of_row[self._row[parts.rows[0]]] = nodes[parts.part_of_place]
        is_cut = choice.axis != NO_AXIS
        first_child = np.where(is_cut, self._n_nodes + 2 * (np.cumsum(is_cut) - 1), LEAF)
        at = choice.axis[is_cut], choice.index[is_cut]
        self._neighbours.append(np.column_stack([parts.values[at[0], at[1] - 1], parts.values[at]]))
        self._parents.append(np.repeat(nodes[is_cut], 2))
        self._attributes.append(choice.axis)
        self._first_children.append(first_child)
        self._sizes.append(parts.n_rows)
        rows, starts = parts.rows[0], parts.starts[:-1]
        self._sums.append(np.column_stack([np.add.reduceat(kept[rows], starts) for kept in self._statistics.T]))

    def renumber(self, rows: Ids) -> None:
        """Go on with some of the rows, numbered anew."""
        self._statistics, self._row = np.asfortranarray(self._statistics[rows]), self._row[rows]

    def partition(self, scales: Scales) -> Partition:
        """Put the nodes together."""
        attribute = np.concatenate(self._attributes)
        is_inner = attribute != LEAF
        threshold, cut = np.full((2, len(attribute)), np.nan)
        left, right = np.concatenate(self._neighbours).T
        threshold[is_inner], cut[is_inner] = scales.thresholds(attribute[is_inner], left, right)
        tree = Tree(
            parent=np.concatenate(self._parents).astype(np.int32),
            attribute=attribute.astype(np.int32),
            threshold=threshold,
            cut=cut,
            first_child=np.concatenate(self._first_children).astype(np.int32),
            n_children=np.where(is_inner, 2, 0).astype(np.int32),
            weights=np.concatenate(self._sizes).astype(np.float64),
            statistics=np.concatenate(self._sums),
        )
        group_of_node = (np.cumsum(~is_inner) - 1).astype(np.int32)
        return Partition(group_of_node[self._node_of_row], tree, scales)


def _checked_rows(
    axes: Sequence[Axis], k: int, split: SplitRule, statistics: Numbers | None, criterion: Criterion | None
) -> int:
    if not axes:
        raise InvalidParameterError("axes", "got none", allowed="at least one quasi-identifier")
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InvalidParameterError("k", f"got {k!r}", allowed="a whole number of at least 1")
    if split not in get_args(SplitRule):
        raise InvalidParameterError("split", f"got {split!r}", allowed=" or ".join(map(repr, get_args(SplitRule))))
    if split in ("gain", "score") and (statistics is None or criterion is None):
        raise InvalidParameterError(
            "statistics", "got none", allowed="given, with a criterion, to split by gain or score"
        )
    return len(axes[0].codes)
