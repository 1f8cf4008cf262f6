"""Whether an attacker gains by the choice of columns, estimated anew from the original with own folds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sfumato.audit.attackers import Attack
from sfumato.audit.beside import Beside
from sfumato.audit.checks import Check, listed
from sfumato.audit.claims import Claims
from sfumato.audit.columns import Columns
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.estimated_guarantees import BreachBound
from sfumato.schema import Kind, Role

Numbers = NDArray[np.float64]


def measure(guarantee: BreachBound, beside: Beside) -> float:
    """Lower end of the interval around the privacy breach increase, in percent.

    Both sets of columns are taken from the original; that the release has the same cells is checked elsewhere.

    Raises
    ------
    SchemaError
        If a column is not in the original, or the sensitive one has fewer than two values.
    InvalidParameterError
        If there is nothing to compare with: no released column, or an attacker who is never right.
    """
    if not guarantee.columns:
        raise InvalidParameterError("columns", "got none", allowed="at least one")
    columns = [beside.original.coded(name) for name in guarantee.baseline]
    is_numeric = [name in guarantee.numeric for name in guarantee.baseline]
    values, sensitive = np.unique(beside.original.coded(guarantee.sensitive).codes[beside.rows], return_inverse=True)
    if len(values) < 2:
        problem = "has fewer than two values, so there is nothing to predict"
        raise SchemaError(problem, column=guarantee.sensitive)
    try:
        attack = Attack(columns, is_numeric, beside.rows, sensitive.astype(np.int64), guarantee.metric)
    except ValueError:
        raise InvalidParameterError("numeric", "some are not", allowed="columns that hold numbers") from None
    released = [guarantee.baseline.index(name) for name in guarantee.columns]
    ours = attack.scores(released, guarantee.attacker)
    everything = attack.scores(range(len(columns)), guarantee.attacker)
    return lower_end(ours, everything, guarantee.confidence)


def lower_end(scores: Numbers, baseline: Numbers, confidence: float) -> float:
    """Lower end of a two-sided interval of the percentage by which scores are above a baseline's.

    The interval is that of the corrected resampled t-test (Nadeau and Bengio, Machine Learning 52, 2003) for the
    difference, over the mean of the baseline.

    Examples
    --------
    >>> round(lower_end(np.array([0.8, 0.7, 0.9]), np.array([0.8, 0.8, 0.8]), 0.95), 1)
    -49.1
    """
    if baseline.mean() <= 0:
        problem = "is right in no row"
        raise InvalidParameterError("the attacker with all columns", problem, allowed="right now and then")
    differences, n_folds = scores - baseline, len(scores)
    error = float(np.sqrt((1 / n_folds + 1 / (n_folds - 1)) * differences.var(ddof=1)))
    lowest = float(differences.mean()) - float(stats.t.ppf((1 + confidence) / 2, n_folds - 1)) * error
    return 100 * lowest / float(baseline.mean())


def check_breach_promises(claims: Claims, original: Columns | None, check_roles: bool) -> Iterator[Check]:
    """Whether a bound compares with what it should, and what it protects is not simply released."""
    for promise in claims.promises:
        guarantee = promise.guarantee
        if isinstance(guarantee, BreachBound):
            yield _check_baseline(guarantee, claims, original if check_roles else None)
            yield _check_sensitive(guarantee, claims)
            if original is not None and check_roles:
                yield _check_numeric(guarantee, original)


def _check_baseline(guarantee: BreachBound, claims: Claims, original: Columns | None) -> Check:
    """With more columns to compare with, and stronger ones, any release would look safe."""
    expected = {*claims.names(Role.QUASI_IDENTIFIER), *claims.dropped_columns}
    wrong = [name for name in guarantee.baseline if name not in expected]
    if original is not None:
        quasi = set(original.with_role(Role.QUASI_IDENTIFIER))
        wrong = sorted(quasi ^ set(guarantee.baseline))
    said = f"are not the original's quasi-identifiers: {listed(wrong)}"
    if not wrong:
        unchecked = "were released or dropped; NOT CHECKED whether they are all quasi-identifiers of the original"
        said = unchecked if original is None else "are the original's quasi-identifiers"
    return Check(f"{guarantee.kind}: compared with", not wrong, f"{guarantee.kind}: the columns compared with {said}")


def _check_numeric(guarantee: BreachBound, original: Columns) -> Check:
    """Compare with the declared kinds: who takes categories for numbers, or numbers for categories, is weak."""
    kinds = {name: original.describe(name).kind for name in guarantee.baseline if name in original}
    wrong = [name for name, kind in kinds.items() if (kind is Kind.NUMERIC) != (name in guarantee.numeric)]
    said = f"are not the original's: {listed(wrong)}" if wrong else "are the original's"
    return Check(f"{guarantee.kind}: numbers", not wrong, f"{guarantee.kind}: the columns taken as numbers {said}")


def _check_sensitive(guarantee: BreachBound, claims: Claims) -> Check:
    """Only a target may be both released and what the bound is about: recipients are to predict it."""
    name = guarantee.sensitive
    beside_target = set(claims.names()) - set(claims.names(Role.TARGET))
    is_released = name in beside_target or any(r.column == name for r in claims.recodings.values())
    said = "is released itself" if is_released else "is not released, or is the target that recipients predict"
    return Check(
        f"{guarantee.kind}: sensitive", not is_released, f"{guarantee.kind}: the column to be protected {said}"
    )
