"""A release as one plain dict: what was asked, done, promised and found. It holds no cell value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sfumato.audit.verify import AuditReport, audit_release
from sfumato.contract import Mechanism, Progress, Release
from sfumato.errors import ManifestError
from sfumato.manifest import AnyTable, Manifest
from sfumato.mechanisms import find_mechanism
from sfumato.report.columns import column_changes
from sfumato.report.gaps import not_promised
from sfumato.report.measured import NOT_MEASURED, risk_left, utility_kept
from sfumato.report.reproduction import Asked, audit_command, command_for, mechanism_of
from sfumato.report.sections import risk_section, utility_section
from sfumato.report.words import ASSUMPTIONS, guarantee_in_words, number_in_words, share_in_words
from sfumato.schema import Role

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
    risk = risk_section(risk_left(release, original, progress=progress))
    columns = column_changes(manifest, release.table, original)
    command, notes = command_for(manifest, original, known)
    done = _done(manifest)
    guarantees = [guarantee_in_words(entry) for entry in manifest.guarantees]
    return {
        "sfumato_report": SUMMARY_VERSION,
        "audience": "internal",
        "name": manifest.output.get("name"),
        "in_short": _in_short(manifest, done, guarantees, utility, risk, checked),
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


def _in_short(
    manifest: Manifest,
    done: Mapping[str, Any],
    guarantees: list[dict[str, Any]],
    utility: Mapping[str, Any],
    risk: Mapping[str, Any],
    audit: AuditReport,
) -> list[str]:
    """Say the report in a few sentences."""
    of_all = f" of {done['n_rows_before']:,}" if done["n_rows_before"] is not None else ""
    rows = f"{done['n_rows_after']:,}{of_all} rows"
    names = ", ".join(entry["title"] for entry in guarantees)
    said = [
        f"{rows} were released by {manifest.mechanism['name']}, in {done['n_columns_after']:,} columns.",
        _audit_in_short(names, audit),
    ]
    if NOT_MEASURED in utility:
        said.append(f"Utility was not measured: {utility[NOT_MEASURED]}.")
    else:
        said.append(_utility_in_short(utility))
    if NOT_MEASURED in risk:
        said.append(f"Risk was not measured: {risk[NOT_MEASURED]}.")
    elif row := next(iter(risk["rows"]), None):
        before, after = share_in_words(row["before"]), share_in_words(row["after"])
        said.append(f"Risk: {row['what']}: {before} before, {after} after.")
    return said


def _audit_in_short(names: str, audit: AuditReport) -> str:
    if not audit.unchecked:
        return f"An independent audit confirms what is promised: {names}."
    exceptions = ", ".join(dict.fromkeys(one.name for one in audit.unchecked))
    return f"Promised: {names}. An independent audit confirms it except for what it could not check: {exceptions}."


def _utility_in_short(utility: Mapping[str, Any]) -> str:
    best = next(entry for entry in utility["classifiers"] if entry["name"] == utility["best"])
    metric, words = ("auc", "AUC") if best["before"]["auc"] and best["after"]["auc"] else ("accuracy", "accuracy")
    before, after = best["before"][metric]["mean"], best["after"][metric]["mean"]
    guess = 0.5 if metric == "auc" else utility["majority_accuracy"]
    return f"Utility: {words} of {best['title']} {before:.3f} before, {after:.3f} after (guessing: {guess:.3f})."


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
