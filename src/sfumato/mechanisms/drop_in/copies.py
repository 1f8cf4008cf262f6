"""How many released rows look like one person: equal to an original row that no other original row equals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sfumato.table.coding import Table

COPIED_ROWS = "copied_row_fraction"
"""Risk: share of released rows that equal, by their quasi-identifiers, an original row that is the only one so."""


def n_copied_rows(original: Table, released: Table, names: Sequence[str]) -> int:
    """Count the released rows that equal, on some columns, an original row that no other original row equals.

    Missing is a value; two spellings are two values.

    Examples
    --------
    >>> from sfumato.schema import Column, Schema
    >>> schema = Schema.of([Column("sex"), Column("age")])
    >>> before = Table.from_arrow(pa.table({"sex": ["m", "f", "m"], "age": ["30", "41", "30"]}), schema)
    >>> after = Table.from_arrow(pa.table({"sex": ["f", "m", "f"], "age": ["41", "30", "30"]}), schema)
    >>> n_copied_rows(before, after, ["sex", "age"])
    1
    """
    rows = np.zeros(original.n_rows + released.n_rows, dtype=np.int64)
    for name in names:
        before, after = original[name], released[name]
        values = pa.concat_arrays([before.values, after.values.cast(before.values.type)])
        numbers = values.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
        own = numbers[np.concatenate([before.codes, before.n_distinct + after.codes])]
        rows = np.unique(rows * len(values) + own, return_inverse=True)[1].reshape(-1)
    counts = np.bincount(rows[: original.n_rows], minlength=int(rows.max(initial=-1)) + 1)
    return int((counts[rows[original.n_rows :]] == 1).sum())
