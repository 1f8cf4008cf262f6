import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit import measured_level
from sfumato.errors import ColumnNotFoundError
from sfumato.guarantees import LDiversity
from unit.audit.audit_oracles import (
    oracle_distinct,
    oracle_entropy,
    oracle_recursive,
    oracle_satisfies_recursive,
    small_rows,
    table_from_rows,
    table_of,
)

QI = ("a",)
SENSITIVE = st.lists(st.one_of(st.none(), st.integers(0, 3)), min_size=7, max_size=7)


def quasi_identifiers(rows):
    return tuple(f"q{i}" for i in range(len(rows[0]) if rows else 0))


@given(small_rows(1), SENSITIVE)
def test_distinct_level_follows_the_definition(rows, values):
    sensitive = values[: len(rows)]
    guarantee = LDiversity(2, "s", quasi_identifiers(rows))

    assert measured_level(guarantee, table_from_rows(rows, sensitive)) == oracle_distinct(rows, sensitive)


@pytest.mark.slow
@given(small_rows(1), SENSITIVE)
def test_entropy_level_follows_the_definition(rows, values):
    sensitive = values[: len(rows)]
    guarantee = LDiversity(2, "s", quasi_identifiers(rows), "entropy")

    found = measured_level(guarantee, table_from_rows(rows, sensitive))

    assert found == pytest.approx(oracle_entropy(rows, sensitive), abs=1e-12)


@pytest.mark.slow
@given(small_rows(1), SENSITIVE, st.sampled_from(["0.5", "1", "1.5", "2", "3", "100"]))
def test_recursive_level_follows_the_definition(rows, values, c):
    sensitive = values[: len(rows)]
    guarantee = LDiversity(2, "s", quasi_identifiers(rows), "recursive", float(c))

    found = measured_level(guarantee, table_from_rows(rows, sensitive))

    assert found == oracle_recursive(rows, sensitive, Fraction(c))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.sampled_from(["0.5", "1", "2", "3"]), st.integers(2, 6))
def test_a_class_that_satisfies_l_satisfies_l_minus_1(group, c, length):
    """So the largest l is well defined, and smaller ones hold with it."""
    ratio = Fraction(c)

    assert not oracle_satisfies_recursive(group, ratio, length) or oracle_satisfies_recursive(group, ratio, length - 1)


@pytest.mark.slow
@given(small_rows(1), SENSITIVE)
def test_entropy_is_never_above_distinct(rows, values):
    sensitive = values[: len(rows)]
    table, names = table_from_rows(rows, sensitive), quasi_identifiers(rows)

    distinct = measured_level(LDiversity(2, "s", names), table)

    assert measured_level(LDiversity(2, "s", names, "entropy"), table) <= distinct + 1e-9


def test_equally_frequent_values_have_an_entropy_level_of_their_number():
    table = table_of({"a": ["x"] * 6, "s": list("aabbcc")})

    assert measured_level(LDiversity(3, "s", QI, "entropy"), table) == pytest.approx(3)
    assert LDiversity(3, "s", QI, "entropy").is_met_by(measured_level(LDiversity(3, "s", QI, "entropy"), table))


def test_recursive_diversity_by_hand():
    """Counts 4, 2, 1, 1: 4 < 2·(2+1+1) holds for l = 2, 4 < 2·(1+1) fails for l = 3; with c = 2.5 l = 3 holds."""
    table = table_of({"a": ["x"] * 8, "s": list("aaaabbcd")})

    assert measured_level(LDiversity(2, "s", QI, "recursive", 2.0), table) == 2
    assert measured_level(LDiversity(2, "s", QI, "recursive", 2.5), table) == 3
    assert measured_level(LDiversity(2, "s", QI, "recursive", 0.5), table) == 0


def test_recursive_comparison_is_not_rounded():
    """7 < 0.07 · 100 is false, although 0.07 * 100 is above 7 in floating point."""
    assert 0.07 * 100 > 7

    table = table_of({"a": ["x"] * 100, "s": ["most"] * 7 + [f"s{i}" for i in range(93)]})
    assert measured_level(LDiversity(2, "s", QI, "recursive", 0.07), table) == 0


@pytest.mark.parametrize("c", [1e-300, 1e300], ids=str)
def test_extreme_factors_do_not_overflow(c):
    table = table_of({"a": ["x"] * 3, "s": list("abc")})

    assert measured_level(LDiversity(2, "s", QI, "recursive", c), table) == (3 if c > 1 else 0)


def test_the_least_diverse_class_counts():
    table = table_of({"a": list("xxxyyy"), "s": ["a", "b", "c", "a", None, None]})

    assert measured_level(LDiversity(2, "s", QI), table) == 2
    entropy = math.exp(-(1 / 3) * math.log(1 / 3) - (2 / 3) * math.log(2 / 3))
    assert measured_level(LDiversity(2, "s", QI, "entropy"), table) == pytest.approx(entropy)


@pytest.mark.parametrize("variant", ["distinct", "entropy", "recursive"])
def test_an_empty_table_has_level_zero(variant):
    guarantee = LDiversity(2, "s", (), variant, 3.0 if variant == "recursive" else None)

    assert measured_level(guarantee, table_from_rows([], [])) == 0


def test_an_unknown_sensitive_column_is_named():
    with pytest.raises(ColumnNotFoundError, match="'s': not found"):
        measured_level(LDiversity(2, "s", QI), table_of({"a": ["x"]}))
