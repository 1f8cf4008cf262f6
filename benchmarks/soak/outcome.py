"""What one kind of stress came to: counts, figures, findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Effort:
    """How much to do: 1 is the full run of ten minutes.

    Parameters
    ----------
    share : float
        Part of the full run; counts are scaled by it.
    seed : int
        Of everything that is drawn.
    """

    share: float = 1.0
    seed: int = 1

    def times(self, count: int, *, least: int = 1) -> int:
        """Scale a count of the full run.

        Examples
        --------
        >>> Effort(share=0.1).times(200)
        20
        """
        return max(least, round(count * self.share))


@dataclass
class Outcome:
    """Counts of one kind of stress.

    Parameters
    ----------
    kind : str
        Which stress.
    unit : str
        What was counted, in the plural.
    n_done : int
        How many of them.
    figures : dict of str to str
        Further figures, in words.
    findings : dict of str to int
        What must not happen and how often it did; empty is what is wanted.
    skipped : str
        Why nothing was done, if so.
    """

    kind: str
    unit: str
    n_done: int = 0
    figures: dict[str, str] = field(default_factory=dict)
    findings: dict[str, int] = field(default_factory=dict)
    skipped: str = ""
    seconds: float = 0.0

    def found(self, what: str, times: int = 1) -> None:
        """Note something that must not happen."""
        self.findings[what] = self.findings.get(what, 0) + times

    def count(self, figures: Mapping[str, int]) -> None:
        """Set counts as figures, most frequent first."""
        ordered = sorted(figures.items(), key=lambda entry: -entry[1])
        self.figures |= {name: f"{number:,}" for name, number in ordered}

    def count_one(self, figure: str) -> None:
        """Add one to a figure that is a count."""
        self.figures[figure] = f"{int(self.figures.get(figure, '0').replace(',', '')) + 1:,}"
