"""Error-risk pruned decision trees with tiered or uniform generalization, as a mechanism."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.contract import Compared, MechanismInfo, Needs, ParameterSpec, Progress, Release, combinations
from sfumato.errors import InvalidParameterError
from sfumato.guarantees import GlobalAnonymity, Guarantee, KAnonymity, KKAnonymity
from sfumato.learning.grow import grow
from sfumato.learning.tree import LEAF, Tree, route
from sfumato.recoding.axes import Axis
from sfumato.recoding.base import (
    Recoder,
    Recoding,
    anonymity_level_of,
    certainty_penalty_of,
    with_cells,
)
from sfumato.recoding.pruning import prune_by_error_risk
from sfumato.recoding.refine import RefinedTree, refine
from sfumato.recoding.sampled_tree import Block, CoveredGroups, SampledTree, ValueAxes
from sfumato.recoding.targets import Targets, named_targets
from sfumato.recoding.tiered import tiered_cover, uniform_cover
from sfumato.schema import Role, Schema
from sfumato.table.coding import Table
from sfumato.table.weighted import CountedTable

Ids = NDArray[np.int32]
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
    needs: ClassVar[Needs] = Needs.COUNTS_OR_SAMPLE
    parameter_specs: ClassVar[Mapping[str, ParameterSpec]] = {
        "k": ParameterSpec("rows of a group", at_least=2),
        "generalization": ParameterSpec("tiered: finer cells; uniform: k-anonymity"),
        "rule": ParameterSpec("branches that may be pruned: lowest first, or the paper's rule"),
        "refine": ParameterSpec("divide large groups further along all columns; false: the paper's method"),
        "min_samples_leaf": ParameterSpec("rows of a leaf before pruning", at_least=1),
        "criterion": ParameterSpec("entropy for classes, variance for numbers"),
        "targets": ParameterSpec("columns to keep predictable, by commas (default: the target)"),
    }

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
        if isinstance(table, CountedTable):
            self._check_needs_no_rows()
        targets = Targets.of(table, self.criterion, self.targets)
        cells, cell_of_row = _distinct_rows(table, (*table.schema.names(Role.QUASI_IDENTIFIER), *targets.names))
        axes = self._axes(cells)
        tree = self._grown(axes, targets, targets.statistics_of(cells), progress)
        columns = [axis.as_tree_column() for axis in axes]
        groups = prune_by_error_risk(tree, columns, targets.criterion, int(self.k), rule=self.rule).group_of_leaf
        self.tree_, self.group_of_leaf_ = tree, groups
        leaf_of_cell = route(tree, columns)
        if self.generalization == "tiered":
            return self._covered(_Grouped(tree, groups, leaf_of_cell[cell_of_row]), self._axes(table), None, progress)
        return self._covered(_Grouped(tree, groups, leaf_of_cell), axes, cell_of_row, progress)

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
        whole, k = self._checked(whole), int(self.k)
        names, targets = whole.schema.names(Role.QUASI_IDENTIFIER), Targets.of(whole, self.criterion, self.targets)
        values = ValueAxes.of_table(whole, names)
        own = targets.statistics([sample[name] for name in targets.names])
        grown = SampledTree(self._grown(values.of(sample), targets, own, progress), values)
        pruned = grown.pruned(
            blocks("rows counted in the tree"), targets, k, self.rule, sample, refined=bool(self.refine)
        )
        groups = pruned.covered(blocks("rows counted in groups"), k)
        counted = replace(CountedTable.of(whole, (), (), groups.sizes), together=names)
        released = with_cells(counted, values.axes, groups.cells, np.arange(len(groups.sizes), dtype=np.int32))
        utility = {
            "global_certainty_penalty": certainty_penalty_of(groups.cells, groups.sizes),
            "n_classes_of_cells": len(groups.sizes),
            "grown_on_rows": len(own),
            "of_rows": whole.n_rows,
        }
        level = anonymity_level_of(groups.cells, groups.sizes)
        return self._drafted(whole, released, values.axes, utility, level, seed), groups

    def _grown(
        self, axes: Sequence[Axis], targets: Targets, statistics: NDArray[np.float64], progress: Progress | None
    ) -> Tree:
        columns = [axis.as_tree_column() for axis in axes]
        least = int(self.min_samples_leaf)
        return grow(columns, statistics, targets.criterion, min_leaf=least, missing="heaviest", progress=progress)

    def _covered(
        self,
        grouped: _Grouped,
        axes: tuple[Axis, ...],
        entry_of_row: NDArray[np.intp] | None,
        progress: Progress | None,
    ) -> Recoding:
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
        return Recoding(axes, cover, lambda new: part_of_leaf[find(new)], entry_of_row)

    def _check_needs_no_rows(self) -> None:
        if self.generalization == "tiered":
            allowed = "uniform for tables larger than memory; tiered cells share rows one by one"
            hint = "choose generalization=uniform, or hold the table in memory"
            raise InvalidParameterError(
                "generalization", "got 'tiered'", allowed=allowed, hint=hint, remedy=("parameters",)
            )

    def _check_parameters(self) -> None:
        self.check_parameters("generalization", "rule", "criterion", "refine", "min_samples_leaf")


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


DECLARATION = MechanismInfo(
    ErrorRiskTree,
    why="keeps what a classifier needs for the target: groups are the leaves of a decision tree; all rows are kept",
    promises="(k,k)- and global (1,k)-anonymity (tiered), or k-anonymity (uniform), of ranges and sets of values",
    compared=Compared(
        (
            *combinations({"k": [3, 5, 10, 20]}),
            *combinations({"k": [5, 10], "generalization": ["uniform"]}),
        ),
        most_columns=200,
    ),
    guarantee="kk-anonymity",
)
