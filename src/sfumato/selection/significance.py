"""Whether two learners differ over the folds of one cross-validation: the paired t-test, plain and corrected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from sfumato.errors import InvalidParameterError

FoldTest = Literal["corrected", "paired"]
FOLD_TESTS: tuple[str, ...] = get_args(FoldTest)

_ROUNDING = 1e-12  # less than this is no difference and no spread


@dataclass(frozen=True)
class FoldComparison:
    """Outcome of a paired test over folds.

    Parameters
    ----------
    difference : float
        Mean score less mean score of the baseline; above 0 is better.
    standard_error : float
        Of the difference, with the test's correction.
    p_value : float
        Two-sided. Without any spread over the folds it is 1 where the means agree and 0 where they do not.
    test : {"corrected", "paired"}
        Which test it was.
    """

    difference: float
    standard_error: float
    p_value: float
    test: FoldTest


def compare_folds(
    scores: ArrayLike, baseline: ArrayLike, *, test: FoldTest = "corrected", test_train_ratio: float | None = None
) -> FoldComparison:
    """Test whether scores of the same folds have different means.

    The training parts of a cross-validation overlap, so the plain paired t-test, the one of [PBI17]_, takes too many
    differences for real. The corrected resampled test of [NB03]_ (its Section 3) multiplies the variance of the
    differences by 1 / n_folds + test rows / training rows instead of 1 / n_folds. Both have n_folds - 1 degrees of
    freedom.

    Parameters
    ----------
    scores, baseline : array_like of shape (n_folds,)
        Scores fold by fold, in the same order.
    test : {"corrected", "paired"}
        Nadeau and Bengio's, or the paper's.
    test_train_ratio : float or None
        Rows tested over rows trained on, for the correction. None is 1 / (n_folds - 1), right for one
        cross-validation; for repeated k-fold cross-validation give 1 / (k - 1).

    Notes
    -----
    Not significantly different does not mean equal: the corrected test finds fewer differences, so a search that puts
    a column back only where the loss is significant drops more columns under it. Where the
    differences vary much over few folds, a loss of several points may pass.

    References
    ----------
    .. [PBI17] Jafer, Matwin, Sokolova: A Multi-dimensional Privacy-aware Evaluation Function in Automatic Feature
       Selection. Transactions on Data Privacy 10 (2017).
    .. [NB03] Nadeau, Bengio: Inference for the Generalization Error. Machine Learning 52 (2003) 239-281.

    Examples
    --------
    >>> ours, theirs = [0.8, 0.7, 0.9, 0.8], [0.7, 0.6, 0.9, 0.7]
    >>> round(compare_folds(ours, theirs, test="paired").p_value, 3)
    0.058
    >>> round(compare_folds(ours, theirs).p_value, 3)
    0.144
    """
    ours, theirs = np.asarray(scores, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    _check(ours, theirs, test)
    n_folds = len(ours)
    differences = ours - theirs
    difference, variance = float(differences.mean()), float(differences.var(ddof=1))
    share = 1 / n_folds
    if test == "corrected":
        share += 1 / (n_folds - 1) if test_train_ratio is None else _checked_ratio(test_train_ratio)
    standard_error = float(np.sqrt(share * variance))
    if standard_error <= _ROUNDING:
        p_value = 1.0 if abs(difference) <= _ROUNDING else 0.0
    else:
        p_value = float(2 * stats.t.sf(abs(difference) / standard_error, n_folds - 1))
    return FoldComparison(difference, standard_error, p_value, test)


def _checked_ratio(ratio: float) -> float:
    if not 0 < ratio < np.inf:
        raise InvalidParameterError("test_train_ratio", f"got {ratio!r}", allowed="a number above 0")
    return ratio


def _check(ours: np.ndarray, theirs: np.ndarray, test: str) -> None:
    if test not in FOLD_TESTS:
        raise InvalidParameterError("test", f"got {test!r}", allowed=" or ".join(FOLD_TESTS))
    if ours.ndim != 1 or ours.shape != theirs.shape:
        problem = f"got shapes {ours.shape} and {theirs.shape}"
        raise InvalidParameterError("scores", problem, allowed="one number for each fold of the baseline")
    if len(ours) < 2:
        raise InvalidParameterError("scores", f"got {len(ours)}", allowed="of at least 2 folds")
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        raise InvalidParameterError("scores", "some are not", allowed="finite numbers")
