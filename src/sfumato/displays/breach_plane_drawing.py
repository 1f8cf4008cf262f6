"""How the PBI-Perf plane is drawn: regions, lines, points and the numbers beside them."""

from __future__ import annotations

import itertools
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.displays.base import SMALL_POINTS, dress, legend_below
from sfumato.displays.label_places import Box, FreePlaces, Offset, in_points, size_in_points, text_size
from sfumato.displays.palette import BLACK, BLUE, GREEN, GREY, ORANGE, SKY_BLUE, TINT, VERMILION, WHITE
from sfumato.selection.tradeoff import Region, pareto_front

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sfumato.displays.breach_plane import BreachPlaneDisplay

MOST_NUMBERED = 60  # with more sets only those on the front have their number of columns beside them

_ROOM_BESIDE = 0.25  # least share of the width on each side of the baseline: a region's name fits in it
_ROOM_ABOVE = 0.2
_NAME_STRIP = 0.09  # share of the height above and below the data, for the names of the regions
_SMALLEST_SPAN = 0.02  # of the baseline performance, where all are the same
_SMALLEST_BREACH_SPAN = 2.0  # percent
_FARTHEST_LINE = 0.75  # α or the floor may widen the picture by at most this many times its height
_SAME_PLACE = 3.0  # points of print: markers that near have one number together
_TINTS = {
    Region.WORSE_AND_RISKIER: VERMILION,
    Region.BETTER_BUT_RISKIER: ORANGE,
    Region.WORSE_BUT_SAFER: SKY_BLUE,
    Region.BETTER_AND_SAFER: GREEN,
}


def draw_plane(plane: BreachPlaneDisplay, ax: Axes) -> None:
    """Draw all of it, from back to front."""
    _set_limits(plane, ax)
    places = FreePlaces(*size_in_points(ax))
    _draw_regions(plane, ax, places)
    _draw_lines(plane, ax, places)
    _draw_front(plane, ax, places)
    marker_points = _draw_sets(plane, ax)
    _write_numbers(plane, ax, places, marker_points)
    n_sets = len(plane.performance)
    counted = "1 set" if n_sets == 1 else f"{n_sets:,} sets"
    left_out = f" ({plane.n_left_out:,} more left out)" if plane.n_left_out else ""
    numbered = "a point" if n_sets <= MOST_NUMBERED else "a filled point"
    dress(
        ax,
        title=plane.title,
        note=f"{counted} of columns{left_out}; the number at {numbered} says how many columns",
        x_label=f"{plane.performance_name} for the target",
        y_label="attacker's gain over all columns (PBI), %",
    )
    ax.ticklabel_format(useOffset=False)
    legend_below(ax)


def _set_limits(plane: BreachPlaneDisplay, ax: Axes) -> None:
    baseline = plane.baseline_performance
    low, high = _around(plane.performance, baseline, _ROOM_BESIDE, _SMALLEST_SPAN * (abs(baseline) or 1.0))
    ax.set_xlim(low, high)
    low, high = _around(plane.breach_increase, 0.0, _ROOM_ABOVE, _SMALLEST_BREACH_SPAN)
    reach = _FARTHEST_LINE * (high - low)
    for line in (plane.max_breach_increase, plane.floor):
        if line is not None and low - reach <= line <= high + reach:
            margin = 0.05 * (high - low)
            low, high = min(low, line - margin), max(high, line + margin)
    strip = _NAME_STRIP * (high - low) / (1 - 2 * _NAME_STRIP)
    ax.set_ylim(low - strip, high + strip)


def _around(values: tuple[float, ...], baseline: float, least_share: float, least_span: float) -> tuple[float, float]:
    """Limits that hold all values, with a share of the room at least on each side of the baseline."""
    below, above = max(baseline - min(values), 0.0), max(max(values) - baseline, 0.0)
    span = max(below + above, least_span)
    margin = 0.07 * span
    least = least_share * span / (1 - least_share)
    return baseline - max(below + margin, least), baseline + max(above + margin, least)


def _draw_regions(plane: BreachPlaneDisplay, ax: Axes, places: FreePlaces) -> None:
    from matplotlib.patches import Rectangle

    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    middle, (width, height) = plane.baseline_performance, size_in_points(ax)
    for region, tint in _TINTS.items():
        is_left = region in (Region.WORSE_AND_RISKIER, Region.WORSE_BUT_SAFER)
        is_top = region in (Region.WORSE_AND_RISKIER, Region.BETTER_BUT_RISKIER)
        corner = (left if is_left else middle, 0.0 if is_top else bottom)
        sides = (middle - left if is_left else right - middle, top if is_top else -bottom)
        box = Rectangle(corner, *sides, facecolor=tint, alpha=TINT, linewidth=0, zorder=0, label=f"_region {region}")
        ax.add_patch(box)
        name = f"{region}: {region.name.lower().replace('_', ' ')}"
        ax.annotate(
            name,
            (0 if is_left else 1, 1 if is_top else 0),
            (5 if is_left else -5, -5 if is_top else 5),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="left" if is_left else "right",
            va="top" if is_top else "bottom",
            fontsize=SMALL_POINTS,
            style="italic",
            zorder=1,
        )
        wide, high = text_size(name, SMALL_POINTS)
        x, y = (0.0 if is_left else width - wide - 8), (height - high - 8 if is_top else 0.0)
        places.take((x, y, x + wide + 8, y + high + 8))


def _draw_lines(plane: BreachPlaneDisplay, ax: Axes, places: FreePlaces) -> None:
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    ax.axvline(plane.baseline_performance, color=GREY, linewidth=0.8, zorder=1.5, label="_baseline performance")
    ax.axhline(0.0, color=GREY, linewidth=0.8, zorder=1.5, label="_baseline breach")
    _take_path(ax, places, [plane.baseline_performance] * 2, [bottom, top])
    _take_path(ax, places, [left, right], [0.0, 0.0])
    meant = (
        (plane.max_breach_increase, "largest PBI allowed (α): {}%", VERMILION, "--"),
        (plane.floor, "PBI of mere guessing (DistP): {}%", BLACK, ":"),
    )
    for height, words, color, dashes in meant:
        if height is None:
            continue
        is_in_view = bottom <= height <= top
        label = words.format(f"{height:.3g}".replace("-", "−")) + ("" if is_in_view else ", out of view")
        ax.axhline(height, color=color, linestyle=dashes, linewidth=1.6, zorder=2, label=label)
        if is_in_view:
            _take_path(ax, places, [left, right], [height, height])
    ax.set_ylim(bottom, top)


def _draw_front(plane: BreachPlaneDisplay, ax: Axes, places: FreePlaces) -> None:
    """Draw the least breach at every performance: up to a front point it is that point's, so steps reach back."""
    is_front = pareto_front(plane.performance, plane.breach_increase, np.zeros(len(plane.performance)))
    x, y = np.unique(np.column_stack([plane.performance, plane.breach_increase])[is_front], axis=0).T
    ax.step(x, y, where="pre", color=BLUE, linewidth=1.2, zorder=2.5, label="least PBI at a performance")
    _take_path(ax, places, np.repeat(x, 2)[:-1], np.repeat(y, 2)[1:])


def _take_path(ax: Axes, places: FreePlaces, x: ArrayLike, y: ArrayLike) -> None:
    """Keep labels off a line of level and upright parts."""
    corners = in_points(ax, x, y)
    for start, end in itertools.pairwise(corners):
        places.take((*np.minimum(start, end) - 1, *np.maximum(start, end) + 1))


def _draw_sets(plane: BreachPlaneDisplay, ax: Axes) -> float:
    """Draw the points; the answer is how far from its point a marker reaches."""
    x, y, front = np.array(plane.performance), np.array(plane.breach_increase), np.array(plane.on_front)
    diameter = 6.5 if len(x) <= MOST_NUMBERED else 4.5
    area = diameter**2
    other = "_other set" if front.all() else "other set"
    ax.scatter(
        x[~front], y[~front], s=0.7 * area, facecolor=WHITE, edgecolor=GREY, linewidth=0.9, zorder=3, label=other
    )
    unbeaten = "unbeaten in performance, PBI and size"
    ax.scatter(x[front], y[front], s=area, color=BLUE, linewidth=0.9, zorder=4, label=unbeaten)
    around: dict[str, Any] = {"facecolor": "none", "zorder": 5}
    ax.scatter(
        [plane.baseline_performance],
        [0.0],
        marker="s",
        s=(diameter + 5) ** 2,
        edgecolor=BLACK,
        linewidth=1.1,
        label="all columns (the baseline)",
        **around,
    )
    if plane.chosen is not None:
        at = x[[plane.chosen]], y[[plane.chosen]]
        area = (diameter + 6) ** 2
        ax.scatter(*at, marker="D", s=area, edgecolor=VERMILION, linewidth=1.8, label="the chosen set", **around)
    return diameter / 2


def _write_numbers(plane: BreachPlaneDisplay, ax: Axes, places: FreePlaces, marker_points: float) -> None:
    positions = in_points(ax, plane.performance, plane.breach_increase)
    (baseline,) = in_points(ax, [plane.baseline_performance], [0.0])
    reach = np.where(np.abs(positions - baseline).max(axis=1) < _SAME_PLACE, marker_points + 3, marker_points)
    if plane.chosen is not None:
        reach[plane.chosen] = marker_points + 6
    places.take(_box(baseline, marker_points + 3), *map(_box, positions, reach))
    if plane.chosen is not None:
        _write_choice(plane, plane.chosen, ax, places, _pair(positions[plane.chosen]))
    for members in _groups(plane, positions):
        text = _sizes_in_words([plane.n_columns[member] for member in members])
        first, farthest = members[0], float(reach[members].max())
        distances = (farthest + 1.5, farthest + 3, farthest + 5)
        shift = places.place(_pair(positions[first]), text_size(text, SMALL_POINTS), distances)
        if shift is not None:
            _write(ax, text, (plane.performance[first], plane.breach_increase[first]), shift)


def _write_choice(plane: BreachPlaneDisplay, chosen: int, ax: Axes, places: FreePlaces, position: Offset) -> None:
    """Name the chosen set's columns where there is room for it, or say how many there are."""
    at = (plane.performance[chosen], plane.breach_increase[chosen])
    for text in _choice_in_words(plane.n_columns[chosen], plane.labels[chosen] if plane.labels else ""):
        shift = places.place(position, text_size(text, SMALL_POINTS), (14.0, 20.0, 28.0, 38.0, 50.0))
        if shift is not None:
            leader = {"arrowstyle": "-", "color": VERMILION, "linewidth": 0.9, "shrinkB": 7}
            _write(ax, text, at, shift, arrowprops=leader)
            return


def _write(ax: Axes, text: str, at: tuple[float, float], shift: Offset, **more: Any) -> None:
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALL_POINTS, "zorder": 7, "parse_math": False}
    ax.annotate(text, at, shift, textcoords="offset points", **style, **more)


def _box(position: NDArray[np.float64], reach: float) -> Box:
    x, y = _pair(position)
    return x - reach, y - reach, x + reach, y + reach


def _pair(position: NDArray[np.float64]) -> Offset:
    return float(position[0]), float(position[1])


def _groups(plane: BreachPlaneDisplay, positions: NDArray[np.float64]) -> list[list[int]]:
    """Gather the sets that get a number where they lie on one another; those with one on the front come first."""
    found: list[list[int]] = []
    for place, position in enumerate(positions):
        if len(positions) <= MOST_NUMBERED or plane.on_front[place]:
            firsts = positions[[members[0] for members in found]]
            near = np.flatnonzero(np.abs(firsts - position).max(axis=1) <= _SAME_PLACE)
            if len(near):
                found[near[0]].append(place)
            else:
                found.append([place])
    return sorted(found, key=lambda members: not any(plane.on_front[member] for member in members))


def _sizes_in_words(sizes: list[int]) -> str:
    different = sorted(set(sizes))
    shown = ", ".join(map(str, different)) if len(different) <= 3 else f"{different[0]}–{different[-1]}"
    return shown if len(sizes) == len(different) <= 3 else f"{shown} ({len(sizes):,} sets)"


def _choice_in_words(n_columns: int, label: str) -> list[str]:
    """Its columns on at most three lines if that can be read, and as a second best how many they are."""
    lines = textwrap.wrap(label, 30, break_long_words=False)
    is_short = 1 <= len(lines) <= 3 and max(map(len, lines)) <= 40
    size = f"chosen: {n_columns:,} {'column' if n_columns == 1 else 'columns'}"
    return ["\n".join(["chosen:", *lines]), size] if is_short else [size]
