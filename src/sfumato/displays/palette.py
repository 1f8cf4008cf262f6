"""Colours that colour-blind people can tell apart, and shapes and dashes that tell them apart in grey print.

The colours are those of Okabe and Ito (Color Universal Design, 2008).
"""

from __future__ import annotations

from dataclasses import dataclass

BLACK = "#000000"
ORANGE = "#E69F00"
SKY_BLUE = "#56B4E9"
GREEN = "#009E73"
BLUE = "#0072B2"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"

GREY = "#595959"  # for what stands behind: 7 to 1 against white
WHITE = "#FFFFFF"

TINT = 0.13  # opacity of an area: black text on it keeps a contrast above 15 to 1


@dataclass(frozen=True)
class SeriesStyle:
    """Colour, marker and dashes of one series; each alone tells it from the others."""

    color: str
    marker: str
    linestyle: str | tuple[int, tuple[int, ...]]


SERIES = (
    SeriesStyle(BLUE, "o", "-"),
    SeriesStyle(VERMILION, "s", "--"),
    SeriesStyle(GREEN, "^", "-."),
    SeriesStyle(PURPLE, "D", ":"),
    SeriesStyle(ORANGE, "v", (0, (5, 1, 1, 1, 1, 1))),
    SeriesStyle(SKY_BLUE, "P", (0, (8, 2))),
    SeriesStyle(BLACK, "X", (0, (1, 3))),
)
