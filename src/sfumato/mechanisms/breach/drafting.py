"""What mechanisms that choose columns by an attacker's gain release, and the bound that they state of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import ROW
from sfumato.guarantees.estimated import BreachBound, BreachMetric
from sfumato.learning.c45.tree import refuse_repeated_names
from sfumato.manifest import AnyTable
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.breach.evidence import CONFIDENCE
from sfumato.mechanisms.breach.parameters import OWN_CLASSIFIER
from sfumato.mechanisms.breach.problem import BreachProblem, problem_of_frame
from sfumato.mechanisms.breach.subset_evaluation import Learner, attacker_by_name
from sfumato.mechanisms.containment.base import ChosenColumns
from sfumato.schema import Kind, Role, Schema
from sfumato.table.coding import Table


class BreachMechanism(ChosenColumns, Mechanism, BaseEstimator):  # type: ignore[misc]  # no types upstream
    """What mechanisms share that choose columns by how well recipient and attacker learn from them."""

    counts_persons: ClassVar[bool] = True  # nothing is counted; the folds keep the rows of a person together
    learner: str | Learner
    attacker: str | Learner | Sequence[Learner]
    sensitive: str | None

    def frame_problem(self, X: Any, y: Any, sensitive: Any) -> BreachProblem:
        """Read a data frame or an array, and remember its columns as scikit-learn has it."""
        refuse_repeated_names(X)
        try:
            validate_data(self, X, skip_check_array=True)
        except TypeError:
            allowed = "a table of rows and columns, whose names are all text or all numbers"
            raise InvalidParameterError("X", "it is not", allowed=allowed) from None
        return problem_of_frame(X, y, sensitive, self.sensitive)

    def choose_from_table(self, problem: BreachProblem, chosen: Sequence[int]) -> tuple[str, ...]:
        """Remember the columns of a table and which of them are chosen; gives the names of these."""
        self.n_features_in_ = len(problem.names)
        self.feature_names_in_ = np.array(problem.names, dtype=object)
        self.selected_columns_ = np.array(chosen, dtype=np.intp)
        return tuple(problem.names[place] for place in chosen)

    def plain_parameters(self, changed: Mapping[str, Any], left_out: Collection[str]) -> dict[str, Any]:
        """Parameters that matter to the result, as plain data, learners by their names; not the workers."""
        given = self.get_params(deep=False) | {
            "attacker": attacker_by_name(self.attacker),
            "learner": self.learner if isinstance(self.learner, str) else OWN_CLASSIFIER,
            **changed,
        }
        return {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in given.items()
            if name not in left_out and name != "n_workers"
        }


def checked_table(table: AnyTable) -> Table:
    """Refuse a table whose columns have no roles for an attacker to learn from."""
    if not isinstance(table, Table):
        problem = "is a sparse 0/1 table, whose columns have no roles for an attacker to learn from"
        raise SchemaError(problem, hint="use a mechanism that selects features", remedy=("mechanism",))
    return table


def kept_columns(original: Table, chosen: Sequence[str], *others: Role) -> Table:
    """Keep the chosen quasi-identifiers, the target and columns of the role other, and those of further roles."""
    travelling = original.schema.names(Role.TARGET, Role.OTHER, *others)
    return original.keep(name for name in original.schema.names() if name in chosen or name in travelling)


def breach_promise(
    problem: BreachProblem,
    schema: Schema,
    chosen: tuple[str, ...],
    max_breach_increase: float,
    attacker: str,
    metric: BreachMetric,
) -> BreachBound:
    """Bound what an attacker gains by the chosen columns."""
    return BreachBound(
        max_breach_increase,
        problem.sensitive_name,
        chosen,
        problem.names,
        attacker,
        metric,
        CONFIDENCE,
        tuple(name for name in problem.names if schema[name].kind is Kind.NUMERIC),
        unit=ROW if problem.persons is None else schema.person or ROW,
    )
