"""Utility, privacy and trade-off of every feature that parties scored together, and which ones they removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

from sfumato.displays.base import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    WHITE,
    DrawnDisplay,
    check_one_length,
    check_range,
    dress,
    legend_below,
)
from sfumato.displays.drawing import bar_axes, n_rows_that_fit, name_rows, note_of

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

ROW_POINTS = 21.0  # of three bars


class ScoredFeature(Protocol):
    """Scores of one feature, as :class:`sfumato.collaborate.scores.FeatureScore` holds them."""

    @property
    def name(self) -> str:
        """Of the feature."""

    @property
    def utility(self) -> float:
        """Mutual information with the class, in bits."""

    @property
    def privacy_pooled(self) -> float:
        """Privacy score of the totals."""

    @property
    def privacy_average(self) -> float | None:
        """Mean of the parties' own privacy scores."""

    @property
    def tradeoff(self) -> float:
        """Weighted mean of the two."""


class ScoredAgreement(Protocol):
    """Part of :class:`sfumato.collaborate.session.agreement.Agreement` that is shown."""

    @property
    def scores(self) -> Sequence[ScoredFeature]:
        """Of all features."""

    @property
    def removed(self) -> Sequence[str]:
        """Features in the order of their removal."""


@dataclass(frozen=True)
class TradeoffDisplay(DrawnDisplay):
    r"""Features by their trade-off :math:`\tau`, the first to be removed at the top (Table I of [PUFS]_).

    Parameters
    ----------
    names : tuple of str
    utility : tuple of float
        Mutual information with the class, in bits.
    privacy : tuple of float
        Share of the largest possible entropy, :math:`H(A)/\log_2|A|`.
    tradeoff : tuple of float
        :math:`\tau`, the weighted mean of the two.
    is_removed : tuple of bool

    Notes
    -----
    A collaboration's manifest does not hold these scores, since they tell about other parties' rows: the picture is for
    the parties, and is made from the agreement.

    References
    ----------
    .. [PUFS] Sheikhalishahi, Martinelli: Privacy-Utility Feature Selection as a Privacy Mechanism in Collaborative
       Data Classification. WETICE 2017.

    Examples
    --------
    >>> shown = TradeoffDisplay(("sex", "skin"), (0.34, 0.06), (0.65, 0.22), (0.49, 0.14), (False, True)).plot()
    >>> [label.get_text() for label in shown.get_yticklabels()]
    ['skin', 'sex']
    """

    names: tuple[str, ...]
    utility: tuple[float, ...]
    privacy: tuple[float, ...]
    tradeoff: tuple[float, ...]
    is_removed: tuple[bool, ...]

    def __post_init__(self) -> None:
        lists = (self.names, self.utility, self.privacy, self.tradeoff, self.is_removed)
        check_one_length("names and scores", *lists)
        check_range("utility, privacy and tradeoff", (*self.utility, *self.privacy, *self.tradeoff))

    @classmethod
    def from_agreement(cls, agreement: ScoredAgreement) -> Self:
        """Show what the parties agreed on; the privacy score is the averaged one where they averaged."""
        scores = agreement.scores
        return cls(
            tuple(score.name for score in scores),
            tuple(float(score.utility) for score in scores),
            tuple(float(_privacy_of(score)) for score in scores),
            tuple(float(score.tradeoff) for score in scores),
            tuple(score.name in agreement.removed for score in scores),
        )

    @property
    def title(self) -> str:
        """What the picture shows, in one line."""
        return "Trade-off of utility and privacy (τ) by feature"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on given axes, or on those of a new figure that no window shows."""
        axes = bar_axes(self.names, row_points=ROW_POINTS) if ax is None else ax
        order = sorted(range(len(self.names)), key=lambda place: (self.tradeoff[place], self.names[place]))
        shown = order[: n_rows_that_fit(axes, len(order))]
        entries = self._draw_bars(axes, shown)
        name_rows(axes, [self.names[place] for place in shown])
        everything = (*self.utility, *self.privacy, *self.tradeoff)
        axes.set_xlim(min(0.0, *everything), (max(everything) or 1.0) * 1.05)
        removed = f"{sum(self.is_removed):,} of {len(order):,} features removed, those of the smallest τ"
        dress(
            axes,
            title=self.title,
            note=note_of(removed, len(order), len(shown)),
            x_label="utility in bits; privacy and τ as shares (longer is better)",
            y_label="",
        )
        legend_below(axes, n_columns=4, handles=entries)
        return self._drawn_on(axes)

    def _draw_bars(self, ax: Axes, shown: list[int]) -> list[Artist]:
        """Draw three bars a feature and return the entries of the legend."""
        from matplotlib.patches import Patch

        series = (("utility", self.utility, BLUE), ("privacy", self.privacy, ORANGE), ("τ", self.tradeoff, BLACK))
        for number, (label, values, colour) in enumerate(series):
            rows = [row + 0.27 * (number - 1) for row in range(len(shown))]
            bars = ax.barh(rows, [values[place] for place in shown], 0.25, label=label, **_filled(colour))
            for bar, place in zip(bars, shown, strict=True):
                if self.is_removed[place]:
                    bar.set(**_hatched(colour))
        entries: list[Artist] = [Patch(label=label, **_filled(colour)) for label, _, colour in series]
        return [*entries, Patch(label="removed", **_hatched(GREY))] if any(self.is_removed) else entries


def _privacy_of(score: ScoredFeature) -> float:
    return score.privacy_pooled if score.privacy_average is None else score.privacy_average


def _filled(colour: str) -> dict[str, Any]:
    return {"facecolor": colour, "edgecolor": colour, "linewidth": 0.6}


def _hatched(colour: str) -> dict[str, Any]:
    return {"facecolor": WHITE, "edgecolor": colour, "hatch": "//////"}
