"""Information gain of every column for the target, and the line from which a column is spared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from sfumato.displays.base import (
    BLUE,
    ORANGE,
    VERMILION,
    DisplayKind,
    DrawnDisplay,
    check_one_length,
    check_range,
    dress,
    legend_below,
)
from sfumato.displays.drawing import bar_axes, n_rows_that_fit, name_rows, note_of
from sfumato.errors import ManifestError
from sfumato.manifest import Manifest

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class InformationGainDisplay(DrawnDisplay):
    """Columns by what they tell about the target, the most useful first (Table 1 of [GKN19]_).

    Parameters
    ----------
    names : tuple of str
    gains : tuple of float
        Information gain of each column in bits, H(C) - H(C|X).
    threshold : float or None
        Gain from which the paper's slicing leaves a column as it is; ``None`` where there is no such line.
    target : str, default="the target"
        What the gain is about.

    References
    ----------
    .. [GKN19] Gachanga, Kimwele, Nderu: Feature Based Data Anonymization for High Dimensional Data. JIEA 9(2), 2019.

    Examples
    --------
    >>> InformationGainDisplay(("age", "sex"), (0.01, 0.2), threshold=0.02).plot().get_yticklabels()[0].get_text()
    'sex'
    """

    names: tuple[str, ...]
    gains: tuple[float, ...]
    threshold: float | None = None
    target: str = "the target"

    def __post_init__(self) -> None:
        check_one_length("names and gains", self.names, self.gains)
        check_range("gains", self.gains, low=-1e-6)  # rounding may leave a gain a little below 0
        if self.threshold is not None:
            check_range("threshold", [self.threshold], low=0)

    @classmethod
    def from_manifest(cls, manifest: Manifest) -> Self:
        """Show the gains that a manifest lists under ``evidence.utility.information_gain_bits``.

        The line is drawn only where the release was sliced by it.
        """
        try:
            gains = manifest.evidence["utility"]["information_gain_bits"]
            given = manifest.mechanism["parameters"]
            return cls(
                tuple(str(name) for name in gains),
                tuple(float(gain) for gain in gains.values()),
                float(given["threshold"]) if given.get("slicing") is True else None,
                str(given.get("gain_target") or "the target"),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            problem = "the manifest's list of information gains is not as this program writes it"
            raise ManifestError(problem) from None

    @property
    def title(self) -> str:
        """What the picture shows, in one line."""
        return "Information gain of each column"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on given axes, or on those of a new figure that no window shows."""
        axes = bar_axes(self.names) if ax is None else ax
        order = sorted(range(len(self.names)), key=lambda place: (-self.gains[place], self.names[place]))
        shown = order[: n_rows_that_fit(axes, len(order))]
        self._draw_bars(axes, shown)
        name_rows(axes, [self.names[place] for place in shown])
        least = min(0.0, *self.gains)
        widest = max(*self.gains, self.threshold or 0.0) or 1.0
        axes.set_xlim(least, 1.08 * widest)
        counted = "1 column" if len(order) == 1 else f"{len(order):,} columns"
        dress(
            axes,
            title=self.title,
            note=note_of(counted, len(order), len(shown)),
            x_label=f"information about {self.target}, bits (longer is more useful)",
            y_label="",
        )
        if self.threshold is not None:
            legend_below(axes)
        return self._drawn_on(axes)

    def _draw_bars(self, ax: Axes, shown: list[int]) -> None:
        styles = ((True, BLUE, "", "coarsened"), (False, ORANGE, "////", "unchanged, unprotected"))
        for is_low, colour, hatch, label in styles:
            rows = [row for row, place in enumerate(shown) if self._is_coarsened(place) is is_low]
            widths = [self.gains[shown[row]] for row in rows]
            if rows:
                ax.barh(rows, widths, 0.72, color=colour, edgecolor="white", hatch=hatch, linewidth=0, label=label)
        if self.threshold is not None:
            text = f"slice line, {self.threshold:g} bits"
            ax.axvline(self.threshold, color=VERMILION, linestyle="--", linewidth=1.4, zorder=3, label=text)

    def _is_coarsened(self, place: int) -> bool:
        """Whether a column is below the line; what the gain is about is never coarsened by it."""
        return self.threshold is None or (self.gains[place] < self.threshold and self.names[place] != self.target)


def has_gains(manifest: Manifest) -> bool:
    """Whether a manifest lists information gains."""
    return bool(manifest.evidence.get("utility", {}).get("information_gain_bits"))


DISPLAYS = (
    DisplayKind(
        name="information-gain",
        shows="information gain of each column, with the line from which one is spared",
        mechanisms=("gain-recoding",),
        can_draw=has_gains,
        from_manifest=InformationGainDisplay.from_manifest,
    ),
)
