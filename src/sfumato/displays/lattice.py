"""Levels that a search over hierarchies took the columns to, and the levels that there are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from sfumato.displays.base import (
    BLUE,
    GREY,
    VERMILION,
    WHITE,
    DisplayKind,
    DrawnDisplay,
    check_one_length,
    check_range,
    dress,
    legend_below,
)
from sfumato.displays.drawing import bar_axes, n_rows_that_fit, name_rows, note_of
from sfumato.errors import InvalidParameterError, ManifestError
from sfumato.manifest import Manifest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sfumato.mechanisms.lattice.recoder import GlobalRecoder

MOST_LEVELS = 1000
MOST_IN_FULL = 1_000_000  # larger counts of combinations are written with a power of ten

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class LatticeDisplay(DrawnDisplay):
    """Level of each column in the node of the lattice that was found, counted from 0: the values as they are.

    Parameters
    ----------
    names : tuple of str
    levels : tuple of int
        Level of each column.
    highest : tuple of int or None
        Top level of each column's hierarchy; ``None`` where it is not known.
    regrouped : tuple of tuple of int
        Other levels of each column, which suppressed rows were recoded to in later rounds; may be left out.
    n_checked : int or None
        Nodes that the search looked at.
    is_proven : bool or None
        Whether no other node can lose less.

    Notes
    -----
    A search keeps how many nodes it looked at, not which, so that they cannot be drawn.

    Examples
    --------
    >>> display = LatticeDisplay(("age", "sex"), (2, 0), (4, 1), n_checked=7, is_proven=True)
    >>> display.note
    '7 of 10 combinations of levels were looked at; no other one loses less'
    """

    names: tuple[str, ...]
    levels: tuple[int, ...]
    highest: tuple[int, ...] | None = None
    regrouped: tuple[tuple[int, ...], ...] = ()
    n_checked: int | None = None
    is_proven: bool | None = None

    def __post_init__(self) -> None:
        lists = [part for part in (self.highest, self.regrouped or None) if part is not None]
        check_one_length("names and levels", self.names, self.levels, *lists)
        check_range("levels", [*self.levels, *(self.highest or ())], low=0, high=MOST_LEVELS)
        check_range("regrouped", [level for levels in self.regrouped for level in levels], low=0, high=MOST_LEVELS)
        if any(level > top for level, top in zip(self.levels, self.highest or self.levels, strict=True)):
            raise InvalidParameterError("levels", "some are above", allowed="at most the highest of their column")

    @classmethod
    def from_recoder(cls, recoder: GlobalRecoder) -> Self:
        """Show the levels that a fitted recoder found, and those that there are."""
        recoding, found = recoder.recoding_, recoder.search_
        return cls(
            recoding.names,
            tuple(int(level) for level in found.levels),
            tuple(len(fitted.labels) - 1 for fitted in recoding.covered),
            tuple(_others(recoding.levels[:, j].tolist(), found.levels[j]) for j in range(len(recoding.names))),
            found.n_checked,
            found.proven,
        )

    @classmethod
    def from_manifest(cls, manifest: Manifest) -> Self:
        """Show the levels of ``evidence.utility.levels``; a manifest does not say how many levels there are."""
        try:
            utility = manifest.evidence["utility"]
            levels = {str(name): int(level) for name, level in utility["levels"].items()}
            used = {entry["column"]: [int(level) for level in entry["levels"]] for entry in manifest.recodings}
            return cls(
                tuple(levels),
                tuple(levels.values()),
                regrouped=tuple(_others(used.get(name, ()), level) for name, level in levels.items()),
                is_proven=utility.get("is_proven_optimal") is True,
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise ManifestError("the manifest's levels are not as this program writes them") from None

    @property
    def title(self) -> str:
        """What the picture shows, in one line."""
        return "Level of each column's hierarchy"

    @property
    def note(self) -> str:
        """How far the search went, in words."""
        parts = []
        if self.n_checked is not None:
            of_all = f" of {_many(math.prod(top + 1 for top in self.highest))}" if self.highest else ""
            parts.append(f"{self.n_checked:,}{of_all} combinations of levels were looked at")
        if self.is_proven is not None:
            parts.append("no other one loses less" if self.is_proven else "another one may lose less")
        return "; ".join(parts)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on given axes, or on those of a new figure that no window shows."""
        from matplotlib.ticker import MaxNLocator

        axes = bar_axes(self.names) if ax is None else ax
        n_shown = n_rows_that_fit(axes, len(self.names))
        self._draw_levels(axes, n_shown)
        name_rows(axes, self.names[:n_shown])
        shown_levels = [*self.levels, *(self.highest or ()), *(level for part in self.regrouped for level in part)]
        axes.set_xlim(0, max(*shown_levels, 1) + 0.15)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        dress(
            axes,
            title=self.title,
            note=note_of(self.note, len(self.names), n_shown),
            x_label="level (0: the values themselves)",
            y_label="",
        )
        legend_below(axes)
        return self._drawn_on(axes)

    def _draw_levels(self, ax: Axes, n_shown: int) -> None:
        rows = range(n_shown)
        if self.highest is not None:
            empty: dict[str, Any] = {"facecolor": WHITE, "edgecolor": GREY, "linewidth": 0.8}
            ax.barh(rows, self.highest[:n_shown], 0.72, label="levels that there are", **empty)
        ax.barh(rows, self.levels[:n_shown], 0.72, facecolor=BLUE, label="level of most rows")
        kept = [row for row in rows if self.levels[row] == 0]
        if kept:
            ax.plot([0] * len(kept), kept, "o", color=BLUE, markersize=4, clip_on=False, label="kept unchanged")
        others = [(level, row) for row in rows for level in (self.regrouped[row] if self.regrouped else ())]
        if others:
            across, down = zip(*others, strict=True)
            style: dict[str, Any] = {"markersize": 5, "markeredgecolor": WHITE, "clip_on": False, "zorder": 4}
            ax.plot(across, down, "D", color=VERMILION, label="other levels, of rows recoded once more", **style)


def _others(levels: Sequence[int], chosen: int) -> tuple[int, ...]:
    return tuple(sorted({int(level) for level in levels} - {int(chosen)}))


def _many(number: int) -> str:
    if number <= MOST_IN_FULL:
        return f"{number:,}"
    power = len(str(number)) - 1
    return f"about {number * 10 // 10**power / 10:g} × 10{str(power).translate(_RAISED)}"


def has_levels(manifest: Manifest) -> bool:
    """Whether a manifest says which levels columns were taken to."""
    return bool(manifest.evidence.get("utility", {}).get("levels"))


DISPLAYS = (
    DisplayKind(
        name="levels",
        shows="level of its hierarchy that each column was taken to",
        mechanisms=("gain-recoding", "global-recoding"),
        can_draw=has_levels,
        from_manifest=LatticeDisplay.from_manifest,
    ),
)
