"""Dates of birth and exact degrees: what is told by the spread of a column's values, or by its name."""

from __future__ import annotations

import re
from datetime import date

import numpy as np

from sfumato.schema import Kind
from sfumato.table.identifiers.cells import Cells, Finding

_HALF = 0.5
_MOST = 0.8
_FEWEST_VALUES = 3  # two dates may be a yes and a no

# Dates of birth are whole dates over two generations; dates of visits lie within some years.


_DAY_FORMS = (
    re.compile(r"(?P<d>\d{1,2})([./-])\s?(?P<m>\d{1,2})\2\s?(?P<y>\d{4})(\s00:00(:00)?)?"),
    re.compile(r"(?P<y>\d{4})([./-])(?P<m>\d{1,2})\2(?P<d>\d{1,2})([ T]00:00(:00)?)?"),
)
_FEWEST_DATES = 20
_GENERATIONS_IN_DAYS = 35 * 365
_FIRST_BIRTH_YEAR = 1890


def day_of(text: str) -> date | None:
    """Read a whole date, the day before or after the month."""
    for form in _DAY_FORMS:
        found = form.fullmatch(text)
        if found:
            year, month, day = int(found["y"]), int(found["m"]), int(found["d"])
            if month > 12:
                month, day = day, month
            try:
                return date(year, month, day)
            except ValueError:
                return None
    return None


def birth_dates(cells: Cells, *, name_says_birth: bool = False) -> Finding | None:
    """Find whole dates that spread over generations, or that are dates of birth by the name of their column."""
    if cells.kind is Kind.NUMERIC or cells.n_distinct < (_FEWEST_VALUES if name_says_birth else _FEWEST_DATES):
        return None
    if cells.share(day_of) < _MOST:
        return None
    days = [day_of(text) for text in cells.texts]
    known = np.array([day.toordinal() for day in days if day is not None])
    share = len(known) / len(days)
    if share < _MOST:
        return None
    early, late = np.quantile(known, [0.05, 0.95])
    spread = late - early >= _GENERATIONS_IN_DAYS and early >= date(_FIRST_BIRTH_YEAR, 1, 1).toordinal()
    return Finding("full dates of birth", share) if spread or name_says_birth else None


_EXACT = re.compile(r"[-+]?\d{1,3}[.,]\d{4,}")


def exact_degrees(cells: Cells) -> Finding | None:
    """Find a latitude or a longitude that is exact to about ten metres, in a column whose name says that it is one."""
    share = cells.share(_EXACT.fullmatch)
    return Finding("degrees with four decimals or more", share) if share >= _HALF else None
