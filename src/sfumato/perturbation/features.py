"""Binary features of a table; for differential privacy only by rules that do not look at the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sfumato.errors import InvalidParameterError, NotBinaryError
from sfumato.manifest import AnyTable
from sfumato.schema import Role
from sfumato.table.binarize import BinarizePlan, binarize
from sfumato.table.binary import AS_IS, BinaryTable, Feature
from sfumato.table.coding import Table
from sfumato.table.feature_rules import AsIs, CutPoints, Drop, OneOf, Rule

_FIXED = (AsIs, CutPoints, Drop, OneOf)


def as_plan(given: BinarizePlan | Mapping[str, Any] | None) -> BinarizePlan | None:
    """Read a plan that may be given as a mapping."""
    return given if given is None or isinstance(given, BinarizePlan) else BinarizePlan.from_dict(given)


def public_features(
    table: AnyTable, given: BinarizePlan | Mapping[str, Any] | None
) -> tuple[BinaryTable, BinarizePlan | None]:
    """Binary features that are the same whatever the rows are, and the plan they follow (None: they were there).

    The features of a binary table are taken as public knowledge.
    """
    if isinstance(table, BinaryTable):
        return table, None
    plan = fixed_plan(table, as_plan(given))
    try:
        return binarize(table, plan), plan
    except NotBinaryError as exc:
        raise _not_fixed(exc.column or "", "got none and the column is not 0/1") from None


def fixed_plan(table: Table, plan: BinarizePlan | None) -> BinarizePlan:
    """Complete a plan so that its features are the same whatever the rows are.

    A column that is not listed must be 0/1 already. There are no "missing" features, whose presence would tell that a
    value is missing somewhere.

    Raises
    ------
    InvalidParameterError
        If a column is listed with a rule that takes its cut points or values from the rows.
    """
    plan = plan or BinarizePlan()
    for name, rule in plan.columns.items():
        if not isinstance(rule, _FIXED):
            raise _not_fixed(name, "got a rule that looks at the rows")
    unlisted = [name for name in table.schema.names(Role.QUASI_IDENTIFIER) if name not in plan.columns]
    as_it_is = {} if plan.unlisted == "drop" else {name: AsIs() for name in unlisted}
    return replace(plan, columns={**plan.columns, **as_it_is}, missing_features=False, unlisted="drop")


def _not_fixed(column: str, problem: str) -> InvalidParameterError:
    return InvalidParameterError(
        f"binarize.columns.{column}",
        problem,
        allowed="'as-is', 'drop', cuts or one_of for differential privacy",
        hint="give fixed rules; quantiles and lists of values are taken from people's rows and would be published",
    )


def public_descriptions(features: Sequence[Feature], plan: BinarizePlan | None) -> tuple[dict[str, Any], ...]:
    """Describe features by their rules alone: the spellings that happen to occur in the rows are left out.

    Without a plan, features that are columns of the original are not described, as everywhere.
    """
    if plan is None:
        return tuple(f.to_dict() for f in features if f != Feature(f.column, f.column))
    return tuple(_by_rule(feature, plan.columns[feature.column]).to_dict() for feature in features)


def _by_rule(feature: Feature, rule: Rule) -> Feature:
    if isinstance(rule, AsIs):
        return Feature(feature.name, feature.column, AS_IS)
    return replace(feature, values=rule.values) if isinstance(rule, OneOf) else feature
