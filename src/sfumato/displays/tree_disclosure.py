"""BIG, ICR and TIDI of a tree's leaves and of the groups that pruning made of them, from a release's manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

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
from sfumato.displays.drawing import bar_axes, name_rows
from sfumato.errors import ManifestError
from sfumato.manifest import Manifest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MEASURES = ("big", "icr", "tidi")
_ROWS = tuple(f"{which} {measure.upper()}" for measure in _MEASURES for which in ("least", "mean"))


@dataclass(frozen=True)
class TreeDisclosureDisplay(DrawnDisplay):
    """What it takes to disclose an individual, before and after pruning, in bits: little of it is risky ([ERP19]_).

    Parameters
    ----------
    before, after : tuple of float
        Least and mean BIG, least and mean ICR, least and mean TIDI: of the leaves, and of the groups.
    n_leaves, n_groups : int
    n_pruned : int
        Branches that became groups.
    n_free : int
        Those of them whose pruning costs no error: their error-risk ratio ω is infinite.
    largest_ratio : float or None
        Largest finite ω of these branches.
    floor : float or None
        Least TIDI that was asked for.

    References
    ----------
    .. [ERP19] Yang, Wang, Hu, Li: A Decision Tree Approach for Assessing and Mitigating Background and Identity
       Disclosure Risks. ICIS 2019.

    Examples
    --------
    >>> shown = TreeDisclosureDisplay((2, 2.4, 1, 1.5, 3, 4), (1, 1.6, 2, 2.2, 3.3, 3.9), 5, 3, 2, 0, 0.445)
    >>> shown.plot().get_yticklabels()[4].get_text()
    'least TIDI'
    """

    before: tuple[float, ...]
    after: tuple[float, ...]
    n_leaves: int
    n_groups: int
    n_pruned: int
    n_free: int
    largest_ratio: float | None = None
    floor: float | None = None

    def __post_init__(self) -> None:
        check_one_length("figures before and after", self.before, self.after, _ROWS)
        check_range("figures", [*self.before, *self.after, self.floor or 0.0], low=0)
        check_range("counts", [self.n_leaves, self.n_groups, self.n_pruned, self.n_free], low=0)
        check_range("largest_ratio", [self.largest_ratio or 0.0])

    @classmethod
    def from_manifest(cls, manifest: Manifest) -> Self:
        """Show what a manifest states under ``evidence.disclosure``."""
        try:
            stated, ratio = manifest.evidence["disclosure"], manifest.evidence["disclosure"]["largest_error_risk_ratio"]
            floor = manifest.mechanism["parameters"].get("min_disclosure_bits")
            return cls(
                _figures(stated, "leaves"),
                _figures(stated, "groups"),
                int(stated["n_leaves"]),
                int(stated["n_groups"]),
                int(stated["n_branches_pruned"]),
                int(stated["n_branches_pruned_at_no_error"]),
                None if ratio is None else float(ratio),
                None if floor is None else float(floor),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            problem = "what the manifest says of disclosure is not as this program writes it"
            raise ManifestError(problem) from None

    @property
    def title(self) -> str:
        """What the picture shows, in one line."""
        return "Information needed to disclose a person, by the groups of the tree"

    @property
    def note(self) -> str:
        """What was pruned, in words."""
        branches = "1 branch" if self.n_pruned == 1 else f"{self.n_pruned:,} branches"
        finite = "" if self.largest_ratio is None else f", the largest other ω is {self.largest_ratio:.3g}"
        return f"{branches} became groups, {self.n_free:,} at no error (ω = ∞){finite}; means are over rows"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on given axes, or on those of a new figure that no window shows."""
        axes = bar_axes(_ROWS, row_points=30.0) if ax is None else ax
        series = (
            (self.before, -0.2, ORANGE, "////", f"{self.n_leaves:,} leaves, before pruning"),
            (self.after, 0.2, BLUE, "", f"{self.n_groups:,} groups, after pruning"),
        )
        for bits, shift, colour, hatch, label in series:
            places = [row + shift for row in range(len(bits))]
            axes.barh(places, bits, 0.36, color=colour, edgecolor="white", hatch=hatch, linewidth=0, label=label)
        if self.floor is not None:
            label = f"least TIDI asked for, {self.floor:g} bits"
            row = _ROWS.index("least TIDI")
            style: dict[str, Any] = {"color": VERMILION, "linestyle": "--", "linewidth": 1.6, "zorder": 3}
            axes.plot([self.floor, self.floor], [row - 0.45, row + 0.45], label=label, **style)
        name_rows(axes, _ROWS)
        axes.set_xlim(0, 1.08 * max(*self.before, *self.after, self.floor or 0.0, 1.0))
        x_label = "bits (less is riskier); BIG: background, ICR: row within a group, TIDI: their sum"
        dress(axes, title=self.title, note=self.note, x_label=x_label, y_label="")
        legend_below(axes)
        return self._drawn_on(axes)


def _figures(stated: Mapping[str, Any], of: str) -> tuple[float, ...]:
    return tuple(float(stated[f"{which}_{name}_bits_of_{of}"]) for name in _MEASURES for which in ("least", "mean"))


def has_disclosure(manifest: Manifest) -> bool:
    """Whether a manifest says what the groups of a tree disclose."""
    return bool(manifest.evidence.get("disclosure"))


DISPLAYS = (
    DisplayKind(
        name="tree",
        shows="information needed to disclose a person (BIG, ICR and TIDI), before and after pruning",
        mechanisms=("error-risk-tree",),
        can_draw=has_disclosure,
        from_manifest=TreeDisclosureDisplay.from_manifest,
    ),
)
