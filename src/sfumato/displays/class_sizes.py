"""How many rows share their quasi-identifier values with how many others, before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.attack.class_risk import CLASS_SIZES, class_size_distribution
from sfumato.attack.correspondence import Correspondence
from sfumato.audit.reading.columns import Columns, group_rows
from sfumato.displays.base import (
    BLACK,
    BLUE,
    SMALL_POINTS,
    VERMILION,
    WHITE,
    Display,
    DrawnDisplay,
    check_one_length,
    check_range,
    display_of_manifest,
    dress,
    legend_below,
    new_axes,
    registered_displays,
)
from sfumato.errors import InvalidParameterError
from sfumato.guarantees import KAnonymity
from sfumato.manifest import AnyTable, Manifest
from sfumato.schema import Role

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Ranges = tuple[tuple[int, int | None], ...]


@dataclass(frozen=True)
class ClassSizeDisplay(DrawnDisplay):
    """Share of the rows in equivalence classes of 1, 2-4, 5-9, 10-19, 20-49 and 50 or more rows.

    Parameters
    ----------
    after : tuple of int
        Rows in classes of each range of sizes.
    before : tuple of int or None
        The same of the original.
    k : int or None
        Rows that a class was promised to have; bars for smaller classes should be empty after.
    ranges : tuple of pairs
        Smallest and largest size, ``None`` for no end.

    Examples
    --------
    >>> display = ClassSizeDisplay.from_class_sizes([5, 7, 60], before=[1, 1, 3, 67], k=5)
    >>> display.after, display.before
    ((0, 0, 12, 0, 0, 60), (2, 3, 0, 0, 0, 67))
    """

    after: tuple[int, ...]
    before: tuple[int, ...] | None = None
    k: int | None = None
    ranges: Ranges = CLASS_SIZES

    def __post_init__(self) -> None:
        check_one_length("ranges and rows", self.ranges, self.after, *([] if self.before is None else [self.before]))
        check_range("rows", [*self.after, *(self.before or ())], low=0, high=float(2**53))
        ends = [size for low, high in self.ranges[:-1] for size in (low, high or 0)] + [self.ranges[-1][0]]
        if ends != sorted(ends):
            raise InvalidParameterError("ranges", "they are not", allowed="ascending, and only the last without end")
        if self.k is not None:
            check_range("k", [self.k], low=1)

    @classmethod
    def from_class_sizes(cls, after: ArrayLike, before: ArrayLike | None = None, k: int | None = None) -> Self:
        """Count from the sizes of all classes."""
        return cls.from_distributions(
            class_size_distribution(after), None if before is None else class_size_distribution(before), k
        )

    @classmethod
    def from_tables(
        cls, original: AnyTable, released: AnyTable, manifest: Manifest | None = None, k: int | None = None
    ) -> Self:
        """Count from the two tables, see :func:`sizes_before_and_after`."""
        before, after = sizes_before_and_after(original, released, manifest)
        return cls.from_class_sizes(after, before, k)

    @classmethod
    def from_distributions(
        cls, after: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]] | None = None, k: int | None = None
    ) -> Self:
        """Show ``class_sizes`` as :func:`sfumato.attack.risk.risk_of` gives it, for the release and the original.

        Raises
        ------
        InvalidParameterError
            If an entry lacks its numbers, as where the attack says that it does not apply, or the two differ in ranges.
        """
        try:
            ranges = tuple((int(e["from"]), None if e["to"] is None else int(e["to"])) for e in after)
            if before is not None and [(e["from"], e["to"]) for e in before] != list(ranges):
                raise InvalidParameterError("before", "but it is not", allowed="counted by the ranges of after")
            rows = tuple(int(entry["n_rows"]) for entry in after)
            return cls(rows, None if before is None else tuple(int(e["n_rows"]) for e in before), k, ranges)
        except (KeyError, TypeError):
            allowed = "lists of from, to and n_rows"
            raise InvalidParameterError("class sizes", "but these are not", allowed=allowed) from None

    @property
    def title(self) -> str:
        """What the picture shows, in one line."""
        return "Rows by the size of their equivalence class"

    @property
    def series(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Name and rows of each series that is drawn."""
        after = (("after", self.after),)
        return after if self.before is None else (("before", self.before), *after)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on given axes, or on those of a new figure that no window shows."""
        axes = new_axes() if ax is None else ax
        width = 0.84 / len(self.series)
        for number, (label, counts) in enumerate(self.series):
            places = [place + (number - (len(self.series) - 1) / 2) * width for place in range(len(counts))]
            n_rows = sum(counts)
            shares = [100 * count / n_rows if n_rows else 0.0 for count in counts]
            bars = axes.bar(places, shares, 0.92 * width, label=f"{label} ({n_rows:,} rows)", **_STYLES[label])
            axes.bar_label(bars, [_in_words(share) for share in shares], padding=2, fontsize=SMALL_POINTS - 1)
        axes.set_xticks(range(len(self.ranges)), [_range_in_words(*ends) for ends in self.ranges])
        axes.set_xlim(-0.6, len(self.ranges) - 0.4)
        axes.set_ylim(0, 110)
        axes.set_yticks(range(0, 101, 20))
        if self.k is not None:
            label = f"k = {self.k:,}: classes to the left are smaller"
            axes.axvline(_place_of(self.k, self.ranges), color=VERMILION, linestyle="--", linewidth=1.4, label=label)
        note = "share of the rows in %; a row in a small class is easy to single out"
        dress(axes, title=self.title, note=note, x_label="rows in the class", y_label="rows, %")
        legend_below(axes)
        return self._drawn_on(axes)


def display_of_release(released: AnyTable, manifest: Manifest, kind: str | None = None) -> Display:
    """Make the display that a manifest has evidence for; where it has none, how many rows share quasi-identifiers.

    Rows that were drawn anew, or dealt out to buckets, are not shown by the sizes of their classes.
    """
    has_evidence = any(known.can_draw(manifest) for known in registered_displays().values() if not known.by_name_only)
    if kind is not None or has_evidence or manifest.perturbation is not None:
        return display_of_manifest(manifest, kind)
    shown = Columns(released)
    promised = (entry.get("k") for entry in manifest.guarantees if entry["kind"] == KAnonymity.kind)
    sizes = group_rows(shown, shown.with_role(Role.QUASI_IDENTIFIER)).sizes
    return ClassSizeDisplay.from_class_sizes(sizes, k=next(promised, None))


def sizes_before_and_after(
    original: AnyTable, released: AnyTable, manifest: Manifest | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sizes of the classes of rows with equal quasi-identifiers, in the original and in the release.

    Raises
    ------
    InvalidParameterError
        If the released rows were drawn anew, and are nobody's.
    """
    after = Correspondence(original, released, manifest)
    if after.is_synthetic:
        raise InvalidParameterError("released", "its rows are synthetic", allowed="a release of people's own rows")
    return Correspondence(original, original, None).classes.sizes, after.classes.sizes


_STYLES: dict[str, dict[str, Any]] = {
    "before": {"facecolor": WHITE, "edgecolor": BLACK, "hatch": "////", "linewidth": 0.8},
    "after": {"facecolor": BLUE, "edgecolor": BLACK, "linewidth": 0.8},
}


def _range_in_words(low: int, high: int | None) -> str:
    if high is None:
        return f"{low:,}+"
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _in_words(share: float) -> str:
    """Write a percentage so that only nothing at all is 0, and only all is 100."""
    if 0 < share < 0.1:
        return "<.1"
    return ">99.9" if 99.9 < share < 100 else f"{share:.1f}".removesuffix(".0")


def _place_of(k: int, ranges: Ranges) -> float:
    """Where k falls on an axis of ranges: at the left edge of the one that starts with it, or inside one."""
    place = max((place for place, (low, _) in enumerate(ranges) if low <= k), default=0)
    low, high = ranges[place]
    share = 1 - low / k if high is None else (k - low) / (high + 1 - low)
    return place - 0.5 + min(max(share, 0.0), 1.0)
