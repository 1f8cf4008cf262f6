"""Mondrian as a mechanism: groups of at least k rows, cut along the quasi-identifiers, with uniform cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import AboutValues, Guarantee, KAnonymity, SearchedBy
from sfumato.measures.anonymity import anonymity_level
from sfumato.mechanisms.axes import Axis
from sfumato.mechanisms.base import Compared, MechanismInfo, Needs, Release, combinations
from sfumato.mechanisms.both_roles import BothRoles, GroupedValues, GroupsInParts, WithinGroups
from sfumato.mechanisms.constraints import Limit, constraint_on_counts, limits_of
from sfumato.mechanisms.mondrian.division import Partition, SplitRule, mondrian_partition
from sfumato.mechanisms.mondrian.population_cuts import PeopleInParts
from sfumato.mechanisms.population import PopulationPromises
from sfumato.mechanisms.recoder import Cover, Recoder, Recoding, distinct_rows
from sfumato.mechanisms.requested import Requested, person_crowds, promised_by_persons
from sfumato.mechanisms.sampled_groups import (
    Block,
    CoveredGroups,
    SampledTree,
    ValueAxes,
    not_from_a_sample,
    rows_in_a_sample,
)
from sfumato.mechanisms.score_guide import PENALTY_WEIGHT, ScoreGuide, stated_sample
from sfumato.mechanisms.tree.targets import Targets
from sfumato.parameters import ParameterSpec
from sfumato.progress import Progress
from sfumato.schema import Role, Schema
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.persons import person_codes

_MOST_PAIRS = 100_000


class Mondrian(Recoder):
    """Divide rows along their quasi-identifiers into groups of at least k, and release each group's ranges and sets.

    Mondrian of [LDR06]_ and its workload-aware form of [LDR08]_. All rows are kept, in their order; columns that are no
    quasi-identifiers travel along unchanged. Where a column tells persons apart (role person) and some have several
    rows, every group has the rows of at least k persons.

    Parameters
    ----------
    k : int, default=5
        Rows of a group.
    strict : bool, default=True
        Whether rows with equal values stay together; ``False`` is the relaxed form.
    split : {"penalty", "median", "gain", "score"}, default="penalty"
        Which cut: the one that lowers the certainty penalty most (ours), the median of the widest column ([LDR06]_),
        the one with the largest information gain for the target ([LDR08]_), or the one that lowers the variance of a
        score of the target most (ours). The score is what models that did not see a row predict for it from the
        quasi-identifiers, see :mod:`sfumato.learning.cross_fitted`: a classifier keeps most with it, because groups
        are not made pure by chance. The true target is released, whatever the split.
    criterion : {"auto", "entropy", "variance"}, default="auto"
        What ``split="gain"`` makes pure and ``split="score"`` predicts: classes or a number, see
        :class:`sfumato.mechanisms.tree.mechanism.ErrorRiskTree`.
    penalty_weight : float, default=0.1
        With ``split="score"``: how much the certainty penalty counts in the choice of a cut, beside the variance of
        the score, both as shares of what they are at most in the whole table. More gives narrower cells and keeps less
        of the target.
    privacy : sequence of Guarantee
        What else every group must keep: l-diversity, t-closeness, β-likeness, δ-disclosure privacy and (α,k)-anonymity
        of sensitive columns (all with the role sensitive, each with its own promises, unless the guarantee names them);
        k-map and δ-presence about a table of the population (:meth:`with_population`). With k-map, k may be 1: then no
        k-anonymity is promised. δ-presence from more than 0 on is refused: whoever lies between the ranges of groups
        fits none.

    References
    ----------
    .. [LDR06] LeFevre, DeWitt, Ramakrishnan: Mondrian Multidimensional K-Anonymity. ICDE (2006).
    .. [LDR08] LeFevre, DeWitt, Ramakrishnan: Workload-Aware Anonymization Techniques for Large-Scale Datasets.
       ACM TODS 33(3) (2008).

    Examples
    --------
    >>> from sfumato.datasets.admissions import admissions
    >>> from sfumato.guarantees import LDiversity
    >>> release = Mondrian(k=5, privacy=[LDiversity(2)]).release(admissions(n_rows=200))
    >>> [guarantee.kind for guarantee in release.manifest.promised()]
    ['k-anonymity', 'l-diversity']
    """

    mechanism_name: ClassVar[str] = "mondrian"
    counts_persons: ClassVar[bool] = True
    takes_both_roles: ClassVar[bool] = True
    takes_population: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs.COUNTS_OR_SAMPLE
    parameter_specs: ClassVar[Mapping[str, ParameterSpec]] = {
        "k": ParameterSpec("rows of a group", at_least=2),
        "strict": ParameterSpec("keep rows with equal values together; false: relaxed Mondrian"),
        "split": ParameterSpec("cut by least loss, at the median, by information gain, or by predicted scores"),
        "criterion": ParameterSpec("what split = gain or score keeps predictable: classes or a number"),
        "penalty_weight": ParameterSpec(
            "for split = score: weight of narrow cells relative to the score", at_least=0, only_with={"split": "score"}
        ),
    }
    searches: ClassVar[tuple[SearchedBy, ...]] = (SearchedBy.VALUES, SearchedBy.PEOPLE)

    def __init__(
        self,
        k: int = 5,
        strict: bool = True,
        split: SplitRule = "penalty",
        criterion: Literal["auto", "entropy", "variance"] = "auto",
        penalty_weight: float = PENALTY_WEIGHT,
        privacy: Sequence[Guarantee] = (),
    ) -> None:
        self.k = k
        self.strict = strict
        self.split = split
        self.criterion = criterion
        self.penalty_weight = penalty_weight
        self.privacy = privacy

    def parameters(self) -> dict[str, Any]:
        """Parameters for the manifest; newer ones only where they count, so that releases without them stay equal."""
        given = super().parameters()
        return {name: value for name, value in given.items() if name != "penalty_weight" or self.split == "score"}

    def guarantees(self, table: Table) -> list[Guarantee]:
        """Promise k-anonymity and, where asked for, what holds for sensitive columns in every group."""
        requested, names = Requested.of(self), table.schema.names(Role.QUASI_IDENTIFIER)
        promised = [own for of_column in requested.by_column(table) for own in of_column]
        crowds = person_crowds(table, requested.k, names)
        by_persons = promised_by_persons(promised, crowds[0].unit) if crowds else promised
        about_people = PopulationPromises.of(self)
        in_rows = [] if about_people.allows_single_rows(self.k) else [KAnonymity(requested.k, names)]
        return [*in_rows, *crowds, *about_people.guarantees(table), *by_persons]

    def recode(self, table: Table, *, progress: Progress | None = None) -> Recoding:
        """Divide the rows and cover each group."""
        self._check_parameters()
        table = self._checked(table)
        promised = Requested.of(self).by_column(table)
        both = self._both_roles(table, promised)
        self._check_population(table, both)
        if both is not None:
            return self._recoded_within(both, table, promised, progress)
        persons = person_codes(table)
        rows, entry_of_row = self._entries(table, persons)
        axes = self._axes(rows)
        limits = [limit for own in promised for limit in limits_of(rows, own)]
        if not self.strict and any(limit.persons is not None and limit.matched is None for limit in limits):
            problem = "got false with more than distinct l, and some persons have several rows"
            allowed = "true, or l distinct, and t, beta, delta and alpha left out"
            raise InvalidParameterError("strict", problem, allowed=allowed)
        partition = self._divided(rows, axes, limits, persons, progress)
        return Recoding(axes, Cover.of_groups(partition.of_row), partition.groups_of, entry_of_row)

    def _entries(self, table: Table, persons: NDArray[np.int32] | None) -> tuple[Table, NDArray[np.intp] | None]:
        """Give the distinct rows, where equal rows stay together and are all alike; else the rows."""
        if not self.strict or persons is not None or PopulationPromises.of(self).about:
            return table, None
        return distinct_rows(table, self.counted_columns(table.schema))

    def _recoded_within(
        self,
        both: BothRoles,
        table: Table,
        promised: Sequence[Sequence[AboutValues]],
        progress: Progress | None,
    ) -> Recoding:
        """Divide the rows by all columns but a sensitive one, and each part by that."""
        axes = self._axes(table)
        others = tuple(axis for axis in axes if axis.name != both.axis.name)
        partition = self._divided(table, others, self._limits_with(both, table, promised), None, progress)
        groups = both.divided(partition.of_row, self.size)
        own, together = groups.covers(partition.of_row)
        names = tuple(axis.name for axis in others)
        part_of = _GroupsWithin(partition, groups, both, names)
        return Recoding(axes, own, part_of, cover_of=dict.fromkeys(names, together))

    def counted_columns(self, schema: Schema) -> tuple[str, ...]:
        """Columns whose combinations decide the groups: what :meth:`release_cells` needs counted together."""
        self._check_parameters()
        targets = schema.names(Role.TARGET) if self.split in ("gain", "score") else ()
        sensitive = Requested.of(self).columns(schema)
        return tuple(dict.fromkeys([*schema.names(Role.QUASI_IDENTIFIER), *targets, *sensitive]))

    def why_all_rows(self, schema: Schema) -> str:
        """Relaxed cuts divide equal rows, single rows are compared with a population, and a column can be both."""
        if not self.strict:
            return "relaxed cuts (strict = false), which divide equal rows, need"
        if about := PopulationPromises.of(self).levels:
            return f"{about[0]}, which compares every person with the population, needs"
        promised = Requested.of(self).columns(schema)
        both = [name for name in schema.names(Role.SENSITIVE_QUASI_IDENTIFIER) if name in promised]
        return f"'{both[0]}', which is sensitive and a quasi-identifier, needs" if both else ""

    def release_by_sample(
        self,
        whole: Table,
        sample: Block,
        blocks: Callable[[str], Iterable[Block]],
        seed: int,
        *,
        progress: Progress | None = None,
    ) -> tuple[Release, CoveredGroups]:
        """Divide a sample, and cover the groups by all rows; what fewer than k of all rows fall into is joined.

        Parameters are those of :meth:`sfumato.mechanisms.tree.mechanism.ErrorRiskTree.release_by_sample`.
        """
        whole = self._checked(whole)
        self._check_growing(whole)
        values = ValueAxes.of_table(whole, whole.schema.names(Role.QUASI_IDENTIFIER))
        columns = {name: CodedColumn(codes, whole[name].values) for name, codes in sample.items()}
        n_sampled = len(next(iter(sample.values())))
        rows = Table(whole.schema.keep(columns), columns, n_sampled)
        limits = [limit for own in Requested.of(self).by_column(rows) for limit in limits_of(rows, own)]
        least = min(rows_in_a_sample(self.size, n_sampled / whole.n_rows), n_sampled)
        partition = self._divided(rows, values.of(sample), limits, None, progress, size=least)
        found = SampledTree(partition.tree, values, partition.columns)
        groups = found.covered(blocks("rows counted in groups"), self.size)
        utility = self._scored(n_sampled) | groups.figures(n_sampled)
        level = anonymity_level(groups.rows_alike)
        return self._drafted(whole, groups.released(whole), groups.axes, utility, level, seed), groups

    def _check_growing(self, table: Table) -> None:
        """Refuse what a group may lose by further rows: it would not follow from a sample."""
        for own in (own for of_column in Requested.of(self).by_column(table) for own in of_column):
            if not own.is_kept_by_growing:
                raise not_from_a_sample(own)

    def remarks(self) -> dict[str, Any]:
        """Say of how many rows the scores were learned, where a sample of them was enough."""
        return self._scored(int(self.recoding_.rows_alike.sum()))

    def _scored(self, n_rows: int) -> dict[str, Any]:
        return stated_sample(n_rows) if self.split == "score" else {}

    def _limits_with(self, both: BothRoles, table: Table, promised: Sequence[Sequence[AboutValues]]) -> list[Limit]:
        """Limits of parts whose rows are then divided by a sensitive quasi-identifier."""
        limits: list[Limit] = []
        for own in promised:
            if own[0].sensitive == both.axis.name:
                limits.append(Limit(GroupedValues(self.size, constraint_on_counts(own)), both.places))
                continue
            for limit in limits_of(table, own):
                n_codes = max(limit.n_values, 1)
                if both.n_places * n_codes > _MOST_PAIRS:
                    problem = f"has too many values to be protected together with those of '{both.axis.name}'"
                    hint = "round or group its values first, or ask for k alone"
                    raise SchemaError(problem, column=own[0].sensitive, hint=hint, remedy=("no_l",))
                within = WithinGroups(self.size, both.n_places, n_codes, limit.constraint)
                limits.append(Limit(within, both.places * np.int32(n_codes) + limit.codes))
        return limits

    def _both_roles(self, table: Table, promised: Sequence[Sequence[AboutValues]]) -> BothRoles | None:
        """Find the quasi-identifier about whose values something is promised; ``None`` where there is none.

        Raises
        ------
        InvalidParameterError, SchemaError
            If there is one and what is asked for besides is more than can be kept at once.
        """
        names = [own[0].sensitive for own in promised]
        found = [name for name in names if name in table.schema.names(Role.SENSITIVE_QUASI_IDENTIFIER)]
        if not found:
            return None
        if len(found) > 1:
            problem = f"is sensitive and a quasi-identifier, and so is '{found[1]}': values of one can be protected"
            hint = "ask for k alone, or give one of them another role"
            raise SchemaError(problem, column=found[0], hint=hint, remedy=("no_l",))
        axes = self._axes(table)
        if len(axes) == 1:
            problem = (
                "is the only quasi-identifier, and its values cannot be protected from those who know nothing else"
            )
            raise SchemaError(problem, column=found[0], hint="give it the role sensitive alone")
        if not self.strict:
            problem = f"got {self.strict!r}, and '{found[0]}' is sensitive and a quasi-identifier"
            raise InvalidParameterError("strict", problem, allowed="true, or l left out")
        if person_codes(table) is not None:
            problem = f"got one of '{found[0]}', a quasi-identifier, and some persons have several rows"
            hint = "keep one row of each person, or ask for k alone"
            raise InvalidParameterError(
                promised[0][0].level.name, problem, allowed="left out", hint=hint, remedy=("one_row_per_person",)
            )
        return BothRoles.of(table, next(axis for axis in axes if axis.name == found[0]))

    def _divided(
        self,
        table: Table,
        axes: Sequence[Axis],
        limits: Sequence[Limit],
        persons: NDArray[np.int32] | None,
        progress: Progress | None,
        size: int | None = None,
    ) -> Partition:
        about_people, names = PopulationPromises.of(self), [axis.name for axis in axes]
        criterion, statistics, along = None, None, None
        if self.split == "gain":
            targets = Targets.of(table, self.criterion)
            criterion, statistics = targets.criterion, targets.statistics_of(table)
        if self.split == "score":
            guide = ScoreGuide.of(table, axes, self.criterion)
            criterion, statistics, along = guide.criterion, guide.statistics, guide.along
        return mondrian_partition(
            axes,
            self.size if size is None else size,
            strict=self.strict,
            split=self.split,
            statistics=statistics,
            criterion=criterion,
            order_by=along,
            penalty_weight=float(self.penalty_weight),
            limits=limits,
            persons=persons,
            people=PeopleInParts.of(table, names, about_people) if about_people.about else None,
            progress=progress,
        )

    def _check_population(self, table: Table, both: BothRoles | None) -> None:
        """Refuse what cannot be promised about a population, and not without reason."""
        about_people = PopulationPromises.of(self)
        about_people.check(table)
        if not about_people.about:
            return
        asked = about_people.levels[0]
        if not self.strict:
            raise InvalidParameterError("strict", f"got false with {asked}", allowed=f"true, or {asked} left out")
        if both is not None:
            problem = f"got one, and '{both.axis.name}' is sensitive and a quasi-identifier"
            raise InvalidParameterError(asked, problem, allowed="left out, or asked for with k alone")
        if about_people.presence is not None and about_people.presence.delta_min:
            problem = (
                f"got {about_people.presence.delta_min:g}, and people between the ranges of groups fit none of them"
            )
            hint = "global-recoding can keep it"
            raise InvalidParameterError("delta_min", problem, allowed="0", hint=hint, remedy=("mechanism",))

    def _check_parameters(self) -> None:
        self.check_parameters("split", "criterion", "strict", "penalty_weight")
        Requested.of(self)

    def _check_k(self) -> None:
        if not PopulationPromises.of(self).allows_single_rows(self.k):
            super()._check_k()


@dataclass(frozen=True, eq=False, repr=False)
class _GroupsWithin:
    """Group of new rows where parts are divided once more by a sensitive quasi-identifier; can be pickled."""

    partition: Partition
    groups: GroupsInParts
    both: BothRoles
    others: tuple[str, ...]

    def __call__(self, new: Sequence[Axis]) -> NDArray[np.int32]:
        of = {axis.name: axis for axis in new}
        parts = self.partition.groups_of([of[name] for name in self.others])
        return self.groups.groups_of(parts, self.both.places_of(of[self.both.axis.name]))


DECLARATION = MechanismInfo(
    Mondrian,
    why="groups of rows, cut along all columns for detail or for the target; the fastest recoding; keeps all rows",
    promises="k-anonymity of ranges and sets of values, with l-diversity, t-closeness, β-likeness, δ-disclosure "
    "privacy and (α,k)-anonymity on request; k-map and δ-presence with a population table",
    compared=Compared(
        (
            *combinations({"k": [3, 5, 10, 20], "split": ["score"]}),
            *combinations({"k": [5, 10], "split": ["gain"]}),  # the workload-aware Mondrian of [LDR08]_
            {"k": 5},
            {"k": 5, "split": "median"},  # the Mondrian of [LDR06]_
        ),
        most_columns=200,
    ),
    cost=lambda parameters: 5.0 if parameters.get("split") == "score" else 0.5,  # it trains models
    needs_target=lambda parameters: parameters.get("split") in ("gain", "score"),
)
