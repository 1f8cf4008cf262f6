"""ROC curves before the release beside those after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.web.charts.specification import HEIGHT, Spec, table_columns

_COLOUR = {"before": "var(--before)", "after": "var(--after)"}
_DASHES = {"before": [6, 3], "after": [1, 0]}


def roc_spec(curves: Mapping[str, Mapping[str, Any]], *, classifier: str = "") -> Spec:
    """Chart of ROC curves.

    Parameters
    ----------
    curves : mapping
        ``before`` and ``after``, or one of them: ``false_positive`` and ``true_positive`` rates, and ``auc`` if known.

    Examples
    --------
    >>> spec = roc_spec({"after": {"false_positive": [0, 0.2, 1], "true_positive": [0, 0.7, 1], "auc": 0.75}})
    >>> len(spec["data"]["values"])
    3
    """
    names = [_curve_name(when, curve) for when, curve in curves.items()]
    rate = {"type": "quantitative", "scale": {"domain": [0, 1]}, "axis": {"format": "~%", "tickCount": 5}}
    shown = ("when", "curve"), ("false_positive", "false positives"), ("true_positive", "true positives")
    return {
        "description": f"ROC{f' of {classifier}' if classifier else ''}: {', '.join(names)}. Dotted: guessing.",
        "width": "container",
        "height": HEIGHT,
        "data": {"values": _curve_rows(curves)},
        "encoding": {
            "x": {**rate, "field": "false_positive", "title": "false positives"},
            "y": {**rate, "field": "true_positive", "title": "true positives"},
        },
        "layer": [_guessing(), _curve_lines(list(curves), names)],
        "usermeta": {"table": table_columns(*shown)},
    }


def _curve_rows(curves: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"when": when, "curve": _curve_name(when, curve), "place": place, "false_positive": x, "true_positive": y}
        for when, curve in curves.items()
        for place, (x, y) in enumerate(zip(curve["false_positive"], curve["true_positive"], strict=True))
    ]


def _curve_name(when: str, curve: Mapping[str, Any]) -> str:
    auc = curve.get("auc")
    return when if auc is None else f"{when}: AUC {auc:.3f}"


def _curve_lines(times: Sequence[str], names: Sequence[str]) -> Spec:
    by_curve = {"field": "curve", "type": "nominal", "legend": {"orient": "bottom", "title": None}}
    colours, dashes = [_COLOUR[when] for when in times], [_DASHES[when] for when in times]
    return {
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {
            "color": {**by_curve, "scale": {"domain": names, "range": colours}},
            "strokeDash": {**by_curve, "scale": {"domain": names, "range": dashes}},
            "order": {"field": "place", "type": "quantitative"},
            "tooltip": [{"field": "curve", "title": "curve"}],
        },
    }


def _guessing() -> Spec:
    """Diagonal of somebody who guesses."""
    mark = {"type": "line", "strokeDash": [2, 3], "color": "var(--edge)", "strokeWidth": 1, "tooltip": None}
    return {"data": {"values": [{"false_positive": end, "true_positive": end} for end in (0, 1)]}, "mark": mark}
