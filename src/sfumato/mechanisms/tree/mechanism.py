"""Error-risk pruned decision trees with tiered or uniform generalization, as a mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError
from sfumato.guarantees import ROW, AboutValues, GlobalAnonymity, Guarantee, KAnonymity, KKAnonymity, SearchedBy
from sfumato.guarantees.forms import COLUMNS, NOTHING, list_of
from sfumato.learning.c45.criteria import Criterion
from sfumato.learning.c45.grow import grow
from sfumato.learning.c45.splits import SplitWays, Tally
from sfumato.learning.c45.tree import LEAF, MISSING, Ids, Tree, TreeColumn, route
from sfumato.measures.anonymity import anonymity_level
from sfumato.mechanisms.axes import Axis, axes_of
from sfumato.mechanisms.base import Compared, MechanismInfo, Needs, Release, combinations
from sfumato.mechanisms.constraints import Limit, check_persons, limits_of
from sfumato.mechanisms.recoder import (
    Cover,
    Generalized,
    Recoder,
    Recoding,
    certainty_penalty_of,
    generalize,
    rows_alike,
    with_cells,
)
from sfumato.mechanisms.requested import Requested, person_crowds, promised_by_persons
from sfumato.mechanisms.score_guide import ScoreGuide
from sfumato.mechanisms.tree.disclosed import disclosure_evidence
from sfumato.mechanisms.tree.error_risk import PrunedTree, error_risk, prune_by_error_risk, prune_lowest
from sfumato.mechanisms.tree.groups import RefinedTree, nodes_allowed_by_persons, refine
from sfumato.mechanisms.tree.targets import Targets, named_targets
from sfumato.mechanisms.tree.tiered import tiered_cover, uniform_cover
from sfumato.mechanisms.tree.tiered_persons import tiered_cover_by_persons
from sfumato.parameters import ParameterSpec
from sfumato.progress import Progress
from sfumato.schema import Role, Schema
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.persons import person_codes
from sfumato.table.weighted import CountedTable

# A tree that is grown on a sample of rows, and groups whose sizes are counted on all rows.


Codes = NDArray[np.int32]
Numbers = NDArray[np.float64]
Block = Mapping[str, Any]
"""Codes of some rows, by the names of the columns."""

_MANY_WAITING = 1 << 20
_MOST_FLAGS = 1 << 26


@dataclass(frozen=True, eq=False, repr=False)
class ValueAxes:
    """Quasi-identifiers of a table by their values: how rows that come in blocks become axes.

    Parameters
    ----------
    axes : tuple of Axis
        One entry for each distinct value of the column, in the order of its codes.
    """

    axes: tuple[Axis, ...]

    @classmethod
    def of_table(cls, table: Table, names: Sequence[str]) -> ValueAxes:
        """Describe some columns of a table."""
        values = {n: CodedColumn(np.arange(table[n].n_distinct, dtype=np.int32), table[n].values) for n in names}
        return cls(axes_of(replace(table, schema=table.schema.keep(names), columns=values), names))

    def of(self, block: Block) -> list[Axis]:
        """Axes of the rows of a block."""
        return [replace(axis, codes=axis.codes[np.asarray(block[axis.name])]) for axis in self.axes]


@dataclass(frozen=True, eq=False, repr=False)
class SampledTree:
    """A tree whose splits were chosen on a sample; any row of the table can be sent down.

    A row whose value the sample lacks goes where most rows of the sample went, as one whose value is missing; where one
    value is split off, to the rest.

    Parameters
    ----------
    tree : Tree
        Its weights are those of the sample: they decide the way of rows.
    values : ValueAxes
    refined : RefinedTree or None
        What knows the columns that the tree splits on, if they are not those of the axes.
    is_cut_to_root : bool
        Whether pruning left no split.
    disclosure : mapping
        What all rows make of BIG, ICR and TIDI before and after pruning.
    """

    tree: Tree
    values: ValueAxes
    refined: RefinedTree | None = None
    is_cut_to_root: bool = False
    disclosure: Mapping[str, Any] = field(default_factory=dict)

    def leaves_of(self, block: Block) -> Ids:
        """Leaf of every row of a block."""
        axes = self.values.of(block)
        columns = [axis.as_tree_column() for axis in axes] if self.refined is None else self.refined.columns(axes)
        return route(self.tree, columns)

    def counted(self, blocks: Iterable[Block], targets: Targets) -> Tree:
        """Count all rows: the tree with the weights and statistics of the table in the place of the sample's."""
        statistics = np.zeros((self.tree.n_nodes, targets.criterion.n_statistics))
        for block in blocks:
            own = targets.statistics([np.asarray(block[name]) for name in targets.names])
            statistics += Tally.from_statistics(own).table(self.leaves_of(block).astype(np.int64), len(statistics))
        statistics = _summed_up(self.tree, statistics)
        return replace(self.tree, weights=targets.criterion.weight(statistics), statistics=statistics)

    def pruned(
        self,
        blocks: Iterable[Block],
        targets: Targets,
        k: int,
        prune: Callable[[Tree, Sequence[TreeColumn], Criterion], tuple[PrunedTree, Mapping[str, Any]]],
        sample: Block,
        *,
        refined: bool,
    ) -> SampledTree:
        """Prune by the errors and risks that all rows have in the tree, until every group has k of them.

        With ``refined``, groups are divided further as the sample suggests. That needs to be counted once more.
        """
        columns = [axis.as_tree_column() for axis in self.values.axes]
        counted = self.counted(blocks, targets)
        pruned, disclosure = prune(counted, columns, targets.criterion)
        group_of = pruned.group_of_leaf
        known = replace(self, is_cut_to_root=bool(group_of[0] == 0), disclosure=disclosure)
        if not refined:
            return replace(known, tree=_cut(self.tree, group_of))
        groups, axes = group_of[self.leaves_of(sample)], self.values.of(sample)
        share = len(groups) / counted.weights[0]
        least = min(_rows_in_a_sample(k, share), len(groups))
        found = refine(self.tree, groups, axes, least)
        return replace(known, tree=found.tree, refined=found)

    def covered(self, blocks: Iterable[Block], k: int) -> CoveredGroups:
        """Count all rows once more, merge groups that have fewer than k, and find out what each group represents."""
        weights = np.zeros(self.tree.n_nodes)
        held = [_held(axis, self.tree.n_nodes) for axis in self.values.axes]
        for block in blocks:
            leaves = self.leaves_of(block)
            weights += np.bincount(leaves, minlength=len(weights))
            for axis, own in zip(self.values.axes, held, strict=True):
                own.take(leaves, axis.codes[np.asarray(block[axis.name])])
        counted = replace(self.tree, weights=_summed_up(self.tree, weights))
        group_of = prune_lowest(counted, k).group_of_leaf
        cells: list[Generalized] = []
        for axis, own in zip(self.values.axes, held, strict=True):
            at, codes = own.finished()
            cells += generalize([replace(axis, codes=codes)], Cover.of_groups(group_of[at]))
        groups = np.unique(group_of[np.flatnonzero(weights)])
        numbered = np.full(self.tree.n_nodes, LEAF, dtype=np.int32)
        numbered[groups] = np.arange(len(groups))
        return CoveredGroups(self, numbered[group_of], counted.weights[groups].astype(np.int64), tuple(cells))


@dataclass(frozen=True, eq=False, repr=False)
class CoveredGroups:
    """Groups of all rows of a table, with their sizes and their cells.

    Parameters
    ----------
    tree : SampledTree
    of_leaf : ndarray of int32
        Group of each leaf that has rows.
    sizes : ndarray of int64
    cells : tuple of Generalized
        One an axis; their classes are the groups.
    """

    tree: SampledTree
    of_leaf: Ids
    sizes: NDArray[np.int64]
    cells: tuple[Generalized, ...]

    def groups_of(self, block: Block) -> Ids:
        """Group of every row of a block."""
        return np.asarray(self.of_leaf[self.tree.leaves_of(block)])


class _Held(Protocol):
    """Codes of one axis that the rows of each leaf hold, as far as its cells depend on them."""

    def take(self, leaves: Ids, codes: Codes) -> None:
        """Take more rows."""

    def finished(self) -> tuple[NDArray[np.integer], Codes]:
        """Leaves and codes of the pairs."""
        ...


def _held(axis: Axis, n_nodes: int) -> _Held:
    if axis.positions is not None:
        return _Ends(axis.n_values, n_nodes)
    is_small = n_nodes * (axis.n_values + 1) <= _MOST_FLAGS
    return _Flags(axis.n_values, n_nodes) if is_small else _Pairs(axis.n_values)


class _Ends:
    """Lowest and highest code of each leaf, and whether one is missing: all that a range says."""

    def __init__(self, n_values: int, n_nodes: int) -> None:
        self._low = np.full(n_nodes, n_values, dtype=np.int32)
        self._high = np.full(n_nodes, MISSING, dtype=np.int32)
        self._has_missing = np.zeros(n_nodes, dtype=np.bool_)

    def take(self, leaves: Ids, codes: Codes) -> None:
        is_known = codes != MISSING
        self._has_missing[leaves[~is_known]] = True
        known, own = (leaves, codes) if is_known.all() else (leaves[is_known], codes[is_known])
        np.minimum.at(self._low, known, own)
        np.maximum.at(self._high, known, own)

    def finished(self) -> tuple[NDArray[np.integer], Codes]:
        known, lost = np.flatnonzero(self._high != MISSING), np.flatnonzero(self._has_missing)
        missing = np.full(len(lost), MISSING, dtype=np.int32)
        return np.concatenate([known, known, lost]), np.concatenate([self._low[known], self._high[known], missing])


class _Flags:
    """Every code of each leaf, as a set says it: a flag for each that is possible."""

    def __init__(self, n_values: int, n_nodes: int) -> None:
        self._is_held = np.zeros((n_nodes, n_values + 1), dtype=np.bool_)  # a missing value, -1, is the last

    def take(self, leaves: Ids, codes: Codes) -> None:
        self._is_held[leaves, codes] = True

    def finished(self) -> tuple[NDArray[np.integer], Codes]:
        leaves, codes = np.nonzero(self._is_held)
        return leaves, np.where(codes == self._is_held.shape[1] - 1, MISSING, codes).astype(np.int32)


class _Pairs:
    """Every code of each leaf, where there are too many for flags; pairs are added up when many wait."""

    def __init__(self, n_values: int) -> None:
        self._width = n_values + 1  # a missing value has the code -1
        self._waiting: list[NDArray[np.int64]] = []
        self._n_waiting = 0

    def take(self, leaves: Ids, codes: Codes) -> None:
        self._waiting.append(np.unique(leaves.astype(np.int64) * self._width + codes + 1))
        self._n_waiting += len(self._waiting[-1])
        if self._n_waiting > _MANY_WAITING + 2 * len(self._waiting[0]):
            self._add_up()

    def _add_up(self) -> None:
        self._waiting = [np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *self._waiting]))]
        self._n_waiting = len(self._waiting[0])

    def finished(self) -> tuple[NDArray[np.integer], Codes]:
        self._add_up()
        leaves, codes = np.divmod(self._waiting[0], self._width)
        return leaves, (codes - 1).astype(np.int32)


def _rows_in_a_sample(k: int, share: float) -> int:
    """Rows of a sample behind which k rows of the table are likely: two standard deviations more than expected."""
    expected = k * share
    return k if share >= 1 else max(math.ceil(expected + 2 * math.sqrt(expected)), 1)


def _summed_up(tree: Tree, of_leaves: Numbers) -> Numbers:
    """Add the sums of leaves to all nodes above them."""
    sums = of_leaves.copy()
    for level in reversed(tree.levels[1:]):
        np.add.at(sums, tree.parent[level], sums[level])
    return sums


def _cut(tree: Tree, group_of: Ids) -> Tree:
    """Make leaves of groups."""
    is_group = group_of == np.arange(tree.n_nodes)
    attribute, first_child = (np.where(is_group, np.int32(LEAF), kept) for kept in (tree.attribute, tree.first_child))
    n_children = np.where(is_group, np.int32(0), tree.n_children)
    return replace(tree, attribute=attribute, first_child=first_child, n_children=n_children)


NodeIds = NDArray[np.int32]
MOST_SPLIT_OFF = 100
"""Values of a column from which single ones are split off; with more, a tree could be as deep as there are values."""
_LARGEST_KEY = 2**62


class ErrorRiskTree(Recoder):
    """Group rows by a decision tree for the target, pruned where that lowers risk most per error, and coarsen groups.

    The system of [ERP19]_: a C4.5 tree is grown on the quasi-identifiers, branches with fewer than k rows in a leaf are
    pruned by the largest error-risk ratio, and each remaining group's cells become ranges and sets. All rows are kept,
    in their order; columns that are no quasi-identifiers travel along unchanged.

    Parameters
    ----------
    k : int, default=5
        Rows of a group.
    generalization : {"tiered", "uniform"}, default="tiered"
        ``uniform`` gives all rows of a group the same cells: k-anonymity. ``tiered`` keeps the leaves of the unpruned
        tree apart, small ones sharing rows with their neighbours: finer cells, and (k,k)-anonymity with global
        (1,k)-anonymity instead of k-anonymity. Where persons have several rows, either counts persons as well.
    rule : {"lowest", "ratio", "literal"}, default="lowest"
        Which branches are pruned: only those that must be, which have an undersized leaf and no undersized branch
        below them; these and then further ones by the largest error-risk ratio, up to ``max_added_error``; or, as the
        paper's algorithm reads, any branch with an undersized leaf, which may take the root.
    max_added_error : float, default=0.0
        Error in training that ``rule="ratio"`` may add, as a share of the error of all rows as one group. Refused with
        another rule, where it would have no effect.
    min_disclosure_bits : float or None
        Least total information for disclosing an individual (TIDI) of a group, in bits; a branch with a group below is
        pruned as one with a group that is too small. Only where the tree's groups are what is released:
        ``generalization="uniform"`` and ``refine=False``. A measure of the paper's, and no promise of its own.
    refine : bool, default=True
        Whether groups (uniform) or leaves (tiered) of 2k rows and more are divided further along all quasi-identifiers,
        see :func:`sfumato.mechanisms.tree.groups.refine`; ``False`` is the paper's method.
    min_samples_leaf : int, default=2
        Of the unpruned tree, as in C4.5.
    criterion : {"auto", "entropy", "gain", "variance"}, default="auto"
        What the tree makes pure: classes or a number. ``entropy`` takes the split with the greatest gain ratio, as C4.5
        does, ``gain`` that with the greatest gain of information. ``auto`` takes variance for a numeric target with
        more than 20 values, entropy otherwise.
    targets : str or None
        Names of the columns to keep predictable, separated by commas; ``None`` takes the target. They must not be
        quasi-identifiers.
    guide : {"label", "score"}, default="label"
        What the tree makes pure, and what ``refine`` cuts by: labels, with penalty for the refinement, or scores of the
        targets by models that did not see the row, as with Mondrian's ``split="score"``; see
        :mod:`sfumato.mechanisms.score_guide`. Scores need the whole table or its distinct rows in memory.
    splits : {"binary", "multiway"}, default="binary"
        How the tree splits a categorical column: one value against the rest, several times if need be, or into all its
        values at once, which is C4.5's way. One rare value of many takes a whole multiway split away when it is pruned.
        A column of more than 100 values is split into all of them in either case.
    privacy : sequence of Guarantee
        What holds for the sensitive column in every group, as of
        :class:`sfumato.mechanisms.mondrian.mechanism.Mondrian`. Only with ``generalization="uniform"`` and the whole
        table in memory. A branch with a group that violates one is pruned as one with a group that is too small.

    Attributes
    ----------
    tree_ : Tree
        The unpruned tree, without what ``refine`` adds.
    group_of_leaf_ : ndarray of int32
        Node of the pruned tree that each leaf of the unpruned one belongs to.
    disclosure_ : dict
        BIG, ICR, TIDI and error-risk ratios, see :func:`sfumato.mechanisms.tree.disclosed.disclosure_evidence`.

    Notes
    -----
    A row with a missing value goes to the heavier side of a split on it. The tree is grown on the distinct rows, each
    with the number of rows that it stands for, so it needs no more of a file than these.

    **Deviations.** See ``docs/papers/tree.md``: which branches are pruned, which rows small leaves share, and the name
    of what results.

    References
    ----------
    .. [ERP19] Yang, Wang, Hu, Li: A Decision Tree Approach for Assessing and Mitigating Background and Identity
       Disclosure Risks. ICIS 2019.

    Examples
    --------
    >>> from sfumato.datasets.admissions import admissions
    >>> release = ErrorRiskTree(k=5).release(admissions(n_rows=200))
    >>> [guarantee.kind for guarantee in release.manifest.promised()]
    ['kk-anonymity', 'global-anonymity']
    """

    mechanism_name: ClassVar[str] = "error-risk-tree"
    counts_persons: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs.COUNTS_OR_SAMPLE
    parameter_specs: ClassVar[Mapping[str, ParameterSpec]] = {
        "k": ParameterSpec("rows of a group", at_least=2),
        "generalization": ParameterSpec("tiered: finer cells; uniform: k-anonymity"),
        "rule": ParameterSpec("branches to prune: only those that must go, these and more by ω, or the paper's rule"),
        "max_added_error": ParameterSpec(
            "error that rule=ratio may add, as a share of one group's", at_least=0, only_with={"rule": "ratio"}
        ),
        "min_disclosure_bits": ParameterSpec(  # parts of a group, as of refined or tiered cells, could have fewer bits
            "least TIDI of a group in bits; uniform cells without refine only",
            at_least=0,
            only_with={"generalization": "uniform", "refine": False},
        ),
        "refine": ParameterSpec("divide large groups further along all columns; false: the paper's method"),
        "min_samples_leaf": ParameterSpec("rows of a leaf before pruning", at_least=1),
        "criterion": ParameterSpec("entropy (gain ratio, as C4.5) or plain gain for classes, variance for numbers"),
        "targets": ParameterSpec(
            "columns to keep predictable, separated by commas (default: the target)",
            stated={"oneOf": [NOTHING, COLUMNS, list_of(COLUMNS)]},
        ),
        "guide": ParameterSpec("grow and refine by labels, or by predicted scores of the target"),
        "splits": ParameterSpec("split a categorical column one value against the rest, or into all its values"),
    }
    searches: ClassVar[tuple[SearchedBy, ...]] = (SearchedBy.VALUES,)
    asked_only_with: ClassVar[Mapping[str, Any]] = {"generalization": "uniform"}

    def __init__(
        self,
        k: int = 5,
        generalization: Literal["tiered", "uniform"] = "tiered",
        rule: Literal["lowest", "ratio", "literal"] = "lowest",
        refine: bool = True,
        min_samples_leaf: int = 2,
        criterion: Literal["auto", "entropy", "gain", "variance"] = "auto",
        targets: str | None = None,
        guide: Literal["label", "score"] = "label",
        splits: Literal["binary", "multiway"] = "binary",
        max_added_error: float = 0.0,
        min_disclosure_bits: float | None = None,
        privacy: Sequence[Guarantee] = (),
    ) -> None:
        self.k = k
        self.generalization = generalization
        self.rule = rule
        self.refine = refine
        self.min_samples_leaf = min_samples_leaf
        self.criterion = criterion
        self.targets = targets
        self.guide = guide
        self.splits = splits
        self.max_added_error = max_added_error
        self.min_disclosure_bits = min_disclosure_bits
        self.privacy = privacy

    def parameters(self) -> dict[str, Any]:
        """Parameters for the manifest; newer ones only where they count, so that releases without them stay equal."""
        counts = {
            "guide": self.guide != "label",
            "max_added_error": self.rule == "ratio",
            "min_disclosure_bits": self.min_disclosure_bits is not None,
        }
        return {name: value for name, value in super().parameters().items() if counts.get(name, True)}

    def remarks(self) -> dict[str, str]:
        """Say so where nothing of the tree is left: the groups then owe nothing to the target."""
        owes_nothing = self.group_of_leaf_[0] == 0 if self.generalization == "uniform" else self.tree_.n_nodes == 1
        return self._remarks(bool(owes_nothing))

    def _remarks(self, owes_nothing: bool) -> dict[str, str]:
        if not owes_nothing:
            return {}
        by = "by the scores alone" if self.guide == "score" else "by the penalty alone, whatever the target"
        groups = f"rows were divided {by}, as mondrian does" if self.refine else "all rows are one group"
        return {"tree": f"no split of the tree is left at this k: {groups}"}

    def further_evidence(self) -> dict[str, Any]:
        """Say what the groups disclose, and whether they are those that are released."""
        if self.generalization == "tiered":
            groups = "those of the tree; tiered cells keep its leaves apart"
        elif self.refine:
            groups = "those of the tree, which were divided further before release"
        else:
            groups = "those that are released"
        return {"disclosure": {**self.disclosure_, "groups_are": groups}}

    def _pruned(
        self,
        tree: Tree,
        columns: Sequence[TreeColumn],
        criterion: Criterion,
        is_allowed: NDArray[np.bool_] | None = None,
    ) -> tuple[PrunedTree, dict[str, Any]]:
        """Prune by the parameters, and say what that does to disclosure."""
        risk = error_risk(tree, columns, criterion)
        pruned = prune_by_error_risk(
            tree,
            columns,
            criterion,
            self.size,
            rule=self.rule,
            is_allowed=is_allowed,
            min_bits=self.min_disclosure_bits,
            max_added_error=float(self.max_added_error),
            risk=risk,
        )
        return pruned, disclosure_evidence(tree, risk, pruned)

    def guarantees(self, table: Table) -> list[Guarantee]:
        """Promise k-anonymity of uniform cells, with more on request, or (k,k)- and global (1,k)-anonymity.

        Where persons have several rows, k counts persons as well.
        """
        columns = table.schema.names(Role.QUASI_IDENTIFIER)
        if self.generalization == "uniform":
            crowds, promised = person_crowds(table, self.size, columns), Requested.of(self).of_one_column(table)
            by_persons = promised_by_persons(promised, crowds[0].unit) if crowds else promised
            return [KAnonymity(self.size, columns), *crowds, *by_persons]
        k = self.size
        of_rows: list[Guarantee] = [KKAnonymity(k, columns), GlobalAnonymity(k, columns)]
        if person_codes(table) is None:
            return of_rows
        return [*of_rows, *(replace(own, unit=table.schema.person or ROW) for own in of_rows)]

    def recode(self, table: Table, *, progress: Progress | None = None) -> Recoding:
        """Grow, prune and cover; keeps the tree in ``tree_``."""
        self._check_parameters()
        table = self._checked(table)
        if isinstance(table, CountedTable):
            self._check_needs_no_rows()
        targets = Targets.of(table, self.criterion, self.targets)
        promised = Requested.of(self).of_one_column(table)
        sensitive = {guarantee.sensitive: None for guarantee in promised}
        quasi = table.schema.names(Role.QUASI_IDENTIFIER)
        persons = None if isinstance(table, CountedTable) else person_codes(table)
        if persons is not None:
            return self._recoded_by_persons(table, persons, targets, promised, progress)
        cells, cell_of_row = _distinct_rows(table, (*quasi, *targets.names, *sensitive))
        axes = self._axes(cells)
        guide = ScoreGuide.of(cells, axes, self.criterion, self.targets) if self.guide == "score" else None
        criterion = targets.criterion if guide is None else guide.criterion
        statistics = targets.statistics_of(cells) if guide is None else guide.statistics
        tree = self._grown(axes, criterion, statistics, progress)
        columns = [axis.as_tree_column() for axis in axes]
        leaf_of_cell = route(tree, columns)
        limits = [_on_cells(limit, cell_of_row) for limit in limits_of(table, promised)]
        allowed = [_allowed_nodes(tree, leaf_of_cell, cells.row_counts, limit) for limit in limits]
        is_allowed = np.logical_and.reduce(allowed) if allowed else None
        pruned, self.disclosure_ = self._pruned(tree, columns, criterion, is_allowed)
        groups = pruned.group_of_leaf
        self.tree_, self.group_of_leaf_ = tree, groups
        if self.generalization == "tiered":
            grouped, own = _Grouped(tree, groups, leaf_of_cell[cell_of_row]), self._axes(table)
            scored = None if guide is None else guide.of_rows(cell_of_row, cells.row_counts)
            return self._covered(grouped, own, None, progress, guide=scored)
        grouped = _Grouped(tree, groups, leaf_of_cell)
        return self._covered(grouped, axes, cell_of_row, progress, guide=guide, limits=limits)

    def _recoded_by_persons(
        self,
        table: Table,
        persons: Ids,
        targets: Targets,
        promised: Sequence[AboutValues],
        progress: Progress | None,
    ) -> Recoding:
        """Grow, prune and cover row by row, where persons have several: groups are those of at least k persons."""
        k = self.size
        check_persons(persons, k)
        limits = limits_of(table, promised)
        for limit in limits:
            limit.check_all_rows()
        axes = self._axes(table)
        guide = ScoreGuide.of(table, axes, self.criterion, self.targets) if self.guide == "score" else None
        criterion = targets.criterion if guide is None else guide.criterion
        statistics = targets.statistics_of(table) if guide is None else guide.statistics
        tree = self._grown(axes, criterion, statistics, progress)
        columns = [axis.as_tree_column() for axis in axes]
        leaf_of_row = route(tree, columns)
        is_allowed = nodes_allowed_by_persons(tree, leaf_of_row, k, persons, limits)
        pruned, self.disclosure_ = self._pruned(tree, columns, criterion, is_allowed)
        self.tree_, self.group_of_leaf_ = tree, pruned.group_of_leaf
        grouped = _Grouped(tree, pruned.group_of_leaf, leaf_of_row)
        return self._covered(grouped, axes, None, progress, guide=guide, limits=limits, persons=persons)

    def counted_columns(self, schema: Schema) -> tuple[str, ...]:
        """Columns whose combinations decide the groups: what :meth:`release_cells` needs counted together.

        Raises
        ------
        InvalidParameterError
            If cells are tiered: which row lends is decided row by row.
        """
        self._check_parameters()
        self._check_needs_no_rows()
        targets = named_targets(self.targets) or schema.names(Role.TARGET)
        return tuple(dict.fromkeys([*schema.names(Role.QUASI_IDENTIFIER), *(schema[name].name for name in targets)]))

    def counted_beside(self, schema: Schema) -> tuple[str, ...]:
        """Columns that are counted with each quasi-identifier by itself: none."""
        return ()

    def occurring_columns(self, schema: Schema) -> tuple[str, ...]:
        """Columns of which it must be known which values occur in each combination: none."""
        return ()

    def release_cells(
        self, cells: CountedTable, *, progress: Progress | None = None
    ) -> tuple[Release, NDArray[np.bool_]]:
        """Release distinct rows that were counted; says as well that all of them are released."""
        return self.release(cells, progress=progress), np.ones(len(cells.row_counts), dtype=np.bool_)

    def release_by_sample(
        self,
        whole: Table,
        sample: Block,
        blocks: Callable[[str], Iterable[Block]],
        seed: int,
        *,
        progress: Progress | None = None,
    ) -> tuple[Release, CoveredGroups]:
        """Grow the tree on a sample, and prune it and cover its groups by all rows.

        Parameters
        ----------
        whole : Table
            Every column by itself, with all of its values.
        sample : mapping of str to codes
            Rows of the columns of :meth:`counted_columns`.
        blocks : callable
            Starts a pass over all rows of these columns; told what it is for.
        seed : int
            Of the sample, to be written down.

        Returns
        -------
        release : Release
            Its table holds the groups with their sizes.
        groups : CoveredGroups
            Tells the group of every row.
        """
        self._check_parameters()
        self._check_needs_no_rows()
        if self.guide == "score":
            allowed = "label where the tree is grown on a sample; scores need all distinct rows"
            hint = "choose guide=label, or hold the table in memory"
            raise InvalidParameterError("guide", "got 'score'", allowed=allowed, hint=hint, remedy=("parameters",))
        whole, k = self._checked(whole), self.size
        names, targets = whole.schema.names(Role.QUASI_IDENTIFIER), Targets.of(whole, self.criterion, self.targets)
        values = ValueAxes.of_table(whole, names)
        own = targets.statistics([sample[name] for name in targets.names])
        grown = SampledTree(self._grown(values.of(sample), targets.criterion, own, progress), values)
        pruned = grown.pruned(
            blocks("rows counted in the tree"), targets, k, self._pruned, sample, refined=bool(self.refine)
        )
        self.disclosure_ = dict(pruned.disclosure)
        groups = pruned.covered(blocks("rows counted in groups"), k)
        counted = replace(CountedTable.of(whole, (), (), groups.sizes), together=names)
        released = with_cells(counted, values.axes, groups.cells, np.arange(len(groups.sizes), dtype=np.int32))
        alike = rows_alike(groups.cells, groups.sizes)
        utility = {
            "global_certainty_penalty": certainty_penalty_of(groups.cells, groups.sizes),
            "n_classes_of_cells": len(alike),
            "grown_on_rows": len(own),
            "of_rows": whole.n_rows,
            **self._remarks(pruned.is_cut_to_root),
        }
        return self._drafted(whole, released, values.axes, utility, anonymity_level(alike), seed), groups

    def _grown(
        self, axes: Sequence[Axis], criterion: Criterion, statistics: NDArray[np.float64], progress: Progress | None
    ) -> Tree:
        columns = [axis.as_tree_column() for axis in axes]
        least = int(self.min_samples_leaf)
        ways: list[SplitWays] = [self.splits if c.n_values <= MOST_SPLIT_OFF else "multiway" for c in columns]
        return grow(columns, statistics, criterion, min_leaf=least, missing="heaviest", splits=ways, progress=progress)

    def _covered(
        self,
        grouped: _Grouped,
        axes: tuple[Axis, ...],
        entry_of_row: NDArray[np.intp] | None,
        progress: Progress | None,
        *,
        guide: ScoreGuide | None = None,
        limits: Sequence[Limit] = (),
        persons: Ids | None = None,
    ) -> Recoding:
        is_tiered, k = self.generalization == "tiered", self.size
        find: Callable[[Sequence[Axis]], NodeIds] = grouped.leaves_of
        if self.refine:
            start = grouped.leaf_of_row if is_tiered else grouped.group_of_row
            refined = refine(
                grouped.tree,
                start,
                axes,
                k,
                guide=guide,
                limits=limits,
                persons=persons,
                progress=progress,
            )
            grouped, find = grouped.refined(refined, leaves_are_groups=not is_tiered), refined.leaves_of
        own = grouped.tree, grouped.leaf_of_row, grouped.group_of_leaf, axes, k
        if is_tiered and persons is not None:
            cover = tiered_cover_by_persons(*own, persons, progress=progress)
        elif is_tiered:
            cover = tiered_cover(*own, progress=progress)
        else:
            cover = uniform_cover(grouped.leaf_of_row, grouped.group_of_leaf)
        part_of_leaf = np.full(grouped.tree.n_nodes, LEAF, dtype=np.int32)
        part_of_leaf[grouped.leaf_of_row] = cover.home
        return Recoding(axes, cover, _PartsOfLeaves(part_of_leaf, find), entry_of_row)

    def _check_needs_no_rows(self) -> None:
        if self.generalization == "tiered":
            allowed = "uniform for tables larger than memory; tiered cells share rows one by one"
            hint = "choose generalization=uniform, or hold the table in memory"
            raise InvalidParameterError(
                "generalization", "got 'tiered'", allowed=allowed, hint=hint, remedy=("parameters",)
            )
        for own in Requested.of(self).about:
            name = own.level.name
            allowed = "left out for tables larger than memory, whose sensitive values are not counted with the groups"
            hint = "use gain-recoding or global-recoding, or hold the table in memory"
            raise InvalidParameterError(
                name, f"got {getattr(own, name)!r}", allowed=allowed, hint=hint, remedy=("parameters",)
            )

    def _check_parameters(self) -> None:
        self.check_parameters("generalization", "rule", "criterion", "refine", "min_samples_leaf", "guide", "splits")
        if Requested.of(self).about and self.generalization == "tiered":
            allowed = "uniform where l, t, beta, delta or alpha is given; tiered cells are shared between groups"
            raise InvalidParameterError("generalization", "got 'tiered'", allowed=allowed, remedy=("parameters",))
        self.check_parameters("max_added_error", "min_disclosure_bits")


def _on_cells(limit: Limit, cell_of_row: NDArray[np.intp]) -> Limit:
    """Limit on distinct rows, which all rows together must keep."""
    limit.check_all_rows()
    of_cell = np.zeros(int(cell_of_row.max()) + 1, dtype=np.int32)
    of_cell[cell_of_row] = limit.codes
    return replace(limit, codes=of_cell)


def _allowed_nodes(tree: Tree, leaf_of_cell: Ids, row_counts: NDArray[np.int64], limit: Limit) -> NDArray[np.bool_]:
    """Whether the sensitive values of the rows in each node keep a limit."""
    key = leaf_of_cell.astype(np.int64) * limit.n_values + limit.codes
    counts = np.bincount(key, row_counts, tree.n_nodes * limit.n_values).astype(np.float64)
    return limit.keeps(_summed_up(tree, counts.reshape(-1, limit.n_values)).astype(np.int64))


def _distinct_rows(table: Table, names: Sequence[str]) -> tuple[CountedTable, NDArray[np.intp]]:
    """Distinct rows of some columns with their counts, and which one each row is."""
    if isinstance(table, CountedTable):
        return table, np.arange(len(table.row_counts))
    columns = tuple(dict.fromkeys(names))
    key, span = np.zeros(table.n_rows, dtype=np.int64), 1
    for name in columns:
        n_values = table[name].n_distinct
        if span * n_values > _LARGEST_KEY:
            found, key = np.unique(key, return_inverse=True)
            span = len(found)
        key = key * n_values + table[name].codes
        span *= n_values
    _, first, cell_of_row, counts = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    codes = [table[name].codes[first] for name in columns]
    return CountedTable.of(table.keep(columns), columns, codes, counts), cell_of_row


@dataclass(frozen=True, eq=False, repr=False)
class _Grouped:
    """A tree, the group node of each of its leaves, and the leaf of each row."""

    tree: Tree
    group_of_leaf: NodeIds
    leaf_of_row: NodeIds

    @property
    def group_of_row(self) -> NodeIds:
        return np.asarray(self.group_of_leaf[self.leaf_of_row])

    def leaves_of(self, axes: Sequence[Axis]) -> NodeIds:
        return route(self.tree, [axis.as_tree_column() for axis in axes])

    def refined(self, by: RefinedTree, *, leaves_are_groups: bool) -> _Grouped:
        group_of_leaf = np.full(by.tree.n_nodes, LEAF, dtype=np.int32)
        group_of_leaf[by.leaf_of_row] = by.leaf_of_row if leaves_are_groups else self.group_of_row
        return _Grouped(by.tree, group_of_leaf, by.leaf_of_row)


@dataclass(frozen=True, eq=False, repr=False)
class _PartsOfLeaves:
    """Part that new rows fall into; an object, because a fitted recoder may be pickled."""

    part_of_leaf: Ids
    leaves_of: Callable[[Sequence[Axis]], NodeIds]

    def __call__(self, new: Sequence[Axis]) -> Ids:
        return np.asarray(self.part_of_leaf[self.leaves_of(new)])


_PAPER: Mapping[str, list[Any]] = {"rule": ["literal"], "refine": [False]}  # the method as [ERP19]_ describes it
DECLARATION = MechanismInfo(
    ErrorRiskTree,
    why="keeps what a classifier needs for the target: groups are leaves of a decision tree; keeps all rows",
    promises="(k,k)- and global (1,k)-anonymity (tiered), or k-anonymity (uniform; with l-diversity, t-closeness, "
    "β-likeness, δ-disclosure privacy and (α,k)-anonymity on request), of ranges and sets of values",
    compared=Compared(
        (
            *combinations({"k": [3, 5, 10, 20]}),
            *combinations({"k": [5, 10, 20], "generalization": ["uniform"]}),
            *combinations({"k": [10], "generalization": ["tiered", "uniform"], **_PAPER}),
        ),
        most_columns=200,
    ),
    guarantee="kk-anonymity",
    needs_target=lambda parameters: not parameters.get("targets"),
    kind_of=lambda parameters: "k-anonymity" if parameters.get("generalization") == "uniform" else "kk-anonymity",
    cost=2.0,
    protects_one=True,
)
