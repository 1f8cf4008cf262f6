"""Released rows that look like one person: equal to an original row that no other original row equals.

Rows are compared on all quasi-identifiers. Two cells hold the same value by the audit's own definition; missing is a
value. Drop-in releases state how many there are, and those whose values were moved within their classes a limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.checks import Check, check_figure
from sfumato.audit.claims import Claims
from sfumato.audit.reading.columns import Columns, Refinement
from sfumato.audit.reading.values import matching_ids
from sfumato.schema import Role

COPIED_ROWS = "copied_row_fraction"
_LABEL = COPIED_ROWS.replace("_", " ")
_LIMIT = "limit of copied rows"


def check_copies(released: Columns, original: Columns, claims: Claims, rows: NDArray[np.intp]) -> Iterator[Check]:
    """Count the copies anew, and compare them with what the manifest states and with its limit.

    Parameters
    ----------
    rows : array
        Rows of the original that may be released.
    """
    limit = claims.perturbation.max_copied_fraction if claims.perturbation is not None else None
    stated: Any = claims.stated_risk.get(COPIED_ROWS)
    if limit is None and COPIED_ROWS not in claims.stated_risk:
        return
    names = [name for name in claims.names(Role.QUASI_IDENTIFIER) if name in released and name in original]
    if stated is None or len(names) < len(claims.names(Role.QUASI_IDENTIFIER)):
        yield Check(f"risk: {_LABEL}", False, f"{_LABEL}: the manifest gives no number, or columns differ")
        return
    n_copied = n_copies(released, original, names, rows)
    yield check_figure("risk", COPIED_ROWS, stated, n_copied / max(released.n_rows, 1))
    if limit is not None:
        passed = 0 <= limit <= 1 and n_copied <= limit * released.n_rows
        said = f"{n_copied:,} of {released.n_rows:,} rows equal an original row that is the only one of its kind"
        yield Check(_LIMIT, passed, f"{said}; the stated limit is {limit:.6g} of the rows", limit)


def n_copies(released: Columns, original: Columns, names: Sequence[str], rows: NDArray[np.intp]) -> int:
    """Count the released rows that equal, on these columns, an original row that none of the others equals."""
    both = Refinement(len(rows) + released.n_rows)
    for name in names:
        before, after = original.coded(name), released.coded(name)
        of_before, of_after = matching_ids(before.values, after.values)
        most = int(max(of_before.max(initial=0), of_after.max(initial=0))) + 1
        after_too = np.where(of_after < 0, most, of_after)  # a second spelling equals nothing
        both.add(np.concatenate([of_before[before.codes[rows]], after_too[after.codes]]), most + 1)
    ids = both.classes().ids
    counts = np.bincount(ids[: len(rows)], minlength=int(ids.max(initial=-1)) + 1)
    return int((counts[ids[len(rows) :]] == 1).sum())
