"""Utility kept and risk left: measured once, for the five lines, the page and the report of the same release.

The figures are plain data in the form in which a report shows them; a row marked ``detail`` is for the data holder
only. Where something cannot be measured, the reason stands in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from sfumato.attack.inference import ScoresInMemory
from sfumato.attack.reidentification import PEOPLE, ROWS
from sfumato.attack.risk import ATTACKS, NOT_APPLICABLE, Attacked, attacked_rows, in_one_unit
from sfumato.displays.risk import RiskCurve, curves_before_and_after
from sfumato.errors import SfumatoError
from sfumato.evaluation.classifiers import CLASSIFIERS
from sfumato.evaluation.points import Measuring, n_levels, quick_classifiers
from sfumato.evaluation.scores import ClassifierScores, Utility, evaluate
from sfumato.evaluation.treatment import class_column
from sfumato.figures import FIGURES, SCORES, Audience
from sfumato.manifest import AnyTable
from sfumato.mechanisms.base import Mechanism, Release
from sfumato.progress import Progress
from sfumato.report.guarantee_texts import NO_ORIGINAL, NO_TARGET, NOT_MEASURED, QUICK, share_in_words
from sfumato.schema import Role

MOST_COLUMNS_TO_BLAME = 5
_MOST_STEPS = 400
MOST_LEVELS = 500_000
"""Different values of all columns up to which classifiers are trained unasked: some minutes' work."""
_ALL_DIFFERENT = "every row has its own target value, so there is nothing to learn"

_WORDS = {
    PEOPLE: {"counted": "people", "one": "person", "whose": "people whose row is"},
    ROWS: {"counted": "rows", "one": "row", "whose": "rows"},
}


def utility_kept(
    release: Release,
    original: AnyTable | None,
    mechanism: Mechanism | str,
    *,
    quick: bool = False,
    only_best: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Cross-validate classifiers before and after, as a comparison does: the same classifiers, folds and rows.

    Parameters
    ----------
    mechanism : Mechanism or str
        What made the release, to be fitted in the training folds; or the reason why it is not there.
    quick : bool
        Train nothing.
    only_best : bool
        After, measure the classifier alone that is the best one before; the others are then left out.

    Returns
    -------
    dict
        ``classifiers`` with their scores before and after, the ``best`` one (by AUC before), and how they were
        measured; or ``not_measured`` with the reason. On more than 20,000 rows a sample is drawn; with more than
        500,000 different values in all columns together, 255 of each at most, nothing is trained.
    """
    reason = _why_not(release, original, mechanism, quick)
    if reason or original is None:
        return {NOT_MEASURED: reason}
    used = attacked_rows(original, release.manifest)
    try:
        most = int(class_column(used).counts.max(initial=0))
        if most < 2:
            return {NOT_MEASURED: _ALL_DIFFERENT}
        levels = n_levels(used)
        if levels > MOST_LEVELS:
            return {NOT_MEASURED: _too_wide(levels)}
        settings = _settings(used, most)
        before = evaluate(used, **settings, progress=progress)
        if only_best:
            settings["classifiers"] = (_best(before),)
        if isinstance(mechanism, str):
            after = evaluate(release.table, fitted_on="all rows", **settings, progress=progress)
        else:
            after = evaluate(used, mechanism, **settings, progress=progress)
    except SfumatoError as exc:
        return {NOT_MEASURED: str(exc).removesuffix(".")}
    return _compared(before, after)


def _settings(used: AnyTable, n_most: int) -> dict[str, Any]:
    usual = Measuring(quick_classifiers(used))
    return asdict(replace(usual, n_folds=min(usual.n_folds, n_most)))


def area_kept(release: Release, original: AnyTable, mechanism: Mechanism, classifier: str) -> float | None:
    """AUC of one classifier after a mechanism, measured as :func:`utility_kept` does; ``None`` where there is none."""
    used = attacked_rows(original, release.manifest)
    try:
        settings = _settings(used, int(class_column(used).counts.max(initial=0))) | {"classifiers": (classifier,)}
        found = evaluate(used, mechanism, **settings).classifiers[classifier].auc
    except SfumatoError:
        return None
    return None if found is None else found.mean


def _too_wide(levels: int) -> str:
    return (
        f"training classifiers would take long: the columns have {levels:,} different values in all, more than "
        f"{MOST_LEVELS:,}; a comparison trains them anyway"
    )


def _why_not(release: Release, original: AnyTable | None, mechanism: Mechanism | str, quick: bool) -> str:
    if quick:
        return QUICK
    if not any(column["role"] == str(Role.TARGET) for column in release.manifest.output["columns"]):
        return NO_TARGET
    if original is None:
        return NO_ORIGINAL
    is_changed = bool(release.manifest.recodings or release.manifest.perturbation)
    return mechanism if isinstance(mechanism, str) and is_changed else ""


def _compared(before: Utility, after: Utility) -> dict[str, Any]:
    old, new = ({name: scores.to_dict() for name, scores in found.classifiers.items()} for found in (before, after))
    classifiers: list[dict[str, Any]] = [
        {
            "name": name,
            "title": CLASSIFIERS[name].title,
            "before": {score.name: old[name][score.name] for score in SCORES},
            "after": {score.name: new[name][score.name] for score in SCORES},
            "recall": _recalls(old[name]["recall"], new[name]["recall"]),
        }
        for name in new
    ]
    best = _best(before)
    curves = {"before": old[best]["roc"], "after": new[best]["roc"]}
    return {
        "fitted_on": after.fitted_on,
        "n_folds": before.n_folds,
        "seed": before.seed,
        "n_rows": before.n_rows,
        "n_rows_of_table": before.n_rows_of_table,
        "majority_accuracy": before.majority_accuracy,
        "guessing": dict(before.guessing),
        "scores": [{"name": score.name, "heading": score.heading, "words": score.words} for score in SCORES],
        "classifiers": classifiers,
        "best": best,
        "roc": curves if all(curves.values()) else None,
    }


def _best(before: Utility) -> str:
    """Classifier with the largest area under the curve or, where there is none, accuracy; of equal ones the first."""
    return max(before.classifiers, key=lambda name: _quality(before.classifiers[name]))


def _quality(scores: ClassifierScores) -> float:
    return (scores.auc or scores.accuracy).mean


def _recalls(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Recall of each class; classes are numbered from the most frequent one, and not named."""
    return [
        {"class": old["class"], "share": old["share"], "before": old["mean"], "after": new["mean"]}
        for old, new in zip(before, after, strict=True)
    ]


def risk_left(release: Release, original: AnyTable | None, *, progress: Progress | None = None) -> dict[str, Any]:
    """Attack the original and the release in every way that applies.

    Returns
    -------
    dict
        ``before`` and ``after`` as :func:`sfumato.attack.risk.risk_of` gives them, ``figures`` (see :func:`figures_of`)
        and ``curves``, the shares of people by their risk; or ``not_measured`` with the reason.
    """
    if original is None:
        return {NOT_MEASURED: NO_ORIGINAL}
    used, kept = attacked_rows(original, release.manifest), ScoresInMemory()
    try:
        before = Attacked(used, used, kept=kept)
        after = Attacked(used, release.table, release.manifest, kept=kept)
        found = {"before": before.to_dict(progress), "after": after.to_dict(progress)}
    except SfumatoError as exc:
        return {NOT_MEASURED: str(exc).removesuffix(".")}
    return {**found, "figures": figures_of(before, after), "curves": _curves(release, used, found["after"])}


def figures_of(before: Attacked, after: Attacked) -> list[dict[str, Any]]:
    """List every declared figure of an original and its release, in the words that command, page and report print.

    Returns
    -------
    list of dict
        ``name``, ``group`` (heading), ``what`` (words), ``unit``, ``direction`` (which values are better),
        ``audience``, ``detail`` (whether it is for the data holder only), ``before`` and ``after``. Fit for JSON.
    """
    before, after = in_one_unit(before, after)
    by_all = after.applied("reidentification") or {"counted": PEOPLE}
    words = {**_WORDS[by_all["counted"]], "known": PEOPLE if after.rows_are_people else ROWS}
    rows = []
    for figure in (figure for figure in FIGURES if figure.group):
        old = figure.values_before(before, after)
        for case, value in figure.values(after).items():
            shown = (share_in_words(part) if isinstance(part, float) else part for part in case)
            what = figure.words.format(*shown, **words)
            row: dict[str, Any] = {"name": figure.name, "group": figure.group, "what": what}
            row |= {"unit": str(figure.unit), "direction": str(figure.direction), "audience": str(figure.audience)}
            row |= {"detail": figure.audience != Audience.EVERYBODY, "before": old.get(case), "after": value}
            rows.append(row)
    return rows


def _curves(release: Release, original: AnyTable, after: Mapping[str, Any]) -> dict[str, Any] | None:
    if NOT_APPLICABLE in after["reidentification"] or not release.table.n_rows:
        return None
    curves = curves_before_and_after(original, release.table, release.manifest)
    return {when: _plain(found) for when, found in zip(("before", "after"), curves, strict=True)}


def _plain(curve: RiskCurve) -> dict[str, Any]:
    """Write a curve with a few hundred steps at most; the highest risk stays."""
    n = len(curve.risks)
    chosen = range(n) if n <= _MOST_STEPS else np.unique(np.linspace(0, n - 1, _MOST_STEPS).astype(int)).tolist()
    return {
        "risks": [curve.risks[place] for place in chosen],
        "shares": [curve.shares[place] for place in chosen],
        "n_people": curve.n_people,
        "counted": curve.counted,
    }


def risk_section(measured: Mapping[str, Any]) -> dict[str, Any]:
    """List every risk before and after, as ``rows`` that :func:`figures_of` makes.

    ``reidentified`` is the share of people re-identified (marketer attack), or why there is none; ``counted`` says
    whether it is one of people or of rows.
    """
    if NOT_MEASURED in measured:
        return dict(measured)
    before, after = measured["before"], measured["after"]
    found = {"before": before["class_sizes"], "after": after["class_sizes"]}
    has_sizes = all(isinstance(sizes, list) for sizes in found.values())
    by_all = after["reidentification"]
    return {
        "reidentified": by_all[NOT_APPLICABLE] if NOT_APPLICABLE in by_all else by_all["marketer"],
        "counted": by_all.get("counted", PEOPLE),
        "rows": [row for row in measured["figures"] if row["audience"] != Audience.ATTACKER],
        "reasons": _reasons(after),
        "class_sizes": found if has_sizes else None,
        "curves": measured["curves"],
        "blame": _blame(after["uniques"]),
    }


def _applies(*found: Any) -> bool:
    return not any(isinstance(entry, Mapping) and NOT_APPLICABLE in entry for entry in found)


def _reasons(after: Mapping[str, Any]) -> list[str]:
    """Say which attacks do not apply and why, and what must be known about the figures."""
    missed = [(attack.title, after[name]) for name, attack in ATTACKS.items() if not _applies(after[name])]
    reasons = [f"{title} does not apply: {entry[NOT_APPLICABLE]}" for title, entry in missed if title]
    note = after["reidentification"].get("note") if _applies(after["reidentification"]) else ""
    notes = [str(note)] if note else []
    if not after["rows_are_people"] and after["reidentification"].get("counted") == ROWS:
        notes.append("shares are of rows, not of people: a person may have several, and nothing tells people apart")
    return [*reasons, *notes]


def _blame(uniques: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Columns that take part in most minimal uniques that are left."""
    if not _applies(uniques):
        return []
    blamed = [entry for entry in uniques["columns"] if entry["n_minimal"]][:MOST_COLUMNS_TO_BLAME]
    return [{"column": entry["column"], "share": entry["share"]} for entry in blamed]
