"""Privacy-utility frontier: every release that was compared, by the risk it leaves and the utility it keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from sfumato.displays.base import DrawnDisplay, new_axes
from sfumato.displays.checks import check_one_length, check_place, check_range
from sfumato.errors import InvalidParameterError, on_one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class FrontierDisplay(DrawnDisplay):
    """Releases by risk and utility: up is more useful, left is safer, so the upper left is best.

    Parameters
    ----------
    utility : tuple of float
        Of every release; higher is better.
    risk : tuple of float
        From 0 up; lower is better.
    n_columns : tuple of int
        Columns that every release kept.
    mechanism : tuple of str
        Name of the mechanism of every release, by which markers and colours are given.
    on_front : tuple of bool
        Which releases no other one beats in utility, risk and columns.
    labels : tuple of str
        Every release in words (mechanism and parameters), or nothing; that of the recommended one is shown.
    recommended : int or None
        Place of the release that is recommended.
    original_utility, majority_utility : float or None
        Of the original table, and of guessing the most frequent class; drawn as lines.
    utility_name, risk_name : str
        What is measured.
    n_left_out : int, default=0
        How many more were tried than are shown because they failed; the picture says so.

    Examples
    --------
    >>> shown = FrontierDisplay((0.8, 0.7), (0.1, 0.01), (5, 3), ("mondrian", "anatomy"), (True, True)).plot()
    >>> shown.get_ylabel()
    'utility (higher is better)'
    """

    utility: tuple[float, ...]
    risk: tuple[float, ...]
    n_columns: tuple[int, ...]
    mechanism: tuple[str, ...]
    on_front: tuple[bool, ...]
    labels: tuple[str, ...] = ()
    recommended: int | None = None
    original_utility: float | None = None
    majority_utility: float | None = None
    utility_name: str = "utility"
    risk_name: str = "risk"
    n_left_out: int = 0

    def __post_init__(self) -> None:
        lists = (self.utility, self.risk, self.n_columns, self.mechanism, self.on_front, self.labels or self.utility)
        check_one_length("the lists", *lists)
        check_range("utility", self.utility)
        check_range("risk", self.risk, low=0)
        check_range("n_columns", self.n_columns, low=0)
        lines = (self.original_utility, self.majority_utility)
        check_range("original_utility and majority_utility", [line for line in lines if line is not None])
        check_place("recommended", self.recommended, len(self.utility))

    @classmethod
    def from_points(cls, points: Sequence[Mapping[str, Any]], **more: Any) -> Self:
        """Show points of a comparison.

        Parameters
        ----------
        points : sequence of mapping
            Each with ``utility``, ``risk``, ``n_columns``, ``mechanism``, ``on_front``, and perhaps ``label`` and
            ``recommended``. One that failed has ``None`` for utility or risk: it is left out and counted.
        more
            Other fields of the display.

        Raises
        ------
        InvalidParameterError
            If every point failed, several are recommended, or one lacks an entry.
        """
        shown = [point for point in points if point.get("utility") is not None and point.get("risk") is not None]
        recommended = [place for place, point in enumerate(shown) if point.get("recommended")]
        if len(recommended) > 1:
            raise InvalidParameterError(
                "points", f"{len(recommended)} are recommended", allowed="one recommended at most"
            )
        try:
            return cls(
                tuple(float(point["utility"]) for point in shown),
                tuple(float(point["risk"]) for point in shown),
                tuple(int(point["n_columns"]) for point in shown),
                tuple(str(point["mechanism"]) for point in shown),
                tuple(bool(point["on_front"]) for point in shown),
                tuple(on_one_line(str(point.get("label") or point["mechanism"])) for point in shown),
                recommended[0] if recommended else None,
                n_left_out=len(points) - len(shown),
                **more,
            )
        except KeyError as missing:
            problem, allowed = f"one lacks {missing.args[0]}", "with utility, risk, n_columns, mechanism and on_front"
            raise InvalidParameterError("points", problem, allowed=allowed) from None

    @property
    def title(self) -> str:
        """What the picture shows, in one line."""
        return "Utility kept against risk left"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on given axes, or on those of a new figure that no window shows."""
        from sfumato.displays.frontier_drawing import draw_frontier

        axes = new_axes() if ax is None else ax
        draw_frontier(self, axes)
        return self._drawn_on(axes)
