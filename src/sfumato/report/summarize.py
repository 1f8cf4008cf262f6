"""A release as one plain dict: what was asked, done, promised and found. It holds no cell value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from sfumato.attack.risk import NOT_APPLICABLE, attacked_rows, risk_of
from sfumato.audit.reading.columns import Columns
from sfumato.audit.verify import AuditReport, audit_release
from sfumato.displays.class_sizes import sizes_before_and_after
from sfumato.displays.risk import RiskCurve
from sfumato.errors import ManifestError, SfumatoError
from sfumato.evaluation.classifiers import CLASSIFIERS
from sfumato.evaluation.scores import Estimate, evaluate
from sfumato.manifest import AnyTable, Manifest
from sfumato.mechanisms.base import Mechanism, Release
from sfumato.mechanisms.registry import find_mechanism
from sfumato.progress import Progress
from sfumato.report.guarantee_texts import ASSUMPTIONS, guarantee_in_words, number_in_words, share_in_words
from sfumato.report.in_short import MOST_ROWS, InShort, Prediction, in_short
from sfumato.report.not_covered import not_promised
from sfumato.report.reproduction import Asked, audit_command, command_for, mechanism_of
from sfumato.schema import Role

# What became of every column: names, roles and numbers of distinct values, never a value.


KEPT, DROPPED, COARSENED, FEATURES = "kept as it is", "dropped", "coarsened", "turned into 0/1 features"
MOVED, FLIPPED, DRAWN, ADDED = "moved within buckets", "some cells flipped", "drawn anew", "added"
MOST_SHOWN = 200

_CELL_RULES = ("generalized", "hierarchy")


def column_changes(manifest: Manifest, released: AnyTable, original: AnyTable | None = None) -> dict[str, Any]:
    """List the columns of the original, and those that the release adds.

    Parameters
    ----------
    original : Table or BinaryTable or None
        Without it, roles of dropped columns and distinct values before are not known.

    Returns
    -------
    dict
        ``n_columns``, and ``changes``: of up to 200 columns the ``name``, ``role``, ``change``, ``n_before`` and
        ``n_after`` distinct values (``None`` where not known or not released) and ``n_features``, the released columns
        made of it. A column that is neither released nor named by the manifest is not named (decision 0005).
    """
    after, before = Columns(released), Columns(original) if original is not None else None
    rules = {str(entry["name"]): entry for entry in manifest.recodings if "name" in entry and "column" in entry}
    made: dict[str, list[str]] = {}
    for name in after.names:
        made.setdefault(str(rules[name]["column"]) if name in rules else name, []).append(name)
    dropped = frozenset(manifest.dropped_columns)
    sources = before.sources if before is not None else ()
    in_order = [name for name in sources if name in made or name in dropped]
    known = dict.fromkeys([*in_order, *made, *manifest.dropped_columns])
    changes = [
        _sizes(name, made.get(name, []), after, before)
        | {"change": _in_words(name, made.get(name, []), rules, manifest.perturbation or {}, after)}
        for name in islice(known, MOST_SHOWN)
    ]
    return {"n_columns": len(known), "changes": changes}


def _sizes(name: str, made: Sequence[str], after: Columns, before: Columns | None) -> dict[str, Any]:
    is_known = before is not None and name in before
    role: str | None = None
    if before is not None and is_known:
        role = str(before.describe(name).role)
    elif made:
        role = str(after.describe(made[0]).role)
    return {
        "name": name,
        "role": role,
        "n_before": before.coded(name).n_distinct if before is not None and is_known else None,
        "n_after": after.coded(name).n_distinct if list(made) == [name] else None,
        "n_features": len(made),
    }


def _in_words(
    name: str, made: Sequence[str], rules: Mapping[str, Mapping[str, Any]], done: Mapping[str, Any], after: Columns
) -> str:
    if not made:
        return DROPPED
    if name == done.get("bucket"):
        return ADDED
    if any(name in part for part in done.get("slices", ())):
        return MOVED
    rule = rules.get(made[0], {})
    if rule.get("rule") in _CELL_RULES:
        return KEPT if rule.get("levels") == [0] else COARSENED
    is_drawn = done.get("kind") == "synthetic"
    is_flipped = done.get("kind") == "flipped" and after.describe(made[0]).role is Role.QUASI_IDENTIFIER
    happened = [FEATURES] if rule or list(made) != [name] else []
    happened += [DRAWN] if is_drawn else [FLIPPED] if is_flipped else []
    return ", ".join(happened) or KEPT


# Utility kept and risk left, measured for the report; where one cannot be, the reason stands in its place.


NOT_MEASURED = "not_measured"
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


# Measured utility and risk as the rows of the report's tables; a row marked ``detail`` is for the data holder only.


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


SUMMARY_VERSION = 1
QUICK = "skipped on request, to save time"

_LONGEST_VALUE = 300
_PERTURBED = {
    "flipped": "{n_cells_changed:,} cells of the features were changed at random; which ones is not said.",
    "synthetic": "The released rows were drawn anew from noisy counts: no row is that of a person.",
    "bucketed": "Within the rows that share a value of '{bucket}', values of {n_slices} slices of columns were moved.",
}


def summarize(
    release: Release,
    original: AnyTable | None = None,
    *,
    mechanism: Mechanism | None = None,
    audit: AuditReport | None = None,
    asked: Asked | None = None,
    quick: bool = False,
    risk: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Collect everything that a report says.

    Parameters
    ----------
    original : Table or BinaryTable or None
        With it utility and risk are measured, and the columns are compared.
    mechanism : Mechanism or None
        What made the release; by default it is built again from the manifest.
    audit : AuditReport or None
        An audit of the files; by default the tables at hand are audited.
    asked : Asked or None
        How the original was described, for the shell line that makes the release again.
    quick : bool
        Whether to leave out the training of classifiers.
    risk : mapping or None
        That of an earlier summary of the same release, not to be measured again.

    Raises
    ------
    AuditFailedError
        If the audit does not confirm the release: there is no report of such a one.
    ManifestError
        If an entry that the audit does not look at is not as this program writes it.

    Examples
    --------
    >>> from sfumato import Mondrian, release
    >>> from sfumato.datasets.admissions import admissions
    >>> table = admissions(n_rows=50).keep(["age", "sex", "readmitted"])
    >>> summarize(release(table, Mondrian(k=5)))["guarantees"][0]["title"]
    'k-anonymity'
    """
    manifest, known = release.manifest, asked or Asked()
    checked = audit or audit_release(release.table, manifest.to_dict(), original=original, check_roles=True)
    checked.raise_if_failed()
    _check_entries(manifest)
    rebuilt = mechanism or mechanism_of(manifest, known.declared)
    skip = QUICK if quick else "" if _target(manifest) else "the release has no target to predict"
    utility = utility_section(utility_kept(release, original, rebuilt, skip=skip, progress=progress))
    risk = risk if risk is not None else risk_section(risk_left(release, original, progress=progress))
    columns = column_changes(manifest, release.table, original)
    command, notes = command_for(manifest, original, known)
    done = _done(manifest)
    guarantees = [guarantee_in_words(entry) for entry in manifest.guarantees]
    verdict, told = _verdicts(release, original, utility)
    return {
        "sfumato_report": SUMMARY_VERSION,
        "audience": "internal",
        "name": manifest.output.get("name"),
        "verdict": verdict.to_dict(),
        "verdict_for_others": told.to_dict(),
        "in_short": _in_short(manifest, done, guarantees, checked),
        "asked": _asked(manifest),
        "done": done,
        "guarantees": guarantees,
        "not_promised": not_promised(release),
        "assumptions": list(ASSUMPTIONS),
        "audit": {
            "verdict": checked.verdict,
            "last_line": checked.last_line,
            "unchecked": [
                {"name": one.name, "message": one.message, "remedy": one.remedy} for one in checked.unchecked
            ],
            "n_checks": len(checked.checks),
            "with_original": original is not None,
            "checks": [check.message for check in checked.checks],
        },
        "utility": utility,
        "risk": risk,
        "columns": columns,
        "reproduction": {
            "command": command,
            "notes": notes,
            "audit_command": _audit_command(manifest),
            "hashes": _hashes(manifest),
            "versions": dict(manifest.versions),
            "seed": manifest.mechanism.get("seed"),
        },
    }


def _check_entries(manifest: Manifest) -> None:
    texts = (manifest.output.get("name"), manifest.project_sha256, _before(manifest).get("sha256"))
    are_texts = all(text is None or isinstance(text, str) for text in texts)
    if not are_texts or not isinstance(manifest.versions, Mapping):
        problem = "has names, hashes or versions that are not as this program writes them"
        raise ManifestError(problem)


def _before(manifest: Manifest) -> Mapping[str, Any]:
    """Give what the manifest says of the original: nothing, where the release is differentially private."""
    return manifest.input or {}


def _target(manifest: Manifest) -> str | None:
    columns = manifest.output["columns"]
    return next((column["name"] for column in columns if column["role"] == str(Role.TARGET)), None)


def _asked(manifest: Manifest) -> dict[str, Any]:
    name = str(manifest.mechanism["name"])
    info = find_mechanism(name)
    stated = manifest.mechanism.get("parameters") or {}
    return {
        "mechanism": name,
        "why": info.why if info else "",
        "target": _target(manifest),
        "parameters": [{"name": key, "value": _shown(value)} for key, value in stated.items() if value is not None],
    }


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"


def _done(manifest: Manifest) -> dict[str, Any]:
    perturbed = dict(manifest.perturbation or {})
    words = _PERTURBED.get(str(perturbed.get("kind")), "")
    return {
        "n_rows_before": _before(manifest).get("rows"),
        "n_rows_after": manifest.output["rows"],
        "n_suppressed": manifest.suppressed_rows,
        "n_incomplete": manifest.missing.get("n_dropped", 0),
        "n_columns_before": _before(manifest).get("columns"),
        "n_columns_after": len(manifest.output["columns"]),
        "n_dropped": len(manifest.dropped_columns),
        "perturbation": words.format(**perturbed, n_slices=len(perturbed.get("slices", ()))),
        "stated": _stated(manifest),
        "is_synthetic": perturbed.get("kind") == "synthetic",
    }


def _stated(manifest: Manifest) -> list[dict[str, str]]:
    """Single figures of the manifest's evidence; lists are for pictures."""
    headings = manifest.evidence.values() if isinstance(manifest.evidence, Mapping) else ()
    figures = [entry for found in headings if isinstance(found, Mapping) for entry in found.items()]
    return [
        {"name": str(name).replace("_", " "), "value": number_in_words(value)}
        for name, value in figures
        if isinstance(value, str | int | float)
    ]


def _verdicts(release: Release, original: AnyTable | None, utility: Mapping[str, Any]) -> tuple[InShort, InShort]:
    """Sum the release up for the data holder, and for others.

    Others are told of the columns that they see; of a release drawn with noise, nothing measured beside the original.
    """
    found, seen = in_short(release, original, quick=True), in_short(release)
    holder = replace(found, prediction=_prediction(utility))
    is_noisy = release.manifest.is_differentially_private or _done(release.manifest)["is_synthetic"]
    return holder, seen if is_noisy else replace(seen, prediction=holder.prediction, found=found.found)


def _prediction(utility: Mapping[str, Any]) -> Prediction | str:
    """Take the figures of the classifier that was best before, as the report's table has them."""
    if NOT_MEASURED in utility:
        return str(utility[NOT_MEASURED])
    best = next(entry for entry in utility["classifiers"] if entry["name"] == utility["best"])
    before, after = ({metric: _estimate(best[when][metric]) for metric in _METRICS} for when in ("before", "after"))
    assert before["accuracy"] is not None
    assert after["accuracy"] is not None
    return Prediction(
        best["name"],
        before["auc"],
        after["auc"],
        before["accuracy"],
        after["accuracy"],
        utility["majority_accuracy"],
        utility["n_rows"],
    )


def _estimate(found: Mapping[str, float] | None) -> Estimate | None:
    return None if found is None else Estimate(found["mean"], found["low"], found["high"], ())


def _in_short(
    manifest: Manifest,
    done: Mapping[str, Any],
    guarantees: list[dict[str, Any]],
    audit: AuditReport,
) -> list[str]:
    """Say what was made, and how the audit ended."""
    of_all = f" of {done['n_rows_before']:,}" if done["n_rows_before"] is not None else ""
    rows = f"{done['n_rows_after']:,}{of_all} rows"
    names = ", ".join(entry["title"] for entry in guarantees)
    return [
        f"{rows} were released by {manifest.mechanism['name']}, in {done['n_columns_after']:,} columns.",
        _audit_in_short(names, audit),
    ]


def _audit_in_short(names: str, audit: AuditReport) -> str:
    if not audit.unchecked:
        return f"An independent audit confirms what is promised: {names}."
    exceptions = ", ".join(dict.fromkeys(one.name for one in audit.unchecked))
    return f"Promised: {names}. An independent audit confirms it except for what it could not check: {exceptions}."


def _audit_command(manifest: Manifest) -> str | None:
    name = manifest.output.get("name")
    return audit_command(name) if name else None


def _hashes(manifest: Manifest) -> list[dict[str, Any]]:
    withheld = "not written down"
    stated = (
        ("original", _before(manifest).get("sha256")),
        ("release", manifest.output.get("sha256")),
        ("project file", manifest.project_sha256),
    )
    return [{"what": what, "sha256": digest or withheld} for what, digest in stated]
