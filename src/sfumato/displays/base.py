"""What every display shares: its shape, how it is found for a manifest, and how its axes are dressed.

A display joins by standing in the tuple ``DISPLAYS`` of a module of this package; nothing else is edited.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sfumato.displays.palette import GREY
from sfumato.errors import InvalidParameterError, ManifestError
from sfumato.manifest import Manifest

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

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
        from sfumato.displays.files import rendered

        return rendered(self, "svg").decode()


@dataclass(frozen=True)
class DisplayKind:
    """A kind of display: its name, what it shows, and how it is made from a manifest that has evidence for it."""

    name: str
    shows: str
    mechanisms: tuple[str, ...]
    can_draw: Callable[[Manifest], bool]
    from_manifest: Callable[[Manifest], Display]


@cache
def registered_displays() -> Mapping[str, DisplayKind]:
    """All kinds of displays by name, in alphabetical order."""
    package = importlib.import_module("sfumato.displays")
    found: dict[str, DisplayKind] = {}
    for module in pkgutil.iter_modules(package.__path__, "sfumato.displays."):
        for kind in getattr(importlib.import_module(module.name), "DISPLAYS", ()):
            found[kind.name] = kind
    return dict(sorted(found.items()))


def display_of_manifest(manifest: Manifest, kind: str | None = None, *, path: str | Path | None = None) -> Display:
    """Make the display that a manifest has evidence for.

    Parameters
    ----------
    kind : str or None
        Which one; must be given if there is evidence for several.
    path : str, Path or None
        Where the manifest was read from, for messages.

    Raises
    ------
    ManifestError
        If there is no evidence for the kind, or for any; the message names the mechanisms that have pictures.
    """
    known = registered_displays()
    if kind is not None and kind not in known:
        raise InvalidParameterError("kind", f"got '{kind}'", allowed=f"one of {', '.join(known)}")
    wanted = known if kind is None else {kind: known[kind]}
    drawable = [entry for entry in wanted.values() if entry.can_draw(manifest)]
    if not drawable:
        listed = "; ".join(f"{entry.name} for {', '.join(entry.mechanisms)}" for entry in wanted.values())
        problem = "has no evidence that can be drawn" + (f" as {kind}" if kind else "")
        raise ManifestError(problem, path=path, hint=f"pictures there are: {listed}")
    if len(drawable) > 1:
        names = ", ".join(entry.name for entry in drawable)
        raise InvalidParameterError("kind", "got none", allowed=f"one of {names}, as the manifest has all of them")
    return drawable[0].from_manifest(manifest)


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
