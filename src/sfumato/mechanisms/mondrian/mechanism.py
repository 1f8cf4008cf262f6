"""Mondrian as a mechanism: groups of at least k rows, cut along the quasi-identifiers, with uniform cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import DiversityVariant, Guarantee, KAnonymity, LDiversity, check_diversity
from sfumato.mechanisms.base import Compared, MechanismInfo, ParameterSpec, combinations
from sfumato.mechanisms.buckets.buckets import sensitive_codes
from sfumato.mechanisms.mondrian.division import SplitRule, constraint_of, mondrian_partition
from sfumato.mechanisms.recoder import Cover, Recoder, Recoding
from sfumato.mechanisms.tree.targets import Targets
from sfumato.progress import Progress
from sfumato.schema import Role
from sfumato.table.coding import Table


class Mondrian(Recoder):
    """Divide rows along their quasi-identifiers into groups of at least k, and release each group's ranges and sets.

    Mondrian of [LDR06]_ and its workload-aware form of [LDR08]_. All rows are kept, in their order; columns that are no
    quasi-identifiers travel along unchanged.

    Parameters
    ----------
    k : int, default=5
        Rows of a group.
    strict : bool, default=True
        Whether rows with equal values stay together; ``False`` is the relaxed form.
    split : {"penalty", "median", "gain"}, default="penalty"
        Which cut: the one that lowers the certainty penalty most (ours), the median of the widest column ([LDR06]_), or
        the one with the largest information gain for the target ([LDR08]_).
    l : float or None
        l-diversity of the sensitive column in every group, besides k-anonymity. The next three go with it only.
    sensitive : str or None
        Column that l is about; ``None`` takes the one with the role sensitive.
    variant : {"distinct", "entropy", "recursive"}, default="distinct"
        Of l-diversity.
    c : float or None
        Of recursive (c, l)-diversity.
    criterion : {"auto", "entropy", "variance"}, default="auto"
        What ``split="gain"`` makes pure, see :class:`sfumato.mechanisms.tree.mechanism.ErrorRiskTree`.

    References
    ----------
    .. [LDR06] LeFevre, DeWitt, Ramakrishnan: Mondrian Multidimensional K-Anonymity. ICDE (2006).
    .. [LDR08] LeFevre, DeWitt, Ramakrishnan: Workload-Aware Anonymization Techniques for Large-Scale Datasets.
       ACM TODS 33(3) (2008).

    Examples
    --------
    >>> from sfumato.datasets.admissions import admissions
    >>> release = Mondrian(k=5, l=2).release(admissions(n_rows=200))
    >>> [guarantee.kind for guarantee in release.manifest.promised()]
    ['k-anonymity', 'l-diversity']
    """

    mechanism_name: ClassVar[str] = "mondrian"
    parameter_specs: ClassVar[Mapping[str, ParameterSpec]] = {
        "k": ParameterSpec("rows of a group", at_least=2),
        "strict": ParameterSpec("keep rows with equal values together; false: relaxed Mondrian"),
        "split": ParameterSpec("cut by least loss, at the median, or by information gain"),
        "l": ParameterSpec("l-diversity of the sensitive column in every group"),
        "sensitive": ParameterSpec("column that l is about (default: the one with that role)"),
        "variant": ParameterSpec("kind of l-diversity"),
        "c": ParameterSpec("of recursive (c, l)-diversity"),
        "criterion": ParameterSpec("what split = gain makes pure"),
    }

    def __init__(
        self,
        k: int = 5,
        strict: bool = True,
        split: SplitRule = "penalty",
        l: float | None = None,  # noqa: E741  # the field's own name
        sensitive: str | None = None,
        variant: DiversityVariant = "distinct",
        c: float | None = None,
        criterion: Literal["auto", "entropy", "variance"] = "auto",
    ) -> None:
        self.k = k
        self.strict = strict
        self.split = split
        self.l = l
        self.sensitive = sensitive
        self.variant = variant
        self.c = c
        self.criterion = criterion

    def guarantees(self, table: Table) -> list[Guarantee]:
        """Promise k-anonymity and, where asked for, l-diversity."""
        promised: list[Guarantee] = [KAnonymity(int(self.k), table.schema.names(Role.QUASI_IDENTIFIER))]
        diversity = self._diversity(table)
        return [*promised, diversity] if diversity else promised

    def recode(self, table: Table, *, progress: Progress | None = None) -> Recoding:
        """Divide the rows and cover each group."""
        self._check_parameters()
        table = self._checked(table)
        axes = self._axes(table)
        diversity = self._diversity(table)
        criterion, statistics = None, None
        if self.split == "gain":
            targets = Targets.of(table, self.criterion)
            criterion, statistics = targets.criterion, targets.statistics_of(table)
        partition = mondrian_partition(
            axes,
            int(self.k),
            strict=self.strict,
            split=self.split,
            statistics=statistics,
            criterion=criterion,
            is_allowed=constraint_of(diversity) if diversity else None,
            sensitive=sensitive_codes(table, diversity.sensitive) if diversity else None,
            progress=progress,
        )
        return Recoding(axes, Cover.of_groups(partition.of_row), partition.groups_of)

    def _check_parameters(self) -> None:
        self.check_parameters("split", "variant", "criterion", "strict")
        if self.l is None:
            self._check_nothing_is_said_of_diversity()
        elif not _is_number(self.l):
            raise InvalidParameterError("l", f"got {self.l!r}", allowed="a number of at least 2, or None")
        else:
            check_diversity(self.l, self.variant)
        if self.sensitive is not None and not isinstance(self.sensitive, str):
            raise InvalidParameterError("sensitive", f"got {self.sensitive!r}", allowed="the name of a column, or None")
        if self.c is not None and not _is_number(self.c):
            raise InvalidParameterError("c", f"got {self.c!r}", allowed="a number above 0, or None")

    def _check_nothing_is_said_of_diversity(self) -> None:
        for name, without in (("sensitive", None), ("variant", "distinct"), ("c", None)):
            given = getattr(self, name)
            if given != without:
                allowed = f"{without!r} where l is not given"
                raise InvalidParameterError(name, f"got {given!r}", allowed=allowed, hint="give l as well")

    def _diversity(self, table: Table) -> LDiversity | None:
        if self.l is None:
            return None
        named = [self.sensitive] if self.sensitive else list(table.schema.names(Role.SENSITIVE))
        if len(named) != 1:
            problem = f"l-diversity is about one sensitive column, and the table has {len(named)}"
            raise SchemaError(problem, hint="name it with the parameter sensitive")
        (name,) = named
        if table.schema[name].role in (Role.QUASI_IDENTIFIER, Role.IDENTIFIER):
            problem = f"'{name}' is a {table.schema[name].role}"
            raise InvalidParameterError("sensitive", problem, allowed="a column that is released as it is")
        columns = table.schema.names(Role.QUASI_IDENTIFIER)
        return LDiversity(float(self.l), name, columns, self.variant, None if self.c is None else float(self.c))


def _is_number(given: object) -> bool:
    return isinstance(given, int | float | np.integer | np.floating) and not isinstance(given, bool)


DECLARATION = MechanismInfo(
    Mondrian,
    why="low loss of detail in all columns at once, whatever the task; the fastest recoding; all rows are kept",
    promises="k-anonymity of ranges and sets of values, with l-diversity on request",
    compared=Compared(combinations({"k": [3, 5, 10, 20]}), most_columns=200),
)
