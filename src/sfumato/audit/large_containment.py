"""0/1 columns of distinct rows that stand for many: what containment is measured on where rows are not in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from sfumato.audit.columns import Columns
from sfumato.audit.values import zero_one
from sfumato.errors import NotBinaryError


def counted_ones(columns: Columns, names: Sequence[str]) -> sp.csr_matrix:
    """Return some 0/1 columns of a table of distinct rows as a matrix, the columns of a row's ones ascending.

    Raises
    ------
    NotBinaryError
        If a column holds anything but 0 and 1; a missing value is neither.
    SchemaError
        If a column was not counted together with the others.
    """
    columns.check_counted(names)
    rows = []
    for name in names:
        column = columns.coded(name)
        numbers = zero_one(column.values)
        if numbers is None or (numbers < 0).any():
            problem = f"holds something other than 0 and 1 ({column.n_distinct:,} distinct values)"
            raise NotBinaryError(problem, column=name)
        rows.append(np.flatnonzero(numbers[column.codes] == 1))
    ends = np.cumsum([0, *map(len, rows)])
    indices = np.concatenate([*rows, np.zeros(0, dtype=np.int64)])
    ones = np.ones(len(indices), dtype=np.int8)
    return sp.csc_matrix((ones, indices, ends), shape=(columns.n_entries, len(names))).tocsr()
