"""Charts of something before the release beside the same after it."""

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


def bars_before_after_spec(
    entries: Sequence[Mapping[str, Any]], *, value_title: str, name_title: str = "", is_share: bool = False
) -> Spec:
    """Chart of one pair of horizontal bars for each entry.

    Parameters
    ----------
    entries : sequence of mapping
        ``name``, ``before`` and ``after``; a value of ``None`` has no bar.
    is_share : bool
        Whether values are shares, shown in per cent from 0 to 1.

    Examples
    --------
    >>> spec = bars_before_after_spec([{"name": "naive Bayes", "before": 0.8, "after": 0.7}], value_title="AUC")
    >>> [row["value"] for row in spec["data"]["values"]]
    [0.8, 0.7]
    """
    rows = _before_after_rows(entries)
    value = {"field": "value", "type": "quantitative", "title": value_title}
    axis = {"scale": {"domain": [0, 1]}, "axis": {"format": "~%"}} if is_share else {}
    name = {"field": "name", "type": "nominal", "sort": None, "title": name_title or None, "axis": {"labelLimit": 220}}
    return {
        **_before_after(rows, name_title or "name", value_title),
        "height": 34 * max(len(entries), 1),
        "mark": {"type": "bar"},
        "encoding": {
            "y": name,
            "x": {**value, **axis},
            "yOffset": {"field": "when", "sort": list(_COLOUR)},
            **_before_after_channels(name_title or "name", value_title, ".3~%" if is_share else ".4~g"),
        },
    }


def distribution_spec(
    labels: Sequence[str],
    before: Sequence[float | None],
    after: Sequence[float | None],
    *,
    column: str = "",
    value_title: str = "rows",
) -> Spec:
    """Chart of how often each value of a column occurs, before beside after.

    Examples
    --------
    >>> spec = distribution_spec(["no", "yes"], [60, 40], [58, 42], column="readmitted")
    >>> [(row["name"], row["when"], row["value"]) for row in spec["data"]["values"]][:2]
    [('no', 'before', 60), ('no', 'after', 58)]
    """
    entries = [
        {"name": name, "before": first, "after": second}
        for name, first, second in zip(labels, before, after, strict=True)
    ]
    rows = _before_after_rows(entries)
    name = {"field": "name", "type": "nominal", "sort": None, "title": column or None}
    return {
        **_before_after(rows, column or "value", value_title),
        "height": 260,
        "mark": {"type": "bar"},
        "encoding": {
            "x": {**name, "axis": {"labelAngle": -35, "labelLimit": 140}},
            "y": {"field": "value", "type": "quantitative", "title": value_title, "axis": {"format": "~s"}},
            "xOffset": {"field": "when", "sort": list(_COLOUR)},
            **_before_after_channels(column or "value", value_title, ",.4~r"),
        },
    }


def _before_after_rows(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"name": entry["name"], "when": when, "value": entry[when]}
        for entry in entries
        for when in _COLOUR
        if entry[when] is not None
    ]


def _before_after(rows: Sequence[Mapping[str, Any]], name_title: str, value_title: str) -> Spec:
    return {
        "description": f"{value_title} of each {name_title}, before and after.",
        "width": "container",
        "data": {"values": list(rows)},
        "usermeta": {"table": table_columns(("name", name_title), ("when", "when"), ("value", value_title))},
    }


def _before_after_channels(name_title: str, value_title: str, number: str) -> dict[str, Any]:
    legend = {"orient": "top", "title": None}
    scale = {"domain": list(_COLOUR), "range": list(_COLOUR.values())}
    return {
        "color": {"field": "when", "type": "nominal", "scale": scale, "legend": legend},
        "tooltip": [
            {"field": "name", "title": name_title},
            {"field": "when", "title": "when"},
            {"field": "value", "title": value_title, "format": number},
        ],
    }
