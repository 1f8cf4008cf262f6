"""Tests of the public side of the selection without totals."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from operator import mul

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.collaborate.scores import TradeoffWeights
from sfumato.collaborate.selection_only import TABLE_BITS, Question, modular_product, rank_indicators
from sfumato.errors import InvalidParameterError
from sizes import examples
from unit.collaborate.exactness import tradeoff_error

EVEN = TradeoffWeights(0.5, 0.5)


def counted(columns, classes, sizes, n_classes):
    """Count pairs of a value and a class, one row after the other."""
    matrices = [np.zeros((size, n_classes), dtype=np.int64) for size in sizes]
    for matrix, column in zip(matrices, columns, strict=True):
        for value, label in zip(column, classes, strict=True):
            matrix[value, label] += 1
    return matrices


def exact_tradeoff(matrix, utility, privacy):
    """Trade-off of a feature by the definitions, with 60 digits."""
    with localcontext() as context:
        context.prec = 60

        def entropy(numbers):
            total = sum(numbers)
            shares = [Decimal(k) / total for k in numbers if k]
            return -sum(share * share.ln() for share in shares) / Decimal(2).ln()

        values, labels = matrix.sum(axis=1).tolist(), matrix.sum(axis=0).tolist()
        information = entropy(values) + entropy(labels) - entropy(matrix.ravel().tolist())
        most = Decimal(len(matrix)).ln() / Decimal(2).ln()
        share = entropy(values) / most if most else Decimal(0)
        return Decimal(utility) * information + Decimal(privacy) * share


@st.composite
def contingencies(draw):
    """Matrices of a few features over the same rows."""
    n_rows, n_classes = draw(st.integers(1, 40)), draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(1, 5), min_size=2, max_size=4))
    rows = st.lists(st.integers(0, n_classes - 1), min_size=n_rows, max_size=n_rows)
    classes = draw(rows)
    columns = [draw(st.lists(st.integers(0, s - 1), min_size=n_rows, max_size=n_rows)) for s in sizes]
    return counted(columns, classes, sizes, n_classes)


@given(st.integers(1, 130), st.data())
@examples(25)
def test_the_spectrum_is_the_polynomial_through_all_values_of_a_table(max_rows, data):
    question = Question((2,), 2, EVEN, max_rows)
    order, p = question.side**2, question.modulus
    table = data.draw(st.lists(st.integers(-(2**50), 2**50), min_size=order, max_size=order))
    x = data.draw(st.integers(0, order - 1))

    spectrum = question.spectrum(np.array(table, dtype=object))

    point = int(question.roots[x])
    powers = range(question.side)
    value = sum(int(spectrum[i, j]) * pow(point, i + question.side * j, p) for i in powers for j in powers)
    assert (value - table[x]) % p == 0


@pytest.mark.parametrize("max_rows", [1, 8, 9, 24, 80, 339, 4095])
def test_the_field_has_as_many_roots_of_unity_as_there_are_counts(max_rows):
    question = Question((2, 3), 22, EVEN, max_rows)
    p = question.modulus

    assert len(set(question.roots.tolist())) == len(question.roots) > max_rows
    assert all(pow(int(root), len(question.roots), p) == 1 for root in question.roots[:20])
    assert p % 4 == 3
    assert pow(2, p - 1, p) == 1


@pytest.mark.slow
@given(contingencies(), st.floats(0, 1))
def test_summands_are_the_tradeoffs_times_the_rows_but_for_a_common_term(matrices, utility):
    question = Question.of(matrices, TradeoffWeights(utility, 1 - utility), 40)
    n_rows = int(matrices[0].sum())
    exponents = question.exponents(matrices).tolist()

    sums = [Decimal(0)] * len(matrices)
    for coefficient, counts, features, signs in question.summands():
        for count, feature, sign in zip(counts.tolist(), features.tolist(), signs.tolist(), strict=True):
            x = exponents[count]
            sums[feature] += sign * coefficient * Decimal(x * math.log2(x) if x else 0.0)

    tradeoffs = [exact_tradeoff(matrix, *question.weights) for matrix in matrices]
    common = sums[0] - n_rows * tradeoffs[0]
    assert all(abs(s - n_rows * t - common) < 1e-9 for s, t in zip(sums, tradeoffs, strict=True))


@pytest.mark.slow
@given(contingencies(), st.floats(0, 1))
def test_rounded_tables_miss_the_tradeoffs_by_no_more_than_the_stated_error(matrices, utility):
    question = Question.of(matrices, TradeoffWeights(utility, 1 - utility), 40)
    n_rows, n_classes = int(matrices[0].sum()), matrices[0].shape[1]
    exponents = question.exponents(matrices)

    sums = [0] * len(matrices)
    for coefficient, counts, features, signs in question.summands():
        values = question.table(coefficient)[exponents[counts]]
        for feature, value, sign in zip(features.tolist(), values.tolist(), signs.tolist(), strict=True):
            sums[feature] += sign * value

    exact = [exact_tradeoff(matrix, *question.weights) for matrix in matrices]
    errors = [tradeoff_error(len(matrix), n_classes, n_rows) for matrix in matrices]
    for i in range(len(matrices)):
        found = Decimal(sums[i] - sums[0]) / 2**TABLE_BITS / n_rows
        assert abs(found - (exact[i] - exact[0])) <= errors[i] + errors[0]
        assert abs(sums[i] - sums[0]) < 2 ** (question.n_bits - 1)


def test_weights_that_are_0_leave_no_summands():
    question = Question((1, 2), 2, TradeoffWeights(0.0, 1.0), 10)

    ((coefficient, counts, features, signs),) = question.summands()

    assert coefficient == 1
    assert (counts.tolist(), features.tolist(), signs.tolist()) == ([7, 8, 9], [1, 1, 1], [-1, -1, 1])


@given(st.integers(1, 7), st.data())
def test_indicators_are_1_at_their_own_number_and_0_at_the_others(n, data):
    n_rows = data.draw(st.integers(0, n))
    p = 2**61 - 1

    coefficients = rank_indicators(n, n_rows, p)

    for row in range(n_rows):
        at = [sum(int(c) * x**k for k, c in enumerate(coefficients[row])) % p for x in range(n)]
        assert at == [int(x == row) for x in range(n)]


def test_tables_are_the_nearest_multiples():
    question = Question((2,), 2, EVEN, 8)

    assert question.table(Decimal("0.5")).tolist() == [round(2**31 * (x * math.log2(x) if x else 0)) for x in range(9)]


@pytest.mark.parametrize(
    "counts",
    [
        [],
        [np.array([[1, 2], [0, 1]]), np.array([[1, 2], [1, 1]])],
        [np.array([[1, 2]]), np.array([[3]])],
        [np.array([[2, 2], [-1, 1]]), np.array([[1, 3]])],
    ],
)
def test_counts_that_do_not_fit_together_are_refused(counts):
    with pytest.raises(InvalidParameterError, match="counts"):
        Question.of(counts, EVEN, 10)


@pytest.mark.parametrize("max_rows", [0, -1, True, 2.0, 100_001])
def test_bounds_that_are_no_number_of_rows_are_refused(max_rows):
    with pytest.raises(InvalidParameterError, match="max_rows"):
        Question.of([np.array([[1]])], EVEN, max_rows)


def test_the_public_parameters_are_all_compared():
    questions = [
        Question((2, 3), 2, EVEN, 20),
        Question((3, 2), 2, EVEN, 20),
        Question((2, 3), 3, EVEN, 20),
        Question((2, 3), 2, TradeoffWeights(0.25, 0.75), 20),
        Question((2, 3), 2, EVEN, 21),
    ]

    assert len({question.as_bytes for question in questions}) == len(questions)


@given(st.integers(2, 2**130), st.integers(1, 4), st.integers(1, 40), st.integers(1, 3), st.randoms())
def test_products_of_matrices_are_exact(p, n_rows, n_inner, n_columns, random):
    left = [[random.randrange(p) for _ in range(n_inner)] for _ in range(n_rows)]
    right = [[random.randrange(p) for _ in range(n_columns)] for _ in range(n_inner)]
    found = modular_product(np.array(left, dtype=object), np.array(right, dtype=object), p)

    columns = list(zip(*right, strict=True))
    assert found.tolist() == [[sum(map(mul, row, column)) % p for column in columns] for row in left]


def test_the_largest_numbers_do_not_overflow():
    p = 2**150
    left = np.full((1, 1000), p - 1, dtype=object)

    assert modular_product(left, left.T, p)[0, 0] == 1000 * (p - 1) ** 2 % p


@pytest.mark.parametrize("n_rows", [1, 2, 3, 24, 60])
def test_logarithms_are_those_of_all_numbers(n_rows):
    terms = Question((2,), 2, TradeoffWeights(0.5, 0.5), n_rows).entropy_terms

    assert terms[0] == 0
    for x, term in enumerate(terms[1:], start=1):
        assert float(term) == pytest.approx(x * math.log2(x), rel=1e-15)
