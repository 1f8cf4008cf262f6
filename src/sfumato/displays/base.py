"""What every display shares: its shape, how it is found for a manifest, and how its axes are dressed.

A display joins by standing in the tuple ``DISPLAYS`` of a module of this package; nothing else is edited.
"""

from __future__ import annotations

import importlib
import io
import math
import pkgutil
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sfumato.atomic import check_writable, write_atomically
from sfumato.errors import InvalidParameterError, ManifestError
from sfumato.manifest import Manifest

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


# Conditions on the plain numbers of displays, each refused with the name of what does not hold.


LARGEST_NUMBER = 1e9


def check_one_length(what: str, *lists: Sized) -> None:
    """Refuse lists that are empty or of different lengths."""
    lengths = {len(entries) for entries in lists}
    if len(lengths) > 1 or 0 in lengths:
        shown = ", ".join(str(length) for length in sorted(lengths))
        raise InvalidParameterError(what, f"got {shown}", allowed="of one length, and not empty")


def check_range(
    what: str, numbers: Iterable[float], low: float = -LARGEST_NUMBER, high: float = LARGEST_NUMBER
) -> None:
    """Refuse numbers that are not finite or not in a range; they are not shown."""
    if not all(math.isfinite(number) and low <= number <= high for number in numbers):
        raise InvalidParameterError(what, "some are not", allowed=f"finite and from {low:g} to {high:g}")


def check_place(what: str, place: int | None, n_places: int) -> None:
    """Refuse a place that is not one of a list."""
    if place is not None and not 0 <= place < n_places:
        raise InvalidParameterError(what, f"got {place}", allowed="a place in the lists")


# Displays as files: the same numbers give the same bytes, and a file appears whole or not at all.


FORMATS = ("svg", "png", "pdf")

_PAGE: dict[str, Any] = {"dpi": 200, "bbox_inches": "tight", "pad_inches": 0.08}  # nothing drawn is ever cut off
_SETTINGS = {"svg.hashsalt": "sfumato"}  # names inside an SVG are drawn at random without it
_NO_DATE: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": "sfumato"},
    "png": {"Software": "sfumato"},
    "pdf": {"CreationDate": None, "Creator": "sfumato", "Producer": None},
}
_SETTINGS_ARE_GLOBAL = threading.Lock()


def picture_format_of(path: str | Path) -> str:
    """Name the format of a picture by its suffix, in any letter case.

    Examples
    --------
    >>> picture_format_of("plane.SVG")
    'svg'
    """
    suffix = Path(path).suffix.lower()
    if suffix.removeprefix(".") not in FORMATS or not suffix:
        problem = f"got a name that ends in {suffix}" if suffix else "got a name without a suffix"
        allowed = "a file name that ends in " + ", ".join(f".{name}" for name in FORMATS)
        raise InvalidParameterError("output", problem, allowed=allowed)
    return suffix.removeprefix(".")


def rendered(display: Display, picture_format: str) -> bytes:
    """Draw a display on a page of its own, untouched by the reader's matplotlib settings, which are put back."""
    from matplotlib import style
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    with _SETTINGS_ARE_GLOBAL, style.context(["default", _SETTINGS]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a name in a script the font lacks
        figure = display.plot().figure
        if not isinstance(figure, Figure):
            raise TypeError
        metadata = {"Title": display.title} | _NO_DATE[picture_format]
        figure.savefig(buffer, format=picture_format, metadata=metadata, **_PAGE)
    return buffer.getvalue()


def save(display: Display, path: str | Path, *, force: bool = False) -> None:
    """Write a display as SVG, PNG or PDF, by the suffix of the path.

    Parameters
    ----------
    force : bool, default=False
        Whether a file that exists is replaced.

    Raises
    ------
    InvalidParameterError
        If the suffix is none of these.
    OutputError
        If the file exists and ``force`` is off, or cannot be written. Nothing is left behind.
    """
    check_picture(path, force=force)
    write_atomically(Path(path), rendered(display, picture_format_of(path)), force=force)


def check_picture(path: str | Path, *, force: bool) -> None:
    """Refuse a path at which :func:`save` would not write, before anything is drawn."""
    picture_format_of(path)
    check_writable(Path(path), force=force)


# Colours that colour-blind people can tell apart, and shapes and dashes that tell them apart in grey print.
#
# The colours are those of Okabe and Ito (Color Universal Design, 2008).


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


WIDTH, HEIGHT = 6.3, 5.2  # inches: the text of an A4 page, so that nothing is scaled in print
TITLE_POINTS = 10
LABEL_POINTS = 9
SMALL_POINTS = 8


class Display(Protocol):
    """Plain numbers that can be drawn, as scikit-learn's displays are: ``plot`` keeps the ``Axes`` it drew on."""

    @property
    def title(self) -> str:
        """What the picture shows, in one line."""

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on given axes, or on those of a new figure that no window shows."""


class DrawnDisplay:
    """Part of a display that remembers where it was drawn last.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def _drawn_on(self, ax: Axes) -> Axes:
        object.__setattr__(self, "ax_", ax)  # displays are frozen: these two are not part of what they show
        object.__setattr__(self, "figure_", ax.figure)
        return ax

    def _repr_svg_(self: Display) -> str:
        """Picture for notebooks."""
        return rendered(self, "svg").decode()


@dataclass(frozen=True)
class DisplayKind:
    """A kind of display: its name, what it shows, and how it is made from a manifest that has evidence for it.

    ``settings`` are arguments that ``from_manifest`` takes besides the manifest. A kind that is drawn ``by_name_only``
    is not one among which a reader has to choose, and in no report.
    """

    name: str
    shows: str
    mechanisms: tuple[str, ...]
    can_draw: Callable[[Manifest], bool]
    from_manifest: Callable[..., Display]
    settings: tuple[str, ...] = ()
    by_name_only: bool = False


@cache
def registered_displays() -> Mapping[str, DisplayKind]:
    """All kinds of displays by name, in alphabetical order."""
    package = importlib.import_module("sfumato.displays")
    found: dict[str, DisplayKind] = {}
    for module in pkgutil.iter_modules(package.__path__, "sfumato.displays."):
        for kind in getattr(importlib.import_module(module.name), "DISPLAYS", ()):
            found[kind.name] = kind
    return dict(sorted(found.items()))


def display_of_manifest(
    manifest: Manifest, kind: str | None = None, *, path: str | Path | None = None, **settings: Any
) -> Display:
    """Make the display that a manifest has evidence for.

    Parameters
    ----------
    kind : str or None
        Which one; must be given if there is evidence for several.
    path : str, Path or None
        Where the manifest was read from, for messages.
    settings
        What some kinds take besides.

    Raises
    ------
    InvalidParameterError
        If the kind does not take a setting.
    ManifestError
        If there is no evidence for the kind, or for any; the message names the mechanisms that have pictures.
    """
    known = registered_displays()
    if kind is not None and kind not in known:
        raise InvalidParameterError("kind", f"got '{kind}'", allowed=f"one of {', '.join(known)}")
    unasked = {name: entry for name, entry in known.items() if not entry.by_name_only}
    wanted = unasked if kind is None else {kind: known[kind]}
    drawable = [entry for entry in wanted.values() if entry.can_draw(manifest)]
    if not drawable:
        listed = "; ".join(f"{entry.name} for {', '.join(entry.mechanisms)}" for entry in wanted.values())
        problem = "has no evidence that can be drawn" + (f" as {kind}" if kind else "")
        raise ManifestError(problem, path=path, hint=f"pictures there are: {listed}")
    if len(drawable) > 1:
        names = ", ".join(entry.name for entry in drawable)
        raise InvalidParameterError("kind", "got none", allowed=f"one of {names}, as the manifest has all of them")
    for name in settings:
        if name not in drawable[0].settings:
            takers = [entry.name for entry in known.values() if name in entry.settings]
            raise InvalidParameterError(
                name, f"got it with {drawable[0].name}", allowed=f"for {', '.join(takers)} only"
            )
    return drawable[0].from_manifest(manifest, **settings)


def new_axes(
    *, left: float = 0.12, bottom: float = 0.28, right: float = 0.97, top: float = 0.88, height: float = HEIGHT
) -> Axes:
    """Make axes on a new figure that pyplot does not know; the margins are shares of the page, the height in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height))
    return figure.add_axes((left, bottom, right - left, top - bottom))


def dress(ax: Axes, *, title: str, note: str, x_label: str, y_label: str) -> None:
    """Write title, note and axis labels in sizes that can be read in print."""
    ax.set_title(f"{title}\n", loc="left", fontsize=TITLE_POINTS, fontweight="bold", parse_math=False)
    ax.annotate(
        note, (0, 1), (0, 6), xycoords="axes fraction", textcoords="offset points", fontsize=SMALL_POINTS, color=GREY
    )
    ax.set_xlabel(x_label, fontsize=LABEL_POINTS, parse_math=False)
    ax.set_ylabel(y_label, fontsize=LABEL_POINTS, parse_math=False)
    ax.tick_params(labelsize=SMALL_POINTS)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def legend_below(
    ax: Axes, *, n_columns: int = 2, below_points: float = 32.0, handles: Sequence[Artist] | None = None
) -> None:
    """Put the legend under the axes, where it hides nothing: points first, lines after, or the handles as given."""
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    if handles is None:
        found, _ = ax.get_legend_handles_labels()
        handles = sorted(found, key=lambda handle: isinstance(handle, Line2D))
    page = ax.get_figure(root=True)
    if page is None:
        raise TypeError
    ax.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=ax.transAxes + ScaledTranslation(-8 / 72, -below_points / 72, page.dpi_scale_trans),
        ncols=n_columns,
        fontsize=SMALL_POINTS,
        markerscale=0.8,
        labelspacing=0.7,
        frameon=False,
        borderaxespad=0,
    )
