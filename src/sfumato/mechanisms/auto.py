"""``auto``: the release that somebody gets who names no mechanism.

Asked is strict k-anonymity, and l-diversity of every sensitive column. What keeps that promise with most of the target
left is the score-guided partition (:class:`sfumato.mechanisms.mondrian.mechanism.Mondrian` with ``split="score"``);
that no choice among several mechanisms was shown to do better is in ``benchmarks/CHOOSER.md`` and decision 0027.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.guarantees import LDiversity
from sfumato.manifest import AnyTable
from sfumato.mechanisms.base import (
    Mechanism,
    MechanismInfo,
    Needs,
    Release,
    is_zero_one,
)
from sfumato.mechanisms.new_rows import RecodingTransformer
from sfumato.parameters import ParameterSpec
from sfumato.progress import Progress
from sfumato.schema import Role
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import Table

AttackerKnows = Literal["all", "ones"]


class Automatic(RecodingTransformer, Mechanism):
    """The strongest release under strict k-anonymity that this package knows how to make of a table.

    - A table of columns: the score-guided partition. Without a target, or with one of a single class, nothing can be
      kept predictable, and the partition with the least loss of detail is made instead.
    - A table of sparse 0/1 features (words, items): the features that separate the classes best, as many as keep every
      pattern of zeros and ones k times. With ``attacker_knows="ones"``: k-anonymity by containment, a weaker promise
      with its own name that leaves many more features.

    Parameters
    ----------
    k : int, default=5
        Rows of a group.
    l : float, default=2
        Distinct l-diversity of every sensitive column; 1: not asked for. Where no column is sensitive it says nothing.
        What is promised never depends on what the rows allow: if l is out of reach, nothing is released.
    attacker_knows : {"all", "ones"}, default="all"
        ``"ones"``, for tables of 0/1 columns only: an attacker may know what people have, but never what they have not.

    Examples
    --------
    >>> from sfumato.datasets.admissions import admissions
    >>> table = admissions(n_rows=100).keep(["age", "sex", "readmitted"])
    >>> Automatic(k=5).for_table(table).mechanism_name
    'mondrian'
    """

    mechanism_name: ClassVar[str] = "auto"
    needs: ClassVar[Needs] = Needs.COUNTS_OR_SAMPLE
    counts_persons: ClassVar[bool] = True  # where it chooses a partition of rows
    takes_both_roles: ClassVar[bool] = True  # there, too
    takes_cells: ClassVar[bool] = True  # there, too
    parameter_specs: ClassVar[Mapping[str, ParameterSpec]] = {
        "k": ParameterSpec("rows of a group", at_least=2),
        "l": ParameterSpec("l-diversity of every sensitive column; 1: none", at_least=1),
        "attacker_knows": ParameterSpec("what attackers know: all values of a person, or (0/1 tables only) 1-values"),
    }

    def __init__(
        self,
        k: int = 5,
        l: float = 2,  # noqa: E741  # the field's own name
        attacker_knows: AttackerKnows = "all",
    ) -> None:
        self.k = k
        self.l = l
        self.attacker_knows = attacker_knows

    def for_table(self, table: AnyTable) -> Mechanism:
        """Say which mechanism makes the release of a table, with its settings.

        Raises
        ------
        InvalidParameterError
            If attackers are said to know ones only, of columns that are not 0/1.
        SchemaError
            If l is asked for where only features are selected.
        """
        self.check_parameters()
        plain = table.coded_part
        sensitive = plain.schema.names(Role.SENSITIVE) if self.l > 1 else ()
        if self.attacker_knows == "ones" or isinstance(table, BinaryTable):
            return self._selection(table, sensitive)
        from sfumato.mechanisms.mondrian.mechanism import Mondrian

        privacy = [LDiversity(self.l)] if sensitive else ()
        return Mondrian(k=self.k, split="penalty" if self.why_no_score(table) else "score", privacy=privacy)

    def why_no_score(self, table: AnyTable) -> str:
        """Say why a target does not guide the release; empty where one does, or features are selected.

        Examples
        --------
        >>> from sfumato.datasets.admissions import admissions
        >>> Automatic().why_no_score(admissions(n_rows=20).keep(["age", "sex"]))
        'there is no target, so the release keeps as much detail as it can'
        """
        if isinstance(table, BinaryTable) or self.attacker_knows == "ones" or _has_classes(table):
            return ""
        problem = "there is no target" if table.schema.target is None else "the target has one class"
        return f"{problem}, so the release keeps as much detail as it can"

    def _find_recoding(self, table: AnyTable) -> None:
        """Let the mechanism for this table find its recoding."""
        chosen = self.for_table(table)
        if not isinstance(chosen, RecodingTransformer):
            problem = f"auto chooses {chosen.mechanism_name} for this table, which selects features and recodes nothing"
            hint = "fit that one to a matrix of features and their classes"
            raise SchemaError(problem, hint=hint, remedy=("mechanism",))
        self.recoding_ = chosen.fit(table).recoding_

    def release(self, table: AnyTable, *, progress: Progress | None = None) -> Release:
        """Let the mechanism for this table propose a release; the manifest names that mechanism.

        Raises
        ------
        PrivacyNotAchievableError
            If k or l is out of reach.
        """
        chosen = self.for_table(table)
        try:
            return chosen.release(table, progress=progress)
        except PrivacyNotAchievableError as exc:
            raise self.explained(exc, table) from exc

    def explained(self, error: PrivacyNotAchievableError, table: AnyTable) -> PrivacyNotAchievableError:
        """Say which sensitive column has too few values, and that k alone can be reached."""
        if table.n_rows < self.k or not getattr(self.for_table(table), "privacy", ()):
            return error
        hint = f"{self._too_uniform(table)}; k-anonymity alone can be reached"
        return PrivacyNotAchievableError(error.guarantee, best_level=error.best_level, hint=hint, remedy=("no_l",))

    def _too_uniform(self, table: AnyTable) -> str:
        """Name the sensitive columns that have fewer than l different values in the whole table."""
        from sfumato.mechanisms.buckets.buckets import sensitive_codes

        plain = table.coded_part
        every = plain.schema.names(Role.SENSITIVE)
        names = [f"'{name}'" for name in every if len(np.unique(sensitive_codes(plain, name))) < self.l]
        if not names:
            return f"there are no {self.l:g} sensitive values of {self.l:g} different persons"
        return f"{', '.join(names)} {'has' if len(names) == 1 else 'have'} fewer than {self.l:g} different values"

    def _selection(self, table: AnyTable, sensitive: tuple[str, ...]) -> Mechanism:
        from sfumato.mechanisms.containment.greedy import GreedyContainmentSelector

        if not isinstance(table, BinaryTable) and not all(
            is_zero_one(table[name]) for name in table.schema.names(Role.QUASI_IDENTIFIER)
        ):
            problem = "got 'ones', but not all quasi-identifiers are 0/1"
            hint = (
                "'ones' is for words, items and diagnoses: columns that are 1 for people who have it and 0 for others"
            )
            raise InvalidParameterError("attacker_knows", problem, allowed="'all' here", hint=hint)
        if sensitive:
            problem = "is sensitive, but selecting features cannot promise l-diversity"
            hint = "ask for k without l, or give the column another role"
            raise SchemaError(problem, column=sensitive[0], hint=hint, remedy=("no_l",))
        reveals = "ones" if self.attacker_knows == "ones" else "both"
        return GreedyContainmentSelector(k=self.k, on_infeasible="skip", reveals=reveals)


def _has_classes(table: Table) -> bool:
    """Whether there is a target with something to tell apart; missing is a value of its own."""
    target = table.schema.target
    return target is not None and table[target].n_distinct > 1


def _settings_to_compare(table: AnyTable) -> tuple[dict[str, Any], ...]:
    """Give what is asked for by default; at other k it is a point of the mechanism that it chooses."""
    plain = table.coded_part
    return ({"k": 5, **({"l": 2} if plain.schema.names(Role.SENSITIVE) else {})},)


DECLARATION = MechanismInfo(
    Automatic,
    why="the default: the release that keeps most of the target under strict k-anonymity",
    promises="k-anonymity, with l-diversity of sensitive columns",
    compared=_settings_to_compare,
    kind_of=lambda parameters: "containment" if parameters.get("attacker_knows") == "ones" else "k-anonymity",
    needs_target=lambda parameters: parameters.get("attacker_knows") == "ones",
    cost=3.0,
)
