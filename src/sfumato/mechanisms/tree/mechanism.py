"""Error-risk pruned decision trees with tiered or uniform generalization, as a mechanism."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError
from sfumato.guarantees import ROW, GlobalAnonymity, Guarantee, KAnonymity, KKAnonymity, SearchedBy
from sfumato.guarantees.forms import COLUMNS, NOTHING, list_of
from sfumato.learning.c45.criteria import Criterion
from sfumato.learning.c45.grow import grow
from sfumato.learning.c45.splits import SplitWays, Tally
from sfumato.learning.c45.tree import LEAF, Ids, Tree, TreeColumn, route
from sfumato.measures.anonymity import anonymity_level
from sfumato.mechanisms.axes import Axis
from sfumato.mechanisms.base import Compared, MechanismInfo, Needs, Release, combinations
from sfumato.mechanisms.constraints import Limit, check_persons, limits_of
from sfumato.mechanisms.recoder import (
    Recoder,
    Recoding,
    distinct_rows,
)
from sfumato.mechanisms.requested import Requested, person_crowds, promised_by_persons
from sfumato.mechanisms.sampled_groups import (
    Block,
    CoveredGroups,
    SampledTree,
    ValueAxes,
    not_from_a_sample,
    rows_in_a_sample,
    summed_up,
)
from sfumato.mechanisms.score_guide import ScoreGuide, stated_sample
from sfumato.mechanisms.tree.disclosed import disclosure_evidence
from sfumato.mechanisms.tree.error_risk import PrunedTree, error_risk, prune_by_error_risk
from sfumato.mechanisms.tree.groups import RefinedTree, nodes_allowed_by_persons, refine
from sfumato.mechanisms.tree.targets import Targets, named_targets
from sfumato.mechanisms.tree.tiered import tiered_cover, uniform_cover
from sfumato.parameters import ParameterSpec
from sfumato.progress import Progress
from sfumato.schema import Role, Schema
from sfumato.table.coding import Table
from sfumato.table.persons import person_codes
from sfumato.table.weighted import CountedTable

NodeIds = NDArray[np.int32]
MOST_SPLIT_OFF = 100
"""Values of a column from which single ones are split off; with more, a tree could be as deep as there are values."""


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

    def remarks(self) -> dict[str, Any]:
        """Say so where no split of the tree is left, as groups then owe nothing to the target; and what was scored."""
        owes_nothing = self.group_of_leaf_[0] == 0 if self.generalization == "uniform" else self.tree_.n_nodes == 1
        scored = stated_sample(int(self.recoding_.rows_alike.sum())) if self.guide == "score" else {}
        return {**self._remarks(bool(owes_nothing)), **scored}

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
        targets = Targets.of(table, self.criterion, self.targets)
        promised = Requested.of(self).of_one_column(table)
        if isinstance(table, CountedTable) and self.generalization == "tiered":
            problem, allowed = "got 'tiered'", "uniform for distinct rows; tiered cells share rows one by one"
            raise InvalidParameterError("generalization", problem, allowed=allowed, remedy=("parameters",))
        persons = None if isinstance(table, CountedTable) else person_codes(table)
        cells, cell_of_row, weights = table, None, None
        if persons is None:
            counted, cell_of_row = distinct_rows(table, self.counted_columns(table.schema))
            cells, weights = counted, counted.row_counts
        else:  # persons of equal rows do not add up: every row counts by itself
            check_persons(persons, self.size)
        axes = self._axes(cells)
        guide = ScoreGuide.of(cells, axes, self.criterion, self.targets) if self.guide == "score" else None
        criterion = targets.criterion if guide is None else guide.criterion
        statistics = targets.statistics_of(cells) if guide is None else guide.statistics
        tree = self._grown(axes, criterion, statistics, progress)
        columns = [axis.as_tree_column() for axis in axes]
        leaf_of_cell = route(tree, columns)
        limits = limits_of(cells, promised)
        for limit in limits:
            limit.check_all_rows(weights)
        is_allowed = (
            _nodes_that_keep(limits, tree, leaf_of_cell, weights)
            if persons is None
            else nodes_allowed_by_persons(tree, leaf_of_cell, self.size, persons, limits)
        )
        pruned, self.disclosure_ = self._pruned(tree, columns, criterion, is_allowed)
        self.tree_, self.group_of_leaf_ = tree, pruned.group_of_leaf
        # distinct rows are enough to grow and prune, but each row lends by itself
        if cell_of_row is not None and weights is not None and self.generalization == "tiered":
            axes, leaf_of_cell = self._axes(table), leaf_of_cell[cell_of_row]
            guide = None if guide is None else guide.of_rows(cell_of_row, weights)
            cell_of_row = None
        grouped = _Grouped(tree, pruned.group_of_leaf, leaf_of_cell)
        return self._covered(grouped, axes, cell_of_row, progress, guide=guide, limits=limits, persons=persons)

    def counted_columns(self, schema: Schema) -> tuple[str, ...]:
        """Columns whose combinations decide the groups: what :meth:`release_cells` needs counted together."""
        self._check_parameters()
        targets = named_targets(self.targets) or schema.names(Role.TARGET)
        beside = (*(schema[name].name for name in targets), *Requested.of(self).columns(schema))
        return tuple(dict.fromkeys([*schema.names(Role.QUASI_IDENTIFIER), *beside]))

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
        if self.guide == "score":
            allowed = "label where the tree is grown on a sample; scores need all distinct rows"
            hint = "choose guide=label, or hold the table in memory"
            raise InvalidParameterError("guide", "got 'score'", allowed=allowed, hint=hint, remedy=("parameters",))
        for asked in Requested.of(self).about:
            raise not_from_a_sample(asked)
        whole, k = self._checked(whole), self.size
        names, targets = whole.schema.names(Role.QUASI_IDENTIFIER), Targets.of(whole, self.criterion, self.targets)
        values = ValueAxes.of_table(whole, names)
        own = targets.statistics([sample[name] for name in targets.names])
        grown = self._grown(values.of(sample), targets.criterion, own, progress)
        counted = _counted(SampledTree(grown, values), blocks("rows counted in the tree"), targets)
        columns = [axis.as_tree_column() for axis in values.axes]
        pruned, self.disclosure_ = self._pruned(counted, columns, targets.criterion)
        found = SampledTree(_cut(grown, pruned.group_of_leaf), values)
        if self.refine:
            of_row = pruned.group_of_leaf[SampledTree(grown, values).leaves_of(sample)]
            least = min(rows_in_a_sample(k, len(own) / whole.n_rows), len(own))
            refined = refine(grown, of_row, values.of(sample), least)
            found = SampledTree(refined.tree, values, refined.columns)
        groups = found.covered(blocks("rows counted in groups"), k)
        utility = self._remarks(bool(pruned.group_of_leaf[0] == 0)) | groups.figures(len(own))
        level = anonymity_level(groups.rows_alike)
        return self._drafted(whole, groups.released(whole), groups.axes, utility, level, seed), groups

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
        if is_tiered:
            cover = tiered_cover(*own, persons=persons, progress=progress)
        else:
            cover = uniform_cover(grouped.leaf_of_row, grouped.group_of_leaf)
        part_of_leaf = np.full(grouped.tree.n_nodes, LEAF, dtype=np.int32)
        part_of_leaf[grouped.leaf_of_row] = cover.home
        return Recoding(axes, cover, _PartsOfLeaves(part_of_leaf, find), entry_of_row)

    def why_all_rows(self, schema: Schema) -> str:
        """Tiered cells share rows one by one."""
        return "tiered cells (generalization = tiered) need" if self.generalization == "tiered" else ""

    def _check_parameters(self) -> None:
        self.check_parameters("generalization", "rule", "criterion", "refine", "min_samples_leaf", "guide", "splits")
        if Requested.of(self).about and self.generalization == "tiered":
            allowed = "uniform where l, t, beta, delta or alpha is given; tiered cells are shared between groups"
            raise InvalidParameterError("generalization", "got 'tiered'", allowed=allowed, remedy=("parameters",))
        self.check_parameters("max_added_error", "min_disclosure_bits")


def _nodes_that_keep(
    limits: Sequence[Limit], tree: Tree, leaf_of_cell: Ids, row_counts: NDArray[np.int64] | None
) -> NDArray[np.bool_] | None:
    """Whether the sensitive values of the rows in each node keep all limits; ``None`` where there are none."""
    allowed = []
    for limit in limits:
        key = leaf_of_cell.astype(np.int64) * limit.n_values + limit.codes
        counts = np.bincount(key, row_counts, tree.n_nodes * limit.n_values).astype(np.float64)
        allowed.append(limit.keeps(summed_up(tree, counts.reshape(-1, limit.n_values)).astype(np.int64)))
    return np.logical_and.reduce(allowed) if allowed else None


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


def _counted(grown: SampledTree, blocks: Iterable[Block], targets: Targets) -> Tree:
    """Count all rows: the tree with the weights and statistics of the table in the place of the sample's."""
    tree = grown.tree
    statistics = np.zeros((tree.n_nodes, targets.criterion.n_statistics))
    for block in blocks:
        own = targets.statistics([np.asarray(block[name]) for name in targets.names])
        statistics += Tally.from_statistics(own).table(grown.leaves_of(block).astype(np.int64), len(statistics))
    statistics = summed_up(tree, statistics)
    return replace(tree, weights=targets.criterion.weight(statistics), statistics=statistics)


def _cut(tree: Tree, group_of: Ids) -> Tree:
    """Make leaves of groups."""
    is_group = group_of == np.arange(tree.n_nodes)
    attribute, first_child = (np.where(is_group, np.int32(LEAF), kept) for kept in (tree.attribute, tree.first_child))
    n_children = np.where(is_group, np.int32(0), tree.n_children)
    return replace(tree, attribute=attribute, first_child=first_child, n_children=n_children)


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
