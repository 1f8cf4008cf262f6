"""Columns that give a sensitive one away, so that nothing is left to estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameterError, SchemaError

Codes = NDArray[np.intp]
Counts = NDArray[np.int64]

MAX_WRONG_ROWS = 0.01
MAX_WRONG_OF_RARER = 0.1
LEAST_ROWS_PER_VALUE = 3
OWN_VALUE_FRACTION = 0.9

_ONE_VALUE_EACH = "one value for each row, as many as sensitive has"


def leaking_columns(columns: Mapping[str, ArrayLike], sensitive: ArrayLike) -> tuple[str, ...]:
    """Names of columns that equal the sensitive one under any labels, or determine it but for few rows.

    A column determines it if its values, each in 3 rows on average, tell the sensitive value wrongly in at most 1 % of
    all rows and in at most a tenth as many rows as have another than the most frequent sensitive value. A value that
    stands in one row alone tells nothing. Where the sensitive column is different in nearly every row
    (:func:`refuse_own_values`) no column is said to equal it: all such columns look alike.

    Examples
    --------
    >>> leaking_columns({"code": [7, 7, 3], "age": [1, 2, 3]}, [0, 0, 1])
    ('code',)
    >>> leaking_columns({"icd": [1, 2, 3] * 4, "ward": [1, 2] * 6}, ["flu", "flu", "none"] * 4)
    ('icd',)
    """
    wanted = _codes("sensitive", sensitive)
    leaks = []
    for name, column in columns.items():
        own = _codes(f"column '{name}'", column)
        if len(own) != len(wanted):
            raise InvalidParameterError(f"column '{name}'", f"got {len(own):,}", allowed=_ONE_VALUE_EACH)
        if len(own) and gives_away(own, wanted):
            leaks.append(name)
    return tuple(leaks)


def gives_away(column: Codes, sensitive: Codes) -> bool:
    """Whether codes from 0 equal or determine others, as :func:`leaking_columns` says."""
    n_wanted = int(sensitive.max()) + 1
    pairs, counts = np.unique(column.astype(np.int64) * n_wanted + sensitive, return_counts=True)
    return pairs_give_away(pairs // n_wanted, pairs % n_wanted, counts)


def pairs_give_away(column: Counts, sensitive: Counts, counts: Counts) -> bool:
    """As :func:`gives_away`, from the distinct pairs of codes with the number of rows of each.

    Examples
    --------
    >>> pairs_give_away(np.array([0, 1, 2]), np.array([0, 0, 1]), np.array([50, 40, 60]))
    True
    """
    n_rows, n_values, n_wanted = int(counts.sum()), int(column.max()) + 1, int(sensitive.max()) + 1
    if len(counts) == n_values == n_wanted and n_wanted <= OWN_VALUE_FRACTION * n_rows:
        return True
    if LEAST_ROWS_PER_VALUE * n_values > n_rows:
        return False
    by_sensitive = np.bincount(sensitive, weights=counts)
    most_frequent = int(by_sensitive.argmax())
    right = np.zeros(n_values, dtype=np.int64)
    np.maximum.at(right, column, counts)
    stands_alone = (np.bincount(column, weights=counts) == 1)[column]
    right[column[stands_alone]] = sensitive[stands_alone] == most_frequent
    n_wrong = n_rows - int(right.sum())
    n_rarer = n_rows - int(by_sensitive[most_frequent])
    return n_wrong <= min(MAX_WRONG_ROWS * n_rows, MAX_WRONG_OF_RARER * n_rarer)


def has_own_values(sensitive: Codes) -> bool:
    """Whether nearly every row has a value of its own."""
    return len(np.unique(sensitive)) > OWN_VALUE_FRACTION * len(sensitive)


def refuse_own_values(sensitive: Codes, name: str) -> None:
    """Refuse a sensitive column with nearly as many values as rows: no value is seen twice, so none can be learned."""
    if has_own_values(sensitive):
        problem = "has a value of its own in (almost) every row, so an attacker has nothing to learn from other rows"
        hint = "make it coarser, for instance ranges instead of exact numbers"
        raise SchemaError(f"the sensitive column {problem}", column=name, hint=hint)


def refuse_leaks(leaks: Sequence[str], sensitive: str, hint: str) -> None:
    """Refuse columns that give the sensitive one away: they would be released, or make every release look safe.

    Raises
    ------
    SchemaError
        Naming the first.
    """
    for name in leaks:
        problem = f"gives the sensitive column '{sensitive}' away: it equals it under its labels or others, or "
        problem += f"determines it but for at most {MAX_WRONG_ROWS:.0%} of the rows"
        raise SchemaError(problem, column=name, hint=hint.format(column=name))


def _codes(name: str, values: ArrayLike) -> Codes:
    """Code values from 0; None is a value like any other."""
    try:
        cells = np.asarray(values)
        if cells.ndim != 1:
            raise InvalidParameterError(name, f"got {cells.ndim} dimensions", allowed=_ONE_VALUE_EACH)
        if cells.dtype != np.object_:
            return np.unique(cells, return_inverse=True)[1].astype(np.intp)
        places: dict[object, int] = {}
        return np.array([places.setdefault(cell, len(places)) for cell in cells.tolist()], dtype=np.intp)
    except InvalidParameterError:
        raise
    except (TypeError, ValueError):
        raise InvalidParameterError(name, "some are not", allowed="single values, one for each row") from None
