"""Counting and the measures on it compared with their oracles."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from sfumato.counting.cells import cell_table
from sfumato.counting.classes import class_size_counts, class_value_counts
from sfumato.counting.contingency import contingency
from sfumato.measures.anonymity import anonymity_level, at_risk_fraction, average_class_size, discernibility
from sfumato.measures.diversity import t_closeness
from sfumato.measures.information import conditional_entropy_bits, entropy_bits, mutual_information_bits
from strategies import categorical_rows
from table_levels import distinct_diversity_level, entropy_diversity_level, recursive_diversity_level


def decoded(cells):
    """Cells as a mapping from values to count, in their order."""
    columns = [
        [values[code].as_py() for code in codes] for values, codes in zip(cells.values, cells.codes.T, strict=True)
    ]
    keys = list(zip(*columns, strict=True)) if columns else [()] * cells.n_cells
    return dict(zip(keys, cells.counts.tolist(), strict=True))


def in_order(values):
    return sorted(set(values), key=lambda value: (value is None, value or ""))


def split(drawn):
    """Quasi-identifiers and the last column as the sensitive one."""
    return drawn.keep(drawn.columns[:-1]), drawn.columns[-1]


@pytest.mark.slow
@given(drawn=categorical_rows())
def test_cells_are_the_distinct_rows(drawn):
    expected = {row: len(members) for row, members in oracles.equivalence_classes(drawn.rows).items()}
    values_in_order = [in_order(drawn.column(name)) for name in drawn.columns]

    table = drawn.table()
    cells = cell_table(table, drawn.columns)
    assert decoded(cells) == expected
    assert cells.codes.tolist() == sorted(cells.codes.tolist())
    assert [values.to_pylist() for values in cells.values] == values_in_order


@pytest.mark.slow
@given(drawn=categorical_rows(), k=st.integers(1, 4))
def test_class_sizes_and_their_measures_agree_with_the_definitions(drawn, k):
    table = drawn.table()
    sizes = cell_table(table, drawn.columns).counts

    assert class_size_counts(table, drawn.columns) == {
        size: sizes.tolist().count(size) for size in sorted(set(sizes.tolist()))
    }
    assert sizes.sum() == len(drawn.rows)
    assert anonymity_level(sizes) == oracles.anonymity_level(drawn.rows)
    assert at_risk_fraction(sizes, k) == float(oracles.at_risk_fraction(drawn.rows, k))
    assert discernibility(sizes, n_suppressed=k) == oracles.discernibility(drawn.rows, n_suppressed=k)
    assert average_class_size(sizes, k) == pytest.approx(float(oracles.average_class_size(drawn.rows, k)))


@pytest.mark.slow
@given(
    drawn=categorical_rows(min_columns=2, max_values=5),
    c=st.fractions(min_value=Fraction(1, 10), max_value=4, max_denominator=10),
)
def test_diversity_and_closeness_agree_with_the_definitions(drawn, c):
    public, name = split(drawn)
    spelled = drawn.column(name)
    merged = [None if text is None else oracles.same_value(text) for text in spelled]
    # a value stands where the first of its spellings does
    ranked = [*oracles.in_rank_order([text for text in dict.fromkeys(spelled) if text is not None]), None]
    places = list(
        dict.fromkeys(None if text is None else oracles.same_value(text) for text in ranked if text in spelled)
    )
    equal = max(oracles.equal_t_closeness(public.rows, values) for values in (merged, spelled))
    ordered = max(
        oracles.ordered_t_closeness(public.rows, merged, places),
        oracles.ordered_t_closeness(public.rows, spelled, [text for text in ranked if text in spelled]),
    )

    distinct, entropy = (
        oracles.distinct_diversity_level(public.rows, merged),
        oracles.entropy_diversity_level(public.rows, merged),
    )
    recursive = oracles.recursive_diversity_level(public.rows, merged, c)

    table = drawn.table()
    counts = class_value_counts(table, public.columns, name)
    assert distinct_diversity_level(counts) == distinct
    assert entropy_diversity_level(counts) == pytest.approx(entropy)
    assert recursive_diversity_level(counts, float(c)) == recursive
    assert t_closeness(counts) == pytest.approx(float(equal))
    assert t_closeness(counts, "ordered") == pytest.approx(float(ordered), abs=1e-12)


@pytest.mark.slow
@given(drawn=categorical_rows(min_columns=2, max_columns=2))
def test_information_agrees_with_the_definitions(drawn):
    (values, classes), (name, by) = zip(*drawn.rows, strict=True) if drawn.rows else ((), ()), drawn.columns
    expected = [[drawn.rows.count((value, label)) for label in in_order(classes)] for value in in_order(values)]
    conditional = oracles.conditional_entropy_bits(values, classes)
    mutual = oracles.mutual_information_bits(values, classes)

    table = drawn.table()
    counted = contingency(table, name, by)
    assert counted.tolist() == expected
    assert entropy_bits(counted.sum(axis=1)) == pytest.approx(oracles.entropy_bits(values))
    assert conditional_entropy_bits(counted) == pytest.approx(conditional, abs=1e-12)
    assert mutual_information_bits(counted) == pytest.approx(mutual, abs=1e-12)
    assert mutual_information_bits(counted.T) == pytest.approx(mutual, abs=1e-12)


@pytest.mark.slow
@given(drawn=categorical_rows(), data=st.data())
def test_row_order_does_not_matter(drawn, data):
    shuffled = drawn._replace(rows=data.draw(st.permutations(drawn.rows)))

    one, other = cell_table(drawn.table(), drawn.columns), cell_table(shuffled.table(), drawn.columns)
    assert one.codes.tolist() == other.codes.tolist()
    assert one.counts.tolist() == other.counts.tolist()


@pytest.mark.slow
@given(drawn=categorical_rows(max_columns=4), data=st.data())
def test_roll_up_equals_counting_the_fewer_columns(drawn, data):
    kept = tuple(data.draw(st.lists(st.sampled_from(drawn.columns), unique=True)))

    table = drawn.table()
    rolled, direct = cell_table(table, drawn.columns).project(kept), cell_table(table, kept)
    assert rolled.codes.tolist() == direct.codes.tolist()
    assert rolled.counts.tolist() == direct.counts.tolist()


@pytest.mark.slow
@given(drawn=categorical_rows(min_rows=1), data=st.data())
def test_dropping_columns_never_lowers_the_anonymity_level(drawn, data):
    kept = data.draw(st.lists(st.sampled_from(drawn.columns), unique=True))
    table = drawn.table()

    fewer = anonymity_level(cell_table(table, kept).counts)

    assert fewer >= anonymity_level(cell_table(table, drawn.columns).counts)


@pytest.mark.slow
@given(drawn=categorical_rows(min_rows=1, min_columns=2, max_values=5))
def test_diversity_levels_are_ordered(drawn):
    """Entropy diversity never exceeds distinct diversity, which never exceeds the anonymity level."""
    counts = class_value_counts(drawn.table(), drawn.columns[:-1], drawn.columns[-1])

    assert 1 <= entropy_diversity_level(counts) <= distinct_diversity_level(counts) + 1e-9
    assert distinct_diversity_level(counts) <= anonymity_level(counts.class_sizes)
    assert 0 <= t_closeness(counts, "ordered") <= t_closeness(counts) + 1e-12 <= 1 + 1e-12
