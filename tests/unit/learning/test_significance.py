"""Paired tests over folds against scipy and against the formula written out."""

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfumato.errors import InvalidParameterError
from sfumato.learning.fold_scores import compare_folds


@st.composite
def folds_with_spread(draw):
    """Scores in whole numbers; the last two differences are never equal, so there is a spread."""
    n_folds = draw(st.integers(2, 12))
    baseline = draw(st.lists(st.integers(0, 50), min_size=n_folds, max_size=n_folds))
    differences = draw(st.lists(st.integers(-9, 9), min_size=n_folds - 1, max_size=n_folds - 1))
    differences.append(differences[-1] + draw(st.integers(1, 9)))
    return [b + d for b, d in zip(baseline, differences, strict=True)], baseline


@given(folds_with_spread())
def test_the_papers_test_is_the_paired_t_test(folds):
    ours, baseline = folds
    expected = stats.ttest_rel(ours, baseline)

    found = compare_folds(ours, baseline, test="paired")

    assert found.p_value == pytest.approx(expected.pvalue, abs=1e-12)
    assert found.difference == pytest.approx(statistics.mean(ours) - statistics.mean(baseline))


@pytest.mark.slow
@given(folds_with_spread(), st.one_of(st.none(), st.floats(0.01, 2)))
def test_the_corrected_test_is_nadeau_and_bengios_formula(folds, ratio):
    ours, baseline = folds
    differences = [a - b for a, b in zip(ours, baseline, strict=True)]
    n = len(differences)
    spread = (1 / n + (1 / (n - 1) if ratio is None else ratio)) * statistics.variance(differences)
    t = statistics.mean(differences) / spread**0.5

    found = compare_folds(ours, baseline, test_train_ratio=ratio)

    assert found.p_value == pytest.approx(2 * stats.t.cdf(-abs(t), n - 1), abs=1e-12)
    assert found.standard_error == pytest.approx(spread**0.5)
    assert found.test == "corrected"


@given(folds_with_spread())
def test_the_corrected_test_is_never_the_surer_one(folds):
    plain, corrected = (compare_folds(*folds, test=test) for test in ("paired", "corrected"))

    assert corrected.p_value >= plain.p_value
    assert corrected.standard_error > plain.standard_error


@pytest.mark.parametrize("test", ["paired", "corrected"])
@pytest.mark.parametrize(("shift", "expected"), [(0, 1.0), (0.1, 0.0), (-0.1, 0.0)])
def test_without_spread_only_equal_scores_are_not_different(test, shift, expected):
    baseline = np.array([0.1, 0.2, 0.3, 0.7])

    assert compare_folds(baseline + shift, baseline, test=test).p_value == expected


def test_noise_of_rounding_is_no_difference():
    baseline = np.array([0.3, 0.6, 0.9])
    noisy = np.array([0.1 + 0.2, 0.2 + 0.4, np.nextafter(0.9, 1)])

    assert (noisy > baseline).any()
    assert compare_folds(noisy, baseline).p_value == 1.0


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (([0.5], [0.4]), {}),
        (([0.5, 0.4], [0.4]), {}),
        (([[0.5, 0.4]], [[0.4, 0.4]]), {}),
        (([0.5, np.nan], [0.4, 0.4]), {}),
        (([0.5, 0.5], [0.4, np.inf]), {}),
        (([0.5, 0.5], [0.4, 0.3]), {"test": "wilcoxon"}),
        (([0.5, 0.5], [0.4, 0.3]), {"test_train_ratio": 0}),
        (([0.5, 0.5], [0.4, 0.3]), {"test_train_ratio": np.nan}),
    ],
)
def test_bad_input_is_refused(arguments, options):
    with pytest.raises(InvalidParameterError):
        compare_folds(*arguments, **options)
