"""The summary for others: what the manifest tells anyway and a few headline figures, no detail of small groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.report.measured import NOT_MEASURED

WITHHELD = "figures taken from the original would tell more about it than the noise allows"


def for_others(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what only the data holder should see.

    Left out are distinct values before, single checks, recalls of classes, sizes of groups, risk by few columns, the
    columns to blame and the shell line with its paths. Dropped columns are named, as the manifest names them
    (decision 0005). Of a release whose rows were drawn with noise nothing that was measured beside the original is
    told: a promise of differential privacy would not hold for it.
    """
    is_synthetic = summary["done"]["is_synthetic"]
    reproduction = {**summary["reproduction"], "command": None, "notes": []}
    columns = [{**change, "n_before": None} for change in summary["columns"]["changes"]]
    told = summary["in_short"][:2] if is_synthetic else summary["in_short"]
    return {
        **summary,
        "audience": "external",
        "in_short": told,
        "audit": {**summary["audit"], "checks": []},
        "utility": {NOT_MEASURED: WITHHELD} if is_synthetic else _utility(summary["utility"]),
        "risk": {NOT_MEASURED: WITHHELD} if is_synthetic else _risk(summary["risk"]),
        "columns": {**summary["columns"], "changes": columns},
        "reproduction": reproduction,
    }


def _utility(utility: Mapping[str, Any]) -> dict[str, Any]:
    if NOT_MEASURED in utility:
        return dict(utility)
    return {**utility, "classifiers": [{**entry, "recall": []} for entry in utility["classifiers"]]}


def _risk(risk: Mapping[str, Any]) -> dict[str, Any]:
    if NOT_MEASURED in risk:
        return dict(risk)
    rows = [row for row in risk["rows"] if not row["detail"]]
    return {**risk, "rows": rows, "class_sizes": None, "curves": None, "blame": []}
