"""What mechanisms that choose columns by an attacker's gain release, and the bound that they state of it."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.errors import SchemaError
from sfumato.guarantees import ROW
from sfumato.guarantees.estimated import BreachBound, BreachMetric
from sfumato.manifest import AnyTable
from sfumato.mechanisms.breach.evidence import CONFIDENCE
from sfumato.mechanisms.breach.problem import BreachProblem
from sfumato.schema import Kind, Role, Schema
from sfumato.table.coding import Table


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
