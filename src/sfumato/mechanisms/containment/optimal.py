"""The selection with provably largest HamDist under k-anonymity by containment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.measures.separation import pairs_of_different_classes
from sfumato.mechanisms.base import Compared, MechanismInfo
from sfumato.mechanisms.containment.base import (
    BINARIZE,
    ContainmentSelector,
    K,
    Labelled,
    Selection,
    weights_in_separation,
)
from sfumato.mechanisms.containment.feasibility import (
    LATTICE_COLUMNS,
    Lattice,
    Reduced,
    columns_of,
    reduce_table,
)
from sfumato.mechanisms.containment.greedy import GreedyContainmentSelector
from sfumato.mechanisms.containment.improvement import good_start
from sfumato.mechanisms.containment.support import Counts, bits_of
from sfumato.mechanisms.time_limit import TIME_BUDGET, TimeBudget
from sfumato.parameters import ParameterSpec
from sfumato.progress import Progress
from sfumato.table.binarize import BinarizePlan

# The heaviest feasible set of columns, by branch and bound over the rare itemsets.
#
# Two columns are in conflict when they make a rare itemset, either alone or together with columns that are chosen
# already. At most one column of a *clique*, columns that are all in conflict with each other, can be chosen. So a set
# of columns weighs no more than is paid when every column's weight is covered by payments to cliques that hold it.


Flags = NDArray[np.bool_]
Groups = list[tuple[int, int]]

MOST_CELLS, MOST_COLUMNS = 1 << 26, 1 << 13  # up to here a table is searched: 256 MiB as numbers
_BLOCK = 2048  # columns among which cliques are looked for in larger tables
_STACKED_CELLS = 1 << 30  # conflicts held on the way down
_FIRST_LIMIT, _LIMIT_GROWTH = 16, 4  # nodes spent on a branch before the others get their turn
_EVERYTHING = 1 << 62


@dataclass(frozen=True)
class Outcome:
    """The heaviest set found, and a bound on what any feasible set weighs.

    Parameters
    ----------
    columns : tuple of int
        The set, ascending.
    weight, upper_bound : int
        Its weight, and a weight that no feasible set exceeds.
    n_nodes : int
        Nodes of the search.
    """

    columns: tuple[int, ...]
    weight: int
    upper_bound: int
    n_nodes: int

    @property
    def is_proven(self) -> bool:
        """Whether no feasible set weighs more."""
        return self.weight == self.upper_bound


def heaviest_feasible(
    reduced: Reduced,
    weights: Counts,
    k: int,
    start: Sequence[int],
    budget: TimeBudget,
    progress: Progress | None = None,
) -> Outcome:
    """Find a feasible set of columns of largest weight, beginning with a feasible set that is known.

    Parameters
    ----------
    reduced : Reduced
        The table, so that counts add up (:meth:`Reduced.added_up`). Where persons do not, nothing is searched: the set
        that is known is given with a bound.
    weights : array of int
        Weight of every column, none negative.
    start : sequence of int
        A feasible set; the better it is, the sooner the search ends.
    budget : TimeBudget
        When it is spent, the best set found so far is given with the bound reached so far.
    """
    is_large = reduced.n_columns > MOST_COLUMNS or reduced.n_rows * reduced.n_columns > MOST_CELLS
    if is_large or reduced.persons is not None:
        weight = int(weights[list(start)].sum())
        return Outcome(tuple(sorted(start)), weight, max(weight, clique_bound(reduced, weights, k, budget)), 0)
    return _Search(reduced, weights, k, start, budget).run(progress)


def clique_bound(reduced: Reduced, weights: Counts, k: int, budget: TimeBudget) -> int:
    """Bound the weight of every feasible set by payments to cliques, block after block of columns.

    Once the budget is spent, the columns not looked at count with all their weight. Persons who do not add up are
    counted too often, so that some conflicts are not seen: a bound all the same.
    """
    order = np.argsort(-weights, kind="stable")
    bound = 0
    for block in (order[i : i + _BLOCK] for i in range(0, len(order), _BLOCK)):
        if budget.is_spent():
            bound += int(weights[block].sum())
            continue
        part = reduced.matrix[:, block].astype(np.int64)
        together = (part.T @ part.multiply(reduced.counts[:, None]).tocsc()).toarray()
        bound += pay_cliques(weights[block].tolist(), _as_numbers(_is_rare(together, k)), (1 << len(block)) - 1)[1]
    return bound


def pay_cliques(
    weights: Sequence[int], conflicts: Sequence[int], columns: int, allowance: int = _EVERYTHING
) -> tuple[int, int]:
    """Pay for columns clique by clique until all are paid for or the next payment would exceed an allowance.

    Sets of columns are whole numbers, column c the bit ``1 << c``; a clique begins with the first column that is left
    and takes in the next ones that are in conflict with all it holds. It is paid the least that is due to one of its
    columns.

    Returns
    -------
    left : int
        Columns not fully paid for. Every feasible set of the others weighs at most the allowance.
    paid : int
        Sum of the payments: if nothing is left, no feasible set of the columns weighs more.

    Examples
    --------
    >>> pay_cliques([5, 3, 4], [0b010, 0b101, 0b010], 0b111)  # the second is in conflict with both others
    (0, 9)
    """
    due = list(weights)
    paid = 0
    while columns:
        clique: list[int] = []
        candidates, least = columns, _EVERYTHING
        while candidates:
            column = (candidates & -candidates).bit_length() - 1
            clique.append(column)
            candidates &= conflicts[column]
            least = min(least, due[column])
        if paid + least > allowance:
            return columns, paid
        paid += least
        for column in clique:
            due[column] -= least
            if not due[column]:
                columns ^= 1 << column
    return 0, paid


@dataclass(slots=True)
class _Node:
    """A set chosen so far and the columns that can each join it, those with fewest conflicts first.

    ``groups`` are the rows that are equal on the chosen columns, with all rows that have these rows' chosen columns.
    Positions of columns are bits of ``kept``, among which nothing better is left, and of ``open``, still to be tried.
    """

    chosen: tuple[int, ...]
    weight: int
    groups: Groups
    columns: NDArray[np.intp]
    conflicts: Flags
    weights: list[int]
    conflicts_of: list[int]
    kept: int = 0
    open: int = 0


class _Search:
    def __init__(self, reduced: Reduced, weights: Counts, k: int, start: Sequence[int], budget: TimeBudget) -> None:
        has_signs = bool((reduced.counts <= 0).any())
        copies = reduced.counts if has_signs else np.minimum(reduced.counts, k)  # further ones change nothing
        if has_signs or copies.sum() > 2 * reduced.n_rows:
            self.ones, self.counts = reduced.dense(), copies.astype(np.float32)
        else:  # equal rows one by one: a product with itself is faster than a weighted one
            self.ones = reduced.dense().repeat(copies, axis=0)
            self.counts = np.ones(len(self.ones), dtype=np.float32)
        self.k = k
        self.weights = weights
        self.rows_of = _as_numbers(self.ones.T > 0)
        self.budget = budget
        self.best = tuple(start)
        self.best_weight = int(weights[list(start)].sum())
        self.n_nodes = 0

    def run(self, progress: Progress | None) -> Outcome:
        """Settle the columns that the first payments leave open, easy ones first, until all are or time is up."""
        root = self._root()
        bound = pay_cliques(root.weights, root.conflicts_of, (1 << len(root.weights)) - 1)[1]
        self._divide(root)
        left, limit = list(bits_of(root.open)), _FIRST_LIMIT
        n_branches = len(left)
        while left and not self.budget.is_spent():
            left = [position for position in left if not self._settles(root, position, limit)]
            limit *= _LIMIT_GROWTH
            if progress:
                progress(n_branches - len(left), n_branches, "branches settled")
        open_columns = sum(1 << position for position in left)
        # a set is made of settled columns, worth the best at most, and of columns that are left
        reached = self.best_weight + pay_cliques(root.weights, root.conflicts_of, open_columns)[1]
        upper = max(self.best_weight, min(bound, reached))
        return Outcome(tuple(sorted(self.best)), self.best_weight, upper, self.n_nodes)

    def _root(self) -> _Node:
        columns = np.arange(len(self.weights))
        conflicts = self._conflicts(self.ones, self.counts)
        everyone = (1 << len(self.counts)) - 1
        return self._node((), 0, [(everyone, everyone)], columns, conflicts)

    def _conflicts(self, ones: NDArray[np.float32], counts: NDArray[np.float32]) -> Flags:
        return _is_rare(ones.T @ ones if (counts == 1).all() else ones.T @ (ones * counts[:, None]), self.k)

    def _node(
        self, chosen: tuple[int, ...], weight: int, groups: Groups, columns: NDArray[np.intp], conflicts: Flags
    ) -> _Node:
        order = np.argsort(np.count_nonzero(conflicts, axis=0), kind="stable")
        conflicts = conflicts.take(order, axis=0).take(order, axis=1)
        columns = columns[order]
        self.n_nodes += 1
        return _Node(chosen, weight, groups, columns, conflicts, self.weights[columns].tolist(), _as_numbers(conflicts))

    def _divide(self, node: _Node) -> None:
        """Divide the columns of a node into those that a set better than the best needs one of, and the others."""
        everything = (1 << len(node.weights)) - 1
        node.open, _ = pay_cliques(node.weights, node.conflicts_of, everything, self.best_weight - node.weight)
        node.kept = everything & ~node.open

    def _settles(self, root: _Node, position: int, limit: int) -> bool:
        """Whether all sets of a column and columns settled before are searched within a number of nodes."""
        if self.budget.is_spent():
            return False
        last = self.n_nodes + limit
        stack = [child] if (child := self._child(root, position)) else []
        stacked = 0
        while stack:
            if self.n_nodes > last or self.budget.is_spent() or stacked > _STACKED_CELLS:
                return False
            node = stack[-1]
            if not node.open:
                stacked -= stack.pop().conflicts.size
                continue
            lowest = node.open & -node.open
            node.open ^= lowest
            child = self._child(node, lowest.bit_length() - 1)
            node.kept |= lowest
            if child:
                stack.append(child)
                stacked += child.conflicts.size
        root.kept |= 1 << position
        return True

    def _child(self, node: _Node, position: int) -> _Node | None:
        """Let a column join; None if nothing better can come of it."""
        candidates = node.kept & ~node.conflicts_of[position]
        column = int(node.columns[position])
        chosen, weight = (*node.chosen, column), node.weight + node.weights[position]
        if weight > self.best_weight:
            self.best, self.best_weight = chosen, weight
        if not pay_cliques(node.weights, node.conflicts_of, candidates, self.best_weight - weight)[0]:
            return None
        groups, included = _joined(node.groups, self.rows_of[column])
        parts = [_positions(rows, len(self.counts)) for rows in included]
        positions = _positions(candidates, len(node.weights))
        fits = np.ones(len(positions), dtype=np.bool_)
        for rows in parts:
            fits &= ~_is_rare(self.counts[rows] @ self._part(rows, node.columns[positions]), self.k)
        positions = positions[fits]
        columns = node.columns[positions]
        conflicts = node.conflicts.take(positions, axis=0).take(positions, axis=1)
        for rows in parts:
            conflicts |= self._conflicts(self._part(rows, columns), self.counts[rows])
        child = self._node(chosen, weight, groups, columns, conflicts)
        self._divide(child)
        return child if child.open else None

    def _part(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.float32]:
        return self.ones.take(rows, axis=0).take(columns, axis=1)


def _is_rare(supports: NDArray[np.float32] | Counts, k: int) -> Flags:
    rare: Flags = (supports > 0) & (supports < k)
    return rare


def _as_numbers(flags: Flags) -> list[int]:
    """Every row of flags as a whole number, the first flag its lowest bit."""
    packed = np.packbits(flags, axis=1, bitorder="little")
    return [int.from_bytes(row, "little") for row in packed]


def _positions(number: int, size: int) -> NDArray[np.intp]:
    """Positions of the ones of a whole number of so many bits."""
    raw = np.frombuffer(number.to_bytes(-(-size // 8), "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(raw, count=size, bitorder="little"))


def _joined(groups: Groups, rows: int) -> tuple[Groups, list[int]]:
    """Divide groups by a column with these rows; also give the rows that include each pattern with the column.

    Patterns that all their rows have together with the column make no new conflicts and are left out.
    """
    after: Groups = []
    included: dict[int, None] = {}
    for members, including in groups:
        if with_column := members & rows:
            after.append((with_column, including & rows))
            if including & rows != including:
                included[including & rows] = None
        if without := members & ~rows:
            after.append((without, including))
    return after, list(included)


_START_SHARE = 0.2  # of the time budget, for a good set to begin with


class OptimalContainmentSelector(ContainmentSelector):
    """Choose the features with the largest HamDist of all sets that are k-anonymous by containment.

    Parameters
    ----------
    k : int, default=5
        Whatever ones of a row an attacker knows, at least k rows have them all.
    time_budget : float, default=60.0
        Seconds after which the best set found so far is taken; ``search_`` then tells the bound that was reached. The
        greedy selection that the search begins with is always made, and with up to 24 columns to decide about nothing
        is cut short.
    binarize : BinarizePlan, mapping or None
        How ``release`` turns a mixed table into binary features; ``fit`` does not use it.

    Attributes
    ----------
    selected_columns_ : array of int
        Positions of the chosen features, ascending.
    containment_level_ : int
        Largest k that holds on the chosen features.
    search_ : dict
        ``method``; ``proven``, whether no feasible set has a larger HamDist; ``bound``, which the HamDist of no
        feasible set exceeds; ``gap``, by how much the chosen one falls short of it, and ``gap_fraction``, the same as
        a share of the bound. ``separated_pairs`` and ``separated_pairs_bound`` are HamDist and bound times the pairs
        of rows of different classes: whole numbers, so that proven is exact. ``n_nodes`` of the search.

    Notes
    -----
    HamDist is a sum over features (Theorem 1 of [kAC17]_), so the best set is the heaviest one that holds no itemset
    that 1 to k - 1 rows have. With up to 24 columns all sets are compared; else by branch and bound. The result is
    maximal. A larger HamDist need not make a better classifier: see :class:`ExactContainmentSelector`.

    Of equally good sets one is taken that depends on the order of the columns, not of the rows. When time is cut
    short the result depends on the speed of the machine.

    Examples
    --------
    >>> from sfumato.datasets.papers import toy_containment_table
    >>> toy = toy_containment_table()
    >>> selector = OptimalContainmentSelector(k=2).fit(toy.matrix, toy.target().codes)
    >>> selector.get_support(indices=True), selector.search_["proven"]
    (array([0, 2, 3, 4]), True)
    """

    mechanism_name: ClassVar[str] = "optimal-containment"
    parameter_specs: ClassVar[Mapping[str, ParameterSpec]] = {
        "k": K,
        "time_budget": replace(TIME_BUDGET, help="seconds after which the best set found so far is taken"),
        "binarize": BINARIZE,
    }

    def __init__(
        self,
        k: int = 5,
        time_budget: float = 60.0,
        binarize: BinarizePlan | Mapping[str, Any] | None = None,
    ) -> None:
        self.k = k
        self.time_budget = time_budget
        self.binarize = binarize

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self.check_parameters("time_budget")

    def _search(self, data: Labelled, progress: Progress | None) -> Selection:
        budget, k = TimeBudget(self.time_budget), int(self.k)
        reduced = reduce_table(data.matrix, k, data.row_counts, data.persons)
        weights = reduced.weights(weights_in_separation(data))
        summed = reduced.added_up()
        if summed is not None and reduced.n_columns <= LATTICE_COLUMNS:
            method, found = "all sets compared", heaviest_of_all(summed, weights, k)
        else:
            greedy = GreedyContainmentSelector(k, on_infeasible="skip")._search(data, None)
            start = good_start(reduced, weights, k, greedy.features, budget.share(_START_SHARE))
            found = heaviest_feasible(summed or reduced, weights, k, start, budget, progress)
            method = "branch and bound" if found.n_nodes else "greedy and exchanges"
        ending = {"method": method} | _ending(found, int(pairs_of_different_classes(data.class_sizes)))
        return Selection(reduced.features(found.columns), ending=ending)


def _ending(found: Outcome, n_pairs: int) -> dict[str, Any]:
    short_of = found.upper_bound - found.weight
    return {
        "proven": found.is_proven,
        "bound_on": "hamming_separation",
        "bound": found.upper_bound / n_pairs,
        "gap": short_of / n_pairs,
        "gap_fraction": short_of / max(found.upper_bound, 1),
        "separated_pairs": found.weight,
        "separated_pairs_bound": found.upper_bound,
        "n_nodes": found.n_nodes,
    }


def heaviest_of_all(reduced: Reduced, weights: Counts, k: int) -> Outcome:
    """Compare all maximal sets of up to 24 columns; of equally heavy ones the one with the earlier columns wins."""
    lattice = Lattice(reduced, k)
    masks = lattice.maximal()
    weighed = lattice.weigh(masks, weights)
    best = int(np.argmax(weighed))
    weight = int(weighed[best])
    return Outcome(columns_of(int(masks[best]), reduced.n_columns), weight, weight, 0)


DECLARATION = MechanismInfo(
    OptimalContainmentSelector,
    why="finds the binary features that separate the classes most, proven or with a bound on the gap",
    promises="k-anonymity by containment",
    compared=Compared(({"k": 5},), time_limit="time_budget"),
    guarantee="containment",
    needs_target=True,
    cost=8.0,
)
