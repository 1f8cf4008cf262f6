"""Recoding rules, evaluated on the original's values by the audit's own code."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.claims import ClaimedRecoding
from sfumato.audit.values import meanings_beside, numbers_in, zero_one

AS_IS, ONE_OF, INTERVAL, MISSING = "as-is", "one-of", "interval", "missing"
GENERALIZED = "generalized"
"""Rule whose cells say themselves what they stand for; see :mod:`sfumato.audit.cells`."""
HIERARCHY = "hierarchy"
"""Rule whose cells are labels of a hierarchy; see :mod:`sfumato.audit.labels`."""
KNOWN_RULES = (AS_IS, ONE_OF, INTERVAL, MISSING)


def evaluate(recoding: ClaimedRecoding, values: pa.Array, *, clamp: bool = False) -> NDArray[np.int8] | None:
    """0 or 1 for each distinct value of the original column; ``None`` when the rule cannot be evaluated on them.

    A missing value is 1 for ``missing`` and 0 for every other rule. ``one-of`` compares meanings (see
    :mod:`sfumato.audit.values`), ``interval`` numbers with ``above < value <= upto``; a side that is not given is open.
    With ``clamp`` what is no number is in no interval, as under differential privacy.
    """
    is_missing = np.asarray(values.is_null().to_numpy(zero_copy_only=False))
    if recoding.rule == MISSING:
        return is_missing.astype(np.int8)
    if recoding.rule == AS_IS:
        found = zero_one(values)
        return None if found is None else np.maximum(found, 0).astype(np.int8)
    if recoding.rule == ONE_OF:
        wanted = set(meanings_beside(pa.array(recoding.values, pa.string()), values.type))
        return np.array([m is not None and m in wanted for m in meanings_beside(values, pa.string())], dtype=np.int8)
    if recoding.rule == INTERVAL:
        numbers, wrong = numbers_in(values)
        inside = ~np.isnan(numbers)
        if recoding.above is not None:
            inside &= numbers > recoding.above
        if recoding.upto is not None:
            inside &= numbers <= recoding.upto
        return None if wrong.any() and not clamp else inside.astype(np.int8)
    return None
