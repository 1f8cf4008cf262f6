"""Horizontal bars with names next to them: as many as can be read, on a page that grows with their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.displays.base import SMALL_POINTS, WIDTH, new_axes
from sfumato.errors import on_one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Places for labels beside points: none over another, over a marker, or outside the axes.
#
# All lengths are in points of print (1/72 inch), so that the answer does not depend on the resolution.


Box = tuple[float, float, float, float]
Offset = tuple[float, float]

_DIRECTIONS = ((1, 1), (1, 0), (1, -1), (0, 1), (0, -1), (-1, 1), (-1, 0), (-1, -1))


def text_size(text: str, font_points: float) -> tuple[float, float]:
    """Width and height of a text of one or more lines, with the little room that keeps it apart from the next."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    lines, font = text.split("\n"), FontProperties(size=font_points)
    widths = [text_to_path.get_text_width_height_descent(line, font, ismath=False)[0] for line in lines]
    return max(widths) + 0.4 * font_points, 1.3 * font_points * len(lines)


def in_points(ax: Axes, x: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
    """Positions of data on the page, from the lower left corner of the axes."""
    pixels = ax.transData.transform(np.column_stack([np.asarray(x, float), np.asarray(y, float)]))
    return np.asarray((pixels - ax.bbox.min) * 72 / ax.figure.dpi)


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes on the page."""
    scale = 72 / ax.figure.dpi
    return float(ax.bbox.width * scale), float(ax.bbox.height * scale)


class FreePlaces:
    """Room left in the axes, which every label that is placed makes smaller.

    Parameters
    ----------
    width, height : float
        Of the axes.
    """

    def __init__(self, width: float, height: float) -> None:
        self._page = (0.0, 0.0, width, height)
        self._taken = np.empty((0, 4))

    def take(self, *boxes: Box) -> None:
        """Mark boxes (left, bottom, right, top) as taken."""
        self._taken = np.vstack([self._taken, np.reshape(boxes, (-1, 4))])

    def place(self, anchor: Offset, size: tuple[float, float], distances: tuple[float, ...]) -> Offset | None:
        """Find a free place for a box near an anchor and take it.

        Returns
        -------
        tuple of float or None
            From the anchor to the box's centre; None if no place at any of the distances is free.
        """
        for distance in distances:
            for across, up in _DIRECTIONS:
                shift = (across * (distance + size[0] / 2), up * (distance + size[1] / 2))
                centre = (anchor[0] + shift[0], anchor[1] + shift[1])
                half = (size[0] / 2, size[1] / 2)
                box = (centre[0] - half[0], centre[1] - half[1], centre[0] + half[0], centre[1] + half[1])
                if self._is_free(box):
                    self.take(box)
                    return shift
        return None

    def _is_free(self, box: Box) -> bool:
        left, bottom, right, top = self._page
        if box[0] < left or box[1] < bottom or box[2] > right or box[3] > top:
            return False
        taken = self._taken
        apart = (taken[:, 0] >= box[2]) | (taken[:, 2] <= box[0]) | (taken[:, 1] >= box[3]) | (taken[:, 3] <= box[1])
        return bool(apart.all())


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
    """Write a name next to each row, the first at the top."""
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
