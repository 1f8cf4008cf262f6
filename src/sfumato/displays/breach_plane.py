"""PBI-Perf plane: what every set of columns is worth to the recipient, and how much it helps an attacker."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.displays.base import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    SKY_BLUE,
    SMALL_POINTS,
    TINT,
    VERMILION,
    WHITE,
    DisplayKind,
    DrawnDisplay,
    dress,
    legend_below,
    new_axes,
)
from sfumato.displays.drawing import Box, FreePlaces, Offset, in_points, size_in_points, text_size
from sfumato.errors import InvalidParameterError, ManifestError, on_one_line
from sfumato.manifest import Manifest
from sfumato.mechanisms.breach.tradeoff import EvaluationWeights, Region, breach_increase_percent, pareto_front

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sfumato.mechanisms.breach.search import CandidateSearch
    from sfumato.mechanisms.breach.selector import BreachAwareSelector
    from sfumato.mechanisms.breach.subset_evaluation import Candidate


LARGEST_NUMBER = 1e9

_METRICS = {"accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "auc": "area under the ROC curve"}


@dataclass(frozen=True)
class BreachPlaneDisplay(DrawnDisplay):
    """Sets of columns by performance and privacy breach increase (Figures 2 and 6 of [PBI17]_).

    Performance grows to the right and the breach upwards, so the lower right is better and safer than all columns.

    Parameters
    ----------
    performance : tuple of float
        Perf(S) of every set.
    breach_increase : tuple of float
        PBI(S) of every set, in percent.
    n_columns : tuple of int
        Size of every set.
    on_front : tuple of bool
        Which sets no other one beats in performance, breach and size.
    baseline_performance : float
        Perf of all columns, whose PBI is 0. The baseline may be one of the sets as well.
    max_breach_increase : float or None
        α in percent.
    chosen : int or None
        Place of the set that was chosen.
    labels : tuple of str
        Columns of every set in words, or nothing; that of the chosen one is shown.
    floor : float or None
        PBI of guessing the most frequent sensitive value (DistP), in percent.
    performance_name : str, default="performance"
        What performance is measured by.
    n_left_out : int, default=0
        How many more sets were compared than are shown; the picture says so.

    References
    ----------
    .. [PBI17] Jafer, Matwin, Sokolova: A Multi-dimensional Privacy-aware Evaluation Function in Automatic Feature
       Selection. Transactions on Data Privacy 10 (2017).

    Examples
    --------
    >>> plane = BreachPlaneDisplay((73.8, 73.0), (0.0, -1.1), (8, 1), (True, True), baseline_performance=73.8)
    >>> plane.plot().get_xlabel()
    'performance for the target'
    """

    performance: tuple[float, ...]
    breach_increase: tuple[float, ...]
    n_columns: tuple[int, ...]
    on_front: tuple[bool, ...]
    baseline_performance: float
    max_breach_increase: float | None = None
    chosen: int | None = None
    labels: tuple[str, ...] = ()
    floor: float | None = None
    performance_name: str = "performance"
    n_left_out: int = 0

    def __post_init__(self) -> None:
        lengths = {len(self.performance), len(self.breach_increase), len(self.n_columns), len(self.on_front)}
        if self.labels:
            lengths.add(len(self.labels))
        if len(lengths) > 1 or 0 in lengths:
            shown = ", ".join(str(length) for length in sorted(lengths))
            raise InvalidParameterError("the lists", f"got {shown}", allowed="of one length, and not empty")
        numbers = (*self.performance, *self.breach_increase, self.baseline_performance)
        if not all(math.isfinite(number) and abs(number) <= LARGEST_NUMBER for number in numbers):
            allowed = f"finite and at most {LARGEST_NUMBER:g}"
            raise InvalidParameterError("performance and breach", "some are not", allowed=allowed)
        if not all(line is None or math.isfinite(line) for line in (self.max_breach_increase, self.floor)):
            raise InvalidParameterError("max_breach_increase and floor", "one is not", allowed="finite or left out")
        if self.chosen is not None and not 0 <= self.chosen < len(self.performance):
            raise InvalidParameterError("chosen", f"got {self.chosen}", allowed="the place of one of the sets")

    @classmethod
    def from_search(
        cls,
        search: CandidateSearch,
        names: Sequence[str] | None = None,
        *,
        weights: Sequence[float] = EvaluationWeights(),
        chosen: Candidate | None = None,
        floor: float | None = None,
        performance_name: str = "performance",
    ) -> Self:
        """Show baseline and candidates of a search.

        Parameters
        ----------
        names : sequence of str or None
            Of the columns that the search numbers.
        weights : sequence of 3 float
            Of E(S), by which the best is chosen unless ``chosen`` is given.
        """
        compared = search.compared
        performance = tuple(found.performance for found in compared)
        breach = tuple(found.breach_increase for found in compared)
        sizes = tuple(len(found.columns) for found in compared)
        winner = search.best(weights) if chosen is None else chosen
        labels = () if names is None else tuple(_listed([names[place] for place in f.columns]) for f in compared)
        return cls(
            performance,
            breach,
            sizes,
            tuple(pareto_front(performance, breach, sizes).tolist()),
            search.baseline.performance,
            search.rule.max_breach_increase,
            None if winner is None else compared.index(winner),
            labels,
            floor,
            performance_name,
        )

    @classmethod
    def from_selector(cls, selector: BreachAwareSelector, *, majority_fraction: float | None = None) -> Self:
        """Show what a fitted selector chose among.

        Parameters
        ----------
        majority_fraction : float or None
            Share of the most frequent sensitive value, for the floor; a selector does not keep it.
        """
        names = list(getattr(selector, "feature_names_in_", [f"x{i}" for i in range(selector.n_features_in_)]))
        return cls.from_search(
            selector.search_,
            [names[place] for place in selector.offered_columns_],
            chosen=selector.chosen_,
            floor=_floor(selector.metric, majority_fraction, selector.breach_.attack_with_all),
            performance_name=_METRICS[selector.metric],
        )

    @classmethod
    def from_manifest(cls, manifest: Manifest) -> Self:
        """Show the candidates that a manifest lists under ``evidence.choice.candidates``, the baseline first."""
        try:
            entries = manifest.evidence["choice"]["candidates"]
            given = manifest.mechanism["parameters"]
            risk = manifest.evidence.get("risk", {})
            chosen = [place for place, entry in enumerate(entries) if entry["chosen"] is True]
            return cls(
                tuple(float(entry["performance"]) for entry in entries),
                tuple(float(entry["breach_increase_percent"]) for entry in entries),
                tuple(int(entry["n_columns"]) for entry in entries),
                tuple(entry["on_pareto_front"] is True for entry in entries),
                float(entries[0]["performance"]),
                float(given["max_breach_increase"]),
                chosen[0] if chosen else None,
                tuple(_listed(entry["columns"]) for entry in entries),
                _floor(
                    given.get("metric"),
                    risk.get("share_of_the_most_frequent_value"),
                    risk.get("attacker_performance_with_all_columns"),
                ),
                _METRICS.get(given.get("metric"), "performance"),
                max(int(manifest.evidence["choice"]["n_candidates"]) + 1 - len(entries), 0),
            )
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError):
            problem = "the manifest's list of candidates is not as this program writes it"
            raise ManifestError(problem) from None

    @property
    def title(self) -> str:
        """What the picture shows, in one line."""
        return "Performance against privacy breach increase (PBI)"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on given axes, or on those of a new figure that no window shows."""
        axes = new_axes() if ax is None else ax
        draw_plane(self, axes)
        return self._drawn_on(axes)


def _listed(columns: Sequence[str]) -> str:
    return on_one_line(", ".join(columns))


def _floor(metric: object, majority_fraction: float | None, attack_with_all: float | None) -> float | None:
    """PBI of the most frequent value; it is a score of accuracy only, and unknown for the other measures."""
    if metric != "accuracy" or majority_fraction is None or attack_with_all is None:
        return None
    return breach_increase_percent(float(majority_fraction), float(attack_with_all))


def has_candidates(manifest: Manifest) -> bool:
    """Whether a manifest lists the sets of columns that were compared."""
    return bool(manifest.evidence.get("choice", {}).get("candidates"))


DISPLAYS = (
    DisplayKind(
        name="breach-plane",
        shows="performance against privacy breach of the sets of columns that were compared",
        mechanisms=("breach-aware",),
        can_draw=has_candidates,
        from_manifest=BreachPlaneDisplay.from_manifest,
    ),
)


# How the PBI-Perf plane is drawn: regions, lines, points and the numbers beside them.


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
