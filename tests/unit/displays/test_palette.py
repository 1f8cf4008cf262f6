"""Series can be told apart by colour, by marker and by dashes, each alone."""

import itertools
from dataclasses import asdict

import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from sfumato.displays.base import GREY, SERIES, TINT, VERMILION, WHITE


def luminance(color):
    """Relative luminance as WCAG 2 defines it."""
    parts = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(color)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("aspect", ["color", "marker", "linestyle"])
def test_each_aspect_alone_tells_all_series_apart(aspect):
    values = [getattr(style, aspect) for style in SERIES]

    assert all(one != other for one, other in itertools.combinations(values, 2))


def test_every_style_can_be_drawn():
    ax = Figure().add_subplot()

    for style in SERIES:
        (line,) = ax.plot([0, 1], [0, 1], **asdict(style))
        assert (line.get_color(), line.get_marker()) == (style.color, style.marker)


def test_contrasts_are_as_stated():
    tinted = tuple(TINT * part + 1 - TINT for part in to_rgb(VERMILION))

    assert contrast(GREY, WHITE) >= 7
    assert contrast("black", tinted) >= 15
