"""How many people run which re-identification risk, before and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.attack.correspondence import Correspondence
from sfumato.attack.person_risk import owners
from sfumato.audit.levels.persons_at_risk import highest_of_persons
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
from sfumato.displays.class_sizes import sizes_before_and_after
from sfumato.errors import InvalidParameterError
from sfumato.manifest import AnyTable, Manifest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NOTES = {
    "people": "a person's risk: 1 divided by the rows of the person's equivalence class",
    "persons": "a person's risk: 1 divided by the persons of the equivalence class, at the most exposed row",
    "rows": "a row's risk: 1 divided by the rows of its equivalence class",
}
_TICKS = tuple(step * 10**power for power in range(9) for step in (1, 2, 5))  # risks of one in so many


@dataclass(frozen=True)
class RiskCurve:
    """Share of people whose risk is at least r, at every risk r that occurs.

    Parameters
    ----------
    risks : tuple of float
        Ascending, above 0 and at most 1.
    shares : tuple of float
        Of the people, at each risk; never rising.
    n_people : int
    counted : {"people", "persons", "rows"}
        Who has the risk: people with one row each, persons who may have several, or rows where persons may have
        several and are not known.
    """

    risks: tuple[float, ...]
    shares: tuple[float, ...]
    n_people: int
    counted: str = "people"

    def __post_init__(self) -> None:
        check_one_length("risks and shares", self.risks, self.shares)
        check_range("shares", self.shares, low=0, high=1)
        if not all(0 < risk <= 1 for risk in self.risks) or list(self.risks) != sorted(set(self.risks)):
            raise InvalidParameterError("risks", "they are not", allowed="ascending, above 0 and at most 1")
        if list(self.shares) != sorted(self.shares, reverse=True):
            raise InvalidParameterError("shares", "they do", allowed="such that they never rise")
        if self.counted not in _NOTES:
            raise InvalidParameterError("counted", f"got {self.counted!r}", allowed=", ".join(_NOTES))

    @property
    def word(self) -> str:
        """Word for whom the risks are of."""
        return "rows" if self.counted == "rows" else "people"

    @classmethod
    def from_risks(cls, risks: ArrayLike, counted: str = "people") -> Self:
        """Take the risk of each.

        Examples
        --------
        >>> RiskCurve.from_risks([1.0, 0.5, 0.5], "persons")
        RiskCurve(risks=(0.5, 1.0), shares=(1.0, 0.3333333333333333), n_people=3, counted='persons')
        """
        found, n_each = np.unique(np.asarray(risks, dtype=np.float64), return_counts=True)
        n_people = int(n_each.sum())
        shares = np.cumsum(n_each[::-1])[::-1] / max(n_people, 1)
        return cls(tuple(found.tolist()), tuple(shares.tolist()), n_people, counted)

    @classmethod
    def from_class_sizes(cls, sizes: ArrayLike, counted: str = "people") -> Self:
        """Give everybody the risk of one in the size of the own class.

        Examples
        --------
        >>> RiskCurve.from_class_sizes([1, 4, 4, 1])
        RiskCurve(risks=(0.25, 1.0), shares=(1.0, 0.2), n_people=10, counted='people')
        """
        counts = np.asarray(sizes, dtype=np.int64)
        if counts.ndim != 1 or not len(counts) or (counts < 1).any():
            raise InvalidParameterError("sizes", "they are not", allowed="a list of whole numbers of at least 1")
        size, n_classes = np.unique(counts, return_counts=True)
        at_most = np.cumsum(size * n_classes)
        risks, shares = (1 / size)[::-1], (at_most / at_most[-1])[::-1]
        return cls(tuple(risks.tolist()), tuple(shares.tolist()), int(at_most[-1]), counted)


def curves_before_and_after(
    original: AnyTable, released: AnyTable, manifest: Manifest | None = None
) -> tuple[RiskCurve, RiskCurve]:
    """Risks by the classes of rows with equal quasi-identifiers, in the original and in the release.

    Where persons have several rows, each has the risk of the most exposed row: one in the persons of its class. Rows
    are counted where nothing tells whose they are.

    Raises
    ------
    InvalidParameterError
        If the released rows were drawn anew, and are nobody's.
    """
    before, after = sizes_before_and_after(original, released, manifest)
    tables = Correspondence(original, released, manifest)
    owner = None if tables.persons is None else owners(tables, tables.persons)
    if tables.persons is None or owner is None or not len(owner):
        counted = "rows" if tables.may_repeat else "people"
        return RiskCurve.from_class_sizes(before, counted), RiskCurve.from_class_sizes(after, counted)
    first = Correspondence(original, original, None).classes.ids
    pairs = ((first, tables.persons), (tables.classes.ids, owner))
    old, new = (RiskCurve.from_risks(highest_of_persons(ids, who), "persons") for ids, who in pairs)
    return old, new


@dataclass(frozen=True)
class RiskDisplay(DrawnDisplay):
    r"""Share of people with a re-identification risk of at least r, by r.

    The risk is the prosecutor's [ED08]_, :math:`1/f_j` in a class of :math:`f_j` rows: the attacker knows that the
    person is in the table, and all of the person's quasi-identifiers. Where cells are ranges and sets that overlap,
    the true risk is lower: see :func:`sfumato.attack.reidentification.risks_of_candidates`.

    Parameters
    ----------
    after : RiskCurve
        People whose rows were released.
    before : RiskCurve or None
        All people of the original.
    k : int or None
        Rows that a class was promised to have; nobody's risk should be above 1/k.

    References
    ----------
    .. [ED08] El Emam, Dankar: Protecting Privacy Using k-Anonymity. JAMIA 15(5) (2008) 627-637.

    Examples
    --------
    >>> RiskDisplay(RiskCurve.from_class_sizes([5, 5]), RiskCurve.from_class_sizes([1, 1, 8]), k=5).title
    'People by their risk of re-identification'
    """

    after: RiskCurve
    before: RiskCurve | None = None
    k: int | None = None

    def __post_init__(self) -> None:
        if self.k is not None:
            check_range("k", [self.k], low=1)

    @classmethod
    def from_tables(
        cls, original: AnyTable, released: AnyTable, manifest: Manifest | None = None, k: int | None = None
    ) -> Self:
        """Compute both curves from the tables, see :func:`curves_before_and_after`."""
        before, after = curves_before_and_after(original, released, manifest)
        return cls(after, before, k)

    @property
    def title(self) -> str:
        """What the picture shows, in one line."""
        return f"{self.after.word.capitalize()} by their risk of re-identification"

    @property
    def series(self) -> tuple[tuple[str, RiskCurve], ...]:
        """Name and curve of what is drawn."""
        after = (("after", self.after),)
        return after if self.before is None else (("before", self.before), *after)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on given axes, or on those of a new figure that no window shows."""
        axes = new_axes() if ax is None else ax
        lowest = min(curve.risks[0] for _, curve in self.series)
        left = min(lowest / 1.5, 0.4)
        for label, curve in self.series:
            _draw_curve(axes, label, curve, left)
        if self.k is not None:
            label = f"k = {self.k:,}: risk of {_one_in(self.k)}"
            axes.axvline(1 / self.k, color=GREY, linestyle=":", linewidth=1.4, label=label)
        axes.set_xscale("log")
        axes.set_xlim(left, 1.25)
        axes.set_ylim(-2, 104)
        _label_risks(axes, left)
        dress(
            axes,
            title=self.title,
            note=_NOTES[self.after.counted],
            x_label="risk r (log scale)",
            y_label=f"{self.after.word} with a risk of r or more, %",
        )
        legend_below(axes)
        return self._drawn_on(axes)


def _draw_curve(ax: Axes, label: str, curve: RiskCurve, left: float) -> None:
    """Draw steps that start at the left edge and fall to 0 after the highest risk."""
    colour, dashes, marker = (VERMILION, "--", "s") if label == "before" else (BLUE, "-", "o")
    highest = curve.risks[-1]
    risks = [left, *curve.risks, highest]
    shares = [100.0, *(100 * share for share in curve.shares), 0.0]
    words = f"{label}: {curve.n_people:,} {curve.word}, highest risk {_one_in(round(1 / highest))}"
    ax.plot(risks, shares, drawstyle="steps-pre", color=colour, linestyle=dashes, linewidth=1.8, label=words)
    ax.plot([highest], [100 * curve.shares[-1]], marker, color=colour, markersize=6, label=f"_highest {label}")


def _label_risks(ax: Axes, left: float) -> None:
    ticks = [one_in for one_in in _TICKS if 1 / one_in >= left]
    if len(ticks) > 11:
        ticks = [one_in for one_in in ticks if str(one_in)[0] == "1"]
    ax.set_xticks([1 / one_in for one_in in ticks], [_one_in(one_in) for one_in in ticks])
    ax.set_xticks([], minor=True)


def _one_in(number: int) -> str:
    return "1" if number == 1 else f"1/{number:,}"
