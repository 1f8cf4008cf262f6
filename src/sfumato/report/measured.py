"""Utility kept and risk left, measured for the report; where one cannot be, the reason stands in its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.attack.risk import NOT_APPLICABLE, attacked_rows, risk_of
from sfumato.contract import Mechanism, Progress, Release
from sfumato.displays.class_sizes import sizes_before_and_after
from sfumato.displays.risk import RiskCurve
from sfumato.errors import SfumatoError
from sfumato.evaluation.classifiers import CLASSIFIERS
from sfumato.evaluation.scores import evaluate
from sfumato.manifest import AnyTable

NOT_MEASURED = "not_measured"
MOST_ROWS = 20_000
MOST_COLUMNS_TO_BLAME = 5

_MOST_STEPS = 400
_NO_ORIGINAL = "the original was not given"


def utility_kept(
    release: Release,
    original: AnyTable | None,
    mechanism: Mechanism | str,
    *,
    skip: str = "",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Cross-validate classifiers before and after.

    Parameters
    ----------
    mechanism : Mechanism or str
        What made the release, to be fitted in the training folds; or the reason why it is not there.
    skip : str
        A reason not to measure.

    Returns
    -------
    dict
        ``before`` and ``after`` as :class:`sfumato.evaluation.scores.Utility` writes itself and ``titles`` of the
        classifiers, or ``not_measured`` with the reason. On more than 20,000 rows a sample is drawn.
    """
    if original is None or skip:
        return {NOT_MEASURED: skip or _NO_ORIGINAL}
    is_changed = bool(release.manifest.recodings or release.manifest.perturbation)
    if isinstance(mechanism, str) and is_changed:
        return {NOT_MEASURED: mechanism}
    used = attacked_rows(original, release.manifest)
    try:
        before = evaluate(used, max_rows=MOST_ROWS, progress=progress)
        if isinstance(mechanism, str):
            after = evaluate(release.table, fitted_on="all rows", max_rows=MOST_ROWS, progress=progress)
        else:
            after = evaluate(used, mechanism, max_rows=MOST_ROWS, progress=progress)
    except SfumatoError as exc:
        return {NOT_MEASURED: str(exc).removesuffix(".")}
    titles = {name: CLASSIFIERS[name].title for name in before.classifiers}
    return {"before": before.to_dict(), "after": after.to_dict(), "titles": titles}


def risk_left(release: Release, original: AnyTable | None, *, progress: Progress | None = None) -> dict[str, Any]:
    """Attack the original and the release in every way that applies.

    Returns
    -------
    dict
        ``before`` and ``after`` as :func:`sfumato.attack.risk.risk_of` gives them and ``curves``, the shares of people
        by their risk; or ``not_measured`` with the reason.
    """
    if original is None:
        return {NOT_MEASURED: _NO_ORIGINAL}
    used = attacked_rows(original, release.manifest)
    try:
        before = risk_of(used, used, progress=progress)
        after = risk_of(used, release.table, release.manifest, progress=progress)
    except SfumatoError as exc:
        return {NOT_MEASURED: str(exc).removesuffix(".")}
    return {"before": before, "after": after, "curves": _curves(release, used, after)}


def _curves(release: Release, original: AnyTable, after: Mapping[str, Any]) -> dict[str, Any] | None:
    if NOT_APPLICABLE in after["reidentification"] or not release.table.n_rows:
        return None
    sizes = sizes_before_and_after(original, release.table, release.manifest)
    return {
        when: _plain(RiskCurve.from_class_sizes(found)) for when, found in zip(("before", "after"), sizes, strict=True)
    }


def _plain(curve: RiskCurve) -> dict[str, Any]:
    """Write a curve with a few hundred steps at most; the highest risk stays."""
    n = len(curve.risks)
    chosen = range(n) if n <= _MOST_STEPS else np.unique(np.linspace(0, n - 1, _MOST_STEPS).astype(int)).tolist()
    return {
        "risks": [curve.risks[place] for place in chosen],
        "shares": [curve.shares[place] for place in chosen],
        "n_people": curve.n_people,
    }
