"""Horizontal bars with names beside them: as many as can be read, on a page that grows with their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.displays.base import SMALL_POINTS, WIDTH, new_axes
from sfumato.displays.label_places import size_in_points, text_size
from sfumato.errors import on_one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS = 60
LONGEST_NAME = 28  # characters

_ROW_POINTS = 12.5
_LEAST_ROW_POINTS = 1.15 * SMALL_POINTS  # closer rows would lie on one another
_LEAST_HEIGHT_POINTS = 90.0
_TOP_POINTS = 45.0
_BOTTOM_POINTS = 75.0


def shortened(name: str, most: int = LONGEST_NAME) -> str:
    """Write a name on one line; of one that is too long the beginning and the end, which often has a number.

    Examples
    --------
    >>> shortened("diagnosis-code-of-visit-12", 16)
    'diagnosis-…it-12'
    """
    line = on_one_line(name)
    n_last = most // 3
    return line if len(line) <= most else f"{line[: most - 1 - n_last]}…{line[len(line) - n_last :]}"


def bar_axes(names: Sequence[str], *, row_points: float = _ROW_POINTS) -> Axes:
    """Make axes with room for every name, and for every row up to a limit."""
    height = max(min(len(names), MOST_ROWS) * row_points, _LEAST_HEIGHT_POINTS)
    page = height + _TOP_POINTS + _BOTTOM_POINTS
    left = max(text_size(shortened(name), SMALL_POINTS)[0] for name in names) + 16
    return new_axes(
        left=left / (72 * WIDTH), bottom=_BOTTOM_POINTS / page, top=1 - _TOP_POINTS / page, height=page / 72
    )


def n_rows_that_fit(ax: Axes, n_rows: int) -> int:
    """Count the rows that can be read in the height of the axes, at least one."""
    return min(n_rows, max(int(size_in_points(ax)[1] / _LEAST_ROW_POINTS), 1))


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Write a name beside each row, the first at the top."""
    ax.set_yticks(range(len(names)), [shortened(name) for name in names], parse_math=False)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0, pad=7)


def note_of(words: str, n_all: int, n_shown: int) -> str:
    """Add to a note how many rows are shown, if not all are.

    Examples
    --------
    >>> note_of("40 columns", 40, 38)
    '40 columns; the first 38 are shown'
    """
    if n_shown == n_all:
        return words
    shown = f"the first {n_shown:,} are shown" if n_shown > 1 else "the first is shown"
    return f"{words}; {shown}" if words else shown
