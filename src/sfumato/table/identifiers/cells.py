"""What the detectors look at: a bounded number of a column's distinct values, as texts, with how many rows hold it."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.schema import Kind
from sfumato.table.coding import CodedColumn

MOST_VALUES = 400
"""Distinct values that are looked at; of more, every so many-th in their order."""
_FIRST_LOOK = 40

_UNFOLDED = str.maketrans({"ł": "l", "ß": "ss", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe", "’": "'", "º": "o", "°": "o"})


def folded(text: str) -> str:
    """Write a text in lower case and without accents.

    Examples
    --------
    >>> folded("Łódź, Straße")
    'lodz, strasse'
    """
    lower = text.lower()
    if lower.isascii():
        return lower
    parts = unicodedata.normalize("NFKD", lower.translate(_UNFOLDED))
    return "".join(c for c in parts if not unicodedata.combining(c))


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
        percent = min(int(100 * self.share), 99) if self.share < 1 else 100
        return f"looks like {self.what} in {percent} % of the cells"


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
    rows : int array
        Rows that hold each of them.
    n_distinct, n_present : int
        Distinct values, and rows with a value, of the whole column.
    """

    texts: tuple[str, ...]
    rows: np.ndarray[tuple[int], np.dtype[np.int64]]
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
        return cls(texts, coded.counts[places], kind, n_distinct, coded.n_rows - coded.n_missing)

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
        if not asked:
            return 0.0
        step = max(1, len(asked) // _FIRST_LOOK)
        if step > 1 and not any(fits(text) for text in asked[::step]):
            return 0.0
        are = np.fromiter((bool(fits(text)) for text in asked), dtype=np.bool_, count=len(asked))
        return max(float(are.mean()), float(self.rows[are].sum() / self.rows.sum()))

    def least_share(self, fits: Callable[[str], object], texts: tuple[str, ...] | None = None) -> float:
        """Share of the cells that fit: of the rows or of the distinct values, whichever is less."""
        return 1.0 - self.share(lambda text: not fits(text), texts)

    @property
    def distinct_fraction(self) -> float:
        """Distinct values for each row that has one."""
        return self.n_distinct / max(self.n_present, 1)
