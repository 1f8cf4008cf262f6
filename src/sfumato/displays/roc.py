"""ROC curves before and after: what a classifier still tells apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Self

from sfumato.displays.base import (
    BLUE,
    GREY,
    VERMILION,
    DrawnDisplay,
    check_one_length,
    check_range,
    dress,
    legend_below,
    new_axes,
)
from sfumato.errors import InvalidParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_MARKERS = 12

Curve = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class RocLine:
    """One ROC curve.

    Parameters
    ----------
    false_positive, true_positive : tuple of float
        Rates from 0 to 1, both never falling.
    auc : float or None
        Area under the curve as it was measured, for instance the mean of folds; ``None`` takes that of the points.
    """

    false_positive: tuple[float, ...]
    true_positive: tuple[float, ...]
    auc: float | None = None

    def __post_init__(self) -> None:
        check_one_length("false_positive and true_positive", self.false_positive, self.true_positive)
        for what, rates in (("false_positive", self.false_positive), ("true_positive", self.true_positive)):
            check_range(what, rates, low=0, high=1)
            if list(rates) != sorted(rates):
                raise InvalidParameterError(what, "they do", allowed="rates that never fall")
        if self.auc is not None:
            check_range("auc", [self.auc], low=0, high=1)

    @property
    def area(self) -> float:
        """Area that is shown: the measured one, or that under straight lines between the points.

        Examples
        --------
        >>> RocLine((0.0, 0.5, 1.0), (0.0, 1.0, 1.0)).area
        0.75
        """
        if self.auc is not None:
            return self.auc
        points = list(zip(self.false_positive, self.true_positive, strict=True))
        return sum((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in pairwise(points))


@dataclass(frozen=True)
class RocDisplay(DrawnDisplay):
    """True against false positives of a classifier trained on the original and on the release.

    Parameters
    ----------
    after : RocLine
    before : RocLine or None
    classifier : str, default=""
        Name for the note.

    Examples
    --------
    >>> curve = {"false_positive": [0, 0.2, 1], "true_positive": [0, 0.8, 1]}
    >>> round(RocDisplay.from_curves(curve).after.area, 2)
    0.8
    """

    after: RocLine
    before: RocLine | None = None
    classifier: str = ""

    @classmethod
    def from_curves(
        cls,
        after: Curve,
        before: Curve | None = None,
        *,
        auc_after: float | None = None,
        auc_before: float | None = None,
        classifier: str = "",
    ) -> Self:
        """Show curves of ``false_positive`` and ``true_positive``, as an evaluation holds them."""
        original = None if before is None else _line(before, auc_before)
        return cls(_line(after, auc_after), original, classifier)

    @property
    def title(self) -> str:
        """What the picture shows, in one line."""
        return "ROC curve" if self.before is None else "ROC curve before and after"

    @property
    def series(self) -> tuple[tuple[str, RocLine], ...]:
        """Name and curve of what is drawn."""
        after = (("after", self.after),)
        return after if self.before is None else (("before", self.before), *after)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on given axes, or on those of a new figure that no window shows."""
        axes = new_axes() if ax is None else ax
        for label, line in self.series:
            colour, dashes, marker = (VERMILION, "--", "s") if label == "before" else (BLUE, "-", "o")
            n_points = len(line.false_positive)
            axes.plot(
                line.false_positive,
                line.true_positive,
                color=colour,
                linestyle=dashes,
                linewidth=1.8,
                marker=marker,
                markersize=4,
                markevery=max(n_points // MOST_MARKERS, 1),
                label=f"{label}: AUC {line.area:.3f}",
            )
        axes.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1.2, label="guessing: AUC 0.500")
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.set_aspect("equal", adjustable="box")
        note = "the nearer to the upper left, the better"
        dress(
            axes,
            title=self.title,
            note=f"{self.classifier}: {note}" if self.classifier else note,
            x_label="false positives (share of the other class)",
            y_label="true positives (share of the class)",
        )
        legend_below(axes)
        return self._drawn_on(axes)


def _line(curve: Curve, auc: float | None) -> RocLine:
    try:
        false_positive, true_positive = curve["false_positive"], curve["true_positive"]
        return RocLine(tuple(map(float, false_positive)), tuple(map(float, true_positive)), auc)
    except (KeyError, TypeError):
        allowed = "false_positive and true_positive as lists of rates"
        raise InvalidParameterError("the curve", "but this one is not", allowed=allowed) from None
