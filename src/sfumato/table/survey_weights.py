"""Survey weights: how many people of the population each row represents (role weight)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SchemaError
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import Table, parse_numbers


def size_by_weights(table: Table | BinaryTable) -> int | None:
    """Estimate the size of the population as the sum of the weights, at least the rows; ``None`` without weights.

    The Horvitz–Thompson estimate of a count: a row drawn with probability p has the weight 1 / p.

    Raises
    ------
    SchemaError
        If a weight is missing, no number, or not above 0.
    """
    plain = table.coded_part
    name = plain.schema.weight
    return None if name is None else max(round(float(weights_of(plain, name).sum())), plain.n_rows)


def weights_of(table: Table, name: str) -> NDArray[np.float64]:
    """Weight of each row.

    Raises
    ------
    SchemaError
        If a weight is missing, no number, or not above 0.
    """
    column = table[name]
    if column.n_missing:
        problem = f"has no weight in {column.n_missing:,} rows"
        raise SchemaError(problem, column=name, hint="leave these rows out, or give the column another role")
    try:
        numbers = parse_numbers(column.values)
    except ValueError:
        problem = "holds weights that are not numbers"
        raise SchemaError(problem, column=name, hint="give the column another role") from None
    weights = np.asarray(numbers, dtype=np.float64)[column.codes]
    if not (np.isfinite(weights) & (weights > 0)).all():
        problem = f"holds {np.count_nonzero(~(np.isfinite(weights) & (weights > 0))):,} weights that are not above 0"
        raise SchemaError(problem, column=name, hint="leave these rows out, or give the column another role")
    return weights
