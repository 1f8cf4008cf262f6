"""E(S) of every set of columns that was compared, for one or several weightings: what each would choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sfumato.displays.base import (
    BLACK,
    GREY,
    SERIES,
    SMALL_POINTS,
    DisplayKind,
    DrawnDisplay,
    check_one_length,
    check_range,
    dress,
    legend_below,
    new_axes,
)
from sfumato.displays.breach_plane import has_candidates
from sfumato.errors import InvalidParameterError, ManifestError, on_one_line
from sfumato.manifest import Manifest
from sfumato.mechanisms.breach.tradeoff import weights_that_sum_to_one

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NAMED = 24
"""Sets that are named under the axis; with more, only their numbers of columns are."""
LONGEST_NAME = 28
_RANKINGS = {"topsis": "TOPSIS", "lexicographic": "lexicographic order"}
_ROUNDED = 0.006
"""Share by which a figure of the manifest may be off, in its three digits."""


@dataclass(frozen=True)
class SubsetScoresDisplay(DrawnDisplay):
    """Sets of columns by E(S), a line for each weighting (Figures 9 to 16 of [PBI17]_).

    Parameters
    ----------
    names : tuple of str
        Columns of every set in words; the baseline is "all N columns".
    n_columns : tuple of int
        Size of every set.
    weightings : tuple of (tuple of float)
        Weights of performance, privacy, size and further factors.
    scores : tuple of (tuple of float)
        E(S) of every set, a tuple for each weighting.
    firsts : tuple of (str, int)
        Other rankings by name, with the place of the set that is first by each.
    is_allowed : tuple of bool
        Which sets have a breach of at most α, so that they can be chosen; nothing: all.
    n_left_out : int
        How many more sets were compared than are shown.

    References
    ----------
    .. [PBI17] Jafer, Matwin, Sokolova: A Multi-dimensional Privacy-aware Evaluation Function in Automatic Feature
       Selection. Transactions on Data Privacy 10 (2017).

    Examples
    --------
    >>> shown = SubsetScoresDisplay(("all 2 columns", "plas"), (2, 1), ((0.5, 0.25, 0.25),), ((1.5, 2.0),))
    >>> shown.best
    (1,)
    """

    names: tuple[str, ...]
    n_columns: tuple[int, ...]
    weightings: tuple[tuple[float, ...], ...]
    scores: tuple[tuple[float, ...], ...]
    firsts: tuple[tuple[str, int], ...] = ()
    is_allowed: tuple[bool, ...] = ()
    n_left_out: int = 0

    def __post_init__(self) -> None:
        check_one_length("the sets", self.names, self.n_columns, *self.scores)
        if self.is_allowed:
            check_one_length("the sets", self.names, self.is_allowed)
        if self.is_allowed and not any(self.is_allowed):
            raise InvalidParameterError("the sets", "none is", allowed="allowed at least once")
        check_one_length("the weightings", self.weightings, self.scores)
        if len(self.weightings) > len(SERIES):
            problem = f"got {len(self.weightings)} weightings"
            raise InvalidParameterError("weights", problem, allowed=f"at most {len(SERIES)}, to be told apart")
        for own in self.scores:
            check_range("the scores", own, low=0)

    @property
    def best(self) -> tuple[int, ...]:
        """Place of the set that each weighting chooses: the highest E(S), of equal ones the smallest."""
        every = [place for place in range(len(self.names)) if not self.is_allowed or self.is_allowed[place]]
        return tuple(
            min(every, key=lambda place, own=own: (-round(own[place], 9), self.n_columns[place]))  # type: ignore[misc]
            for own in self.scores
        )

    @classmethod
    def from_manifest(cls, manifest: Manifest, weights: Sequence[Sequence[float]] | None = None) -> Self:
        """Show the sets that a manifest lists, the largest first; nothing is trained again.

        E(S) is a sum of ranks, which the manifest has, so that it follows for any weights.

        Parameters
        ----------
        weights : sequence of (sequence of float) or None
            Weightings of performance, privacy and size, and of further factors that the choice had, in their order;
            these count nothing where they are left out. ``None`` takes the weights of the release.
        """
        try:
            choice = manifest.evidence["choice"]
            entries = sorted(choice["candidates"], key=lambda entry: -int(entry["n_columns"]))
            factors = tuple(entries[0]["ranks"])
            ranks = np.array([[int(entry["ranks"][name]) for name in factors] for entry in entries], dtype=np.float64)
            own = [float(choice["weights"][name]) for name in factors]
            sets = [frozenset(entry["columns"]) for entry in entries]
            firsts = {
                name: sets.index(frozenset(columns))
                for name, columns in choice.get("first_by", {}).items()
                if frozenset(columns) in sets
            }
            names = tuple(_named(entry) for entry in entries)
            sizes = tuple(int(entry["n_columns"]) for entry in entries)
            alpha = float(manifest.mechanism["parameters"]["max_breach_increase"])
            breach = [float(entry["breach_increase_percent"]) for entry in entries]
            allowed = tuple(own - alpha <= _ROUNDED * abs(alpha) + 1e-9 for own in breach)
            n_left_out = max(int(choice["n_candidates"]) + 1 - len(entries), 0)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError):
            problem = "the manifest's list of candidates is not as this program writes it"
            raise ManifestError(problem) from None
        used = [_used(factors, given) for given in ([own] if weights is None else weights)]
        scores = tuple(tuple((ranks @ np.array(given)).tolist()) for given in used)
        return cls(names, sizes, tuple(map(tuple, used)), scores, tuple(firsts.items()), allowed, n_left_out)

    @property
    def title(self) -> str:
        """What the picture shows, in one line."""
        return "E(S) of the sets of columns that were compared"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on given axes, or on those of a new figure that no window shows."""
        axes = new_axes(bottom=0.46, height=6.2) if ax is None else ax
        places = np.arange(len(self.names))
        for style, given, own in zip(SERIES, self.weightings, self.scores, strict=False):
            label = "weights " + " / ".join(f"{weight:.3g}" for weight in given)
            axes.plot(
                places, own, color=style.color, marker=style.marker, linestyle=style.linestyle, linewidth=1.2,
                markersize=4, label=label, zorder=3,
            )  # fmt: skip
        for place, own in zip(self.best, self.scores, strict=True):
            axes.scatter(
                [place], [own[place]], s=120, facecolor="none", edgecolor=BLACK, linewidth=1.4, zorder=4,
                label="chosen by a weighting" if own is self.scores[0] else "_chosen",
            )  # fmt: skip
        for number, (name, place) in enumerate(self.firsts):
            axes.axvline(
                place,
                color=GREY,
                linewidth=1,
                linestyle=("--", ":")[number % 2],
                label=f"first by {_RANKINGS.get(name, name)}",
            )
        self._name_sets(axes)
        left_out = f"; {self.n_left_out:,} more sets are not listed" if self.n_left_out else ""
        note = f"ranks of performance, privacy and size, weighted; higher is better{left_out}"
        x_label = "set of columns" if len(self.names) <= MOST_NAMED else "number of columns of the set"
        dress(axes, title=self.title, note=note, x_label=x_label, y_label="E(S)")
        legend_below(axes, below_points=160 if len(self.names) <= MOST_NAMED else 40)
        return self._drawn_on(axes)

    def _name_sets(self, axes: Axes) -> None:
        every = np.arange(len(self.names))
        if len(every) <= MOST_NAMED:
            shown: Sequence[Any] = [
                name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…" for name in self.names
            ]
            axes.set_xticks(every, shown, rotation=90, fontsize=SMALL_POINTS, parse_math=False)
            return
        first_of_size = sorted({size: place for place, size in reversed(list(enumerate(self.n_columns)))}.values())
        kept: list[int] = []
        for place in first_of_size:
            if not kept or place - kept[-1] >= len(every) / MOST_NAMED:
                kept.append(place)
        axes.set_xticks(kept, [str(self.n_columns[place]) for place in kept], fontsize=SMALL_POINTS)


def _named(entry: Any) -> str:
    if entry["region"] == "baseline":
        return f"all {int(entry['n_columns'])} columns"
    return on_one_line(", ".join(entry["columns"]))


def _used(factors: Sequence[str], given: Sequence[float]) -> list[float]:
    """Weights of all factors, divided by their sum where that is not 1."""
    if not 3 <= len(given) <= len(factors):
        most = "" if len(factors) == 3 else f", or {len(factors)} with {', '.join(factors[3:])}"
        allowed = f"three numbers, of performance, privacy and size{most}"
        raise InvalidParameterError("weights", f"got {len(given)}", allowed=allowed)
    padded = [*given, *[0.0] * (len(factors) - len(given))]
    used, _ = weights_that_sum_to_one(dict(zip(factors, map(float, padded), strict=True)))
    return [used[name] for name in factors]


DISPLAYS = (
    DisplayKind(
        name="scores",
        shows="E(S) of the sets of columns that were compared, for one or several weightings",
        mechanisms=("breach-aware",),
        can_draw=has_candidates,
        from_manifest=SubsetScoresDisplay.from_manifest,
        settings=("weights",),
        by_name_only=True,
    ),
)
