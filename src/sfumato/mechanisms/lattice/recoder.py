"""Optimal global recoding: every quasi-identifier is taken to one level of its hierarchy, with the least loss."""

from __future__ import annotations

import copy
import os
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.cells import CellTable, cell_table
from sfumato.errors import ColumnNotFoundError, InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.guarantees import Guarantee, KAnonymity, SearchedBy
from sfumato.guarantees.anonymity import ROWS_AND_PERSONS
from sfumato.guarantees.forms import COLUMNS, NOTHING, list_of, named, number, word
from sfumato.manifest import AnyTable, draft_manifest
from sfumato.measures.loss import suppressed_fraction
from sfumato.mechanisms.axes import axes_of
from sfumato.mechanisms.base import Compared, Mechanism, MechanismInfo, Needs, Release, combinations, settings_of
from sfumato.mechanisms.hierarchies.automatic import hierarchy_for
from sfumato.mechanisms.hierarchies.files import read_hierarchy
from sfumato.mechanisms.hierarchies.hierarchy import Covered, Hierarchy, covered
from sfumato.mechanisms.lattice.base_levels import BaseLevels, LevelSteps, way_up
from sfumato.mechanisms.lattice.conditions import PrivacyGoal
from sfumato.mechanisms.lattice.lattice import LatticePeople, LatticeProblem, Levels, Places, check_suppression_limit
from sfumato.mechanisms.lattice.levels import (
    SUPPRESSED,
    LevelRecoding,
    counts_of_values,
    penalty_of,
    released_rows_of_values,
)
from sfumato.mechanisms.lattice.losses import LOSSES, SHARES_OF_CELLS, TARGET_LOSSES, column_weights
from sfumato.mechanisms.lattice.search import LatticeResult, look_at_levels, search_lattice
from sfumato.mechanisms.new_rows import RecodingTransformer
from sfumato.mechanisms.population import PopulationPromises
from sfumato.mechanisms.recoder import check_group_size
from sfumato.mechanisms.requested import Requested
from sfumato.mechanisms.time_limit import TimeLimit
from sfumato.parameters import ParameterSpec
from sfumato.progress import Progress
from sfumato.schema import WITHHELD, Role, Schema
from sfumato.table.coding import Table
from sfumato.table.weighted import CountedTable

# Local recoding on top of a global one: rows that it suppressed are recoded again among themselves.
#
# The suppressed cells are a table of their own. Of the nodes that release at least half of its rows (any of them, if
# no node releases half) in classes that satisfy the same goal, the least lossy one is taken; what that suppresses is
# searched again, until nothing more can be released. (The iterative local recoding of ARX: Prasser et al. 2020.)
# Classes of different rounds that happen to have equal labels only make larger classes, which satisfy the goal as
# well.


def regroup(
    problem: LatticeProblem, first: LatticeResult, max_seconds: float | None = None
) -> tuple[list[Levels], Places]:
    """Recode again what a global recoding suppressed, until nothing more can be released.

    Parameters
    ----------
    problem : LatticeProblem
    first : LatticeResult
        Of the problem.
    max_seconds : float or None
        Stop then: a round under way ends with the best node it found, and no further one begins. ``None``: no limit.

    Returns
    -------
    levels : list of levels
        Of each round; the first is the global recoding.
    rounds : int array
        Round in which each cell is released, -1 where it never is.

    Raises
    ------
    InvalidParameterError
        If a condition on classes depends on what else is released (t, β, δ): a further round would move the
        distribution that earlier rounds were compared with.
    """
    compared = [own.guarantee for own in problem.conditions if own.guarantee.compares_with_table]
    if compared:
        got = f"got {compared[0].in_short()}"
        raise InvalidParameterError("conditions", got, allowed="conditions on single classes to regroup rows")
    deadline = None if max_seconds is None else time.monotonic() + max_seconds
    levels, rounds = [first.levels], np.where(first.classes >= 0, 0, -1)
    while (found := _round(problem, left := np.flatnonzero(rounds < 0), deadline)) is not None:
        rounds[left[found.classes >= 0]] = len(levels)
        levels.append(found.levels)
    return levels, rounds


def _round(problem: LatticeProblem, cells: Places, deadline: float | None) -> LatticeResult | None:
    """Least lossy node of some cells that releases half of their rows, or else any of them; none if time is up."""
    n_rows = int(problem.counts[cells].sum())
    if n_rows < problem.k:
        return None
    part = replace(
        problem,
        codes=problem.codes[cells],
        counts=problem.counts[cells],
        sensitive=tuple(column[cells] for column in problem.sensitive),
        target=None if problem.target is None else problem.target[cells],
        limits_persons=False,
    )
    for max_suppressed_fraction in (0.5, (n_rows - 0.5) / n_rows):
        seconds = None if deadline is None else deadline - time.monotonic()
        if seconds is not None and seconds <= 0:
            return None
        try:
            return search_lattice(replace(part, max_suppressed_fraction=max_suppressed_fraction), seconds)
        except PrivacyNotAchievableError:
            continue
    return None


# Where the hierarchies of a table's columns come from: given, named in the schema, or built from the values.


def hierarchies_of(table: Table, names: Sequence[str], given: Mapping[str, Any] | None = None) -> list[Hierarchy]:
    """Hierarchy of each column, all of them ending in one label.

    Parameters
    ----------
    given : mapping of str to Hierarchy or path, or None
        Takes precedence over the file that the schema names. Columns with neither get one that is built from their
        values, categorical ones in view of the target.

    Raises
    ------
    ColumnNotFoundError
        If a hierarchy is given for a column that the table does not have.
    """
    known = dict(given or {})
    for name in known:
        if name not in table.schema:
            raise ColumnNotFoundError(name, table.schema.names(), where="the table, for which a hierarchy is given")
    return [_hierarchy(table, name, known.get(name, table.schema[name].hierarchy)).with_root() for name in names]


def _hierarchy(table: Table, name: str, source: object) -> Hierarchy:
    if source is None:
        return hierarchy_for(table, name, target=table.schema.target)
    if isinstance(source, Hierarchy):
        return source
    if isinstance(source, str | os.PathLike):
        return read_hierarchy(source)
    problem = f"got a {type(source).__name__} for '{name}'"
    raise InvalidParameterError("hierarchies", problem, allowed="Hierarchy objects or paths of hierarchy files")


N_SCORE_INTERVALS = 16
SEARCH_SHARE = 0.8
"""Share of the time for the levels; the rest is for suppressed rows, which gain more by it."""
LEAST_SECONDS = 0.5
"""Seconds that a search gets, if the limit is not less, where preparation took nearly all the time."""
HIERARCHIES = {"oneOf": [NOTHING, list_of(COLUMNS)]}
WEIGHTS = {"oneOf": [word("equal", "gain"), {**named(number(0, 10_000)), "names": "columns"}]}
"""How a manifest states hierarchies (which columns have one of the user's) and weights of columns."""
GOAL_PARAMETERS: Mapping[str, ParameterSpec] = {
    "k": ParameterSpec("rows of a class", at_least=2),
    "max_suppressed_fraction": ParameterSpec(
        "largest share of rows that may be left out, from 0 to 1", at_least=0, at_most=1, allowed="from 0 to 1"
    ),
}
"""What recoders that leave rows out keep to."""
SEARCH_PARAMETERS: Mapping[str, ParameterSpec] = {
    "hierarchies": ParameterSpec("files by column (default: the project's, else built)", stated=HIERARCHIES),
    "regroup": ParameterSpec("recode suppressed rows once more among themselves"),
    "max_seconds": ParameterSpec(
        "time for hierarchies, counting and search; then the best found so far is taken", above=0
    ),
}
"""How they search."""


class HierarchyRecoder(RecodingTransformer, Mechanism):
    """What recoders over hierarchies share: from a table to a lattice problem, and from levels to a release."""

    needs: ClassVar[Needs] = Needs.COUNTS
    counts_crowds: ClassVar[bool] = True
    takes_cells: ClassVar[bool] = True
    k: int
    privacy: Sequence[Guarantee]
    loss: str
    guide: Literal["label", "score"] = "label"
    weights: Literal["equal", "gain"] | Mapping[str, float]
    hierarchies: Mapping[str, Any] | None
    recoding_: LevelRecoding

    def columns(self, table: Table) -> tuple[str, ...]:
        """Columns that are recoded."""
        return table.schema.names(Role.QUASI_IDENTIFIER)

    def goal(self, table: Table) -> PrivacyGoal:
        """Conditions on every class of rows."""
        return PrivacyGoal.of(table, Requested.of(self))

    def check_k(self) -> None:
        """Refuse a size of classes that promises nothing, unless k-map is asked for instead."""
        if not PopulationPromises.of(self).allows_single_rows(self.k):
            self.check_parameters("k")

    def guarantees(self, table: Table) -> list[Guarantee]:
        """Promises over all quasi-identifiers."""
        promised = self.goal(table).guarantees(table.schema.names(Role.QUASI_IDENTIFIER))
        return [*promised, *PopulationPromises.of(self).guarantees(table)]

    @abstractmethod
    def find_levels(
        self, problem: LatticeProblem, limit: TimeLimit, progress: Progress | None
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Search level combinations; says as well at which one each cell is released, -1 where it is suppressed."""

    @abstractmethod
    def utility(self, table: Table, recoding: LevelRecoding, released: Table) -> dict[str, Any]:
        """Say what the recoding cost."""

    def time_limit(self) -> TimeLimit:
        """Begin to measure the time that a recoding may take; here without a limit."""
        return TimeLimit()

    def recode(
        self, table: AnyTable, *, progress: Progress | None = None, base: BaseLevels | None = None
    ) -> LevelRecoding:
        """Search the levels and recode the rows; with a base no level below it is looked at."""
        table = self.checked(table)
        limit = self.time_limit()
        names, goal = self.columns(table), self.goal(table)
        sources, fitted = self.fitted(table, names) if base is None else (base.hierarchies, base.fitted)
        if progress:
            progress(0, 1, "counting")
        problem, cells = self._problem(table, names, goal, fitted, base)
        levels, setting_of_cell = self.find_levels(problem, limit, progress)
        setting_of_row = setting_of_cell[cells.find(table.codes(cells.columns))]
        self.n_suppressed_ = int(cells.counts[setting_of_cell < 0].sum())
        penalty = penalty_of(cells, fitted, levels, setting_of_cell)
        described = tuple(table.schema[name] for name in names)
        counts = table.row_counts if isinstance(table, CountedTable) else None
        is_released = setting_of_row != SUPPRESSED
        if base is not None and base.rows_of_values is not None:
            rows_of_values = base.rows_of_values(is_released)
        else:
            rows_of_values = [released_rows_of_values(table[name], is_released) for name in names]
        kept = [counts_of_values(*parts) for parts in zip(sources, fitted, rows_of_values, strict=True)]
        self.recoding_ = LevelRecoding(described, sources, fitted, levels, setting_of_row, penalty, tuple(kept), counts)
        if progress:
            progress(1, 1, "recoded")
        return self.recoding_

    def fitted(self, table: Table, names: tuple[str, ...]) -> tuple[tuple[Hierarchy, ...], tuple[Covered, ...]]:
        """Hierarchies of columns, and each fitted to its column."""
        sources = tuple(hierarchies_of(table, names, self.hierarchies))
        return sources, tuple(
            covered(h, table[n], n, table.schema[n].kind, missing=table.schema.missing_tokens(n))
            for n, h in zip(names, sources, strict=True)
        )

    def ready_columns(self) -> dict[str, str]:
        """Columns that nobody gave a hierarchy and that got the ready one of a standard, with its name; once fitted."""
        done = getattr(self, "recoding_", None)
        if done is None:
            return {}
        pairs = zip(done.described, done.hierarchies, strict=True)
        given = self.hierarchies or {}
        return {
            column.name: hierarchy.standard
            for column, hierarchy in pairs
            if hierarchy.standard and column.hierarchy is None and column.name not in given
        }

    def release(self, table: AnyTable, *, progress: Progress | None = None) -> Release:
        """Recode the quasi-identifiers of a table, leave suppressed rows out and describe the result.

        Raises
        ------
        PrivacyNotAchievableError
            If no levels satisfy the goal within the suppression limit.
        """
        return self._release(table, progress)

    def _release(self, table: AnyTable, progress: Progress | None, base: BaseLevels | None = None) -> Release:
        table = self.checked(table)
        recoding = self.recode(table, progress=progress, base=base)
        kept = [c.name for c in table.schema if c.role not in WITHHELD]
        released = recoding.recoded(table).keep(kept).take(recoding.is_released)
        utility, unsearched = self.utility(table, recoding, released), base.statement if base is not None else ""
        if self.guide == "score":
            from sfumato.mechanisms.score_guide import stated_sample  # takes the family of trees with it

            utility |= stated_sample(table.n_rows)
        if unsearched:  # what the finest values tell is not known, and shares of less would flatter the release
            utility = {name: figure for name, figure in utility.items() if name not in SHARES_OF_CELLS}
        risk = self.risk(table, released)
        # hierarchies that are the user's: their labels may end at values that no row has
        coarsened = table.schema.names(Role.QUASI_IDENTIFIER)
        given = {*(self.hierarchies or ()), *(n for n in coarsened if table.schema[n].hierarchy is not None)}
        manifest = draft_manifest(
            table,
            released,
            mechanism=self.mechanism_name,
            parameters=self.parameters() | {"hierarchies": sorted(given) or None},
            guarantees=self.guarantees(table),
            evidence={
                "utility": utility,
                **({"risk": risk} if risk else {}),
                **({"search": {"method": unsearched, "proven": False}} if unsearched else {}),
            },
            suppressed_rows=recoding.n_suppressed,
            recodings=recoding.recodings(released),
        )
        return Release(released, manifest, kept_rows=np.flatnonzero(recoding.is_released))

    def counted_columns(self, schema: Schema) -> tuple[str, ...]:
        """Columns whose combinations decide the levels: what :meth:`release_cells` needs counted together."""
        beside = [schema.target] if schema.target and self.loss in TARGET_LOSSES else []
        beside += Requested.of(self).columns(schema)
        return tuple(dict.fromkeys([*schema.names(Role.QUASI_IDENTIFIER), *beside]))

    def counted_beside(self, schema: Schema) -> tuple[str, ...]:
        """Columns that are counted with each quasi-identifier by itself: the target, which guides hierarchies."""
        return (schema.target,) if schema.target else ()

    def occurring_columns(self, schema: Schema) -> tuple[str, ...]:
        """Columns of which it must be known which values occur in each combination, but not how often."""
        return ()

    def release_cells(
        self, cells: CountedTable, *, progress: Progress | None = None
    ) -> tuple[Release, NDArray[np.bool_]]:
        """Release distinct rows that were counted; says as well which of them are released, in their order."""
        return self.release(cells, progress=progress), self.recoding_.is_released

    def level_steps(self, outline: Table) -> LevelSteps:
        """Levels at which distinct rows may be counted where those of the values do not fit, finest first.

        Parameters
        ----------
        outline : Table
            Every column by itself, with the values of :meth:`counted_beside` counted two by two.
        """
        names = self.columns(self.checked(outline))
        hierarchies, fitted = self.fitted(outline, names)
        counts = [outline[name].counts for name in names]
        return LevelSteps(hierarchies, fitted, way_up(fitted, counts, self.column_weights(outline, names)))

    def release_from_base(
        self, cells: CountedTable, base: BaseLevels, *, progress: Progress | None = None
    ) -> tuple[Release, NDArray[np.bool_]]:
        """Release distinct rows that were counted at levels above the finest; as :meth:`release_cells`.

        Levels below the base are not searched, which the manifest states; the levels are then not called optimal.
        """
        return self._release(cells, progress, base), self.recoding_.is_released

    def parameters(self) -> dict[str, Any]:
        """Parameters for the manifest; of hierarchies only which columns were given one."""
        given = {name: _plain(value) for name, value in settings_of(self).items()}
        if self.guide == "label":
            given.pop("guide", None)  # so that releases without scores stay equal
        return given | {"hierarchies": sorted(self.hierarchies) if self.hierarchies else None}

    def risk(self, table: Table, released: Table) -> dict[str, Any]:
        """Risk left that the guarantees do not say."""
        return {}

    def column_weights(self, table: Table, names: tuple[str, ...]) -> list[float] | None:
        """Weight of each column in the loss."""
        return column_weights(self.weights, table, names)

    def checked(self, table: AnyTable) -> Table:
        """Refuse a table or parameters that cannot be recoded."""
        if not isinstance(table, Table):
            problem = "is a sparse 0/1 table, whose features have no hierarchies"
            raise SchemaError(problem, hint="use a mechanism that selects features", remedy=("mechanism",))
        self.check_k()
        check_group_size(Requested.of(self).k, table.n_rows)
        self.check_parameters("loss")
        self.check_search()
        PopulationPromises.of(self).check(table)
        if self.hierarchies is not None and not isinstance(self.hierarchies, Mapping):
            got = f"got a {type(self.hierarchies).__name__}"
            raise InvalidParameterError("hierarchies", got, allowed="hierarchies or paths by column")
        table.schema.check_quasi_identifiers("to coarsen")
        return table

    @abstractmethod
    def check_search(self) -> None:
        """Refuse parameters of the search that cannot be."""

    def _problem(
        self,
        table: Table,
        names: tuple[str, ...],
        goal: PrivacyGoal,
        fitted: Sequence[Covered],
        base: BaseLevels | None,
    ) -> tuple[LatticeProblem, CellTable]:
        target = table.schema.target if self.loss in TARGET_LOSSES else None
        if self.loss in TARGET_LOSSES and target is None:
            problem = f"the loss '{self.loss}' is about a target, and the table has none"
            raise SchemaError(problem, hint="give one column the role target, or choose another loss")
        beside = [*goal.counted, *([target] if target else [])]
        cells = cell_table(table, [*names, *(name for name in dict.fromkeys(beside) if name not in names)])
        place = {name: i for i, name in enumerate(cells.columns)}
        lowest = (0,) * len(names) if base is None else base.levels
        from_base = list(zip(fitted, lowest, strict=True))
        codes = np.column_stack([c.level_codes[low][cells.codes[:, place[c.name]]] for c, low in from_base])
        conditions, judged = goal.conditions(table)
        return LatticeProblem(
            codes=codes,
            counts=cells.counts,
            level_maps=tuple(c.level_maps_from(low) for c, low in from_base),
            shares=tuple(c.shares[low:] for c, low in from_base),
            k=goal.k,
            conditions=conditions,
            loss=self.loss,
            weights=self.column_weights(table, names),
            sensitive=tuple(column.of_cells(lambda name: cells.codes[:, place[name]]) for column in judged),
            target=self._told_apart(table, names, cells, place[target]) if target else None,
            base=lowest,
            least_shares=tuple(float(c.shares[0].min()) for c in fitted),
            people=LatticePeople.of(table, names, fitted, PopulationPromises.of(self)),
        ), cells

    def _told_apart(
        self, table: Table, names: tuple[str, ...], cells: CellTable, place: int
    ) -> NDArray[np.signedinteger]:
        """Give each cell what losses of the target tell apart: its value, or the interval of its score."""
        if self.guide == "label":
            return cells.codes[:, place]
        from sfumato.mechanisms.score_guide import ScoreGuide  # takes the family of trees with it

        guide = ScoreGuide.of(table, axes_of(table, names))
        found = np.zeros(cells.n_cells, dtype=np.int64)
        found[cells.find(table.codes(cells.columns))] = guide.intervals(N_SCORE_INTERVALS)
        return found


class GlobalRecoder(HierarchyRecoder):
    """Take every quasi-identifier to one level of its hierarchy, so that classes are large and diverse, at least loss.

    All combinations of levels are considered, and rows in classes that are too small or not diverse enough are
    suppressed, up to a limit. The optimum is exact unless ``max_seconds`` runs out, which is then said. Out of core it
    is that of the levels whose distinct rows fit in memory, which is said too.

    Parameters
    ----------
    k : int, default=5
        Rows of a class.
    max_suppressed_fraction : float, default=0.015
        Largest share of the rows that may be suppressed, from 0 to 1; one row at least is released. Where persons have
        several rows, it is the largest share of the persons who may lose a row as well.
    privacy : sequence of Guarantee
        What else every class must keep: l-diversity, t-closeness, β-likeness, δ-disclosure privacy and (α,k)-anonymity
        of sensitive columns (all with the role sensitive, unless the guarantee names them, by commas); k-map and
        δ-presence about a population table (:meth:`with_population`). With k-map, k may be 1: then no k-anonymity is
        promised.
    loss : str, default="loss"
        What is minimized, see :data:`sfumato.mechanisms.lattice.losses.LOSSES`.
    guide : {"label", "score"}, default="label"
        What losses of the target (``target_information``, ``classification``) are about: its labels, or sixteen
        intervals of a score of it by models that did not see the row, see :mod:`sfumato.mechanisms.score_guide`.
    weights : {"equal", "gain"} or mapping, default="equal"
        Weight of each column in the loss: equal, by its information gain for the target (so that useful columns are
        coarsened last), or given by name.
    hierarchies : mapping or None
        Hierarchies (or paths of files) by column; others are read where the schema names a file, or built from the
        values.
    regroup : bool, default=True
        Whether suppressed rows are recoded once more among themselves.
    max_seconds : float, default=60
        After this time the best found so far is taken. It covers all of :meth:`recode`: hierarchies built, gains,
        counting, the search and the rounds that regroup. Building and counting, one pass over each column and one over
        the rows, are done in any case, and the search gets half a second at least (the limit, if that is less); then no
        step begins when time is up. Reading the table, writing the release and the audit come on top.

    Attributes
    ----------
    levels_ : dict
        Level of each column.
    loss_ : float
        Loss of these levels, suppressed rows included (before they are regrouped).
    limits_persons_ : bool
        Whether persons have several rows, so that those who lose one are limited too.
    n_suppressed_ : int
        Rows that are not released.
    search_ : LatticeResult
        What was searched, and whether the optimum is proven.
    recoding_ : LevelRecoding

    Examples
    --------
    >>> from sfumato.datasets.admissions import admissions
    >>> recoder = GlobalRecoder(k=5, max_suppressed_fraction=0.05)
    >>> recoder.fit(admissions(n_rows=400).keep(["age", "sex", "insurance", "readmitted"])).levels_["sex"]
    0
    """

    mechanism_name: ClassVar[str] = "global-recoding"
    fixed_levels: Mapping[str, int] | None = None
    takes_both_roles: ClassVar[bool] = True  # where nothing is asked of its values
    counts_persons: ClassVar[bool] = True
    takes_population: ClassVar[bool] = True
    parameter_specs: ClassVar[Mapping[str, ParameterSpec]] = {
        **GOAL_PARAMETERS,
        "loss": ParameterSpec("what is minimized", LOSSES),
        "guide": ParameterSpec("losses of the target by its labels, or by predicted scores"),
        "weights": ParameterSpec("weights of columns in the loss: equal, gain, or by name", stated=WEIGHTS),
        **SEARCH_PARAMETERS,
    }
    searches: ClassVar[tuple[SearchedBy, ...]] = (SearchedBy.VALUES, SearchedBy.PEOPLE)

    def __init__(
        self,
        k: int = 5,
        max_suppressed_fraction: float = 0.015,
        hierarchies: Mapping[str, Any] | None = None,
        loss: str = "loss",
        weights: Literal["equal", "gain"] | Mapping[str, float] = "equal",
        regroup: bool = True,
        max_seconds: float = 60.0,
        guide: Literal["label", "score"] = "label",
        privacy: Sequence[Guarantee] = (),
    ) -> None:
        self.k = k
        self.guide = guide
        self.max_suppressed_fraction = max_suppressed_fraction
        self.loss = loss
        self.weights = weights
        self.hierarchies = hierarchies
        self.regroup = regroup
        self.max_seconds = max_seconds
        self.privacy = privacy

    def check_search(self) -> None:
        """Refuse limits of rows or seconds that are none, and scores for a loss that is not about the target."""
        self.check_parameters("regroup")
        if self.guide != "label":  # gain-recoding, which is the paper's, has no such parameter
            self.check_parameters("guide")
            if self.loss not in TARGET_LOSSES:
                allowed = f"label unless the loss is one of {', '.join(TARGET_LOSSES)}"
                raise InvalidParameterError("guide", f"got {self.guide!r}", allowed=allowed)
        for name in ("max_suppressed_fraction", "max_seconds"):
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, Real):
                raise InvalidParameterError(name, f"got {given!r}", allowed="a number")
        check_suppression_limit(float(self.max_suppressed_fraction))
        if not self.max_seconds > 0:
            raise InvalidParameterError("max_seconds", f"got {self.max_seconds!r}", allowed="above 0")
        presence = PopulationPromises.of(self).presence
        if presence is not None and presence.delta_min and self.max_suppressed_fraction:
            problem = f"got {self.max_suppressed_fraction:g} with delta_min: people whose rows are left out fit no row"
            raise InvalidParameterError("max_suppressed_fraction", problem, allowed="0 where delta_min is above 0")

    def time_limit(self) -> TimeLimit:
        """Begin to measure the time that a recoding may take."""
        return TimeLimit(self.max_seconds)

    def why_all_rows(self, schema: Schema) -> str:
        """Levels of an earlier release are not looked for among coarser ones."""
        return "levels of an earlier release need" if self.fixed_levels is not None else ""

    def at_levels(self, levels: Mapping[str, int]) -> Self:
        """Give the same recoder, which searches nothing: each column is taken at a given level, or at its highest."""
        own = copy.copy(self)
        own.fixed_levels = {**levels}
        return own

    def find_levels(
        self, problem: LatticeProblem, limit: TimeLimit, progress: Progress | None
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Search the levels of all rows, then those of rows that these suppress; fixed levels are taken as they are."""
        # Labels of built hierarchies name released values only. Where rows are left out they get narrower, and fewer
        # people of a population fit them than were counted: a promise about people leaves nobody out.
        most = 0.0 if problem.people is not None else float(self.max_suppressed_fraction)
        problem = replace(problem, max_suppressed_fraction=most, limits_persons=True)
        has_persons = any(isinstance(own.guarantee, KAnonymity) for own in problem.conditions)
        self.limits_persons_ = has_persons
        if self.fixed_levels is not None:
            self.search_ = found = look_at_levels(problem, tuple(self.fixed_levels.values()))
            self.loss_ = found.loss
            return np.array([found.levels]), np.where(found.classes < 0, -1, 0)
        if progress:
            progress(0, 1, f"searching {problem.n_nodes:,} level combinations")
        # Rows that are recoded once more get cells that overlap with others': whose they are could not be audited, and
        # who fits two classes is in the release with a probability that δ-presence does not define. With k-map a value
        # that two labels list is refused by the audit: such lists could say that a value means everybody.
        overlaps_harm = has_persons or bool(PopulationPromises.of(self).about)
        compares = any(own.guarantee.compares_with_table for own in problem.conditions)
        regroups = self.regroup and not overlaps_harm and not compares
        share = SEARCH_SHARE if regroups else 1.0
        least = min(LEAST_SECONDS, self.max_seconds)
        found = search_lattice(problem, max(limit.part(share).left, least))
        self.search_, self.loss_ = found, found.loss
        if regroups and found.n_suppressed:
            levels, rounds = regroup(problem, found, limit.left)
            return np.array(levels), rounds
        return np.array([found.levels]), np.where(found.classes < 0, -1, 0)

    @property
    def levels_(self) -> dict[str, int]:
        """Level of each column."""
        return dict(zip(self.recoding_.names, self.search_.levels, strict=True))

    def utility(self, table: Table, recoding: LevelRecoding, released: Table) -> dict[str, Any]:
        """Say what the recoding cost."""
        return {
            "levels": self.levels_,
            self.loss: self.loss_,
            "is_proven_optimal": self.search_.proven,
            **self._stated_bound(),
            "suppressed_fraction": suppressed_fraction(recoding.n_suppressed, table.n_rows),
            **({"suppression_limit_counts": ROWS_AND_PERSONS} if self.limits_persons_ else {}),
            "mean_share_of_values_left_open": recoding.certainty_penalty,
        }

    def _stated_bound(self) -> dict[str, float]:
        """Least loss possible, where that tells something about the loss found."""
        bound = self.search_.telling_bound
        return {} if bound is None else {"least_possible_loss": bound}


def _plain(value: Any) -> Any:
    """Write numbers of NumPy as those of Python, which a manifest can hold."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, np.floating):
        return float(str(value))  # in the digits of its own type
    return value.item() if isinstance(value, np.generic) else value


def is_about_target(parameters: Mapping[str, Any]) -> bool:
    """Whether levels are chosen by what they leave of a target."""
    return parameters.get("loss") in TARGET_LOSSES or parameters.get("weights") == "gain"


DECLARATION = MechanismInfo(
    GlobalRecoder,
    why="labels of your own hierarchies, one level for a whole column: easy to explain and to join",
    promises="k-anonymity, with l-diversity, t-closeness, β-likeness, δ-disclosure privacy and (α,k)-anonymity on "
    "request; k-map and δ-presence with a population table",
    compared=Compared(
        (
            *combinations({"k": [5, 10]}),
            {"k": 5, "loss": "target_information", "max_suppressed_fraction": 0.5},
        ),
        most_columns=100,
        time_limit="max_seconds",
    ),
    cost=4.0,
    needs_target=is_about_target,
)
