"""The audit's own patterns: equal rows of 0/1 matrices, and containment of rows that stand for many."""

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit import measured_level
from sfumato.audit.levels.anonymity import containment_level, measure_containment
from sfumato.audit.reading import columns as counting
from sfumato.audit.reading.columns import Columns, distinct_patterns
from sfumato.errors import NotBinaryError, SchemaError
from sfumato.guarantees import Containment, KAnonymity, UniquePatterns
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.weighted import CountedTable
from unit.audit.audit_oracles import row_containment


def patterns_by_dictionary(ones):
    raw = ones.indices.astype(np.int32).tobytes()
    ends = (ones.indptr.astype(np.int64) * 4).tolist()
    known, first_rows, ids = {}, [], []
    for row in range(ones.shape[0]):
        number = known.setdefault(raw[ends[row] : ends[row + 1]], len(first_rows))
        if number == len(first_rows):
            first_rows.append(row)
        ids.append(number)
    return ids, first_rows


@st.composite
def matrices(draw):
    n_columns = draw(st.sampled_from([0, 1, 5, 63, 64, 65, 300]))
    places = st.sampled_from(sorted({p for p in (0, 1, 62, 63, 64, 128, 299) if p < n_columns}))
    patterns = draw(st.lists(st.sets(places) if n_columns else st.just(set()), min_size=1, max_size=5))
    rows = draw(st.lists(st.sampled_from(patterns), max_size=30))
    indices = [place for row in rows for place in sorted(row)]
    ends = np.cumsum([0, *map(len, rows)])
    return sp.csr_matrix((np.ones(len(indices), dtype=np.int8), indices, ends), shape=(len(rows), n_columns))


@given(matrices())
def test_patterns_are_those_that_a_dictionary_finds(ones):
    ids, first_rows = distinct_patterns(ones)
    assert (ids.tolist(), first_rows.tolist()) == patterns_by_dictionary(ones)


@given(matrices(), st.sampled_from([0, 1, 2**63]))
def test_different_rows_whose_words_are_equal_are_told_apart(ones, word):
    """Random numbers may add up to the same; then others are drawn."""
    draw = counting._random_words
    unlucky = iter([word, word])

    def drawn(n):
        own = next(unlucky, None)
        return draw(n) if own is None else np.full(n, own, dtype=np.uint64)

    with patch.object(counting, "_random_words", drawn):
        ids, first_rows = distinct_patterns(ones)
    assert (ids.tolist(), first_rows.tolist()) == patterns_by_dictionary(ones)


NAMES = ("a", "b", "c")


def counted(rows, counts):
    """Distinct or repeated rows that stand for many, as out of core."""
    schema = Schema.of([Column(name, Role.QUASI_IDENTIFIER, Kind.CATEGORICAL) for name in NAMES], ())
    columns = {n: CodedColumn.encode(pa.array([row[i] for row in rows], pa.int8())) for i, n in enumerate(NAMES)}
    outline = Table(schema, columns, sum(counts))
    codes = [columns[name].codes for name in NAMES]
    return CountedTable.of(outline, NAMES, codes, np.array(counts, dtype=np.int64))


ROWS = st.lists(st.tuples(st.tuples(*[st.integers(0, 1)] * 3), st.integers(1, 4)), min_size=1, max_size=10)
REVEALING = st.lists(st.sampled_from(["ones", "zeros", "both"]), min_size=3, max_size=3).map(tuple)


def known_values(row, reveals):
    """Pairs of a column and a value that an attacker may know of a row."""
    allowed = {"ones": (1,), "zeros": (0,), "both": (0, 1)}
    return {(i, value) for i, value in enumerate(row) if value in allowed[reveals[i]]}


@pytest.mark.slow
@given(ROWS, st.one_of(st.just(()), REVEALING))
def test_containment_counts_the_rows_that_entries_stand_for(drawn, reveals):
    """Against the definition, row by row."""
    rows = [row for row, n in drawn for _ in range(n)]
    table = counted([row for row, _ in drawn], [n for _, n in drawn])
    known = [known_values(row, reveals or ("ones",) * 3) for row in rows]
    expected = min(sum(own <= other for other in known) for own in known)

    assert measure_containment(Containment(2, NAMES, reveals), table) == expected
    if not reveals:
        assert containment_level(Columns(table), NAMES) == expected
        assert min(row_containment(Columns(table), NAMES)) == expected
    sizes = {row: rows.count(row) for row in rows}
    assert measured_level(KAnonymity(2, NAMES), table) == min(sizes.values())
    assert measured_level(UniquePatterns(0.5, NAMES), table) == sum(n == 1 for n in sizes.values()) / len(rows)


def test_no_columns_are_contained_in_all_rows():
    assert containment_level(Columns(counted([(0, 1, 1)], [7])), ()) == 7


def test_columns_that_are_not_zero_or_one_or_not_counted_together_are_refused():
    with pytest.raises(NotBinaryError, match="'a'"):
        containment_level(Columns(counted([(2, 1, 1), (0, 1, 1)], [7, 1])), NAMES)
    table = counted([(1, 1, 1), (0, 1, 1)], [7, 1])
    apart = CountedTable.of(table, NAMES[:2], [table[n].codes for n in NAMES[:2]], table.row_counts)
    with pytest.raises(SchemaError, match="not counted together"):
        containment_level(Columns(apart), NAMES)


def test_a_binary_table_of_distinct_rows_becomes_a_table_with_their_counts():
    """Features and the columns beside them that were counted with them."""
    target = counted([(0, 1, 1), (1, 1, 1)], [7, 2]).keep(["a"])
    features = (Feature("f", "f"), Feature("g", "g"))
    table = BinaryTable(sp.csc_matrix([[1, 1], [0, 1]], dtype=np.uint8), features, target)
    written = table.to_table()

    assert table.n_rows == written.n_rows == 9
    assert written.together == ("f", "g", "a")
    assert written["f"].counts.tolist() == [2, 7]
    assert written["g"].values.to_pylist() == [1]
    with pytest.raises(SchemaError, match="matrix"):
        BinaryTable(sp.csc_matrix((9, 2), dtype=np.uint8), features, target)
