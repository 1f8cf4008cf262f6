"""Privacy-utility frontier: every release that was compared, by the risk it leaves and the utility it keeps."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sfumato.displays.base import (
    BLACK,
    GREY,
    SERIES,
    SMALL_POINTS,
    VERMILION,
    WHITE,
    DrawnDisplay,
    check_one_length,
    check_place,
    check_range,
    dress,
    legend_below,
    new_axes,
)
from sfumato.displays.drawing import Box, FreePlaces, in_points, shortened, size_in_points, text_size
from sfumato.errors import InvalidParameterError, on_one_line

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class FrontierDisplay(DrawnDisplay):
    """Releases by risk and utility: up is more useful, left is safer, so the upper left is best.

    Parameters
    ----------
    utility : tuple of float
        Of every release; higher is better.
    risk : tuple of float
        From 0 up; lower is better.
    n_columns : tuple of int
        Columns that every release kept.
    mechanism : tuple of str
        Name of the mechanism of every release, by which markers and colours are given.
    on_front : tuple of bool
        Which releases no other one with the same promise beats in utility and risk.
    labels : tuple of str
        Every release in words (mechanism and parameters), or nothing; that of the recommended one is shown.
    recommended : int or None
        Place of the release that is recommended.
    original_utility, majority_utility : float or None
        Of the original table, and of guessing the most frequent class; drawn as lines.
    utility_name, risk_name : str
        What is measured.
    n_left_out : int, default=0
        How many more were tried than are shown because they failed; the picture says so.
    groups : tuple of str
        What every release promises, or nothing. The line of the most utility is that of the recommended one's group.
    intervals : tuple of (float, float) or None
        Interval of each utility, drawn as a thin line, or nothing.

    Examples
    --------
    >>> shown = FrontierDisplay((0.8, 0.7), (0.1, 0.01), (5, 3), ("mondrian", "anatomy"), (True, True)).plot()
    >>> shown.get_ylabel()
    'utility (higher is better)'
    """

    utility: tuple[float, ...]
    risk: tuple[float, ...]
    n_columns: tuple[int, ...]
    mechanism: tuple[str, ...]
    on_front: tuple[bool, ...]
    labels: tuple[str, ...] = ()
    recommended: int | None = None
    original_utility: float | None = None
    majority_utility: float | None = None
    utility_name: str = "utility"
    risk_name: str = "risk"
    n_left_out: int = 0
    groups: tuple[str, ...] = ()
    intervals: tuple[tuple[float, float] | None, ...] = ()

    def __post_init__(self) -> None:
        lists = (self.utility, self.risk, self.n_columns, self.mechanism, self.on_front)
        optional = (self.labels, self.groups, self.intervals)
        check_one_length("the lists", *lists, *(one or self.utility for one in optional))
        check_range("intervals", [end for one in self.intervals if one is not None for end in one])
        check_range("utility", self.utility)
        check_range("risk", self.risk, low=0)
        check_range("n_columns", self.n_columns, low=0)
        lines = (self.original_utility, self.majority_utility)
        check_range("original_utility and majority_utility", [line for line in lines if line is not None])
        check_place("recommended", self.recommended, len(self.utility))

    @classmethod
    def from_points(cls, points: Sequence[Mapping[str, Any]], **more: Any) -> Self:
        """Show points of a comparison.

        Parameters
        ----------
        points : sequence of mapping
            Each with ``utility``, ``risk``, ``n_columns``, ``mechanism``, ``on_front``, and perhaps ``label``,
            ``recommended``, ``group``, ``low`` and ``high``. One that failed has ``None`` for utility or risk: it is
            left out and counted.
        more
            Other fields of the display.

        Raises
        ------
        InvalidParameterError
            If every point failed, several are recommended, or one lacks an entry.
        """
        shown = [point for point in points if point.get("utility") is not None and point.get("risk") is not None]
        recommended = [place for place, point in enumerate(shown) if point.get("recommended")]
        if len(recommended) > 1:
            raise InvalidParameterError(
                "points", f"{len(recommended)} are recommended", allowed="one recommended at most"
            )
        try:
            return cls(
                tuple(float(point["utility"]) for point in shown),
                tuple(float(point["risk"]) for point in shown),
                tuple(int(point["n_columns"]) for point in shown),
                tuple(str(point["mechanism"]) for point in shown),
                tuple(bool(point["on_front"]) for point in shown),
                tuple(on_one_line(str(point.get("label") or point["mechanism"])) for point in shown),
                recommended[0] if recommended else None,
                n_left_out=len(points) - len(shown),
                groups=_if_any([str(point.get("group") or "") for point in shown]),
                intervals=_if_any([_interval(point) for point in shown]),
                **more,
            )
        except KeyError as missing:
            problem, allowed = f"one lacks {missing.args[0]}", "with utility, risk, n_columns, mechanism and on_front"
            raise InvalidParameterError("points", problem, allowed=allowed) from None

    @property
    def title(self) -> str:
        """What the picture shows, in one line."""
        return "Utility kept against risk left"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on given axes, or on those of a new figure that no window shows."""
        axes = new_axes() if ax is None else ax
        draw_frontier(self, axes)
        return self._drawn_on(axes)


def _if_any(values: Sequence[_Value]) -> tuple[_Value, ...]:
    """All of them, or none where none says anything."""
    return tuple(values) if any(values) else ()


def _interval(point: Mapping[str, Any]) -> tuple[float, float] | None:
    low, high = point.get("low"), point.get("high")
    return None if low is None or high is None else (float(low), float(high))


# How the privacy-utility frontier is drawn: lines, the front, a shape and colour a mechanism, and the choice.


CHOICE = "recommended"
WIDE_RANGE = 30.0  # times the smallest risk above 0: from there on the axis is logarithmic

_SUITS = ("$\N{BLACK CLUB SUIT}$", "$\N{BLACK SPADE SUIT}$", "$\N{BLACK HEART SUIT}$")
_FURTHER_MARKERS = ("<", ">", "p", "h", "*", "d", "8", "H", *_SUITS)
_MARKER_POINTS = 6.5
_MARGIN = 0.09


def draw_frontier(frontier: FrontierDisplay, ax: Axes) -> None:
    """Draw all of it, from back to front."""
    is_log = _set_limits(frontier, ax)
    _draw_lines(frontier, ax)
    _draw_front(frontier, ax)
    _draw_intervals(frontier, ax)
    _draw_points(frontier, ax)
    n_points = len(frontier.utility)
    counted = "1 release" if n_points == 1 else f"{n_points:,} releases"
    left_out = f" ({frontier.n_left_out:,} more failed)" if frontier.n_left_out else ""
    dress(
        ax,
        title=frontier.title,
        note=f"{counted}{left_out}; the upper left is best; filled: unbeaten in utility and risk by the same promise",
        x_label=f"{frontier.risk_name} (lower is better{', log scale' if is_log else ''})",
        y_label=f"{frontier.utility_name} (higher is better)",
    )
    if frontier.recommended is not None:
        _mark_choice(frontier, frontier.recommended, ax)
    legend_below(ax, n_columns=3, handles=_legend(frontier, ax))


def _set_limits(frontier: FrontierDisplay, ax: Axes) -> bool:
    """Set limits that hold everything; whether the axis of risks is logarithmic (linear up to the smallest risk)."""
    lines = [line for line in (frontier.original_utility, frontier.majority_utility) if line is not None]
    ends = [end for one in frontier.intervals if one is not None for end in one]
    heights = [*frontier.utility, *lines, *ends]
    span = (max(heights) - min(heights)) or 0.02 * (abs(max(heights)) or 1.0)
    ax.set_ylim(min(heights) - _MARGIN * span, max(heights) + _MARGIN * span)
    above_0 = [risk for risk in frontier.risk if risk > 0]
    highest = max(above_0, default=1.0)
    lowest = max(min(above_0, default=1.0), highest / 1e6)
    if highest <= WIDE_RANGE * lowest:
        ax.set_xlim(-0.04 * highest, 1.1 * highest)
        return False
    if min(frontier.risk, default=1.0) >= lowest:
        ax.set_xscale("log")
        ax.set_xlim(lowest / 1.6, highest * 1.6)
        return True
    ax.set_xscale("symlog", linthresh=lowest, linscale=0.4)
    ax.set_xlim(-0.5 * lowest, highest * 1.6)
    return True


def _draw_lines(frontier: FrontierDisplay, ax: Axes) -> None:
    lines = (
        (frontier.original_utility, "original table", BLACK, (0, (6, 2))),
        (frontier.majority_utility, "most frequent class", GREY, ":"),
    )
    for height, label, colour, dashes in lines:
        if height is not None:
            ax.axhline(height, color=colour, linestyle=dashes, linewidth=1.2, zorder=1, label=f"{label}: {height:.3g}")


def _draw_front(frontier: FrontierDisplay, ax: Axes) -> None:
    """Draw the most utility that any release has at a risk, as steps up to the right."""
    risks, heights = zip(*_corners(frontier), strict=True)
    style: dict[str, Any] = {"color": GREY, "linewidth": 1.2, "zorder": 2, "drawstyle": "steps-post"}
    ax.plot([*risks, ax.get_xlim()[1]], [*heights, heights[-1]], label="most utility up to a risk", **style)


def _draw_intervals(frontier: FrontierDisplay, ax: Axes) -> None:
    for risk, one in zip(frontier.risk, frontier.intervals, strict=False):
        if one is not None:
            ax.vlines(risk, *one, color=GREY, linewidth=0.8, zorder=3)


def _corners(frontier: FrontierDisplay) -> list[tuple[float, float]]:
    chosen, groups = frontier.recommended, frontier.groups
    alike = [
        place for place in range(len(frontier.risk)) if chosen is None or not groups or groups[place] == groups[chosen]
    ]
    order = sorted(alike, key=lambda place: (frontier.risk[place], -frontier.utility[place]))
    corners: list[tuple[float, float]] = []
    for place in order:
        if not corners or frontier.utility[place] > corners[-1][1]:
            corners.append((frontier.risk[place], frontier.utility[place]))
    return corners


def _draw_points(frontier: FrontierDisplay, ax: Axes) -> None:
    for number, name in enumerate(sorted(set(frontier.mechanism))):
        colour, marker = _style_of(number)
        members = [place for place, mechanism in enumerate(frontier.mechanism) if mechanism == name]
        x, y = [frontier.risk[place] for place in members], [frontier.utility[place] for place in members]
        faces = [colour if frontier.on_front[place] else WHITE for place in members]
        style: dict[str, Any] = {
            "marker": marker,
            "edgecolors": colour,
            "linewidths": 1.3,
            "zorder": 4,
            "clip_on": False,
        }
        ax.scatter(x, y, _MARKER_POINTS**2, faces, label=f"_{name}", **style)


def _legend(frontier: FrontierDisplay, ax: Axes) -> list[Artist]:
    """List the mechanisms with their markers filled, whichever of their releases are, then the choice and the lines."""
    from matplotlib.lines import Line2D

    entries: list[Artist] = []
    for number, name in enumerate(sorted(set(frontier.mechanism))):
        colour, marker = _style_of(number)
        entries.append(Line2D([], [], color=colour, marker=marker, linestyle="", label=shortened(name)))
    drawn, _ = ax.get_legend_handles_labels()
    return entries + drawn


def _style_of(number: int) -> tuple[str, str]:
    """Colour and marker of a mechanism: markers differ as long as there are some, colours come around."""
    markers = [style.marker for style in SERIES] + list(_FURTHER_MARKERS)
    return SERIES[number % len(SERIES)].color, markers[number % len(markers)]


def _mark_choice(frontier: FrontierDisplay, chosen: int, ax: Axes) -> None:
    """Put a ring around it and a name beside it; where there is no room, the name is in the legend."""
    at = (frontier.risk[chosen], frontier.utility[chosen])
    is_named = _write_choice(frontier, chosen, ax, at)
    label = CHOICE if is_named else f"{CHOICE}: {shortened(frontier.mechanism[chosen])}"
    ring: dict[str, Any] = {"facecolors": "none", "edgecolors": VERMILION, "linewidths": 1.8, "zorder": 5}
    ax.scatter([at[0]], [at[1]], 190, marker="o", label=label, clip_on=False, **ring)


def _write_choice(frontier: FrontierDisplay, chosen: int, ax: Axes, at: tuple[float, float]) -> bool:
    places = FreePlaces(*size_in_points(ax))
    positions = in_points(ax, frontier.risk, frontier.utility)
    reach = _MARKER_POINTS / 2 + 1
    places.take(*((x - reach, y - reach, x + reach, y + reach) for x, y in positions.tolist()))
    places.take(*_boxes_of_lines(frontier, ax))
    x, y = (float(part) for part in positions[chosen])
    for text in _choice_in_words(frontier, chosen):
        shift = places.place((x, y), text_size(text, SMALL_POINTS), (12.0, 20.0, 32.0, 50.0, 75.0))
        if shift is not None:
            leader = {"arrowstyle": "-", "color": VERMILION, "linewidth": 0.9, "shrinkB": 7}
            style: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 6, "parse_math": False}
            ax.annotate(text, at, shift, textcoords="offset points", fontsize=SMALL_POINTS, arrowprops=leader, **style)
            return True
    return False


def _boxes_of_lines(frontier: FrontierDisplay, ax: Axes) -> list[Box]:
    """Where the front and the lines run, as thin boxes on the page."""
    right, heights = ax.get_xlim()[1], (frontier.original_utility, frontier.majority_utility)
    ends = [((ax.get_xlim()[0], height), (right, height)) for height in heights if height is not None]
    corners = _corners(frontier)
    for (risk, height), (next_risk, next_height) in pairwise([*corners, (right, corners[-1][1])]):
        ends += [((risk, height), (next_risk, height)), ((next_risk, height), (next_risk, next_height))]
    boxes = []
    for start, end in ends:
        (x0, y0), (x1, y1) = in_points(ax, [start[0], end[0]], [start[1], end[1]]).tolist()
        boxes.append((x0 - 1, min(y0, y1) - 1, x1 + 1, max(y0, y1) + 1))
    return boxes


def _choice_in_words(frontier: FrontierDisplay, chosen: int) -> tuple[str, str]:
    """Its label on up to three lines with the columns kept, and the mechanism alone as a second best."""
    label = frontier.labels[chosen] if frontier.labels else frontier.mechanism[chosen]
    n_columns = frontier.n_columns[chosen]
    kept = f"{n_columns:,} {'column' if n_columns == 1 else 'columns'}"
    lines = textwrap.wrap(label, 30, max_lines=3, placeholder=" …")
    return "\n".join([f"{CHOICE}:", *lines, kept]), f"{CHOICE}:\n{shortened(frontier.mechanism[chosen])}"
