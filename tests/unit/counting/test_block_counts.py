"""Distinct rows counted block by block, against plain counting."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.counting import blocks
from sfumato.counting.blocks import count_blocks
from sfumato.counting.cells import cell_table
from sfumato.counting.contingency import contingency
from sfumato.errors import ColumnNotFoundError, InputError
from sfumato.mechanisms.hierarchies.automatic import hierarchy_for
from sfumato.rows.out_of_core import open_large
from sfumato.table.io import parquet
from sfumato.table.io.read import read_table

NAMES = ("a", "b", "c")


@pytest.mark.slow
@given(
    st.lists(st.tuples(*[st.sampled_from(["x", "y", "z", None])] * 3), min_size=1, max_size=60),
    st.sampled_from([2**62, 12]),
)
def test_counts_are_those_of_the_rows(rows, largest_key):
    """Wherever blocks end, and also where the columns do not fit into one key."""
    with (
        TemporaryDirectory() as folder,
        patch.object(parquet, "BLOCK_ROWS", 7),
        patch.object(blocks, "_FEWEST_PENDING", 3),
        patch.object(blocks, "_LARGEST_KEY", largest_key),
    ):
        path = Path(folder) / "a.parquet"
        pyarrow.parquet.write_table(
            pa.table({n: pa.array(c) for n, c in zip(NAMES, zip(*rows, strict=True), strict=True)}), path
        )
        whole, large = read_table(path), open_large(path, memory=10**9)
        counted = count_blocks(large, NAMES[:2], beside=NAMES[2:], most_cells=100)

    entries = zip(*(counted[name].cells().to_pylist() for name in NAMES[:2]), strict=True)
    assert dict(zip(entries, counted.row_counts.tolist(), strict=True)) == Counter(row[:2] for row in rows)
    assert counted.n_rows == len(rows)
    for names in ((), ("a",), ("b", "a")):
        expected, found = cell_table(whole, names), cell_table(counted, names)
        assert found.codes.tolist() == expected.codes.tolist()
        assert found.counts.tolist() == expected.counts.tolist()
    for name in NAMES[:2]:
        assert contingency(counted, name, "c").tolist() == contingency(whole, name, "c").tolist()
        assert contingency(counted, name, "a").tolist() == contingency(whole, name, "a").tolist()
        assert hierarchy_for(counted, name, target="c").labels == hierarchy_for(whole, name, target="c").labels


@pytest.fixture
def large(tmp_path):
    """Open a file of 50 rows."""
    random = np.random.default_rng(3)
    cells = pa.table({name: random.integers(0, 9, 50) for name in NAMES})
    pyarrow.parquet.write_table(cells, tmp_path / "a.parquet")
    return open_large(tmp_path / "a.parquet", memory=10**9)


def test_too_many_distinct_rows_are_refused(large):
    """With the number that fits and what can be done."""
    with pytest.raises(InputError, match=r"more than 5 distinct combinations.*fewer quasi-identifiers"):
        count_blocks(large, NAMES, most_cells=5)


def test_only_columns_that_were_counted_together_roll_up(large):
    """The others are known by themselves only."""
    counted = count_blocks(large, ["a"], beside=["c"], most_cells=100)
    with pytest.raises(ColumnNotFoundError, match="counted together"):
        cell_table(counted, ["a", "c"])


def test_taking_distinct_rows_takes_their_counts(large):
    """Columns that were not counted together are left out."""
    counted = count_blocks(large, ["a", "b"], beside=["c"], most_cells=100)
    is_first = np.arange(len(counted.row_counts)) == 0
    taken = counted.take(is_first)

    assert taken.n_rows == counted.row_counts[0]
    assert taken.schema.names() == ("a", "b")
    assert taken["a"].counts.tolist() == [counted.row_counts[0]]
    assert counted.keep(["c", "a"]).together == ("a",)
