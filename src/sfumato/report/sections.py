"""Measured utility and risk as the rows of the report's tables; a row marked ``detail`` is for the data holder only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sfumato.attack.risk import NOT_APPLICABLE
from sfumato.report.measured import MOST_COLUMNS_TO_BLAME, NOT_MEASURED
from sfumato.report.words import share_in_words

SHARE, COUNT = "share", "count"
_ATTACKS = {
    "reidentification": "Finding a person by all quasi-identifiers",
    "uniques": "Standing out by a few columns",
    "inference": "Guessing a sensitive value",
    "linkage": "Linking with another table",
    "containment": "Matching by known ones",
}
_METRICS = ("accuracy", "balanced_accuracy", "auc")


def utility_section(measured: Mapping[str, Any]) -> dict[str, Any]:
    """Put the scores of every classifier before beside those after, the best one (by AUC before) named."""
    if NOT_MEASURED in measured:
        return dict(measured)
    before, after = measured["before"], measured["after"]
    classifiers = [
        {
            "name": name,
            "title": measured["titles"][name],
            "before": {metric: old[metric] for metric in _METRICS},
            "after": {metric: after["classifiers"][name][metric] for metric in _METRICS},
            "recall": _recalls(old["recall"], after["classifiers"][name]["recall"]),
        }
        for name, old in before["classifiers"].items()
    ]
    best = max(classifiers, key=lambda entry: (entry["before"]["auc"] or entry["before"]["accuracy"])["mean"])["name"]
    curves = {when: found["classifiers"][best]["roc"] for when, found in (("before", before), ("after", after))}
    return {
        "fitted_on": after["fitted_on"],
        "n_folds": before["n_folds"],
        "seed": before["seed"],
        "n_rows": before["n_rows"],
        "n_rows_of_table": before["n_rows_of_table"],
        "majority_accuracy": before["majority_accuracy"],
        "classifiers": classifiers,
        "best": best,
        "roc": curves if all(curves.values()) else None,
    }


def _recalls(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Recall of each class; classes are numbered from the most frequent one, and not named."""
    return [
        {"class": old["class"], "share": old["share"], "before": old["mean"], "after": new["mean"]}
        for old, new in zip(before, after, strict=True)
    ]


def risk_section(measured: Mapping[str, Any]) -> dict[str, Any]:
    """Put every risk before beside that after, as rows of ``group``, ``what``, ``unit``, ``before`` and ``after``."""
    if NOT_MEASURED in measured:
        return dict(measured)
    before, after = measured["before"], measured["after"]
    rows = [
        *_reidentification(before, after),
        *_uniques(before, after),
        *_inference(after),
        *_linkage(before, after),
        *_containment(before, after),
    ]
    found = {"before": before["class_sizes"], "after": after["class_sizes"]}
    has_sizes = all(isinstance(sizes, list) for sizes in found.values())
    return {
        "rows": rows,
        "reasons": _reasons(after),
        "class_sizes": found if has_sizes else None,
        "curves": measured["curves"],
        "blame": _blame(after["uniques"]),
    }


def _row(group: str, what: str, unit: str, before: Any, after: Any, *, detail: bool = False) -> dict[str, Any]:
    return {"group": group, "what": what, "unit": unit, "before": before, "after": after, "detail": detail}


def _applies(*found: Any) -> bool:
    return not any(isinstance(entry, Mapping) and NOT_APPLICABLE in entry for entry in found)


def _reasons(after: Mapping[str, Any]) -> list[str]:
    """Say which attacks do not apply and why, and what must be known about the figures."""
    missed = [(words, after[name]) for name, words in _ATTACKS.items() if not _applies(after[name])]
    reasons = [f"{words} does not apply: {entry[NOT_APPLICABLE]}" for words, entry in missed]
    note = after["reidentification"].get("note") if _applies(after["reidentification"]) else ""
    return [*reasons, *([str(note)] if note else [])]


def _reidentification(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    old, new = before["reidentification"], after["reidentification"]
    if not _applies(old, new):
        return
    group = _ATTACKS["reidentification"]
    yield _row(group, "people named rightly, expected share (marketer)", SHARE, old["marketer"], new["marketer"])
    for who, words in (("prosecutor", "knows who is in the table"), ("journalist", "does not know it")):
        for what in ("highest", "mean"):
            label = f"{what} risk of a person; the attacker {words} ({who})"
            yield _row(group, label, SHARE, old[who][what], new[who][what], detail=what == "mean")
    yield _row(group, "people whose row is found for certain", COUNT, old["n_found"], new["n_found"], detail=True)


def _uniques(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    old, new = before["uniques"], after["uniques"]
    if _applies(old, new) and old["largest_set"] == new["largest_set"]:
        what = f"rows that are unique on {new['largest_set']} or fewer columns"
        yield _row(_ATTACKS["uniques"], what, COUNT, old["n_rows_with"], new["n_rows_with"], detail=True)


def _inference(after: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if not _applies(after["inference"]):
        return
    for entry in after["inference"]:
        if _applies(entry):
            guess = share_in_words(entry["majority"])
            what = f"'{entry['column']}' predicted rightly (always naming the most frequent value: {guess})"
            yield _row(_ATTACKS["inference"], what, SHARE, entry["with_original"], entry["with_release"])


def _linkage(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    old, new = before["linkage"], after["linkage"]
    if not _applies(old, new):
        return
    by_size = {entry["n_background"]: entry["n_reidentified"] for entry in old}
    for entry in new:
        size = entry["n_background"]
        what = f"people found by the worst {size} columns" if size > 1 else "people found by the worst column"
        yield _row(_ATTACKS["linkage"], what, COUNT, by_size.get(size), entry["n_reidentified"], detail=True)


def _containment(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    new = after["containment"]
    if not _applies(new):
        return
    old = before["containment"] if _applies(before["containment"]) else []
    by_size = {entry["n_known"]: entry["below"] for entry in old}
    for entry in new:
        for crowd, share in list(entry["below"].items())[:1]:
            what = f"people with fewer than {crowd} candidates when {entry['n_known']} of their ones are known"
            old_share = by_size.get(entry["n_known"], {}).get(crowd)
            yield _row(_ATTACKS["containment"], what, SHARE, old_share, share, detail=True)


def _blame(uniques: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Columns that take part in most minimal uniques that are left."""
    if not _applies(uniques):
        return []
    blamed = [entry for entry in uniques["columns"] if entry["n_minimal"]][:MOST_COLUMNS_TO_BLAME]
    return [{"column": entry["column"], "share": entry["share"]} for entry in blamed]
