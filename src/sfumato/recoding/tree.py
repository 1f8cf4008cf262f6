"""Error-risk pruned decision trees with tiered or uniform generalization, as a mechanism."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.contract import Compared, MechanismInfo, Parameter, Progress, combinations
from sfumato.errors import InvalidParameterError
from sfumato.guarantees import GlobalAnonymity, Guarantee, KAnonymity, KKAnonymity
from sfumato.learning.grow import grow
from sfumato.learning.tree import LEAF, Tree, route
from sfumato.recoding.axes import Axis
from sfumato.recoding.base import Recoder, Recoding, check_choices, check_truth_value
from sfumato.recoding.pruning import prune_by_error_risk
from sfumato.recoding.refine import RefinedTree, refine
from sfumato.recoding.targets import CRITERIA, target_criterion
from sfumato.recoding.tiered import tiered_cover, uniform_cover
from sfumato.schema import Role
from sfumato.table.coding import Table

Ids = NDArray[np.int32]
GENERALIZATIONS = ("tiered", "uniform")
RULES = ("lowest", "literal")


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
        (1,k)-anonymity instead of k-anonymity.
    rule : {"lowest", "literal"}, default="lowest"
        Which branches may be pruned: only those that have no undersized branch below them, or, as the paper's
        algorithm reads, any branch with an undersized leaf, which may take the root.
    refine : bool, default=True
        Whether groups (uniform) or leaves (tiered) of 2k rows and more are divided further along all quasi-identifiers,
        see :func:`sfumato.recoding.refine.refine`; ``False`` is the paper's method.
    min_samples_leaf : int, default=2
        Of the unpruned tree, as in C4.5.
    criterion : {"auto", "entropy", "variance"}, default="auto"
        What the tree makes pure: classes or a number. ``auto`` takes variance for a numeric target with more than 20
        values.
    targets : str or None
        Names of the columns to keep predictable, separated by commas; ``None`` takes the target. They must not be
        quasi-identifiers.

    Attributes
    ----------
    tree_ : Tree
        The unpruned tree, without what ``refine`` adds.
    group_of_leaf_ : ndarray of int32
        Node of the pruned tree that each leaf of the unpruned one belongs to.

    Notes
    -----
    A row with a missing value goes to the heavier side of a split on it.

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

    def __init__(
        self,
        k: int = 5,
        generalization: Literal["tiered", "uniform"] = "tiered",
        rule: Literal["lowest", "literal"] = "lowest",
        refine: bool = True,
        min_samples_leaf: int = 2,
        criterion: Literal["auto", "entropy", "variance"] = "auto",
        targets: str | None = None,
    ) -> None:
        self.k = k
        self.generalization = generalization
        self.rule = rule
        self.refine = refine
        self.min_samples_leaf = min_samples_leaf
        self.criterion = criterion
        self.targets = targets

    def guarantees(self, table: Table) -> list[Guarantee]:
        """Promise k-anonymity of uniform cells, (k,k)- and global (1,k)-anonymity of tiered ones."""
        columns = table.schema.names(Role.QUASI_IDENTIFIER)
        if self.generalization == "uniform":
            return [KAnonymity(int(self.k), columns)]
        return [KKAnonymity(int(self.k), columns), GlobalAnonymity(int(self.k), columns)]

    def recode(self, table: Table, *, progress: Progress | None = None) -> Recoding:
        """Grow, prune and cover; keeps the tree in ``tree_``."""
        self._check_parameters()
        table = self._checked(table)
        axes = self._axes(table)
        columns = [axis.as_tree_column() for axis in axes]
        criterion, target = target_criterion(table, self.criterion, self.targets)
        statistics = criterion.statistics(target)
        tree = grow(
            columns, statistics, criterion, min_leaf=int(self.min_samples_leaf), missing="heaviest", progress=progress
        )
        groups = prune_by_error_risk(tree, columns, criterion, int(self.k), rule=self.rule).group_of_leaf
        self.tree_, self.group_of_leaf_ = tree, groups
        return self._covered(_Grouped(tree, groups, route(tree, columns)), axes, progress)

    def _covered(self, grouped: _Grouped, axes: tuple[Axis, ...], progress: Progress | None) -> Recoding:
        is_tiered, k = self.generalization == "tiered", int(self.k)
        find: Callable[[Sequence[Axis]], Ids] = grouped.leaves_of
        if self.refine:
            start = grouped.leaf_of_row if is_tiered else grouped.group_of_row
            refined = refine(grouped.tree, start, axes, k, progress=progress)
            grouped, find = grouped.refined(refined, leaves_are_groups=not is_tiered), refined.leaves_of
        if is_tiered:
            cover = tiered_cover(grouped.tree, grouped.leaf_of_row, grouped.group_of_leaf, axes, k, progress=progress)
        else:
            cover = uniform_cover(grouped.leaf_of_row, grouped.group_of_leaf)
        part_of_leaf = np.full(grouped.tree.n_nodes, LEAF, dtype=np.int32)
        part_of_leaf[grouped.leaf_of_row] = cover.home
        return Recoding(axes, cover, lambda new: part_of_leaf[find(new)])

    def _check_parameters(self) -> None:
        check_choices(self, generalization=GENERALIZATIONS, rule=RULES, criterion=CRITERIA)
        check_truth_value("refine", self.refine)
        least = self.min_samples_leaf
        if isinstance(least, bool) or not isinstance(least, int | np.integer) or least < 1:
            raise InvalidParameterError("min_samples_leaf", f"got {least!r}", allowed="a whole number of at least 1")


@dataclass(frozen=True, eq=False, repr=False)
class _Grouped:
    """A tree, the group node of each of its leaves, and the leaf of each row."""

    tree: Tree
    group_of_leaf: Ids
    leaf_of_row: Ids

    @property
    def group_of_row(self) -> Ids:
        return np.asarray(self.group_of_leaf[self.leaf_of_row])

    def leaves_of(self, axes: Sequence[Axis]) -> Ids:
        return route(self.tree, [axis.as_tree_column() for axis in axes])

    def refined(self, by: RefinedTree, *, leaves_are_groups: bool) -> _Grouped:
        group_of_leaf = np.full(by.tree.n_nodes, LEAF, dtype=np.int32)
        group_of_leaf[by.leaf_of_row] = by.leaf_of_row if leaves_are_groups else self.group_of_row
        return _Grouped(by.tree, group_of_leaf, by.leaf_of_row)


MECHANISMS = (
    MechanismInfo(
        name=ErrorRiskTree.mechanism_name,
        build=ErrorRiskTree,
        why="keeps what a classifier needs for the target: groups are the leaves of a decision tree; all rows are kept",
        promises="(k,k)- and global (1,k)-anonymity (tiered), or k-anonymity (uniform), of ranges and sets of values",
        parameters=(
            Parameter("k", int, 5, "rows of a group"),
            Parameter("generalization", str, "tiered", "tiered: finer cells; uniform: k-anonymity", GENERALIZATIONS),
            Parameter("rule", str, "lowest", "branches that may be pruned: lowest first, or the paper's rule", RULES),
            Parameter("refine", bool, True, "divide large groups further along all columns; false: the paper's method"),
            Parameter("min_samples_leaf", int, 2, "rows of a leaf before pruning"),
            Parameter("criterion", str, "auto", "entropy for classes, variance for numbers", CRITERIA),
            Parameter("targets", str, None, "columns to keep predictable, by commas (default: the target)"),
        ),
        compared=Compared(
            (
                *combinations({"k": [3, 5, 10, 20]}),
                *combinations({"k": [5, 10], "generalization": ["uniform"]}),
            ),
            most_columns=200,
        ),
    ),
)
