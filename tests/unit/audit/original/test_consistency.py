"""Levels of non-homogeneous releases on examples with known answers, and what is refused."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from sfumato.audit.original import consistency as blocks
from sfumato.audit.original import consistency as components
from sfumato.audit.original import consistency as module
from sfumato.audit.original.consistency import consistency
from sfumato.audit.reading import cells as bit_rows
from sfumato.audit.reading.columns import Columns
from sfumato.errors import ColumnNotFoundError, SchemaError
from sfumato.schema import Column, Kind, Role
from sfumato.table.io.read import read_table
from unit.audit.audit_oracles import CANARY, binary_table, table_of

AGES = [57, 61, 42, 29, 38]
MARITAL = ["M", "M", "N", "N", "N"]
COLUMNS = {"age": Column("age", kind=Kind.NUMERIC), "marital": Column("marital")}


def levels(found):
    return found.anonymity_level, found.level_1k, found.level_k1, found.level_kk, found.level_global


def compare(original, released, columns, **options):
    """Compare two dictionaries of lists; all columns are generalized."""
    kinds = {name: column.kind for name, column in columns.items()}
    before, after = Columns(table_of(original, kinds=kinds)), Columns(table_of(released))
    return consistency(after, before, tuple(columns), generalized=columns, **options)


def compare_sets(original, released, **options):
    """Compare one categorical column whose released cells are given as words of single-letter values."""
    cells = ["{" + "|".join(word) + "}" if len(word) > 1 else word for word in released]
    return compare({"x": list(original)}, {"x": cells}, {"x": Column("x")}, **options)


def test_tiered_generalization_of_the_paper():
    """Table 1 of the paper at k = 3: (3,3)-anonymous and globally (1,3)-anonymous, but one row is alone."""
    released = {
        "age": ["[42, 61]", "[42, 61]", "[29, 61]", "[29, 42]", "[29, 42]"],
        "marital": ["{M|N}", "{M|N}", "{M|N}", "N", "N"],
    }

    found = compare({"age": AGES, "marital": MARITAL}, released, COLUMNS)

    assert (found.anonymity_level, found.level_1k, found.level_k1, found.level_kk) == (1, 3, 3, 3)
    assert found.level_global == 3
    assert sorted(found.classes.sizes.tolist()) == [1, 2, 2]
    assert found.released_per_original[found.originals.ids].tolist() == [3, 3, 5, 3, 3]
    assert found.originals_per_released[found.classes.ids].tolist() == [3, 3, 5, 3, 3]
    assert found.is_row_by_row


def test_uniform_generalization_of_the_paper():
    found = compare({"age": AGES, "marital": MARITAL}, {"age": ["[29, 61]"] * 5, "marital": ["*"] * 5}, COLUMNS)

    assert levels(found) == (5, 5, 5, 5, 5)


def test_kk_anonymity_without_global_anonymity():
    """Were c the second row, a and b would have only the first one left."""
    found = compare_sets("abcde", ["ab", "abc", "cd", "de", "de"])

    assert levels(found) == (1, 2, 2, 2, 1)
    assert found.assignable_per_original.tolist() == [2, 2, 1, 2, 2]


def test_1k_without_k1_and_the_other_way_round():
    assert levels(compare_sets("abc", ["a", "abc", "abc"])) == (1, 2, 1, 1, 1)
    assert levels(compare_sets("abb", ["ab", "b", "b"]))[1:3] == (1, 2)


def test_equal_originals_with_equal_and_different_releases():
    """Three a's and a b: b is consistent with two rows, and each a may get any row."""
    found = compare_sets("aaab", ["a", "a", "ab", "ab"])

    assert levels(found) == (2, 2, 3, 2, 2)
    assert found.released_per_original.tolist() == [4, 2]


def test_rows_in_another_order_are_matched_all_the_same():
    straight = compare_sets("abcde", ["ab", "abc", "cd", "de", "de"])
    crossed = compare_sets("ecdba", ["ab", "abc", "cd", "de", "de"])

    assert not crossed.is_row_by_row
    assert levels(crossed) == levels(straight)
    assert crossed.assignable_per_original.tolist() == straight.assignable_per_original.tolist()


def test_without_a_perfect_matching_the_global_level_is_zero():
    found = compare_sets("abbb", ["ab", "ab", "a", "a"])

    assert levels(found) == (2, 2, 1, 1, 0)


def test_too_many_pairs_to_search_a_matching_among_keep_no_promise(monkeypatch):
    monkeypatch.setattr(module, "_MOST_PAIRS_IN_FLOW", 3)

    assert compare_sets("ba", ["ab", "abc"[:2]]).level_global == 2
    assert compare_sets("cab", ["ab", "abc", "abc"]).level_global == 0


def test_rows_that_were_left_out():
    found = compare_sets("xab", ["ab", "ab"], rows=np.array([1, 2]))

    assert levels(found) == (2, 2, 2, 2, 2)


def test_columns_that_were_not_generalized_are_compared_as_they_are():
    """A star in such a column is the value that it spells."""
    original, released = table_of({"x": ["*", "b", "b"]}), table_of({"x": ["*", "b", "b"]})

    found = consistency(Columns(released), Columns(original), ["x"], generalized={})

    assert levels(found) == (1, 1, 1, 1, 1)
    assert found.released_per_original[found.originals.ids].tolist() == [1, 2, 2]


def test_features_are_columns():
    original = binary_table([[1], [1], [0], [0]], 1, table_of({"x": ["a", "b", "a", "b"]}))
    released = binary_table([[1], [1], [0], [0]], 1, table_of({"x": ["{a|b}"] * 2 + ["a", "b"]}))

    found = consistency(Columns(released), Columns(original), ["f0", "x"], generalized={"x": Column("x")})

    assert found.released_per_original[found.originals.ids].tolist() == [2, 2, 1, 1]


def test_no_columns_and_no_rows():
    table = Columns(table_of({"x": ["a", "b", "c"]}))
    empty = Columns(table_of({"x": pa.array([], pa.string())}))

    assert levels(consistency(table, table, [], generalized={})) == (3, 3, 3, 3, 3)
    assert levels(consistency(empty, empty, ["x"], generalized={"x": Column("x")})) == (0, 0, 0, 0, 0)
    assert levels(consistency(empty, empty, [], generalized={})) == (0, 0, 0, 0, 0)


@pytest.mark.parametrize("cell", [f"{{{CANARY}", f"[{CANARY}, a]", CANARY, f"{{a|{CANARY}}}", f"{CANARY}\\"])
def test_cells_that_cannot_be_read_are_refused_without_being_shown(cell):
    with pytest.raises(SchemaError, match="column 'x': has cells that") as refused:
        compare({"x": ["a", "b"]}, {"x": [cell, "a"]}, {"x": Column("x")})

    assert CANARY not in str(refused.value)
    assert refused.value.column == "x"


def test_a_column_must_be_in_both_tables():
    one, other = Columns(table_of({"x": ["a"]})), Columns(table_of({"y": ["a"]}))

    with pytest.raises(ColumnNotFoundError):
        consistency(one, other, ["x"], generalized={})
    with pytest.raises(ColumnNotFoundError):
        consistency(one, other, ["y"], generalized={})


def neighbourly(n_rows, reach, seed):
    """Rows of a number and a letter, each released with some numbers and letters around it."""
    rng = np.random.default_rng(seed)
    numbers, letters = rng.integers(0, n_rows, n_rows), rng.integers(0, 3, n_rows)
    known = np.unique(numbers)
    low = known[np.searchsorted(known, np.maximum(numbers - rng.integers(0, reach, n_rows), known[0]))]
    high = known[np.searchsorted(known, np.minimum(numbers + rng.integers(0, reach, n_rows), known[-1]))]
    low = np.minimum(low, numbers)
    is_any = rng.random(n_rows) < 0.5
    edges = (numbers[:, None] >= low) & (numbers[:, None] <= high) & (is_any | (letters[:, None] == letters))
    original = {"n": numbers.tolist(), "x": ["abc"[i] for i in letters]}
    cells = ["*" if free else "abc"[i] for free, i in zip(is_any, letters, strict=True)]
    released = {"n": [f"[{a}, {b}]" for a, b in zip(low, high, strict=True)], "x": cells}
    return original, released, edges


def assignable(edges):
    """Count, pair by pair, the released rows that an original can have when all others are matched without them."""
    n = len(edges)
    counts = np.zeros(n, dtype=int)
    for row, column in np.argwhere(edges):
        rest = np.delete(np.delete(edges, row, axis=0), column, axis=1)
        counts[row] += (maximum_bipartite_matching(csr_array(rest), perm_type="column") >= 0).sum() == n - 1
    return counts


SMALL = {
    (bit_rows, "CHUNK_WORDS"): 4,
    (bit_rows, "_WHOLE_WORDS"): 0,
    (blocks, "_MOST_PAIRS"): 100,
    (components, "_EDGES_AT_ONCE"): 3,
    (components, "_LARGE_SHARE"): 0,
    (module, "_MANY_PAIRS"): 0,
    (module, "_SAMPLED_WORDS"): 1,
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("limits", [{}, SMALL], ids=["whole", "in pieces"])
@pytest.mark.parametrize(("n_rows", "reach"), [(70, 3), (130, 5)])
def test_more_rows_than_a_word_has_bits(monkeypatch, n_rows, reach, limits, seed):
    """Whatever the sizes of the pieces, the counts are those of the definition."""
    for (home, name), value in limits.items():
        monkeypatch.setattr(home, name, value)
    original, released, edges = neighbourly(n_rows, reach, seed)
    columns = {"n": Column("n", kind=Kind.NUMERIC), "x": Column("x")}

    found = compare(original, released, columns)

    assert found.released_per_original[found.originals.ids].tolist() == edges.sum(axis=1).tolist()
    assert found.originals_per_released[found.classes.ids].tolist() == edges.sum(axis=0).tolist()
    assert found.assignable_per_original[found.originals.ids].tolist() == assignable(edges).tolist()


def test_edges_beyond_the_limit_lower_the_level_and_never_raise_it(monkeypatch):
    original, released, edges = neighbourly(70, 4, 0)
    columns = {"n": Column("n", kind=Kind.NUMERIC), "x": Column("x")}
    monkeypatch.setattr(bit_rows, "CHUNK_WORDS", 4)
    monkeypatch.setattr(components, "_EDGES_AT_ONCE", 0)
    monkeypatch.setattr(components, "_MOST_EDGES", 5)

    found = compare(original, released, columns)

    counts = found.assignable_per_original[found.originals.ids]
    expected = assignable(edges)
    assert (counts <= expected).all()
    assert (counts < expected).any()
    assert (counts >= 1).all()


def test_rows_of_which_no_pair_can_fit_have_level_0(monkeypatch):
    monkeypatch.setattr("sfumato.audit.original.consistency._MOST_PAIRS", 4)
    values = np.arange(30)
    original = pa.table({"a": values, "b": np.where(values < 15, 0, 1)})
    released = pa.table({"a": values.astype(str), "b": np.full(30, 5)})
    tables = [Columns(read_table(table)) for table in (released, original)]
    generalized = {"a": Column("a", Role.QUASI_IDENTIFIER, Kind.NUMERIC)}
    found = consistency(*tables, ["a", "b"], generalized=generalized)
    assert (found.level_kk, found.level_global) == (0, 0)
