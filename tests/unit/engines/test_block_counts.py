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

from sfumato.counting.cells import cell_table
from sfumato.counting.contingency import contingency
from sfumato.engines import counting as blocks
from sfumato.engines.blocks.rows import open_large
from sfumato.engines.counting import count_blocks, count_merged, count_pairs, merged_rows
from sfumato.errors import ColumnNotFoundError, InputError
from sfumato.mechanisms.hierarchies.automatic import hierarchy_for
from sfumato.table.io import parquet
from sfumato.table.io.read import read_table

NAMES = ("a", "b", "c")


def written(rows, folder):
    path = Path(folder) / "a.parquet"
    columns = zip(*rows, strict=True)
    pyarrow.parquet.write_table(pa.table({n: pa.array(c) for n, c in zip(NAMES, columns, strict=True)}), path)
    return path


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
        path = written(rows, folder)
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


@st.composite
def nested_steps(draw):
    """Ever coarser mergings of two columns of six values each, the first of which merges none."""
    at = {name: np.arange(6, dtype=np.int32) for name in NAMES[:2]}
    steps = [{}]
    for name in draw(st.lists(st.sampled_from(NAMES[:2]), min_size=1, max_size=6)):
        one, other = draw(st.tuples(st.integers(0, 5), st.integers(0, 5)))
        merged = at[name].copy()
        merged[merged == merged[one]] = min(merged[one], merged[other])
        merged[merged == at[name][other]] = min(at[name][one], at[name][other])
        at = at | {name: merged}
        steps.append(dict(at))
    return steps


@pytest.mark.slow
@given(
    st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=1, max_size=60),
    nested_steps(),
    st.integers(1, 30),
    st.booleans(),
    st.sampled_from([2**62, 12]),
)
def test_values_are_merged_as_little_as_fits(rows, steps, most, is_sorted, largest_key):
    """The step is the first one whose distinct rows fit, wherever blocks end and however rows are sorted."""
    rows = [*([(i, i, i) for i in range(6)]), *(sorted(rows) if is_sorted else rows)]  # so that every value occurs
    with (
        TemporaryDirectory() as folder,
        patch.object(parquet, "BLOCK_ROWS", 7),
        patch.object(blocks, "_FEWEST_PENDING", 3),
        patch.object(blocks, "_LARGEST_KEY", largest_key),
        patch.object(blocks, "_ROWS_AT_A_TIME", 4),
    ):
        path = written(rows, folder)
        large = open_large(path, memory=10**9)
        pairs = count_pairs(large, NAMES[:2], NAMES[2:])
        at_steps = [Counter((_merged(s, "a", row[0]), _merged(s, "b", row[1])) for row in rows) for s in steps]
        fitting = [step for step, counted in enumerate(at_steps) if len(counted) <= most]
        if not fitting:
            with pytest.raises(InputError, match=f"more than {most} distinct"):
                count_merged(large, NAMES[:2], steps, pairs=pairs, most_cells=most)
            return
        counted, step = count_merged(large, NAMES[:2], steps, pairs=pairs, most_cells=most)
        merged_codes = [np.asarray(b["a"]) for b in merged_rows(large, steps[step]).blocks(["a"])]

    assert step == fitting[0]
    entries = zip(*(counted[name].codes.tolist() for name in NAMES[:2]), strict=True)
    assert dict(zip(entries, counted.row_counts.tolist(), strict=True)) == at_steps[step]
    assert contingency(counted, "a", "c").tolist() == _table(rows, 0, 2)
    assert np.concatenate(merged_codes).tolist() == [_merged(steps[step], "a", row[0]) for row in rows]


def _merged(step, name, value):
    return int(step[name][value]) if name in step else value


def _table(rows, first, second):
    counted = Counter((row[first], row[second]) for row in rows)
    return [[counted[i, j] for j in range(6)] for i in range(6)]


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
