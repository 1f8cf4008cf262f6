"""Whether roles were declared for all columns of a table, of either kind."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato.audit.reading.columns import Columns
from sfumato.audit.verify import has_all_roles
from sfumato.schema import Column, Schema
from sfumato.table.binary import BinaryTable, Feature, as_binary_matrix
from sfumato.table.coding import Table

PLAIN = Table.from_arrow(pa.table({"age": [30, 40], "y": ["a", "b"]}), Schema.of([Column("age"), Column("y")]))
SPARSE = BinaryTable(as_binary_matrix(np.eye(2)), (Feature("f", "f"), Feature("g", "g")), PLAIN.keep(["y"]))


@pytest.mark.parametrize(
    ("table", "given", "expected"),
    [
        (PLAIN, [], False),
        (PLAIN, ["age"], False),
        (PLAIN, ["age", "y"], True),
        (SPARSE, [], False),
        (SPARSE, ["y"], True),
    ],
)
def test_all_columns_need_a_role_and_features_none(table, given, expected):
    assert has_all_roles(Columns(table), given) is expected
