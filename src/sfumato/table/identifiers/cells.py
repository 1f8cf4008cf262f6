"""What the detectors look at: a bounded number of a column's distinct values, as texts, with how many rows hold it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.schema import Kind
from sfumato.table.coding import CodedColumn
from sfumato.table.column_names import folded

MOST_VALUES = 400
"""Distinct values that are looked at; of more, every so many-th in their order."""
_FIRST_LOOK = 12
_HALF, _PERCENT = 0.5, 0.01


@dataclass(frozen=True)
class Finding:
    """What a detector has seen.

    Parameters
    ----------
    what : str
        A pattern in words, such as "e-mail addresses"; never a value.
    share : float or None
        Of the cells that fit it; None where the words say it all.
    """

    what: str
    share: float | None = None

    def __str__(self) -> str:
        if self.share is None:
            return self.what
        if self.share < _HALF:
            percent = f"{100 * self.share:.0f} %" if self.share >= _PERCENT else "fewer than 1 %"
            return f"holds {self.what} in {percent} of the cells"
        percent = f"{min(int(100 * self.share), 99) if self.share < 1 else 100} %"
        return f"looks like {self.what} in {percent} of the cells"


def _as_text(value: object) -> str:
    """Write a cell as in a text file; a whole number that is kept as a decimal without its ".0"."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


@dataclass(frozen=True)
class Cells:
    """Some distinct values of a column.

    Parameters
    ----------
    texts : tuple of str
        Without blanks around.
    rows : tuple of int
        How many rows hold each of them.
    n_distinct, n_present : int
        Distinct values, and rows with a value, of the whole column.
    """

    texts: tuple[str, ...]
    rows: tuple[int, ...]
    kind: Kind
    n_distinct: int
    n_present: int

    @classmethod
    def of(cls, coded: CodedColumn, kind: Kind) -> Cells:
        """Take evenly spaced distinct values of a column, the same ones every time."""
        n_distinct = coded.n_distinct - coded.values.null_count
        places = np.arange(n_distinct)
        if n_distinct > MOST_VALUES:
            places = np.linspace(0, n_distinct - 1, MOST_VALUES).astype(np.int64)
        texts = tuple(map(_as_text, coded.values.take(places).to_pylist()))
        return cls(texts, tuple(coded.counts[places].tolist()), kind, n_distinct, coded.n_rows - coded.n_missing)

    @cached_property
    def folded(self) -> tuple[str, ...]:
        """The texts in lower case and without accents."""
        return tuple(map(folded, self.texts))

    def share(self, fits: Callable[[str], object], texts: tuple[str, ...] | None = None) -> float:
        """Share of the cells that fit: of the rows or of the distinct values, whichever is more.

        Of many rows "unknown" few may hold an address, and of many broken values each may stand in one row only; either
        share alone would miss one of the two.
        """
        asked = self.texts if texts is None else texts
        if not any(fits(asked[place]) for place in self._first_look):
            return 0.0  # half of the values, or the most frequent one, would have shown
        fitting = [place for place, text in enumerate(asked) if fits(text)]
        return max(len(fitting) / len(asked), sum(self.rows[place] for place in fitting) / sum(self.rows))

    @cached_property
    def _first_look(self) -> tuple[int, ...]:
        """Places of a few values, evenly spaced, and of the most frequent one."""
        step = max(1, -(-len(self.texts) // _FIRST_LOOK))
        frequent = self.rows.index(max(self.rows)) if self.rows else 0
        return (frequent, *range(0, len(self.texts), step))

    @property
    def distinct_fraction(self) -> float:
        """Distinct values for each row that has one."""
        return self.n_distinct / max(self.n_present, 1)
