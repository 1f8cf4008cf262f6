r"""When two cells hold the same sensitive value, however they are spelled, and in which order values stand.

Two texts are the same value when they are equal after this, in this order: code points that Unicode calls default
ignorable are left out; compatibility composition (NFKC), case folding and NFKC again; white space at the ends is left
out and any within becomes one blank. A text that is a decimal number then (``7``, ``7.0``, ``07`` and ``7e0``) is that
number, exactly: 2\ :sup:`53` and 2\ :sup:`53` + 1 are two. In a column of dates all of whose values are dates or times,
equal moments are one value. Missing is a value of its own.

The audit has a definition of its own (:mod:`sfumato.audit.reading.values`) with which this one is tested to agree.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.schema import Column, Kind
from sfumato.table.cells import as_text

Numbers = NDArray[np.int32]

_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?0*[0-9]{1,9})?|inf(?:inity)?)")


@dataclass(frozen=True, eq=False, repr=False)
class ValueNumbers:
    """Numbers of a column's distinct values, from 0 without gaps, in the order of the column's kind; missing last.

    Parameters
    ----------
    merged : ndarray of int32
        For each distinct value a number that is equal for the same value.
    spelled : ndarray of int32
        A number of its own for each spelling; those of one number, moment or level are neighbours.
    """

    merged: Numbers
    spelled: Numbers

    def __repr__(self) -> str:
        return f"ValueNumbers({len(self.spelled):,} spellings of {self.n_values:,} values)"

    @property
    def n_values(self) -> int:
        """Number of different values."""
        return int(self.merged.max(initial=-1)) + 1

    @property
    def has_spellings(self) -> bool:
        """Whether some value has more than one spelling."""
        return self.n_values < len(self.spelled)


def value_numbers(values: pa.Array, described: Column) -> ValueNumbers:
    """Give the distinct values of a column numbers.

    Levels of an ordered column come first, in the declared order; dates of a column of dates go by moment. Of all else,
    in columns of every kind, numbers come first, by size, and then other texts, by their text.

    Examples
    --------
    >>> found = value_numbers(pa.array(["HIV", "hiv ", "flu", "7.0", "07"]), Column("ill"))
    >>> found.merged.tolist(), found.spelled.tolist()
    ([1, 1, 2, 0, 0], [2, 4, 3, 1, 0])
    """
    texts = as_text(values).to_pylist()
    meanings = _meanings(values, texts, described)
    places = _places(meanings, described)
    keys = [None if text is None else (places.get(meanings[i], (2,)), text) for i, text in enumerate(texts)]
    first: dict[Hashable, Any] = {}
    for meaning, key in zip(meanings, keys, strict=True):
        if key is not None:
            first[meaning] = min(key, first.get(meaning, key))
    return ValueNumbers(_ranked([None if m is None else first[m] for m in meanings]), _ranked(keys))


def same_value(text: str) -> Hashable:
    """Give an object that is equal for texts that are the same value.

    Examples
    --------
    >>> same_value("ＨＩＶ") == same_value(" hiv"), same_value("7e0") == same_value("07.00")
    (True, True)
    >>> same_value("9007199254740992") == same_value("9007199254740993")
    False
    """
    if text.isascii():
        folded = text.lower()
    else:
        composed = unicodedata.normalize("NFKC", _IGNORABLE.sub("", text))
        folded = unicodedata.normalize("NFKC", composed.casefold())
    folded = " ".join(folded.split())
    return Decimal(folded) if _NUMBER.fullmatch(folded) else folded


def _meanings(values: pa.Array, texts: Sequence[str | None], described: Column) -> list[Hashable]:
    if described.kind is Kind.DATE:
        try:
            moments = pc.cast(pc.cast(values, pa.timestamp("us")), pa.int64()).to_pylist()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass  # some are no dates: then none is read as one
        else:
            return list(moments)
    return [None if text is None else same_value(text) for text in texts]


def _places(meanings: Sequence[Hashable], described: Column) -> dict[Hashable, tuple[int, Any]]:
    """Where values stand in the order of the column, for those that have a place in it."""
    levels: dict[Hashable, tuple[int, Any]] = {}
    for place, level in enumerate((described.kind is Kind.ORDERED and described.domain) or ()):
        levels.setdefault(same_value(level), (0, place))
    return {meaning: (1, meaning) for meaning in meanings if isinstance(meaning, Decimal | int)} | levels


def _ranked(keys: Sequence[Any]) -> Numbers:
    known = sorted({key for key in keys if key is not None})
    rank = {key: i for i, key in enumerate(known)}
    return np.array([len(known) if key is None else rank[key] for key in keys], dtype=np.int32)
