"""Small tables printed in the papers, as literals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable, Feature, as_binary_matrix
from sfumato.table.coding import Table

_CONTAINMENT_ROWS = ("10101", "10101", "10011", "10101", "11101", "11011")
_CONTAINMENT_CLASSES = ("+1", "-1", "+1", "+1", "-1", "-1")


def toy_containment_table() -> BinaryTable:
    """Table 1 of [kAC17]_: six users e1 … e6, five search words x1 … x5, and whether the user bought something.

    Examples
    --------
    >>> toy_containment_table()
    BinaryTable(6 rows, 5 features, 20 ones, 1 other columns)
    """
    matrix = as_binary_matrix(np.array([[int(cell) for cell in row] for row in _CONTAINMENT_ROWS]))
    schema = Schema.of([Column("class", Role.TARGET, Kind.CATEGORICAL)])
    companions = Table.from_arrow(pa.table({"class": list(_CONTAINMENT_CLASSES)}), schema)
    features = tuple(Feature(f"x{i}", f"x{i}") for i in range(1, matrix.shape[1] + 1))
    return BinaryTable(matrix, features, companions)
