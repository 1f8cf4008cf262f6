"""PBI-Perf plane: what every set of columns is worth to the recipient, and how much it helps an attacker."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from sfumato.displays.base import DisplayKind, DrawnDisplay, new_axes
from sfumato.errors import InvalidParameterError, ManifestError, on_one_line
from sfumato.manifest import Manifest
from sfumato.selection.tradeoff import EvaluationWeights, breach_increase_percent, pareto_front

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sfumato.selection.breach import CandidateSearch
    from sfumato.selection.breach_selector import BreachAwareSelector
    from sfumato.selection.judging import Candidate

LARGEST_NUMBER = 1e9

_METRICS = {"accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "auc": "area under the ROC curve"}


@dataclass(frozen=True)
class BreachPlaneDisplay(DrawnDisplay):
    """Sets of columns by performance and privacy breach increase (Figures 2 and 6 of [PBI17]_).

    Performance grows to the right and the breach upwards, so the lower right is better and safer than all columns.

    Parameters
    ----------
    performance : tuple of float
        Perf(S) of every set.
    breach_increase : tuple of float
        PBI(S) of every set, in percent.
    n_columns : tuple of int
        Size of every set.
    on_front : tuple of bool
        Which sets no other one beats in performance, breach and size.
    baseline_performance : float
        Perf of all columns, whose PBI is 0. The baseline may be one of the sets as well.
    max_breach_increase : float or None
        α in percent.
    chosen : int or None
        Place of the set that was chosen.
    labels : tuple of str
        Columns of every set in words, or nothing; that of the chosen one is shown.
    floor : float or None
        PBI of guessing the most frequent sensitive value (DistP), in percent.
    performance_name : str, default="performance"
        What performance is measured by.
    n_left_out : int, default=0
        How many more sets were compared than are shown; the picture says so.

    References
    ----------
    .. [PBI17] Jafer, Matwin, Sokolova: A Multi-dimensional Privacy-aware Evaluation Function in Automatic Feature
       Selection. Transactions on Data Privacy 10 (2017).

    Examples
    --------
    >>> plane = BreachPlaneDisplay((73.8, 73.0), (0.0, -1.1), (8, 1), (True, True), baseline_performance=73.8)
    >>> plane.plot().get_xlabel()
    'performance for the target'
    """

    performance: tuple[float, ...]
    breach_increase: tuple[float, ...]
    n_columns: tuple[int, ...]
    on_front: tuple[bool, ...]
    baseline_performance: float
    max_breach_increase: float | None = None
    chosen: int | None = None
    labels: tuple[str, ...] = ()
    floor: float | None = None
    performance_name: str = "performance"
    n_left_out: int = 0

    def __post_init__(self) -> None:
        lengths = {len(self.performance), len(self.breach_increase), len(self.n_columns), len(self.on_front)}
        if self.labels:
            lengths.add(len(self.labels))
        if len(lengths) > 1 or 0 in lengths:
            shown = ", ".join(str(length) for length in sorted(lengths))
            raise InvalidParameterError("the lists", f"got {shown}", allowed="of one length, and not empty")
        numbers = (*self.performance, *self.breach_increase, self.baseline_performance)
        if not all(math.isfinite(number) and abs(number) <= LARGEST_NUMBER for number in numbers):
            allowed = f"finite and at most {LARGEST_NUMBER:g}"
            raise InvalidParameterError("performance and breach", "some are not", allowed=allowed)
        if not all(line is None or math.isfinite(line) for line in (self.max_breach_increase, self.floor)):
            raise InvalidParameterError("max_breach_increase and floor", "one is not", allowed="finite or left out")
        if self.chosen is not None and not 0 <= self.chosen < len(self.performance):
            raise InvalidParameterError("chosen", f"got {self.chosen}", allowed="the place of one of the sets")

    @classmethod
    def from_search(
        cls,
        search: CandidateSearch,
        names: Sequence[str] | None = None,
        *,
        weights: Sequence[float] = EvaluationWeights(),
        chosen: Candidate | None = None,
        floor: float | None = None,
        performance_name: str = "performance",
    ) -> Self:
        """Show baseline and candidates of a search.

        Parameters
        ----------
        names : sequence of str or None
            Of the columns that the search numbers.
        weights : sequence of 3 float
            Of E(S), by which the best is chosen unless ``chosen`` is given.
        """
        compared = search.compared
        performance = tuple(found.performance for found in compared)
        breach = tuple(found.breach_increase for found in compared)
        sizes = tuple(len(found.columns) for found in compared)
        winner = search.best(weights) if chosen is None else chosen
        labels = () if names is None else tuple(_listed([names[place] for place in f.columns]) for f in compared)
        return cls(
            performance,
            breach,
            sizes,
            tuple(pareto_front(performance, breach, sizes).tolist()),
            search.baseline.performance,
            search.rule.max_breach_increase,
            None if winner is None else compared.index(winner),
            labels,
            floor,
            performance_name,
        )

    @classmethod
    def from_selector(cls, selector: BreachAwareSelector, *, majority_fraction: float | None = None) -> Self:
        """Show what a fitted selector chose among.

        Parameters
        ----------
        majority_fraction : float or None
            Share of the most frequent sensitive value, for the floor; a selector does not keep it.
        """
        names = list(getattr(selector, "feature_names_in_", [f"x{i}" for i in range(selector.n_features_in_)]))
        return cls.from_search(
            selector.search_,
            [names[place] for place in selector.offered_columns_],
            chosen=selector.chosen_,
            floor=_floor(selector.metric, majority_fraction, selector.breach_.attack_with_all),
            performance_name=_METRICS[selector.metric],
        )

    @classmethod
    def from_manifest(cls, manifest: Manifest) -> Self:
        """Show the candidates that a manifest lists under ``evidence.choice.candidates``, the baseline first."""
        try:
            entries = manifest.evidence["choice"]["candidates"]
            given = manifest.mechanism["parameters"]
            risk = manifest.evidence.get("risk", {})
            chosen = [place for place, entry in enumerate(entries) if entry["chosen"] is True]
            return cls(
                tuple(float(entry["performance"]) for entry in entries),
                tuple(float(entry["breach_increase_percent"]) for entry in entries),
                tuple(int(entry["n_columns"]) for entry in entries),
                tuple(entry["on_pareto_front"] is True for entry in entries),
                float(entries[0]["performance"]),
                float(given["max_breach_increase"]),
                chosen[0] if chosen else None,
                tuple(_listed(entry["columns"]) for entry in entries),
                _floor(
                    given.get("metric"),
                    risk.get("share_of_the_most_frequent_value"),
                    risk.get("attacker_performance_with_all_columns"),
                ),
                _METRICS.get(given.get("metric"), "performance"),
                max(int(manifest.evidence["choice"]["n_candidates"]) + 1 - len(entries), 0),
            )
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError):
            problem = "the manifest's list of candidates is not as this program writes it"
            raise ManifestError(problem) from None

    @property
    def title(self) -> str:
        """What the picture shows, in one line."""
        return "Performance against privacy breach increase (PBI)"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on given axes, or on those of a new figure that no window shows."""
        from sfumato.displays.breach_plane_drawing import draw_plane

        axes = new_axes() if ax is None else ax
        draw_plane(self, axes)
        return self._drawn_on(axes)


def _listed(columns: Sequence[str]) -> str:
    return on_one_line(", ".join(columns))


def _floor(metric: object, majority_fraction: float | None, attack_with_all: float | None) -> float | None:
    """PBI of the most frequent value; it is a score of accuracy only, and unknown for the other measures."""
    if metric != "accuracy" or majority_fraction is None or attack_with_all is None:
        return None
    return breach_increase_percent(float(majority_fraction), float(attack_with_all))


def has_candidates(manifest: Manifest) -> bool:
    """Whether a manifest lists the sets of columns that were compared."""
    choice = manifest.evidence.get("choice") if isinstance(manifest.evidence, Mapping) else None
    return isinstance(choice, Mapping) and bool(choice.get("candidates"))


DISPLAYS = (
    DisplayKind(
        name="breach-plane",
        shows="performance against privacy breach of the sets of columns that were compared",
        mechanisms=("breach-aware",),
        can_draw=has_candidates,
        from_manifest=BreachPlaneDisplay.from_manifest,
    ),
)
