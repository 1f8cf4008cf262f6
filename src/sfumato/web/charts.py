"""Charts of the page as Vega-Lite specifications: plain dicts with their data inside, drawn by ``static/charts.js``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

# What all charts share.


Spec = dict[str, Any]

HEIGHT = 380


def table_columns(*named: tuple[str, str]) -> list[dict[str, str]]:
    """Columns of the table next to a chart: fields of the data and what they are called.

    Examples
    --------
    >>> table_columns(("risk", "share at risk"))
    [{'field': 'risk', 'title': 'share at risk'}]
    """
    return [{"field": field, "title": title} for field, title in named]


N_COLOURS = 7
"""Variables ``--chart-1`` to ``--chart-7`` of the stylesheet: colours after Okabe and Ito, fit for light and dark."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-left", "triangle-right")
WIDE_RANGE = 30.0
"""Times the smallest risk above 0: from there on the axis of risks is logarithmic."""


def frontier_spec(
    points: Sequence[Mapping[str, Any]],
    *,
    original_utility: float | None = None,
    utility_name: str = "AUC",
    counted: str = "people",
    chosen: str | None = None,
    selected: str | None = None,
) -> Spec:
    """Chart of utility against risk of all releases of a comparison.

    Parameters
    ----------
    points : sequence of mapping
        As :meth:`sfumato.evaluation.comparison.Comparison.frontier` gives them, each with a ``key`` that a click sends.
        Those without utility or risk are not drawn.
    original_utility : float or None
        Of the table as it is, drawn as a line.
    counted : str
        What risks are shares of: people or rows.
    chosen : str or None
        Key of the candidate, which gets a ring.
    selected : str or None
        Key of the release whose figures are shown, which gets one too.

    Examples
    --------
    >>> point = {"utility": 0.8, "risk": 0.1, "n_columns": 3, "mechanism": "mondrian", "on_front": True}
    >>> spec = frontier_spec([{**point, "key": "a", "label": "mondrian k=5", "recommended": True}])
    >>> [row["key"] for row in spec["data"]["values"]]
    ['a']
    """
    marked = {"candidate": chosen, "selected": selected}
    shown = [_frontier_row(point, marked) for point in points if None not in (point["utility"], point["risk"])]
    axis = _risk_axis([row["risk"] for row in shown])
    group = next((row["group"] for row in shown if row["recommended"]), None)
    alike = [row for row in shown if group is None or row["group"] == group]
    layers = [_front_line(alike), _intervals(), _frontier_points(shown), _rings()]
    if original_utility is not None:
        layers.insert(0, _level(original_utility, f"original: {original_utility:.3f}"))
    return {
        "description": f"{utility_name} against the share of {counted} re-identified, for {len(shown):,} releases.",
        "width": "container",
        "height": HEIGHT,
        "data": {"values": shown},
        "encoding": {
            "x": {"field": "risk", "type": "quantitative", **axis},
            "y": {
                "field": "utility",
                "type": "quantitative",
                "scale": {"zero": False, "nice": True, "padding": 10},
                "title": f"{utility_name} (higher is better)",
            },
        },
        "layer": layers,
    }


def _frontier_row(point: Mapping[str, Any], marked: Mapping[str, str | None]) -> dict[str, Any]:
    kept = ("key", "label", "mechanism", "utility", "risk", "n_columns", "on_front", "recommended")
    marks = ["recommended"] if point["recommended"] else []
    marks += [word for word, key in marked.items() if key is not None and point["key"] == key]
    more = {name: point.get(name) for name in ("group", "low", "high")}
    return {**{name: point[name] for name in kept}, **more, "mark": " and ".join(marks)}


def _intervals() -> Spec:
    """Interval of each utility, as a thin line."""
    return {
        "transform": [{"filter": "datum.low !== null"}],
        "mark": {"type": "rule", "color": "var(--edge)", "strokeWidth": 1, "tooltip": None},
        "encoding": {"y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}},
    }


def _risk_axis(risks: Sequence[float]) -> dict[str, Any]:
    """Scale and axis of risks: linear, logarithmic where they span a wide range, or both where one of them is 0."""
    title = "risk (lower is better"
    above_0 = [risk for risk in risks if risk > 0]
    highest, lowest = max(above_0, default=1.0), max(min(above_0, default=1.0), max(above_0, default=1.0) / 1e6)
    if highest <= WIDE_RANGE * lowest:
        scale = {"domain": [0, 1.1 * highest], "zero": True}
        return {"scale": scale, "axis": {"format": "~%", "tickCount": 6}, "title": f"{title})"}
    ticks = _log_ticks(lowest / 1.6, highest * 1.6)
    if len(above_0) == len(risks):
        scale = {"type": "log", "domain": [lowest / 1.6, highest * 1.6], "clamp": True}
    else:
        scale = {"type": "symlog", "constant": lowest, "domain": [0, highest * 1.6]}
        ticks = [0.0, *ticks]
    n_digits = max(0, -2 - math.floor(math.log10(min(tick for tick in ticks if tick))))
    return {"scale": scale, "axis": {"values": ticks, "format": f".{n_digits}~%"}, "title": f"{title}, log scale)"}


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten in a range; where there are few, two and five times them as well."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high < 1000 * low else (1,)
    return [tick for power in powers for step in steps if low <= (tick := step * 10.0**power) <= high]


def _front_line(rows: Sequence[Mapping[str, Any]]) -> Spec:
    """Most utility that any of these releases has up to a risk, as steps."""
    corners: list[dict[str, float]] = []
    for row in sorted(rows, key=lambda row: (row["risk"], -row["utility"])):
        if not corners or row["utility"] > corners[-1]["utility"]:
            corners.append({"risk": row["risk"], "utility": row["utility"]})
    if corners:
        corners.append({"risk": max(row["risk"] for row in rows), "utility": corners[-1]["utility"]})
    mark = {"type": "line", "interpolate": "step-after", "color": "var(--edge)", "strokeWidth": 1.4}
    return {"data": {"values": corners}, "mark": {**mark, "tooltip": None}}


def _frontier_points(rows: Sequence[Mapping[str, Any]]) -> Spec:
    names = sorted({row["mechanism"] for row in rows})
    colours = {"domain": names, "range": [_colour(number) for number in range(len(names))]}
    shapes = {"domain": names, "range": [SHAPES[number % len(SHAPES)] for number in range(len(names))]}
    of_mechanism = {"field": "mechanism", "type": "nominal"}
    legend = (
        {"orient": "bottom", "columns": {"expr": "max(1, floor(width / 150))"}, "title": None, "symbolSize": 90}
        if names
        else None
    )
    return {
        "mark": {"type": "point", "size": 95, "strokeWidth": 1.8, "opacity": 1, "cursor": "pointer"},
        "encoding": {
            "stroke": {**of_mechanism, "scale": colours, "legend": legend},
            "fill": {**of_mechanism, "scale": colours, "legend": legend},
            "shape": {**of_mechanism, "scale": shapes, "legend": legend},
            "fillOpacity": {"condition": {"test": "datum.on_front", "value": 0.85}, "value": 0},
            "tooltip": [
                {"field": "label", "title": "release"},
                {"field": "utility", "title": "utility", "format": ".3f"},
                {"field": "risk", "title": "risk", "format": ".3~%"},
                {"field": "group", "title": "promises"},
                {"field": "n_columns", "title": "columns"},
                {"field": "mark", "title": "this is"},
            ],
        },
    }


def _colour(number: int) -> str:
    return f"var(--chart-{number % N_COLOURS + 1})"


def _rings() -> Spec:
    """Ring and word for the recommended release, the candidate and the selected one."""
    is_marked = {"filter": "datum.mark !== ''"}
    ring = {"type": "point", "shape": "circle", "size": 420, "strokeWidth": 2.2, "color": "var(--accent)"}
    word = {"type": "text", "dy": -18, "fontWeight": 600, "color": "var(--accent)"}
    return {
        "transform": [is_marked],
        "layer": [
            {"mark": {**ring, "fill": None, "tooltip": None}},
            {"mark": {**word, "tooltip": None}, "encoding": {"text": {"field": "mark"}}},
        ],
    }


def _level(height: float, words: str) -> Spec:
    """Horizontal line with its words at the right end."""
    rule = {"type": "rule", "strokeDash": [6, 3], "color": "var(--soft)"}
    text = {"type": "text", "align": "right", "dy": -7, "dx": -4, "color": "var(--soft)"}
    y = {"field": "utility", "type": "quantitative"}
    return {
        "data": {"values": [{"utility": height, "words": words}]},
        "layer": [
            {"mark": rule, "encoding": {"x": None, "y": y}},
            {"mark": text, "encoding": {"x": {"value": "width"}, "y": y, "text": {"field": "words"}}},
        ],
    }


# ROC curves before the release beside those after it.


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
